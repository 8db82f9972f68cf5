#include "tenon/ops/statistics.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle var, var_mean, logsumexp, nansum;
static Handle standard_deviation, std_mean;

namespace {

using loop::Compute;

enum class Spread { var, std, var_mean, std_mean };
constexpr bool is_root(Spread s) { return s == Spread::std || s == Spread::std_mean; }
constexpr bool has_mean(Spread s) { return s == Spread::var_mean || s == Spread::std_mean; }

// Of the three forms, one takes a correction, the others say unbiased: 1 or 0.
double correction_of(const ArgsView& call) {
  if (call.op.schema.find("unbiased") >= 0) return call.flag("unbiased") ? 1 : 0;
  return call.given("correction") ? call.number("correction") : 1;
}

Metas spread_meta(const ArgsView& m, Spread s) {
  const TensorMeta& x = m.meta("self");
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x, "; convert it first");
  Reduced over(m, x.sizes);
  TensorMeta one = like(x, reduced_sizes(x.sizes, over.dims, over.keepdim));
  if (has_mean(s)) return {one, one};
  return one;
}

// Two passes in double: the mean, then the squares of the differences from it.
void lower_spread(Lower& l, Spread s) {
  Ref x = l["self"];
  Reduced over(l, x.sizes()), kept = over.kept();
  Sizes extents = extents_of(x.sizes(), over.dims), kept_sizes = reduced_sizes(x.sizes(), over.dims, true);
  auto n = [&] { return cast(l.extent(count(extents)), Compute::f64); };
  double correction = correction_of(l);
  Ref mean = l.temporary(DType::f64, kept_sizes, [&](const Index& i) {
    return l.sum(extents, [&](const Index& r) { return cast(x.at(kept.at(i, r)), Compute::f64); }) / n();
  });
  Index zero(over.dims.size(), loop::Expr(0));
  l.tensor(l.out(), [&](const Index& i) {
    loop::Expr squares = l.sum(extents, [&](const Index& r) {
      Index at = over.at(i, r);
      loop::Expr d = cast(x.at(at), Compute::f64) - mean.broadcast_at(at);
      return d * d;
    });
    loop::Expr variance = squares / loop::max(n() - correction, l.constant(0, Compute::f64));
    return is_root(s) ? loop::sqrt(variance) : variance;
  });
  if (has_mean(s)) l.tensor(l.out(1), [&](const Index& i) { return mean.at(over.at(i, zero)); });
}

// d var = 2 / (n - correction) * (x - mean)
Tensor variance_gradient(const Tensor& grad, const Tensor& x, const Reduced& over, double correction) {
  Tensor g = restore_dims(grad, x.sizes(), over.dims, over.keepdim);
  Tensor centered = over.dims.empty() ? x - x : x - mean(x, dims_argument(over), true);
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

Tensor spread_gradient(Vjp& v, Spread s) {
  Tensor x = v["self"], total;
  Reduced over(v, x.sizes());
  if (Tensor g = v.grad()) {
    if (is_root(s)) g = where(eq(v.out(), 0.0), 0.0, g / (v.out() * 2.0));
    total = variance_gradient(g, x, over, correction_of(v));
  }
  if (has_mean(s) && v.grad(1)) {
    Tensor from_mean = mean_gradient(v.grad(1), x, over);
    total = total ? total + from_mean : from_mean;
  }
  return total;
}

// Real and imaginary parts spread independently.
Results complex_spread(Build& b, Spread s) {
  Complex z = parts_of(b["self"]);
  Results re = on_real(b, z.re), im = on_real(b, z.im);
  bool squares = s == Spread::var || s == Spread::var_mean;
  Tensor size = squares ? re[0] + im[0] : Tensor(sqrt(re[0] * re[0] + im[0] * im[0]));
  if (s == Spread::var || s == Spread::std) return one(size);
  return {{CallArg(size), CallArg(joined({re[1], im[1]}))}};
}

template <Spread s>
OpDef spread(const char* schema) {
  return {
      .schema = schema,
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return spread_meta(m, s); },
      .lower = [](Lower& l) { lower_spread(l, s); },
      .vjp = {{"self", [](Vjp& v) { return spread_gradient(v, s); }}},
      .complex = [](Build& b) { return complex_spread(b, s); },
  };
}

void lower_logsumexp(Lower& l) {
  Ref x = l["self"];
  Reduced over(l, x.sizes()), kept = over.kept();
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
  ops.add(
      var,
      spread<Spread::var>(
          "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"));
  ops.overload(var, {"var(Tensor self, bool unbiased=True) -> Tensor",
                     "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"});
  ops.add(
      standard_deviation,
      spread<Spread::std>(
          "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor"));
  ops.overload(standard_deviation,
               {"std(Tensor self, bool unbiased=True) -> Tensor",
                "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor"});
  ops.add(var_mean, spread<Spread::var_mean>("var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? "
                                             "correction=None, bool keepdim=False) -> (Tensor, Tensor)"));
  ops.overload(var_mean,
               {"var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
                "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)"});
  ops.add(std_mean, spread<Spread::std_mean>("std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? "
                                             "correction=None, bool keepdim=False) -> (Tensor, Tensor)"));
  ops.overload(std_mean,
               {"std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
                "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)"});
  ops.add(logsumexp, {
                         .schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
                         .kind = OpKind::reduction,
                         .meta = [](MetaCall& m) -> Metas {
                           const TensorMeta& x = m.meta("self");
                           Reduced over(m, x.sizes);
                           return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim),
                                       is_floating(x.dtype) ? x.dtype : DType::f32);
                         },
                         .lower = lower_logsumexp,
                         .vjp = {{"self",
                                  [](Vjp& v) {
                                    Tensor x = v["self"];
                                    Reduced over(v, x.sizes());
                                    Tensor g = restore_dims(v.grad(), x.sizes(), over.dims, over.keepdim);
                                    Tensor y = restore_dims(v.out(), x.sizes(), over.dims, over.keepdim);
                                    return g * exp(x - y);
                                  }}},
                         .complex = [](Build& b) -> Results {
                           Tensor x = b["self"], size = detach(real(x));
                           size = where(isfinite(size), size, 0.0);
                           Tensor high = amax(size, b.arg("dim"), true);
                           Tensor total = sum(exp(x - high), b.arg("dim"), b.arg("keepdim"));
                           return one(log(total) + amax(size, b.arg("dim"), b.arg("keepdim")));
                         },
                     });
  ops.alias(logsumexp, {"special_logsumexp"});
  ops.add(
      nansum,
      {
          .schema = "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
          .kind = OpKind::reduction,
          .meta = [](MetaCall& m) -> Metas {
            const TensorMeta& x = m.meta("self");
            Reduced over(m, x.sizes);
            DType own = is_floating(x.dtype) ? x.dtype : DType::i64;
            return like(x, reduced_sizes(x.sizes, over.dims, over.keepdim), m.dtype("dtype").value_or(own));
          },
          .lower =
              [](Lower& l) {
                Ref x = l["self"];
                Reduced over(l, x.sizes());
                Compute type = loop::compute_of(l.out().dtype());
                l.tensor([&](const Index& i) {
                  return l.sum(extents_of(x.sizes(), over.dims), [&](const Index& r) {
                    loop::Expr e = x.at(over.at(i, r));
                    if (is_floating(x.dtype())) e = loop::select(loop::is_nan(e), 0.0, e);
                    return cast(e, type);
                  });
                });
              },
          .vjp = {{"self",
                   [](Vjp& v) {
                     Tensor x = v["self"];
                     Reduced over(v, x.sizes());
                     return restore_dims(v.grad(), x.sizes(), over.dims, over.keepdim) * eq(x, x);
                   }}},
      });
  ops.add({
      .schema = "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(is_floating(b["self"].dtype()), "expected a floating point tensor, got ", b["self"].meta(),
                  "; convert it first");
        Tensor total = nansum(b["self"], b.arg("dim"), b.arg("keepdim"), kw("dtype", b.arg("dtype")));
        return div(total, sum(eq(b["self"], b["self"]), b.arg("dim"), b.arg("keepdim")));
      },
  });
}

}  // namespace tenon
