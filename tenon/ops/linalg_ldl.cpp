// Symmetric matrices as L D Lᵀ, and solving with them.
#include "tenon/ops/linalg.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle linalg_ldl_factor_ex, linalg_ldl_solve;

namespace {

Metas factored_meta(MetaCall& m) {
  require_matrix(m, "self", true);
  const TensorMeta& a = m.meta("self");
  return {matrix_meta(a, a.sizes), like(a, batch_of(a.sizes, 1), DType::i32), like(a, batch_of(a.sizes), DType::i32)};
}

Metas solved_meta(MetaCall& m) {
  require_matrix(m, "LD", true);
  require_matrix(m, "B");
  const TensorMeta &ld = m.meta("LD"), &pivots = m.meta("pivots"), &b = m.meta("B");
  m.require(is_integral(pivots.dtype) && pivots.sizes == batch_of(ld.sizes, 1), "pivots: expected ",
            make_meta(DType::i32, batch_of(ld.sizes, 1)), ", got ", pivots);
  m.require(ld.dtype == b.dtype && !differ(columns_of(ld), rows_of(b)), "B ", b, " does not fit LD ", ld);
  Sizes batch = broadcast(batch_of(ld.sizes), batch_of(b.sizes), m);
  return matrix_meta(b, joined(batch, {rows_of(b), columns_of(b)}));
}

}  // namespace

void register_linalg_ldl(Registry& ops) {
  ops.add(
      linalg_ldl_factor_ex,
      {
          .schema = "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) -> (Tensor "
                    "LD, Tensor pivots, Tensor info)",
          .meta = factored_meta,
          .host = {"linalg_ldl_factor", {"matrix {} is singular: the block of D at row {} is zero"}},
      });
  ops.add({
      .schema = "linalg_ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor pivots)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results all = linalg_ldl_factor_ex(b["self"], kw("hermitian", b.arg("hermitian")), kw("check_errors", true));
        return {{CallArg(all[0]), CallArg(all[1])}};
      },
  });
  ops.add(linalg_ldl_solve,
          {
              .schema = "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
              .meta = solved_meta,
              .vjp = {{"B",
                       [](Vjp& v) {  // the matrix is symmetric
                         return linalg_ldl_solve(v["LD"], v["pivots"], v.grad(), kw("hermitian", v.arg("hermitian")));
                       }}},
              .host = {"linalg_ldl_solve",
                       {"pivots: expected numbers from 1 to {}, or pairs of negative ones, as linalg_ldl_factor gives "
                        "them"}},
          });
}

}  // namespace tenon
