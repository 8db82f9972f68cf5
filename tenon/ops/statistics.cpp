#include "tenon/ops/statistics.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle var, var_mean, linalg_vector_norm, logsumexp, nansum;
static Handle standard_deviation, std_mean;

namespace {

using loop::Compute;

// Where the arguments of the three forms of var, std and their _mean kin are. -1: absent.
struct Spread {
  int dims, unbiased, correction, keepdim;
};
constexpr Spread of_all{-1, 1, -1, -1}, of_dims{1, 2, -1, 3}, of_correction{1, -1, 2, 3};

double correction_of(const ArgsView& call, Spread s) {
  if (s.unbiased >= 0) return call.flag(static_cast<size_t>(s.unbiased)) ? 1 : 0;
  auto at = static_cast<size_t>(s.correction);
  return call.given(at) ? call.number(at) : 1;
}

Metas spread_meta(const ArgsView& m, Spread s, bool with_mean) {
  const TensorMeta& x = m.meta(0);
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x, "; convert it first");
  Reduced over(m, x.sizes, s.dims, s.keepdim);
  TensorMeta one = like(x, reduced_sizes(x.sizes, over.dims, over.keepdim));
  if (with_mean) return {one, one};
  return one;
}

// Two passes in double: the mean, then the squares of the differences from it.
void lower_spread(Lower& l, Spread s, bool root, bool with_mean) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), s.dims, s.keepdim), kept = over.kept();
  Sizes extents = extents_of(x.sizes(), over.dims), kept_sizes = reduced_sizes(x.sizes(), over.dims, true);
  auto n = [&] { return cast(l.extent(count(extents)), Compute::f64); };
  double correction = correction_of(l, s);
  Ref mean = l.temporary(DType::f64, kept_sizes, [&](const Index& i) {
    return l.sum(extents, [&](const Index& r) { return cast(x.at(kept.at(i, r)), Compute::f64); }) / n();
  });
  Index zero(over.dims.size(), loop::Expr(0));
  l.tensor(l.out(0), [&](const Index& i) {
    loop::Expr squares = l.sum(extents, [&](const Index& r) {
      Index at = over.at(i, r);
      loop::Expr d = cast(x.at(at), Compute::f64) - mean.broadcast_at(at);
      return d * d;
    });
    loop::Expr variance = squares / loop::max(n() - correction, l.constant(0, Compute::f64));
    return root ? loop::sqrt(variance) : variance;
  });
  if (with_mean) l.tensor(l.out(1), [&](const Index& i) { return mean.at(over.at(i, zero)); });
}

// d var = 2 / (n - correction) * (x - mean)
Tensor variance_gradient(const Tensor& grad, const Tensor& x, const Reduced& over, double correction) {
  Tensor g = restore_dims(grad, x.sizes(), over.dims, over.keepdim);
  Tensor centered = over.dims.empty() ? x - x : x - Tensor(mean(x, dims_argument(over), true));
  SymInt n = count(extents_of(x.sizes(), over.dims));
  if (n.is_int()) return g * centered * (2.0 / (static_cast<double>(n.as_int()) - correction));
  SymInt free = correction == std::floor(correction) ? n - SymInt(static_cast<int64_t>(correction))
                                                     : sym::to_float(n) - sym::Expr::real(correction);
  return div(g * centered * 2.0, free);
}

Tensor mean_gradient(const Tensor& grad, const Tensor& x, const Reduced& over) {
  Tensor g = restore_dims(grad, x.sizes(), over.dims, over.keepdim);
  return expand(div(g, count(extents_of(x.sizes(), over.dims))), x.sizes());
}

Grads spread_rule(Vjp& v, Spread s, bool root, bool with_mean) {
  Reduced over(v, v[0].sizes(), s.dims, s.keepdim);
  Tensor total;
  if (Tensor g = v.grad(0)) {
    if (root) g = where(eq(v.out(0), 0.0), 0.0, g / (v.out(0) * 2.0));
    total = variance_gradient(g, v[0], over, correction_of(v, s));
  }
  if (with_mean && v.grad(1)) {
    Tensor from_mean = mean_gradient(v.grad(1), v[0], over);
    total = total ? total + from_mean : from_mean;
  }
  return {total};
}

Metas norm_meta(MetaCall& m) {
  const TensorMeta& x = m.meta(0);
  DType dtype = m.dtype(4).value_or(x.dtype);
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x, "; convert it first");
  m.require(is_floating(dtype), "dtype: expected a floating point dtype, got ", dtype);
  Reduced over(m, x.sizes, 2, 3);
  double p = m.number(1);
  if (p < 0 || std::isinf(p)) require_elements(m, x.sizes, over);
  return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim), dtype);
}

void lower_norm(Lower& l) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), 2, 3);
  Sizes extents = extents_of(x.sizes(), over.dims);
  Compute type = loop::compute_of(l.out().dtype());
  double p = l.number(1);
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
  auto power = [](const Tensor& t, double e) -> Tensor { return e == 1 ? t : Tensor(pow_scalar(t, e)); };
  if (p == 0) return zeros_like(x);
  if (p == 1) return g * Tensor(sign(x));
  if (p == 2) return g * unless_zero(x / y);
  Tensor magnitude = abs(x), direction = sign(x);
  if (std::isinf(p)) {
    Tensor reached = eq(magnitude, y);
    Tensor times = over.dims.empty() ? to(reached, DType::i64) : Tensor(sum(reached, dims_argument(over), true));
    return direction * Tensor(where(reached, g / times, 0.0));
  }
  if (p < 1) return direction * Tensor(where(eq(x, 0.0), 0.0, power(magnitude, p - 1))) * g * power(y, 1 - p);
  Tensor scale = unless_zero(g / power(y, p - 1));
  if (p < 2) return direction * power(magnitude, p - 1) * scale;
  return x * power(magnitude, p - 2) * scale;
}

Results vector_norm(Build& b, size_t p, const CallArg& dims, bool keepdim, const CallArg& dtype) {
  b.require(is_floating(b[0].dtype()), "expected a floating point tensor, got ", b[0].meta(), "; convert it first");
  return linalg_vector_norm(b[0], b.given(p) ? b.arg(p) : CallArg(2), dims, keepdim, kw("dtype", dtype));
}

void lower_logsumexp(Lower& l) {
  Ref x = l[0];
  Reduced over(l, x.sizes(), 1, 2), kept = over.kept();
  Sizes extents = extents_of(x.sizes(), over.dims), kept_sizes = reduced_sizes(x.sizes(), over.dims, true);
  Compute type = loop::compute_of(l.out().dtype());
  double infinity = std::numeric_limits<double>::infinity();
  // Infinite maxima are not subtracted: inf - inf would be NaN.
  Ref high = l.temporary(computable(l.out().dtype()), kept_sizes, [&](const Index& i) {
    loop::Expr m =
        l.reduce(loop::Combine::max, extents, [&](const Index& r) { return cast(x.at(kept.at(i, r)), type); });
    return loop::select(loop::abs(m) == infinity, 0.0, m);
  });
  Index zero(over.dims.size(), loop::Expr(0));
  l.tensor([&](const Index& i) {
    loop::Expr total = l.sum(extents, [&](const Index& r) {
      Index at = over.at(i, r);
      return loop::exp(cast(x.at(at), type) - high.broadcast_at(at));
    });
    return loop::log(total) + high.at(kept.at(over.keepdim ? i : over.at(i, zero), zero));
  });
}

}  // namespace

void register_statistics(Registry& ops) {
#define TENON_SPREAD(name, result, root, with_mean, layout, rest)                 \
  {                                                                               \
    .schema = name "(Tensor self, " rest ") -> " result, .kind = OpKind::reduction, \
    .meta = [](MetaCall& m) { return spread_meta(m, layout, with_mean); },        \
    .lower = [](Lower& l) { lower_spread(l, layout, root, with_mean); },          \
    .vjp = {{"self", [](Vjp& v) { return spread_rule(v, layout, root, with_mean); }}} \
  }
#define TENON_SPREADS(handle, name, result, root, with_mean)                               \
  ops.add(TENON_SPREAD(name, result, root, with_mean, of_all, "bool unbiased=True"));      \
  ops.add(TENON_SPREAD(name ".dim", result, root, with_mean, of_dims,                      \
                       "int[1]? dim, bool unbiased=True, bool keepdim=False"));            \
  ops.add(handle, TENON_SPREAD(name ".correction", result, root, with_mean, of_correction, \
                               "int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"))
  TENON_SPREADS(var, "var", "Tensor", false, false);
  TENON_SPREADS(standard_deviation, "std", "Tensor", true, false);
  TENON_SPREADS(var_mean, "var_mean", "(Tensor, Tensor)", false, true);
  TENON_SPREADS(std_mean, "std_mean", "(Tensor, Tensor)", true, true);
#undef TENON_SPREADS
#undef TENON_SPREAD

  ops.add(linalg_vector_norm, {
      .schema = "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
                "ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::reduction,
      .meta = norm_meta,
      .lower = lower_norm,
      .vjp = {{"self, ord, dim, keepdim, dtype", [](Vjp& v) -> Grads {
        Tensor x = v.dtype("dtype") ? to(v["self"], *v.dtype("dtype")) : v["self"];
        return {norm_gradient(v.grad(0), x, v.out(0), v.number("ord"), Reduced(v, x.sizes(), 2, 3))};
      }}},
  });
  ops.add({
      .schema = "norm.Scalar(Tensor self, Scalar p=2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, 1, {}, false, {}); },
  });
  ops.add({
      .schema = "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, 1, b.arg("dim"), b.flag("keepdim"), {}); },
  });
  ops.add({
      .schema =
          "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, 1, b.arg("dim"), b.flag("keepdim"), b.arg("dtype")); },
  });
  ops.add({
      .schema = "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return vector_norm(b, 1, {}, false, b.arg("dtype")); },
  });
  ops.add({
      .schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return linalg_vector_norm(b["self"] - b["other"], b.arg("p")); },
  });
  ops.add(logsumexp, {
      .schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("self");
        Reduced over(m, x.sizes, 1, 2);
        return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim),
                    is_floating(x.dtype) ? x.dtype : DType::f32);
      },
      .lower = lower_logsumexp,
      .vjp = {{"self, dim, keepdim", [](Vjp& v) -> Grads {
        Reduced over(v, v["self"].sizes(), 1, 2);
        Tensor g = restore_dims(v.grad(0), v["self"].sizes(), over.dims, over.keepdim);
        Tensor y = restore_dims(v.out(0), v["self"].sizes(), over.dims, over.keepdim);
        return {g * Tensor(exp(v["self"] - y))};
      }}},
  });
  ops.alias(logsumexp, {"special_logsumexp"});
  ops.add(
      nansum,
      {
          .schema = "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          .kind = OpKind::reduction,
          .meta = [](MetaCall& m) -> Metas {
            const TensorMeta& x = m.meta("self");
            Reduced over(m, x.sizes, 1, 2);
            DType own = is_floating(x.dtype) ? x.dtype : DType::i64;
            return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim), m.dtype("dtype").value_or(own));
          },
          .lower =
              [](Lower& l) {
                Ref x = l["self"];
                Reduced over(l, x.sizes(), 1, 2);
                Compute type = loop::compute_of(l.out().dtype());
                l.tensor([&](const Index& i) {
                  return l.sum(extents_of(x.sizes(), over.dims), [&](const Index& r) {
                    loop::Expr e = x.at(over.at(i, r));
                    if (is_floating(x.dtype())) e = loop::select(loop::is_nan(e), 0.0, e);
                    return cast(e, type);
                  });
                });
              },
          .vjp = {{"self, dim, keepdim, dtype", [](Vjp& v) -> Grads {
            Reduced over(v, v["self"].sizes(), 1, 2);
            Tensor g = restore_dims(v.grad(0), v["self"].sizes(), over.dims, over.keepdim);
            return {g * Tensor(eq(v["self"], v["self"]))};
          }}},
      });
  ops.add({
      .schema = "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(is_floating(b["self"].dtype()), "expected a floating point tensor, got ", b["self"].meta(),
                  "; convert it first");
        Tensor total = nansum(b["self"], b.arg("dim"), b.arg("keepdim"), kw("dtype", b.arg("dtype")));
        return div(total, Tensor(sum(eq(b["self"], b["self"]), b.arg("dim"), b.arg("keepdim"))));
      },
  });
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
