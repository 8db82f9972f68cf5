#include "kernels/sort.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "call.h"
#include "numbers.h"

namespace tenon::kernels {
namespace {

using Int = int64_t;
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class T>
const char* suffix();
template <>
const char* suffix<float>() {
  return "_f32";
}
template <>
const char* suffix<double>() {
  return "_f64";
}
template <>
const char* suffix<Int>() {
  return "_i64";
}

template <class T>
bool less(T a, T b) {
  return (!std::isnan(double(a)) && std::isnan(double(b))) || a < b;
}

/// Values with many ties, some NaN and both zeros.
template <class T>
std::vector<T> with_ties(Int size, Numbers& numbers) {
  std::vector<T> result(static_cast<size_t>(size));
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
struct Sorted {
  std::vector<T> values;
  std::vector<Int> indices;
};

/// Lines along the middle of a contiguous [outer, n, inner].
template <class T>
Sorted<T> sort(const std::vector<T>& in, Int outer, Int n, Int inner, bool descending, tenon_target target) {
  Guarded<T> from(in), values(in.size());
  Guarded<Int> indices(in.size());
  SortParams p{.length = n,
               .descending = descending,
               .in_stride = inner,
               .values_stride = inner,
               .indices_stride = inner,
               .rank = 2};
  KernelCall call{std::string("sort") + suffix<T>(),
                  {from.data(), values.data(), indices.data()},
                  {},
                  outer * inner,
                  3,
                  sort_scratch_fixed + n * sort_scratch_per_element};
  call.params = words(p, {outer, inner, n * inner, 1, n * inner, 1, n * inner, 1});
  EXPECT_EQ(call.run(target), TENON_KERNEL_OK);
  return {values.values(), indices.values()};
}

template <class T>
void check_sort(Int outer, Int n, Int inner, bool descending) {
  Numbers numbers(static_cast<uint64_t>(outer + n + inner));
  std::vector<T> in = with_ties<T>(outer * n * inner, numbers);
  for (tenon_target target : targets()) {
    Sorted<T> sorted = sort(in, outer, n, inner, descending, target);
    for (Int line = 0; line < outer * inner; ++line) {
      Int begin = line / inner * n * inner + line % inner;
      auto at = [&](Int i) { return in[static_cast<size_t>(begin + i * inner)]; };
      std::vector<Int> order(static_cast<size_t>(n));
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](Int a, Int b) { return descending ? less(at(b), at(a)) : less(at(a), at(b)); });
      for (Int i = 0; i < n; ++i) {
        auto where = static_cast<size_t>(begin + i * inner);
        ASSERT_EQ(sorted.indices[where], order[static_cast<size_t>(i)]);
        const T expected = at(sorted.indices[where]), got = sorted.values[where];
        ASSERT_TRUE(got == expected || (got != got && expected != expected));
        ASSERT_EQ(std::signbit(double(got)), std::signbit(double(expected)));
      }
    }
  }
}

TEST(Sort, is_stable_in_both_directions_for_every_type_and_layout) {
  for (bool descending : {false, true})
    for (Int n : {1, 2, 7, 48, 49, 300, 5000}) {
      check_sort<float>(2, n, 3, descending);
      check_sort<double>(3, n, 1, descending);
      check_sort<Int>(1, n, 2, descending);
      if (HasFatalFailure()) return;
    }
}

TEST(Sort, orders_the_whole_range_of_integers) {
  std::vector<Int> in(100, 0);
  in[3] = std::numeric_limits<Int>::min(), in[7] = std::numeric_limits<Int>::max(), in[9] = -1;
  for (tenon_target target : targets()) {
    Sorted<Int> sorted = sort(in, 1, 100, 1, false, target);
    EXPECT_EQ(sorted.indices[0], 3);
    EXPECT_EQ(sorted.indices[1], 9);
    EXPECT_EQ(sorted.indices[99], 7);
  }
}

TEST(Sort, infinities_stand_between_numbers_and_nan) {
  for (tenon_target target : targets())
    EXPECT_EQ(sort<float>({nan, infinity, 1, -infinity, -nan}, 1, 5, 1, false, target).indices,
              (std::vector<Int>{3, 2, 1, 0, 4}));
}

TEST(Sort, reads_and_writes_by_strides) {  // a transposed input, results with gaps
  Guarded<float> in({3, 1, 2, 6, 5, 4}), values(12);
  Guarded<Int> indices(6);
  SortParams p{.length = 2, .in = 0, .in_stride = 3, .values = 1, .values_stride = 2, .indices_stride = 1, .rank = 1};
  for (tenon_target target : targets()) {
    KernelCall call{"sort_f32", {in.data(), values.data(), indices.data()},       words(p, {3, 1, 4, 2}), 3,
                    1,          sort_scratch_fixed + 2 * sort_scratch_per_element};
    EXPECT_EQ(call.run(target), TENON_KERNEL_OK);
    EXPECT_EQ(values.values(), (std::vector<float>{0, 3, 0, 6, 0, 1, 0, 5, 0, 2, 0, 4}));
    EXPECT_EQ(indices.values(), (std::vector<Int>{0, 1, 0, 1, 0, 1}));
  }
}

}  // namespace
}  // namespace tenon::kernels
