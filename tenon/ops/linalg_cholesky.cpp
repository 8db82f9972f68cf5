// Cholesky factors of symmetric positive definite matrices, and solving with them.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/triangular.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle cholesky_ex, cholesky_solve;

namespace {

constexpr const char* not_positive = "matrix {} is not positive definite: its leading minor of order {}";

// Φ halves the diagonal of a lower triangle: gA = L⁻ᵀ Φ(Lᵀ gL) L⁻¹, made symmetric.
Tensor cholesky_gradient(const Tensor& grad, const Tensor& factor, bool upper) {
  Tensor l = upper ? transposed(factor) : factor, g = upper ? transposed(grad) : grad;
  Tensor phi = tril(matmul(transposed(l), g));
  phi = phi - diag_embed(diagonal(phi, 0, -2, -1) * 0.5);
  Tensor left = linalg_solve_triangular(transposed(l), phi, kw("upper", true));
  Tensor a = linalg_solve_triangular(l, left, kw("upper", false), kw("left", false));
  return (a + transposed(a)) * 0.5;
}

// With both factors of A = L Lᵀ, or Uᵀ U.
Results solved_by_cholesky(const ArgsView& b, const Tensor& right, const Tensor& factor, bool upper) {
  b.supports(!is_complex(factor.dtype()), "of complex matrices this is not supported yet, got ", factor.meta());
  b.require(factor.rank() >= 2 && right.rank() >= 2 && !differ(factor.size(-1), right.size(-2)),
            "expected matrices that fit, got ", right.meta(), " and ", factor.meta());
  Tensor l = upper ? transposed(factor) : factor, u = upper ? factor : transposed(factor);
  Tensor half = linalg_solve_triangular(l, right, kw("upper", false));
  return linalg_solve_triangular(u, half, kw("upper", true));
}

Tensor factor_gradient(const Tensor& of_product, const Tensor& factor, bool upper) {
  return neg(upper ? matmul(factor, of_product) : matmul(of_product, factor));
}

}  // namespace

void register_linalg_cholesky(Registry& ops) {
  ops.add(cholesky_ex,
          {
              .schema = "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, "
                        "Tensor info)",
              .meta = [](MetaCall& m) -> Metas {
                require_matrix(m, "self", true);
                return {matrix_meta(m.meta("self"), m.meta("self").sizes),
                        like(m.meta("self"), batch_of(m.meta("self").sizes), DType::i32)};
              },
              .vjp = {{"self", [](Vjp& v) { return cholesky_gradient(v.grad(), v.out(), v.flag("upper")); }}},
              .host = {"linalg_cholesky", {not_positive}},
          });
  ops.add({
      .schema = "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return one(cholesky_ex(b["self"], kw("upper", b.arg("upper")), kw("check_errors", true))[0]);
          },
  });
  ops.add(cholesky_solve,
          {
              .schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
              .kind = OpKind::composite,
              .decompose = [](Build& b) { return solved_by_cholesky(b, b["self"], b["input2"], b.flag("upper")); },
              .vjp = {{"self, input2",
                       [](Vjp& v) -> Grads {  // of the factor: not only of its triangle, as in PyTorch
                         Tensor b = cholesky_solve(v.grad(), v["input2"], v.arg("upper")),
                                both = matmul(b, transposed(v.out()));
                         return {b, factor_gradient(both + transposed(both), v["input2"], v.flag("upper"))};
                       }}},
          });
  ops.add({
      .schema = "_cholesky_solve_helper(Tensor self, Tensor A, bool upper) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return solved_by_cholesky(b, b["self"], b["A"], b.flag("upper")); },
  });
  ops.add({
      .schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            require_matrix(b, "self", true);
            return solved_by_cholesky(b, unit_matrix(b["self"], b["self"].size(-1), b["self"].size(-1)), b["self"],
                                      b.flag("upper"));
          },
      .vjp = {{"self",
               [](Vjp& v) {
                 Tensor g = v.grad(), x = v.out();
                 return factor_gradient(matmul(x, matmul(g + transposed(g), x)), v["self"], v.flag("upper"));
               }}},
  });
}

}  // namespace tenon
