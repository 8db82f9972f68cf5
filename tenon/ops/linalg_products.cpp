// Products of several matrices, of vectors along a dimension, and cross products.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/flip.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/shape.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

Results cross_product(const ArgsView& b, const Tensor& x, const Tensor& y, int64_t dim) {
  b.require(x.rank() == y.rank(), "expected tensors of equally many dimensions, got ", x.meta(), " and ", y.meta());
  int64_t d = wrapped_dim(b, dim, x.rank());
  b.require(x.size(static_cast<int>(d)) == SymInt(3) && y.size(static_cast<int>(d)) == SymInt(3), "expected dimension ",
            dim, " of size 3, got ", x.meta(), " and ", y.meta());
  std::vector<Tensor> both = broadcast_tensors(std::vector<Tensor>{x, y}).list();
  auto rolled = [&](const Tensor& t, int64_t by) { return roll(t, Sizes{by}, Sizes{d}); };
  return one(rolled(both[0], -1) * rolled(both[1], -2) - rolled(both[0], -2) * rolled(both[1], -1));
}

}  // namespace

void register_linalg_products(Registry& ops) {
  ops.add({
      .schema = "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return sum(mul(b["x"], b["y"]), b.ints("dim")); },
  });
  ops.add({
      .schema = "linalg_multi_dot(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            std::vector<Tensor> tensors = b.tensors("tensors");
            b.require(tensors.size() >= 2, "expected at least two tensors, got ", tensors.size());
            Tensor out = tensors[0];
            for (size_t i = 1; i < tensors.size(); ++i) out = matmul(out, tensors[i]);
            return one(out);
          },
  });
  ops.add({
      .schema = "chain_matmul(Tensor[] matrices) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            std::vector<Tensor> matrices = b.tensors("matrices");
            b.require(!matrices.empty(), "expected at least one matrix, got none");
            for (const Tensor& m : matrices) b.require(m.rank() == 2, "expected matrices, got ", m.meta());
            Tensor out = matrices[0];
            for (size_t i = 1; i < matrices.size(); ++i) out = mm(out, matrices[i]);
            return one(out);
          },
  });
  ops.add({
      .schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return cross_product(b, b["self"], b["other"], b.constant("dim")); },
  });
  ops.add({
      .schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            if (b.given("dim")) return cross_product(b, b["self"], b["other"], b.constant("dim"));
            int64_t dim = 0, rank = static_cast<int64_t>(b["self"].rank());
            while (dim < rank && !(b["self"].size(static_cast<int>(dim)) == SymInt(3))) ++dim;
            b.require(dim < rank, "expected a dimension of size 3, got ", b["self"].meta());
            return cross_product(b, b["self"], b["other"], dim);
          },
  });
}

}  // namespace tenon
