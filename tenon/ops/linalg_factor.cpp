// LU and QR: factors, products of reflectors, and solving with them.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/triangular.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/matmul.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/templates/matrix.h"

namespace tenon {

Handle linalg_lu_solve, lu_unpack;
static Handle lu_factor_ex, householder_product;

namespace {

SymInt rows_of(const TensorMeta& a) { return a.sizes[a.rank() - 2]; }
SymInt columns_of(const TensorMeta& a) { return a.sizes.back(); }

Metas lu_meta(MetaCall& m, size_t pivot) {
  require_matrix(m, 0);
  m.require(m.flag(pivot), "LU without pivoting is not supported on a CPU, in PyTorch neither");
  const TensorMeta& a = m.meta(0);
  Sizes batch = batch_of(a.sizes);
  SymInt k = smaller(rows_of(a), columns_of(a));
  return {matrix_meta(a, a.sizes), like(a, joined(batch, {k}), DType::i32), like(a, batch, DType::i32)};
}

struct Lu {
  Matrices lu;
  std::vector<int64_t> pivots, info;
  explicit Lu(const Tensor& a) : lu(a) {
    std::vector<int32_t> own(static_cast<size_t>(std::min(lu.rows, lu.columns)));
    for (int64_t b = 0; b < lu.batch; ++b) {
      info.push_back(templates::factor_lu(lu[b], lu.rows, lu.columns, own.data()));
      pivots.insert(pivots.end(), own.begin(), own.end());
    }
  }
};

CallResults factor(ArgsView& call, size_t check) {
  std::vector<TensorMeta> metas = own_metas(call);
  Lu f(call[0]);
  for (size_t i = 0; call.flag(check) && i < f.info.size(); ++i)
    call.require(f.info[i] == 0, "matrix ", i, " is singular: no pivot in column ", f.info[i]);
  return {CallArg(f.lu.tensor(metas[0])), CallArg(made(metas[1], f.pivots)), CallArg(made(metas[2], f.info))};
}

Metas unpacked_meta(const TensorMeta& a, bool data, bool pivots) {
  Sizes batch = batch_of(a.sizes);
  SymInt rows = rows_of(a), columns = columns_of(a), k = smaller(rows, columns);
  TensorMeta nothing = like(a, {0});
  return {pivots ? like(a, joined(batch, {rows, rows})) : nothing, data ? like(a, joined(batch, {rows, k})) : nothing,
          data ? like(a, joined(batch, {k, columns})) : nothing};
}

// P, L and U of what factor_lu leaves.
CallResults unpacked(const ArgsView& call, const std::vector<TensorMeta>& metas, Matrices& lu, const std::vector<int64_t>& pivots, bool data, bool permutation) {
  int64_t m = lu.rows, n = lu.columns, k = std::min(m, n);
  Matrices p(lu.batch, m, m), l(lu.batch, m, k), u(lu.batch, k, n);
  for (int64_t b = 0; b < lu.batch; ++b) {
    std::vector<int64_t> order(static_cast<size_t>(m));
    for (int64_t i = 0; i < m; ++i) order[static_cast<size_t>(i)] = i;
    for (int64_t i = 0; i < k && permutation; ++i) {
      int64_t other = pivots[static_cast<size_t>(b * k + i)];
      call.require(other >= 1 && other <= m, "pivots: expected numbers from 1 to ", m, ", got ", other);
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(other - 1)]);
    }
    for (int64_t i = 0; i < m; ++i) {
      p[b][order[static_cast<size_t>(i)] * m + i] = 1;
      for (int64_t j = 0; j < k; ++j) l[b][i * k + j] = i == j ? 1 : j < i ? lu[b][i * n + j] : 0;
      for (int64_t j = i; j < n && i < k; ++j) u[b][i * n + j] = lu[b][i * n + j];
    }
  }
  auto part = [](bool wanted, const TensorMeta& meta, const Matrices& values) { return CallArg(wanted ? values.tensor(meta) : Tensor::empty(meta)); };
  return {part(permutation, metas[0], p), part(data, metas[1], l), part(data, metas[2], u)};
}

// The gradient of A = P L U. Where A is not square, the part beyond the square follows from the other factor.
Tensor lu_gradient(const Tensor& p, const Tensor& l, const Tensor& u, Tensor of_l, Tensor of_u) {
  if (!of_l) of_l = zeros_like(l);
  if (!of_u) of_u = zeros_like(u);
  SymInt m = l.size(-2), n = u.size(-1), k = l.size(-1);
  auto top = [&](const Tensor& x) { return Tensor(narrow(x, -2, 0, k)); };
  auto below = [&](const Tensor& x) { return Tensor(narrow(x, -2, k, m - k)); };
  auto front = [&](const Tensor& x) { return Tensor(narrow(x, -1, 0, k)); };
  auto behind = [&](const Tensor& x) { return Tensor(narrow(x, -1, k, n - k)); };
  bool wide = !(n == k), tall = !(m == k);
  Tensor l1 = tall ? top(l) : l, u1 = wide ? front(u) : u;
  Tensor lower = matmul(turned(l1), tall ? top(of_l) : of_l), upper = matmul(wide ? front(of_u) : of_u, turned(u1));
  if (wide) lower = lower - Tensor(matmul(behind(of_u), turned(behind(u))));
  if (tall) upper = upper - Tensor(matmul(turned(below(l)), below(of_l)));
  Tensor phi = Tensor(tril(lower, -1)) + Tensor(triu(upper));
  auto through_u = [&](const Tensor& x) { return Tensor(linalg_solve_triangular(turned(u1), x, kw("upper", false), kw("left", false))); };
  auto through_l = [&](const Tensor& x) { return Tensor(linalg_solve_triangular(turned(l1), x, kw("upper", true), kw("unitriangular", true))); };
  Tensor out = through_l(through_u(phi));
  if (wide) out = cat(std::vector<Tensor>{out, through_l(behind(of_u))}, -1);
  if (tall) out = cat(std::vector<Tensor>{out, through_u(below(of_l))}, -2);
  return matmul(p, out);
}

Grads factor_gradient(Vjp& v) {
  if (!v.grad(0)) return {};
  Results plu = lu_unpack(v.out(0), v.out(1));
  SymInt k = plu[1].size(-1);
  return {lu_gradient(plu[0], plu[1], plu[2], narrow(v.grad(0), -1, 0, k), narrow(v.grad(0), -2, 0, k))};
}

Metas lu_solve_meta(MetaCall& m) {
  require_matrix(m, 0, true);
  require_matrix(m, 2);
  const TensorMeta &lu = m.meta(0), &pivots = m.meta(1), &b = m.meta(2);
  m.require(pivots.dtype == DType::i32 && pivots.sizes == batch_of(lu.sizes, 1), "pivots: expected ", make_meta(DType::i32, batch_of(lu.sizes, 1)), ", got ",
            pivots);
  bool left = m.flag(3);
  m.require(lu.dtype == b.dtype && !differ(columns_of(lu), left ? rows_of(b) : columns_of(b)), "B ", b, " does not fit LU ", lu);
  Sizes batch = broadcast(batch_of(lu.sizes), batch_of(b.sizes), m);
  return matrix_meta(b, joined(batch, {rows_of(b), columns_of(b)}), left);
}

CallResults solve_by_lu(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  bool left = call.flag(3), back = call.flag(4) != !left;   // from the right is from the left with everything transposed
  Sizes batch = batch_of(meta.sizes);
  Matrices lu(call[0], batch), x(left ? call[2] : turned(call[2]), batch);
  int64_t n = lu.rows, k = x.columns;
  std::vector<int64_t> pivots = elements<int64_t>(expand(call[1], joined(batch, {n})));
  for (int64_t p : pivots) call.require(p >= 1 && p <= n, "pivots: expected numbers from 1 to ", n, ", got ", p);
  for (int64_t b = 0; b < lu.batch; ++b) {
    auto exchange = [&](int64_t i) {
      int64_t other = pivots[static_cast<size_t>(b * n + i)] - 1;
      if (other != i) std::swap_ranges(x[b] + i * k, x[b] + (i + 1) * k, x[b] + other * k);
    };
    if (!back) {
      for (int64_t i = 0; i < n; ++i) exchange(i);
      templates::solve_triangle(lu[b], {.unit = true}, n, x[b], k);
      templates::solve_triangle(lu[b], {.upper = true}, n, x[b], k);
    } else {
      templates::solve_triangle(lu[b], {.upper = true, .transposed = true}, n, x[b], k);
      templates::solve_triangle(lu[b], {.unit = true, .transposed = true}, n, x[b], k);
      for (int64_t i = n; i-- > 0;) exchange(i);
    }
  }
  if (left) return {CallArg(x.tensor(meta))};
  Tensor out = Tensor::empty(meta);
  copy_elements(turned(x.tensor(make_meta(meta.dtype, joined(batch, {SymInt(n), SymInt(k)})))), out);
  return {CallArg(out)};
}

Grads lu_solve_gradient(Vjp& v) {
  bool left = v.flag(3), adjoint = v.flag(4);
  Tensor b = linalg_lu_solve(v[0], v[1], v.grad(0), kw("left", left), kw("adjoint", !adjoint)), x = v.out(0);
  Grads out(3);
  out[2] = b;
  if (v.needs(0)) {
    Tensor of_a = left ? adjoint ? matmul(x, turned(b)) : matmul(b, turned(x)) : adjoint ? matmul(turned(b), x) : matmul(turned(x), b);
    Results plu = lu_unpack(v[0], v[1]);
    Tensor rows = matmul(turned(plu[0]), neg(of_a));
    out[0] = Tensor(tril(matmul(rows, turned(plu[2])), -1)) + Tensor(triu(matmul(turned(plu[1]), rows)));
  }
  return out;
}

enum class QrMode { reduced, complete, r };
QrMode qr_mode(const ArgsView& m) {
  const std::string& mode = m.string(1);
  m.require(mode == "reduced" || mode == "complete" || mode == "r", "mode: expected reduced, complete or r, got ", quoted(mode));
  return mode == "reduced" ? QrMode::reduced : mode == "complete" ? QrMode::complete : QrMode::r;
}

Metas qr_meta(MetaCall& m) {
  require_matrix(m, 0);
  const TensorMeta& a = m.meta(0);
  Sizes batch = batch_of(a.sizes);
  QrMode mode = qr_mode(m);
  SymInt rows = rows_of(a), columns = columns_of(a), k = mode == QrMode::complete ? rows : smaller(rows, columns);
  return {mode == QrMode::r ? like(a, {0}) : matrix_meta(a, joined(batch, {rows, k})), matrix_meta(a, joined(batch, {k, columns}))};
}

CallResults qr(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  QrMode mode = qr_mode(call);
  Matrices a(call[0]);
  int64_t m = a.rows, n = a.columns, k = mode == QrMode::complete ? m : std::min(m, n);
  Matrices q(a.batch, m, k), r(a.batch, k, n);
  std::vector<double> tau(static_cast<size_t>(std::min(m, n)));
  for (int64_t b = 0; b < a.batch; ++b) {
    templates::factor_qr(a[b], m, n, tau.data());
    for (int64_t i = 0; i < k; ++i) {
      q[b][i * k + i] = 1;
      for (int64_t j = i; j < n; ++j) r[b][i * n + j] = a[b][i * n + j];
    }
    templates::apply_reflectors(a[b], m, n, tau.data(), std::min(m, n), false, q[b], k);
  }
  return {CallArg(mode == QrMode::r ? Tensor::empty(metas[0]) : q.tensor(metas[0])), CallArg(r.tensor(metas[1]))};
}

// gA = (gQ + Q sym(triu(gR Rᵀ - Qᵀ gQ))) R⁻ᵀ; columns beyond the square are Q times those of R.
Grads qr_gradient(Vjp& v) {
  QrMode mode = qr_mode(v);
  SymInt m = v[0].size(-2), n = v[0].size(-1);
  v.require(mode != QrMode::r, "mode r has no gradient: Q is needed for it; use reduced");
  v.require(mode != QrMode::complete || !statically_true(sym::gt(m, n)), "mode complete has no gradient where there are more rows than columns");
  Tensor q = v.out(0), r = v.out(1), of_q = v.grad(0), of_r = v.grad(1);
  if (!of_q && !of_r) return {};
  if (!of_q) of_q = zeros_like(q);
  if (!of_r) of_r = zeros_like(r);
  Tensor behind;
  if (statically_true(sym::lt(m, n))) {
    Tensor more = narrow(r, -1, m, n - m), of_more = narrow(of_r, -1, m, n - m);
    behind = matmul(q, of_more);
    of_q = of_q + Tensor(matmul(matmul(q, more), turned(of_more)));
    r = narrow(r, -1, 0, m);
    of_r = narrow(of_r, -1, 0, m);
  }
  Tensor inner = triu(Tensor(matmul(of_r, turned(r))) - Tensor(matmul(turned(q), of_q)));
  inner = inner + turned(inner) - Tensor(diag_embed(diagonal(inner, 0, -2, -1)));
  Tensor a = linalg_solve_triangular(turned(r), of_q + Tensor(matmul(q, inner)), kw("upper", false), kw("left", false));
  return {behind ? Tensor(cat(std::vector<Tensor>{a, behind}, -1)) : a};
}

// Reflectors and their scales; gives how many.
SymInt require_reflectors(const ArgsView& m, size_t a_at, size_t tau_at) {
  require_matrix(m, a_at);
  const TensorMeta &a = m.meta(a_at), &tau = m.meta(tau_at);
  m.require(tau.dtype == a.dtype && tau.rank() + 1 == a.rank() && batch_of(tau.sizes, 1) == batch_of(a.sizes) &&
                !statically_true(sym::gt(tau.sizes.back(), columns_of(a))) && !statically_true(sym::gt(tau.sizes.back(), rows_of(a))),
            "tau: expected a number for each reflector of ", a, ", got ", tau);
  return tau.sizes.back();
}

Metas product_meta(MetaCall& m) {
  require_reflectors(m, 0, 1);
  const TensorMeta& a = m.meta(0);
  m.require(!statically_true(sym::gt(columns_of(a), rows_of(a))), "expected at least as many rows as columns, got ", a);
  return matrix_meta(a, a.sizes);
}

CallResults reflected(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  Matrices a(call[0]), out(a.batch, a.rows, a.columns);
  std::vector<double> tau = elements<double>(call[1]);
  int64_t k = call.meta(1).sizes.back().as_int();
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t i = 0; i < a.columns; ++i) out[b][i * a.columns + i] = 1;
    templates::apply_reflectors(a[b], a.rows, a.columns, tau.data() + b * k, k, false, out[b], a.columns);
  }
  return {CallArg(out.tensor(meta))};
}

// The same step by step: c = (I - tau v vᵀ) c for each reflector, the last one first (or the first one, for the transpose).
Tensor step_by_step(const ArgsView& b, const Tensor& a, const Tensor& tau, Tensor c, bool transposed) {
  SymInt count = tau.size(-1);
  b.require(count.is_int(), "expected a constant number of reflectors, got ", tau.meta());
  Tensor v = Tensor(tril(a, -1)) + unit_matrix(a, a.size(-2), a.size(-1));
  for (int64_t step = 0; step < count.as_int(); ++step) {
    int64_t j = transposed ? step : count.as_int() - 1 - step;
    Tensor column = narrow(v, -1, j, 1), scale = unsqueeze(narrow(tau, -1, j, 1), -1);
    c = c - Tensor(matmul(column * scale, matmul(turned(column), c)));
  }
  return c;
}

Results stepwise_product(Build& b) {
  require_reflectors(b, 0, 1);
  Tensor a = b[0];
  return one(column_major_copy(step_by_step(b, a, b[1], expand(unit_matrix(a, a.size(-2), a.size(-1)), a.sizes()), false)));
}

Metas applied_meta(MetaCall& m) {
  require_reflectors(m, 0, 1);
  const TensorMeta &a = m.meta(0), &c = m.meta(2);
  m.require(c.dtype == a.dtype && c.rank() == a.rank() && batch_of(c.sizes) == batch_of(a.sizes) && !differ(rows_of(a), m.flag(3) ? rows_of(c) : columns_of(c)),
            "the matrices ", c, " do not fit the reflectors ", a);
  return matrix_meta(c, c.sizes);
}

CallResults apply(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  bool left = call.flag(3), transposed = call.flag(4) != !left;
  Matrices a(call[0]), c(left ? call[2] : turned(call[2]));
  std::vector<double> tau = elements<double>(call[1]);
  int64_t k = call.meta(1).sizes.back().as_int();
  for (int64_t b = 0; b < a.batch; ++b) templates::apply_reflectors(a[b], a.rows, a.columns, tau.data() + b * k, k, transposed, c[b], c.columns);
  if (left) return {CallArg(c.tensor(meta))};
  Tensor out = Tensor::empty(meta);
  copy_elements(turned(c.tensor(make_meta(meta.dtype, joined(batch_of(meta.sizes), {SymInt(c.rows), SymInt(c.columns)})))), out);
  return {CallArg(out)};
}

}  // namespace

void register_linalg_factor(Registry& ops) {
  ops.add(lu_factor_ex, {
      .schema = "linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
      .meta = [](MetaCall& m) { return lu_meta(m, 1); },
      .vjp = {{"A, pivot, check_errors", factor_gradient}},
      .kernel = [](ArgsView& call) { return factor(call, 2); },
  });
  ops.add({
      .schema = "linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results all = lu_factor_ex(b["A"], kw("pivot", b.arg("pivot")), kw("check_errors", true));
        return {{CallArg(all[0]), CallArg(all[1])}};
      },
  });
  ops.add({
      .schema = "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True) -> (Tensor LU, Tensor pivots, Tensor info)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return lu_factor_ex(b["self"], kw("pivot", b.arg("pivot")), kw("check_errors", b.arg("check_errors"))); },
  });
  ops.add({
      .schema = "linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
      .meta = [](MetaCall& m) {
        lu_meta(m, 1);
        return unpacked_meta(m.meta("A"), true, true);
      },
      .vjp = {{"A", [](Vjp& v) { return lu_gradient(v.out(), v.out(1), v.out(2), v.grad(1), v.grad(2)); }}},
      .kernel = [](ArgsView& call) {
        std::vector<TensorMeta> metas = own_metas(call);
        Lu f(call[0]);
        return unpacked(call, metas, f.lu, f.pivots, true, true);
      },
  });
  ops.add(lu_unpack, {
      .schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
      .meta = [](MetaCall& m) {
        require_matrix(m, 0);
        const TensorMeta& a = m.meta("LU_data");
        Sizes sizes = joined(batch_of(a.sizes), {smaller(rows_of(a), columns_of(a))});
        m.require(!m.flag("unpack_pivots") || (m.meta("LU_pivots").dtype == DType::i32 && m.meta("LU_pivots").sizes == sizes), "LU_pivots: expected ", make_meta(DType::i32, sizes), ", got ", m.meta("LU_pivots"));
        return unpacked_meta(a, m.flag("unpack_data"), m.flag("unpack_pivots"));
      },
      .vjp = {{"LU_data, LU_pivots, unpack_data, unpack_pivots", [](Vjp& v) -> Grads {
        SymInt m = v["LU_data"].size(-2), n = v["LU_data"].size(-1), k = smaller(m, n);
        Tensor l = v.grad(1) ? Tensor(tril(v.grad(1), -1)) : Tensor(), u = v.grad(2) ? Tensor(triu(v.grad(2))) : Tensor();
        if (l && !(k == n)) l = constant_pad_nd(l, Sizes{0, n - k}, 0.0);
        if (u && !(k == m)) u = constant_pad_nd(u, Sizes{0, 0, 0, m - k}, 0.0);
        return {l && u ? l + u : l ? l : u};
      }}},
      .kernel = [](ArgsView& call) {
        std::vector<TensorMeta> metas = own_metas(call);
        Matrices lu(call[0]);
        std::vector<int64_t> pivots = call.flag("unpack_pivots") ? elements<int64_t>(call[1]) : std::vector<int64_t>();
        return unpacked(call, metas, lu, pivots, call.flag("unpack_data"), call.flag("unpack_pivots"));
      },
  });
  ops.add(linalg_lu_solve, {
      .schema = "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor",
      .meta = lu_solve_meta,
      .vjp = {{"LU, pivots, B, left, adjoint", lu_solve_gradient}},
      .kernel = solve_by_lu,
  });
  ops.add({
      .schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return linalg_lu_solve(b["LU_data"], b["LU_pivots"], b["self"]); },
  });
  ops.add({
      .schema = "linalg_qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
      .meta = qr_meta,
      .vjp = {{"A, mode", qr_gradient}},
      .kernel = qr,
  });
  ops.add({
      .schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
      .meta = [](MetaCall& m) -> Metas {
        require_matrix(m, 0);
        const TensorMeta& a = m.meta("self");
        return {matrix_meta(a, a.sizes), like(a, joined(batch_of(a.sizes), {smaller(rows_of(a), columns_of(a))}))};
      },
      .kernel = [](ArgsView& call) -> CallResults {
        std::vector<TensorMeta> metas = own_metas(call);
        Matrices a(call[0]);
        int64_t k = std::min(a.rows, a.columns);
        std::vector<double> tau(static_cast<size_t>(a.batch * k));
        for (int64_t b = 0; b < a.batch; ++b) templates::factor_qr(a[b], a.rows, a.columns, tau.data() + b * k);
        return {CallArg(a.tensor(metas[0])), CallArg(made(metas[1], tau))};
      },
  });
  ops.add(householder_product, {
      .schema = "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
      .meta = product_meta,
      .for_grad = stepwise_product,
      .kernel = reflected,
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
        require_reflectors(b, 0, 1);
        bool left = b.flag("left"), back = b.flag("transpose") != !left;
        Tensor out = step_by_step(b, b["self"], b["input2"], left ? b["input3"] : turned(b["input3"]), back);
        return one(column_major_copy(left ? out : turned(out)));
      },
      .kernel = apply,
  });
}

}  // namespace tenon
