// Eigenvalues and singular values with their vectors, and what is made of them: roots and polar factors.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_complex.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle linalg_eigh, linalg_svd, linalg_svdvals;

static Handle linalg_eigvalsh;

namespace {

bool upper_of(const ArgsView& m) {
  const std::string& part = m.string("UPLO");
  m.require(part == "L" || part == "l" || part == "U" || part == "u", "UPLO: expected L or U, got ", quoted(part));
  return part == "U" || part == "u";
}

Metas eigh_meta(MetaCall& m) {
  require_matrix(m, "A", true);
  upper_of(m);
  const TensorMeta& a = m.meta("A");
  return {like(a, batch_of(a.sizes, 1)), m.flag("compute_v") ? matrix_meta(a, a.sizes) : like(a, {0})};
}

// 1 on the diagonal, the differences of a row of numbers elsewhere: x_j - x_i.
Tensor differences(const Tensor& x) {
  SymInt n = x.size(-1);
  return unsqueeze(x, -2) - unsqueeze(x, -1) + unit_matrix(x, n, n);
}

// gA = V (diag(gL) + skew(Vᵀ gV) / E) Vᵀ, E_ij = l_j - l_i
Grads eigh_gradient(Vjp& v) {
  v.require(v.flag("compute_v"), "eigenvalues alone have no gradient: the vectors are needed for it");
  Tensor vectors = v.out(1), back = transposed(vectors), inner;
  if (!v.grad() && !v.grad(1)) return {};
  if (v.grad(1)) {
    Tensor seen = matmul(back, v.grad(1));
    inner = (seen - transposed(seen)) * 0.5 /
            differences(v.out());  // only turns of the vectors can follow from a symmetric change
  }
  if (!inner) return {matmul(vectors * unsqueeze(v.grad(), -2), back)};
  if (v.grad()) inner = inner + diag_embed(v.grad());
  return {matmul(vectors, matmul(inner, back))};
}

Metas svd_meta(MetaCall& m) {
  require_matrix(m, "A");
  m.require(!m.given("driver"), "driver is for other devices than CPUs, got ", describe(m.arg("driver")));
  const TensorMeta& a = m.meta("A");
  Sizes batch = batch_of(a.sizes);
  bool full = m.flag("full_matrices"), vectors = m.flag("compute_uv");
  SymInt rows = rows_of(a), columns = columns_of(a), k = smaller(rows, columns);
  return {vectors ? matrix_meta(a, joined(batch, {rows, full ? rows : k})) : like(a, {0}), like(a, joined(batch, {k})),
          vectors ? matrix_meta(a, joined(batch, {full ? columns : k, columns})) : like(a, {0})};
}

// gA = U [(skew(Uᵀ gU) / E) S + S (skew(Vᵀ gV) / E) + diag(gS)] Vᵀ + (I - U Uᵀ) gU S⁻¹ Vᵀ + U S⁻¹ gVᵀ (I - V Vᵀ), E_ij
// = s_j² - s_i²
Grads svd_gradient(Vjp& v) {
  v.require(v.flag("compute_uv"), "singular values alone have no gradient: the vectors are needed for it");
  Tensor u = v.out(), s = v.out(1), vt = v.out(2), of_u = v.grad(), of_s = v.grad(1), of_vt = v.grad(2);
  if (!of_u && !of_s && !of_vt) return {};
  SymInt m = v["A"].size(-2), n = v["A"].size(-1), k = s.size(-1);
  if (v.flag("full_matrices")) {  // vectors beyond the singular values are any that complete a basis
    u = narrow(u, -1, 0, k);
    vt = narrow(vt, -2, 0, k);
    if (of_u) of_u = narrow(of_u, -1, 0, k);
    if (of_vt) of_vt = narrow(of_vt, -2, 0, k);
  }
  if (!of_u && !of_vt) return {m == k ? matmul(u, unsqueeze(of_s, -1) * vt) : matmul(u * unsqueeze(of_s, -2), vt)};
  auto skew = [](const Tensor& x) { return x - transposed(x); };
  Tensor gaps = differences(s * s), row = unsqueeze(s, -2), column = unsqueeze(s, -1), inner, seen_u;
  if (of_u) {
    seen_u = matmul(transposed(u), of_u);
    inner = skew(seen_u) / gaps * row;
  }
  Tensor seen_v;
  if (of_vt) {
    seen_v = matmul(vt, transposed(of_vt));
    Tensor part = skew(seen_v) / gaps * column;
    inner = inner ? inner + part : part;
  }
  if (of_s) inner = inner + diag_embed(of_s);
  Tensor out = matmul(u, matmul(inner, vt));
  if (of_u && statically_true(sym::gt(m, k))) out = out + matmul((of_u - matmul(u, seen_u)) / row, vt);
  if (of_vt && statically_true(sym::gt(n, k))) out = out + matmul(u, (of_vt - matmul(transposed(seen_v), vt)) / column);
  return {out};
}

Results eigenvalues(Build& b, bool vectors) {
  Tensor a = b["self"];
  if (!is_complex(a.dtype())) return one(linalg_eigh(a, b.arg("UPLO"), vectors)[0]);
  require_matrix(b, "self", true, Parts::real_or_complex);
  return one(each_once(linalg_eigvalsh(embedded_hermitian(a), b.arg("UPLO"))));
}
Results singular_values(Build& b, bool vectors) {
  if (is_complex(b["A"].dtype())) {
    require_matrix(b, "A", false, Parts::real_or_complex);
    return one(each_once(linalg_svdvals(embedded(b["A"]), kw("driver", b.arg("driver")))));
  }
  return one(linalg_svd(b["A"], false, vectors, kw("driver", b.arg("driver")))[1]);
}

// The older form: V, not its transpose; without vectors they are zeros.
Results older_svd(Build& b, bool vectors) {
  Tensor a = b["self"];
  require_matrix(b, "self");
  Results all = linalg_svd(a, !b.flag("some"), vectors);
  if (b.flag("compute_uv")) return {{CallArg(all[0]), CallArg(all[1]), CallArg(transposed(all[2]))}};
  Sizes batch = batch_of(a.sizes());
  SymInt m = a.size(-2), n = a.size(-1);
  return {{CallArg(zeros(joined(batch, {m, m}), a)), CallArg(all[1]),
           CallArg(transposed(zeros(joined(batch, {n, n}), a)))}};
}

// x in the basis q, element i, j divided by s_i + s_j: the solution y of y t + t y = x for t = q diag(s) qᵀ.
Tensor over_sums(const Tensor& x, const Tensor& q, const Tensor& s) {
  Tensor sums = unsqueeze(s, -2) + unsqueeze(s, -1);
  return matmul(q, matmul(matmul(transposed(q), matmul(x, q)) / sums, transposed(q)));
}

Tensor roots(const Tensor& values) { return sqrt(clamp_min(values, 0.0)); }

Results square_root(Build& b) {
  require_matrix(b, "self", true);
  Results all = linalg_eigh(b["self"]);
  return matmul(all[1] * unsqueeze(roots(all[0]), -2), transposed(all[1]));
}

// dA = dR R + R dR for the root R
Grads square_root_gradient(Vjp& v) {
  Results all = linalg_eigh(v["self"]);
  Tensor g = v.grad();
  return {over_sums((g + transposed(g)) * 0.5, all[1], roots(all[0]))};
}

Results polar(Build& b) {
  require_matrix(b, "A");
  Tensor a = b["A"];
  b.require(!statically_true(sym::lt(a.size(-2), a.size(-1))), "expected at least as many rows as columns, got ",
            a.meta());
  Results all = linalg_svd(a);
  Tensor h = matmul(transposed(all[2]) * unsqueeze(all[1], -2), all[2]);
  return {{CallArg(Tensor(matmul(all[0], all[2]))), CallArg(h)}};
}

// With M = Uᵀ dA and the solution Ω of Ω H + H Ω = M - Mᵀ: dU = U Ω + (I - U Uᵀ) dA H⁻¹ and dH = M - Ω H.
Grads polar_gradient(Vjp& v) {
  Tensor u = v.out(), h = v.out(1), of_u = v.grad(), of_h = v.grad(1), z, out;
  if (!of_u && !of_h) return {};
  Results all = linalg_eigh(h);
  if (of_u) z = matmul(transposed(u), of_u);
  if (of_h) {
    Tensor part = matmul(of_h, h);
    z = z ? z - part : neg(part);
  }
  out = over_sums(z - transposed(z), all[1], all[0]);
  if (of_h) out = out + of_h;
  out = matmul(u, out);
  if (of_u && statically_true(sym::gt(u.size(-2), u.size(-1)))) {
    Tensor beyond = of_u - matmul(u, matmul(transposed(u), of_u));
    out = out + matmul(matmul(beyond, all[1]) / unsqueeze(all[0], -2), transposed(all[1]));
  }
  return {out};
}

}  // namespace

void register_linalg_spectrum(Registry& ops) {
  ops.add(linalg_eigh,
          {
              .schema = "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor "
                        "eigenvalues, Tensor eigenvectors)",
              .meta = eigh_meta,
              .vjp = {{"A", eigh_gradient}},
              .host = {"linalg_eigh",
                       {"matrix {} has no eigenvalues that could be found: does it hold NaN or infinite elements?"}},
          });
  ops.add({
      .schema = "linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return linalg_eigh(b["self"], b.arg("UPLO"), true); },
  });
  ops.add(linalg_eigvalsh, {
                               .schema = "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
                               .kind = OpKind::composite,
                               .decompose = [](Build& b) { return eigenvalues(b, false); },
                               .for_grad = [](Build& b) { return eigenvalues(b, true); },
                           });
  ops.add(linalg_svd, {
                          .schema = "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? "
                                    "driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
                          .meta = svd_meta,
                          .vjp = {{"A", svd_gradient}},
                          .host = {"linalg_svd", {without_values}},
                      });
  ops.add({
      .schema = "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) { return linalg_svd(b["A"], b.arg("full_matrices"), true, kw("driver", b.arg("driver"))); },
  });
  ops.add(linalg_svdvals, {
                              .schema = "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
                              .kind = OpKind::composite,
                              .decompose = [](Build& b) { return singular_values(b, false); },
                              .for_grad = [](Build& b) { return singular_values(b, true); },
                          });
  ops.add({
      .schema = "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return older_svd(b, b.flag("compute_uv")); },
      .for_grad = [](Build& b) { return older_svd(b, true); },
  });
  ops.add({
      .schema = "linalg_matrix_sqrth(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = square_root,
      .vjp = {{"self", square_root_gradient}},
  });
  ops.add({
      .schema = "linalg_polar(Tensor A) -> (Tensor U, Tensor H)",
      .kind = OpKind::composite,
      .decompose = polar,
      .vjp = {{"A", polar_gradient}},
  });
}

}  // namespace tenon
