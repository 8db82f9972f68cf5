#include "tenon/templates/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "numbers.h"

namespace tenon::templates {
namespace {

/// A matrix product with its own memory: layout says whether each operand is transposed, with some room between rows.
template <class T>
struct Problem {
  GemmArgs<T> args;
  std::vector<T> a, b, c, bias;

  Problem(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, int layout) {
    Numbers numbers(static_cast<std::uint64_t>(batch + 3 * m + 5 * n + 7 * k + layout));
    args.batch = batch, args.m = m, args.n = n, args.k = k;
    auto lay = [](bool turned, std::int64_t rows, std::int64_t cols, std::int64_t& row, std::int64_t& col) {
      row = turned ? 1 : cols + 3;
      col = turned ? rows + 2 : 1;
      return turned ? cols * col : rows * row;
    };
    args.a_batch = lay(layout & 1, m, k, args.a_row, args.a_col);
    args.b_batch = lay(layout & 2, k, n, args.b_row, args.b_col);
    args.c_batch = lay(layout & 4, m, n, args.c_row, args.c_col);
    a = numbers.vector<T>(batch * args.a_batch);
    b = numbers.vector<T>(batch * args.b_batch);
    c = numbers.vector<T>(batch * args.c_batch);
    bias = numbers.vector<T>(m + n);
    args.a = a.data(), args.b = b.data(), args.c = c.data();
  }

  void check() {
    std::vector<T> before = c;
    gemm(args);
    const double eps = std::numeric_limits<T>::epsilon();
    std::vector<char> written(c.size(), 0);
    for (std::int64_t q = 0; q < args.batch; ++q)
      for (std::int64_t i = 0; i < args.m; ++i)
        for (std::int64_t j = 0; j < args.n; ++j) {
          double sum = 0, size = 0;
          for (std::int64_t p = 0; p < args.k; ++p) {
            double term = static_cast<double>(args.a[q * args.a_batch + i * args.a_row + p * args.a_col]) *
                          static_cast<double>(args.b[q * args.b_batch + p * args.b_row + j * args.b_col]);
            sum += term;
            size += std::fabs(term);
          }
          auto at = static_cast<std::size_t>(q * args.c_batch + i * args.c_row + j * args.c_col);
          sum *= args.alpha;
          size *= std::fabs(static_cast<double>(args.alpha));
          auto add = [&](double term) { sum += term, size += std::fabs(term); };
          if (args.beta != 0) add(static_cast<double>(args.beta) * before[at]);
          if (args.bias)
            add(static_cast<double>(args.bias_scale) *
                args.bias[q * args.bias_batch + i * args.bias_row + j * args.bias_col]);
          // k products and sums, alpha, beta and bias; the reference adds as much again for double.
          ASSERT_NEAR(c[at], sum, 2 * static_cast<double>(args.k + 4) * eps * size)
              << args.batch << "x" << args.m << "x" << args.n << "x" << args.k << " at " << i << "," << j;
          written[at] = 1;
        }
    for (std::size_t i = 0; i < c.size(); ++i)
      if (!written[i]) { ASSERT_EQ(c[i], before[i]) << "wrote between rows"; }
  }
};

constexpr std::int64_t odd_sizes[][3] = {{1, 1, 1},    {1, 7, 5},      {7, 1, 5},     {2, 3, 300},  {5, 65, 17},
                                         {13, 33, 31}, {1, 300, 70},   {1, 513, 257}, {300, 1, 70}, {12, 32, 8},
                                         {97, 49, 33}, {25, 130, 513}, {3, 40, 64},   {64, 2, 40},  {6, 16, 4},
                                         {31, 31, 31}, {110, 70, 1},   {9, 9, 600}};

TEST(Gemm, AgreesWithPlainLoopsForEveryLayout) {
  for (auto [m, n, k] : odd_sizes)
    for (int layout = 0; layout < 8; ++layout) {
      Problem<float>(1, m, n, k, layout).check();
      Problem<double>(1, m, n, k, layout).check();
      if (HasFatalFailure()) return;
    }
}

TEST(Gemm, BatchesAndBroadcastOperands) {
  for (auto [m, n, k] : odd_sizes)
    for (int which = 0; which < 3; ++which) {
      Problem<float> p(5, m, n, k, which);
      if (which == 1) p.args.b_batch = 0;
      if (which == 2) p.args.a_batch = 0;
      p.check();
      if (HasFatalFailure()) return;
    }
}

TEST(Gemm, SharedMatrixOverPackedBatchIsOneTallMatrix) {
  Problem<float> p(4, 9, 21, 33, 0);
  p.args.b_batch = 0;
  p.args.a_batch = 9 * p.args.a_row;
  p.args.c_batch = 9 * p.args.c_row;
  p.check();
}

TEST(Gemm, AlphaBetaAndBias) {
  for (auto [m, n, k] : odd_sizes)
    for (int which = 0; which < 8; ++which) {
      Problem<float> p(2, m, n, k, which & 4);
      if (which & 1) p.args.alpha = -1.5f;
      if (which & 2) p.args.beta = 0.75f;
      p.args.bias = p.bias.data();
      p.args.bias_scale = which & 4 ? 2.0f : 1.0f;
      if (which & 1) p.args.bias_row = 1;
      else p.args.bias_col = 1;
      p.check();
      if (HasFatalFailure()) return;
    }
}

TEST(Gemm, ZeroBetaDoesNotReadTheResult) {
  for (auto [m, n, k] : odd_sizes) {
    Problem<float> p(1, m, n, k, 0);
    for (float& x : p.c) x = std::numeric_limits<float>::quiet_NaN();
    gemm(p.args);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        ASSERT_FALSE(std::isnan(p.c[static_cast<std::size_t>(i * p.args.c_row + j)]));
  }
}

TEST(Gemm, EmptySumIsZeroOrTheBias) {
  Problem<double> p(2, 3, 4, 0, 0);
  p.check();
  p.args.bias = p.bias.data();
  p.args.bias_col = 1;
  p.check();
  p.args.beta = 2;
  p.check();
}

TEST(Gemm, EmptyResultIsLeftAlone) {
  Problem<float>(1, 0, 5, 5, 0).check();
  Problem<float>(1, 5, 0, 5, 0).check();
  Problem<float>(0, 5, 5, 5, 0).check();
}

TEST(Gemm, BitsDoNotDependOnTheNumberOfThreads) {
  for (auto [m, n, k] : odd_sizes)
    for (int layout = 0; layout < 4; ++layout) {
      Problem<float> one(3, m, n, k, layout), two(3, m, n, k, layout);
      {
        WithThreads with(1);
        gemm(one.args);
      }
      WithThreads with(2);
      gemm(two.args);
      ASSERT_EQ(0, std::memcmp(one.c.data(), two.c.data(), one.c.size() * sizeof(float)));
    }
}

TEST(Gemm, InfinityTimesZeroIsNotANumberAnywhere) {
  Problem<float> p(1, 20, 50, 40, 0);
  p.a[5] = std::numeric_limits<float>::infinity();  // row 0
  for (std::int64_t j = 0; j < 50; ++j) p.b[static_cast<std::size_t>(5 * p.args.b_row + j)] = 0;
  gemm(p.args);
  for (std::size_t j = 0; j < 50; ++j) EXPECT_TRUE(std::isnan(p.c[j]));
  EXPECT_FALSE(std::isnan(p.c[static_cast<std::size_t>(p.args.c_row)]));
}

TEST(Gemm, IntegersAreExactAndWrapAround) {
  std::int64_t a[] = {1, 2, std::numeric_limits<std::int64_t>::max(), 4}, b[] = {5, 6, 2, 8}, c[4] = {1, 1, 1, 1};
  GemmArgs<std::int64_t> args;
  args.m = args.n = args.k = 2;
  args.a = a, args.a_row = 2, args.b = b, args.b_row = 2, args.c = c, args.c_row = 2;
  args.beta = 10;
  gemm(args);
  EXPECT_EQ(c[0], 1 * 5 + 2 * 2 + 10);
  EXPECT_EQ(c[1], 1 * 6 + 2 * 8 + 10);
  // The largest integer is 2^63 - 1: five of it are 2^63 - 5 and six are -6, modulo 2^64.
  EXPECT_EQ(c[2], std::numeric_limits<std::int64_t>::min() + (4 * 2 + 10 - 5));
  EXPECT_EQ(c[3], -6 + 4 * 8 + 10);
}

}  // namespace
}  // namespace tenon::templates
