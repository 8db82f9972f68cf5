#include "tenon/ops/joining.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/padding.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle cat, stack;

namespace {

// With unit dims put in front or around, as hstack, vstack and dstack want them.
Tensor at_least(const Tensor& x, size_t rank) {
  Tensor t = x;
  if (t.rank() == 0 && rank > 0) t = reshape(t, Sizes{1});
  if (t.rank() == 1 && rank > 1) t = unsqueeze(t, 0);
  if (t.rank() == 2 && rank > 2) t = unsqueeze(t, -1);
  return t;
}

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
  std::vector<Tensor> tensors = m.tensors("tensors");
  m.require(!tensors.empty(), "expected at least one tensor, got an empty list");
  const Tensor* first = first_counted(tensors);
  if (!first) return like(tensors[0].meta(), Sizes{0}, joined_dtype(tensors));
  m.require(first->rank() > 0, "0-d tensors cannot be joined; stack joins them in a new dimension");
  size_t dim = m.dim("dim", first->rank());
  Sizes sizes = first->sizes();
  SymInt total = 0;
  for (const Tensor& t : tensors) {
    if (adds_nothing(t.meta())) continue;
    m.require(t.rank() == sizes.size(), "expected tensors of ", sizes.size(), " dimensions, got ", t.meta());
    for (size_t d = 0; d < sizes.size(); ++d)
      if (d != dim)
        relies_on_equal(m, t.sizes()[d], sizes[d], "the sizes must be equal except in dimension ", dim, ", got ",
                        first->meta(), " and ", t.meta());
    total = total + t.sizes()[dim];
  }
  sizes[dim] = total;
  TensorMeta out = like(first->meta(), sizes, joined_dtype(tensors));
  MemoryFormat format = joined_format(tensors);
  if (format != MemoryFormat::contiguous) out.strides = strides_in(format, out.sizes);
  return out;
}

void lower_cat(Lower& l) {
  std::vector<Tensor> tensors = l.tensors("tensors");
  const Tensor* first = first_counted(tensors);
  if (!first) return;
  size_t dim = l.dim("dim", first->rank());
  SymInt start = 0;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (adds_nothing(tensors[k].meta())) continue;
    Ref from = l.item("tensors", k);
    l.stage(Sizes(from.sizes()),
            [&](const Index& i) { l.store(l.out(), i.with(dim, i[dim] + l.extent(start)), from.at(i)); });
    start = start + from.size(dim);
  }
}

Grads cat_gradient(Vjp& v) {
  std::vector<Tensor> tensors = v.tensors("tensors"), grads;
  const Tensor* first = first_counted(tensors);
  size_t dim = first ? v.dim("dim", first->rank()) : 0;
  SymInt start = 0;
  for (const Tensor& t : tensors) {
    if (adds_nothing(t.meta())) {
      grads.push_back(zeros_like(t));
      continue;
    }
    SymInt end = start + t.sizes()[dim];
    grads.push_back(slice(v.grad(), dim, start, end));
    start = end;
  }
  return {std::move(grads)};
}

// Joined in the dimension itself, then split from its neighbour: the format of the tensors survives.
Tensor stacked(const std::vector<Tensor>& tensors, int64_t wanted, const ArgsView& call) {
  call.require(!tensors.empty(), "expected at least one tensor, got an empty list");
  size_t rank = tensors[0].rank(), dim = normal_dim(wanted, rank + 1);
  for (const Tensor& t : tensors) {
    call.require(t.rank() == rank, "expected tensors of equal sizes, got ", tensors[0].meta(), " and ", t.meta());
    for (size_t d = 0; d < rank; ++d)
      relies_on_equal(call, t.sizes()[d], tensors[0].sizes()[d], "expected tensors of equal sizes, got ",
                      tensors[0].meta(), " and ", t.meta());
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

std::vector<Tensor> all_at_least(const std::vector<Tensor>& tensors, size_t rank) {
  std::vector<Tensor> items;
  for (const Tensor& t : tensors) items.push_back(at_least(t, rank));
  return items;
}

// Each tensor cut into chunks along dim (the last one filled up with zeros), flattened behind it, and all joined.
Results chunks_joined(Build& b) {
  int64_t chunks = b.constant("num_chunks");
  b.require(chunks > 0, "num_chunks: expected a positive number, got ", chunks);
  std::vector<Tensor> parts;
  size_t dim = 0;
  for (const Tensor& t : b.tensors("tensors")) {
    dim = b.dim("dim", t.rank());
    SymInt size = t.sizes()[dim], whole = sym::ceil_div(size, chunks) * chunks;
    Sizes pads(2 * (t.rank() - 1 - dim), SymInt(0)), sizes(std::span<const SymInt>(t.sizes().begin(), dim));
    pads.push_back(0);
    pads.push_back(whole - size);
    Tensor full = t;
    if (!(whole == size)) full = constant_pad_nd(t, pads, 0);
    sizes.push_back(chunks);
    sizes.push_back(-1);
    parts.push_back(reshape(full, sizes));
  }
  b.require(!parts.empty(), "expected at least one tensor");
  return cat(parts, dim + 1);
}

}  // namespace

void register_joining(Registry& ops) {
  ops.add(cat, {
                   .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
                   .meta = cat_meta,
                   .lower = lower_cat,
                   .vjp = {{"tensors", cat_gradient}},
                   .complex = [](Build& b) { return by_parts(b, "tensors"); },
               });
  ops.alias(cat, {"concat", "concatenate"});
  ops.add(stack, {
                     .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
                     .kind = OpKind::composite,
                     .decompose = [](Build& b) { return one(stacked(b.tensors("tensors"), b.constant("dim"), b)); },
                 });
  ops.add({
      .schema = "hstack(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            std::vector<Tensor> tensors = b.tensors("tensors");
            b.require(!tensors.empty(), "expected at least one tensor, got an empty list");
            return cat(all_at_least(tensors, 1), tensors[0].rank() <= 1 ? 0 : 1);
          },
  });
  Handle vstack;
  ops.add(vstack, {
                      .schema = "vstack(Tensor[] tensors) -> Tensor",
                      .kind = OpKind::composite,
                      .decompose = [](Build& b) { return cat(all_at_least(b.tensors("tensors"), 2), 0); },
                  });
  ops.alias(vstack, {"row_stack"});
  ops.add({
      .schema = "dstack(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return cat(all_at_least(b.tensors("tensors"), 3), 2); },
  });
  ops.add({
      .schema = "column_stack(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            std::vector<Tensor> columns;
            for (const Tensor& t : b.tensors("tensors"))
              columns.push_back(t.rank() <= 1 ? Tensor(reshape(t, Sizes{t.numel(), 1})) : t);
            return cat(columns, 1);
          },
  });
  ops.add({
      .schema = "block_diag(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> blocks;
        SymInt columns = 0, before = 0;
        for (const Tensor& t : b.tensors("tensors")) {
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
      .schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
      .kind = OpKind::composite,
      .decompose = chunks_joined,
  });
  auto add = [&](const char* schema, DecomposeRule rule) {
    ops.add({.schema = schema, .kind = OpKind::composite, .traits = {.may_alias = true}, .decompose = rule});
  };
  add("atleast_1d(Tensor self) -> Tensor", [](Build& b) { return one(at_least(b["self"], 1)); });
  add("atleast_2d(Tensor self) -> Tensor", [](Build& b) { return one(at_least(b["self"], 2)); });
  add("atleast_3d(Tensor self) -> Tensor", [](Build& b) { return one(at_least(b["self"], 3)); });
  add("atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]",
      [](Build& b) { return many(all_at_least(b.tensors("tensors"), 1)); });
  add("atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]",
      [](Build& b) { return many(all_at_least(b.tensors("tensors"), 2)); });
  add("atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]",
      [](Build& b) { return many(all_at_least(b.tensors("tensors"), 3)); });
}

}  // namespace tenon
