// The factorizations behind the host functions of linear algebra, compiled into this test.
#include "kernels/host/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/numbers.h"

namespace tenon::kernels {
namespace {

using Int = std::int64_t;
using Matrix = std::vector<double>;

Matrix random_matrix(Int m, Int n, std::uint64_t seed) {
  Numbers numbers(seed);
  Matrix out(static_cast<std::size_t>(m * n));
  for (double& x : out) x = static_cast<double>(numbers.below(2001) - 1000) / 500;
  return out;
}

Matrix product(const Matrix& a, const Matrix& b, Int m, Int k, Int n) {
  Matrix out(static_cast<std::size_t>(m * n));
  multiply(a.data(), b.data(), out.data(), m, k, n);
  return out;
}

Matrix transposed(const Matrix& a, Int m, Int n) {
  Matrix out(a.size());
  for (Int i = 0; i < m; ++i)
    for (Int j = 0; j < n; ++j) out[static_cast<std::size_t>(j * m + i)] = a[static_cast<std::size_t>(i * n + j)];
  return out;
}

Matrix unit(Int n) {
  Matrix out(static_cast<std::size_t>(n * n));
  for (Int i = 0; i < n; ++i) out[static_cast<std::size_t>(i * n + i)] = 1;
  return out;
}

Matrix symmetric(Int n, std::uint64_t seed) {
  Matrix a = random_matrix(n, n, seed), b = transposed(a, n, n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

void expect_near(const Matrix& got, const Matrix& want, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::fabs(got[i] - want[i]));
  EXPECT_LT(worst, 1e-11) << what;
}

TEST(Matrix, lu_times_its_factors_is_the_matrix) {
  for (auto [m, n] : {std::pair<Int, Int>{1, 1}, {5, 5}, {7, 4}, {4, 7}, {40, 40}}) {
    Matrix a = random_matrix(m, n, 3), lu = a;
    Int k = std::min(m, n);
    std::vector<std::int32_t> pivots(static_cast<std::size_t>(k));
    EXPECT_EQ(factor_lu(lu.data(), m, n, pivots.data()), 0);
    Matrix l(static_cast<std::size_t>(m * k)), u(static_cast<std::size_t>(k * n));
    for (Int i = 0; i < m; ++i)
      for (Int j = 0; j < n; ++j) {
        double x = lu[static_cast<std::size_t>(i * n + j)];
        if (j < i && j < k) l[static_cast<std::size_t>(i * k + j)] = x;
        if (j >= i && i < k) u[static_cast<std::size_t>(i * n + j)] = x;
      }
    for (Int i = 0; i < k; ++i) l[static_cast<std::size_t>(i * k + i)] = 1;
    Matrix both = product(l, u, m, k, n);
    for (Int i = k; i-- > 0;)
      std::swap_ranges(both.begin() + i * n, both.begin() + (i + 1) * n,
                       both.begin() + (pivots[static_cast<std::size_t>(i)] - 1) * n);
    expect_near(both, a, "P L U");
  }
}

TEST(Matrix, lu_says_where_a_matrix_is_singular) {
  Matrix a = {1, 2, 2, 4};
  std::int32_t pivots[2];
  EXPECT_EQ(factor_lu(a.data(), 2, 2, pivots), 2);
}

TEST(Matrix, cholesky_times_its_transpose_is_the_matrix) {
  Matrix half = random_matrix(12, 12, 5), a = product(half, transposed(half, 12, 12), 12, 12, 12), l = a;
  EXPECT_EQ(factor_cholesky(l.data(), 12), 0);
  expect_near(product(l, transposed(l, 12, 12), 12, 12, 12), a, "L Lt");
  Matrix indefinite = {1, 2, 2, 1};
  EXPECT_EQ(factor_cholesky(indefinite.data(), 2), 2);
}

TEST(Matrix, triangles_are_solved_from_either_side_of_the_diagonal) {
  Matrix a = random_matrix(6, 6, 7), b = random_matrix(6, 2, 8);
  for (Int i = 0; i < 6; ++i) a[static_cast<std::size_t>(i * 7)] += 4;
  for (int kind = 0; kind < 8; ++kind) {
    Triangle t{(kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0};
    Matrix only = a, x = b;
    for (Int i = 0; i < 6; ++i)
      for (Int j = 0; j < 6; ++j) {
        if (t.upper ? j < i : j > i) only[static_cast<std::size_t>(i * 6 + j)] = 0;
        if (i == j && t.unit) only[static_cast<std::size_t>(i * 6 + j)] = 1;
      }
    solve_triangle(a.data(), t, 6, x.data(), 2);
    expect_near(product(t.transposed ? transposed(only, 6, 6) : only, x, 6, 6, 2), b, "T x");
  }
}

TEST(Matrix, reflectors_of_a_qr_give_the_matrix_back) {
  for (auto [m, n] : {std::pair<Int, Int>{5, 5}, {8, 3}, {3, 8}}) {
    Matrix a = random_matrix(m, n, 9), qr = a, tau(static_cast<std::size_t>(std::min(m, n))),
           spare(static_cast<std::size_t>(n));
    factor_qr(qr.data(), m, n, tau.data(), spare.data());
    Matrix r = qr;
    for (Int i = 0; i < m; ++i)
      for (Int j = 0; j < std::min(i, n); ++j) r[static_cast<std::size_t>(i * n + j)] = 0;
    apply_reflectors(qr.data(), m, n, tau.data(), std::min(m, n), false, r.data(), n, spare.data());
    expect_near(r, a, "Q R");
  }
}

TEST(Matrix, eigenvectors_diagonalize_a_symmetric_matrix) {
  for (Int n : {1, 2, 3, 10, 60})
    for (bool upper : {false, true}) {
      Matrix a = symmetric(n, 11), v = a, values(static_cast<std::size_t>(n)),
             spare(static_cast<std::size_t>(eigen_spare(n)));
      ASSERT_TRUE(eigen_symmetric(v.data(), n, upper, values.data(), spare.data()));
      EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
      Matrix scaled = v;
      for (Int i = 0; i < n * n; ++i) scaled[static_cast<std::size_t>(i)] *= values[static_cast<std::size_t>(i % n)];
      expect_near(product(scaled, transposed(v, n, n), n, n, n), a, "V L Vt");
      expect_near(product(transposed(v, n, n), v, n, n, n), unit(n), "Vt V");
    }
}

TEST(Matrix, singular_vectors_and_values_give_the_matrix_back) {
  for (auto [m, n] : {std::pair<Int, Int>{1, 1}, {2, 2}, {6, 6}, {9, 4}, {4, 9}, {50, 50}, {30, 7}}) {
    Matrix a = random_matrix(m, n, 13), lost = a;
    if (m == 6) std::fill(lost.begin(), lost.begin() + 12, 1.0), a = lost;  // two equal rows
    Int k = std::min(m, n);
    Matrix u(static_cast<std::size_t>(m * m)), s(static_cast<std::size_t>(k)), vt(static_cast<std::size_t>(n * n)),
        spare(static_cast<std::size_t>(svd_spare(m, n)));
    ASSERT_TRUE(factor_svd(lost.data(), m, n, u.data(), s.data(), vt.data(), spare.data()));
    EXPECT_TRUE(std::is_sorted(s.rbegin(), s.rend()) && s.back() >= 0);
    Matrix middle(static_cast<std::size_t>(m * n));
    for (Int i = 0; i < k; ++i) middle[static_cast<std::size_t>(i * n + i)] = s[static_cast<std::size_t>(i)];
    expect_near(product(product(u, middle, m, m, n), vt, m, n, n), a, "U S Vt");
    expect_near(product(transposed(u, m, m), u, m, m, m), unit(m), "Ut U");
    expect_near(product(vt, transposed(vt, n, n), n, n, n), unit(n), "Vt V");
  }
}

TEST(Matrix, not_a_number_ends_an_iteration) {
  Matrix a = {std::nan(""), 1, 1, 2}, values(2), u(4), vt(4), spare(100);
  EXPECT_FALSE(factor_svd(Matrix(a).data(), 2, 2, u.data(), values.data(), vt.data(), spare.data()));
  EXPECT_FALSE(eigen_symmetric(a.data(), 2, false, values.data(), spare.data()));
}

TEST(Matrix, exponential_of_a_rotations_generator_is_the_rotation) {
  Matrix a = {0, -3, 3, 0}, spare(16);
  exponential(a.data(), 2, spare.data());
  expect_near(a, {std::cos(3), -std::sin(3), std::sin(3), std::cos(3)}, "rotation");
}

}  // namespace
}  // namespace tenon::kernels
