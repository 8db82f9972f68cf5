#include "kernels/sort.h"

#include "kernels/lines.h"

namespace tenon::kernels {
namespace {

/// Unsigned keys in the order of the values.
uint32_t key_of(float value) {
  if (value != value) return ~uint32_t{0};
  value += 0.0f;  // -0 becomes 0
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits >> 31 ? ~bits : bits | uint32_t{1} << 31;
}
uint64_t key_of(double value) {
  if (value != value) return ~uint64_t{0};
  value += 0.0;
  uint64_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}
uint64_t key_of(int64_t value) {
  return static_cast<uint64_t>(value) ^ uint64_t { 1 } << 63;
}

constexpr int64_t short_line = 48;  // sorted by insertion

template <class Key, class Index>
struct Item {
  Key key;
  Index index;
};

template <class Key, class Index>
void insertion_sort(Item<Key, Index>* items, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    Item<Key, Index> item = items[i];
    int64_t j = i;
    for (; j > 0 && item.key < items[j - 1].key; --j) items[j] = items[j - 1];
    items[j] = item;
  }
}

/// Least digit first, a byte at a time; bytes in which all keys agree cost one look. Returns where the result lies.
template <class Key, class Index>
Item<Key, Index>* radix_sort(Item<Key, Index>* items, Item<Key, Index>* spare, Index* counts, int64_t n) {
  constexpr int digits = sizeof(Key);
  for (int i = 0; i < digits * 256; ++i) counts[i] = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++counts[d * 256 + ((items[i].key >> (8 * d)) & 255)];
  for (int d = 0; d < digits; ++d) {
    Index* count = counts + d * 256;
    if (static_cast<int64_t>(count[(items[0].key >> (8 * d)) & 255]) == n) continue;
    Index sum = 0;
    for (int v = 0; v < 256; ++v) {
      Index here = count[v];
      count[v] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; ++i) spare[count[(items[i].key >> (8 * d)) & 255]++] = items[i];
    exchange(items, spare);
  }
  return items;
}

template <class Index, class T>
void sort_lines(const tenon_args& args, int64_t lo, int64_t hi) {
  using Key = decltype(key_of(T()));
  const SortParams& p = params<SortParams>(args);
  const Lines lines{p.rank, args.params + sizeof(SortParams) / 8};
  const int64_t n = p.length;
  static_assert(2 * sizeof(Item<Key, Index>) <= sort_scratch_per_element);
  static_assert(sizeof(Key) * 256 * sizeof(Index) <= sort_scratch_fixed);
  Index* counts = static_cast<Index*>(args.scratch);
  Item<Key, Index>* items = reinterpret_cast<Item<Key, Index>*>(static_cast<char*>(args.scratch) + sort_scratch_fixed);
  for (int64_t line = lo; line < hi; ++line) {
    const T* from = buffer<const T>(args, 0) + p.in + lines.begin(line, lines.strides(0));
    T* values = buffer<T>(args, 1) + p.values + lines.begin(line, lines.strides(1));
    int64_t* indices = buffer<int64_t>(args, 2) + p.indices + lines.begin(line, lines.strides(2));
    for (int64_t i = 0; i < n; ++i) {
      const Key key = key_of(from[i * p.in_stride]);
      items[i] = {p.descending ? static_cast<Key>(~key) : key, static_cast<Index>(i)};
    }
    const Item<Key, Index>* sorted = items;
    if (n <= short_line) insertion_sort(items, n);
    else sorted = radix_sort(items, items + n, counts, n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t index = static_cast<int64_t>(sorted[i].index);
      values[i * p.values_stride] = from[index * p.in_stride];
      indices[i * p.indices_stride] = index;
    }
  }
}

template <class T>
int sort(const tenon_args& args, int64_t lo, int64_t hi) {
  // Short indices halve the memory that is moved.
  if (params<SortParams>(args).length <= 0x7fffffff) sort_lines<uint32_t, T>(args, lo, hi);
  else sort_lines<uint64_t, T>(args, lo, hi);
  return TENON_KERNEL_OK;
}

}  // namespace

TENON_KERNEL(sort_f32) { return sort<float>(*args, lo, hi); }
TENON_KERNEL(sort_f64) { return sort<double>(*args, lo, hi); }
TENON_KERNEL(sort_i64) { return sort<int64_t>(*args, lo, hi); }

}  // namespace tenon::kernels
