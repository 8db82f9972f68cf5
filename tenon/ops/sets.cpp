// Tensors as sets: elements and rows without repeats, of data-dependent size, and membership.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

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

// unique_consecutive over the only dimension is the one over all elements.
bool is_flat(const ArgsView& call) {
  return !call.given("dim") || (call.meta("self").rank() == 1 && call.integer("dim") == SymInt(0));
}

Results membership(const Tensor& elements, const Tensor& among, bool invert) {
  Tensor all = reshape(among, Sizes{among.numel()}), each = unsqueeze(elements, -1);
  Tensor found = any_dim(eq(each, all), -1);
  return invert ? one(logical_not(found)) : one(found);
}

}  // namespace

void register_sets(Registry& ops) {
  ops.add({
      .schema = "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
      .meta = flat_meta,
      .host = {"unique"},
  });
  ops.add({
      .schema = "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
                "(Tensor, Tensor, Tensor)",
      .meta = flat_meta,
      .host = {"unique"},
  });
  ops.add({
      .schema = "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
                "return_counts=False) -> (Tensor, Tensor, Tensor)",
      .meta = rows_meta,
      .host = {"unique_rows"},
  });
  ops.add({
      .schema = "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
                "-> (Tensor, Tensor, Tensor)",
      .meta = [](MetaCall& m) { return is_flat(m) ? flat_meta(m) : rows_meta(m); },
      .host = {"unique_consecutive"},
  });
  ops.add({
      .schema = "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> "
                "(Tensor, Tensor, Tensor)",
      .meta = rows_meta,
      .host = {"unique_consecutive_rows"},
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
