// Tensors as sets: elements and rows without repeats.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

/// Rows of `width` elements. NaN is largest, and equal to nothing.
template <class T>
struct Rows {
  const T* x;
  int64_t width;
  bool before(int64_t a, int64_t b) const {
    for (const T *p = x + a * width, *q = x + b * width, *end = p + width; p < end; ++p, ++q) {
      if (less(*p, *q)) return true;
      if (less(*q, *p)) return false;
    }
    return false;
  }
  bool equal(int64_t a, int64_t b) const {
    for (int64_t i = 0; i < width; ++i)
      if (!(x[a * width + i] == x[b * width + i])) return false;
    return true;
  }
  static bool less(T a, T b) { return a < b || (b != b && a == a); }
};

// Merges runs of growing length, stable.
template <class T>
void sort_rows(const Rows<T>& rows, int64_t n, int64_t* order, int64_t* spare) {
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t begin = 0; begin < n; begin += 2 * run) {
      int64_t middle = least(begin + run, n), end = least(begin + 2 * run, n), a = begin, b = middle;
      for (int64_t to = begin; to < end; ++to) {
        bool second = a == middle || (b < end && rows.before(order[b], order[a]));
        spare[to] = second ? order[b++] : order[a++];
      }
    }
    for (int64_t i = 0; i < n; ++i) order[i] = spare[i];
  }
}

/// The first of each group of equal rows, which group each row is in, and how many are.
struct Groups {
  int64_t *first, *group, *counts, found = 0;
};

template <class T>
int find_groups(Call& call, const T* x, int64_t rows, int64_t width, bool sorted, Groups& out) {
  auto *order = work<int64_t>(call, rows), *spare = work<int64_t>(call, rows);
  out.first = work<int64_t>(call, rows);
  out.group = work<int64_t>(call, rows);
  out.counts = work<int64_t>(call, rows);
  if (!order || !spare || !out.first || !out.group || !out.counts) return TENON_KERNEL_MEMORY;
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  Rows<T> all{x, width};
  if (sorted) sort_rows(all, rows, order, spare);
  for (int64_t k = 0; k < rows; ++k) {
    int64_t row = order[k];
    if (k == 0 || !all.equal(row, order[k - 1])) {
      out.first[out.found] = row;
      out.counts[out.found++] = 0;
    }
    out.group[row] = out.found - 1;
    ++out.counts[out.found - 1];
  }
  return 0;
}

// x with dimension `dim` taken to the front.
tenon_tensor moved(const tenon_tensor& x, int64_t dim) {
  tenon_tensor out = x;
  for (int64_t d = dim; d > 0; --d) {
    out.sizes[d] = out.sizes[d - 1];
    out.strides[d] = out.strides[d - 1];
  }
  out.sizes[0] = x.sizes[dim];
  out.strides[0] = x.strides[dim];
  return out;
}

int groups_of(Call& call, const tenon_tensor& x, int64_t rows, int64_t width, bool sorted, Groups& out) {
  if (!is_real(x.dtype)) return TENON_KERNEL_ARITHMETIC;
  if (is_floating(x.dtype)) {
    auto* all = elements<double>(call, x);
    return all ? find_groups(call, all, rows, width, sorted, out) : TENON_KERNEL_MEMORY;
  }
  auto* all = elements<int64_t>(call, x);
  return all ? find_groups(call, all, rows, width, sorted, out) : TENON_KERNEL_MEMORY;
}

void write_list(tenon_tensor& to, const int64_t* from) { write(to, from); }

int flat(Call& call, bool sorted, bool inverse, bool counts) {
  const tenon_tensor& x = call.inputs[0];
  Groups groups{};
  if (int status = groups_of(call, x, count(x), 1, sorted, groups)) return status;
  if (int status = call.allocate(&call, 0, 1, &groups.found)) return status;
  tenon_tensor& values = call.results[0];
  int64_t* places = work<int64_t>(call, count(x));  // where in memory each element lies
  if (!places) return TENON_KERNEL_MEMORY;
  Walk at(x);
  for (int64_t i = 0, n = count(x); i < n; ++i, at.next()) places[i] = at.offset();
  for (int64_t k = 0; k < groups.found; ++k)
    copy_element(values.data, k * values.strides[0], x.data, places[groups.first[k]], size_of(x.dtype));
  if (inverse) {
    if (!same_sizes(call.results[1], x)) return TENON_KERNEL_ARITHMETIC;
    write_list(call.results[1], groups.group);
  }
  if (!counts) return 0;
  if (int status = call.allocate(&call, 2, 1, &groups.found)) return status;
  write_list(call.results[2], groups.counts);
  return 0;
}

int by_rows(Call& call, int64_t dim, bool sorted) {
  const tenon_tensor& given = call.inputs[0];
  if (dim < 0) dim += given.rank;
  if (dim < 0 || dim >= given.rank) return TENON_KERNEL_ARITHMETIC;
  tenon_tensor x = moved(given, dim);
  int64_t rows = x.sizes[0], width = 1, sizes[TENON_MAX_RANK];
  for (int32_t d = 1; d < x.rank; ++d) width *= x.sizes[d];
  Groups groups{};
  if (int status = groups_of(call, x, rows, width, sorted, groups)) return status;
  for (int32_t d = 0; d < given.rank; ++d) sizes[d] = d == dim ? groups.found : given.sizes[d];
  if (int status = call.allocate(&call, 0, given.rank, sizes)) return status;
  if (int status = call.allocate(&call, 1, 1, &rows)) return status;
  if (int status = call.allocate(&call, 2, 1, &groups.found)) return status;
  tenon_tensor values = moved(call.results[0], dim);
  for (int64_t k = 0; k < groups.found; ++k) {
    Walk to(values, values, k * width), from(x, x, groups.first[k] * width);
    for (int64_t i = 0; i < width; ++i, to.next(), from.next())
      copy_element(values.data, to.offset(), x.data, from.offset(), size_of(x.dtype));
  }
  write_list(call.results[1], groups.group);
  write_list(call.results[2], groups.counts);
  return 0;
}

}  // namespace

// self; sorted, return_inverse and, where there is a result for it, return_counts
TENON_HOST_FUNCTION(unique) {
  (void)lo, (void)hi;
  Params params(*call);
  params.flag();
  bool inverse = params.flag();
  return flat(*call, true, inverse, call->param_count > 2 && params.flag());
}

// self; dim, ...
TENON_HOST_FUNCTION(unique_rows) {
  (void)lo, (void)hi;
  return by_rows(*call, Params(*call).integer(), true);
}

// self; return_inverse, return_counts, dim or none
TENON_HOST_FUNCTION(unique_consecutive) {
  (void)lo, (void)hi;
  Params params(*call);
  bool inverse = params.flag(), counts = params.flag();
  if (!params.present()) return flat(*call, false, inverse, counts);
  int64_t dim = params.integer();
  // Over the only dimension it is the one over all elements.
  return call->inputs[0].rank == 1 && dim == 0 ? flat(*call, false, inverse, counts) : by_rows(*call, dim, false);
}

// self; dim, ...
TENON_HOST_FUNCTION(unique_consecutive_rows) {
  (void)lo, (void)hi;
  return by_rows(*call, Params(*call).integer(), false);
}

// repeats; output_size or none: the number of each element, as often as it is repeated
TENON_HOST_FUNCTION(repeat_interleave) {
  (void)lo, (void)hi;
  enum { negative = 1, other_size };
  const tenon_tensor& repeats = call->inputs[0];
  if (repeats.rank != 1) return TENON_KERNEL_ARITHMETIC;
  Params params(*call);
  int64_t n = repeats.sizes[0], total = 0, next = 0;
  auto at = [&](int64_t i) { return load<int64_t>(repeats.data, repeats.dtype, i * repeats.strides[0]); };
  for (int64_t i = 0; i < n; ++i) {
    if (at(i) < 0) return refuse(*call, negative, at(i));
    if (__builtin_add_overflow(total, at(i), &total)) return TENON_KERNEL_MEMORY;
  }
  if (params.present())
    if (int64_t wanted = params.integer(); wanted != total) return refuse(*call, other_size, total, wanted);
  if (int status = call->allocate(call, 0, 1, &total)) return status;
  tenon_tensor& out = call->results[0];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0, end = at(i); k < end; ++k) store(out.data, out.dtype, next++ * out.strides[0], i);
  return 0;
}

}  // namespace tenon::kernels
