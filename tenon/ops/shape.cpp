// Dimensions renamed: narrowed, flattened, moved, broadcast; grids and diagonals.
#include "tenon/ops/shape.h"

#include <algorithm>

#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/index.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle narrow, flatten, movedim, broadcast_tensors, meshgrid, diag_embed;

namespace {

Tensor narrowed(const Tensor& x, size_t dim, SymInt start, SymInt length, const ArgsView& call) {
  SymInt size = x.sizes()[dim];
  call.require(x.rank() > 0, "a 0-d tensor cannot be narrowed");
  if (statically_true(sym::lt(start, 0))) start = start + size;
  bool fits = !statically_true(sym::lt(length, 0)) && !statically_true(sym::lt(start, 0)) && !statically_true(sym::gt(start + length, size));
  call.require(fits, "start ", start, " and length ", length, " exceed dimension ", dim, " of ", x.meta());
  return slice(x, dim, start, start + length);
}

Tensor flattened(const Tensor& x, size_t first, size_t last, const ArgsView& call) {
  if (x.rank() == 0) return reshape(x, Sizes{1});
  call.require(first <= last, "start_dim ", first, " comes after end_dim ", last);
  if (first == last) return x;
  Sizes sizes;
  SymInt merged = 1;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (d < first || d > last) sizes.push_back(x.sizes()[d]);
    else merged = merged * x.sizes()[d];
    if (d == last) sizes.push_back(merged);
  }
  return reshape(x, sizes);
}

Results moved(Build& b, const Sizes& source, const Sizes& destination) {
  Tensor x = b[0];
  size_t rank = x.rank();
  b.require(source.size() == destination.size(), "as many sources as destinations are needed, got ", source, " and ",
            destination);
  if (rank == 0) return one(alias(x));
  std::vector<int64_t> order(rank, -1);
  std::vector<bool> used(rank);
  for (size_t i = 0; i < source.size(); ++i) {
    size_t from = normal_dim(source[i].as_int(), rank), to = normal_dim(destination[i].as_int(), rank);
    b.require(!used[from] && order[to] < 0, "repeated dims in ", source, " or ", destination);
    order[to] = static_cast<int64_t>(from);
    used[from] = true;
  }
  size_t next = 0;
  Sizes dims;
  for (int64_t& o : order) {
    if (o < 0) {
      while (used[next]) ++next;
      o = static_cast<int64_t>(next++);
    }
    dims.push_back(o);
  }
  return permute(x, dims);
}

std::vector<Tensor> grids(const std::vector<Tensor>& given, const std::string& indexing, const ArgsView& call) {
  call.require(indexing == "ij" || indexing == "xy", "indexing: expected 'ij' or 'xy', got ", quoted(indexing));
  call.require(!given.empty(), "expected at least one tensor, got an empty list");
  std::vector<Tensor> axes = given;
  bool swapped = indexing == "xy" && axes.size() >= 2;
  if (swapped) std::swap(axes[0], axes[1]);
  Sizes sizes;
  for (const Tensor& t : axes) {
    call.require(t.rank() <= 1 && t.dtype() == axes[0].dtype(),
                 "expected tensors of one dtype with at most 1 dimension, got ", t.meta());
    sizes.push_back(t.numel());
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    Sizes own(axes.size(), SymInt(1));
    own[i] = sizes[i];
    out.push_back(expand(view(axes[i], own), sizes));
  }
  if (swapped) std::swap(out[0], out[1]);
  return out;
}

Results embedded_diagonal(Build& b) {
  Tensor x = b[0];
  b.require(x.rank() > 0, "expected at least one dimension, got ", x.meta());
  size_t rank = x.rank() + 1, first = b.dim(2, rank), second = b.dim(3, rank);
  b.require(first != second, "the two dimensions must differ, both are ", first);
  int64_t offset = b.constant(1);
  SymInt side = x.size(-1) + (offset < 0 ? -SymInt(offset) : SymInt(offset));
  Sizes sizes(std::span<const SymInt>(x.sizes().begin(), x.rank() - 1));
  sizes.insert(std::min(first, second), side);
  sizes.insert(std::max(first, second), side);
  return diagonal_scatter(zeros(sizes, x), x, offset, static_cast<int64_t>(first), static_cast<int64_t>(second));
}

}  // namespace

void register_shape(Registry& ops) {
  ops.add(narrow, {
      .schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return one(narrowed(b["self"], b.dim("dim", b["self"].rank()), b.integer("start"), b.integer("length"), b)); },
  });
  ops.add({
      .schema = "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            b.require(is_integral(b["start"].dtype()) && b["start"].dtype() != DType::boolean && b["start"].rank() == 0,
                      "start: expected an integer without dimensions, got ", b["start"].meta());
            SymInt start = *item(b["start"]).values[0].get<SymInt>();
            return one(narrowed(b["self"], b.dim("dim", b["self"].rank()), start, b.integer("length"), b));
          },
  });
  ops.add({
      .schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return clone(narrowed(b["self"], b.dim("dim", b["self"].rank()), b.integer("start"), b.integer("length"), b),
                         MemoryFormat::contiguous);
          },
  });
  ops.add(flatten, {
      .schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return one(flattened(b["self"], b.dim("start_dim", b["self"].rank()), b.dim("end_dim", b["self"].rank()), b)); },
  });
  ops.add({
      .schema = "ravel(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        Tensor flat = contiguous(b["self"]);
        return view(flat, Sizes{flat.numel()});
      },
  });
  ops.add({
      .schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes sizes = b["self"].sizes();
            size_t dim = b.dim("dim", sizes.size());
            b.require(!b.ints("sizes").empty(), "expected at least one size, got none");
            Sizes parts = inferred_sizes(b.ints("sizes"), sizes.empty() ? SymInt(1) : sizes[dim], b);
            if (!sizes.empty()) sizes.erase(dim);
            for (size_t i = 0; i < parts.size(); ++i) sizes.insert(dim + i, parts[i]);
            return view(b["self"], sizes);
          },
  });
  ops.add(movedim, {
      .schema = "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return moved(b, b.ints("source"), b.ints("destination")); },
  });
  Handle move_one;
  ops.add(move_one, {
      .schema = "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return moved(b, b.ints("source"), b.ints("destination")); },
  });
  ops.alias(movedim, {"moveaxis.intlist"});
  ops.alias(move_one, {"moveaxis.int"});
  ops.add({
      .schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return expand(b["self"], b["other"].sizes()); },
  });
  ops.add({
      .schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return view(b["self"], b["other"].sizes()); },
  });
  ops.add({
      .schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return reshape(b["self"], b["other"].sizes()); },
  });
  ops.add({
      .schema = "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return expand(b["self"], b.arg("size")); },
  });
  ops.add(broadcast_tensors, {
      .schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes sizes;
            for (const Tensor& t : b.tensors("tensors")) sizes = broadcast(sizes, t.sizes(), b);
            std::vector<Tensor> out;
            for (const Tensor& t : b.tensors("tensors")) out.push_back(expand(t, sizes));
            return many(std::move(out));
          },
  });
  ops.add({
      .schema = "numpy_T(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes dims;
            for (size_t i = b["self"].rank(); i-- > 0;) dims.push_back(static_cast<int64_t>(i));
            return permute(b["self"], dims);
          },
  });
  auto last_two_swapped = [](Build& b) -> Results {
    b.require(b[0].rank() >= 2, "expected a tensor of at least 2 dimensions, got ", b[0].meta());
    return transpose(b[0], -2, -1);
  };
  for (const char* schema : {"mT(Tensor(a) self) -> Tensor(a)", "mH(Tensor(a) self) -> Tensor(a)",
                             "matrix_H(Tensor(a) self) -> Tensor(a)", "adjoint(Tensor(a) self) -> Tensor(a)"})
    ops.add({.schema = schema, .kind = OpKind::composite, .traits = {.may_alias = true}, .decompose = last_two_swapped});

  ops.add(meshgrid, {
      .schema = "meshgrid(Tensor[] tensors) -> Tensor[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(grids(b.tensors("tensors"), "ij", b)); },
  });
  ops.add({
      .schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(grids(b.tensors("tensors"), b.string("indexing"), b)); },
  });
  ops.add({
      .schema = "cartesian_prod(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> tensors = b.tensors("tensors"), columns;
        for (const Tensor& t : tensors) b.require(t.rank() == 1, "expected tensors of 1 dimension, got ", t.meta());
        if (tensors.size() == 1) return one(tensors[0]);
        for (const Tensor& grid : grids(tensors, "ij", b)) columns.push_back(reshape(grid, Sizes{-1}));
        return stack(columns, 1);
      },
  });
  ops.add(diag_embed, {
      .schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = embedded_diagonal,
  });
  ops.add({
      .schema = "diag(Tensor self, int diagonal=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(b["self"].rank() == 1 || b["self"].rank() == 2, "expected 1 or 2 dimensions, got ", b["self"].meta());
        return b["self"].rank() == 1 ? diag_embed(b["self"], b.arg("diagonal"))
                                : clone(diagonal(b["self"], b.arg("diagonal")), MemoryFormat::contiguous);
      },
  });
  ops.add({
      .schema = "diagflat(Tensor self, int offset=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return diag_embed(reshape(b["self"], Sizes{b["self"].numel()}), b.arg("offset")); },
  });
  ops.add({
      .schema = "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return diagonal(b["A"], b.arg("offset"), b.arg("dim1"), b.arg("dim2")); },
  });
  ops.add({
      .schema = "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes to = b.ints("size"), spread = broadcast(b["self"].sizes(), to, b);
            b.require(to.size() <= b["self"].rank() && spread == b["self"].sizes(), "sizes ", to, " do not broadcast to ",
                      b["self"].meta());
            return to.empty() ? sum(b["self"], Sizes{}) : one(sum_to(b["self"], to));
          },
  });
}

}  // namespace tenon
