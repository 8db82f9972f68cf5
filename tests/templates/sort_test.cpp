#include "tenon/templates/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "numbers.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T>
bool less(T a, T b) {
  return (!std::isnan(double(a)) && std::isnan(double(b))) || a < b;
}

/// Values with many ties, some NaN and both zeros.
template <class T>
std::vector<T> with_ties(Int size, Numbers& numbers) {
  std::vector<T> result(static_cast<std::size_t>(size));
  for (T& x : result) {
    x = static_cast<T>(numbers.below(size / 2 + 2) - size / 4);
    if constexpr (!std::is_same_v<T, Int>) {
      if (numbers.below(10) == 0) x = std::numeric_limits<T>::quiet_NaN();
      if (numbers.below(10) == 0) x = -T(0);
    }
  }
  return result;
}

template <class T>
void check_sort(Int outer, Int n, Int inner, bool descending) {
  Numbers numbers(static_cast<std::uint64_t>(outer + n + inner));
  std::vector<T> in = with_ties<T>(outer * n * inner, numbers), values(in.size());
  std::vector<Int> indices(in.size(), -1);
  const Lines lines = Lines::contiguous(outer, n, inner);
  sort(in.data(), lines, values.data(), indices.data(), lines, descending);
  for (Int line = 0; line < lines.count(); ++line) {
    const T* row = in.data() + lines.begin(line);
    auto at = [&](Int i) { return row[i * inner]; };
    std::vector<Int> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](Int a, Int b) { return descending ? less(at(b), at(a)) : less(at(a), at(b)); });
    for (Int i = 0; i < n; ++i) {
      auto where = static_cast<std::size_t>(lines.begin(line) + i * inner);
      ASSERT_EQ(indices[where], order[static_cast<std::size_t>(i)]);
      const T expected = at(indices[where]);
      ASSERT_TRUE(values[where] == expected || (values[where] != values[where] && expected != expected));
      ASSERT_EQ(std::signbit(double(values[where])), std::signbit(double(expected)));
    }
  }
}

TEST(Sort, IsStableInBothDirectionsForEveryTypeAndLayout) {
  for (bool descending : {false, true})
    for (Int n : {1, 2, 7, 48, 49, 300, 5000}) {
      check_sort<float>(2, n, 3, descending);
      check_sort<double>(3, n, 1, descending);
      check_sort<Int>(1, n, 2, descending);
      if (HasFatalFailure()) return;
    }
}

TEST(Sort, OrdersTheWholeRangeOfIntegers) {
  std::vector<Int> in(100, 0), values(100), indices(100);
  in[3] = std::numeric_limits<Int>::min(), in[7] = std::numeric_limits<Int>::max(), in[9] = -1;
  sort(in.data(), Lines::contiguous(1, 100, 1), values.data(), indices.data(), Lines::contiguous(1, 100, 1), false);
  EXPECT_EQ(indices[0], 3);
  EXPECT_EQ(indices[1], 9);
  EXPECT_EQ(indices[99], 7);
}

TEST(Sort, InfinitiesStandBetweenNumbersAndNan) {
  const float in[] = {nan, infinity, 1, -infinity, -nan};
  float values[5];
  Int indices[5];
  sort(in, Lines::contiguous(1, 5, 1), values, indices, Lines::contiguous(1, 5, 1), false);
  EXPECT_EQ(std::vector<Int>(indices, indices + 5), (std::vector<Int>{3, 2, 1, 0, 4}));
}

TEST(Sort, EmptyLinesAreAllowed) {
  sort<float>(nullptr, Lines::contiguous(3, 0, 2), nullptr, nullptr, Lines::contiguous(3, 0, 2), false);
  topk<float>(nullptr, Lines::contiguous(0, 4, 2), nullptr, nullptr, Lines::contiguous(0, 2, 2), true, true);
}

TEST(Topk, ReturnsTheGreatestOrLeastInOrder) {
  for (Int n : {1, 5, 100, 1000})
    for (Int k : {Int{1}, n / 65 + 1, n / 2 + 1, n})
      for (bool largest : {false, true}) {
        Numbers numbers(static_cast<std::uint64_t>(n + k));
        std::vector<float> in = with_ties<float>(n * 3, numbers), values(static_cast<std::size_t>(k * 3));
        std::vector<Int> indices(values.size());
        const Lines lines = Lines::contiguous(1, n, 3), to = Lines::contiguous(1, k, 3);
        topk(in.data(), lines, values.data(), indices.data(), to, largest, true);
        for (Int line = 0; line < 3; ++line) {
          std::vector<float> row;
          for (Int i = 0; i < n; ++i) row.push_back(in[static_cast<std::size_t>(line + i * 3)]);
          std::sort(row.begin(), row.end(), [&](float a, float b) { return largest ? less(b, a) : less(a, b); });
          for (Int i = 0; i < k; ++i) {
            auto where = static_cast<std::size_t>(line + i * 3);
            const float expected = row[static_cast<std::size_t>(i)];
            ASSERT_TRUE(values[where] == expected || (std::isnan(values[where]) && std::isnan(expected)));
            const float there = in[static_cast<std::size_t>(line + indices[where] * 3)];
            ASSERT_TRUE(there == values[where] || std::isnan(there));
          }
        }
      }
}

// Found by running PyTorch 2.15.
TEST(Topk, TiesFallAsInPytorch) {
  const float in[] = {1, nan, 2, 2, nan, 2, 5};
  auto indices = [&](Int k, bool largest) {
    std::vector<float> values(static_cast<std::size_t>(k));
    std::vector<Int> result(values.size());
    topk(in, Lines::contiguous(1, 7, 1), values.data(), result.data(), Lines::contiguous(1, k, 1), largest, true);
    return result;
  };
  EXPECT_EQ(indices(5, true), (std::vector<Int>{1, 4, 6, 2, 5}));
  EXPECT_EQ(indices(7, true), (std::vector<Int>{1, 4, 6, 2, 5, 3, 0}));
  EXPECT_EQ(indices(3, false), (std::vector<Int>{0, 5, 3}));
  EXPECT_EQ(indices(7, false), (std::vector<Int>{0, 2, 3, 5, 6, 4, 1}));
}

}  // namespace
}  // namespace tenon::templates
