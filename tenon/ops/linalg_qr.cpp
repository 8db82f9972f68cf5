// QR, and products of the Householder reflectors it is made of.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_complex.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/triangular.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle linalg_qr, householder_product;

namespace {

enum class QrMode { reduced, complete, r };
QrMode qr_mode(const ArgsView& m) {
  const std::string& mode = m.string("mode");
  m.require(mode == "reduced" || mode == "complete" || mode == "r", "mode: expected reduced, complete or r, got ",
            quoted(mode));
  return mode == "reduced" ? QrMode::reduced : mode == "complete" ? QrMode::complete : QrMode::r;
}

Metas qr_meta(MetaCall& m) {
  require_matrix(m, "A");
  const TensorMeta& a = m.meta("A");
  Sizes batch = batch_of(a.sizes);
  QrMode mode = qr_mode(m);
  SymInt rows = rows_of(a), columns = columns_of(a), k = mode == QrMode::complete ? rows : smaller(rows, columns);
  return {mode == QrMode::r ? like(a, {0}) : matrix_meta(a, joined(batch, {rows, k})),
          matrix_meta(a, joined(batch, {k, columns}))};
}

// gA = (gQ + Q sym(triu(gR Rᵀ - Qᵀ gQ))) R⁻ᵀ; columns beyond the square are Q times those of R.
Grads qr_gradient(Vjp& v) {
  QrMode mode = qr_mode(v);
  SymInt m = v["A"].size(-2), n = v["A"].size(-1);
  v.require(mode != QrMode::r, "mode r has no gradient: Q is needed for it; use reduced");
  v.require(mode != QrMode::complete || !statically_true(sym::gt(m, n)),
            "mode complete has no gradient where there are more rows than columns");
  Tensor q = v.out(), r = v.out(1), of_q = v.grad(), of_r = v.grad(1);
  if (!of_q && !of_r) return {};
  if (!of_q) of_q = zeros_like(q);
  if (!of_r) of_r = zeros_like(r);
  Tensor behind;
  if (!statically_true(sym::ge(m, n))) {  // what lies behind the square has no elements where it is tall after all
    SymInt k = q.size(-1);
    Tensor more = narrow(r, -1, k, n - k), of_more = narrow(of_r, -1, k, n - k);
    behind = matmul(q, of_more);
    of_q = of_q + matmul(matmul(q, more), transposed(of_more));
    r = narrow(r, -1, 0, k);
    of_r = narrow(of_r, -1, 0, k);
  }
  Tensor inner = triu(matmul(of_r, transposed(r)) - matmul(transposed(q), of_q));
  inner = inner + transposed(inner) - diag_embed(diagonal(inner, 0, -2, -1));
  Tensor a = linalg_solve_triangular(transposed(r), of_q + matmul(q, inner), kw("upper", false), kw("left", false));
  return {behind ? cat(std::vector<Tensor>{a, behind}, -1) : a};
}

// Reflectors and their scales.
void require_reflectors(const ArgsView& m, Slot matrix, Slot scales) {
  require_matrix(m, matrix);
  const TensorMeta &a = m.meta(matrix), &tau = m.meta(scales);
  m.require(tau.dtype == a.dtype && tau.rank() + 1 == a.rank() && batch_of(tau.sizes, 1) == batch_of(a.sizes) &&
                !statically_true(sym::gt(tau.sizes.back(), columns_of(a))) &&
                !statically_true(sym::gt(tau.sizes.back(), rows_of(a))),
            "tau: expected a number for each reflector of ", a, ", got ", tau);
}

Metas product_meta(MetaCall& m) {
  require_reflectors(m, "input", "tau");
  const TensorMeta& a = m.meta("input");
  m.require(!statically_true(sym::gt(columns_of(a), rows_of(a))), "expected at least as many rows as columns, got ", a);
  return matrix_meta(a, a.sizes);
}

// The same step by step: c = (I - tau v vᵀ) c for each reflector, the last one first (or the first one, for the
// transpose).
Tensor step_by_step(const ArgsView& b, const Tensor& a, const Tensor& tau, Tensor c, bool transpose) {
  SymInt count = tau.size(-1);
  b.require(count.is_int(), "expected a constant number of reflectors, got ", tau.meta());
  Tensor v = tril(a, -1) + unit_matrix(a, a.size(-2), a.size(-1));
  for (int64_t step = 0; step < count.as_int(); ++step) {
    int64_t j = transpose ? step : count.as_int() - 1 - step;
    Tensor column = narrow(v, -1, j, 1), scale = unsqueeze(narrow(tau, -1, j, 1), -1);
    c = c - matmul(column * scale, matmul(transposed(column), c));
  }
  return c;
}

Results stepwise_product(Build& b) {
  require_reflectors(b, "input", "tau");
  Tensor a = b["input"];
  return one(column_major_copy(
      step_by_step(b, a, b["tau"], expand(unit_matrix(a, a.size(-2), a.size(-1)), a.sizes()), false)));
}

Metas applied_meta(MetaCall& m) {
  require_reflectors(m, "self", "input2");
  const TensorMeta &a = m.meta("self"), &c = m.meta("input3");
  m.require(c.dtype == a.dtype && c.rank() == a.rank() && batch_of(c.sizes) == batch_of(a.sizes) &&
                !differ(rows_of(a), m.flag("left") ? rows_of(c) : columns_of(c)),
            "the matrices ", c, " do not fit the reflectors ", a);
  return matrix_meta(c, c.sizes);
}

}  // namespace

void register_linalg_qr(Registry& ops) {
  ops.add(linalg_qr, {
                         .schema = "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
                         .meta = qr_meta,
                         .vjp = {{"A", qr_gradient}},
                         .host = {"linalg_qr"},
                         .complex = [](Build& b) -> Results {
                           require_matrix(b, "A", false, Parts::real_or_complex);
                           QrMode mode = qr_mode(b);
                           Tensor a = b["A"];
                           b.supports(mode != QrMode::complete || statically_true(sym::le(a.size(-2), a.size(-1))),
                                      "mode complete of complex matrices with more rows than columns is not supported");
                           Results all = linalg_qr(embedded(a), mode == QrMode::complete ? "reduced" : b.arg("mode"));
                           Tensor q = mode == QrMode::r ? Tensor(zeros(Sizes{0}, a)) : extracted(all[0]);
                           return {{CallArg(q), CallArg(extracted_from_rows(all[1]))}};
                         },
                     });
  ops.add({
      .schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
      .meta = [](MetaCall& m) -> Metas {
        require_matrix(m, "self");
        const TensorMeta& a = m.meta("self");
        return {matrix_meta(a, a.sizes), like(a, joined(batch_of(a.sizes), {smaller(rows_of(a), columns_of(a))}))};
      },
      .host = {"linalg_geqrf"},
  });
  ops.add(householder_product, {
                                   .schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
                                   .meta = product_meta,
                                   .for_grad = stepwise_product,
                                   .host = {"linalg_householder_product"},
                               });
  ops.add({
      .schema = "orgqr(Tensor self, Tensor input2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return householder_product(b["self"], b["input2"]); },
  });
  ops.add({
      .schema = "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor",
      .meta = applied_meta,
      .for_grad = [](Build& b) -> Results {
        require_reflectors(b, "self", "input2");
        bool left = b.flag("left"), back = b.flag("transpose") != !left;
        Tensor out = step_by_step(b, b["self"], b["input2"], left ? b["input3"] : transposed(b["input3"]), back);
        return one(column_major_copy(left ? out : transposed(out)));
      },
      .host = {"linalg_ormqr"},
  });
}

}  // namespace tenon
