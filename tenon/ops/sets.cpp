// Tensors as sets: elements and rows without repeats, of data-dependent size, and membership.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

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

bool wants(const ArgsView& call, const char* flag) { return call.op.schema.find(flag) >= 0 && call.flag(flag); }

// Without an argument return_counts there are two results.
bool has_counts(const ArgsView& call) { return call.op.schema.find("return_counts") >= 0; }

Metas flat_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  SymInt found = count(x.sizes) == SymInt(0) ? SymInt(0) : data_dependent_size();
  TensorMeta values = like(x, {found}), inverse = like(x, wants(m, "return_inverse") ? x.sizes : Sizes{0}, DType::i64);
  if (!has_counts(m)) return {values, inverse};
  return {values, inverse, like(x, {wants(m, "return_counts") ? found : SymInt(0)}, DType::i64)};
}

CallResults flat_unique(ArgsView& call, bool sorted) {
  Tensor x = call["self"];
  Groups groups = groups_of(x, x.numel().as_int(), 1, sorted);
  auto optional = [&](const char* flag, const Sizes& sizes, const std::vector<int64_t>& values) {
    bool has = wants(call, flag);
    return CallArg(made(make_meta(DType::i64, has ? sizes : Sizes{0}), has ? values : std::vector<int64_t>()));
  };
  CallResults out = {CallArg(chosen_rows(x, groups.first, 1, {length(groups.first)})),
                     optional("return_inverse", x.sizes(), groups.group)};
  if (has_counts(call)) out.push_back(optional("return_counts", {length(groups.counts)}, groups.counts));
  return out;
}

size_t along(const ArgsView& call) {
  const TensorMeta& x = call.meta("self");
  call.require(x.rank() > 0, "expected a tensor with dimensions, got ", x);
  size_t dim = call.dim("dim", x.rank());
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

Metas rows_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  size_t dim = along(m);
  SymInt found = x.sizes[dim] == SymInt(0) ? SymInt(0) : data_dependent_size();
  return {moved_back(x, dim, found), like(x, {x.sizes[dim]}, DType::i64), like(x, {found}, DType::i64)};
}

CallResults unique_rows(ArgsView& call, bool sorted) {
  size_t dim = along(call);
  Tensor x = movedim(call["self"], Sizes{SymInt(static_cast<int64_t>(dim))}, Sizes{0});
  int64_t rows = x.size(0).as_int(), width = rows ? x.numel().as_int() / rows : 0;
  Groups groups = groups_of(x, rows, width, sorted);
  Sizes sizes = x.sizes();
  sizes[0] = length(groups.first);
  Tensor values = chosen_rows(x, groups.first, width, sizes);
  values = values.with_meta(moved_back(call.meta("self"), dim, sizes[0]));
  return {CallArg(values), CallArg(made(make_meta(DType::i64, {length(groups.group)}), groups.group)),
          CallArg(made(make_meta(DType::i64, {length(groups.counts)}), groups.counts))};
}

// unique_consecutive over the only dimension is the one over all elements.
bool is_flat(const ArgsView& call) {
  return !call.given("dim") || (call.meta("self").rank() == 1 && call.integer("dim") == SymInt(0));
}

Results membership(const Tensor& elements, const Tensor& among, bool invert) {
  Tensor found = any_dim(eq(unsqueeze(elements, -1), reshape(among, Sizes{among.numel()})), -1);
  return invert ? one(logical_not(found)) : one(found);
}

}  // namespace

void register_sets(Registry& ops) {
  ops.add({
      .schema = "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
      .meta = flat_meta,
      .kernel = [](ArgsView& call) { return flat_unique(call, true); },
  });
  ops.add({
      .schema = "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
                "(Tensor, Tensor, Tensor)",
      .meta = flat_meta,
      .kernel = [](ArgsView& call) { return flat_unique(call, true); },
  });
  ops.add({
      .schema = "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
                "return_counts=False) -> (Tensor, Tensor, Tensor)",
      .meta = rows_meta,
      .kernel = [](ArgsView& call) { return unique_rows(call, true); },
  });
  ops.add({
      .schema = "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
                "-> (Tensor, Tensor, Tensor)",
      .meta = [](MetaCall& m) { return is_flat(m) ? flat_meta(m) : rows_meta(m); },
      .kernel = [](ArgsView& call) { return is_flat(call) ? flat_unique(call, false) : unique_rows(call, false); },
  });
  ops.add({
      .schema = "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> "
                "(Tensor, Tensor, Tensor)",
      .meta = rows_meta,
      .kernel = [](ArgsView& call) { return unique_rows(call, false); },
  });
  ops.add({
      .schema = "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return membership(b["elements"], b["test_elements"], b.flag("invert")); },
  });
  ops.add({
      .schema = "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        return b.flag("invert") ? ne(b["elements"], b.arg("test_element")) : eq(b["elements"], b.arg("test_element"));
      },
  });
  ops.add({
      .schema = "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor found = any_dim(eq(reshape(b["test_elements"], Sizes{b["test_elements"].numel()}), b.arg("element")), 0);
        return b.flag("invert") ? logical_not(found) : one(found);
      },
  });
}

}  // namespace tenon
