#include "tenon/ops/shape.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/ops/infer.h"
#include "tenon/ops/known.h"
#include "tenon/ops/layout.h"
#include "tenon/ops/reduce.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle cat, stack, narrow, flatten, movedim, broadcast_tensors, meshgrid, diag_embed;

Tensor at_least(const Tensor& x, size_t rank) {
  Tensor t = x;
  if (t.rank() == 0 && rank > 0) t = reshape(t, Sizes{1});
  if (t.rank() == 1 && rank > 1) t = unsqueeze(t, 0);
  if (t.rank() == 2 && rank > 2) t = unsqueeze(t, -1);
  return t;
}

namespace {

Results one(Tensor x) { return {{CallArg(std::move(x))}}; }
Results many(std::vector<Tensor> xs) { return {{CallArg(std::move(xs))}}; }

// An empty tensor of one dimension joins with anything and adds nothing: a habit of early PyTorch.
bool adds_nothing(const TensorMeta& m) { return m.rank() == 1 && m.sizes[0] == SymInt(0); }

DType joined_dtype(const std::vector<Tensor>& tensors) {
  DType dtype = tensors[0].dtype();
  for (const Tensor& t : tensors) dtype = promote(dtype, t.dtype());
  return dtype;
}

MemoryFormat joined_format(const std::vector<Tensor>& tensors) {
  MemoryFormat format = suggested_format(tensors[0].meta());
  for (const Tensor& t : tensors)
    if (suggested_format(t.meta()) != format) return MemoryFormat::contiguous;
  return format;
}

const Tensor* first_counted(const std::vector<Tensor>& tensors) {
  for (const Tensor& t : tensors)
    if (!adds_nothing(t.meta())) return &t;
  return nullptr;
}

Metas cat_meta(MetaCall& m) {
  std::vector<Tensor> tensors = m.tensors(0);
  m.require(!tensors.empty(), "expected at least one tensor, got an empty list");
  const Tensor* first = first_counted(tensors);
  if (!first) return like(tensors[0].meta(), Sizes{0}, joined_dtype(tensors));
  m.require(first->rank() > 0, "0-d tensors cannot be joined; stack joins them in a new dimension");
  size_t dim = m.dim(1, first->rank());
  Sizes sizes = first->sizes();
  SymInt total = 0;
  for (const Tensor& t : tensors) {
    if (adds_nothing(t.meta())) continue;
    m.require(t.rank() == sizes.size(), "expected tensors of ", sizes.size(), " dimensions, got ", t.meta());
    for (size_t d = 0; d < sizes.size(); ++d) {
      bool fits = d == dim || t.sizes()[d] == sizes[d] || !t.sizes()[d].is_int() || !sizes[d].is_int();
      m.require(fits, "the sizes must be equal except in dimension ", dim, ", got ", first->meta(), " and ", t.meta());
    }
    total = total + t.sizes()[dim];
  }
  sizes[dim] = total;
  TensorMeta out = like(first->meta(), sizes, joined_dtype(tensors));
  MemoryFormat format = joined_format(tensors);
  if (format != MemoryFormat::contiguous) out.strides = strides_in(format, out.sizes);
  return out;
}

void lower_cat(Lower& l) {
  std::vector<Tensor> tensors = l.tensors(0);
  const Tensor* first = first_counted(tensors);
  if (!first) return;
  size_t dim = l.dim(1, first->rank());
  SymInt start = 0;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (adds_nothing(tensors[k].meta())) continue;
    Ref from = l.item(0, k);
    l.stage(Sizes(from.sizes()),
            [&](const Index& i) { l.store(l.out(), i.with(dim, i[dim] + l.extent(start)), from.at(i)); });
    start = start + from.size(dim);
  }
}

Grads cat_vjp(Vjp& v) {
  std::vector<Tensor> tensors = v.tensors(0), grads;
  const Tensor* first = first_counted(tensors);
  if (!first) return {std::vector<Tensor>(tensors.size())};
  size_t dim = v.dim(1, first->rank());
  SymInt start = 0;
  for (const Tensor& t : tensors) {
    if (adds_nothing(t.meta())) {
      grads.push_back(none);
      continue;
    }
    SymInt end = start + t.sizes()[dim];
    grads.push_back(slice(v.grad(0), dim, start, end));
    start = end;
  }
  return {std::move(grads)};
}

// Joined in the dimension itself, then split from its neighbour: the format of the tensors survives.
Tensor stacked(const std::vector<Tensor>& tensors, int64_t wanted, const ArgsView& call) {
  call.require(!tensors.empty(), "expected at least one tensor, got an empty list");
  size_t rank = tensors[0].rank(), dim = normal_dim(wanted, rank + 1);
  for (const Tensor& t : tensors) {
    bool same = t.rank() == rank;
    for (size_t d = 0; same && d < rank; ++d)
      same = t.sizes()[d] == tensors[0].sizes()[d] || !t.sizes()[d].is_int() || !tensors[0].sizes()[d].is_int();
    call.require(same, "expected tensors of equal sizes, got ", tensors[0].meta(), " and ", t.meta());
  }
  if (dim == rank) {
    std::vector<Tensor> items;
    for (const Tensor& t : tensors) items.push_back(unsqueeze(t, -1));
    return cat(items, -1);
  }
  Sizes sizes = tensors[0].sizes();
  sizes.insert(dim, SymInt(static_cast<int64_t>(tensors.size())));
  return view(cat(tensors, dim), sizes);
}

Tensor all_at_least(const std::vector<Tensor>& tensors, size_t rank, int64_t dim) {
  std::vector<Tensor> items;
  for (const Tensor& t : tensors) items.push_back(at_least(t, rank));
  return cat(items, dim);
}

// Equal pieces, the last one shorter. Where the size is a symbol, the program was traced with as many pieces as asked
// for.
std::vector<Tensor> chunked(const Tensor& x, int64_t chunks, size_t dim, const ArgsView& call) {
  call.require(chunks > 0, "expected a positive number of chunks, got ", chunks);
  call.require(x.rank() > 0, "a 0-d tensor cannot be split");
  SymInt total = x.sizes()[dim], size = sym::ceil_div(total, chunks);
  if (total.is_int() && total.as_int() > 0) {
    return split_tensor(x, size, dim).list();
  }
  Sizes sizes(static_cast<size_t>(chunks), size);
  sizes.back() = total - size * (chunks - 1);
  return split_with_sizes(x, sizes, dim).list();
}

std::vector<Tensor> split_at(const Tensor& x, const Sizes& indices, size_t dim) {
  std::vector<Tensor> out;
  SymInt start = 0;
  for (SymInt end : indices) {
    out.push_back(slice(x, dim, start, end));
    start = end;
  }
  out.push_back(slice(x, dim, start, x.sizes()[dim]));
  return out;
}

std::vector<Tensor> split_evenly(const Tensor& x, SymInt sections, size_t dim, const ArgsView& call) {
  call.require(sections.is_int() && sections.as_int() > 0, "expected a positive number of sections, got ", sections);
  SymInt total = x.sizes()[dim], least = sym::floor_div(total, sections), longer = sym::mod(total, sections), at = 0;
  Sizes indices;
  for (int64_t i = 0; i + 1 < sections.as_int(); ++i) {
    sym::Expr more = sym::lt(i, longer);
    auto sure = known(more);
    at = at + (sure ? (*sure ? least + 1 : least) : sym::where(more, least + 1, least));
    indices.push_back(at);
  }
  return split_at(x, indices, dim);
}

// hsplit, vsplit and dsplit: an even split in a fixed dimension.
Results split_exactly(Build& b, size_t least_rank, size_t dim) {
  Tensor x = b[0];
  b.require(x.rank() >= least_rank, "expected a tensor of at least ", least_rank, " dimensions, got ", x.meta());
  SymInt sections = b.integer(1), total = x.sizes()[dim];
  bool even =
      !total.is_int() || (sections.is_int() && sections.as_int() > 0 && total.as_int() % sections.as_int() == 0);
  b.require(even, "dimension ", dim, " of ", x.meta(), " cannot be split into ", sections, " equal parts");
  return many(split_evenly(x, sections, dim, b));
}
Results split_by_list(Build& b, size_t least_rank, size_t dim) {
  b.require(b[0].rank() >= least_rank, "expected a tensor of at least ", least_rank, " dimensions, got ", b[0].meta());
  return many(split_at(b[0], b.ints(1), dim));
}
size_t horizontal(const Build& b) { return b[0].rank() == 1 ? 0 : 1; }

Tensor narrowed(const Tensor& x, size_t dim, SymInt start, SymInt length, const ArgsView& call) {
  SymInt size = x.sizes()[dim];
  call.require(x.rank() > 0, "a 0-d tensor cannot be narrowed");
  if (surely(sym::lt(start, 0))) start = start + size;
  bool fits = !surely(sym::lt(length, 0)) && !surely(sym::lt(start, 0)) && !surely(sym::gt(start + length, size));
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
  SymInt side = x.size(-1) + (offset < 0 ? -offset : offset);
  Sizes sizes(std::span<const SymInt>(x.sizes().begin(), x.rank() - 1));
  sizes.insert(std::min(first, second), side);
  sizes.insert(std::max(first, second), side);
  return diagonal_scatter(zeros(sizes, x), x, offset, static_cast<int64_t>(first), static_cast<int64_t>(second));
}

}  // namespace

void register_shape(Registry& ops) {
  ops.add(cat, {
      .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
      .meta = cat_meta,
      .lower = lower_cat,
      .vjp = cat_vjp,
  });
  ops.alias(cat, {"concat", "concatenate"});
  ops.add(stack, {
      .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return one(stacked(b.tensors(0), b.constant(1), b)); },
  });
  ops.add({
      .schema = "hstack(Tensor[] tensors) -> Tensor",
      .kind = Kind::composite,
      .decompose =
          [](Build& b) {
            std::vector<Tensor> tensors = b.tensors(0);
            b.require(!tensors.empty(), "expected at least one tensor, got an empty list");
            return one(all_at_least(tensors, 1, tensors[0].rank() <= 1 ? 0 : 1));
          },
  });
  Handle vstack;
  ops.add(vstack, {
      .schema = "vstack(Tensor[] tensors) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return one(all_at_least(b.tensors(0), 2, 0)); },
  });
  ops.alias(vstack, {"row_stack"});
  ops.add({
      .schema = "dstack(Tensor[] tensors) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return one(all_at_least(b.tensors(0), 3, 2)); },
  });
  ops.add({
      .schema = "column_stack(Tensor[] tensors) -> Tensor",
      .kind = Kind::composite,
      .decompose =
          [](Build& b) {
            std::vector<Tensor> columns;
            for (const Tensor& t : b.tensors(0))
              columns.push_back(t.rank() <= 1 ? Tensor(reshape(t, Sizes{t.numel(), 1})) : t);
            return cat(columns, 1);
          },
  });
  ops.add({
      .schema = "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return split_with_sizes(b[0], b.arg(1), b.arg(2)); },
  });
  ops.add({
      .schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(chunked(b[0], b.constant(1), b.dim(2, b[0].rank()), b)); },
  });
  ops.add({
      .schema = "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(chunked(b[0], b.constant(1), b.dim(2, b[0].rank()), b)); },
  });
  ops.add({
      .schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return split_tensor(b[0], b.arg(1), b.arg(2)); },
  });
  ops.add({
      .schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return split_with_sizes(b[0], b.arg(1), b.arg(2)); },
  });
  ops.add({
      .schema = "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(split_evenly(b[0], b.integer(1), b.dim(2, b[0].rank()), b)); },
  });
  ops.add({
      .schema = "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(split_at(b[0], b.ints(1), b.dim(2, b[0].rank()))); },
  });
  ops.add({
      .schema = "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int "
                "dim=0) -> Tensor(a)[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Tensor where = b[1];
            b.require(where.dtype() == DType::i64 && where.rank() <= 1,
                      "expected i64 positions of at most 1 dimension, got ", where.meta());
            b.require(!where.is_traced(),
                      "positions that are a tensor are known only when the program runs; give a list");
            size_t dim = b.dim(2, b[0].rank());
            Tensor own = contiguous_copy(where);
            if (where.rank() == 0) return many(split_evenly(b[0], scalar_integer(own), dim, b));
            Sizes indices;
            for (int64_t i = 0; i < own.numel().as_int(); ++i) indices.push_back(own.data<int64_t>()[i]);
            return many(split_at(b[0], indices, dim));
          },
  });
#define TENON_SPLIT(name, rank, dim)                                                   \
  ops.add({.schema = name ".int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",    \
           .kind = Kind::composite,                                                    \
           .traits = {.may_alias = true},                                              \
           .decompose = [](Build& b) { return split_exactly(b, rank, dim); }});        \
  ops.add({.schema = name ".array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]", \
           .kind = Kind::composite,                                                    \
           .traits = {.may_alias = true},                                              \
           .decompose = [](Build& b) { return split_by_list(b, rank, dim); }})
  TENON_SPLIT("hsplit", 1, horizontal(b));
  TENON_SPLIT("vsplit", 2, 0);
  TENON_SPLIT("dsplit", 3, 2);
#undef TENON_SPLIT
  ops.add(narrow, {
      .schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return one(narrowed(b[0], b.dim(1, b[0].rank()), b.integer(2), b.integer(3), b)); },
  });
  ops.add({
      .schema = "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return one(narrowed(b[0], b.dim(1, b[0].rank()), b.integer(2), b.integer(3), b)); },
  });
  ops.add({
      .schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
      .kind = Kind::composite,
      .decompose =
          [](Build& b) {
            return clone(narrowed(b[0], b.dim(1, b[0].rank()), b.integer(2), b.integer(3), b),
                         MemoryFormat::contiguous);
          },
  });
  ops.add(
      flatten,
      {
          .schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
          .kind = Kind::composite,
          .traits = {.may_alias = true},
          .decompose = [](Build& b) { return one(flattened(b[0], b.dim(1, b[0].rank()), b.dim(2, b[0].rank()), b)); },
      });
  ops.add({
      .schema = "ravel(Tensor(a) self) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        Tensor flat = contiguous(b[0]);
        return view(flat, Sizes{flat.numel()});
      },
  });
  ops.add({
      .schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes sizes = b[0].sizes();
            size_t dim = b.dim(1, sizes.size());
            b.require(!b.ints(2).empty(), "expected at least one size, got none");
            Sizes parts = inferred_sizes(b.ints(2), sizes.empty() ? SymInt(1) : sizes[dim], b);
            if (!sizes.empty()) sizes.erase(dim);
            for (size_t i = 0; i < parts.size(); ++i) sizes.insert(dim + i, parts[i]);
            return view(b[0], sizes);
          },
  });
  ops.add(movedim, {
      .schema = "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return moved(b, b.ints(1), b.ints(2)); },
  });
  Handle move_one, swapped, adjoint;
  ops.add(move_one, {
      .schema = "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return moved(b, b.ints(1), b.ints(2)); },
  });
  ops.alias(movedim, {"moveaxis.intlist"});
  ops.alias(move_one, {"moveaxis.int"});
  ops.add(swapped, {
      .schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return transpose(b[0], b.arg(1), b.arg(2)); },
  });
  ops.add({
      .schema = "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return transpose(b[0], b.arg(1), b.arg(2)); },
  });
  ops.add({
      .schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return expand(b[0], b[1].sizes()); },
  });
  ops.add({
      .schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return view(b[0], b[1].sizes()); },
  });
  ops.add({
      .schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return reshape(b[0], b[1].sizes()); },
  });
  ops.add({
      .schema = "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return expand(b[0], b.arg(1)); },
  });
  ops.add(broadcast_tensors, {
      .schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes sizes;
            for (const Tensor& t : b.tensors(0)) sizes = broadcast(sizes, t.sizes(), b);
            std::vector<Tensor> out;
            for (const Tensor& t : b.tensors(0)) out.push_back(expand(t, sizes));
            return many(std::move(out));
          },
  });
  ops.add({
      .schema = "numpy_T(Tensor(a) self) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes dims;
            for (size_t i = b[0].rank(); i-- > 0;) dims.push_back(static_cast<int64_t>(i));
            return permute(b[0], dims);
          },
  });
  auto last_two_swapped = [](Build& b) -> Results {
    b.require(b[0].rank() >= 2, "expected a tensor of at least 2 dimensions, got ", b[0].meta());
    return transpose(b[0], -2, -1);
  };
  for (const char* schema : {"mT(Tensor(a) self) -> Tensor(a)", "mH(Tensor(a) self) -> Tensor(a)",
                             "matrix_H(Tensor(a) self) -> Tensor(a)", "adjoint(Tensor(a) self) -> Tensor(a)"})
    ops.add({.schema = schema, .kind = Kind::composite, .traits = {.may_alias = true}, .decompose = last_two_swapped});

#define TENON_AT_LEAST(n)                                                        \
  ops.add({.schema = "atleast_" #n "d(Tensor self) -> Tensor",                   \
           .kind = Kind::composite,                                              \
           .traits = {.may_alias = true},                                        \
           .decompose = [](Build& b) { return one(at_least(b[0], n)); }});       \
  ops.add({.schema = "atleast_" #n "d.Sequence(Tensor[] tensors) -> Tensor[]",   \
           .kind = Kind::composite,                                              \
           .traits = {.may_alias = true},                                        \
           .decompose = [](Build& b) {                                           \
             std::vector<Tensor> out;                                            \
             for (const Tensor& t : b.tensors(0)) out.push_back(at_least(t, n)); \
             return many(std::move(out));                                        \
           }})
  TENON_AT_LEAST(1);
  TENON_AT_LEAST(2);
  TENON_AT_LEAST(3);
#undef TENON_AT_LEAST
  ops.add(meshgrid, {
      .schema = "meshgrid(Tensor[] tensors) -> Tensor[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(grids(b.tensors(0), "ij", b)); },
  });
  ops.add({
      .schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(grids(b.tensors(0), b.string(1), b)); },
  });
  ops.add({
      .schema = "cartesian_prod(Tensor[] tensors) -> Tensor",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> tensors = b.tensors(0), columns;
        for (const Tensor& t : tensors) b.require(t.rank() == 1, "expected tensors of 1 dimension, got ", t.meta());
        if (tensors.size() == 1) return one(tensors[0]);
        for (const Tensor& grid : grids(tensors, "ij", b)) columns.push_back(reshape(grid, Sizes{-1}));
        return stack(columns, 1);
      },
  });
  ops.add(diag_embed, {
      .schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
      .kind = Kind::composite,
      .decompose = embedded_diagonal,
  });
  ops.add({
      .schema = "diag(Tensor self, int diagonal=0) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(b[0].rank() == 1 || b[0].rank() == 2, "expected 1 or 2 dimensions, got ", b[0].meta());
        return b[0].rank() == 1 ? diag_embed(b[0], b.arg(1))
                                : clone(diagonal(b[0], b.arg(1)), MemoryFormat::contiguous);
      },
  });
  ops.add({
      .schema = "diagflat(Tensor self, int offset=0) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return diag_embed(reshape(b[0], Sizes{b[0].numel()}), b.arg(1)); },
  });
  ops.add({
      .schema = "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return diagonal(b[0], b.arg(1), b.arg(2), b.arg(3)); },
  });
  ops.add({
      .schema = "block_diag(Tensor[] tensors) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> blocks;
        SymInt columns = 0, before = 0;
        for (const Tensor& t : b.tensors(0)) {
          b.require(t.rank() <= 2, "expected tensors of at most 2 dimensions, got ", t.meta());
          blocks.push_back(at_least(t, 2));
          columns = columns + blocks.back().size(1);
        }
        if (blocks.empty()) return full(Sizes{1, 0}, 0.0);
        for (Tensor& block : blocks) {
          SymInt own = block.size(1);
          block = constant_pad_nd(block, Sizes{before, columns - before - own}, 0);
          before = before + own;
        }
        return cat(blocks, 0);
      },
  });
  ops.add({
      .schema = "sum_to_size(Tensor self, SymInt[] size) -> Tensor",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Sizes to = b.ints(1), spread = broadcast(b[0].sizes(), to, b);
            b.require(to.size() <= b[0].rank() && spread == b[0].sizes(), "sizes ", to, " do not broadcast to ",
                      b[0].meta());
            return to.empty() ? sum(b[0], Sizes{}) : one(sum_to(b[0], to));
          },
  });
}

}  // namespace tenon
