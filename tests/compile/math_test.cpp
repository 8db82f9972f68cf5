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
  std::vector<T> x = {T(0),
                      -T(0),
                      T(1),
                      T(-1),
                      T(0.5),
                      T(-0.5),
                      T(2),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::denorm_min(),
                      -Limits::denorm_min(),
                      Limits::min(),
                      Limits::max(),
                      Limits::lowest(),
                      T(3.14159265358979323846),
                      T(1e5),
                      T(131073),
                      T(1e22),
                      T(710.4),
                      T(-745.13)};
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
  if (std::getenv("TENON_SHOW_ULP"))
    std::printf("%-10s %s %.3f at %g\n", f.name, std::string(name(type)).c_str(), worst, double(x[at]));
}

// Series in long double, by other routes than the kernels take.
Wide wide_digamma(Wide x) {
  if (x == 0) return std::copysign(std::numeric_limits<Wide>::infinity(), -x);
  if (x < 0) {
    if (x == std::floor(x)) return std::numeric_limits<Wide>::quiet_NaN();
    return wide_digamma(1 - x) -
           3.14159265358979323846264338327950288L /
               std::tan(3.14159265358979323846264338327950288L * (x > -0.5L ? x : x - std::floor(x)));
  }
  Wide result = 0;
  for (; x < 30; x += 1) result -= 1 / x;
  Wide y = 1 / (x * x);
  return result + std::log(x) - 0.5L / x -
         y * (1.0L / 12 - y * (1.0L / 120 - y * (1.0L / 252 - y * (1.0L / 240 - y / 132))));
}
Wide wide_erfinv(Wide y) {
  if (y != y) return y;
  if (std::fabs(y) >= 1)
    return std::fabs(y) == 1 ? std::copysign(std::numeric_limits<Wide>::infinity(), y)
                             : std::numeric_limits<Wide>::quiet_NaN();
  Wide low = 0, high = 10, a = std::fabs(y);
  for (int i = 0; i < 120; ++i) {
    Wide middle = (low + high) / 2;
    (middle < 0.5L ? std::erf(middle) < a : std::erfc(middle) > 1 - a) ? low = middle : high = middle;
  }
  if (a < 1e-9L) low = high = a * 0.886226925452758013649083741670572591L;
  return std::copysign((low + high) / 2, y);
}

template <class T>
std::pair<std::vector<T>, std::vector<T>> values_of(const Function& f, size_t count) {
  Element element = sizeof(T) == 4 ? Element::f32 : Element::f64;
  Builder b(f.name);
  uint32_t in = b.buffer("x", element, 0), out = b.buffer("y", element, 1, true);
  b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
    b.store({out, 0, true}, f.make(b.load({in, 0, true})));
    return {};
  });
  std::vector<T> x = arguments<T>(f, count), y(x.size());
  EXPECT_EQ(run(b.finish(), {span_of(x), span_of(y)}, {}, 0, static_cast<int64_t>(x.size())), 0);
  return {x, y};
}

TEST(Math, erfc_and_its_like_are_within_4_ulp) {
  for (const Function& f :
       {Function{"erfc", erfc, std::erfc, -7, 28}, Function{"erfinv", erfinv, wide_erfinv, -1, 1}}) {
    auto [x, y] = values_of<double>(f, 5000);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_LE(distance(y[i], f.reference(x[i])), 4)
          << f.name << " of " << x[i] << " gave " << y[i] << ", expected " << static_cast<double>(f.reference(x[i]));
    auto [z, w] = values_of<float>(f, 5000);
    for (size_t i = 0; i < z.size(); ++i)
      ASSERT_LE(distance(w[i], f.reference(z[i])), 1) << f.name << " of " << z[i] << " gave " << w[i];
  }
}

TEST(Math, gamma_functions_are_near) {
  for (const Function& f :
       {Function{"lgamma", lgamma, std::lgamma, -20, 40}, Function{"digamma", digamma, wide_digamma, -20, 40}}) {
    auto [x, y] = values_of<double>(f, 5000);
    for (size_t i = 0; i < x.size(); ++i) {
      Wide wanted = f.reference(x[i]);
      if (x[i] < -1e10) continue;  // no fraction is left
      if (!std::isfinite(static_cast<double>(wanted)) || !std::isfinite(y[i])) {
        ASSERT_EQ(distance(y[i], wanted), 0) << f.name << " of " << x[i] << " gave " << y[i];
        continue;
      }
      // Between negative integers an ulp of the argument moves the result by more.
      double bound = 1e-14 * (1 + std::fabs(static_cast<double>(wanted)));
      if (x[i] < 0) bound *= 1 + std::fabs(x[i]) / (1e-12 + std::fabs(x[i] - std::nearbyint(x[i])));
      ASSERT_NEAR(y[i], static_cast<double>(wanted), bound) << f.name << " of " << x[i];
    }
  }
}

struct Function2 {
  const char* name;
  Val (*make)(Val, Val);
  Wide (*reference)(Wide, Wide);
  double low, high;
  double bound;  // ulp; 0.5 where the result is exact or rounded once
};

const Function2 functions2[] = {
    {"pow", pow, std::pow, 0, 12, 2},
    {"atan2", atan2, std::atan2, -5, 5, 2},
    {"hypot", hypot, std::hypot, -5, 5, 2},
    {"fmod", fmod, std::fmod, -1000, 1000, 0.5},
    {"copysign", copysign, std::copysign, -5, 5, 0.5},
};

template <class T>
Kernel two_operands(const char* name, Val (*make)(Val, Val)) {
  Element element = sizeof(T) == 4 ? Element::f32 : Element::f64;
  Builder b(name);
  uint32_t first = b.buffer("x", element, 0), second = b.buffer("y", element, 1), out = b.buffer("z", element, 2, true);
  b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
    b.store({out, 0, true}, make(b.load({first, 0, true}), b.load({second, 0, true})));
    return {};
  });
  return b.finish();
}

// Every pair of special numbers, then numbers drawn at random.
template <class T>
void operands(double low, double high, size_t count, std::vector<T>& x, std::vector<T>& y) {
  using U = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Limits = std::numeric_limits<T>;
  const T special[] = {T(0),
                       -T(0),
                       T(1),
                       T(-1),
                       T(0.5),
                       T(-0.5),
                       T(2),
                       T(-2),
                       T(3),
                       T(-3),
                       Limits::infinity(),
                       -Limits::infinity(),
                       Limits::quiet_NaN(),
                       Limits::denorm_min(),
                       -Limits::denorm_min(),
                       Limits::min(),
                       Limits::max(),
                       Limits::lowest(),
                       T(1e10),
                       T(4503599627370497.0)};
  for (T a : special)
    for (T c : special) {
      x.push_back(a);
      y.push_back(c);
    }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> uniform(low, high);
  while (x.size() < count) {
    bool any = x.size() % 3 == 0;
    x.push_back(any ? std::bit_cast<T>(static_cast<U>(random())) : static_cast<T>(uniform(random)));
    y.push_back(any ? std::bit_cast<T>(static_cast<U>(random()))
                    : static_cast<T>(uniform(random) * (x.size() % 2 ? 8 : -8)));
  }
}

template <class T>
void check(const Function2& f, size_t count) {
  Kernel kernel = two_operands<T>(f.name, f.make);
  std::vector<T> x, y;
  operands<T>(f.low, f.high, count, x, y);
  std::vector<T> z(x.size());
  ASSERT_EQ(run(kernel, {span_of(x), span_of(y), span_of(z)}, {}, 0, static_cast<int64_t>(x.size())), 0);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double d = distance(z[i], f.reference(x[i], y[i]));
    if (d > worst) {
      worst = d;
      at = i;
    }
  }
  EXPECT_LE(worst, f.bound) << f.name << " with " << sizeof(T) << " bytes of " << x[at] << " and " << y[at] << " gave "
                            << z[at] << ", expected " << static_cast<double>(f.reference(x[at], y[at]));
  if (std::getenv("TENON_SHOW_ULP"))
    std::printf("%-10s %d %.3f at %g %g\n", f.name, int(sizeof(T)), worst, double(x[at]), double(y[at]));
}

TEST(Math, functions_of_two_numbers_are_within_their_bounds) {
  for (const Function2& f : functions2) {
    check<float>(f, 20000);
    check<double>(f, 20000);
  }
}

template <class T>
void same_as(const char* name, Val (*make)(Val, Val), T (*reference)(T, T)) {
  Kernel kernel = two_operands<T>(name, make);
  std::vector<T> x, y;
  operands<T>(-50, 50, 5000, x, y);
  std::vector<T> z(x.size());
  ASSERT_EQ(run(kernel, {span_of(x), span_of(y), span_of(z)}, {}, 0, static_cast<int64_t>(x.size())), 0);
  for (size_t i = 0; i < x.size(); ++i) {
    T wanted = reference(x[i], y[i]);
    bool same = std::isnan(wanted) ? std::isnan(z[i]) : z[i] == wanted && std::signbit(z[i]) == std::signbit(wanted);
    ASSERT_TRUE(same) << name << " of " << x[i] << " and " << y[i] << " gave " << z[i] << ", expected " << wanted;
  }
}
template <class T>
T python_remainder(T a, T b) {
  T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
T torch_floor_div(T a, T b) {
  if (b == 0) return a / b;
  T rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(T(0), a / b);
  T floored = std::floor(quotient);
  return quotient - floored > T(0.5) ? floored + 1 : floored;
}
template <class T>
void exact_functions() {
  same_as<T>("remainder", remainder, python_remainder<T>);
  same_as<T>("floor_div", floor_div, torch_floor_div<T>);
  same_as<T>("nextafter", nextafter, [](T a, T b) { return std::nextafter(a, b); });
  same_as<T>("min_nan", min_nan, [](T a, T b) { return a != a ? a : b != b ? b : a < b ? a : b; });
  same_as<T>("max_nan", max_nan, [](T a, T b) { return a != a ? a : b != b ? b : a > b ? a : b; });
  same_as<T>("min_number", min_number, [](T a, T b) { return b != b ? a : a < b ? a : b; });
  same_as<T>("max_number", max_number, [](T a, T b) { return b != b ? a : a > b ? a : b; });
}
TEST(Math, remainders_neighbours_and_extremes_are_exact) {
  exact_functions<float>();
  exact_functions<double>();
}

TEST(Math, integer_powers_and_divisions_round_as_python) {
  Builder b("integers");
  uint32_t x = b.buffer("x", Element::i64, 0), y = b.buffer("y", Element::i64, 1),
           z = b.buffer("z", Element::i64, 2, true);
  b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
    Val a = b.load({x, 0, true}), c = b.load({y, 0, true});
    b.store({z, 0, true}, pow(a, c));
    b.store({z, b.hi(), true}, floor_div(a, c));
    b.store({z, b.hi() + b.hi(), true}, remainder(a, c));
    return {};
  });
  std::vector<int64_t> a = {2, -2, 3, 1, -1, -1, 0, 7, -7, 7, -7, 10}, c = {10, 3, -1, -5, -5, -4, 0, 2, 2, -2, -2, 19};
  std::vector<int64_t> got(3 * a.size());
  ASSERT_EQ(run(b.finish(), {span_of(a), span_of(c), span_of(got)}, {}, 0, static_cast<int64_t>(a.size())), 0);
  std::vector<int64_t> powers = {1024, -8, 0, 1, -1, 1, 1, 49, 49, 0, 0, static_cast<int64_t>(10000000000000000000u)};
  EXPECT_EQ(std::vector<int64_t>(got.begin(), got.begin() + 12), powers);
  EXPECT_EQ(std::vector<int64_t>(got.begin() + 19, got.begin() + 23), (std::vector<int64_t>{3, -4, -4, 3}));
  EXPECT_EQ(std::vector<int64_t>(got.begin() + 31, got.begin() + 35), (std::vector<int64_t>{1, 1, -1, -1}));
}

TEST(Math, integers_are_divided_by_known_numbers_exactly) {
  std::vector<int64_t> x;
  for (int bits = 0; bits < 64; ++bits)
    for (int64_t near : {-1, 0, 1})
      for (int64_t sign : {1, -1})
        x.push_back(
            static_cast<int64_t>(((uint64_t{1} << bits) + static_cast<uint64_t>(near)) * static_cast<uint64_t>(sign)));
  for (int64_t i = -60; i < 60; ++i) x.push_back(i);
  for (int64_t by : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{28}, int64_t{64}, int64_t{1000003},
                     (int64_t{1} << 51) - 1, int64_t{1} << 60, std::numeric_limits<int64_t>::max()}) {
    Builder b("divided");
    uint32_t from = b.buffer("x", Element::i64, 0), to = b.buffer("z", Element::i64, 1, true);
    Val count = b.param(0);
    b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
      Val a = b.load({from, 0, true});
      b.store({to, 0, true}, floor_div(a, b.integer(Type::i64, by)));
      b.store({to, count, true}, remainder(a, b.integer(Type::i64, by)));
      return {};
    });
    std::vector<int64_t> got(2 * x.size());
    const auto size = static_cast<int64_t>(x.size());
    ASSERT_EQ(run(b.finish(), {span_of(x), span_of(got)}, {size}, 0, size), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const int64_t rest = x[i] % by;
      ASSERT_EQ(got[i], x[i] / by - (rest < 0)) << x[i] << " by " << by;
      ASSERT_EQ(got[x.size() + i], rest < 0 ? rest + by : rest) << x[i] << " by " << by;
    }
  }
}

TEST(Math, random_bits_are_those_of_philox) {
  Builder b("philox");
  uint32_t out = b.buffer("out", Element::i64, 0, true);
  b.lanes(b.lo(), b.hi(), 16, {}, [&](Val i, const Vals&) -> Vals {
    b.store({out, 0, true}, random_bits(b.param(0), b.param(1), i));
    return {};
  });
  std::vector<int64_t> got(8), zero(4);
  Kernel kernel = b.finish();
  // Known answers of Philox 4x32-10: counter and key 0; counter and key all ones.
  ASSERT_EQ(run(kernel, {span_of(zero)}, {0, 0}, 0, 4), 0);
  EXPECT_EQ(zero, (std::vector<int64_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

// All 65536 of them, and what lies between.
TEST(Math, half_precision_rounds_to_even_and_keeps_denormals) {
  for (Element element : {Element::f16, Element::bf16}) {
    Builder b("round");
    uint32_t x = b.buffer("x", Element::f32, 0), y = b.buffer("y", element, 1, true),
             z = b.buffer("z", Element::f32, 2, true), w = b.buffer("w", Element::f32, 3, true);
    b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
      Val v = b.load({x, 0, true});
      b.store({y, 0, true}, v);
      b.store({z, 0, true}, round_to(v, element));
      return {};
    });
    b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
      b.store({w, 0, true}, b.load({y, 0, true}));
      return {};
    });
    Kernel kernel = b.finish();
    std::vector<float> from;
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      auto value = static_cast<float>(number_of(Type::f32, load_element(element, &bits)));
      if (std::isnan(value)) continue;
      from.push_back(value);
      from.push_back(std::nextafter(value, 1e30f));
      uint32_t next = bits + 1;
      from.push_back((value + static_cast<float>(number_of(Type::f32, load_element(element, &next)))) / 2);
    }
    from.push_back(std::numeric_limits<float>::quiet_NaN());
    for (Isa isa : isas()) {
      std::vector<uint16_t> stored(from.size());
      std::vector<float> rounded(from.size()), loaded(from.size());
      MappedCode code(emit_native(std::span(&kernel, 1), isa));
      ASSERT_EQ(call(code.function(), kernel, {span_of(from), span_of(stored), span_of(rounded), span_of(loaded)}, {},
                     0, static_cast<int64_t>(from.size())),
                0);
      for (size_t i = 0; i < from.size(); ++i) {
        if (std::isnan(from[i])) {
          EXPECT_TRUE(std::isnan(rounded[i]) && std::isnan(loaded[i]));
          continue;
        }
        uint16_t wanted = 0;
        store_element(element, bits_of(Type::f32, from[i]), &wanted);
        ASSERT_EQ(stored[i], wanted) << name(element) << " of " << from[i] << " on " << name(isa);
        ASSERT_EQ(rounded[i], loaded[i]);
      }
    }
  }
}

TEST(Math, f32_functions_are_within_2_ulp) {
  for (const Function& f : functions) check<float>(f, 200000);
}
TEST(Math, f64_functions_are_within_2_ulp) {
  for (const Function& f : functions) check<double>(f, 50000);
}

}  // namespace
}  // namespace tenon::compile
