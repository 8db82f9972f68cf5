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

/// What PyTorch does, with the standard library.
template <class T>
Sorted<T> standard_topk(const std::vector<T>& line, Int k, bool largest, bool sorted) {
  using Item = std::pair<T, Int>;
  std::vector<Item> items;
  for (size_t i = 0; i < line.size(); ++i) items.emplace_back(line[i], static_cast<Int>(i));
  auto before = [&](const Item& a, const Item& b) { return largest ? less(b.first, a.first) : less(a.first, b.first); };
  if (k * 64 <= static_cast<Int>(line.size())) {
    std::partial_sort(items.begin(), items.begin() + k, items.end(), before);
  } else {
    std::nth_element(items.begin(), items.begin() + (k - 1), items.end(), before);
    if (sorted) std::sort(items.begin(), items.begin() + (k - 1), before);
  }
  Sorted<T> out;
  for (Int i = 0; i < k; ++i) {
    out.values.push_back(items[static_cast<size_t>(i)].first);
    out.indices.push_back(items[static_cast<size_t>(i)].second);
  }
  return out;
}

template <class T>
Sorted<T> topk(const std::vector<T>& in, Int lines, Int k, bool largest, bool sorted, tenon_target target) {
  Int n = static_cast<Int>(in.size()) / lines;  // [n, lines], along the first dimension
  Guarded<T> from(in), values(static_cast<size_t>(k * lines));
  Guarded<Int> indices(static_cast<size_t>(k * lines));
  TopKParams p{.length = n,
               .k = k,
               .largest = largest,
               .sorted = sorted,
               .in_stride = lines,
               .values_stride = lines,
               .indices_stride = lines,
               .rank = 1};
  KernelCall call{std::string("topk") + suffix<T>(),
                  {from.data(), values.data(), indices.data()},
                  words(p, {lines, 1, 1, 1}),
                  lines,
                  2,
                  n * topk_scratch_per_element};
  EXPECT_EQ(call.run(target), TENON_KERNEL_OK);
  return {values.values(), indices.values()};
}

template <class T>
void check_topk(const std::vector<T>& in, Int lines, Int k, bool largest, bool sorted) {
  size_t n = in.size() / static_cast<size_t>(lines);
  for (tenon_target target : targets()) {
    Sorted<T> got = topk(in, lines, k, largest, sorted, target);
    for (Int line = 0; line < lines; ++line) {
      std::vector<T> values;
      for (size_t i = 0; i < n; ++i) values.push_back(in[i * static_cast<size_t>(lines) + static_cast<size_t>(line)]);
      Sorted<T> expected = standard_topk(values, k, largest, sorted);
      for (Int i = 0; i < k; ++i) {
        auto where = static_cast<size_t>(i * lines + line);
        ASSERT_EQ(got.indices[where], expected.indices[static_cast<size_t>(i)]) << "n " << n << ", k " << k;
        T a = got.values[where], b = expected.values[static_cast<size_t>(i)];
        ASSERT_TRUE(a == b || (a != a && b != b));
      }
    }
  }
}

TEST(Topk, ties_fall_as_in_the_standard_library_for_every_size) {
  for (Int n : {1, 2, 3, 4, 5, 16, 17, 18, 40, 100, 257, 1000, 3000})
    for (Int k : {Int{1}, n / 65 + 1, n / 3 + 1, n / 2 + 1, n})
      for (bool largest : {false, true})
        for (bool sorted : {false, true}) {
          if (k > n) continue;
          Numbers numbers(static_cast<uint64_t>(n + k));
          check_topk(with_ties<float>(n * 3, numbers), 3, k, largest, sorted);
          check_topk(with_ties<double>(n, numbers), 1, k, largest, sorted);
          check_topk(with_ties<Int>(n * 2, numbers), 2, k, largest, sorted);
          if (HasFatalFailure()) return;
        }
}

/// McIlroy's adversary: answers comparisons so that the algorithm finds as little out as possible, and returns the
/// numbers that would have answered so. The median of three degrades, and the way out by a heap is taken.
template <class Algorithm>
std::vector<float> killer(Int n, Algorithm algorithm) {
  std::vector<Int> value(static_cast<size_t>(n), n), items(static_cast<size_t>(n));
  std::iota(items.begin(), items.end(), 0);
  Int solid = 0, candidate = 0;
  auto freeze = [&](Int x) { value[static_cast<size_t>(x)] = solid++; };
  algorithm(items, [&](Int a, Int b) {
    if (value[static_cast<size_t>(a)] == n && value[static_cast<size_t>(b)] == n) freeze(a == candidate ? a : b);
    if (value[static_cast<size_t>(a)] == n) candidate = a;
    else if (value[static_cast<size_t>(b)] == n) candidate = b;
    return value[static_cast<size_t>(a)] < value[static_cast<size_t>(b)];
  });
  return {value.begin(), value.end()};
}

TEST(Topk, ties_fall_as_in_the_standard_library_where_quicksort_degrades) {
  for (Int n : {200, 2000}) {
    check_topk(
        killer(n, [](auto& items, auto less) { std::nth_element(items.begin(), items.end() - 1, items.end(), less); }),
        1, n, false, false);
    check_topk(killer(n, [&](auto& items,
                             auto less) { std::nth_element(items.begin(), items.begin() + n / 2, items.end(), less); }),
               1, n / 2 + 1, false, true);
    check_topk(killer(n, [](auto& items, auto less) { std::sort(items.begin(), items.end(), less); }), 1, n, false,
               true);
  }
}

// Found by running PyTorch 2.15.
TEST(Topk, ties_fall_as_in_pytorch) {
  const std::vector<float> in = {1, nan, 2, 2, nan, 2, 5};
  for (tenon_target target : targets()) {
    auto indices = [&](Int k, bool largest) { return topk(in, 1, k, largest, true, target).indices; };
    EXPECT_EQ(indices(5, true), (std::vector<Int>{1, 4, 6, 2, 5}));
    EXPECT_EQ(indices(7, true), (std::vector<Int>{1, 4, 6, 2, 5, 3, 0}));
    EXPECT_EQ(indices(3, false), (std::vector<Int>{0, 5, 3}));
    EXPECT_EQ(indices(7, false), (std::vector<Int>{0, 2, 3, 5, 6, 4, 1}));
  }
}

}  // namespace
}  // namespace tenon::kernels
