// The rows of an embedding table that a call uses, with their norms bounded.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/weight_norm.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

void register_embedding_renorm(Registry& ops) {
  ops.add({
      .schema = "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"];
            b.require(x.rank() == 2 && is_floating(x.dtype()), "expected a floating point table of 2 dimensions, got ",
                      x.meta());
            b.require(b["indices"].dtype() == DType::i64 || b["indices"].dtype() == DType::i32,
                      "indices: expected i64 or i32 indices, got ", b["indices"].meta());
            Sizes rows = {x.size(0), SymInt(1)};
            Tensor used = index_fill(full(rows, false, kw("dtype", DType::boolean)), 0, flatten(b["indices"]), true);
            return one(where(used, renormalized(x, b.number("norm_type"), 0, b.arg("max_norm")), x));
          },
  });
}

}  // namespace tenon
