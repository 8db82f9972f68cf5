// Negative log likelihood: of classes (nll_loss, cross_entropy), of distributions (kl_div) and of counts (poisson).
#include <numbers>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/softmax.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle nll_loss_nd, cross_entropy_loss;
static Handle nll_loss, nll_loss_forward, nll_loss_backward, nll_loss2d, nll_loss2d_forward, nll_loss2d_backward;

namespace {

using loop::Compute;
using loop::Expr;

// Log probabilities [c], [n, c] or [n, c, ...] and the classes that are true.
struct Classes {
  size_t dim;  // where the classes are
  SymInt classes;
  SymInt ignored;
  Classes(const ArgsView& call, const Sizes& sizes)
      : dim(sizes.size() == 1 ? 0 : 1), classes(sizes[dim]), ignored(call.integer("ignore_index")) {}
};

bool is_one_number(const TensorMeta& t) { return !statically_true(sym::ne(count(t.sizes), 1)); }

// The sizes without the classes: one loss for each.
Sizes require_classes(const MetaCall& m, bool images) {
  const TensorMeta &x = m.meta("self"), &t = m.meta("target");
  m.require(is_floating(x.dtype), "expected floating point log probabilities, got ", x);
  m.require(images ? x.rank() == 4 : x.rank() == 1 || x.rank() == 2, "expected an input of ", images ? "4" : "1 or 2",
            " dimensions, got ", x);
  Classes classes(m, x.sizes);
  Sizes sizes = x.sizes;
  sizes.erase(classes.dim);
  bool fits = t.rank() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = !statically_true(sym::ne(sizes[i], t.sizes[i]));
  // A single sample may have its class in a list of one.
  fits = fits || (x.rank() == 1 && t.rank() == 1 && is_one_number(t));
  m.require(fits, "target: expected sizes ", sizes, " beside an input ", x, ", got ", t);
  m.require(t.dtype == DType::i64 || t.dtype == DType::u8, "target: expected classes of dtype i64, got ", t);
  if (m.given("weight")) {
    const TensorMeta& weight = m.meta("weight");
    m.require(weight.rank() == 1 && !statically_true(sym::ne(weight.sizes[0], classes.classes)), "weight: expected ",
              classes.classes, " numbers, got ", weight);
  }
  return sizes;
}

Metas nll_meta(MetaCall& m, bool images) {
  const TensorMeta& x = m.meta("self");
  Sizes sizes = require_classes(m, images);
  return {m.constant("reduction") == 0 ? like(x, sizes) : like(x, {}), like(x, {})};
}

Metas nll_gradient_meta(MetaCall& m, bool images) {
  const TensorMeta &grad = m.meta("grad_output"), &x = m.meta("self");
  Sizes sizes = require_classes(m, images);
  bool each = m.constant("reduction") == 0 && grad.rank() == sizes.size(), fits = each || is_one_number(grad);
  for (size_t i = 0; each && i < sizes.size(); ++i) fits = fits && !statically_true(sym::ne(sizes[i], grad.sizes[i]));
  m.require(fits, "grad_output: expected the sizes of the loss of ", x, ", got ", grad);
  m.require(is_one_number(m.meta("total_weight")), "total_weight: expected one number, got ", m.meta("total_weight"));
  return like(x, x.sizes);
}

// Where a class is ignored it may be out of range.
void lower_nll(Lower& l) {
  Ref x = l["self"], target = l["target"];
  Classes classes(l, x.sizes());
  Compute type = loop::compute_of(x.dtype());
  bool single = x.sizes().size() == 1;
  Sizes places = single ? Sizes{} : Sizes(target.sizes());
  auto truth = [&](const Index& i) { return target.at(single ? Index(target.sizes().size(), Expr(0)) : i); };
  auto counts = [&](Expr t) { return t != l.extent(classes.ignored); };
  auto weight = [&](const Index& i) {
    Expr t = truth(i), one = l.constant(1, type);
    if (l.given("weight")) one = cast(l["weight"].at_if(counts(t), {t}, 0.0), type);
    return loop::select(counts(t), one, 0.0);
  };
  auto loss = [&](const Index& i) {
    Expr t = truth(i);
    Expr p = x.at_if(counts(t), single ? Index{t} : i.inserted(1, t), 0.0);
    return loop::select(counts(t), -p * weight(i), 0.0);
  };
  int64_t reduction = l.constant("reduction");
  if (reduction == 0) {
    l.tensor(l.out(0), loss);
    l.fill(l.out(1), l.constant(0, type));
    return;
  }
  l.stage({}, [&](const Index& i) {
    Expr total = l.sum(places, loss), weights = l.sum(places, weight);
    l.store(l.out(0), i, reduction == 1 ? total / weights : total);
    l.store(l.out(1), i, weights);
  });
}

void lower_nll_gradient(Lower& l) {
  Ref g = l["grad_output"], x = l["self"], target = l["target"], total_weight = l["total_weight"];
  Classes classes(l, x.sizes());
  Compute type = loop::compute_of(x.dtype());
  bool single = x.sizes().size() == 1, each = l.constant("reduction") == 0, mean = l.constant("reduction") == 1;
  auto first = [](Ref r) { return r.at(Index(r.sizes().size(), Expr(0))); };
  l.tensor([&](const Index& i) {
    Index place = i.without(classes.dim);
    Expr t = target.at(single ? Index(target.sizes().size(), Expr(0)) : place), c = i[classes.dim];
    Expr d = cast(each && g.sizes().size() == place.size() ? g.at(place) : first(g), type);
    if (mean) d = d / cast(first(total_weight), type);
    if (l.given("weight")) d = d * cast(l["weight"].at({c}), type);
    return loop::select(t == c && t != l.extent(classes.ignored), -d, 0.0);
  });
}

// nll_loss or nll_loss2d with its forward and backward operators; the latter is for images of classes.
struct NllSchemas {
  const char *loss, *forward, *backward;
};

Tensor loss_by(const Handle& forward, const ArgsView& call, const Tensor& x) {
  return forward(x, call["target"], call.arg("weight"), call.arg("reduction"), call.arg("ignore_index"))[0];
}

template <bool images, Handle& loss, Handle& forward, Handle& backward>
void add_nll_loss(Registry& ops, const NllSchemas& schemas) {
  ops.add(loss, {
                    .schema = schemas.loss,
                    .kind = OpKind::composite,
                    .decompose = [](Build& b) { return one(loss_by(forward, b, b["self"])); },
                });
  ops.add(forward, {
                       .schema = schemas.forward,
                       .kind = OpKind::reduction,
                       .meta = [](MetaCall& m) { return nll_meta(m, images); },
                       .lower = lower_nll,
                       .vjp = {{"self",
                                [](Vjp& v) -> Grads {
                                  if (!v.grad()) return {};
                                  return {backward(v.grad(), v["self"], v["target"], v.arg("weight"),
                                                   v.arg("reduction"), v.arg("ignore_index"), v.out(1))};
                                }}},
                   });
  ops.add(backward, {
                        .schema = schemas.backward,
                        .meta = [](MetaCall& m) { return nll_gradient_meta(m, images); },
                        .lower = lower_nll_gradient,
                        .vjp = {{"grad_output", [](Vjp& v) { return loss_by(forward, v, v.grad()); }}},
                    });
}

// Any rank as one of those that nll_loss and nll_loss2d take.
Tensor nll_of_any_rank(const Build& call, const Tensor& x) {
  Tensor target = call["target"];
  const CallArg &weight = call.arg("weight"), &reduction = call.arg("reduction"), &ignored = call.arg("ignore_index");
  size_t rank = x.rank();
  call.require(rank >= 1 && target.rank() + 1 >= rank, "expected classes for each place of the input ", x.meta(),
               ", got ", target.meta());
  if (rank <= 2) return nll_loss(x, target, weight, reduction, ignored);
  if (rank == 4) return nll_loss2d(x, target, weight, reduction, ignored);
  SymInt n = x.size(0), c = x.size(1), area = 1;
  for (size_t i = 2; i < rank; ++i) area = area * x.sizes()[i];
  Tensor flat = reshape(x, Sizes{n, c, 1, area}), classes = reshape(target, Sizes{n, 1, area});
  Tensor loss = nll_loss2d(flat, classes, weight, reduction, ignored);
  return loss.rank() == 0 ? loss : Tensor(view(loss, target.sizes()));
}

Tensor along_classes(const Tensor& weight, size_t rank, size_t dim) {
  Sizes sizes(rank, SymInt(1));
  sizes[dim] = weight.size(0);
  return view(weight, sizes);
}

Tensor from_probabilities(Build& b, const Tensor& logs, size_t dim) {
  SymInt classes = b["self"].sizes()[dim];
  Tensor target = b["target"];
  double smoothing = b.number("label_smoothing");
  b.require(is_floating(target.dtype()), "target: expected probabilities as floating point numbers, got ",
            target.meta());
  if (smoothing > 0) {
    b.require(classes.is_int(), "label_smoothing needs a known number of classes, it is ", classes);
    target = target * (1 - smoothing) + smoothing / static_cast<double>(classes.as_int());
  }
  Tensor loss = logs * target;
  if (b.given("weight")) loss = loss * along_classes(b["weight"], b["self"].rank(), dim);
  switch (b.constant("reduction")) {
    case 0: return -sum(loss, static_cast<int64_t>(dim));
    case 1: {
      SymInt samples = 1;
      for (size_t i = 0; i < b["self"].rank(); ++i)
        if (i != dim) samples = samples * b["self"].sizes()[i];
      return div(-sum_all(loss), samples);
    }
    default: return -sum_all(loss);
  }
}

// Part of each label is spread over all classes.
Tensor smoothed(Build& b, const Tensor& logs, size_t dim) {
  SymInt classes = b["self"].sizes()[dim];
  double smoothing = b.number("label_smoothing");
  b.require(smoothing <= 1 && classes.is_int(),
            "label_smoothing: expected a number from 0 to 1 and a known number of classes, got ", smoothing, " and ",
            classes);
  Tensor target = b["target"];
  Tensor sharp = nll_of_any_rank(b, logs);
  Tensor all = b.given("weight") ? logs * along_classes(b["weight"], b["self"].rank(), dim) : logs;
  Tensor ignored = eq(target, b.arg("ignore_index"));
  Tensor even = where(ignored, 0.0, -sum(all, static_cast<int64_t>(dim)));
  Tensor spread = even;
  if (b.constant("reduction") == 2) spread = sum_all(even);
  if (b.constant("reduction") == 1) {
    Tensor counted = logical_not(ignored);
    if (b.given("weight")) {
      Tensor flat = reshape(where(ignored, 0, target), Sizes{target.numel()});
      Tensor weights = index_select(b["weight"], 0, flat);
      counted = where(reshape(ignored, Sizes{target.numel()}), 0.0, weights);
    }
    spread = sum_all(even) / sum_all(counted);
  }
  return sharp * (1 - smoothing) + spread * (smoothing / static_cast<double>(classes.as_int()));
}

Results cross_entropy(Build& b) {
  Tensor x = b["self"], target = b["target"];
  b.require(x.rank() >= 1, "expected an input of at least one dimension, got ", x.meta());
  b.require(b.number("label_smoothing") >= 0 && b.number("label_smoothing") <= 1,
            "label_smoothing: expected a number from 0 to 1, got ", b.number("label_smoothing"));
  size_t dim = x.rank() == 1 ? 0 : 1;
  Tensor logs = log_softmax(x, dim);
  if (target.rank() == x.rank() && is_floating(target.dtype())) return one(from_probabilities(b, logs, dim));
  if (b.number("label_smoothing") > 0) return one(smoothed(b, logs, dim));
  return one(nll_of_any_rank(b, logs));
}

// The loss of a linear layer, which PyTorch computes a chunk of samples at a time: what that does for memory,
// partitioning does here.
// No gradient reaches what was not asked for when the program was exported.
Tensor asked(Build& b, const char* arg, const char* flag) {
  return b.op.schema.find(flag) < 0 || b.flag(flag) ? b[arg] : Tensor(detach(b[arg]));
}
Tensor scores(Build& b) {
  CallArg bias = b.given("linear_bias") ? CallArg(asked(b, "linear_bias", "compute_linear_bias_grad")) : CallArg();
  return linear(asked(b, "input", "compute_input_grad"), asked(b, "linear_weight", "compute_linear_weight_grad"), bias);
}

Tensor loss_of(Build& b, int64_t reduction) {
  b.require(b["input"].rank() == 2 && b["linear_weight"].rank() == 2,
            "expected matrices as input and linear_weight, got ", b["input"].meta(), " and ",
            b["linear_weight"].meta());
  Tensor target = is_floating(b["target"].dtype()) ? Tensor(detach(b["target"])) : b["target"];
  return cross_entropy_loss(scores(b), target, b.arg("weight"), reduction, b.arg("ignore_index"));
}

// What the true distribution of each sample weighs, class by class.
Tensor weighed_targets(Build& b) {
  Tensor target = b["target"], x = b["input"];
  SymInt classes = b["linear_weight"].size(0);
  Tensor weight = b.given("weight") ? Tensor(unsqueeze(b["weight"], 0)) : Tensor();
  if (is_floating(target.dtype())) return weight ? Tensor(target * weight) : target;
  Tensor named = logical_and(eq(unsqueeze(arange(0, classes), 0), unsqueeze(target, 1)),
                             logical_not(unsqueeze(eq(target, b.arg("ignore_index")), 1)));
  Tensor here = to(named, x.dtype());
  return weight ? Tensor(here * weight) : here;
}

// The loss, and its gradients by what was asked for: PyTorch computes them beforehand and keeps them.
Results with_gradients(Build& b) {
  std::string how(b.string("reduction"));
  b.require(how == "mean" || how == "sum", "reduction: expected mean or sum, got ", quoted(how));
  Tensor x = b["input"], w = b["linear_weight"];
  Tensor given = weighed_targets(b), mass = sum(given, Sizes{1}, true);
  Tensor slope = softmax(scores(b), 1) * mass - given;
  if (how == "mean" && is_floating(b["target"].dtype())) slope = div(slope, x.size(0));
  else if (how == "mean") slope = slope / sum_all(mass);
  Tensor none = full(Sizes{0, 0}, 0, kw("dtype", x.dtype())), nothing = full(Sizes{0}, 0, kw("dtype", x.dtype()));
  return {{CallArg(loss_of(b, how == "mean" ? 1 : 2)),
           CallArg(b.flag("compute_input_grad") ? Tensor(mm(slope, w)) : none),
           CallArg(b.flag("compute_linear_weight_grad") ? Tensor(mm(transpose(slope, 0, 1), x)) : none),
           CallArg(b.flag("compute_linear_bias_grad") ? Tensor(sum(slope, Sizes{0})) : nothing)}};
}

}  // namespace

void register_loss_nll(Registry& ops) {
  add_nll_loss<false, nll_loss, nll_loss_forward, nll_loss_backward>(
      ops,
      {.loss = "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
               "ignore_index=-100) -> Tensor",
       .forward = "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) "
                  "-> (Tensor output, Tensor total_weight)",
       .backward = "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
                   "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor"});
  add_nll_loss<true, nll_loss2d, nll_loss2d_forward, nll_loss2d_backward>(
      ops, {.loss = "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                    "ignore_index=-100) -> Tensor",
            .forward = "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt "
                       "ignore_index) -> (Tensor output, Tensor total_weight)",
            .backward = "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int "
                        "reduction, SymInt ignore_index, Tensor total_weight) -> Tensor"});
  ops.add(nll_loss_nd,
          {
              .schema = "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                        "ignore_index=-100) -> Tensor",
              .kind = OpKind::composite,
              .traits = {.misdescribed = true},  // without a reduction, of any number of samples, in the aten dialect
              .decompose = [](Build& b) { return one(nll_of_any_rank(b, b["self"])); },
          });
  ops.add(cross_entropy_loss,
          {
              .schema = "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                        "ignore_index=-100, float label_smoothing=0.) -> Tensor",
              .kind = OpKind::composite,
              .traits = {.misdescribed = true},
              .decompose = cross_entropy,
          });
  ops.add({
      .schema = "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"], t = b["target"];
            // Named, in the order of PyTorch's graphs: C++ leaves open which operand is computed first.
            if (b.flag("log_target")) {
              Tensor difference = t - x;
              return one(reduce_loss(exp(t) * difference, b));
            }
            Tensor cross = t * x;
            return one(reduce_loss(xlogy(t, t) - cross, b));
          },
  });
  ops.add({
      .schema = "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> "
                "Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["input"], t = b["target"];
            Tensor part = b.flag("log_input") ? t * x : t * log(x + b.number("eps"));
            Tensor loss = b.flag("log_input") ? exp(x) - part : x - part;
            if (b.flag("full")) {  // Stirling's formula for log(t!)
              Tensor half = log(t * (2 * std::numbers::pi)) * 0.5;
              Tensor stirling = t * log(t) - t + half;
              loss = loss + where(le(t, 1.0), 0.0, stirling);
            }
            return one(reduce_loss(loss, b));
          },
  });
  ops.add({
      .schema =
          "torch_nn::_linear_cross_entropy_batch_chunked(Tensor input, Tensor linear_weight, Tensor target, Tensor? "
          "linear_bias, Tensor? weight, str reduction, SymInt ignore_index, float label_smoothing, SymInt "
          "batch_chunk_size, str acc_policy, ScalarType acc_dtype, bool allow_retain_graph, bool "
          "compute_input_grad, bool compute_linear_weight_grad, bool compute_linear_bias_grad) -> (Tensor, Tensor, "
          "Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = with_gradients,
  });
  ops.add({
      .schema = "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction(Tensor input, Tensor linear_weight, Tensor "
                "target, Tensor? linear_bias, Tensor? weight, SymInt ignore_index, SymInt batch_chunk_size, str "
                "acc_policy, ScalarType acc_dtype) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(loss_of(b, 0)); },
  });
}

}  // namespace tenon
