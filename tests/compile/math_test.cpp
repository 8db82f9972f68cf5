// The functions written in Kernel IR against the C library's, one precision up.
#include "tenon/compile/math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/compile/run.h"

namespace tenon::compile {
namespace {

using Wide = long double;
struct Function {
  const char* name;
  Val (*make)(Val);
  Wide (*reference)(Wide);
  double low, high;  // where numbers are drawn from, beside all magnitudes
};

Wide wide_sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide wide_rsqrt(Wide x) { return 1 / std::sqrt(x); }
Wide wide_round(Wide x) { return std::nearbyint(x); }

const Function functions[] = {
    {"exp", exp, std::exp, -110, 90},      {"exp2", exp2, std::exp2, -160, 130},
    {"expm1", expm1, std::expm1, -20, 20}, {"sigmoid", sigmoid, wide_sigmoid, -80, 30},
    {"tanh", tanh, std::tanh, -10, 10},    {"sinh", sinh, std::sinh, -90, 90},
    {"cosh", cosh, std::cosh, -90, 90},    {"erf", erf, std::erf, -6.2, 6.2},
    {"log", log, std::log, 0, 4},          {"log2", log2, std::log2, 0, 4},
    {"log10", log10, std::log10, 0, 4},    {"log1p", log1p, std::log1p, -1, 3},
    {"asinh", asinh, std::asinh, -10, 10}, {"acosh", acosh, std::acosh, 1, 10},
    {"atanh", atanh, std::atanh, -1, 1},   {"sin", sin, std::sin, -100, 100},
    {"cos", cos, std::cos, -100, 100},     {"tan", tan, std::tan, -100, 100},
    {"asin", asin, std::asin, -1, 1},      {"acos", acos, std::acos, -1, 1},
    {"atan", atan, std::atan, -10, 10},    {"rsqrt", rsqrt, wide_rsqrt, 0, 10},
    {"floor", floor, std::floor, -9, 9},   {"ceil", ceil, std::ceil, -9, 9},
    {"trunc", trunc, std::trunc, -9, 9},   {"round_even", round_even, wide_round, -9, 9},
};

template <class T>
std::vector<T> arguments(const Function& f, size_t count) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::mt19937_64 random(7);
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = {T(0), -T(0), T(1), T(-1), T(0.5), T(-0.5), T(2), Limits::infinity(), -Limits::infinity(),
                      Limits::quiet_NaN(), Limits::denorm_min(), -Limits::denorm_min(), Limits::min(), Limits::max(),
                      Limits::lowest(), T(3.14159265358979323846), T(1e5), T(131073), T(1e22), T(710.4), T(-745.13)};
  std::uniform_real_distribution<double> uniform(f.low, f.high);
  while (x.size() < count) {
    if (x.size() % 2) x.push_back(std::bit_cast<T>(static_cast<U>(random())));
    else x.push_back(static_cast<T>(uniform(random)));
  }
  return x;
}

// How far got is from the wide result, in units of the last place of the result rounded.
template <class T>
double distance(T got, Wide wanted) {
  T rounded = static_cast<T>(wanted);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) == std::isnan(got) ? 0 : 1e9;
  if (got == rounded) {
    if (got == 0) return std::signbit(got) == std::signbit(rounded) || wanted != 0 ? 0 : 1e9;
    return std::isinf(got) ? 0 : 0.5;
  }
  if (std::isinf(got) || std::isinf(rounded)) {
    T other = std::isinf(got) ? rounded : got;
    return std::fabs(other) == std::numeric_limits<T>::max() ? 1 : 1e9;
  }
  T magnitude = std::fabs(rounded);
  Wide unit = static_cast<Wide>(std::nextafter(magnitude, std::numeric_limits<T>::infinity())) - magnitude;
  if (magnitude == std::numeric_limits<T>::max()) unit = static_cast<Wide>(magnitude) - std::nextafter(magnitude, T(0));
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - wanted) / unit);
}

template <class T>
void check(const Function& f, size_t count) {
  Type type = sizeof(T) == 4 ? Type::f32 : Type::f64;
  Element element = sizeof(T) == 4 ? Element::f32 : Element::f64;
  Builder b(f.name);
  uint32_t in = b.buffer("x", element, 0), out = b.buffer("y", element, 1, true);
  b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
    b.store({out, 0, true}, f.make(b.load({in, 0, true})));
    return {};
  });
  Kernel kernel = b.finish();
  std::vector<T> x = arguments<T>(f, count), y(x.size());
  ASSERT_EQ(run(kernel, {span_of(x), span_of(y)}, {}, 0, static_cast<int64_t>(x.size())), 0);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::strcmp(f.name, "sigmoid") == 0 && x[i] < (sizeof(T) == 4 ? -88.7 : -709.7)) {
      EXPECT_LT(y[i], std::numeric_limits<T>::min()) << x[i];  // e^-x has no number there, and PyTorch gives 0
      continue;
    }
    Wide wanted = f.reference(x[i]);
    double d = distance(y[i], wanted);
    if (d > worst) {
      worst = d;
      at = i;
    }
  }
  EXPECT_LE(worst, 2.0) << f.name << " in " << name(type) << " of " << x[at] << " gave " << y[at] << ", expected "
                        << static_cast<double>(f.reference(x[at]));
  if (std::getenv("TENON_SHOW_ULP")) std::printf("%-10s %s %.3f at %g\n", f.name, std::string(name(type)).c_str(), worst, double(x[at]));
}

TEST(Math, f32_functions_are_within_2_ulp) {
  for (const Function& f : functions) check<float>(f, 40000);
}
TEST(Math, f64_functions_are_within_2_ulp) {
  for (const Function& f : functions) check<double>(f, 20000);
}

}  // namespace
}  // namespace tenon::compile
