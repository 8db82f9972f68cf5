#include "tenon/templates/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "numbers.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

/// Every instruction set that this processor has; the portable one always.
template <class Check>
void for_each_isa(Check check) {
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512}) {
    SCOPED_TRACE(testing::Message() << "instruction set " << static_cast<int>(isa));
    if (auto table = kernels_of<float>(isa); table.rows != 0) check(table, float());
    if (auto table = kernels_of<double>(isa); table.rows != 0) check(table, double());
  }
}

template <class T>
void check_tile(TileFunction<T> tile, int height, int columns) {
  constexpr Int k = 37;
  Numbers numbers(5);
  const Int b_row = columns + 3, out_row = columns + 5;
  const std::vector<T> a = numbers.vector<T>(k * height), b = numbers.vector<T>(k * b_row);
  for (int rows : {height, height - 1})
    for (bool add : {false, true}) {
      std::vector<T> out = numbers.vector<T>(height * out_row), before = out;
      tile(k, a.data(), b.data(), b_row, out.data(), out_row, rows, add);
      for (Int i = 0; i < height; ++i)
        for (Int j = 0; j < out_row; ++j) {
          const auto at = static_cast<std::size_t>(i * out_row + j);
          if (i >= rows || j >= columns) {
            ASSERT_EQ(out[at], before[at]) << "wrote outside of the tile";
            continue;
          }
          double sum = add ? static_cast<double>(before[at]) : 0.0, size = std::fabs(sum);
          for (Int p = 0; p < k; ++p) {
            const double term = static_cast<double>(a[static_cast<std::size_t>(p * height + i)]) *
                                static_cast<double>(b[static_cast<std::size_t>(p * b_row + j)]);
            sum += term, size += std::fabs(term);
          }
          ASSERT_NEAR(out[at], sum, 2 * (k + 2) * double{std::numeric_limits<T>::epsilon()} * size);
        }
    }
}

TEST(Kernels, TilesOfEveryHeightAndWidthMultiply) {
  for_each_isa([](const auto& table, auto zero) {
    using T = decltype(zero);
    for (int height = 1; height <= table.rows; ++height) {
      if (table.tile[height] == nullptr) continue;
      check_tile<T>(table.tile[height], height, table.columns);
      check_tile<T>(table.narrow[height], height, table.columns / 2);
    }
    ASSERT_NE(table.tile[table.rows], nullptr);
    check_tile<T>(table.row, 1, 4 * table.columns);
  });
}

TEST(Kernels, RowLoopsReachExactlyTheirElements) {
  for_each_isa([](const auto& table, auto zero) {
    using T = decltype(zero);
    const double eps = std::numeric_limits<T>::epsilon();
    for (Int n = 0; n < 150; ++n) {
      Numbers numbers(static_cast<std::uint64_t>(n));
      std::vector<T> x = numbers.vector<T>(n + 1), y = numbers.vector<T>(n + 1), z = y;
      double dot = 0, size = 0;
      T most = -std::numeric_limits<T>::infinity();
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        dot += static_cast<double>(x[i]) * static_cast<double>(y[i]);
        size += std::fabs(static_cast<double>(x[i]) * static_cast<double>(y[i]));
        most = std::max(most, x[i] * T(-2));
      }
      ASSERT_NEAR(table.dot(n, x.data(), y.data()), dot, static_cast<double>(n + 1) * 2 * eps * size);
      table.add_scaled(n, T(0.3), x.data(), z.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) ASSERT_NEAR(z[i], y[i] + T(0.3) * x[i], 2 * eps);
      ASSERT_EQ(z.back(), y.back());
      const T last = x.back();
      ASSERT_EQ(table.scale_max(n, T(-2), x.data()), most);
      ASSERT_EQ(x.back(), last);
      y = x;
      const T sum = table.exp_row(n, x.data(), T(1));
      double expected = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        ASSERT_NEAR(x[i], std::exp(double{y[i]} - 1), 4 * eps);
        expected += double{x[i]};
      }
      ASSERT_NEAR(sum, expected, static_cast<double>(n + 1) * eps * expected);
      ASSERT_EQ(x.back(), last);
    }
  });
}

TEST(Kernels, ExponentialIsWithinTwoUlpOverItsRange) {
  for_each_isa([](const auto& table, auto zero) {
    using T = decltype(zero);
    for (double x = -86; x < 88; x += 0.00937) {
      T value = static_cast<T>(x);
      const double expected = std::exp(static_cast<double>(value));
      table.exp_row(1, &value, T(0));
      ASSERT_NEAR(value / expected, 1, 2 * double{std::numeric_limits<T>::epsilon()}) << x;
    }
  });
}

TEST(Kernels, ExponentialKeepsItsEndsAndNan) {
  for_each_isa([](const auto& table, auto zero) {
    using T = decltype(zero);
    const T infinity = std::numeric_limits<T>::infinity();
    T x[] = {-infinity, infinity, std::numeric_limits<T>::quiet_NaN(), T(-1000), T(1000), T(0)};
    table.exp_row(6, x, T(0));
    EXPECT_EQ(x[0], 0);
    EXPECT_EQ(x[1], infinity);
    EXPECT_TRUE(std::isnan(x[2]));
    EXPECT_EQ(x[3], 0);
    EXPECT_EQ(x[4], infinity);
    EXPECT_EQ(x[5], 1);
  });
}

TEST(Scratch, BlocksInUseAtOnceAreDistinctAndAligned) {
  for (int round = 0; round < 2; ++round) {
    Scratch a(100), b(1 << 20), c(0), d(5000), e(5000), f(40 << 20);
    const Scratch* all[] = {&a, &b, &c, &d, &e, &f};
    const Int sizes[] = {100, 1 << 20, 1, 5000, 5000, 40 << 20};
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(all[i]->as<char>()) % 64, 0u);
      all[i]->as<char>()[0] = all[i]->as<char>()[sizes[i] - 1] = static_cast<char>(i);
    }
    for (int i = 0; i < 6; ++i) EXPECT_EQ(all[i]->as<char>()[sizes[i] - 1], i);
  }
}

}  // namespace
}  // namespace tenon::templates
