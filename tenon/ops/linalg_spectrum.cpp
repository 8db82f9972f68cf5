// Eigenvalues, singular values and what follows from them: pseudo-inverses, ranks, condition numbers, least squares.
#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/ops/distance.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/matmul.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/templates/matrix.h"

namespace tenon {

Handle linalg_svdvals;
static Handle eigh, svd, pinv;

namespace {

SymInt rows_of(const TensorMeta& a) { return a.sizes[a.rank() - 2]; }
SymInt columns_of(const TensorMeta& a) { return a.sizes.back(); }

bool upper_of(const ArgsView& m) {
  const std::string& part = m.string(1);
  m.require(part == "L" || part == "l" || part == "U" || part == "u", "UPLO: expected L or U, got ", quoted(part));
  return part == "U" || part == "u";
}

Metas eigh_meta(MetaCall& m) {
  require_matrix(m, 0, true);
  upper_of(m);
  const TensorMeta& a = m.meta(0);
  return {like(a, batch_of(a.sizes, 1)), m.flag(2) ? matrix_meta(a, a.sizes) : like(a, {0})};
}

CallResults find_eigenvalues(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  Matrices a(call[0]);
  std::vector<double> values(static_cast<size_t>(a.batch * a.rows));
  for (int64_t b = 0; b < a.batch; ++b)
    call.require(templates::eigen_symmetric(a[b], a.rows, upper_of(call), values.data() + b * a.rows), "matrix ", b,
                 " has no eigenvalues that could be found: does it hold NaN or infinite elements?");
  return {CallArg(made(metas[0], values)), CallArg(call.flag(2) ? a.tensor(metas[1]) : Tensor::empty(metas[1]))};
}

// 1 on the diagonal, the differences of a row of numbers elsewhere: x_j - x_i.
Tensor differences(const Tensor& x) {
  SymInt n = x.size(-1);
  return Tensor(unsqueeze(x, -2)) - Tensor(unsqueeze(x, -1)) + unit_matrix(x, n, n);
}

// gA = V (diag(gL) + skew(Vᵀ gV) / E) Vᵀ, E_ij = l_j - l_i
Grads eigh_gradient(Vjp& v) {
  v.require(v.flag(2), "eigenvalues alone have no gradient: the vectors are needed for it");
  Tensor vectors = v.out(1), back = turned(vectors), inner;
  if (!v.grad(0) && !v.grad(1)) return {};
  if (v.grad(1)) {
    Tensor seen = matmul(back, v.grad(1));
    inner = (seen - turned(seen)) * 0.5 / differences(v.out(0));   // only turns of the vectors can follow from a symmetric change
  }
  if (!inner) return {matmul(vectors * Tensor(unsqueeze(v.grad(0), -2)), back)};
  if (v.grad(0)) inner = inner + Tensor(diag_embed(v.grad(0)));
  return {matmul(vectors, matmul(inner, back))};
}

Metas svd_meta(MetaCall& m) {
  require_matrix(m, 0);
  m.require(!m.given(3), "driver is for other devices than CPUs, got ", describe(m.arg(3)));
  const TensorMeta& a = m.meta(0);
  Sizes batch = batch_of(a.sizes);
  bool full = m.flag(1), vectors = m.flag(2);
  SymInt rows = rows_of(a), columns = columns_of(a), k = smaller(rows, columns);
  return {vectors ? matrix_meta(a, joined(batch, {rows, full ? rows : k})) : like(a, {0}), like(a, joined(batch, {k})),
          vectors ? matrix_meta(a, joined(batch, {full ? columns : k, columns})) : like(a, {0})};
}

// U, the singular values and Vᵀ of each matrix.
struct Singular {
  Matrices u, vt;
  std::vector<double> values;
  int64_t k = 0;
  Singular(const ArgsView& call, Matrices a) : u(a.batch, a.rows, a.rows), vt(a.batch, a.columns, a.columns), k(std::min(a.rows, a.columns)) {
    values.resize(static_cast<size_t>(a.batch * k));
    for (int64_t b = 0; b < a.batch; ++b)
      call.require(templates::factor_svd(a[b], a.rows, a.columns, u[b], values.data() + b * k, vt[b]), "matrix ", b,
                   " has no singular values that could be found: does it hold NaN or infinite elements?");
  }
};

CallResults find_singular_values(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  bool full = call.flag(1), vectors = call.flag(2);
  Singular s(call, Matrices(call[0]));
  if (!vectors) return {CallArg(Tensor::empty(metas[0])), CallArg(made(metas[1], s.values)), CallArg(Tensor::empty(metas[2]))};
  if (full) return {CallArg(s.u.tensor(metas[0])), CallArg(made(metas[1], s.values)), CallArg(s.vt.tensor(metas[2]))};
  Matrices u(s.u.batch, s.u.rows, s.k), vt(s.u.batch, s.k, s.vt.columns);
  for (int64_t b = 0; b < u.batch; ++b) {
    for (int64_t i = 0; i < u.rows; ++i) std::copy_n(s.u[b] + i * u.rows, s.k, u[b] + i * s.k);
    std::copy_n(s.vt[b], s.k * vt.columns, vt[b]);
  }
  return {CallArg(u.tensor(metas[0])), CallArg(made(metas[1], s.values)), CallArg(vt.tensor(metas[2]))};
}

// gA = U [(skew(Uᵀ gU) / E) S + S (skew(Vᵀ gV) / E) + diag(gS)] Vᵀ + (I - U Uᵀ) gU S⁻¹ Vᵀ + U S⁻¹ gVᵀ (I - V Vᵀ), E_ij = s_j² - s_i²
Grads svd_gradient(Vjp& v) {
  v.require(v.flag(2), "singular values alone have no gradient: the vectors are needed for it");
  Tensor u = v.out(0), s = v.out(1), vt = v.out(2), of_u = v.grad(0), of_s = v.grad(1), of_vt = v.grad(2);
  if (!of_u && !of_s && !of_vt) return {};
  SymInt m = v[0].size(-2), n = v[0].size(-1), k = s.size(-1);
  if (v.flag(1)) {   // vectors beyond the singular values are any that complete a basis
    u = narrow(u, -1, 0, k);
    vt = narrow(vt, -2, 0, k);
    if (of_u) of_u = narrow(of_u, -1, 0, k);
    if (of_vt) of_vt = narrow(of_vt, -2, 0, k);
  }
  if (!of_u && !of_vt) return {m == k ? matmul(u, Tensor(unsqueeze(of_s, -1)) * vt) : matmul(u * Tensor(unsqueeze(of_s, -2)), vt)};
  auto skew = [](const Tensor& x) { return x - turned(x); };
  Tensor gaps = differences(s * s), row = unsqueeze(s, -2), column = unsqueeze(s, -1), inner, seen_u;
  if (of_u) {
    seen_u = matmul(turned(u), of_u);
    inner = skew(seen_u) / gaps * row;
  }
  Tensor seen_v;
  if (of_vt) {
    seen_v = matmul(vt, turned(of_vt));
    Tensor part = skew(seen_v) / gaps * column;
    inner = inner ? inner + part : part;
  }
  if (of_s) inner = inner + Tensor(diag_embed(of_s));
  Tensor out = matmul(u, matmul(inner, vt));
  if (of_u && statically_true(sym::gt(m, k))) out = out + Tensor(matmul((of_u - Tensor(matmul(u, seen_u))) / row, vt));
  if (of_vt && statically_true(sym::gt(n, k))) out = out + Tensor(matmul(u, (of_vt - Tensor(matmul(turned(seen_v), vt))) / column));
  return {out};
}

Tensor singular_values(const Tensor& a) { return linalg_svdvals(a); }

// A bound on what counts as zero: the larger of atol and rtol times the largest value. What is not given is PyTorch's default.
struct Bounds {
  CallArg atol, rtol;
};
Tensor bound(const Bounds& bounds, const Tensor& a, const Tensor& largest) {
  SymInt m = a.size(-2), n = a.size(-1);
  double eps = a.dtype() == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  auto spread = [&](const CallArg& arg) -> Tensor {   // a number, or one for each matrix
    if (auto* t = arg.get<Tensor>()) return to(t->rank() ? Tensor(unsqueeze(*t, -1)) : *t, a.dtype());
    double value = 0;
    if (auto* x = arg.get<double>()) value = *x;
    if (auto* i = arg.get<SymInt>()) value = i->is_int() ? static_cast<double>(i->as_int()) : 0;
    return full(Sizes{}, value, kw("dtype", a.dtype()), kw("device", a.meta().device));
  };
  auto absent = [](const CallArg& arg) { return arg.is_none() || (arg.is<Tensor>() && !*arg.get<Tensor>()); };
  Tensor atol = spread(bounds.atol), rtol;
  if (!absent(bounds.rtol)) rtol = spread(bounds.rtol);
  else rtol = where(gt(atol, 0.0), 0.0, to(mul(full(Sizes{}, eps, kw("dtype", DType::f64)), larger(m, n)), a.dtype()));
  return maximum(atol, rtol * largest);
}

bool has_no_elements(const Tensor& a) {
  for (SymInt s : a.sizes())
    if (s == SymInt(0)) return true;
  return false;
}

Results pseudo_inverse(Build& b, const Bounds& bounds, bool hermitian) {
  require_matrix(b, 0, hermitian);
  Tensor a = b[0];
  if (has_no_elements(a)) return one(zeros(joined(batch_of(a.sizes()), {a.size(-1), a.size(-2)}), a));
  if (hermitian) {
    Results all = eigh(a);
    Tensor values = all[0], size = abs(values);
    Tensor kept = gt(size, bound(bounds, a, amax(size, Sizes{-1}, true)));
    Tensor back = where(kept, reciprocal(values), 0.0);
    return matmul(all[1] * Tensor(unsqueeze(back, -2)), turned(all[1]));
  }
  Results all = svd(a);
  Tensor values = all[1], kept = gt(values, bound(bounds, a, narrow(values, -1, 0, 1)));
  Tensor back = where(kept, reciprocal(values), 0.0);
  return matmul(turned(all[2]) * Tensor(unsqueeze(back, -2)), turned(all[0]));
}

// From dP = -P dA P + P Pᵀ dAᵀ (I - A P) + (I - P A) dAᵀ Pᵀ P
Tensor pseudo_inverse_gradient(const Tensor& g, const Tensor& p, const Tensor& a) {
  Tensor gt = turned(g), pt = turned(p);
  auto times = [](const Tensor& x, const Tensor& y) { return Tensor(matmul(x, y)); };
  Tensor right = times(gt, times(p, pt)), left = times(times(pt, p), gt);
  return right - times(a, times(p, right)) + left - times(times(left, p), a) - times(pt, times(g, pt));
}
Grads pinv_gradient(Vjp& v) { return {pseudo_inverse_gradient(v.grad(0), v.out(0), v[0])}; }

Results rank(Build& b, const Bounds& bounds, bool hermitian) {
  require_matrix(b, 0, hermitian);
  Tensor a = b[0];
  if (has_no_elements(a)) return full(batch_of(a.sizes()), 0, kw("dtype", DType::i64), kw("device", a.meta().device));
  Tensor values = hermitian ? Tensor(abs(eigh(a, "L", false)[0])) : singular_values(a);
  return sum(gt(values, bound(bounds, a, amax(values, Sizes{-1}, true))), Sizes{-1});
}

Results condition(Build& b) {
  require_matrix(b, 0);
  Tensor a = b[0];
  bool named = b.arg(1).is<std::string>();
  double p = named || !b.given(1) ? 2 : b.number(1);
  if (!named && std::fabs(p) == 2) {
    if (has_no_elements(a)) return one(zeros(batch_of(a.sizes()), a));
    Tensor s = singular_values(a);
    Tensor first = select(s, -1, 0), last = select(s, -1, -1);
    return p == 2 ? div(first, last) : div(last, first);
  }
  require_matrix(b, 0, true);
  if (has_no_elements(a)) return one(zeros(batch_of(a.sizes()), a));
  Results inverse = linalg_inv_ex(a);
  auto norm = [&](const Tensor& x) -> Tensor { return named ? named_matrix_norm(x, b.arg(1)) : matrix_norm(x, b.arg(1)); };
  return where(gt(inverse[1], 0), std::numeric_limits<double>::infinity(), norm(a) * norm(inverse[0]));
}

struct Driver {
  bool full_rank = false, ranks = true, values = false;
};
Driver driver_of(const ArgsView& m) {
  if (!m.given(3)) return {};
  const std::string& name = m.string(3);
  m.require(name == "gels" || name == "gelsy" || name == "gelsd" || name == "gelss", "driver: expected gels, gelsy, gelsd or gelss, got ", quoted(name));
  return {name == "gels", name != "gels", name == "gelsd" || name == "gelss"};
}
bool is_vector(const Sizes& a, const Sizes& b) { return a.size() == b.size() + 1 && batch_of(a, 1) == b; }

Metas least_squares_meta(MetaCall& m) {
  require_matrix(m, 0);
  const TensorMeta &a = m.meta(0), &b = m.meta(1);
  bool vector = is_vector(a.sizes, b.sizes);
  Sizes right = vector ? joined(b.sizes, {1}) : b.sizes, batch = batch_of(a.sizes);
  m.require(b.dtype == a.dtype && right.size() == a.rank() && batch_of(right) == batch && !differ(right[right.size() - 2], rows_of(a)), "b: expected as many rows as ",
            a, " has, got ", b);
  Driver driver = driver_of(m);
  SymInt rows = rows_of(a), columns = columns_of(a), k = right.back();
  TensorMeta tall = matrix_meta(a, joined(batch, {larger(rows, columns), k})), solution = tall;
  solution.sizes[solution.rank() - 2] = columns;
  if (vector) {
    solution.sizes.pop_back();
    solution.strides.pop_back();
  }
  bool over = statically_true(sym::gt(rows, columns)) && (driver.full_rank || driver.values);
  return {solution, over ? like(a, vector ? batch : joined(batch, {k})) : like(a, {0}), like(a, driver.ranks ? batch : Sizes{0}, DType::i64),
          driver.values ? like(a, joined(batch, {smaller(rows, columns)})) : like(a, {0})};
}

CallResults least_squares(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  Driver driver = driver_of(call);
  bool vector = is_vector(call.meta(0).sizes, call.meta(1).sizes);
  Matrices a(call[0]), b(vector ? Tensor(unsqueeze(call[1], -1)) : call[1]), x(a.batch, a.columns, b.columns);
  Singular s(call, a);
  double eps = call.meta(0).dtype == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  double relative = call.given(2) ? call.number(2) : eps * static_cast<double>(std::max(a.rows, a.columns));
  std::vector<int64_t> ranks;
  std::vector<double> residuals;
  bool all_full = true;
  for (int64_t i = 0; i < a.batch; ++i) {
    int64_t rank = 0;
    for (int64_t j = 0; j < s.k; ++j) {
      double value = s.values[static_cast<size_t>(i * s.k + j)];
      if (!driver.full_rank && !(value > relative * s.values[static_cast<size_t>(i * s.k)])) continue;
      ++rank;
      for (int64_t c = 0; c < b.columns; ++c) {
        double dot = 0;
        for (int64_t r = 0; r < a.rows; ++r) dot += s.u[i][r * a.rows + j] * b[i][r * b.columns + c];
        for (int64_t r = 0; r < a.columns; ++r) x[i][r * b.columns + c] += s.vt[i][j * a.columns + r] * dot / value;
      }
    }
    ranks.push_back(rank);
    all_full &= rank == a.columns;
    for (int64_t c = 0; c < b.columns; ++c) {
      double total = 0;
      for (int64_t r = 0; r < a.rows; ++r) {
        double d = b[i][r * b.columns + c];
        for (int64_t j = 0; j < a.columns; ++j) d -= a[i][r * a.columns + j] * x[i][j * b.columns + c];
        total += d * d;
      }
      residuals.push_back(total);
    }
  }
  bool has_residuals = metas[1].sizes != Sizes{0} && all_full;
  return {CallArg(x.tensor(metas[0])), CallArg(has_residuals ? made(metas[1], residuals) : Tensor::empty(metas[1].dtype, {0})),
          CallArg(driver.ranks ? made(metas[2], ranks) : Tensor::empty(metas[2])), CallArg(driver.values ? made(metas[3], s.values) : Tensor::empty(metas[3]))};
}

// X = A⁺ B; the residuals |A X - B|² are least in X.
Grads least_squares_gradient(Vjp& v) {
  Tensor g = v.grad(0), of_residuals = v.grad(1), a = v[0], b = v[1], x = v.out(0), of_a, of_b;
  if (of_residuals && of_residuals.sizes() == Sizes{0}) of_residuals = none;   // there are none
  if (!g && !of_residuals) return {};
  bool vector = is_vector(a.sizes(), b.sizes());
  if (vector) {
    if (g) g = unsqueeze(g, -1);
    if (of_residuals) of_residuals = unsqueeze(of_residuals, -1);
    b = unsqueeze(b, -1);
    x = unsqueeze(x, -1);
  }
  if (g) {
    Tensor p = pinv(a);
    of_b = matmul(turned(p), g);
    of_a = pseudo_inverse_gradient(matmul(g, turned(b)), p, a);
  }
  if (of_residuals) {
    Tensor off = (Tensor(matmul(a, x)) - b) * Tensor(unsqueeze(of_residuals, -2)) * 2.0, part = matmul(off, turned(x));
    of_a = of_a ? of_a + part : part;
    of_b = of_b ? of_b - off : neg(off);
  }
  return {of_a, vector && of_b ? Tensor(squeeze_dim(of_b, -1)) : of_b};
}


Results eigenvalues(Build& b, bool vectors) { return one(eigh(b[0], b.arg(1), vectors)[0]); }
Results values_alone(Build& b, bool vectors) { return one(svd(b[0], false, vectors, kw("driver", b.arg(1)))[1]); }

// The older form: V, not its transpose; without vectors they are zeros.
Results older_svd(Build& b, bool vectors) {
  Tensor a = b[0];
  require_matrix(b, 0);
  Results all = svd(a, !b.flag(1), vectors);
  if (b.flag(2)) return {{CallArg(all[0]), CallArg(all[1]), CallArg(turned(all[2]))}};
  Sizes batch = batch_of(a.sizes());
  SymInt m = a.size(-2), n = a.size(-1);
  return {{CallArg(zeros(joined(batch, {m, m}), a)), CallArg(all[1]), CallArg(turned(zeros(joined(batch, {n, n}), a)))}};
}

// x in the basis q, element i, j divided by s_i + s_j: the solution y of y t + t y = x for t = q diag(s) qᵀ.
Tensor over_sums(const Tensor& x, const Tensor& q, const Tensor& s) {
  Tensor sums = Tensor(unsqueeze(s, -2)) + Tensor(unsqueeze(s, -1));
  return matmul(q, matmul(Tensor(matmul(turned(q), matmul(x, q))) / sums, turned(q)));
}
Tensor roots(const Tensor& values) { return sqrt(clamp_min(values, 0.0)); }

Results square_root(Build& b) {
  require_matrix(b, 0, true);
  Results all = eigh(b[0]);
  return matmul(all[1] * Tensor(unsqueeze(roots(all[0]), -2)), turned(all[1]));
}

// dA = dR R + R dR for the root R
Grads square_root_gradient(Vjp& v) {
  Results all = eigh(v[0]);
  Tensor g = v.grad(0);
  return {over_sums((g + turned(g)) * 0.5, all[1], roots(all[0]))};
}

Results polar(Build& b) {
  require_matrix(b, 0);
  Tensor a = b[0];
  b.require(!statically_true(sym::lt(a.size(-2), a.size(-1))), "expected at least as many rows as columns, got ", a.meta());
  Results all = svd(a);
  Tensor h = matmul(turned(all[2]) * Tensor(unsqueeze(all[1], -2)), all[2]);
  return {{CallArg(Tensor(matmul(all[0], all[2]))), CallArg(h)}};
}

// With M = Uᵀ dA and the solution Ω of Ω H + H Ω = M - Mᵀ: dU = U Ω + (I - U Uᵀ) dA H⁻¹ and dH = M - Ω H.
Grads polar_gradient(Vjp& v) {
  Tensor u = v.out(0), h = v.out(1), of_u = v.grad(0), of_h = v.grad(1), z, out;
  if (!of_u && !of_h) return {};
  Results all = eigh(h);
  if (of_u) z = matmul(turned(u), of_u);
  if (of_h) {
    Tensor part = matmul(of_h, h);
    z = z ? z - part : neg(part);
  }
  out = over_sums(z - turned(z), all[1], all[0]);
  if (of_h) out = out + of_h;
  out = matmul(u, out);
  if (of_u && statically_true(sym::gt(u.size(-2), u.size(-1)))) {
    Tensor beyond = of_u - Tensor(matmul(u, matmul(turned(u), of_u)));
    out = out + Tensor(matmul(Tensor(matmul(beyond, all[1])) / Tensor(unsqueeze(all[0], -2)), turned(all[1])));
  }
  return {out};
}

}  // namespace

void register_linalg_spectrum(Registry& ops) {
  ops.add(eigh, {
      .schema = "_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors)",
      .meta = eigh_meta,
      .vjp = {{"A, UPLO, compute_v", eigh_gradient}},
      .kernel = find_eigenvalues,
  });
  ops.add({
      .schema = "linalg_eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return eigh(b["self"], b.arg("UPLO"), true); },
  });
  ops.add({
      .schema = "linalg_eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return eigenvalues(b, false); },
      .for_grad = [](Build& b) { return eigenvalues(b, true); },
  });
  ops.add(svd, {
      .schema = "_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
      .meta = svd_meta,
      .vjp = {{"A, full_matrices, compute_uv, driver", svd_gradient}},
      .kernel = find_singular_values,
  });
  ops.add({
      .schema = "linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return svd(b["A"], b.arg("full_matrices"), true, kw("driver", b.arg("driver"))); },
  });
  ops.add(linalg_svdvals, {
      .schema = "linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return values_alone(b, false); },
      .for_grad = [](Build& b) { return values_alone(b, true); },
  });
  ops.add({
      .schema = "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return older_svd(b, b.flag("compute_uv")); },
      .for_grad = [](Build& b) { return older_svd(b, true); },
  });
  ops.add(pinv, {
      .schema = "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pseudo_inverse(b, {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian")); },
      .vjp = {{"self, atol, rtol, hermitian", pinv_gradient}},
  });
  ops.add({
      .schema = "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pseudo_inverse(b, {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian")); },
      .vjp = {{"self, atol, rtol, hermitian", pinv_gradient}},
  });
  ops.add({
      .schema = "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pseudo_inverse(b, {0.0, b.arg("rcond")}, b.flag("hermitian")); },
      .vjp = {{"self, rcond, hermitian", pinv_gradient}},
  });
  ops.add({
      .schema = "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pseudo_inverse(b, {0.0, b.arg("rcond")}, b.flag("hermitian")); },
      .vjp = {{"self, rcond, hermitian", pinv_gradient}},
  });
  ops.add({
      .schema = "pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pseudo_inverse(b, {0.0, b.arg("rcond")}, false); },
      .vjp = {{"self, rcond", pinv_gradient}},
  });
  ops.add({
      .schema = "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return rank(b, {b.arg("tol"), 0.0}, b.flag("hermitian")); },
  });
  ops.add({
      .schema = "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return rank(b, {b.arg("tol"), 0.0}, b.flag("hermitian")); },
  });
  ops.add({
      .schema = "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return rank(b, {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian")); },
  });
  ops.add({
      .schema = "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return rank(b, {b.arg("atol"), b.arg("rtol")}, b.flag("hermitian")); },
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
  ops.add({
      .schema = "linalg_cond(Tensor self, Scalar? p=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = condition,
  });
  ops.add({
      .schema = "linalg_cond.p_str(Tensor self, str p) -> Tensor",
      .kind = OpKind::composite,
      .decompose = condition,
  });
  ops.add({
      .schema = "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor "
                "singular_values)",
      .meta = least_squares_meta,
      .vjp = {{"self, b, rcond, driver", least_squares_gradient}},
      .kernel = least_squares,
  });
}

}  // namespace tenon
