#include "tenon/templates/scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "numbers.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr Int shapes[][3] = {{1, 1, 1}, {1, 100, 1}, {3, 17, 5}, {2, 9, 70}, {1, 4, 33}, {4, 0, 3}, {0, 5, 2}};

/// Runs op over each shape and compares with expected(line's values so far), element by element.
template <class T, class Op, class Expected>
void check(Op op, Expected expected) {
  for (const auto& [outer, n, inner] : shapes) {
    Numbers numbers(static_cast<std::uint64_t>(outer + n + inner));
    std::vector<T> in = numbers.vector<T>(outer * n * inner), out(in.size());
    if constexpr (std::is_same_v<T, Int>)
      for (T& x : in) x = numbers.below(7) - 3;
    const Lines lines = Lines::contiguous(outer, n, inner);
    op(in.data(), lines, out.data(), lines);
    for (Int line = 0; line < lines.count(); ++line) {
      std::vector<T> so_far;
      for (Int i = 0; i < n; ++i) {
        auto at = static_cast<std::size_t>(lines.begin(line) + i * inner);
        so_far.push_back(in[at]);
        ASSERT_EQ(out[at], static_cast<T>(expected(so_far)));
      }
    }
  }
}

TEST(Scan, SumsOfFloatAreKeptInDouble) {
  auto sum = [](const auto& values) {
    double s = 0;
    for (auto x : values) s += static_cast<double>(x);
    return s;
  };
  check<float>(cumsum<float>, sum);
  check<double>(cumsum<double>, sum);
  check<Int>(cumsum<Int>, sum);
}

TEST(Scan, ProductsOfFloatAreKeptInDouble) {
  auto product = [](const auto& values) {
    double s = 1;
    for (auto x : values) s *= static_cast<double>(x);
    return s;
  };
  check<float>(cumprod<float>, product);
  check<double>(cumprod<double>, product);
}

TEST(Scan, IntegerProductsWrapAround) {
  const Int in[] = {Int{1} << 40, Int{1} << 22, 4, 3};
  Int out[4];
  cumprod(in, Lines::contiguous(1, 4, 1), out, Lines::contiguous(1, 4, 1));
  EXPECT_EQ(out[1], Int{1} << 62);
  EXPECT_EQ(out[2], 0);
}

TEST(Scan, LogcumsumexpIsTheLogarithmOfASum) {
  Numbers numbers(3);
  std::vector<double> in = numbers.vector<double>(50), out(50);
  for (double& x : in) x *= 400;
  cumsum(in.data(), Lines::contiguous(1, 50, 1), in.data(), Lines::contiguous(1, 50, 1));
  logcumsumexp(in.data(), Lines::contiguous(1, 50, 1), out.data(), Lines::contiguous(1, 50, 1));
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 50; ++i) {
    most = std::fmax(most, in[i]);
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) sum += std::exp(in[j] - most);
    EXPECT_NEAR(out[i], most + std::log(sum), 1e-12 * (1 + std::fabs(most)));
  }
}

TEST(Scan, LogcumsumexpKeepsInfinitiesAndNan) {
  const float in[] = {-infinity, -infinity, 1, infinity, infinity, 2, nan, 3};
  float out[8];
  logcumsumexp(in, Lines::contiguous(1, 8, 1), out, Lines::contiguous(1, 8, 1));
  EXPECT_EQ(out[0], -infinity);
  EXPECT_EQ(out[1], -infinity);
  EXPECT_EQ(out[2], 1);
  EXPECT_EQ(out[4], infinity);
  EXPECT_EQ(out[5], infinity);
  EXPECT_TRUE(std::isnan(out[6]));
  EXPECT_TRUE(std::isnan(out[7]));
}

TEST(Scan, ExtremesTakeTheLastOfEqualsAndStayNan) {
  const float in[] = {1, 3, 3, nan, 5, nan, 2};
  float values[7];
  Int indices[7];
  const Lines lines = Lines::contiguous(1, 7, 1);
  cummax(in, lines, values, indices, lines);
  EXPECT_EQ(std::vector<Int>(indices, indices + 7), (std::vector<Int>{0, 1, 2, 3, 3, 5, 5}));
  EXPECT_EQ(values[2], 3);
  EXPECT_TRUE(std::isnan(values[4]));
  const float low[] = {1, 3, 1, nan, 0, nan, 2};
  cummin(low, lines, values, indices, lines);
  EXPECT_EQ(std::vector<Int>(indices, indices + 7), (std::vector<Int>{0, 0, 2, 3, 3, 5, 5}));
  EXPECT_EQ(values[1], 1);
}

TEST(Scan, ExtremesOfIntegersAlongAMiddleDimension) {
  check<Int>(
      [](const Int* in, const Lines& lines, Int* out, const Lines& to) {
        std::vector<Int> indices(static_cast<std::size_t>(lines.count() * lines.length));
        cummax(in, lines, out, indices.data(), to);
      },
      [](const std::vector<Int>& values) {
        Int most = values[0];
        for (Int x : values) most = x > most ? x : most;
        return most;
      });
}

}  // namespace
}  // namespace tenon::templates
