// Elements and rows without repeats, and how often numbers occur: sizes that only a run can tell.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/view.h"

namespace tenon {
namespace {

// The first of each group of equal rows, which group each row is in, and how many are.
struct Groups {
  std::vector<int64_t> first, group, counts;
};

// NaN is largest, and equal to nothing.
template <class T>
bool before(T a, T b) {
  return a < b || (b != b && a == a);
}

// Rows of `width` elements. Sorted: groups in the order of their rows; else equal neighbours are a group.
template <class T>
Groups grouped(const std::vector<T>& x, int64_t rows, int64_t width, bool sorted) {
  auto at = [&](int64_t row) { return x.begin() + row * width; };
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  if (sorted)
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return std::lexicographical_compare(at(a), at(a) + width, at(b), at(b) + width, before<T>);
    });
  Groups out;
  out.group.resize(order.size());
  for (size_t k = 0; k < order.size(); ++k) {
    int64_t row = order[k];
    if (k == 0 || !std::equal(at(row), at(row) + width, at(order[k - 1]))) {
      out.first.push_back(row);
      out.counts.push_back(0);
    }
    out.group[static_cast<size_t>(row)] = static_cast<int64_t>(out.first.size()) - 1;
    ++out.counts.back();
  }
  return out;
}

Groups groups_of(const Tensor& x, int64_t rows, int64_t width, bool sorted) {
  if (is_floating(x.dtype())) return grouped(elements<double>(x), rows, width, sorted);
  return grouped(elements<int64_t>(x), rows, width, sorted);
}

Tensor chosen_rows(const Tensor& x, const std::vector<int64_t>& rows, int64_t width, Sizes sizes) {
  Tensor from = contiguous_copy(x), out = Tensor::empty(make_meta(x.dtype(), std::move(sizes), x.meta().device));
  size_t bytes = static_cast<size_t>(width) * item_size(x.dtype());
  std::byte* to = out.mutable_bytes();
  for (int64_t row : rows) {
    if (bytes) std::memcpy(to, from.bytes() + static_cast<size_t>(row) * bytes, bytes);
    to += bytes;
  }
  return out;
}

SymInt length(const std::vector<int64_t>& of) { return static_cast<int64_t>(of.size()); }

// Where the flags are; -1: absent. Without `counts` there are two results.
struct Wanted {
  int inverse, counts;
  bool has(const ArgsView& call, int at) const { return at >= 0 && call.flag(static_cast<size_t>(at)); }
};

Metas flat_meta(MetaCall& m, Wanted wanted) {
  const TensorMeta& x = m.meta(0);
  SymInt found = count(x.sizes) == SymInt(0) ? SymInt(0) : data_dependent_size();
  TensorMeta values = like(x, {found}), inverse = like(x, wanted.has(m, wanted.inverse) ? x.sizes : Sizes{0}, DType::i64);
  if (wanted.counts < 0) return {values, inverse};
  return {values, inverse, like(x, {wanted.has(m, wanted.counts) ? found : SymInt(0)}, DType::i64)};
}

CallResults flat_unique(ArgsView& call, Wanted wanted, bool sorted) {
  Tensor x = call[0];
  Groups groups = groups_of(x, x.numel().as_int(), 1, sorted);
  auto optional = [&](int flag, const Sizes& sizes, const std::vector<int64_t>& values) {
    bool has = wanted.has(call, flag);
    return CallArg(made(make_meta(DType::i64, has ? sizes : Sizes{0}), has ? values : std::vector<int64_t>()));
  };
  CallResults out = {CallArg(chosen_rows(x, groups.first, 1, {length(groups.first)})), optional(wanted.inverse, x.sizes(), groups.group)};
  if (wanted.counts >= 0) out.push_back(optional(wanted.counts, {length(groups.counts)}, groups.counts));
  return out;
}

size_t along(const ArgsView& call, size_t at) {
  const TensorMeta& x = call.meta(0);
  call.require(x.rank() > 0, "expected a tensor with dimensions, got ", x);
  size_t dim = call.dim(at, x.rank());
  for (size_t d = 0; d < x.rank(); ++d)
    call.require(d == dim || !(x.sizes[d] == SymInt(0)), "rows without elements cannot be told apart, got ", x);
  return dim;
}

// Rows lie along the first dimension while they are compared; the result's strides show it.
TensorMeta moved_back(const TensorMeta& x, size_t dim, SymInt rows) {
  Sizes sizes = x.sizes, moved = {rows}, strides;
  sizes[dim] = rows;
  for (size_t d = 0; d < x.rank(); ++d)
    if (d != dim) moved.push_back(sizes[d]);
  Sizes dense = contiguous_strides(moved);
  for (size_t d = 0; d < x.rank(); ++d) strides.push_back(d == dim ? dense[0] : dense[d < dim ? d + 1 : d]);
  TensorMeta out = like(x, sizes);
  out.strides = strides;
  return out;
}

Metas rows_meta(MetaCall& m, size_t dim_at) {
  const TensorMeta& x = m.meta(0);
  size_t dim = along(m, dim_at);
  SymInt found = x.sizes[dim] == SymInt(0) ? SymInt(0) : data_dependent_size();
  return {moved_back(x, dim, found), like(x, {x.sizes[dim]}, DType::i64), like(x, {found}, DType::i64)};
}

CallResults unique_rows(ArgsView& call, size_t dim_at, bool sorted) {
  size_t dim = along(call, dim_at);
  Tensor x = movedim(call[0], Sizes{SymInt(static_cast<int64_t>(dim))}, Sizes{0});
  int64_t rows = x.size(0).as_int(), width = rows ? x.numel().as_int() / rows : 0;
  Groups groups = groups_of(x, rows, width, sorted);
  Sizes sizes = x.sizes();
  sizes[0] = length(groups.first);
  Tensor values = chosen_rows(x, groups.first, width, sizes);
  values = values.with_meta(moved_back(call.meta(0), dim, sizes[0]));
  return {CallArg(values), CallArg(made(make_meta(DType::i64, {length(groups.group)}), groups.group)),
          CallArg(made(make_meta(DType::i64, {length(groups.counts)}), groups.counts))};
}

// unique_consecutive over the only dimension is the one over all elements.
bool is_flat(const ArgsView& call) {
  return !call.given(3) || (call.meta(0).rank() == 1 && call.integer(3) == SymInt(0));
}

DType counted_dtype(const ArgsView& m) {
  const TensorMeta& x = m.meta(0);
  m.require(x.rank() == 1 && is_integral(x.dtype), "expected integers in 1 dimension, got ", x);
  SymInt least = m.integer(2);
  m.require(!least.is_int() || least.as_int() >= 0, "minlength: expected a number that is not negative, got ", least);
  if (!m.given(1)) return DType::i64;
  SymInt a = x.sizes[0], b = m.meta(1).rank() == 1 ? m.meta(1).sizes[0] : SymInt(-1);
  m.require(m.meta(1).rank() == 1 && (a == b || !a.is_int() || !b.is_int()), "weights: expected one for each of ", x, ", got ", m.meta(1));
  if (a == SymInt(0)) return DType::i64;
  return m.meta(1).dtype == DType::f32 ? DType::f32 : DType::f64;
}

template <class T>
Tensor counted(DType dtype, SymInt bins, const std::vector<int64_t>& places, const std::vector<T>& weights) {
  Tensor fits = Tensor::empty(dtype, {bins});   // refuses more than there can be
  std::vector<T> totals(static_cast<size_t>(bins.as_int()));
  for (size_t i = 0; i < places.size(); ++i) totals[static_cast<size_t>(places[i])] += weights.empty() ? 1 : weights[i];
  return made(fits.meta(), totals);
}

CallResults count_numbers(ArgsView& call) {
  DType dtype = counted_dtype(call);
  std::vector<int64_t> places = elements<int64_t>(call[0]);
  int64_t bins = call.constant(2);
  for (int64_t place : places) {
    call.require(place >= 0, "expected numbers that are not negative, got ", place);
    bins = std::max(bins, sym::checked_add(place, 1));
  }
  if (dtype == DType::i64) return {CallArg(counted<int64_t>(dtype, bins, places, {}))};
  return {CallArg(counted(dtype, bins, places, elements<double>(call[1])))};
}

}  // namespace

void register_unique(Registry& ops) {
  ops.add({
      .schema = "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
      .meta = [](MetaCall& m) { return flat_meta(m, {2, -1}); },
      .kernel = [](ArgsView& call) { return flat_unique(call, {2, -1}, true); },
  });
  ops.add({
      .schema = "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
      .meta = [](MetaCall& m) { return flat_meta(m, {2, 3}); },
      .kernel = [](ArgsView& call) { return flat_unique(call, {2, 3}, true); },
  });
  ops.add({
      .schema = "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
      .meta = [](MetaCall& m) { return rows_meta(m, 1); },
      .kernel = [](ArgsView& call) { return unique_rows(call, 1, true); },
  });
  ops.add({
      .schema = "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
      .meta = [](MetaCall& m) { return is_flat(m) ? flat_meta(m, {1, 2}) : rows_meta(m, 3); },
      .kernel = [](ArgsView& call) { return is_flat(call) ? flat_unique(call, {1, 2}, false) : unique_rows(call, 3, false); },
  });
  ops.add({
      .schema = "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor)",
      .meta = [](MetaCall& m) { return rows_meta(m, 1); },
      .kernel = [](ArgsView& call) { return unique_rows(call, 1, false); },
  });
  ops.add({
      .schema = "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        DType dtype = counted_dtype(m);
        return like(m.meta("self"), {m.meta("self").sizes[0] == SymInt(0) ? m.integer("minlength") : data_dependent_size()}, dtype);
      },
      .kernel = count_numbers,
  });
  ops.add({
      .schema = "allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool",
      .kernel = [](ArgsView& call) -> CallResults {
        Tensor close = isclose(call[0], call[1], call.arg("rtol"), call.arg("atol"), call.arg("equal_nan"));
        return {CallArg(scalar_integer(all(close)) != 0)};
      },
  });
}

}  // namespace tenon
