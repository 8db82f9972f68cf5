#include "tenon/ops/linalg.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/triangular.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/matmul.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/templates/matrix.h"

namespace tenon {

Handle linalg_inv_ex, linalg_solve_triangular, linalg_solve_ex;
static Handle cholesky_ex, determinant, sign_and_log, solve_with_factors, cholesky_solve;

Matrices::Matrices(const Tensor& x) : Matrices(x, batch_of(x.sizes())) {}

Matrices::Matrices(const Tensor& x, const Sizes& batch_sizes) {
  rows = x.size(-2).as_int();
  columns = x.size(-1).as_int();
  batch = count(batch_sizes).as_int();
  values = elements<double>(expand(x, joined(batch_sizes, {x.size(-2), x.size(-1)})));
}

Sizes batch_of(const Sizes& sizes, size_t drop) { return Sizes(std::span<const SymInt>(sizes.begin(), sizes.size() - drop)); }

Sizes joined(Sizes batch, std::initializer_list<SymInt> rest) {
  for (SymInt s : rest) batch.push_back(s);
  return batch;
}

TensorMeta matrix_meta(const TensorMeta& x, Sizes sizes, bool column_major) {
  TensorMeta out = like(x, std::move(sizes));
  size_t n = out.rank();
  if (!column_major || n < 2) return out;
  Sizes swapped = out.sizes;
  std::swap(swapped[n - 1], swapped[n - 2]);
  out.strides = contiguous_strides(swapped);
  std::swap(out.strides[n - 1], out.strides[n - 2]);
  return out;
}

bool differ(SymInt a, SymInt b) { return a.is_int() && b.is_int() && a != b; }

void require_matrix(const ArgsView& m, size_t at, bool square) {
  const TensorMeta& a = m.meta(at);
  m.require(a.rank() >= 2 && (a.dtype == DType::f32 || a.dtype == DType::f64), m.op.schema.args[at].name, ": expected matrices of f32 or f64, got ", a);
  if (square) m.require(!differ(a.sizes[a.rank() - 1], a.sizes[a.rank() - 2]), m.op.schema.args[at].name, ": expected square matrices, got ", a);
}

Tensor unit_matrix(const Tensor& like, SymInt rows, SymInt columns) {
  return eye(rows, columns, kw("dtype", like.dtype()), kw("device", like.meta().device));
}

Tensor column_major_copy(const Tensor& x) { return turned(clone(turned(x), kw("memory_format", MemoryFormat::contiguous))); }

namespace {

// What a call says of matrices that cannot be factored: a number each, 0 where all is well.
CallArg infos(const ArgsView& call, const TensorMeta& meta, const std::vector<int64_t>& info, bool check, const char* trouble) {
  for (size_t i = 0; check && i < info.size(); ++i) call.require(info[i] == 0, "matrix ", i, trouble, info[i]);
  return CallArg(made(meta, info));
}
constexpr const char* not_positive = " is not positive definite: its leading minor of order ";
constexpr const char* singular = " is singular: no pivot in column ";

CallResults factor_cholesky(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  bool upper = call.flag(1);
  Matrices a(upper ? turned(call[0]) : call[0]);
  std::vector<int64_t> info;
  for (int64_t i = 0; i < a.batch; ++i) info.push_back(templates::factor_cholesky(a[i], a.rows));
  Tensor l = a.tensor(like(metas[0], metas[0].sizes)), out = Tensor::empty(metas[0]);
  copy_elements(upper ? turned(l) : l, out);
  return {CallArg(out), infos(call, metas[1], info, call.flag(2), not_positive)};
}

// Φ halves the diagonal of a lower triangle: gA = L⁻ᵀ Φ(Lᵀ gL) L⁻¹, made symmetric.
Tensor cholesky_gradient(const Tensor& grad, const Tensor& factor, bool upper) {
  Tensor l = upper ? turned(factor) : factor, g = upper ? turned(grad) : grad;
  Tensor phi = tril(matmul(turned(l), g));
  phi = phi - Tensor(diag_embed(Tensor(diagonal(phi, 0, -2, -1)) * 0.5));
  Tensor left = linalg_solve_triangular(turned(l), phi, kw("upper", true));
  Tensor a = linalg_solve_triangular(l, left, kw("upper", false), kw("left", false));
  return (a + turned(a)) * 0.5;
}

CallResults invert(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  Matrices a(call[0]), out(a.batch, a.rows, a.rows);
  std::vector<int64_t> info;
  std::vector<int32_t> pivots(static_cast<size_t>(a.rows));
  for (int64_t b = 0; b < a.batch; ++b) {
    info.push_back(templates::factor_lu(a[b], a.rows, a.rows, pivots.data()));
    std::vector<int64_t> order(static_cast<size_t>(a.rows));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
    for (size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[static_cast<size_t>(pivots[i] - 1)]);
    for (size_t i = 0; i < order.size(); ++i) out[b][static_cast<int64_t>(i) * a.rows + order[i]] = 1;
    templates::solve_triangle(a[b], {.unit = true}, a.rows, out[b], a.rows);
    templates::solve_triangle(a[b], {.upper = true}, a.rows, out[b], a.rows);
  }
  CallArg checked = infos(call, metas[1], info, call.flag(1), singular);
  return {CallArg(out.tensor(metas[0])), checked};
}

// LU and pivots of matrices, or of their transposes.
struct Factors {
  Matrices lu;
  std::vector<int64_t> pivots, info;
  Factors(const Tensor& a, bool transposed) : lu(transposed ? turned(a) : a) {
    std::vector<int32_t> own(static_cast<size_t>(lu.rows));
    for (int64_t b = 0; b < lu.batch; ++b) {
      info.push_back(templates::factor_lu(lu[b], lu.rows, lu.rows, own.data()));
      pivots.insert(pivots.end(), own.begin(), own.end());
    }
  }
  double sign(int64_t b) {
    double s = 1;
    for (int64_t i = 0; i < lu.rows; ++i) {
      double d = lu[b][i * lu.rows + i];
      if (pivots[static_cast<size_t>(b * lu.rows + i)] != i + 1) s = -s;
      s *= d > 0 ? 1 : d < 0 ? -1 : d;   // NaN stays
    }
    return s;
  }
};

Metas determinant_meta(MetaCall& m, bool log) {
  require_matrix(m, 0, true);
  const TensorMeta& a = m.meta(0);
  TensorMeta one = like(a, batch_of(a.sizes)), lu = matrix_meta(a, a.sizes), pivots = like(a, batch_of(a.sizes, 1), DType::i32);
  if (log) return {one, one, lu, pivots};
  return {one, lu, pivots};
}

CallResults find_determinant(ArgsView& call, bool log) {
  std::vector<TensorMeta> metas = own_metas(call);
  Factors f(call[0], factors_transpose(call.meta(0)));
  std::vector<double> first, second;
  for (int64_t b = 0; b < f.lu.batch; ++b) {
    double product = f.sign(b), logs = 0;
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
Tensor spread_inverse(const Tensor& a, Tensor lu, const Tensor& pivots, const Tensor& d, bool close_by) {
  if (close_by) {
    double eps = a.dtype() == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
    lu = lu + Tensor(diag_embed(to(eq(diagonal(lu, 0, -2, -1), 0.0), a.dtype()) * eps));
  }
  Tensor right = diag_embed(expand(unsqueeze(d, -1), batch_of(a.sizes(), 1)));
  return linalg_lu_solve(lu, pivots, right, kw("adjoint", !factors_transpose(a.meta())));
}

bool is_vector(const Sizes& a, const Sizes& b) { return b.size() == 1 || (a.size() == b.size() + 1 && batch_of(a, 1) == b); }

Metas solve_meta(MetaCall& m) {
  require_matrix(m, 0, true);
  const TensorMeta &a = m.meta(0), &b = m.meta(1);
  m.require(b.rank() >= 1 && b.dtype == a.dtype, "B: expected a tensor of dtype ", a.dtype, " with dimensions, got ", b);
  bool vector = is_vector(a.sizes, b.sizes), left = m.flag(2);
  m.require(left || !vector, "expected a matrix on the left of A, got ", b);
  Sizes sizes = vector ? joined(b.sizes, {1}) : b.sizes;
  SymInt n = a.sizes.back(), meets = left ? sizes[sizes.size() - 2] : sizes.back();
  m.require(!differ(n, meets), "B ", b, " does not fit A ", a);
  Sizes batch = broadcast(batch_of(a.sizes), batch_of(sizes), m);
  sizes = vector ? joined(batch, {sizes[sizes.size() - 2]}) : joined(batch, {sizes[sizes.size() - 2], sizes.back()});
  return {matrix_meta(a, sizes, left), matrix_meta(a, a.sizes), like(a, batch_of(a.sizes, 1), DType::i32), like(a, batch_of(a.sizes), DType::i32)};
}

CallResults solve(ArgsView& call) {
  std::vector<TensorMeta> metas = own_metas(call);
  Tensor a = call[0], b = call[1];
  bool vector = is_vector(a.sizes(), b.sizes());
  Factors f(a, false);
  CallArg info = infos(call, metas[3], f.info, call.flag(3), singular);
  Tensor lu = f.lu.tensor(metas[1]), pivots = made(metas[2], f.pivots);
  Tensor x = linalg_lu_solve(lu, pivots, vector ? Tensor(unsqueeze(b, -1)) : b, kw("left", call.flag(2)));
  Tensor out = Tensor::empty(metas[0]);
  copy_elements(vector ? Tensor(squeeze_dim(x, -1)) : x, out);
  return {CallArg(out), CallArg(lu), CallArg(pivots), info};
}

Grads solve_gradient(Vjp& v) {
  Tensor a = v[0], g = v.grad(0), x = v.out(0);
  bool vector = is_vector(a.sizes(), v[1].sizes()), left = v.flag(2);
  if (!g) return {};
  if (vector) {
    g = unsqueeze(g, -1);
    x = unsqueeze(x, -1);
  }
  Tensor b = linalg_lu_solve(v.out(1), v.out(2), g, kw("left", left), kw("adjoint", true));
  Tensor of_a = left ? neg(matmul(b, turned(x))) : neg(matmul(turned(x), b));
  return {of_a, vector ? Tensor(squeeze_dim(b, -1)) : b};
}

Metas triangle_meta(MetaCall& m) {
  require_matrix(m, 0, true);
  require_matrix(m, 1);
  const TensorMeta &a = m.meta(0), &b = m.meta(1);
  m.require(a.dtype == b.dtype && !differ(a.sizes.back(), b.sizes[b.rank() - (m.flag(3) ? 2 : 1)]), "B ", b, " does not fit A ", a);
  Sizes batch = broadcast(batch_of(a.sizes), batch_of(b.sizes), m);
  return matrix_meta(b, joined(batch, {b.sizes[b.rank() - 2], b.sizes.back()}));
}

CallResults solve_triangle(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  bool left = call.flag(3);
  Sizes batch = batch_of(meta.sizes);
  Matrices a(call[0], batch), b(left ? call[1] : turned(call[1]), batch);
  for (int64_t i = 0; i < a.batch; ++i)
    templates::solve_triangle(a[i], {.upper = call.flag(2), .unit = call.flag(4), .transposed = !left}, a.rows, b[i], b.columns);
  if (left) return {CallArg(b.tensor(meta))};
  Tensor out = Tensor::empty(meta);
  copy_elements(turned(b.tensor(make_meta(meta.dtype, joined(batch, {SymInt(b.rows), SymInt(b.columns)})))), out);
  return {CallArg(out)};
}

Grads triangle_gradient(Vjp& v) {
  bool upper = v.flag(2), left = v.flag(3), unit = v.flag(4);
  Tensor b = linalg_solve_triangular(turned(v[0]), v.grad(0), kw("upper", !upper), kw("left", left), kw("unitriangular", unit));
  Grads out(2);
  out[1] = b;
  if (v.needs(0)) {
    Tensor a = left ? neg(matmul(b, turned(v.out(0)))) : neg(matmul(turned(v.out(0)), b));
    out[0] = upper ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0);
  }
  return out;
}

// With both factors of A = L Lᵀ, or Uᵀ U.
Results solved_by_cholesky(const ArgsView& b, const Tensor& right, const Tensor& factor, bool upper) {
  b.require(factor.rank() >= 2 && right.rank() >= 2 && !differ(factor.size(-1), right.size(-2)), "expected matrices that fit, got ", right.meta(),
            " and ", factor.meta());
  Tensor l = upper ? turned(factor) : factor, u = upper ? factor : turned(factor);
  Tensor half = linalg_solve_triangular(l, right, kw("upper", false));
  return linalg_solve_triangular(u, half, kw("upper", true));
}

Tensor factor_gradient(const Tensor& of_product, const Tensor& factor, bool upper) {
  return neg(upper ? matmul(factor, of_product) : matmul(of_product, factor));
}

}  // namespace

void register_linalg(Registry& ops) {
  ops.add(cholesky_ex, {
      .schema = "linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
      .meta = [](MetaCall& m) -> Metas {
        require_matrix(m, 0, true);
        return {matrix_meta(m.meta("self"), m.meta("self").sizes), like(m.meta("self"), batch_of(m.meta("self").sizes), DType::i32)};
      },
      .vjp = {{"self", [](Vjp& v) { return cholesky_gradient(v.grad(), v.out(), v.flag("upper")); }}},
      .kernel = factor_cholesky,
  });
  ops.add({
      .schema = "linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(cholesky_ex(b["self"], kw("upper", b.arg("upper")), kw("check_errors", true))[0]); },
  });
  ops.add(cholesky_solve, {
      .schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return solved_by_cholesky(b, b["self"], b["input2"], b.flag("upper")); },
      .vjp = {{"self, input2, upper", [](Vjp& v) -> Grads {   // of the factor: not only of its triangle, as in PyTorch
        Tensor b = cholesky_solve(v.grad(0), v["input2"], v.arg("upper")), both = matmul(b, turned(v.out(0)));
        return {b, factor_gradient(both + turned(both), v["input2"], v.flag("upper"))};
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
      .decompose = [](Build& b) {
        require_matrix(b, 0, true);
        return solved_by_cholesky(b, unit_matrix(b["self"], b["self"].size(-1), b["self"].size(-1)), b["self"], b.flag("upper"));
      },
      .vjp = {{"self, upper", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v.out(0);
        return {factor_gradient(matmul(x, matmul(g + turned(g), x)), v["self"], v.flag("upper"))};
      }}},
  });
  ops.add(linalg_inv_ex, {
      .schema = "linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
      .meta = [](MetaCall& m) -> Metas {
        require_matrix(m, 0, true);
        return {matrix_meta(m.meta("A"), m.meta("A").sizes), like(m.meta("A"), batch_of(m.meta("A").sizes), DType::i32)};
      },
      .vjp = {{"A, check_errors", [](Vjp& v) -> Grads {
        Tensor back = turned(v.out(0));
        return {neg(matmul(back, matmul(v.grad(0), back)))};
      }}},
      .kernel = invert,
  });
  for (const char* schema : {"linalg_inv(Tensor A) -> Tensor", "inverse(Tensor self) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .decompose = [](Build& b) { return one(linalg_inv_ex(b[0], kw("check_errors", true))[0]); },
    });
  ops.add(determinant, {
      .schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
      .meta = [](MetaCall& m) { return determinant_meta(m, false); },
      .vjp = {{"A", [](Vjp& v) { return spread_inverse(v["A"], v.out(1), v.out(2), v.grad() * v.out(), true); }}},
      .kernel = [](ArgsView& call) { return find_determinant(call, false); },
  });
  for (const char* schema : {"linalg_det(Tensor A) -> Tensor", "det(Tensor self) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .decompose = [](Build& b) { return one(determinant(b[0])[0]); },
    });
  ops.add(sign_and_log, {
      .schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)",
      .meta = [](MetaCall& m) { return determinant_meta(m, true); },
      .vjp = {{"A", [](Vjp& v) { return v.grad(1) ? Grad(spread_inverse(v["A"], v.out(2), v.out(3), v.grad(1), false)) : Grad(); }}},
      .kernel = [](ArgsView& call) { return find_determinant(call, true); },
  });
  for (const char* schema : {"linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .decompose = [](Build& b) -> Results {
          Results all = sign_and_log(b[0]);
          return {{CallArg(all[0]), CallArg(all[1])}};
        },
    });
  ops.add({
      .schema = "logdet(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results all = sign_and_log(b["self"]);
        return where(lt(all[0], 0.0), std::numeric_limits<double>::quiet_NaN(), all[1]);
      },
  });
  ops.add(solve_with_factors, {
      .schema = "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor LU, Tensor pivots, Tensor info)",
      .meta = solve_meta,
      .vjp = {{"A, B, left, check_errors", solve_gradient}},
      .kernel = solve,
  });
  ops.add(linalg_solve_ex, {
      .schema = "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Results all = solve_with_factors(b["A"], b["B"], kw("left", b.arg("left")), kw("check_errors", b.arg("check_errors")));
        return {{CallArg(all[0]), CallArg(all[3])}};
      },
  });
  ops.add({
      .schema = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(solve_with_factors(b["A"], b["B"], kw("left", b.arg("left")), kw("check_errors", true))[0]); },
  });
  ops.add(linalg_solve_triangular, {
      .schema = "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
      .meta = triangle_meta,
      .vjp = {{"self, B, upper, left, unitriangular", triangle_gradient}},
      .kernel = solve_triangle,
  });
  ops.add({
      .schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor "
                "cloned_coefficient)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        require_matrix(b, 0);
        require_matrix(b, 1, true);
        bool upper = b.flag("upper"), back = b.flag("transpose");
        Tensor x = linalg_solve_triangular(back ? turned(b["A"]) : b["A"], b["self"], kw("upper", upper != back), kw("unitriangular", b.arg("unitriangular")));
        Tensor wide = expand(b["A"], joined(batch_of(x.sizes()), {b["A"].size(-2), b["A"].size(-1)}));
        return {{CallArg(x), CallArg(column_major_copy(wide))}};
      },
  });
  ops.add({
      .schema = "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
      .traits = {.asserts = true},
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("info").dtype == DType::i32, "info: expected i32, got ", m.meta("info"));
        return {};
      },
      .kernel = [](ArgsView& call) -> CallResults {
        std::vector<int64_t> info = elements<int64_t>(call[0]);
        for (size_t i = 0; i < info.size(); ++i)
          call.require(info[i] == 0, quoted(call.string("api_name")), " failed for matrix ", i, " of the batch with error ", info[i]);
        return {};
      },
  });
}

}  // namespace tenon
