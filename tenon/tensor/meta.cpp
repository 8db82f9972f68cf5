#include "tenon/tensor/meta.h"

#include <algorithm>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/sym/exact.h"

namespace tenon {
namespace {

// Dense strides for dimensions listed from outermost to innermost.
Sizes dense_strides(const Sizes& sizes, std::span<const size_t> order) {
  Sizes strides(sizes.size(), SymInt(1));
  SymInt step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = step;
    SymInt size = sizes[order[k]];
    step = step * (size.is_int() ? SymInt(std::max<int64_t>(size.as_int(), 1)) : size);
  }
  return strides;
}

}  // namespace

Sizes contiguous_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), SymInt(1));
  SymInt step = 1;
  for (size_t k = sizes.size(); k-- > 0;) {
    strides[k] = step;
    step = step * (sizes[k].is_int() ? SymInt(std::max<int64_t>(sizes[k].as_int(), 1)) : sizes[k]);
  }
  return strides;
}

Sizes strides_in(MemoryFormat format, const Sizes& sizes) {
  switch (format) {
    case MemoryFormat::channels_last: {
      require(sizes.size() == 4, "memory format channels_last: expected 4 dimensions, got ", sizes.size());
      const size_t order[] = {0, 2, 3, 1};
      return dense_strides(sizes, order);
    }
    case MemoryFormat::channels_last_3d: {
      require(sizes.size() == 5, "memory format channels_last_3d: expected 5 dimensions, got ", sizes.size());
      const size_t order[] = {0, 2, 3, 4, 1};
      return dense_strides(sizes, order);
    }
    case MemoryFormat::unknown:
    case MemoryFormat::contiguous:
    case MemoryFormat::preserve: return contiguous_strides(sizes);
  }
  unreachable();
}

SymInt count(const Sizes& sizes) {
  SymInt total = 1;
  for (SymInt size : sizes) total = total * size;
  return total;
}

bool is_contiguous(const TensorMeta& meta, MemoryFormat format) {
  for (SymInt size : meta.sizes)
    if (size == SymInt(0)) return true;
  if (format == MemoryFormat::channels_last && meta.rank() != 4) return false;
  if (format == MemoryFormat::channels_last_3d && meta.rank() != 5) return false;
  Sizes dense = strides_in(format, meta.sizes);
  for (size_t i = 0; i < meta.rank(); ++i)
    if (!(meta.sizes[i] == SymInt(1)) && !sym::equal_if_exact(meta.strides[i], dense[i])) return false;
  return true;
}

bool is_dense(const TensorMeta& meta) {
  if (is_contiguous(meta)) return true;
  std::vector<size_t> order;
  for (size_t i = 0; i < meta.rank(); ++i) {
    if (!meta.strides[i].is_int() || !meta.sizes[i].is_int()) return false;
    if (!(meta.sizes[i] == SymInt(1))) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return meta.strides[a].as_int() < meta.strides[b].as_int(); });
  int64_t step = 1;
  for (size_t i : order) {
    if (meta.strides[i].as_int() != step) return false;
    step *= meta.sizes[i].as_int();
  }
  return true;
}

TensorMeta make_meta(DType dtype, Sizes sizes, Device device) {
  TensorMeta meta;
  meta.dtype = dtype;
  meta.strides = contiguous_strides(sizes);
  meta.sizes = std::move(sizes);
  meta.device = std::move(device);
  return meta;
}

size_t normal_dim(int64_t dim, size_t rank, std::string_view what) {
  auto n = static_cast<int64_t>(rank == 0 ? 1 : rank);
  require(dim >= -n && dim < n, what, " out of range: expected one in [", -n, ", ", n - 1, "], got ", dim);
  return static_cast<size_t>(dim < 0 ? dim + n : dim);
}

void append_text(std::string& out, const TensorMeta& meta) {
  append_text(out, meta.dtype);
  append_text(out, meta.sizes);
  bool usual = false;
  try {
    usual = is_contiguous(meta);
  } catch (const Error&) {}  // sizes whose product leaves 64 bits are shown like any others
  if (!usual) append_text(out, meta.strides);
}

}  // namespace tenon
