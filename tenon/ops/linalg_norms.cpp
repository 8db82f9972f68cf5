#include "tenon/ops/linalg_norms.h"

#include <cmath>
#include <functional>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle linalg_vector_norm, linalg_matrix_norm, linalg_matrix_norm_str;

namespace {

using loop::Compute;

Metas norm_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  DType dtype = m.dtype("dtype").value_or(x.dtype);
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x, "; convert it first");
  m.require(is_floating(dtype), "dtype: expected a floating point dtype, got ", dtype);
  Reduced over(m, x.sizes);
  double p = m.number("ord");
  if (p < 0 || std::isinf(p)) require_elements(m, x.sizes, over);
  return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim), dtype);
}

void lower_norm(Lower& l) {
  Ref x = l["self"];
  Reduced over(l, x.sizes());
  Sizes extents = extents_of(x.sizes(), over.dims);
  Compute type = loop::compute_of(l.out().dtype());
  double p = l.number("ord");
  l.tensor([&](const Index& i) {
    auto element = [&](const Index& r) { return cast(x.at(over.at(i, r)), type); };
    if (std::isinf(p))
      return l.reduce(p > 0 ? loop::Combine::max : loop::Combine::min, extents,
                      [&](const Index& r) { return loop::abs(element(r)); });
    if (p == 0) return l.sum(extents, [&](const Index& r) { return cast(element(r) != 0, type); });
    if (p == 1) return l.sum(extents, [&](const Index& r) { return loop::abs(element(r)); });
    if (p == 2) {
      return loop::sqrt(l.sum(extents, [&](const Index& r) {
        loop::Expr e = element(r);
        return e * e;
      }));
    }
    return loop::pow(l.sum(extents, [&](const Index& r) { return loop::pow(loop::abs(element(r)), p); }), 1 / p);
  });
}

// Where the norm is 0 the gradient is 0.
Tensor norm_gradient(Tensor g, const Tensor& x, Tensor y, double p, const Reduced& over) {
  g = restore_dims(g, x.sizes(), over.dims, over.keepdim);
  y = restore_dims(y, x.sizes(), over.dims, over.keepdim);
  auto unless_zero = [&](const Tensor& t) -> Tensor { return where(eq(y, 0.0), 0.0, t); };
  auto power = [](const Tensor& t, double e) -> Tensor { return e == 1 ? t : pow_scalar(t, e); };
  if (p == 0) return zeros_like(x);
  if (p == 1) return g * sign(x);
  if (p == 2) return g * unless_zero(x / y);
  Tensor magnitude = abs(x), direction = sign(x);
  if (std::isinf(p)) {
    Tensor reached = eq(magnitude, y);
    Tensor times = over.dims.empty() ? to(reached, DType::i64) : sum(reached, dims_argument(over), true);
    return direction * where(reached, g / times, 0.0);
  }
  if (p < 1) return direction * where(eq(x, 0.0), 0.0, power(magnitude, p - 1)) * g * power(y, 1 - p);
  Tensor scale = unless_zero(g / power(y, p - 1));
  if (p < 2) return direction * power(magnitude, p - 1) * scale;
  return x * power(magnitude, p - 2) * scale;
}

Results vector_norm(Build& b, const CallArg& dims, bool keepdim, const CallArg& dtype) {
  b.require(is_differentiable(b["self"].dtype()), "expected a floating point tensor, got ", b["self"].meta(),
            "; convert it first");
  return linalg_vector_norm(b["self"], b.given("p") ? b.arg("p") : CallArg(2), dims, keepdim, kw("dtype", dtype));
}

Tensor operand(const ArgsView& b) {
  Tensor x = b.dtype("dtype") ? to(b["self"], *b.dtype("dtype")) : b["self"];
  b.require(is_differentiable(x.dtype()), "expected a floating point tensor, got ", x.meta());
  return x;
}

// A norm that follows from the singular values of the matrices in two dims.
Results by_singular_values(const Tensor& x, int64_t rows, int64_t columns, bool keepdim,
                           const std::function<Tensor(const Tensor&)>& norm) {
  Tensor values = linalg_svdvals(movedim(x, Sizes{rows, columns}, Sizes{-2, -1}));
  Sizes left = values.sizes();
  left.pop_back();
  Tensor out = values.size(-1) == SymInt(0) ? zeros(left, values) : norm(values);
  if (!keepdim) return one(out);
  return unsqueeze(unsqueeze(out, std::min(rows, columns)), std::max(rows, columns));
}

// The largest or smallest sum of magnitudes over rows (ord inf) or columns (ord 1).
Results norm_of_matrix(const ArgsView& b, const Tensor& x, double ord, const Sizes& dims, bool keepdim) {
  b.require(dims.size() == 2, "expected two dimensions, got ", dims);
  b.require(x.rank() >= 2, "expected a matrix, got ", x.meta());
  int64_t rows = wrapped_dim(b, dims[0], x.rank()), columns = wrapped_dim(b, dims[1], x.rank());
  b.require(rows != columns, "expected two different dimensions, got ", dims);
  if (std::abs(ord) == 2)
    return by_singular_values(x, rows, columns, keepdim, [&](const Tensor& s) -> Tensor {
      return ord > 0 ? amax(s, Sizes{-1}) : amin(s, Sizes{-1});
    });
  b.require(std::abs(ord) == 1 || std::isinf(ord), "expected the order 1, -1, inf, -inf, fro, nuc, 2 or -2, got ", ord);
  int64_t first = std::isinf(ord) ? columns : rows, second = std::isinf(ord) ? rows : columns;
  Tensor sums = sum(abs(x), Sizes{first}, true);
  Tensor extreme = ord < 0                                               ? amin(sums, Sizes{second}, true)
                   : x.sizes()[static_cast<size_t>(second)] == SymInt(0) ? sum(sums, Sizes{second}, true)  // zeros
                                                                         : amax(sums, Sizes{second}, true);
  if (keepdim) return one(extreme);
  Tensor less = squeeze_dim(extreme, std::max(rows, columns));
  return squeeze_dim(less, std::min(rows, columns));
}

Results named_norm_of_matrix(const ArgsView& b, const Tensor& x, const std::string& ord, const Sizes& dims,
                             bool keepdim) {
  b.require(ord == "fro" || ord == "nuc", "expected the order fro or nuc, got ", quoted(ord));
  b.require(dims.size() == 2 && x.rank() >= 2, "expected a matrix and two dimensions, got ", x.meta(), " and ", dims);
  if (ord == "nuc") {
    int64_t rows = wrapped_dim(b, dims[0], x.rank()), columns = wrapped_dim(b, dims[1], x.rank());
    b.require(rows != columns, "expected two different dimensions, got ", dims);
    return by_singular_values(x, rows, columns, keepdim, [](const Tensor& s) -> Tensor { return sum(s, Sizes{-1}); });
  }
  return linalg_vector_norm(x, 2, dims, keepdim);
}

Sizes both_dims(const ArgsView& b, const Tensor& x) {
  if (b.given("dim")) return b.ints("dim");
  b.require(x.rank() == 2, "expected a matrix where no dimensions are given, got ", x.meta());
  return {0, 1};
}

}  // namespace

void register_linalg_norms(Registry& ops) {
  ops.add(linalg_vector_norm,
          {
              .schema = "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
                        "ScalarType? dtype=None) -> Tensor",
              .kind = OpKind::reduction,
              .meta = norm_meta,
              .lower = lower_norm,
              .vjp = {{"self",
                       [](Vjp& v) {
                         Tensor x = v.dtype("dtype") ? to(v["self"], *v.dtype("dtype")) : v["self"];
                         return norm_gradient(v.grad(), x, v.out(), v.number("ord"), Reduced(v, x.sizes()));
                       }}},
              .complex = [](Build& b) { return on_real(b, abs(b["self"])); },
          });
  ops.add({
      .schema = "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, {}, false, {}); },
  });
  ops.add({
      .schema = "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, b.arg("dim"), b.flag("keepdim"), {}); },
  });
  ops.add({
      .schema =
          "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, b.arg("dim"), b.flag("keepdim"), b.arg("dtype")); },
  });
  ops.add({
      .schema = "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, {}, false, b.arg("dtype")); },
  });
  ops.add(
      linalg_matrix_norm,
      {
          .schema =
              "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? "
              "dtype=None) -> Tensor",
          .kind = OpKind::composite,
          .decompose =
              [](Build& b) { return norm_of_matrix(b, operand(b), b.number("ord"), b.ints("dim"), b.flag("keepdim")); },
      });
  ops.add(linalg_matrix_norm_str,
          {
              .schema =
                  "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, "
                  "ScalarType? dtype=None) -> Tensor",
              .kind = OpKind::composite,
              .decompose =
                  [](Build& b) {
                    return named_norm_of_matrix(b, operand(b), b.string("ord"), b.ints("dim"), b.flag("keepdim"));
                  },
          });
  ops.add({
      .schema = "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return named_norm_of_matrix(b, b["self"], "nuc", {-2, -1}, b.flag("keepdim"));
          },
  });
  ops.add({
      .schema = "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return named_norm_of_matrix(b, b["self"], "nuc", b.ints("dim"), b.flag("keepdim")); },
  });
  ops.add({
      .schema = "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            b.require(b.ints("dim").size() <= 2, "expected at most two dimensions, got ", b.ints("dim"));
            return linalg_vector_norm(b["self"], 2, b.arg("dim"), b.flag("keepdim"));
          },
  });
  ops.add({
      .schema = "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = operand(b);
        size_t named = b.given("dim") ? b.ints("dim").size() : 0;
        if (!b.given("ord")) return linalg_vector_norm(x, 2, b.arg("dim"), b.flag("keepdim"));
        if (named == 1 || (!b.given("dim") && x.rank() == 1))
          return linalg_vector_norm(x, b.arg("ord"), b.arg("dim"), b.flag("keepdim"));
        return norm_of_matrix(b, x, b.number("ord"), both_dims(b, x), b.flag("keepdim"));
      },
  });
  ops.add({
      .schema = "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = operand(b);
            return named_norm_of_matrix(b, x, b.string("ord"), both_dims(b, x), b.flag("keepdim"));
          },
  });
}

}  // namespace tenon
