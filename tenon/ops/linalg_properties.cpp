// Numbers that tell about a matrix: determinant, rank, condition number, trace.
#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle determinant, sign_and_log, linalg_cond;

namespace {

// Whether PyTorch's LU of det and slogdet is that of the transpose.
bool factors_transpose(const TensorMeta& a) { return is_contiguous(a); }

// Whether rows were exchanged an odd number of times: -1, else 1.
Tensor parity(const Tensor& a, const Tensor& pivots) {
  Tensor own = arange(1, a.size(-1) + 1, 1, kw("dtype", pivots.dtype()), kw("device", a.meta().device));
  Tensor exchanged = remainder(sum(ne(pivots, own), Sizes{-1}), 2);
  return to(rsub(exchanged * 2.0, 1), a.dtype());
}

Results find_determinant(Build& b, bool log) {
  require_matrix(b, "A", true);
  Tensor a = b["A"];
  Results factors = linalg_lu_factor_ex(factors_transpose(a.meta()) ? transposed(a) : a);
  Tensor values = diagonal(factors[0], 0, -2, -1), signs = parity(a, factors[1]);
  if (!log) return {{CallArg(Tensor(prod(values, -1) * signs)), CallArg(factors[0]), CallArg(factors[1])}};
  return {{CallArg(Tensor(prod(sgn(values), -1) * signs)), CallArg(Tensor(sum(tenon::log(abs(values)), Sizes{-1}))),
           CallArg(factors[0]), CallArg(factors[1])}};
}

// A⁻ᵀ d for the number d of each matrix. Where A is singular, a matrix close by stands for it, if asked.
Tensor scaled_inverse(const Tensor& a, Tensor lu, const Tensor& pivots, const Tensor& d, bool close_by) {
  if (close_by) lu = lu + diag_embed(to(eq(diagonal(lu, 0, -2, -1), 0.0), a.dtype()) * epsilon_of(a.dtype()));
  Tensor right = diag_embed(expand(unsqueeze(d, -1), batch_of(a.sizes(), 1)));
  return linalg_lu_solve(lu, pivots, right, kw("adjoint", !factors_transpose(a.meta())));
}

Results sign_and_log_alone(const Tensor& a) {
  Results all = sign_and_log(a);
  return {{CallArg(all[0]), CallArg(all[1])}};
}

Results rank(Build& b, Slot matrix, const Tolerance& tolerance, bool hermitian) {
  require_matrix(b, matrix, hermitian);
  Tensor a = b[matrix];
  if (has_no_elements(a)) return full(batch_of(a.sizes()), 0, kw("dtype", DType::i64), kw("device", a.meta().device));
  Tensor values = hermitian ? abs(linalg_eigh(a, "L", false)[0]) : linalg_svdvals(a);
  return sum(gt(values, tolerance.bound(a, amax(values, Sizes{-1}, true))), Sizes{-1});
}

Results condition(Build& b) {
  require_matrix(b, "self");
  Tensor a = b["self"];
  bool named = b.arg("p").is<std::string>();
  double p = named || !b.given("p") ? 2 : b.number("p");
  if (!named && std::fabs(p) == 2) {
    if (has_no_elements(a)) return one(zeros(batch_of(a.sizes()), a));
    Tensor s = linalg_svdvals(a);
    Tensor first = select(s, -1, 0), last = select(s, -1, -1);
    return p == 2 ? div(first, last) : div(last, first);
  }
  require_matrix(b, "self", true);
  if (has_no_elements(a)) return one(zeros(batch_of(a.sizes()), a));
  Results inverse = linalg_inv_ex(a);
  auto norm = [&](const Tensor& x) -> Tensor {
    return named ? linalg_matrix_norm_str(x, b.arg("p")) : linalg_matrix_norm(x, b.arg("p"));
  };
  return where(gt(inverse[1], 0), std::numeric_limits<double>::infinity(), norm(a) * norm(inverse[0]));
}

}  // namespace

void register_linalg_properties(Registry& ops) {
  ops.add(
      determinant,
      {
          .schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
          .kind = OpKind::composite,
          .decompose = [](Build& b) { return find_determinant(b, false); },
          .vjp = {{"A", [](Vjp& v) { return scaled_inverse(v["A"], v.out(1), v.out(2), v.grad() * v.out(), true); }}},
      });
  ops.add(sign_and_log,
          {
              .schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
              .kind = OpKind::composite,
              .decompose = [](Build& b) { return find_determinant(b, true); },
              .vjp = {{"A",
                       [](Vjp& v) {
                         if (!v.grad(1)) return Tensor(zeros_like(v["A"]));  // of the sign
                         return scaled_inverse(v["A"], v.out(2), v.out(3), v.grad(1), false);
                       }}},
          });
  ops.add({
      .schema = "linalg_det(Tensor A) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(determinant(b["A"])[0]); },
  });
  ops.add({
      .schema = "det(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(determinant(b["self"])[0]); },
  });
  ops.add({
      .schema = "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return sign_and_log_alone(b["A"]); },
  });
  ops.add({
      .schema = "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return sign_and_log_alone(b["self"]); },
  });
  ops.add({
      .schema = "logdet(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results all = sign_and_log(b["self"]);
        return where(lt(all[0], 0.0), std::numeric_limits<double>::quiet_NaN(), all[1]);
      },
  });
  ops.add({
      .schema = "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return rank(b, "self", {b.arg("tol"), 0.0}, b.flag("hermitian"));
          },
  });
  ops.add({
      .schema = "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return rank(b, "input", {b.arg("tol"), 0.0}, b.flag("hermitian"));
          },
  });
  ops.add({
      .schema = "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
                "hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return rank(b, "input", {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian"));
          },
  });
  ops.add({
      .schema = "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
                "hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return rank(b, "self", {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian"));
          },
  });
  ops.add(linalg_cond, {
                           .schema = "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
                           .kind = OpKind::composite,
                           .decompose = condition,
                       });
  ops.overload(linalg_cond, {"linalg_cond.p_str(Tensor self, str p) -> Tensor"});
  ops.add({
      .schema = "trace(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            b.require(b["self"].rank() == 2, "expected a matrix, got ", b["self"].meta());
            return sum_all(diagonal(b["self"]));
          },
  });
}

}  // namespace tenon
