// Numbers that tell about a matrix: determinant, rank, condition number, trace.
#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/powers.h"
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

double sign_of(LuFactors& f, int64_t b) {
  double s = 1;
  int64_t n = f.lu.rows;
  for (int64_t i = 0; i < n; ++i) {
    double d = f.lu[b][i * n + i];
    if (f.pivots[static_cast<size_t>(b * n + i)] != i + 1) s = -s;
    s *= d > 0 ? 1 : d < 0 ? -1 : d;  // NaN stays
  }
  return s;
}

Metas determinant_meta(MetaCall& m, bool log) {
  require_matrix(m, "A", true);
  const TensorMeta& a = m.meta("A");
  TensorMeta one = like(a, batch_of(a.sizes)), lu = matrix_meta(a, a.sizes),
             pivots = like(a, batch_of(a.sizes, 1), DType::i32);
  if (log) return {one, one, lu, pivots};
  return {one, lu, pivots};
}

CallResults find_determinant(ArgsView& call, bool log) {
  std::vector<TensorMeta> metas = own_metas(call);
  LuFactors f(factors_transpose(call.meta("A")) ? transposed(call["A"]) : call["A"]);
  std::vector<double> first, second;
  for (int64_t b = 0; b < f.lu.batch; ++b) {
    double product = sign_of(f, b), logs = 0;
    if (log) first.push_back(product);
    for (int64_t i = 0; i < f.lu.rows; ++i) {
      double d = std::fabs(f.lu[b][i * f.lu.rows + i]);
      logs += std::log(d);
      product *= d;
    }
    (log ? second : first).push_back(log ? logs : product);
  }
  CallResults out = {CallArg(made(metas[0], first))};
  if (log) out.emplace_back(made(metas[1], second));
  out.emplace_back(f.lu.tensor(metas[metas.size() - 2]));
  out.emplace_back(made(metas.back(), f.pivots));
  return out;
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
          .meta = [](MetaCall& m) { return determinant_meta(m, false); },
          .vjp = {{"A", [](Vjp& v) { return scaled_inverse(v["A"], v.out(1), v.out(2), v.grad() * v.out(), true); }}},
          .kernel = [](ArgsView& call) { return find_determinant(call, false); },
      });
  ops.add(sign_and_log,
          {
              .schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
              .meta = [](MetaCall& m) { return determinant_meta(m, true); },
              .vjp = {{"A",
                       [](Vjp& v) {
                         return v.grad(1) ? scaled_inverse(v["A"], v.out(2), v.out(3), v.grad(1), false) : none;
                       }}},
              .kernel = [](ArgsView& call) { return find_determinant(call, true); },
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
