#include "kernels/scan.h"

#include <cmath>
#include <limits>

#include "call.h"
#include "numbers.h"

namespace tenon::kernels {
namespace {

using Int = int64_t;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T>
struct Scanned {
  std::vector<T> values;
  std::vector<Int> indices;
};

/// Along the middle of a contiguous [outer, n, inner].
template <class T>
Scanned<T> scan(const std::string& kind, const std::vector<T>& in, Int outer, Int n, Int inner, tenon_target target) {
  Guarded<T> from(in), out(in.size());
  Guarded<Int> indices(in.size());
  ScanParams p{.length = n, .in_stride = inner, .out_stride = inner, .indices_stride = inner, .rank = 2};
  KernelCall call{"scan_" + kind + suffix<T>(),
                  {from.data(), out.data(), indices.data()},
                  words(p, {outer, inner, n * inner, 1, n * inner, 1, n * inner, 1}),
                  outer * ((inner + scan_together - 1) / scan_together),
                  2};
  EXPECT_EQ(call.run(target), TENON_KERNEL_OK);
  return {out.values(), indices.values()};
}
template <class T>
Scanned<T> scan(const std::string& kind, const std::vector<T>& line, tenon_target target) {
  return scan(kind, line, 1, static_cast<Int>(line.size()), 1, target);
}

constexpr Int shapes[][3] = {{1, 1, 1}, {1, 100, 1}, {3, 17, 5}, {2, 9, 70}, {1, 4, 33}, {4, 0, 3}, {0, 5, 2}};

/// Compares with expected(line's values so far), element by element.
template <class T, class Expected>
void check(const std::string& kind, Expected expected) {
  for (const auto& [outer, n, inner] : shapes) {
    Numbers numbers(static_cast<uint64_t>(outer + n + inner));
    std::vector<T> in = numbers.vector<T>(outer * n * inner);
    if constexpr (std::is_same_v<T, Int>)
      for (T& x : in) x = numbers.below(7) - 3;
    for (tenon_target target : targets()) {
      std::vector<T> out = scan(kind, in, outer, n, inner, target).values;
      for (Int line = 0; line < outer * inner; ++line) {
        std::vector<T> so_far;
        for (Int i = 0; i < n; ++i) {
          auto at = static_cast<size_t>(line / inner * n * inner + line % inner + i * inner);
          so_far.push_back(in[at]);
          ASSERT_EQ(out[at], static_cast<T>(expected(so_far)));
        }
      }
    }
  }
}

TEST(Scan, sums_of_float_are_kept_in_double) {
  auto sum = [](const auto& values) {
    double s = 0;
    for (auto x : values) s += static_cast<double>(x);
    return s;
  };
  check<float>("sum", sum);
  check<double>("sum", sum);
  check<Int>("sum", sum);
}

TEST(Scan, products_of_float_are_kept_in_double) {
  auto product = [](const auto& values) {
    double s = 1;
    for (auto x : values) s *= static_cast<double>(x);
    return s;
  };
  check<float>("product", product);
  check<double>("product", product);
}

TEST(Scan, integer_products_wrap_around) {
  for (tenon_target target : targets()) {
    std::vector<Int> out = scan<Int>("product", {Int{1} << 40, Int{1} << 22, 4, 3}, target).values;
    EXPECT_EQ(out[1], Int{1} << 62);
    EXPECT_EQ(out[2], 0);
  }
}

TEST(Scan, logcumsumexp_is_the_logarithm_of_a_sum_and_the_same_on_every_target) {
  Numbers numbers(3);
  std::vector<double> in = numbers.vector<double>(50);
  for (size_t i = 0; i < 50; ++i) in[i] = in[i] * 400 + (i ? in[i - 1] : 0);
  std::vector<double> portable = scan("logsumexp", in, TENON_TARGET_PORTABLE).values;
  double most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < 50; ++i) {
    most = std::fmax(most, in[i]);
    double sum = 0;
    for (size_t j = 0; j <= i; ++j) sum += std::exp(in[j] - most);
    EXPECT_NEAR(portable[i], most + std::log(sum), 1e-12 * (1 + std::fabs(most)));
  }
  for (tenon_target target : targets()) EXPECT_EQ(scan("logsumexp", in, target).values, portable);
}

TEST(Scan, logcumsumexp_keeps_infinities_and_nan) {
  for (tenon_target target : targets()) {
    std::vector<float> out =
        scan<float>("logsumexp", {-infinity, -infinity, 1, infinity, infinity, 2, nan, 3}, target).values;
    EXPECT_EQ(out[0], -infinity);
    EXPECT_EQ(out[1], -infinity);
    EXPECT_EQ(out[2], 1);
    EXPECT_EQ(out[4], infinity);
    EXPECT_EQ(out[5], infinity);
    EXPECT_TRUE(std::isnan(out[6]));
    EXPECT_TRUE(std::isnan(out[7]));
  }
}

TEST(Scan, extremes_take_the_last_of_equals_and_stay_nan) {
  for (tenon_target target : targets()) {
    Scanned<float> most = scan<float>("max", {1, 3, 3, nan, 5, nan, 2}, target);
    EXPECT_EQ(most.indices, (std::vector<Int>{0, 1, 2, 3, 3, 5, 5}));
    EXPECT_EQ(most.values[2], 3);
    EXPECT_TRUE(std::isnan(most.values[4]));
    Scanned<float> least = scan<float>("min", {1, 3, 1, nan, 0, nan, 2}, target);
    EXPECT_EQ(least.indices, (std::vector<Int>{0, 0, 2, 3, 3, 5, 5}));
    EXPECT_EQ(least.values[1], 1);
  }
}

TEST(Scan, extremes_of_integers_along_a_middle_dimension) {
  check<Int>("max", [](const std::vector<Int>& values) { return *std::max_element(values.begin(), values.end()); });
  check<Int>("min", [](const std::vector<Int>& values) { return *std::min_element(values.begin(), values.end()); });
}

}  // namespace
}  // namespace tenon::kernels
