#include "tenon/ops/splitting.h"

#include "tenon/ops/item.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle split_tensor, unsafe_split_tensor, split_with_sizes, unbind;

namespace {

using Maps = std::vector<IndexMap>;

Maps pieces(size_t dim, const Sizes& lengths) {
  Maps maps;
  SymInt start = 0;
  for (SymInt length : lengths) {
    maps.push_back({{remap::Slice{dim, start, length, 1}}});
    start = start + length;
  }
  return maps;
}

void require_length(const ArgsView& call, SymInt length) {
  call.require(!length.is_int() || length.as_int() >= 0, "expected pieces of a size of at least 0, got ", length);
}

// Equal pieces, the last one shorter. Where the size is a symbol, the program was traced with as many pieces as asked
// for.
std::vector<Tensor> chunked(const Tensor& x, int64_t chunks, size_t dim, const ArgsView& call) {
  call.require(chunks > 0, "expected a positive number of chunks, got ", chunks);
  call.require(x.rank() > 0, "a 0-d tensor cannot be split");
  SymInt total = x.sizes()[dim], size = sym::ceil_div(total, chunks);
  if (total.is_int() && total.as_int() > 0) return split_tensor(x, size, dim).list();
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
  int64_t most = x.sizes()[dim].is_int() ? 1 << 16 : 1 << 10;  // views are made one by one, from sums of sizes
  call.require(sections.is_int() && sections.as_int() > 0 && sections.as_int() <= most, "expected 1 to ", most,
               " sections, got ", sections);
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

// hsplit, vsplit and dsplit split one dimension, of tensors that have enough of them.
void require_rank(const ArgsView& call, const Tensor& x, size_t least) {
  call.require(x.rank() >= least, "expected a tensor of at least ", least, " dimensions, got ", x.meta());
}
Results split_into(Build& b, size_t least_rank, size_t dim) {
  Tensor x = b["self"];
  require_rank(b, x, least_rank);
  SymInt sections = b.integer("sections"), total = x.sizes()[dim];
  relies_on(b, sym::gt(sections, 0), "expected a positive number of sections, got ", sections);
  relies_on_equal(b, sym::mod(total, sections), 0, "dimension ", dim, " of ", x.meta(), " cannot be split into ",
                  sections, " equal parts");
  return many(split_evenly(x, sections, dim, b));
}
Results split_by_list(Build& b, size_t least_rank, size_t dim) {
  require_rank(b, b["self"], least_rank);
  return many(split_at(b["self"], b.ints("indices"), dim));
}
size_t horizontal(const Build& b) { return b["self"].rank() == 1 ? 0 : 1; }

}  // namespace

void register_splitting(Registry& ops) {
  ops.add(split_with_sizes,
          {
              .schema = "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
              .kind = OpKind::view,
              .view =
                  [](MetaCall& m) {
                    size_t dim = m.dim("dim", m.meta("self").rank());
                    SymInt total = 0;
                    for (SymInt size : m.ints("split_sizes")) {
                      require_length(m, size);
                      total = total + size;
                    }
                    relies_on_equal(m, total, m.meta("self").sizes[dim], "the sizes ", m.ints("split_sizes"),
                                    " do not add up to dimension ", dim, " of ", m.meta("self"));
                    return pieces(dim, m.ints("split_sizes"));
                  },
          });
  ops.add(split_tensor, {
                            .schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                            .kind = OpKind::view,
                            .view =
                                [](MetaCall& m) {
                                  size_t dim = m.dim("dim", m.meta("self").rank());
                                  SymInt total = m.meta("self").sizes[dim], size = m.integer("split_size");
                                  require_length(m, size);
                                  Sizes lengths;
                                  if (size == SymInt(0) || total == SymInt(0)) {
                                    m.require(total == SymInt(0) || !(size == SymInt(0)),
                                              "a split size of 0 needs an empty dimension, it is ", total);
                                    return pieces(dim, {total});
                                  }
                                  SymInt parts = sym::floor_div(total + size - 1, size);
                                  m.supports(parts.is_int(), "the number of pieces must be known, it is ", parts);
                                  for (int64_t i = 0; i + 1 < parts.as_int(); ++i) lengths.push_back(size);
                                  lengths.push_back(total - size * (parts - 1));
                                  return pieces(dim, lengths);
                                },
                        });
  ops.add(unbind, {
                      .schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
                      .kind = OpKind::view,
                      .view =
                          [](MetaCall& m) {
                            size_t dim = m.dim("dim", m.meta("self").rank());
                            SymInt size = m.meta("self").sizes[dim];
                            m.require(size.is_int(), "dimension ", dim, " must have a constant size, it is ", size);
                            Maps maps;
                            for (int64_t i = 0; i < size.as_int(); ++i)
                              maps.push_back(selection(m.meta("self"), dim, i));
                            return maps;
                          },
                  });
  ops.add({
      .schema = "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return split_with_sizes(b["self"], b.arg("split_size"), b.arg("dim")); },
  });
  Handle chunk;
  ops.add(chunk, {
                     .schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
                     .kind = OpKind::composite,
                     .traits = {.may_alias = true},
                     .decompose =
                         [](Build& b) {
                           return many(chunked(b["self"], b.constant("chunks"), b.dim("dim", b["self"].rank()), b));
                         },
                 });
  ops.overload(chunk, {"unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]"});
  ops.add(unsafe_split_tensor,
          {
              .schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
              .kind = OpKind::composite,
              .traits = {.may_alias = true},
              .decompose = [](Build& b) { return split_tensor(b["self"], b.arg("split_size"), b.arg("dim")); },
          });
  ops.add({
      .schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return split_with_sizes(b["self"], b.arg("split_sizes"), b.arg("dim")); },
  });
  ops.add({
      .schema = "tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            return many(split_evenly(b["self"], b.integer("sections"), b.dim("dim", b["self"].rank()), b));
          },
  });
  ops.add({
      .schema = "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return many(split_at(b["self"], b.ints("indices"), b.dim("dim", b["self"].rank()))); },
  });
  ops.add({
      .schema = "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int "
                "dim=0) -> Tensor(a)[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Tensor where = b["tensor_indices_or_sections"];
            b.require(where.dtype() == DType::i64 && where.rank() <= 1,
                      "expected i64 positions of at most 1 dimension, got ", where.meta());
            size_t dim = b.dim("dim", b["self"].rank());
            if (where.is_traced()) {
              b.supports(where.rank() == 1 && where.size(0).is_int(),
                         "how many pieces there are is known only when the program runs; give positions");
              Sizes indices;
              const Results places = unbind(where, 0);
              for (const Tensor& each : places.values[0].as<std::vector<Tensor>>())
                indices.push_back(item(each).values[0].as<SymInt>());
              return many(split_at(b["self"], indices, dim));
            }
            Tensor own = contiguous_copy(where);
            if (where.rank() == 0) return many(split_evenly(b["self"], scalar_integer(own), dim, b));
            Sizes indices;
            for (int64_t i = 0; i < own.numel().as_int(); ++i) indices.push_back(own.data<int64_t>()[i]);
            return many(split_at(b["self"], indices, dim));
          },
  });
  auto add = [&](const char* schema, DecomposeRule rule) {
    ops.add({.schema = schema, .kind = OpKind::composite, .traits = {.may_alias = true}, .decompose = rule});
  };
  add("hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
      [](Build& b) { return split_into(b, 1, horizontal(b)); });
  add("vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", [](Build& b) { return split_into(b, 2, 0); });
  add("dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]", [](Build& b) { return split_into(b, 3, 2); });
  add("hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
      [](Build& b) { return split_by_list(b, 1, horizontal(b)); });
  add("vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
      [](Build& b) { return split_by_list(b, 2, 0); });
  add("dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
      [](Build& b) { return split_by_list(b, 3, 2); });
}

}  // namespace tenon
