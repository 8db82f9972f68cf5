#include "tenon/ops/special.h"

#include <cmath>
#include <numeric>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/elementwise.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/elements.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/special_functions.h"
#include "tenon/ops/views.h"

namespace tenon {

Handle polygamma, i0;

static Handle polygamma_of, i0e, i1, i1e, erfcx, ndtri, zeta, bessel_j0, bessel_j1, bessel_y0, bessel_y1, bessel_i0, bessel_i1, bessel_k0, bessel_k1;

namespace {

// An operand in row-major order, repeated to `sizes`, in the type that is computed with.
template <class T>
std::vector<T> operand(const ArgsView& call, size_t arg, const Sizes& sizes) {
  if (!call.is_tensor(arg)) return std::vector<T>(static_cast<size_t>(count(sizes).as_int()), static_cast<T>(call.number(arg)));
  return elements<T>(expand(call[arg], sizes));
}

template <class T>
CallResults result(const TensorMeta& meta, const std::vector<T>& values) {
  return {CallArg(made(meta, values))};
}

template <double (*f)(double)>
CallResults each(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  std::vector<double> x = operand<double>(call, 0, meta.sizes);
  for (double& v : x) v = f(v);
  return result(meta, x);
}

template <class T, T (*f)(T, T)>
CallResults each_pair(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  std::vector<T> x = operand<T>(call, 0, meta.sizes), y = operand<T>(call, 1, meta.sizes);
  for (size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], y[i]);
  return result(meta, x);
}

Metas plain_meta(MetaCall& m) { return pointwise_meta(m); }
Metas whole_meta(MetaCall& m) {
  m.require(is_integral(common_dtype(m)), "expected integers, got ", describe(m.arg(0)), " and ", describe(m.arg(1)));
  return pointwise_meta(m);
}

// What leaves 64 bits wraps around.
uint64_t magnitude(int64_t a) { return a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a); }
int64_t common_divisor(int64_t a, int64_t b) { return static_cast<int64_t>(std::gcd(magnitude(a), magnitude(b))); }
int64_t common_multiple(int64_t a, int64_t b) {
  uint64_t g = std::gcd(magnitude(a), magnitude(b));
  return g == 0 ? 0 : static_cast<int64_t>(magnitude(static_cast<int64_t>(magnitude(a) / g * magnitude(b))));
}

double shifted_t(double x, double n) { return special::chebyshev_t(2 * x - 1, n); }
double shifted_u(double x, double n) { return special::chebyshev_u(2 * x - 1, n); }
double shifted_v(double x, double n) { return special::chebyshev_v(2 * x - 1, n); }
double shifted_w(double x, double n) { return special::chebyshev_w(2 * x - 1, n); }

Tensor density_of_gamma(const Tensor& a, const Tensor& x) { return exp((a - 1.0) * Tensor(log(x)) - x - Tensor(lgamma(a))); }

CallResults mantissas(ArgsView& call) {
  TensorMeta meta = own_meta(call);
  std::vector<double> x = operand<double>(call, 0, meta.sizes);
  std::vector<int64_t> exponents;
  for (double& v : x) {
    int exponent = 0;
    v = std::frexp(v, &exponent);
    exponents.push_back(std::isfinite(v) ? exponent : 0);
  }
  TensorMeta whole = meta;
  whole.dtype = DType::i32;
  return {result(meta, x)[0], result(whole, exponents)[0]};
}

}  // namespace

// f is a name of special::; g, x and y in a derivative are the gradient, the argument and the result.
#define TENON_SPECIAL_OF_X(name, f) \
  ops.add({.schema = name "(Tensor x) -> Tensor", .meta = plain_meta, .kernel = each<special::f>, .promote = Promote::int_to_float})
#define TENON_SPECIAL_WITH(handle, name, f, derivative)                 \
  ops.add(handle, {.schema = name "(Tensor self) -> Tensor",            \
                   .meta = plain_meta,                                  \
                   .vjp = {{"self", [](Vjp& v) -> Tensor {              \
                     [[maybe_unused]] Tensor g = v.grad(), x = v["self"], y = v.out(); \
                     return derivative;                                 \
                   }}},                                                   \
                   .kernel = each<special::f>,                          \
                   .promote = Promote::int_to_float})
#define TENON_POLYNOMIAL(name, f)                                                                                             \
  for (const char* schema : {name "(Tensor x, Tensor n) -> Tensor", name ".x_scalar(Scalar x, Tensor n) -> Tensor",           \
                             name ".n_scalar(Tensor x, Scalar n) -> Tensor"})                                                 \
  ops.add({.schema = schema, .meta = plain_meta, .kernel = each_pair<double, f>, .promote = Promote::int_to_float})

void register_special(Registry& ops) {
  TENON_SPECIAL_WITH(i0, "i0", i0, g * Tensor(i1(x)));
  ops.alias(i0, {"special_i0"});
  TENON_SPECIAL_WITH(i0e, "special_i0e", i0e, g * (Tensor(i1e(x)) - Tensor(sgn(x)) * y));
  TENON_SPECIAL_WITH(i1, "special_i1", i1, g * Tensor(where(eq(x, 0.0), 0.5, Tensor(i0(x)) - y / x)));
  TENON_SPECIAL_WITH(i1e, "special_i1e", i1e, g * Tensor(where(eq(x, 0.0), 0.5, Tensor(i0e(x)) - y * (Tensor(sgn(x)) + Tensor(reciprocal(x))))));
  TENON_SPECIAL_WITH(erfcx, "special_erfcx", erfcx, g * (x * y * 2.0 - M_2_SQRTPI));
  TENON_SPECIAL_WITH(ndtri, "special_ndtri", ndtri, g * Tensor(exp(y * y * 0.5)) * std::sqrt(2 * M_PI));
  ops.add({
      .schema = "special_log_ndtr(Tensor self) -> Tensor",
      .meta = plain_meta,
      .vjp = {{"self", [](Vjp& v) { return v.grad() / Tensor(erfcx(v["self"] * -M_SQRT1_2)) * std::sqrt(2 / M_PI); }}},
      .kernel = each<special::log_ndtr>,
      .promote = Promote::int_to_float,
  });
  TENON_SPECIAL_WITH(bessel_j0, "special_bessel_j0", j0, -g * Tensor(bessel_j1(x)));
  TENON_SPECIAL_WITH(bessel_j1, "special_bessel_j1", j1, g * Tensor(where(eq(x, 0.0), 0.5, Tensor(bessel_j0(x)) - y / x)));
  TENON_SPECIAL_WITH(bessel_y0, "special_bessel_y0", y0, -g * Tensor(bessel_y1(x)));
  TENON_SPECIAL_WITH(bessel_y1, "special_bessel_y1", y1, g * (Tensor(bessel_y0(x)) - y / x));
  TENON_SPECIAL_WITH(bessel_i0, "special_modified_bessel_i0", i0, g * Tensor(bessel_i1(x)));
  TENON_SPECIAL_WITH(bessel_i1, "special_modified_bessel_i1", i1, g * Tensor(where(eq(x, 0.0), 0.5, Tensor(bessel_i0(x)) - y / x)));
  TENON_SPECIAL_WITH(bessel_k0, "special_modified_bessel_k0", k0, -g * Tensor(bessel_k1(x)));
  TENON_SPECIAL_WITH(bessel_k1, "special_modified_bessel_k1", k1, -g * (Tensor(bessel_k0(x)) + y / x));
  TENON_SPECIAL_OF_X("special_scaled_modified_bessel_k0", k0e);
  TENON_SPECIAL_OF_X("special_scaled_modified_bessel_k1", k1e);
  TENON_SPECIAL_OF_X("special_spherical_bessel_j0", spherical_j0);
  TENON_SPECIAL_OF_X("special_airy_ai", airy);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_t", special::chebyshev_t);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_u", special::chebyshev_u);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_v", special::chebyshev_v);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_w", special::chebyshev_w);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_t", shifted_t);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_u", shifted_u);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_v", shifted_v);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_w", shifted_w);
  TENON_POLYNOMIAL("special_hermite_polynomial_h", special::hermite_h);
  TENON_POLYNOMIAL("special_hermite_polynomial_he", special::hermite_he);
  TENON_POLYNOMIAL("special_laguerre_polynomial_l", special::laguerre);
  TENON_POLYNOMIAL("special_legendre_polynomial_p", special::legendre);

  ops.add(polygamma, {
      .schema = "polygamma(int n, Tensor self) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.constant("n") >= 0, "n: expected a number that is not negative, got ", m.constant("n"));
        return pointwise_meta(m);
      },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * Tensor(polygamma(v.constant("n") + 1, v["self"])); }}},
      .kernel = [](ArgsView& call) -> CallResults {
        int64_t n = call.constant("n");
        if (n == 0) return digamma(call[1]).values;
        TensorMeta meta = own_meta(call);
        std::vector<double> x = operand<double>(call, 1, meta.sizes);
        for (double& v : x) v = special::polygamma(n, v);
        return result(meta, x);
      },
      .promote = Promote::int_to_float,
  });
  ops.add(polygamma_of, {   // the order of arguments that the in-place form has
      .schema = "tenon::polygamma(Tensor self, int n) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return polygamma(b.arg("n"), b["self"]); },
      .to_torch = [](Build& b) { return polygamma(b.arg("n"), b["self"]); },
  });
  ops.in_place(polygamma_of, "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)");
  ops.alias(polygamma, {"special_polygamma"});
  ops.add(zeta, {
      .schema = "special_zeta(Tensor self, Tensor other) -> Tensor",
      .meta = plain_meta,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        v.require(!v.needs("self"), "the gradient with respect to self is not known");
        return {none, v.grad(0) * -v["self"] * Tensor(zeta(v["self"] + 1.0, v["other"]))};
      }}},
      .kernel = each_pair<double, special::zeta>,
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "igamma(Tensor self, Tensor other) -> Tensor",
      .meta = floating_meta,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        v.require(!v.needs("self"), "the gradient with respect to self is not known");
        return {none, v.grad(0) * density_of_gamma(v["self"], v["other"])};
      }}},
      .kernel = each_pair<double, special::lower_gamma>,
  });
  ops.add({
      .schema = "igammac(Tensor self, Tensor other) -> Tensor",
      .meta = floating_meta,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        v.require(!v.needs("self"), "the gradient with respect to self is not known");
        return {none, -v.grad(0) * density_of_gamma(v["self"], v["other"])};
      }}},
      .kernel = each_pair<double, special::upper_gamma>,
  });
  ops.add({
      .schema = "gcd(Tensor self, Tensor other) -> Tensor",
      .meta = whole_meta,
      .kernel = each_pair<int64_t, common_divisor>,
  });
  ops.add({
      .schema = "lcm(Tensor self, Tensor other) -> Tensor",
      .meta = whole_meta,
      .kernel = each_pair<int64_t, common_multiple>,
  });
  ops.add({
      .schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
      .meta = [](MetaCall& m) -> Metas {
        m.require(is_floating(m.meta("self").dtype), "expected a floating point tensor, got ", m.meta("self"));
        TensorMeta mantissa = *pointwise_meta(m).values[0].get<TensorMeta>(), exponent = mantissa;
        exponent.dtype = DType::i32;
        return {mantissa, exponent};
      },
      .vjp = {{"self", [](Vjp& v) { return v.grad() / Tensor(pow_base(2.0, v.out(1))); }}},
      .kernel = mantissas,
  });
}

#undef TENON_SPECIAL_OF_X
#undef TENON_SPECIAL_WITH
#undef TENON_POLYNOMIAL

}  // namespace tenon
