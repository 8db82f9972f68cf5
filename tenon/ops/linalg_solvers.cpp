// Systems of linear equations: exact, triangular, in the least squares.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_complex.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/triangular.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle linalg_solve_triangular;
static Handle solve_with_factors, solve_ex;

namespace {

bool is_vector(const Sizes& a, const Sizes& b) {
  return b.size() == 1 || (a.size() == b.size() + 1 && batch_of(a, 1) == b);
}

Metas solve_meta(MetaCall& m) {
  require_matrix(m, "A", true);
  const TensorMeta &a = m.meta("A"), &b = m.meta("B");
  m.require(b.rank() >= 1 && b.dtype == a.dtype, "B: expected a tensor of dtype ", a.dtype, " with dimensions, got ",
            b);
  bool vector = is_vector(a.sizes, b.sizes), left = m.flag("left");
  m.require(left || !vector, "expected a matrix on the left of A, got ", b);
  Sizes sizes = vector ? joined(b.sizes, {1}) : b.sizes;
  SymInt n = a.sizes.back(), meets = left ? sizes[sizes.size() - 2] : sizes.back();
  m.require(!differ(n, meets), "B ", b, " does not fit A ", a);
  Sizes batch = broadcast(batch_of(a.sizes), batch_of(sizes), m);
  sizes = vector ? joined(batch, {sizes[sizes.size() - 2]}) : joined(batch, {sizes[sizes.size() - 2], sizes.back()});
  return {matrix_meta(a, sizes, left), matrix_meta(a, a.sizes), like(a, batch_of(a.sizes, 1), DType::i32),
          like(a, batch_of(a.sizes), DType::i32)};
}

Results solve(Build& b) {
  Tensor a = b["A"], right = b["B"];
  MetaCall checked(b.op, b.args);
  solve_meta(checked);
  bool vector = is_vector(a.sizes(), right.sizes());
  Results factors = linalg_lu_factor_ex(a, kw("check_errors", b.arg("check_errors")));
  Tensor x = linalg_lu_solve(factors[0], factors[1], vector ? unsqueeze(right, -1) : right, kw("left", b.arg("left")));
  return {{CallArg(vector ? Tensor(squeeze_dim(x, -1)) : x), CallArg(factors[0]), CallArg(factors[1]),
           CallArg(factors[2])}};
}

// The solution and info.
Results solve_complex(const Build& b, const CallArg& check_errors) {
  require_matrix(b, "A", true, Parts::real_or_complex);
  Tensor a = b["A"], right = b["B"];
  b.require(right.rank() >= 1 && right.dtype() == a.dtype(), "B: expected a tensor of dtype ", a.dtype(),
            " with dimensions, got ", right.meta());
  bool vector = is_vector(a.sizes(), right.sizes());
  Results all = solve_ex(embedded(a), embedded(vector ? Tensor(unsqueeze(right, -1)) : right),
                         kw("left", b.arg("left")), kw("check_errors", check_errors));
  Tensor x = extracted(all[0]);
  return {{CallArg(vector ? Tensor(squeeze_dim(x, -1)) : x), CallArg(info_of_blocks(all[1]))}};
}

// What is not of the triangle does not count.
Results solve_complex_triangle(Build& b) {
  require_matrix(b, "self", true, Parts::real_or_complex);
  require_matrix(b, "B", false, Parts::real_or_complex);
  Tensor a = b["self"];
  bool unit = b.flag("unitriangular");
  Tensor triangle = b.flag("upper") ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0);
  if (unit) triangle = triangle + unit_matrix(real(a), a.size(-2), a.size(-1));
  return one(extracted(solve_ex(embedded(triangle), embedded(b["B"]), kw("left", b.arg("left")))[0]));
}

Grads solve_gradient(Vjp& v) {
  Tensor a = v["A"], g = v.grad(), x = v.out();
  bool vector = is_vector(a.sizes(), v["B"].sizes()), left = v.flag("left");
  if (!g) return {};
  if (vector) {
    g = unsqueeze(g, -1);
    x = unsqueeze(x, -1);
  }
  Tensor b = linalg_lu_solve(v.out(1), v.out(2), g, kw("left", left), kw("adjoint", true));
  Tensor of_a = left ? neg(matmul(b, transposed(x))) : neg(matmul(transposed(x), b));
  return {of_a, vector ? squeeze_dim(b, -1) : b};
}

Metas triangle_meta(MetaCall& m) {
  require_matrix(m, "self", true);
  require_matrix(m, "B");
  const TensorMeta &a = m.meta("self"), &b = m.meta("B");
  m.require(a.dtype == b.dtype && !differ(a.sizes.back(), b.sizes[b.rank() - (m.flag("left") ? 2 : 1)]), "B ", b,
            " does not fit A ", a);
  Sizes batch = broadcast(batch_of(a.sizes), batch_of(b.sizes), m);
  return matrix_meta(b, joined(batch, {b.sizes[b.rank() - 2], b.sizes.back()}));
}

Grads triangle_gradient(Vjp& v) {
  bool upper = v.flag("upper"), left = v.flag("left"), unit = v.flag("unitriangular");
  Tensor x = v.out(), b = linalg_solve_triangular(transposed(v["self"]), v.grad(), kw("upper", !upper),
                                                  kw("left", left), kw("unitriangular", unit));
  Tensor a = left ? neg(matmul(b, transposed(x))) : neg(matmul(transposed(x), b));
  return {upper ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0), b};
}

struct Driver {
  bool full_rank = false, ranks = true, values = false;
};

Driver driver_of(const ArgsView& m) {
  if (!m.given("driver")) return {};
  const std::string& name = m.string("driver");
  m.require(name == "gels" || name == "gelsy" || name == "gelsd" || name == "gelss",
            "driver: expected gels, gelsy, gelsd or gelss, got ", quoted(name));
  return {name == "gels", name != "gels", name == "gelsd" || name == "gelss"};
}

bool is_one_column(const Sizes& a, const Sizes& b) { return a.size() == b.size() + 1 && batch_of(a, 1) == b; }

Metas least_squares_meta(MetaCall& m) {
  require_matrix(m, "self");
  const TensorMeta &a = m.meta("self"), &b = m.meta("b");
  bool vector = is_one_column(a.sizes, b.sizes);
  Sizes right = vector ? joined(b.sizes, {1}) : b.sizes, batch = batch_of(a.sizes);
  m.require(b.dtype == a.dtype && right.size() == a.rank() && batch_of(right) == batch &&
                !differ(right[right.size() - 2], rows_of(a)),
            "b: expected as many rows as ", a, " has, got ", b);
  Driver driver = driver_of(m);
  SymInt rows = rows_of(a), columns = columns_of(a), k = right.back();
  TensorMeta tall = matrix_meta(a, joined(batch, {larger(rows, columns), k})), solution = tall;
  solution.sizes[solution.rank() - 2] = columns;
  if (vector) {
    solution.sizes.pop_back();
    solution.strides.pop_back();
  }
  bool over = statically_true(sym::gt(rows, columns)) && (driver.full_rank || driver.values);
  return {solution, over ? like(a, vector ? batch : joined(batch, {k})) : like(a, {0}),
          like(a, driver.ranks ? batch : Sizes{0}, DType::i64),
          driver.values ? like(a, joined(batch, {smaller(rows, columns)})) : like(a, {0})};
}

// X = A⁺ B; the residuals |A X - B|² are least in X.
Grads least_squares_gradient(Vjp& v) {
  Tensor g = v.grad(), of_residuals = v.grad(1), a = v["self"], b = v["b"], x = v.out(), of_a, of_b;
  if (of_residuals && of_residuals.sizes() == Sizes{0}) of_residuals = none;  // there are none
  if (!g && !of_residuals) return {};
  bool vector = is_one_column(a.sizes(), b.sizes());
  if (vector) {
    if (g) g = unsqueeze(g, -1);
    if (of_residuals) of_residuals = unsqueeze(of_residuals, -1);
    b = unsqueeze(b, -1);
    x = unsqueeze(x, -1);
  }
  if (g) {
    Tensor p = linalg_pinv(a);
    of_b = matmul(transposed(p), g);
    of_a = pinv_gradient(matmul(g, transposed(b)), p, a);
  }
  if (of_residuals) {
    Tensor off = (matmul(a, x) - b) * unsqueeze(of_residuals, -2) * 2.0, part = matmul(off, transposed(x));
    of_a = of_a ? of_a + part : part;
    of_b = of_b ? of_b - off : neg(off);
  }
  return {of_a, vector && of_b ? squeeze_dim(of_b, -1) : of_b};
}

Results tensor_solve(Build& b) {
  Tensor a = b["self"], right = b["other"];
  if (b.given("dims")) {
    Sizes from = b.ints("dims"), to;
    for (size_t i = 0; i < from.size(); ++i) to.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(from.size()));
    a = movedim(a, from, to);
  }
  b.require(right.rank() <= a.rank(), "expected at most as many dimensions as ", a.meta(), " has, got ", right.meta());
  Sizes sizes(std::span<const SymInt>(a.sizes().begin() + right.rank(), a.rank() - right.rank()));
  SymInt n = count(sizes), rows = count(batch_of(a.sizes(), sizes.size()));
  b.require(!differ(n, rows) && !differ(right.numel(), rows), "expected as many equations as unknowns, got ", a.meta(),
            " and ", right.meta());
  Tensor x = solve_ex(reshape(a, Sizes{n, n}), reshape(right, Sizes{n}), kw("check_errors", true))[0];
  return reshape(x, sizes);
}

}  // namespace

void register_linalg_solvers(Registry& ops) {
  ops.add(solve_with_factors,
          {
              .schema = "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor "
                        "result, Tensor LU, Tensor pivots, Tensor info)",
              .kind = OpKind::composite,
              .decompose = solve,
              .vjp = {{"A, B", solve_gradient}},
          });
  ops.add(solve_ex, {
                        .schema = "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
                                  "(Tensor result, Tensor info)",
                        .kind = OpKind::composite,
                        .decompose = [](Build& b) -> Results {
                          Results all = solve_with_factors(b["A"], b["B"], kw("left", b.arg("left")),
                                                           kw("check_errors", b.arg("check_errors")));
                          return {{CallArg(all[0]), CallArg(all[3])}};
                        },
                        .complex = [](Build& b) { return solve_complex(b, b.arg("check_errors")); },
                    });
  ops.add({
      .schema = "linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return one(solve_with_factors(b["A"], b["B"], kw("left", b.arg("left")), kw("check_errors", true))[0]);
          },
      .complex = [](Build& b) { return one(solve_complex(b, true)[0]); },
  });
  ops.add(linalg_solve_triangular, {
                                       .schema = "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool "
                                                 "left=True, bool unitriangular=False) -> Tensor",
                                       .meta = triangle_meta,
                                       .vjp = {{"self, B", triangle_gradient}},
                                       .host = {"linalg_solve_triangular"},
                                       .complex = solve_complex_triangle,
                                   });
  ops.add({
      .schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
                "unitriangular=False) -> (Tensor solution, Tensor "
                "cloned_coefficient)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        require_matrix(b, "self");
        require_matrix(b, "A", true);
        bool upper = b.flag("upper"), back = b.flag("transpose");
        Tensor x = linalg_solve_triangular(back ? transposed(b["A"]) : b["A"], b["self"], kw("upper", upper != back),
                                           kw("unitriangular", b.arg("unitriangular")));
        Tensor wide = expand(b["A"], joined(batch_of(x.sizes()), {b["A"].size(-2), b["A"].size(-1)}));
        return {{CallArg(x), CallArg(column_major_copy(wide))}};
      },
  });
  ops.add({
      .schema = "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
      .traits = {.effects = true},
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("info").dtype == DType::i32, "info: expected i32, got ", m.meta("info"));
        return {};
      },
      .host = {"linalg_check_errors", {"{api_name} failed for matrix {} of the batch with error {}"}},
  });
  ops.add({
      .schema = "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
                "Tensor residuals, Tensor rank, Tensor "
                "singular_values)",
      .meta = least_squares_meta,
      .vjp = {{"self, b", least_squares_gradient}},
      .host = {"linalg_lstsq", {without_values}},
  });
  ops.add({
      .schema = "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = tensor_solve,
  });
}

}  // namespace tenon
