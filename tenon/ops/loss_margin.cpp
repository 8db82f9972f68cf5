// Margin losses over classes.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/powers.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle multi_margin_backward, multilabel_forward, multilabel_backward, soft_margin_backward;

namespace {

using loop::Compute;
using loop::Expr;

// One sample [c], or several [n, c].
struct Samples {
  bool single;
  SymInt count, classes;
  explicit Samples(const Sizes& sizes)
      : single(sizes.size() <= 1),
        count(single ? SymInt(1) : sizes[0]),
        classes(sizes.empty() ? SymInt(1) : sizes.back()) {}
  Index at(Ref x, Expr sample, Expr c) const {
    if (x.sizes().empty()) return {};
    return single ? Index{c} : Index{sample, c};
  }
  Index of(Ref t, Expr sample) const { return t.sizes().empty() ? Index{} : Index{sample}; }  // one number per sample
  // The sample of a place in a tensor like the input.
  static Expr sample(const Index& i) { return i.size() < 2 ? Expr(0) : i[0]; }
};

Expr zero(Lower& l, Expr like) { return l.constant(0, like.type()); }

// Each sample's loss, or their mean or sum.
void reduce_samples(Lower& l, Ref each, const Samples& samples, int64_t reduction) {
  if (reduction == 0) {
    l.tensor(l.out(0), [&](const Index& i) { return each.at({i.empty() ? Expr(0) : i[0]}); });
    return;
  }
  l.tensor(l.out(0), [&](const Index&) {
    Expr total = l.sum({samples.count}, [&](const Index& r) { return each.at({r[0]}); });
    return reduction == 1 ? total / cast(l.extent(samples.count), total.type()) : total;
  });
}

Samples require_samples(const ArgsView& m) {
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() <= 2, "expected one sample of classes or a batch of them, got ", x);
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
  return Samples(x.sizes);
}

// One class for each sample, and a weight for each class.
void require_classes(const ArgsView& m, const Samples& samples) {
  const TensorMeta& t = m.meta("target");
  m.require(t.rank() <= 1 && !statically_true(sym::ne(count(t.sizes), samples.count)), "target: expected ",
            samples.count, " classes, got ", t);
  if (!m.given("weight")) return;
  const TensorMeta& weight = m.meta("weight");
  m.require(weight.rank() == 1 && !statically_true(sym::ne(weight.sizes[0], samples.classes)), "weight: expected ",
            samples.classes, " numbers, got ", weight);
}

void require_gradient(const ArgsView& m, const Samples& samples) {
  const TensorMeta& grad = m.meta("grad_output");
  SymInt wanted = m.constant("reduction") == 0 ? samples.count : SymInt(1);
  m.require(grad.rank() <= 1 && !statically_true(sym::ne(count(grad.sizes), wanted)), "grad_output: expected ", wanted,
            " numbers, got ", grad);
}

// sum over c != t of max(0, margin - x[t] + x[c])^p * w[t] / classes
void lower_multi_margin(Lower& l) {
  Ref x = l["self"], target = l["target"];
  Samples samples(x.sizes());
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  Ref each = l.temporary(dtype, {samples.count}, [&](const Index& n) {
    Expr total = l.sum({samples.classes}, [&](const Index& r) {
      Expr t = target.at(samples.of(target, n[0])), inside = t >= 0 && t < l.extent(samples.classes);
      Expr own = x.at_if(inside, samples.at(x, n[0], t), 0.0);
      Expr z = loop::max(x.at(samples.at(x, n[0], r[0])) - own + l.number("margin"), l.constant(0, type));
      if (l.number("p") == 2) z = z * z;
      if (l.given("weight")) z = z * cast(l["weight"].at_if(inside, {t}, 0.0), type);
      return loop::select(r[0] == t, 0.0, z);
    });
    return total / cast(l.extent(samples.classes), type);
  });
  reduce_samples(l, each, samples, l.constant("reduction"));
}

void lower_multi_margin_gradient(Lower& l) {
  Ref g = l["grad_output"], x = l["self"], target = l["target"];
  Samples samples(x.sizes());
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  // The slope of the loss for each class but the true one.
  Ref slopes = l.temporary(dtype, {samples.count, samples.classes}, [&](const Index& i) {
    Expr t = target.at(samples.of(target, i[0])), inside = t >= 0 && t < l.extent(samples.classes);
    Expr z = x.at(samples.at(x, i[0], i[1])) - x.at_if(inside, samples.at(x, i[0], t), 0.0) + l.number("margin");
    Expr slope = loop::select(z > 0, l.number("p") == 2 ? z * 2.0 : l.constant(1, type), 0.0) /
                 cast(l.extent(samples.classes), type);
    if (l.given("weight")) slope = slope * cast(l["weight"].at_if(inside, {t}, 0.0), type);
    return loop::select(i[1] == t, 0.0, slope);
  });
  Ref totals = l.temporary(dtype, {samples.count}, [&](const Index& i) {
    return l.sum({samples.classes}, [&](const Index& r) { return slopes.at({i[0], r[0]}); });
  });
  l.tensor([&](const Index& i) {
    Expr n = Samples::sample(i), c = i.empty() ? l.constant(0, Compute::i64) : i.back();
    Expr d = loop::select(c == target.at(samples.of(target, n)), -totals.at({n}), slopes.at({n, c}));
    d = d * cast(g.broadcast_at({n}), type);
    return l.constant("reduction") == 1 ? d / cast(l.extent(samples.count), type) : d;
  });
}

// Targets of a sample are listed up to the first negative number.
struct Listed {
  Ref counts;  // [n, c]: whether entry c of the list counts
  Listed(Lower& l, const Samples& samples, Ref target) {
    counts = l.temporary(DType::boolean, {samples.count, samples.classes}, [&](const Index& i) {
      return !l.reduce(loop::Combine::any, {samples.classes},
                       [&](const Index& r) { return r[0] <= i[1] && target.at(samples.at(target, i[0], r[0])) < 0; });
    });
  }
};

// max(0, 1 - x[t] + x[c]) for each listed t and each c that is not listed, over the number of classes.
void lower_multilabel(Lower& l) {
  Ref x = l["self"], target = l["target"], is_target = l.out(1);
  Samples samples(x.sizes());
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  Listed listed(l, samples, target);
  Ref truth = l.temporary(DType::boolean, {samples.count, samples.classes}, [&](const Index& i) {
    return l.reduce(loop::Combine::any, {samples.classes}, [&](const Index& r) {
      return listed.counts.at({i[0], r[0]}) && target.at(samples.at(target, i[0], r[0])) == i[1];
    });
  });
  l.tensor(is_target, [&](const Index& i) {
    Index at = {Samples::sample(i), i.empty() ? Expr(0) : i.back()};
    return cast(truth.at(at), type);
  });
  Ref each = l.temporary(dtype, {samples.count}, [&](const Index& n) {
    Expr total = l.sum({samples.classes, samples.classes}, [&](const Index& r) {
      Expr t = target.at(samples.at(target, n[0], r[0])),
           use = listed.counts.at({n[0], r[0]}) && t < l.extent(samples.classes);
      Expr z = l.constant(1, type) - x.at_if(use, samples.at(x, n[0], t), 0.0) + x.at(samples.at(x, n[0], r[1]));
      return loop::select(use && !truth.at({n[0], r[1]}), loop::max(z, zero(l, z)), 0.0);
    });
    return total / cast(l.extent(samples.classes), type);
  });
  reduce_samples(l, each, samples, l.constant("reduction"));
}

void lower_multilabel_gradient(Lower& l) {
  Ref g = l["grad_output"], x = l["self"], target = l["target"], is_target = l["is_target"];
  Samples samples(x.sizes());
  Compute type = loop::compute_of(computable(x.dtype()));
  Listed listed(l, samples, target);
  l.tensor([&](const Index& i) {
    Expr n = Samples::sample(i), c = i.empty() ? l.constant(0, Compute::i64) : i.back();
    Expr total =
        l.sum({samples.classes, samples.classes}, [&](const Index& r) {  // a listed entry against another class
          Expr t = target.at(samples.at(target, n, r[0])),
               use = listed.counts.at({n, r[0]}) && t < l.extent(samples.classes);
          Expr other = is_target.at(samples.at(is_target, n, r[1])) == 0;
          Expr z = l.constant(1, type) - x.at_if(use, samples.at(x, n, t), 0.0) + x.at(samples.at(x, n, r[1]));
          Expr active = use && other && z > 0;
          Expr up = loop::select(active && r[1] == c, l.constant(1, type), 0.0);
          return up - loop::select(active && t == c, l.constant(1, type), 0.0);
        });
    Expr d = total / cast(l.extent(samples.classes), type) * cast(g.broadcast_at({n}), type);
    return l.constant("reduction") == 1 ? d / cast(l.extent(samples.count), type) : d;
  });
}

Sizes loss_sizes(const TensorMeta& x, int64_t reduction) {
  return reduction == 0 && x.rank() == 2 ? Sizes{x.sizes[0]} : Sizes{};
}

}  // namespace

void register_loss_margin(Registry& ops) {
  ops.add({
      .schema = "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
                "reduction=1) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        require_classes(m, require_samples(m));
        m.require(m.number("p") == 1 || m.number("p") == 2, "p: expected 1 or 2, got ", m.number("p"));
        TensorMeta out = like(m.meta("self"), loss_sizes(m.meta("self"), m.constant("reduction")));
        if (m.constant("reduction") == 0 && m.meta("self").rank() < 2)
          out = like(m.meta("self"), m.meta("target").sizes);
        return out;
      },
      .lower = lower_multi_margin,
      .vjp = {{"self",
               [](Vjp& v) {
                 return multi_margin_backward(v.grad(), v["self"], v["target"], v.arg("p"), v.arg("margin"),
                                              v.arg("weight"), v.arg("reduction"));
               }}},
  });
  ops.add(multi_margin_backward, {
                                     .schema = "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor "
                                               "target, Scalar p, Scalar margin, Tensor? weight=None, int "
                                               "reduction=1) -> Tensor",
                                     .meta = [](MetaCall& m) -> Metas {
                                       Samples samples = require_samples(m);
                                       require_classes(m, samples);
                                       require_gradient(m, samples);
                                       return like(m.meta("self"), m.meta("self").sizes);
                                     },
                                     .lower = lower_multi_margin_gradient,
                                 });
  ops.add({
      .schema = "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.misdescribed = true},  // without a reduction, of one sample
      .decompose = [](Build& b) -> Results {
        return one(multilabel_forward(b["self"], b["target"], b.arg("reduction"))[0]);
      },
  });
  ops.add(multilabel_forward,
          {
              .schema = "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, "
                        "Tensor is_target)",
              .kind = OpKind::reduction,
              .traits = {.misdescribed = true},
              .meta = [](MetaCall& m) -> Metas {
                require_samples(m);
                m.require(m.meta("target").rank() == m.meta("self").rank(), "target: expected as many dimensions as ",
                          m.meta("self"), ", got ", m.meta("target"));
                return {like(m.meta("self"), loss_sizes(m.meta("self"), m.constant("reduction"))),
                        like(m.meta("self"), m.meta("target").sizes)};
              },
              .lower = lower_multilabel,
              .vjp = {{"self",
                       [](Vjp& v) -> Grads {
                         if (!v.grad()) return {};
                         return {multilabel_backward(v.grad(), v["self"], v["target"], v.arg("reduction"), v.out(1))};
                       }}},
          });
  ops.add(multilabel_backward, {
                                   .schema = "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor "
                                             "target, int reduction, Tensor is_target) -> Tensor",
                                   .meta = [](MetaCall& m) -> Metas {
                                     require_gradient(m, require_samples(m));
                                     require_sizes(m, "target", m.meta("self").sizes);
                                     require_sizes(m, "is_target", m.meta("self").sizes);
                                     return like(m.meta("self"), m.meta("self").sizes);
                                   },
                                   .lower = lower_multilabel_gradient,
                               });
  ops.add({
      .schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(reduce_loss(log1p(exp(-b["self"] * b["target"])), b)); },
      .vjp = {{"self",
               [](Vjp& v) { return soft_margin_backward(v.grad(), v["self"], v["target"], v.arg("reduction")); }}},
  });
  ops.add(soft_margin_backward,
          {
              .schema =
                  "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
              .kind = OpKind::composite,
              .decompose =
                  [](Build& b) {
                    Tensor z = exp(-b["target"] * b["self"]);
                    return loss_gradient(b, -b["target"] * z / (z + 1.0));
                  },
          });
}

}  // namespace tenon
