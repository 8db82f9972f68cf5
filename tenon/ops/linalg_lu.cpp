// LU with pivots: factoring, taking the factors apart, and solving with them.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/padding.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/triangular.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle linalg_lu_factor_ex, linalg_lu_solve, lu_unpack;

namespace {

constexpr const char* wrong_pivot = "pivots: expected numbers from 1 to {}, got {}";

Metas lu_meta(MetaCall& m) {
  require_matrix(m, "A");
  m.require(m.flag("pivot"), "LU without pivoting is not supported on a CPU, in PyTorch neither");
  const TensorMeta& a = m.meta("A");
  Sizes batch = batch_of(a.sizes);
  SymInt k = smaller(rows_of(a), columns_of(a));
  return {matrix_meta(a, a.sizes), like(a, joined(batch, {k}), DType::i32), like(a, batch, DType::i32)};
}

Metas unpacked_meta(const TensorMeta& a, bool data, bool pivots) {
  Sizes batch = batch_of(a.sizes);
  SymInt rows = rows_of(a), columns = columns_of(a), k = smaller(rows, columns);
  TensorMeta nothing = like(a, {0});
  return {pivots ? like(a, joined(batch, {rows, rows})) : nothing, data ? like(a, joined(batch, {rows, k})) : nothing,
          data ? like(a, joined(batch, {k, columns})) : nothing};
}

// The gradient of A = P L U. Where A is not square, the part beyond the square follows from the other factor.
Tensor lu_gradient(const Tensor& p, const Tensor& l, const Tensor& u, Tensor of_l, Tensor of_u) {
  if (!of_l) of_l = zeros_like(l);
  if (!of_u) of_u = zeros_like(u);
  SymInt m = l.size(-2), n = u.size(-1), k = l.size(-1);
  auto top = [&](const Tensor& x) -> Tensor { return narrow(x, -2, 0, k); };
  auto below = [&](const Tensor& x) -> Tensor { return narrow(x, -2, k, m - k); };
  auto front = [&](const Tensor& x) -> Tensor { return narrow(x, -1, 0, k); };
  auto behind = [&](const Tensor& x) -> Tensor { return narrow(x, -1, k, n - k); };
  bool wide = !(n == k), tall = !(m == k);
  Tensor l1 = tall ? top(l) : l, u1 = wide ? front(u) : u;
  Tensor lower = matmul(transposed(l1), tall ? top(of_l) : of_l),
         upper = matmul(wide ? front(of_u) : of_u, transposed(u1));
  if (wide) lower = lower - matmul(behind(of_u), transposed(behind(u)));
  if (tall) upper = upper - matmul(transposed(below(l)), below(of_l));
  Tensor phi = tril(lower, -1) + triu(upper);
  auto through_u = [&](const Tensor& x) {
    return linalg_solve_triangular(transposed(u1), x, kw("upper", false), kw("left", false));
  };
  auto through_l = [&](const Tensor& x) {
    return linalg_solve_triangular(transposed(l1), x, kw("upper", true), kw("unitriangular", true));
  };
  Tensor out = through_l(through_u(phi));
  Tensor bottom;
  if (tall) bottom = through_u(below(of_l));
  // One of the two parts has no elements where sizes tell only when the program runs which one it is.
  if (tall && wide) bottom = constant_pad_nd(bottom, Sizes{0, n - k}, 0.0);
  if (wide) out = cat(std::vector<Tensor>{out, through_l(behind(of_u))}, -1);
  if (tall) out = cat(std::vector<Tensor>{out, bottom}, -2);
  return matmul(p, out);
}

Grads lu_factor_gradient(Vjp& v) {
  if (!v.grad()) return {};
  Results plu = lu_unpack(v.out(), v.out(1));
  SymInt k = plu[1].size(-1);
  return {lu_gradient(plu[0], plu[1], plu[2], narrow(v.grad(), -1, 0, k), narrow(v.grad(), -2, 0, k))};
}

Metas lu_solve_meta(MetaCall& m) {
  require_matrix(m, "LU", true);
  require_matrix(m, "B");
  const TensorMeta &lu = m.meta("LU"), &pivots = m.meta("pivots"), &b = m.meta("B");
  m.require(pivots.dtype == DType::i32 && pivots.sizes == batch_of(lu.sizes, 1), "pivots: expected ",
            make_meta(DType::i32, batch_of(lu.sizes, 1)), ", got ", pivots);
  bool left = m.flag("left");
  m.require(lu.dtype == b.dtype && !differ(columns_of(lu), left ? rows_of(b) : columns_of(b)), "B ", b,
            " does not fit LU ", lu);
  Sizes batch = broadcast(batch_of(lu.sizes), batch_of(b.sizes), m);
  return matrix_meta(b, joined(batch, {rows_of(b), columns_of(b)}), left);
}

Grads lu_solve_gradient(Vjp& v) {
  bool left = v.flag("left"), adjoint = v.flag("adjoint");
  Tensor b = linalg_lu_solve(v["LU"], v["pivots"], v.grad(), kw("left", left), kw("adjoint", !adjoint)), x = v.out();
  Tensor of_a = left      ? adjoint ? matmul(x, transposed(b)) : matmul(b, transposed(x))
                     : adjoint ? matmul(transposed(b), x)
                          : matmul(transposed(x), b);
  Results plu = lu_unpack(v["LU"], v["pivots"]);
  Tensor rows = matmul(transposed(plu[0]), neg(of_a));
  return {tril(matmul(rows, transposed(plu[2])), -1) + triu(matmul(transposed(plu[1]), rows)), b};
}

}  // namespace

void register_linalg_lu(Registry& ops) {
  ops.add(linalg_lu_factor_ex,
          {
              .schema = "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
                        "(Tensor LU, Tensor pivots, Tensor info)",
              .meta = lu_meta,
              .vjp = {{"A", lu_factor_gradient}},
              .host = {"linalg_lu_factor", {is_singular}},
          });
  ops.add({
      .schema = "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results all = linalg_lu_factor_ex(b["A"], kw("pivot", b.arg("pivot")), kw("check_errors", true));
        return {{CallArg(all[0]), CallArg(all[1])}};
      },
  });
  ops.add({
      .schema = "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, "
                "Tensor info)",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return linalg_lu_factor_ex(b["self"], kw("pivot", b.arg("pivot")),
                                       kw("check_errors", b.arg("check_errors")));
          },
  });
  ops.add({
      .schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results factors = linalg_lu_factor_ex(b["A"], kw("pivot", b.arg("pivot")));
        return lu_unpack(factors[0], factors[1]);
      },
      .vjp = {{"A", [](Vjp& v) { return lu_gradient(v.out(), v.out(1), v.out(2), v.grad(1), v.grad(2)); }}},
  });
  ops.add(lu_unpack,
          {
              .schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
                        "-> (Tensor P, Tensor L, Tensor U)",
              .meta =
                  [](MetaCall& m) {
                    require_matrix(m, "LU_data");
                    const TensorMeta& a = m.meta("LU_data");
                    Sizes sizes = joined(batch_of(a.sizes), {smaller(rows_of(a), columns_of(a))});
                    if (m.flag("unpack_pivots")) {
                      m.require(m.meta("LU_pivots").dtype == DType::i32, "LU_pivots: expected ",
                                make_meta(DType::i32, sizes), ", got ", m.meta("LU_pivots"));
                      require_sizes(m, "LU_pivots", sizes);
                    }
                    return unpacked_meta(a, m.flag("unpack_data"), m.flag("unpack_pivots"));
                  },
              .vjp = {{"LU_data",
                       [](Vjp& v) {
                         SymInt m = v["LU_data"].size(-2), n = v["LU_data"].size(-1), k = smaller(m, n);
                         Tensor l, u;
                         if (v.grad(1)) l = tril(v.grad(1), -1);
                         if (v.grad(2)) u = triu(v.grad(2));
                         if (l && !(k == n)) l = constant_pad_nd(l, Sizes{0, n - k}, 0.0);
                         if (u && !(k == m)) u = constant_pad_nd(u, Sizes{0, 0, 0, m - k}, 0.0);
                         return l && u ? l + u : l ? l : u;
                       }}},
              .host = {"linalg_lu_unpack", {wrong_pivot}},
          });
  ops.add(
      linalg_lu_solve,
      {
          .schema =
              "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
          .meta = lu_solve_meta,
          .vjp = {{"LU, B", lu_solve_gradient}},
          .host = {"linalg_lu_solve", {wrong_pivot}},
      });
  ops.add({
      .schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return linalg_lu_solve(b["LU_data"], b["LU_pivots"], b["self"]); },
  });
}

}  // namespace tenon
