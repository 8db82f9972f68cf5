#include "tenon/interp/scalar_functions.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tenon/base/error.h"
#include "tenon/interp/wrap.h"

namespace tenon::interp {
namespace {

using loop::Compute;
using loop::Fn;

template <class T, class R, class F>
void unary(void* out, const void* a, size_t n, F f) {
  auto* x = static_cast<const T*>(a);
  auto* r = static_cast<R*>(out);
  for (size_t i = 0; i < n; ++i) r[i] = static_cast<R>(f(x[i]));
}
template <class T, class R, class F>
void binary(void* out, const void* a, const void* b, size_t n, F f) {
  auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  auto* r = static_cast<R*>(out);
  for (size_t i = 0; i < n; ++i) r[i] = static_cast<R>(f(x[i], y[i]));
}

int64_t safe_div(int64_t a, int64_t b) {
  require(b != 0, "division by zero in an integer tensor");
  return b == -1 ? wrap_sub<int64_t>(0, a) : a / b;
}
int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = safe_div(a, b);
  return b != -1 && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
// As PyTorch: the quotient of what divides evenly, rounded to the integer it must be; a zero keeps its sign.
template <class T>
T floor_div(T a, T b) {
  if (b == 0) return a / b;
  T rest = std::fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}
int64_t remainder(int64_t a, int64_t b) {
  require(b != 0, "division by zero in an integer tensor");
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
T remainder(T a, T b) {
  T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
int64_t int_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  uint64_t result = 1, b = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e; e >>= 1, b *= b)
    if (e & 1) result *= b;
  return static_cast<int64_t>(result);
}

template <class T>
T digamma(T x_in) {
  double x = static_cast<double>(x_in), result = 0;
  if (x == 0) return static_cast<T>(std::copysign(std::numeric_limits<double>::infinity(), -x));
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<T>::quiet_NaN();
    double fraction = x - std::floor(x);
    result = -M_PI / std::tan(M_PI * fraction);
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  double y = 1 / (x * x);
  double series =
      y *
      (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
  return static_cast<T>(result + std::log(x) - 0.5 / x - series);
}

// Newton steps on erf from a logarithmic starting value.
double erfinv(double y) {
  if (y <= -1 || y >= 1)
    return std::fabs(y) == 1 ? std::copysign(std::numeric_limits<double>::infinity(), y)
                             : std::numeric_limits<double>::quiet_NaN();
  double w = std::log1p(-y * y), a = 0.147;
  double t = 2 / (M_PI * a) + w / 2;
  double x = std::copysign(std::sqrt(std::sqrt(t * t - w / a) - t), y);
  for (int i = 0; i < 3; ++i) {
    double error = x > 0.5 ? (1 - y) - std::erfc(x) : x < -0.5 ? std::erfc(-x) - (1 + y) : std::erf(x) - y;
    double slope = 2 / std::sqrt(M_PI) * std::exp(-x * x);
    x -= error / (slope + x * error);
  }
  return x;
}

// Philox 4x32-10: 32 bits for a (seed, stream, position), the same on every machine.
uint32_t philox(uint64_t seed, uint64_t stream, uint64_t position) {
  uint32_t counter[4] = {static_cast<uint32_t>(position >> 2), static_cast<uint32_t>(position >> 34),
                         static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t{0xD2511F53} * counter[0], p1 = uint64_t{0xCD9E8D57} * counter[2];
    uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(p1),
                        static_cast<uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(p0)};
    std::memcpy(counter, next, sizeof counter);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter[position & 3];
}

template <Fn fn, class T>
constexpr auto operation() {
  if constexpr (fn == Fn::add) return [](T a, T b) { return wrap_add(a, b); };
  else if constexpr (fn == Fn::sub) return [](T a, T b) { return wrap_sub(a, b); };
  else if constexpr (fn == Fn::mul) return [](T a, T b) { return wrap_mul(a, b); };
  else if constexpr (fn == Fn::div)
    return [](T a, T b) {
      if constexpr (std::is_same_v<T, int64_t>) return safe_div(a, b);
      else return a / b;
    };
  else if constexpr (fn == Fn::floor_div) return [](T a, T b) { return floor_div(a, b); };
  else if constexpr (fn == Fn::remainder) return [](T a, T b) { return remainder(a, b); };
  else if constexpr (fn == Fn::fmod)
    return [](T a, T b) {
      if constexpr (std::is_same_v<T, int64_t>) {
        require(b != 0, "division by zero in an integer tensor");
        return b == -1 ? T(0) : a % b;
      } else return std::fmod(a, b);
    };
  else if constexpr (fn == Fn::pow)
    return [](T a, T b) {
      if constexpr (std::is_same_v<T, int64_t>) return int_pow(a, b);
      else return std::pow(a, b);
    };
  else if constexpr (fn == Fn::atan2) return [](T a, T b) { return std::atan2(a, b); };
  else if constexpr (fn == Fn::hypot) return [](T a, T b) { return std::hypot(a, b); };
  else if constexpr (fn == Fn::copysign) return [](T a, T b) { return std::copysign(a, b); };
  else if constexpr (fn == Fn::nextafter) return [](T a, T b) { return std::nextafter(a, b); };
  else if constexpr (fn == Fn::min) return [](T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; };
  else if constexpr (fn == Fn::max) return [](T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; };
  else if constexpr (fn == Fn::fmin) return [](T a, T b) { return a != a ? b : b != b ? a : a < b ? a : b; };
  else if constexpr (fn == Fn::fmax) return [](T a, T b) { return a != a ? b : b != b ? a : a > b ? a : b; };
  else if constexpr (fn == Fn::neg)
    return [](T a) {
      if constexpr (std::is_same_v<T, int64_t>) return wrap_sub<T>(0, a);
      else return -a;
    };
  else if constexpr (fn == Fn::abs)
    return [](T a) {
      if constexpr (std::is_same_v<T, int64_t>) return a < 0 ? wrap_sub<T>(0, a) : a;
      else return std::fabs(a);
    };
  else if constexpr (fn == Fn::sign) return [](T a) { return T((a > 0) - (a < 0)); };  // 0 for NaN
  else if constexpr (fn == Fn::floor)
    return [](T a) {
      if constexpr (std::is_same_v<T, int64_t>) return a;
      else return std::floor(a);
    };
  else if constexpr (fn == Fn::ceil)
    return [](T a) {
      if constexpr (std::is_same_v<T, int64_t>) return a;
      else return std::ceil(a);
    };
  else if constexpr (fn == Fn::trunc)
    return [](T a) {
      if constexpr (std::is_same_v<T, int64_t>) return a;
      else return std::trunc(a);
    };
  else if constexpr (fn == Fn::round_even)
    return [](T a) {
      if constexpr (std::is_same_v<T, int64_t>) return a;
      else return std::nearbyint(a);
    };
  else if constexpr (fn == Fn::sqrt) return [](T a) { return std::sqrt(a); };
  else if constexpr (fn == Fn::rsqrt) return [](T a) { return T(1) / std::sqrt(a); };
  else if constexpr (fn == Fn::reciprocal) return [](T a) { return T(1) / a; };
  else if constexpr (fn == Fn::exp) return [](T a) { return std::exp(a); };
  else if constexpr (fn == Fn::exp2) return [](T a) { return std::exp2(a); };
  else if constexpr (fn == Fn::expm1) return [](T a) { return std::expm1(a); };
  else if constexpr (fn == Fn::log) return [](T a) { return std::log(a); };
  else if constexpr (fn == Fn::log2) return [](T a) { return std::log2(a); };
  else if constexpr (fn == Fn::log10) return [](T a) { return std::log10(a); };
  else if constexpr (fn == Fn::log1p) return [](T a) { return std::log1p(a); };
  else if constexpr (fn == Fn::sin) return [](T a) { return std::sin(a); };
  else if constexpr (fn == Fn::cos) return [](T a) { return std::cos(a); };
  else if constexpr (fn == Fn::tan) return [](T a) { return std::tan(a); };
  else if constexpr (fn == Fn::asin) return [](T a) { return std::asin(a); };
  else if constexpr (fn == Fn::acos) return [](T a) { return std::acos(a); };
  else if constexpr (fn == Fn::atan) return [](T a) { return std::atan(a); };
  else if constexpr (fn == Fn::sinh) return [](T a) { return std::sinh(a); };
  else if constexpr (fn == Fn::cosh) return [](T a) { return std::cosh(a); };
  else if constexpr (fn == Fn::tanh) return [](T a) { return std::tanh(a); };
  else if constexpr (fn == Fn::asinh) return [](T a) { return std::asinh(a); };
  else if constexpr (fn == Fn::acosh) return [](T a) { return std::acosh(a); };
  else if constexpr (fn == Fn::atanh) return [](T a) { return std::atanh(a); };
  else if constexpr (fn == Fn::erf) return [](T a) { return std::erf(a); };
  else if constexpr (fn == Fn::erfc) return [](T a) { return std::erfc(a); };
  else if constexpr (fn == Fn::erfinv) return [](T a) { return static_cast<T>(erfinv(static_cast<double>(a))); };
  else if constexpr (fn == Fn::lgamma) return [](T a) { return std::lgamma(a); };
  else if constexpr (fn == Fn::digamma) return [](T a) { return digamma(a); };
  else if constexpr (fn == Fn::sigmoid) return [](T a) { return T(1) / (T(1) + std::exp(-a)); };
  else if constexpr (fn == Fn::eq) return [](T a, T b) { return a == b; };
  else if constexpr (fn == Fn::ne) return [](T a, T b) { return a != b; };
  else if constexpr (fn == Fn::lt) return [](T a, T b) { return a < b; };
  else if constexpr (fn == Fn::le) return [](T a, T b) { return a <= b; };
  else if constexpr (fn == Fn::gt) return [](T a, T b) { return a > b; };
  else if constexpr (fn == Fn::ge) return [](T a, T b) { return a >= b; };
  else if constexpr (fn == Fn::is_nan) return [](T a) { return a != a; };
  else if constexpr (fn == Fn::is_inf)
    return [](T a) {
      if constexpr (std::is_floating_point_v<T>) return std::isinf(a);
      else return false;
    };
  else if constexpr (fn == Fn::logical_and) return [](T a, T b) { return a && b; };
  else if constexpr (fn == Fn::logical_or) return [](T a, T b) { return a || b; };
  else if constexpr (fn == Fn::logical_xor) return [](T a, T b) { return !a != !b; };
  else if constexpr (fn == Fn::logical_not) return [](T a) { return !a; };
  else if constexpr (fn == Fn::bit_and) return [](T a, T b) { return a & b; };
  else if constexpr (fn == Fn::bit_or) return [](T a, T b) { return a | b; };
  else if constexpr (fn == Fn::bit_xor) return [](T a, T b) { return a ^ b; };
  else if constexpr (fn == Fn::bit_not)
    return [](T a) {
      if constexpr (std::is_same_v<T, uint8_t>) return !a;
      else return ~a;
    };
  else if constexpr (fn == Fn::shift_left)
    return [](T a, T b) { return b < 0 || b > 63 ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << b); };
  else
    return [](T a, T b) { return b < 0 || b > 63 ? (a < 0 ? T(-1) : T(0)) : static_cast<T>(a >> b); };  // shift_right
}

template <Fn fn, class T, class R, bool two>
void run(void* out, const void* a, const void* b, const void*, size_t n) {
  constexpr auto f = operation<fn, T>();
  if constexpr (two) binary<T, R>(out, a, b, n, f);
  else unary<T, R>(out, a, n, f);
}

template <class T>
void run_select(void* out, const void* a, const void* b, const void* c, size_t n) {
  auto* condition = static_cast<const uint8_t*>(a);
  auto *x = static_cast<const T*>(b), *y = static_cast<const T*>(c);
  auto* r = static_cast<T*>(out);
  for (size_t i = 0; i < n; ++i) r[i] = condition[i] ? x[i] : y[i];
}
template <class T>
void run_fma(void* out, const void* a, const void* b, const void* c, size_t n) {
  auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  auto* r = static_cast<T*>(out);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>) r[i] = std::fma(x[i], y[i], z[i]);
    else r[i] = wrap_add(wrap_mul(x[i], y[i]), z[i]);
  }
}
void run_random(void* out, const void* a, const void* b, const void* c, size_t n) {
  auto *seed = static_cast<const int64_t*>(a), *stream = static_cast<const int64_t*>(b),
       *position = static_cast<const int64_t*>(c);
  auto* r = static_cast<int64_t*>(out);
  for (size_t i = 0; i < n; ++i)
    r[i] = philox(static_cast<uint64_t>(seed[i]), static_cast<uint64_t>(stream[i]), static_cast<uint64_t>(position[i]));
}

enum Kinds { numbers, floats, any_type, integers };

template <Fn fn, bool two, bool boolean_result, Kinds kinds>
BlockFn pick(Compute operand) {
  switch (operand) {
    case Compute::boolean:
      if constexpr (kinds == any_type || kinds == integers) return run<fn, uint8_t, uint8_t, two>;
      break;
    case Compute::i64:
      if constexpr (kinds != floats) return run<fn, int64_t, std::conditional_t<boolean_result, uint8_t, int64_t>, two>;
      break;
    case Compute::f32:
      if constexpr (kinds != integers) return run<fn, float, std::conditional_t<boolean_result, uint8_t, float>, two>;
      break;
    case Compute::f64:
      if constexpr (kinds != integers) return run<fn, double, std::conditional_t<boolean_result, uint8_t, double>, two>;
      break;
  }
  fail(name(fn), " is not defined for ", name(operand), " elements; convert them first");
}

}  // namespace

BlockFn block_function(Fn fn, Compute operand, Compute result) {
  switch (fn) {
    case Fn::add:
      return operand == Compute::boolean ? pick<Fn::logical_or, true, true, any_type>(operand)
                                         : pick<Fn::add, true, false, numbers>(operand);
    case Fn::sub: return pick<Fn::sub, true, false, numbers>(operand);
    case Fn::mul:
      return operand == Compute::boolean ? pick<Fn::logical_and, true, true, any_type>(operand)
                                         : pick<Fn::mul, true, false, numbers>(operand);
    case Fn::div: return pick<Fn::div, true, false, numbers>(operand);
    case Fn::floor_div: return pick<Fn::floor_div, true, false, numbers>(operand);
    case Fn::remainder: return pick<Fn::remainder, true, false, numbers>(operand);
    case Fn::fmod: return pick<Fn::fmod, true, false, numbers>(operand);
    case Fn::pow: return pick<Fn::pow, true, false, numbers>(operand);
    case Fn::atan2: return pick<Fn::atan2, true, false, floats>(operand);
    case Fn::hypot: return pick<Fn::hypot, true, false, floats>(operand);
    case Fn::copysign: return pick<Fn::copysign, true, false, floats>(operand);
    case Fn::nextafter: return pick<Fn::nextafter, true, false, floats>(operand);
    case Fn::min: return pick<Fn::min, true, false, any_type>(operand);
    case Fn::max: return pick<Fn::max, true, false, any_type>(operand);
    case Fn::fmin: return pick<Fn::fmin, true, false, any_type>(operand);
    case Fn::fmax: return pick<Fn::fmax, true, false, any_type>(operand);
    case Fn::neg: return pick<Fn::neg, false, false, numbers>(operand);
    case Fn::abs: return pick<Fn::abs, false, false, numbers>(operand);
    case Fn::sign: return pick<Fn::sign, false, false, any_type>(operand);
    case Fn::floor: return pick<Fn::floor, false, false, numbers>(operand);
    case Fn::ceil: return pick<Fn::ceil, false, false, numbers>(operand);
    case Fn::trunc: return pick<Fn::trunc, false, false, numbers>(operand);
    case Fn::round_even: return pick<Fn::round_even, false, false, numbers>(operand);
    case Fn::sqrt: return pick<Fn::sqrt, false, false, floats>(operand);
    case Fn::rsqrt: return pick<Fn::rsqrt, false, false, floats>(operand);
    case Fn::reciprocal: return pick<Fn::reciprocal, false, false, floats>(operand);
    case Fn::exp: return pick<Fn::exp, false, false, floats>(operand);
    case Fn::exp2: return pick<Fn::exp2, false, false, floats>(operand);
    case Fn::expm1: return pick<Fn::expm1, false, false, floats>(operand);
    case Fn::log: return pick<Fn::log, false, false, floats>(operand);
    case Fn::log2: return pick<Fn::log2, false, false, floats>(operand);
    case Fn::log10: return pick<Fn::log10, false, false, floats>(operand);
    case Fn::log1p: return pick<Fn::log1p, false, false, floats>(operand);
    case Fn::sin: return pick<Fn::sin, false, false, floats>(operand);
    case Fn::cos: return pick<Fn::cos, false, false, floats>(operand);
    case Fn::tan: return pick<Fn::tan, false, false, floats>(operand);
    case Fn::asin: return pick<Fn::asin, false, false, floats>(operand);
    case Fn::acos: return pick<Fn::acos, false, false, floats>(operand);
    case Fn::atan: return pick<Fn::atan, false, false, floats>(operand);
    case Fn::sinh: return pick<Fn::sinh, false, false, floats>(operand);
    case Fn::cosh: return pick<Fn::cosh, false, false, floats>(operand);
    case Fn::tanh: return pick<Fn::tanh, false, false, floats>(operand);
    case Fn::asinh: return pick<Fn::asinh, false, false, floats>(operand);
    case Fn::acosh: return pick<Fn::acosh, false, false, floats>(operand);
    case Fn::atanh: return pick<Fn::atanh, false, false, floats>(operand);
    case Fn::erf: return pick<Fn::erf, false, false, floats>(operand);
    case Fn::erfc: return pick<Fn::erfc, false, false, floats>(operand);
    case Fn::erfinv: return pick<Fn::erfinv, false, false, floats>(operand);
    case Fn::lgamma: return pick<Fn::lgamma, false, false, floats>(operand);
    case Fn::digamma: return pick<Fn::digamma, false, false, floats>(operand);
    case Fn::sigmoid: return pick<Fn::sigmoid, false, false, floats>(operand);
    case Fn::eq: return pick<Fn::eq, true, true, any_type>(operand);
    case Fn::ne: return pick<Fn::ne, true, true, any_type>(operand);
    case Fn::lt: return pick<Fn::lt, true, true, any_type>(operand);
    case Fn::le: return pick<Fn::le, true, true, any_type>(operand);
    case Fn::gt: return pick<Fn::gt, true, true, any_type>(operand);
    case Fn::ge: return pick<Fn::ge, true, true, any_type>(operand);
    case Fn::is_nan: return pick<Fn::is_nan, false, true, any_type>(operand);
    case Fn::is_inf: return pick<Fn::is_inf, false, true, any_type>(operand);
    case Fn::logical_and: return pick<Fn::logical_and, true, true, any_type>(operand);
    case Fn::logical_or: return pick<Fn::logical_or, true, true, any_type>(operand);
    case Fn::logical_xor: return pick<Fn::logical_xor, true, true, any_type>(operand);
    case Fn::logical_not: return pick<Fn::logical_not, false, true, any_type>(operand);
    case Fn::bit_and: return pick<Fn::bit_and, true, false, integers>(operand);
    case Fn::bit_or: return pick<Fn::bit_or, true, false, integers>(operand);
    case Fn::bit_xor: return pick<Fn::bit_xor, true, false, integers>(operand);
    case Fn::bit_not: return pick<Fn::bit_not, false, false, integers>(operand);
    case Fn::shift_left: return pick<Fn::shift_left, true, false, integers>(operand);
    case Fn::shift_right: return pick<Fn::shift_right, true, false, integers>(operand);
    case Fn::select:
      switch (result) {
        case Compute::boolean: return run_select<uint8_t>;
        case Compute::i64: return run_select<int64_t>;
        case Compute::f32: return run_select<float>;
        case Compute::f64: return run_select<double>;
      }
      unreachable();
    case Fn::fma:
      switch (result) {
        case Compute::f32: return run_fma<float>;
        case Compute::f64: return run_fma<double>;
        case Compute::i64:
        case Compute::boolean: return run_fma<int64_t>;
      }
      unreachable();
    case Fn::random_bits: return run_random;
    case Fn::cast: return cast_function(operand, result);
    case Fn::constant:
    case Fn::index:
    case Fn::size:
    case Fn::load:
    case Fn::accumulated:
    case Fn::round_to: break;
  }
  unreachable();
}

}  // namespace tenon::interp
