// Normalization over groups of channels.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/normalization.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle native_group_norm, group_norm_backward;

namespace {

using loop::Compute;
using loop::Expr;

// The channels of an input [n, c, ...] in groups; places of a group are its channels and all that comes after.
struct Groups {
  Sizes sizes, extents;
  SymInt groups, width;
  Groups(const ArgsView& call, const Sizes& sizes, SymInt groups) : sizes(sizes), groups(groups) {
    call.require(sizes.size() >= 2, "expected an input of at least 2 dimensions, got sizes ", sizes);
    call.require(!statically_true(sym::le(groups, 0)), "expected a number of groups that is greater than 0, got ",
                 groups);
    call.require(!statically_true(sym::ne(sym::mod(sizes[1], groups), 0)), "the ", sizes[1],
                 " channels do not divide into ", groups, " groups");
    width = sym::floor_div(sizes[1], groups);
    extents.push_back(width);
    for (size_t i = 2; i < sizes.size(); ++i) extents.push_back(sizes[i]);
  }
  Sizes statistics() const { return {sizes[0], groups}; }
  // [n, group] and the place in the group
  Index at(Lower& l, const Index& i, const Index& r) const {
    Index out = {i[0], i[1] * l.extent(width) + r[0]};
    out.insert(out.end(), r.begin() + 1, r.end());
    return out;
  }
  Index group(Lower& l, const Index& i) const { return {i[0], call(loop::Fn::floor_div, i[1], l.extent(width))}; }
};

void lower_group_norm(Lower& l) {
  Ref x = l["input"];
  Groups groups(l, x.sizes(), l.integer("group"));
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto n = [&] { return cast(l.extent(count(groups.extents)), type); };
  Ref mean = l.temporary(dtype, groups.statistics(), [&](const Index& i) {
    return l.sum(groups.extents, [&](const Index& r) { return x.at(groups.at(l, i, r)); }) / n();
  });
  Ref rstd = l.temporary(dtype, groups.statistics(), [&](const Index& i) {
    Expr squares = l.sum(groups.extents, [&](const Index& r) {
      Expr d = x.at(groups.at(l, i, r)) - mean.at(i);
      return d * d;
    });
    return l.constant(1, type) / loop::sqrt(squares / n() + l.number("eps"));
  });
  l.tensor(l.out(0), [&](const Index& i) {
    Expr y = (x.at(i) - mean.at(groups.group(l, i))) * rstd.at(groups.group(l, i));
    if (l.given("weight")) y = y * cast(l["weight"].at({i[1]}), type);
    return l.given("bias") ? y + cast(l["bias"].at({i[1]}), type) : y;
  });
  l.copy(mean, l.out(1));
  l.copy(rstd, l.out(2));
}

void lower_group_norm_gradient(Lower& l) {
  Ref g = l["grad_out"], x = l["input"], mean = l["mean"], rstd = l["rstd"];
  Groups groups(l, x.sizes(), l.integer("group"));
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto normal = [&](const Index& i) {
    return (x.at(i) - cast(mean.at(groups.group(l, i)), type)) * cast(rstd.at(groups.group(l, i)), type);
  };
  auto weighted = [&](const Index& i) {
    return l.given("weight") ? cast(g.at(i), type) * cast(l["weight"].at({i[1]}), type) : cast(g.at(i), type);
  };
  if (l.wants(0)) {
    Ref a = l.temporary(dtype, groups.statistics()), b = l.temporary(dtype, groups.statistics());
    l.stage(groups.statistics(), [&](const Index& i) {
      Expr n = cast(l.extent(count(groups.extents)), type);
      l.store(a, i, l.sum(groups.extents, [&](const Index& r) { return weighted(groups.at(l, i, r)); }) / n);
      l.store(b, i, l.sum(groups.extents, [&](const Index& r) {
        return weighted(groups.at(l, i, r)) * normal(groups.at(l, i, r));
      }) / n);
    });
    l.tensor(l.out(0), [&](const Index& i) {
      Index at = groups.group(l, i);
      return cast(rstd.at(at), type) * (weighted(i) - a.at(at) - normal(i) * b.at(at));
    });
  }
  Sizes others = x.sizes();
  others.erase(1);
  if (l.wants(1))
    l.tensor(l.out(1), [&](const Index& i) {
      return l.sum(others,
                   [&](const Index& r) { return cast(g.at(r.inserted(1, i[0])), type) * normal(r.inserted(1, i[0])); });
    });
  if (l.wants(2))
    l.tensor(l.out(2), [&](const Index& i) {
      return l.sum(others, [&](const Index& r) { return cast(g.at(r.inserted(1, i[0])), type); });
    });
}

// What the mean and the inverse deviation of each group give back: d mean = 1 / n, d rstd = -rstd³ * (x - mean) / n.
Tensor statistics_gradient(const Vjp& v) {
  SymInt groups = v.integer("group"), n = sym::floor_div(v.integer("C"), groups) * v.integer("HxW");
  Sizes rows = {v.integer("N"), groups, n};
  Tensor total;
  if (v.grad(1)) total = expand(unsqueeze(div(v.grad(1), n), -1), rows);
  if (v.grad(2)) {
    Tensor rstd = v.out(2), centered = reshape(v["input"], rows) - unsqueeze(v.out(1), -1);
    Tensor part = -centered * unsqueeze(div(v.grad(2) * (rstd * rstd * rstd), n), -1);
    total = total ? total + part : part;
  }
  return total ? Tensor(reshape(total, v["input"].sizes())) : none;
}

// With the channels of a group as a dimension of their own: [n, group, channel, place].
Results differentiable_gradient(Build& b) {
  SymInt groups = b.integer("group"), width = sym::floor_div(b.integer("C"), groups);
  Sizes split = {b.integer("N"), groups, width, b.integer("HxW")};
  Sizes statistics = {b.integer("N"), groups, 1, 1}, channels = {1, groups, width, 1};
  return masked_results(
      b, normalization_gradient({.grad = reshape(b["grad_out"], split),
                                 .input = reshape(b["input"], split),
                                 .mean = reshape(b["mean"], statistics),
                                 .rstd = reshape(b["rstd"], statistics),
                                 .weight = b.given("weight") ? Tensor(reshape(b["weight"], channels)) : none,
                                 .over = {2, 3},
                                 .parameter_over = {0, 3}}));
}

}  // namespace

void register_group_norm(Registry& ops) {
  ops.add({
      .schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float "
                "eps=1.0000000000000001e-05, bool "
                "cudnn_enabled=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["input"];
        b.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x.meta());
        if (normalized_strides(x.meta()) != x.strides()) x = contiguous(x);
        SymInt area = 1;
        for (size_t i = 2; i < x.rank(); ++i) area = area * x.sizes()[i];
        return one(native_group_norm(x, b.arg("weight"), b.arg("bias"), x.size(0), x.size(1), area, b.arg("num_groups"),
                                     b.arg("eps"))[0]);
      },
  });
  ops.add(native_group_norm,
          {
              .schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, "
                        "SymInt C, SymInt HxW, int group, float eps) -> "
                        "(Tensor, Tensor, Tensor)",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& x = m.meta("input");
                m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
                Groups groups(m, x.sizes, m.integer("group"));
                require_parameter(m, "weight", {x.sizes[1]});
                require_parameter(m, "bias", {x.sizes[1]});
                TensorMeta out = like(x, x.sizes),
                           statistics = like(x, groups.statistics(), statistics_dtype(m, {"weight", "bias"}));
                out.strides = normalized_strides(x);
                return {out, statistics, statistics};
              },
              .lower = lower_group_norm,
              .vjp = {{"input, weight, bias",
                       [](Vjp& v) -> Grads {
                         Tensor through_statistics = v.needs("input") ? statistics_gradient(v) : none;
                         if (!v.grad()) return {through_statistics};
                         std::vector<bool> mask = {v.needs("input"), v.needs("weight"), v.needs("bias")};
                         Results r = group_norm_backward(v.grad(), v["input"], v.out(1), v.out(2), v.arg("weight"),
                                                         v.arg("N"), v.arg("C"), v.arg("HxW"), v.arg("group"), mask);
                         return {through_statistics ? r[0] + through_statistics : r[0], r[1], r[2]};
                       }}},
          });
  ops.add(group_norm_backward, {
                                   .schema = "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, "
                                             "Tensor rstd, Tensor? weight, SymInt N, SymInt C, "
                                             "SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
                                   .kind = OpKind::reduction,
                                   .meta = [](MetaCall& m) -> Metas {
                                     const TensorMeta& x = m.meta("input");
                                     Groups groups(m, x.sizes, m.integer("group"));
                                     require_sizes(m, "grad_out", x.sizes);
                                     require_sizes(m, "mean", groups.statistics());
                                     require_sizes(m, "rstd", groups.statistics());
                                     require_parameter(m, "weight", {x.sizes[1]});
                                     TensorMeta out = like(x, x.sizes);
                                     TensorMeta parameter =
                                         like(x, {x.sizes[1]}, m.given("weight") ? m.meta("weight").dtype : x.dtype);
                                     out.strides = normalized_strides(x);
                                     return masked_metas(m, {out, parameter, parameter});
                                   },
                                   .lower = lower_group_norm_gradient,
                                   .for_grad = differentiable_gradient,
                               });
}

}  // namespace tenon
