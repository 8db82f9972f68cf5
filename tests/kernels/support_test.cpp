// What stands in for instructions that the portable target lacks, against the instructions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "numbers.h"

namespace portable {  // under names of their own, beside libm's
#define fma portable_fma
#define fmaf portable_fmaf
#include "kernels/support/fma.cpp"
#undef fma
#undef fmaf
#define rint portable_rint
#define rintf portable_rintf
#define nearbyint portable_nearbyint
#define nearbyintf portable_nearbyintf
#define floor portable_floor
#define floorf portable_floorf
#define ceil portable_ceil
#define ceilf portable_ceilf
#define trunc portable_trunc
#define truncf portable_truncf
#include "kernels/support/rounding.cpp"
#undef rint
#undef rintf
#undef nearbyint
#undef nearbyintf
#undef floor
#undef floorf
#undef ceil
#undef ceilf
#undef trunc
#undef truncf
}  // namespace portable

namespace tenon::kernels {
namespace {

template <class T>
bool same(T a, T b) {
  return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0;
}

/// Any bits, with exponents often close to each other and sometimes at the ends of the range.
template <class T, class Bits>
T any(Numbers& numbers) {
  Bits bits = static_cast<Bits>(numbers.bits()) << (sizeof(Bits) * 8 - 31) ^
              static_cast<Bits>(numbers.bits() * 0x9e3779b97f4a7c15u);
  constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  Bits exponent = static_cast<Bits>(std::numeric_limits<T>::max_exponent - 1 + numbers.below(120) - 60);
  switch (numbers.below(8)) {
    case 0: break;                                                            // any exponent
    case 1: exponent = static_cast<Bits>(numbers.below(3)); [[fallthrough]];  // zeros and denormals
    default: {
      Bits field = (Bits{2} * std::numeric_limits<T>::max_exponent - 1) << mantissa;
      bits = (bits & ~field) | exponent << mantissa;
    }
  }
  if (numbers.below(4) == 0) bits &= ~((Bits{1} << (mantissa - 4)) - 1);  // few bits: ties
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

TEST(Support, fma_rounds_once) {
  Numbers numbers(1);
  for (int i = 0; i < 400000; ++i) {
    double a = any<double, uint64_t>(numbers), b = any<double, uint64_t>(numbers), c = any<double, uint64_t>(numbers);
    if (i % 3 == 0) c = -a * b * (i % 2 ? 1 : 1 + 0x1p-52);  // nearly everything cancels
    ASSERT_TRUE(same(portable::portable_fma(a, b, c), std::fma(a, b, c))) << std::hexfloat << a << ' ' << b << ' ' << c;
    float x = any<float, uint32_t>(numbers), y = any<float, uint32_t>(numbers), z = any<float, uint32_t>(numbers);
    if (i % 3 == 0) z = -x * y;
    ASSERT_TRUE(same(portable::portable_fmaf(x, y, z), std::fma(x, y, z)))
        << std::hexfloat << x << ' ' << y << ' ' << z;
  }
}

TEST(Support, fma_keeps_infinities_nan_and_the_signs_of_zeros) {
  const double values[] = {0.0,
                           -0.0,
                           1.0,
                           -1.0,
                           0x1p-1074,
                           -0x1p-1074,
                           std::numeric_limits<double>::max(),
                           std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()};
  for (double a : values)
    for (double b : values)
      for (double c : values) {
        EXPECT_TRUE(same(portable::portable_fma(a, b, c), std::fma(a, b, c))) << a << ' ' << b << ' ' << c;
        float x = static_cast<float>(a), y = static_cast<float>(b), z = static_cast<float>(c);
        EXPECT_TRUE(same(portable::portable_fmaf(x, y, z), std::fma(x, y, z))) << x << ' ' << y << ' ' << z;
      }
}

template <class T>
void expect_rounded(T x) {
  if constexpr (sizeof(T) == 8) {
    EXPECT_TRUE(same(portable::portable_rint(x), std::nearbyint(x))) << x;
    EXPECT_TRUE(same(portable::portable_floor(x), std::floor(x))) << x;
    EXPECT_TRUE(same(portable::portable_ceil(x), std::ceil(x))) << x;
    EXPECT_TRUE(same(portable::portable_trunc(x), std::trunc(x))) << x;
  } else {
    EXPECT_TRUE(same(portable::portable_rintf(x), std::nearbyint(x))) << x;
    EXPECT_TRUE(same(portable::portable_floorf(x), std::floor(x))) << x;
    EXPECT_TRUE(same(portable::portable_ceilf(x), std::ceil(x))) << x;
    EXPECT_TRUE(same(portable::portable_truncf(x), std::trunc(x))) << x;
  }
}

TEST(Support, rounds_to_whole_numbers) {
  Numbers numbers(2);
  for (double x : {0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 2.5, 1e9, 0x1p51 + 0.5, 0x1p52 - 0.5, 0x1p53, 1e300,
                   std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (double signed_x : {x, -x}) expect_rounded(signed_x), expect_rounded(static_cast<float>(signed_x));
  for (int i = 0; i < 20000; ++i) {
    expect_rounded(any<double, uint64_t>(numbers));
    expect_rounded(any<float, uint32_t>(numbers));
  }
}

}  // namespace
}  // namespace tenon::kernels
