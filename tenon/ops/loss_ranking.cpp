// Losses that compare pairs and triplets of samples by a margin.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/distance_functions.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Tensor at_least_zero(const Tensor& x) { return clamp_min(x, 0); }

void register_loss_ranking(Registry& ops) {
  ops.add({
      .schema = "hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"], t = b["target"];
            Tensor missing = at_least_zero(b.number("margin") - x);
            Tensor margin = where(ne(t, 1), missing, 0.0), own = where(ne(t, -1), x, 0.0);
            return one(reduce_loss(margin + own, b));
          },
  });
  ops.add({
      .schema = "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
                "Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor difference = b["input1"] - b["input2"];
            Tensor behind = -b["target"] * difference + b.number("margin");
            return one(reduce_loss(at_least_zero(behind), b));
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
            Tensor of_y = sum(y * y, dim) + eps, of_x = sum(x * x, dim) + eps;
            Tensor sizes = sqrt(of_x * of_y);
            Tensor cosine = sum(x * y, dim) / sizes;
            Tensor near = at_least_zero(cosine - b.number("margin"));
            Tensor apart = where(eq(t, -1), near, 0.0);
            Tensor far = 1.0 - cosine;
            Tensor together = where(eq(t, 1), far, 0.0);
            return one(reduce_loss(together + apart, b));
          },
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
            return one(reduce_loss(at_least_zero(near - far + b.number("margin")), b));
          },
  });
}

}  // namespace tenon
