#include "tenon/ops/distance_functions.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/statistics.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle pairwise_distance;

void register_distance_functions(Registry& ops) {
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
              return t / clamp_min(linalg_vector_norm(t, 2, b.arg("dim"), true), b.number("eps"));
            };
            return one(sum(direction(x) * direction(y), b.arg("dim")));
          },
  });
  ops.add(pairwise_distance,
          {
              .schema = "pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool "
                        "keepdim=False) -> Tensor",
              .kind = OpKind::composite,
              .decompose =
                  [](Build& b) {
                    return linalg_vector_norm(b["x1"] - b["x2"] + b.number("eps"), b.number("p"), -1, b.arg("keepdim"));
                  },
          });
}

}  // namespace tenon
