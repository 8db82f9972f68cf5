#include "tenon/ops/shape.h"

#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/item.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle narrow, flatten, movedim, broadcast_tensors;

namespace {

Tensor narrowed(const Build& b, SymInt start) {
  Tensor x = b["self"];
  size_t dim = b.dim("dim", x.rank());
  SymInt length = b.integer("length");
  SymInt size = x.sizes()[dim];
  b.require(x.rank() > 0, "a 0-d tensor cannot be narrowed");
  if (statically_true(sym::lt(start, 0))) start = start + size;
  bool fits = !statically_true(sym::lt(length, 0)) && !statically_true(sym::lt(start, 0)) &&
              !statically_true(sym::gt(start + length, size));
  b.require(fits, "start ", start, " and length ", length, " exceed dimension ", dim, " of ", x.meta());
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

Results moved(Build& b) {
  Tensor x = b["self"];
  Sizes source = b.ints("source"), destination = b.ints("destination");
  size_t rank = x.rank();
  b.require(source.size() == destination.size(), "as many sources as destinations are needed, got ", source, " and ",
            destination);
  if (rank == 0) return one(alias(x));
  std::vector<int64_t> order(rank, -1);
  std::vector<bool> used(rank);
  for (size_t i = 0; i < source.size(); ++i) {
    b.require(source[i].is_int() && destination[i].is_int(), "expected numbers of dims, got ", source, " and ",
              destination);
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

}  // namespace

void register_shape(Registry& ops) {
  ops.add(narrow, {
                      .schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
                      .kind = OpKind::composite,
                      .traits = {.may_alias = true},
                      .decompose = [](Build& b) { return one(narrowed(b, b.integer("start"))); },
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
            return one(narrowed(b, start));
          },
  });
  ops.add({
      .schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return clone(narrowed(b, b.integer("start")), MemoryFormat::contiguous); },
  });
  ops.add(flatten, {
                       .schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
                       .kind = OpKind::composite,
                       .traits = {.may_alias = true},
                       .decompose =
                           [](Build& b) {
                             return one(flattened(b["self"], b.dim("start_dim", b["self"].rank()),
                                                  b.dim("end_dim", b["self"].rank()), b));
                           },
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
                       .decompose = moved,
                   });
  Handle move_one;
  ops.overload(movedim, move_one, "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)");
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
                                       for (const Tensor& t : b.tensors("tensors"))
                                         sizes = broadcast(sizes, t.sizes(), b);
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
  static Handle mT;
  ops.add(mT, {
                  .schema = "mT(Tensor(a) self) -> Tensor(a)",
                  .kind = OpKind::composite,
                  .traits = {.may_alias = true},
                  .decompose =
                      [](Build& b) {
                        b.require(b["self"].rank() >= 2, "expected a tensor of at least 2 dimensions, got ",
                                  b["self"].meta());
                        return transpose(b["self"], -2, -1);
                      },
              });
  for (const char* schema : {"mH(Tensor(a) self) -> Tensor(a)", "matrix_H(Tensor(a) self) -> Tensor(a)",
                             "adjoint(Tensor(a) self) -> Tensor(a)"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .traits = {.may_alias = true},
        .decompose = [](Build& b) -> Results {
          return is_complex(b["self"].dtype()) ? conjugate(mT(b["self"])) : mT(b["self"]);
        },
    });
}

}  // namespace tenon
