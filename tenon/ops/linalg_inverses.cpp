// Inverses and pseudo-inverses.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_complex.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle linalg_inv_ex, linalg_pinv;
static Handle pinv_rcond;

namespace {

Results checked_inverse(const Tensor& a) { return one(linalg_inv_ex(a, kw("check_errors", true))[0]); }

Results pseudo_inverse(Build& b, const Tolerance& tolerance, bool hermitian) {
  require_matrix(b, "self", hermitian);
  Tensor a = b["self"];
  if (has_no_elements(a)) return one(zeros(joined(batch_of(a.sizes()), {a.size(-1), a.size(-2)}), a));
  if (hermitian) {
    Results all = linalg_eigh(a);
    Tensor values = all[0], size = abs(values);
    Tensor kept = gt(size, tolerance.bound(a, amax(size, Sizes{-1}, true)));
    Tensor back = where(kept, reciprocal(values), 0.0);
    return matmul(all[1] * unsqueeze(back, -2), transposed(all[1]));
  }
  Results all = linalg_svd(a);
  Tensor values = all[1], kept = gt(values, tolerance.bound(a, narrow(values, -1, 0, 1)));
  Tensor back = where(kept, reciprocal(values), 0.0);
  return matmul(transposed(all[2]) * unsqueeze(back, -2), transposed(all[0]));
}

Results tensor_inverse(Build& b) {
  Tensor a = b["self"];
  int64_t split = b.constant("ind");
  b.require(split > 0 && split <= static_cast<int64_t>(a.rank()),
            "ind: expected a number from 1 to the count of dimensions of ", a.meta(), ", got ", split);
  auto k = static_cast<size_t>(split);
  Sizes front = batch_of(a.sizes(), a.rank() - k), behind(std::span<const SymInt>(a.sizes().begin() + k, a.rank() - k));
  b.require(!differ(count(front), count(behind)), "the first ", split, " dimensions of ", a.meta(), " have ",
            count(front), " elements, the others ", count(behind));
  Tensor inverse = linalg_inv_ex(reshape(a, Sizes{count(front), count(behind)}), kw("check_errors", true))[0];
  for (SymInt s : front) behind.push_back(s);
  return reshape(inverse, behind);
}

}  // namespace

void register_linalg_inverses(Registry& ops) {
  ops.add(linalg_inv_ex,
          {
              .schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
              .meta = [](MetaCall& m) -> Metas {
                require_matrix(m, "A", true);
                return {matrix_meta(m.meta("A"), m.meta("A").sizes),
                        like(m.meta("A"), batch_of(m.meta("A").sizes), DType::i32)};
              },
              .vjp = {{"A",
                       [](Vjp& v) {
                         Tensor back = transposed(v.out());
                         return neg(matmul(back, matmul(v.grad(), back)));
                       }}},
              .host = {"linalg_inv", {is_singular}},
              .complex = [](Build& b) -> Results {
                require_matrix(b, "A", true, Parts::real_or_complex);
                Results all = linalg_inv_ex(embedded(b["A"]), kw("check_errors", b.arg("check_errors")));
                return {{CallArg(extracted(all[0])), CallArg(info_of_blocks(all[1]))}};
              },
          });
  ops.add({
      .schema = "linalg_inv(Tensor A) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return checked_inverse(b["A"]); },
  });
  ops.add({
      .schema = "inverse(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return checked_inverse(b["self"]); },
  });
  ops.add(linalg_pinv, {
                           .schema = "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? "
                                     "rtol=None, bool hermitian=False) -> Tensor",
                           .kind = OpKind::composite,
                           .decompose =
                               [](Build& b) {
                                 return pseudo_inverse(b, {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian"));
                               },
                           .vjp = {{"self", [](Vjp& v) { return pinv_gradient(v.grad(), v.out(), v["self"]); }}},
                       });
  ops.overload(linalg_pinv, {"linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
                             "hermitian=False) -> Tensor"});
  ops.add(pinv_rcond, {
                          .schema = "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
                          .kind = OpKind::composite,
                          .decompose =
                              [](Build& b) {
                                return pseudo_inverse(b, {0.0, b.arg("rcond")}, b.flag("hermitian"));
                              },
                          .vjp = {{"self", [](Vjp& v) { return pinv_gradient(v.grad(), v.out(), v["self"]); }}},
                      });
  ops.overload(pinv_rcond, {"linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor"});
  ops.add({
      .schema = "pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return pseudo_inverse(b, {0.0, b.arg("rcond")}, false);
          },
      .vjp = {{"self", [](Vjp& v) { return pinv_gradient(v.grad(), v.out(), v["self"]); }}},
  });
  ops.add({
      .schema = "linalg_tensorinv(Tensor self, int ind=2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = tensor_inverse,
  });
}

}  // namespace tenon
