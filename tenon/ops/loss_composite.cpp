// Losses that are formulas in other operators.
#include <cmath>
#include <numbers>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/ops/index.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/softmax.h"
#include "tenon/ops/statistics.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle nll_loss_nd, cross_entropy_loss;
static Handle nll_loss, nll_loss2d, pairwise_distance;

namespace {

Tensor at_least_zero(const Tensor& x) { return clamp_min(x, 0); }

// Any rank as one of those that nll_loss and nll_loss2d take.
Tensor class_loss(const ArgsView& call, const Tensor& x, const Tensor& target, const CallArg& weight,
                  const CallArg& reduction, const CallArg& ignored) {
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
  SymInt classes = b[0].sizes()[dim];
  Tensor target = b[1];
  double smoothing = b.number(5);
  b.require(is_floating(target.dtype()), "target: expected probabilities as floating point numbers, got ",
            target.meta());
  if (smoothing > 0) {
    b.require(classes.is_int(), "label_smoothing needs a known number of classes, it is ", classes);
    target = target * (1 - smoothing) + smoothing / static_cast<double>(classes.as_int());
  }
  Tensor loss = logs * target;
  if (b.given(2)) loss = loss * along_classes(b[2], b[0].rank(), dim);
  switch (b.constant(3)) {
    case 0: return -Tensor(sum(loss, static_cast<int64_t>(dim)));
    case 1: {
      SymInt samples = 1;
      for (size_t i = 0; i < b[0].rank(); ++i)
        if (i != dim) samples = samples * b[0].sizes()[i];
      return div(-Tensor(sum_all(loss)), samples);
    }
    default: return -Tensor(sum_all(loss));
  }
}

// Part of each label is spread over all classes.
Tensor smoothed(Build& b, const Tensor& logs, size_t dim) {
  SymInt classes = b[0].sizes()[dim];
  double smoothing = b.number(5);
  b.require(smoothing <= 1 && classes.is_int(),
            "label_smoothing: expected a number from 0 to 1 and a known number of classes, got ", smoothing, " and ",
            classes);
  Tensor target = b[1];
  Tensor sharp = class_loss(b, logs, target, b.arg(2), b.arg(3), b.arg(4));
  Tensor all = b.given(2) ? logs * along_classes(b[2], b[0].rank(), dim) : logs;
  Tensor ignored = eq(target, b.arg(4));
  Tensor even = where(ignored, 0.0, -Tensor(sum(all, static_cast<int64_t>(dim))));
  Tensor spread = even;
  if (b.constant(3) == 2) spread = sum_all(even);
  if (b.constant(3) == 1) {
    Tensor counted = logical_not(ignored);
    if (b.given(2)) {
      Tensor flat = reshape(where(ignored, 0, target), Sizes{target.numel()});
      Tensor weights = index_select(b[2], 0, flat);
      counted = where(reshape(ignored, Sizes{target.numel()}), 0.0, weights);
    }
    spread = Tensor(sum_all(even)) / Tensor(sum_all(counted));
  }
  return sharp * (1 - smoothing) + spread * (smoothing / static_cast<double>(classes.as_int()));
}

Results cross_entropy(Build& b) {
  Tensor x = b[0], target = b[1];
  b.require(x.rank() >= 1, "expected an input of at least one dimension, got ", x.meta());
  b.require(b.number(5) >= 0 && b.number(5) <= 1, "label_smoothing: expected a number from 0 to 1, got ", b.number(5));
  size_t dim = x.rank() == 1 ? 0 : 1;
  Tensor logs = log_softmax(x, dim);
  if (target.rank() == x.rank() && is_floating(target.dtype())) return one(from_probabilities(b, logs, dim));
  if (b.number(5) > 0) return one(smoothed(b, logs, dim));
  return one(class_loss(b, logs, target, b.arg(2), b.arg(3), b.arg(4)));
}

Tensor sum_last(const Tensor& x, int64_t dim) { return sum(x, dim); }

}  // namespace

void register_loss_composite(Registry& ops) {
  ops.add(nll_loss, {
      .schema = "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                "ignore_index=-100) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(nll_loss_forward(b["self"], b["target"], b.arg("weight"), b.arg("reduction"), b.arg("ignore_index"))[0]); },
  });
  ops.add(
      nll_loss2d,
      {
          .schema = "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                    "ignore_index=-100) -> Tensor",
          .kind = OpKind::composite,
          .decompose = [](Build& b) { return one(nll_loss2d_forward(b["self"], b["target"], b.arg("weight"), b.arg("reduction"), b.arg("ignore_index"))[0]); },
      });
  ops.add(nll_loss_nd, {
      .schema = "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt "
                "ignore_index=-100) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(class_loss(b, b["self"], b["target"], b.arg("weight"), b.arg("reduction"), b.arg("ignore_index"))); },
  });
  ops.add(cross_entropy_loss, {
      .schema = "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int "
                "reduction=1, SymInt ignore_index=-100, float "
                "label_smoothing=0.) -> Tensor",
      .kind = OpKind::composite,
      .decompose = cross_entropy,
  });
  ops.add({
      .schema = "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(reduce_loss(abs(b["self"] - b["target"]), b.constant("reduction"), b)); },
  });
  ops.add({
      .schema = "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            if (b.flag("log_target")) return one(reduce_loss(Tensor(exp(b["target"])) * (b["target"] - b["self"]), b.constant("reduction"), b));
            Tensor entropy = xlogy(b["target"], b["target"]);
            return one(reduce_loss(entropy - b["target"] * b["self"], b.constant("reduction"), b));
          },
  });
  ops.add({
      .schema = "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> "
                "Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["input"], t = b["target"];
            Tensor loss = b.flag("log_input") ? Tensor(exp(x)) - t * x : x - t * Tensor(log(x + b.number("eps")));
            if (b.flag("full")) {  // Stirling's formula for log(t!)
              Tensor stirling = t * Tensor(log(t)) - t + Tensor(log(t * (2 * std::numbers::pi))) * 0.5;
              loss = loss + Tensor(where(le(t, 1.0), 0.0, stirling));
            }
            return one(reduce_loss(loss, b.constant("reduction"), b));
          },
  });
  ops.add({
      .schema = "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"], t = b["target"];
            Tensor margin = where(ne(t, 1), at_least_zero(b.number("margin") - x), 0.0), own = where(ne(t, -1), x, 0.0);
            return one(reduce_loss(margin + own, b.constant("reduction"), b));
          },
  });
  ops.add({
      .schema = "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
                "Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return one(reduce_loss(at_least_zero(-b["target"] * (b["input1"] - b["input2"]) + b.number("margin")), b.constant("reduction"), b));
          },
  });
  ops.add({
      .schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            DType dtype = promote(b["x1"].dtype(), b["x2"].dtype());
            Tensor x = to(b["x1"], dtype), y = to(b["x2"], dtype);
            if (x.rank() != y.rank() || x.sizes() != y.sizes()) {  // the dim counts from the broadcast tensors
              Sizes sizes = broadcast(x.sizes(), y.sizes(), b);
              x = expand(x, sizes);
              y = expand(y, sizes);
            }
            auto direction = [&](const Tensor& t) -> Tensor {
              return t / Tensor(clamp_min(linalg_vector_norm(t, 2, b.arg("dim"), true), b.number("eps")));
            };
            return one(sum(direction(x) * direction(y), b.arg("dim")));
          },
  });
  ops.add({
      .schema = "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) "
                "-> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["input1"], y = b["input2"], t = b["target"];
            int64_t dim = t.rank() == 0 ? 0 : 1;
            constexpr double eps = 1e-12;
            Tensor sizes = sqrt((sum_last(x * x, dim) + eps) * (sum_last(y * y, dim) + eps));
            Tensor cosine = sum_last(x * y, dim) / sizes;
            Tensor loss = Tensor(where(eq(t, 1), 1.0 - cosine, 0.0)) +
                          Tensor(where(eq(t, -1), at_least_zero(cosine - b.number("margin")), 0.0));
            return one(reduce_loss(loss, b.constant("reduction"), b));
          },
  });
  ops.add(pairwise_distance, {
      .schema = "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
                "keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) { return linalg_vector_norm(b["x1"] - b["x2"] + b.number("eps"), b.number("p"), -1, b.arg("keepdim")); },
  });
  ops.add({
      .schema =
          "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
          "eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            auto distance = [&](const Tensor& x, const Tensor& y) -> Tensor {
              return pairwise_distance(x, y, b.arg("p"), b.arg("eps"));
            };
            Tensor near = distance(b["anchor"], b["positive"]), far = distance(b["anchor"], b["negative"]);
            if (b.flag("swap")) far = minimum(far, distance(b["positive"], b["negative"]));
            return one(reduce_loss(at_least_zero(near - far + b.number("margin")), b.constant("reduction"), b));
          },
  });
}

}  // namespace tenon
