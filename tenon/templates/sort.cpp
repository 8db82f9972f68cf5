#include "tenon/templates/sort.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tenon/templates/parallel.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

/// Unsigned keys in the order of the values.
std::uint32_t key_of(float value) {
  if (value != value) return ~std::uint32_t{0};
  value += 0.0f;  // -0 becomes 0
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits >> 31 ? ~bits : bits | (std::uint32_t{1} << 31);
}
std::uint64_t key_of(double value) {
  if (value != value) return ~std::uint64_t{0};
  value += 0.0;
  std::uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | (std::uint64_t{1} << 63);
}
std::uint64_t key_of(Int value) { return static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << 63); }

template <class Key, class Index>
struct Item {
  Key key;
  Index index;
};

template <class Key, class Index>
void insertion_sort(Item<Key, Index>* items, Int n) {
  for (Int i = 1; i < n; ++i) {
    Item<Key, Index> item = items[i];
    Int j = i;
    for (; j > 0 && item.key < items[j - 1].key; --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

/// Least digit first, a byte at a time; bytes in which all keys agree cost one look. Returns where the result lies.
template <class Key, class Index>
Item<Key, Index>* radix_sort(Item<Key, Index>* items, Item<Key, Index>* spare, Int n) {
  constexpr int digits = sizeof(Key);
  std::vector<Index> counts(digits * 256, 0);
  for (Int i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++counts[static_cast<std::size_t>(d * 256 + ((items[i].key >> (8 * d)) & 255))];
  for (int d = 0; d < digits; ++d) {
    Index* count = counts.data() + d * 256;
    if (static_cast<Int>(count[(items[0].key >> (8 * d)) & 255]) == n) continue;
    Index sum = 0;
    for (int v = 0; v < 256; ++v) sum += std::exchange(count[v], sum);
    for (Int i = 0; i < n; ++i) spare[count[(items[i].key >> (8 * d)) & 255]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

template <class T>
struct Ranked {
  T value;
  Int index;
};
template <class T>
bool is_nan(T value) {
  return value != value;
}

Int grain_of(Int length) { return length >= 4096 ? 1 : 4096 / (length + 1) + 1; }

template <class Index, class T>
void sort_lines(const T* from, const Lines& lines, T* values, Int* indices, const Lines& to, bool descending) {
  using Key = decltype(key_of(T()));
  const Int n = lines.length;
  parallel_for(lines.count(), grain_of(n), [&](Int lo, Int hi) {
    std::vector<Item<Key, Index>> items(static_cast<std::size_t>(n)), spare(n > 48 ? items.size() : 0);
    for (Int line = lo; line < hi; ++line) {
      const T* at = from + lines.begin(line);
      for (Int i = 0; i < n; ++i) {
        const Key key = key_of(at[i * lines.stride]);
        items[static_cast<std::size_t>(i)] = {descending ? static_cast<Key>(~key) : key, static_cast<Index>(i)};
      }
      const Item<Key, Index>* sorted = items.data();
      if (n <= 48) insertion_sort(items.data(), n);
      else sorted = radix_sort(items.data(), spare.data(), n);
      const Int begin = to.begin(line);
      for (Int i = 0; i < n; ++i) {
        const Int index = static_cast<Int>(sorted[i].index);
        values[begin + i * to.stride] = at[index * lines.stride];
        indices[begin + i * to.stride] = index;
      }
    }
  });
}

}  // namespace

template <class T>
void sort(const T* from, const Lines& lines, T* values, Int* indices, const Lines& to, bool descending) {
  if (lines.length == 0) return;
  // Short indices halve the memory that is moved.
  if (lines.length <= Int{0x7fffffff}) sort_lines<std::uint32_t>(from, lines, values, indices, to, descending);
  else sort_lines<std::uint64_t>(from, lines, values, indices, to, descending);
}

template <class T>
void topk(const T* from, const Lines& lines, T* values, Int* indices, const Lines& to, bool largest, bool sorted) {
  const Int n = lines.length, k = to.length;
  if (k == 0) return;
  auto before = [largest](const Ranked<T>& a, const Ranked<T>& b) {
    if (largest) return (is_nan(a.value) && !is_nan(b.value)) || a.value > b.value;
    return (!is_nan(a.value) && is_nan(b.value)) || a.value < b.value;
  };
  parallel_for(lines.count(), grain_of(n), [&](Int lo, Int hi) {
    std::vector<Ranked<T>> items(static_cast<std::size_t>(n));
    for (Int line = lo; line < hi; ++line) {
      const T* at = from + lines.begin(line);
      for (Int i = 0; i < n; ++i) items[static_cast<std::size_t>(i)] = {at[i * lines.stride], i};
      if (k * 64 <= n) {
        std::partial_sort(items.begin(), items.begin() + k, items.end(), before);
      } else {
        std::nth_element(items.begin(), items.begin() + (k - 1), items.end(), before);
        if (sorted) std::sort(items.begin(), items.begin() + (k - 1), before);
      }
      const Int begin = to.begin(line);
      for (Int i = 0; i < k; ++i) {
        values[begin + i * to.stride] = items[static_cast<std::size_t>(i)].value;
        indices[begin + i * to.stride] = items[static_cast<std::size_t>(i)].index;
      }
    }
  });
}

#define TENON_INSTANCE(T)                                                      \
  template void sort<T>(const T*, const Lines&, T*, Int*, const Lines&, bool); \
  template void topk<T>(const T*, const Lines&, T*, Int*, const Lines&, bool, bool);
TENON_INSTANCE(float)
TENON_INSTANCE(double)
TENON_INSTANCE(Int)
#undef TENON_INSTANCE

}  // namespace tenon::templates
