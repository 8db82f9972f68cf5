// PyTorch leaves ties of topk to the standard library's partial_sort and nth_element. So these are the same algorithms,
// step by step (the tests compare them with std's): a heap of the first k where k is small, else quickselect by the
// median of three with a heap as the way out, then quicksort down to runs of 16 that an insertion sort finishes.
#include "kernels/lines.h"
#include "kernels/sort.h"

namespace tenon::kernels {
namespace {

template <class T>
struct Ranked {
  T value;
  int64_t index;
};

template <class T, bool largest>
struct Before {
  bool operator()(const Ranked<T>& a, const Ranked<T>& b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if constexpr (largest) return (a_nan && !b_nan) || a.value > b.value;
    else return (!a_nan && b_nan) || a.value < b.value;
  }
};

/// Items [first, last) of a list, ordered by `before`. A heap has its last item on top.
template <class Item, class Before>
struct Ordering {
  Item* items;
  Before before;

  bool in_order(int64_t a, int64_t b) const { return before(items[a], items[b]); }
  void swap(int64_t a, int64_t b) { exchange(items[a], items[b]); }

  /// Lets the hole at `hole` sink to a leaf of the heap [first, first + count), then rise with `item` in it.
  void sift(int64_t first, int64_t hole, int64_t count, Item item) {
    Item* heap = items + first;
    const int64_t top = hole;
    int64_t child = hole;
    while (child < (count - 1) / 2) {
      child = 2 * child + 2;
      if (before(heap[child], heap[child - 1])) --child;
      heap[hole] = heap[child];
      hole = child;
    }
    if (count % 2 == 0 && child == (count - 2) / 2) {  // a parent with one child
      child = 2 * child + 1;
      heap[hole] = heap[child];
      hole = child;
    }
    while (hole > top) {
      const int64_t parent = (hole - 1) / 2;
      if (!before(heap[parent], item)) break;
      heap[hole] = heap[parent];
      hole = parent;
    }
    heap[hole] = item;
  }
  /// The least of [first, last) come to [first, middle), as a heap.
  void heap_select(int64_t first, int64_t middle, int64_t last) {
    const int64_t count = middle - first;
    for (int64_t parent = (count - 2) / 2; count > 1 && parent >= 0; --parent)
      sift(first, parent, count, items[first + parent]);
    for (int64_t i = middle; i < last; ++i)
      if (in_order(i, first)) {
        const Item item = items[i];
        items[i] = items[first];
        sift(first, 0, count, item);
      }
  }
  void sort_heap(int64_t first, int64_t last) {
    while (last - first > 1) {
      --last;
      const Item item = items[last];
      items[last] = items[first];
      sift(first, 0, last - first, item);
    }
  }
  void partial_sort(int64_t first, int64_t middle, int64_t last) {
    heap_select(first, middle, last);
    sort_heap(first, middle);
  }

  void median_to_first(int64_t first, int64_t a, int64_t b, int64_t c) {
    if (in_order(a, b)) swap(first, in_order(b, c) ? b : in_order(a, c) ? c : a);
    else swap(first, in_order(a, c) ? a : in_order(b, c) ? c : b);
  }
  /// Around the median of three: behind the result nothing comes before what stands in front of it.
  int64_t partition(int64_t first, int64_t last) {
    median_to_first(first, first + 1, first + (last - first) / 2, last - 1);
    int64_t low = first + 1, high = last;
    for (;;) {
      while (in_order(low, first)) ++low;
      --high;
      while (in_order(first, high)) --high;
      if (low >= high) return low;
      swap(low, high);
      ++low;
    }
  }
  /// Into place among what stands before it, something of which does not come after it.
  void insert(int64_t at) {
    const Item item = items[at];
    for (; before(item, items[at - 1]); --at) items[at] = items[at - 1];
    items[at] = item;
  }
  void insertion_sort(int64_t first, int64_t last) {
    for (int64_t i = first + 1; i < last; ++i) {
      if (!in_order(i, first)) {
        insert(i);
        continue;
      }
      const Item item = items[i];
      for (int64_t j = i; j > first; --j) items[j] = items[j - 1];
      items[first] = item;
    }
  }
  static int64_t depth_limit(int64_t count) { return 2 * (63 - __builtin_clzll(static_cast<uint64_t>(count))); }

  /// Item `nth` comes where it would stand in order, and nothing behind it belongs before it.
  void select(int64_t nth, int64_t count) {
    int64_t first = 0, last = count;
    for (int64_t depth = depth_limit(count); last - first > 3; --depth) {
      if (depth == 0) {
        heap_select(first, nth + 1, last);
        swap(first, nth);
        return;
      }
      const int64_t cut = partition(first, last);
      (cut <= nth ? first : last) = cut;
    }
    insertion_sort(first, last);
  }
  static constexpr int64_t run = 16;
  void quicksort(int64_t first, int64_t last, int64_t depth) {
    for (; last - first > run; --depth) {
      if (depth == 0) return partial_sort(first, last, last);
      const int64_t cut = partition(first, last);
      quicksort(cut, last, depth - 1);
      last = cut;
    }
  }
  void sort(int64_t count) {
    if (count == 0) return;
    quicksort(0, count, depth_limit(count));
    insertion_sort(0, least(count, run));
    for (int64_t i = run; i < count; ++i) insert(i);
  }
};

template <class T, bool largest>
void topk_lines(const tenon_args& args, int64_t lo, int64_t hi) {
  const TopKParams& p = params<TopKParams>(args);
  const Lines lines{p.rank, args.params + sizeof(TopKParams) / 8};
  static_assert(sizeof(Ranked<T>) == topk_scratch_per_element);
  Ordering<Ranked<T>, Before<T, largest>> order{static_cast<Ranked<T>*>(args.scratch), {}};
  for (int64_t line = lo; line < hi; ++line) {
    const T* from = buffer<const T>(args, 0) + p.in + lines.begin(line, lines.strides(0));
    for (int64_t i = 0; i < p.length; ++i) order.items[i] = {from[i * p.in_stride], i};
    if (p.k * 64 <= p.length) {
      order.partial_sort(0, p.k, p.length);
    } else {
      order.select(p.k - 1, p.length);
      if (p.sorted) order.sort(p.k - 1);
    }
    T* values = buffer<T>(args, 1) + p.values + lines.begin(line, lines.strides(1));
    int64_t* indices = buffer<int64_t>(args, 2) + p.indices + lines.begin(line, lines.strides(2));
    for (int64_t i = 0; i < p.k; ++i) {
      values[i * p.values_stride] = order.items[i].value;
      indices[i * p.indices_stride] = order.items[i].index;
    }
  }
}

template <class T>
int topk(const tenon_args& args, int64_t lo, int64_t hi) {
  const TopKParams& p = params<TopKParams>(args);
  if (p.k == 0) return TENON_KERNEL_OK;
  if (p.largest) topk_lines<T, true>(args, lo, hi);
  else topk_lines<T, false>(args, lo, hi);
  return TENON_KERNEL_OK;
}

}  // namespace

TENON_KERNEL(topk_f32) { return topk<float>(*args, lo, hi); }
TENON_KERNEL(topk_f64) { return topk<double>(*args, lo, hi); }
TENON_KERNEL(topk_i64) { return topk<int64_t>(*args, lo, hi); }

}  // namespace tenon::kernels
