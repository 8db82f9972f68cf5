#include "tenon/ops/weight_norm.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/statistics.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

// The norm over every dim but one, or over all for dim -1.
static Tensor norm_except(const Tensor& v, double p, int64_t dim) {
  if (dim == -1) return linalg_vector_norm(v, p);
  Sizes others;
  for (size_t i = 0; i < v.rank(); ++i)
    if (i != normal_dim(dim, v.rank())) others.push_back(SymInt(static_cast<int64_t>(i)));
  if (others.empty()) return abs(v);
  return linalg_vector_norm(v, p, others, true);
}

Tensor renormalized(const Tensor& x, double p, int64_t dim, const CallArg& max_norm) {
  Tensor wide = is_complex(x.dtype()) ? x : Tensor(to(x, computable(x.dtype()))), norms = norm_except(wide, p, dim);
  Tensor factor = where(gt(norms, max_norm), mul(reciprocal(norms + 1e-7), max_norm), 1.0);
  return x * to(factor, real_of(x.dtype()));
}

void register_weight_norm(Registry& ops) {
  ops.add({
      .schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"];
            b.require(x.rank() > 1, "expected at least 2 dimensions, got ", x.meta());
            return one(renormalized(x, b.number("p"), static_cast<int64_t>(b.dim("dim", x.rank())), b.arg("maxnorm")));
          },
  });
  ops.add({
      .schema = "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(norm_except(b["v"], b.number("pow"), b.constant("dim"))); },
  });
  ops.add({
      .schema = "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(b["v"] * (b["g"] / norm_except(b["v"], 2, b.constant("dim")))); },
  });
  ops.add({
      .schema = "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor norms = norm_except(b["v"], 2, b.constant("dim"));
        return {{CallArg(b["v"] * (b["g"] / norms)), CallArg(norms)}};
      },
  });
}

}  // namespace tenon
