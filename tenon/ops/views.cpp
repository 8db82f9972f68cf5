#include "tenon/ops/views.h"

#include <algorithm>
#include <numeric>

#include "tenon/ops/conversion.h"
#include "tenon/ops/diagonal.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/splitting.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle resized, resized_as;
Handle view, reshape, permute, transpose, expand, slice, select, unsqueeze, squeeze_dim, as_strided, unfold, alias,
    detach, view_dtype, unsafe_view;

namespace {

using Maps = std::vector<IndexMap>;
Maps one(remap::Part step) { return {IndexMap{{std::move(step)}}}; }

Maps swapped(const MetaCall& m, const char* first, const char* second) {
  size_t rank = m.meta("self").rank(), a = m.dim(first, rank), b = m.dim(second, rank);
  if (rank == 0) return {IndexMap{}};
  remap::Permute p;
  for (size_t i = 0; i < rank; ++i) p.dims.push_back(i == a ? b : i == b ? a : i);
  return one(p);
}

// A place that is counted from the end where it is negative.
SymInt from_the_end(SymInt at, SymInt size) {
  auto negative = known(sym::lt(at, 0));
  if (negative) return *negative ? at + size : at;
  return sym::where(sym::lt(at, 0), at + size, at);
}

// start and end as Python slices have them: counted from the end where negative, cut off at the ends.
remap::Slice sliced(size_t dim, SymInt size, std::optional<SymInt> from, std::optional<SymInt> to, SymInt step) {
  auto place = [&](SymInt at) {
    auto negative = known(sym::lt(at, 0));
    if (negative == false) return smaller(at, size);
    if (negative == true) return larger(at + size, 0);
    return sym::where(sym::lt(at, 0), larger(at + size, 0), smaller(at, size));
  };
  SymInt start = from ? place(*from) : SymInt(0);
  SymInt end = !to || (to->is_int() && to->as_int() == std::numeric_limits<int64_t>::max()) ? size : place(*to);
  SymInt length = larger(end - start, 0);
  return {dim, start, step == SymInt(1) ? length : sym::floor_div(length + step - 1, step), step};
}

std::optional<SymInt> optional_integer(const ArgsView& call, const char* arg) {
  if (!call.given(arg)) return std::nullopt;
  return call.integer(arg);
}

Maps squeezed(const TensorMeta& x, const SmallVector<size_t, 6>& dims) {
  Sizes sizes;
  for (size_t i = 0; i < x.rank(); ++i) {
    bool drop = std::find(dims.begin(), dims.end(), i) != dims.end() && x.sizes[i] == SymInt(1);
    if (!drop) sizes.push_back(x.sizes[i]);
  }
  return one(remap::Reshape{sizes});
}

// The first elements of what a tensor holds, in another shape. A tensor that grows has elements that nobody wrote.
Maps resized_map(MetaCall& m, const Sizes& sizes) {
  const TensorMeta& self = m.meta("self");
  if (self.sizes == sizes) return Maps{IndexMap{}};
  m.require(!m.given("memory_format") || m.arg("memory_format") == CallArg(MemoryFormat::contiguous) ||
                m.arg("memory_format") == CallArg(MemoryFormat::preserve),
            "another memory format is not supported");
  SymInt before = count(self.sizes), after = count(sizes);
  m.require(is_contiguous(self), "a tensor that is not contiguous, ", self, ", cannot be resized");
  if (before == after) return one(remap::Reshape{sizes});
  relies_on(m, sym::ge(before, after), "a tensor of ", before, " elements cannot become one of ", after,
            ": what the further ones hold is undefined");
  return one(remap::Strided{sizes, contiguous_strides(sizes), self.offset});
}

Results of_first_elements(const Tensor& x, const Sizes& sizes) {
  return count(x.sizes()) == count(sizes) ? reshape(x, sizes)
                                          : reshape(slice(reshape(x, Sizes{-1}), 0, 0, count(sizes)), sizes);
}

}  // namespace

IndexMap selection(const TensorMeta& base, size_t dim, SymInt index) {
  Sizes rest = base.sizes;
  rest.erase(dim);
  return {{remap::Slice{dim, index, 1, 1}, remap::Reshape{rest}}};
}

Sizes inferred_sizes(const Sizes& sizes, SymInt total, const ArgsView& call) {
  Sizes out = sizes;
  SymInt rest = 1;
  int unknown = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == SymInt(-1)) {
      call.require(unknown < 0, "only one size can be -1, got ", sizes);
      unknown = static_cast<int>(i);
    } else {
      call.require(!sizes[i].is_int() || sizes[i].as_int() >= 0, "invalid size ", sizes[i], " in ", sizes);
      rest = rest * sizes[i];
    }
  }
  if (unknown >= 0) {
    call.require(!(rest == SymInt(0)), "the size that -1 stands for is ambiguous: there are no elements in ", sizes);
    out[static_cast<size_t>(unknown)] = sym::floor_div(total, rest);
    relies_on_equal(call, sym::mod(total, rest), 0, "sizes ", sizes, " do not fit ", total, " elements");
  } else {
    relies_on_equal(call, rest, total, "sizes ", sizes, " do not fit ", total, " elements");
  }
  return out;
}

void register_views(Registry& ops) {
  ops.add(view, {
                    .schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
                    .kind = OpKind::view,
                    .view =
                        [](MetaCall& m) {
                          return one(remap::Reshape{inferred_sizes(m.ints("size"), count(m.meta("self").sizes), m)});
                        },
                    .to_torch = [](Build& b) { return reshape(b["self"], b.arg("size")); },
                });
  ops.add(unsafe_view, {
                           .schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
                           .kind = OpKind::composite,
                           .decompose = [](Build& b) { return view(b["self"], b.ints("size")); },
                       });
  ops.add(view_dtype, {
                          .schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)",
                          .kind = OpKind::view,
                          .view = [](MetaCall& m) { return one(remap::Reinterpret{*m.dtype("dtype")}); },
                      });
  ops.add(reshape, {
                       .schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
                       .kind = OpKind::composite,
                       .traits = {.may_alias = true},
                       .decompose = [](Build& b) -> Results {
                         Tensor x = b["self"];
                         Sizes sizes = inferred_sizes(b.ints("shape"), x.numel(), b);
                         if (view_strides(x.sizes(), x.strides(), sizes)) return view(x, sizes);
                         return view(clone(x, MemoryFormat::contiguous), sizes);
                       },
                   });
  ops.add(permute, {
                       .schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)",
                       .kind = OpKind::view,
                       .view =
                           [](MetaCall& m) {
                             remap::Permute p;
                             size_t rank = m.meta("self").rank();
                             m.require(m.ints("dims").size() == rank, "expected ", rank, " dims, got ", m.ints("dims"));
                             std::vector<bool> seen(rank);
                             for (SymInt d : m.ints("dims")) {
                               size_t dim = normal_dim(d.as_int(), rank);
                               m.require(!seen[dim], "dim ", dim, " appears twice in ", m.ints("dims"));
                               seen[dim] = true;
                               p.dims.push_back(dim);
                             }
                             return one(p);
                           },
                   });
  ops.add(transpose, {
                         .schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
                         .kind = OpKind::view,
                         .view = [](MetaCall& m) { return swapped(m, "dim0", "dim1"); },
                     });
  ops.in_place(transpose, "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)");
  ops.overload(transpose, {"swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"});
  ops.add({
      .schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
      .kind = OpKind::view,
      .view = [](MetaCall& m) { return swapped(m, "axis0", "axis1"); },
  });
  ops.add({
      .schema = "t(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::view,
      .view =
          [](MetaCall& m) {
            m.require(m.meta("self").rank() <= 2, "expected at most 2 dimensions, got ", m.meta("self"));
            return m.meta("self").rank() < 2 ? Maps{IndexMap{}} : one(remap::Permute{{1, 0}});
          },
  });
  ops.add(expand, {
                      .schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
                      .kind = OpKind::view,
                      .view =
                          [](MetaCall& m) {
                            Sizes sizes = m.ints("size");
                            const Sizes& from = m.meta("self").sizes;
                            m.require(sizes.size() >= from.size(), "sizes ", sizes, " have fewer dimensions than ",
                                      m.meta("self"));
                            size_t fresh = sizes.size() - from.size();
                            for (size_t i = 0; i < sizes.size(); ++i) {
                              if (sizes[i] == SymInt(-1)) {
                                m.require(i >= fresh, "-1 cannot stand for a new dimension in ", sizes);
                                sizes[i] = from[i - fresh];
                              }
                              if (i >= fresh && !(from[i - fresh] == SymInt(1)))
                                relies_on_equal(m, sizes[i], from[i - fresh], "size ", sizes[i], " at dimension ", i,
                                                " does not match ", m.meta("self"));
                            }
                            return one(remap::Expand{sizes});
                          },
                  });
  ops.add(slice, {
                     .schema = "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
                               "step=1) -> Tensor(a)",
                     .kind = OpKind::view,
                     .view =
                         [](MetaCall& m) {
                           m.require(m.meta("self").rank() > 0, "a 0-d tensor cannot be sliced");
                           size_t dim = m.dim("dim", m.meta("self").rank());
                           SymInt step = m.integer("step");
                           m.require(!step.is_int() || step.as_int() > 0, "the step must be positive, got ", step);
                           return one(sliced(dim, m.meta("self").sizes[dim], optional_integer(m, "start"),
                                             optional_integer(m, "end"), step));
                         },
                 });
  ops.add(select, {
                      .schema = "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
                      .kind = OpKind::view,
                      .view =
                          [](MetaCall& m) {
                            m.require(m.meta("self").rank() > 0, "a 0-d tensor has nothing to select from");
                            size_t dim = m.dim("dim", m.meta("self").rank());
                            SymInt index = m.integer("index"), size = m.meta("self").sizes[dim];
                            for (SymInt beyond : {index - size, -index - size - 1})
                              relies_on(m, sym::lt(beyond, 0), "index ", index, " is out of range for dimension ", dim,
                                        " of ", m.meta("self"));
                            index = from_the_end(index, size);
                            return Maps{selection(m.meta("self"), dim, index)};
                          },
                  });
  ops.add(unsqueeze, {
                         .schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
                         .kind = OpKind::view,
                         .view =
                             [](MetaCall& m) {
                               Sizes sizes = m.meta("self").sizes;
                               sizes.insert(m.dim("dim", sizes.size() + 1), 1);
                               return one(remap::Reshape{sizes});
                             },
                     });
  ops.add({
      .schema = "squeeze(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::view,
      .view =
          [](MetaCall& m) {
            SmallVector<size_t, 6> all(m.meta("self").rank(), 0);
            std::iota(all.begin(), all.end(), size_t{0});
            return squeezed(m.meta("self"), all);
          },
  });
  ops.add(squeeze_dim,
          {
              .schema = "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
              .kind = OpKind::view,
              .view = [](MetaCall& m) { return squeezed(m.meta("self"), {m.dim("dim", m.meta("self").rank())}); },
          });
  ops.add({
      .schema = "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
      .kind = OpKind::view,
      .view =
          [](MetaCall& m) {
            return squeezed(m.meta("self"),
                            m.ints("dim").empty() ? SmallVector<size_t, 6>{} : m.dims("dim", m.meta("self").rank()));
          },
  });
  ops.add(
      as_strided,
      {
          .schema =
              "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)",
          .kind = OpKind::view,
          .view =
              [](MetaCall& m) {
                m.require(m.ints("size").size() == m.ints("stride").size(), m.ints("size").size(), " sizes but ",
                          m.ints("stride").size(), " strides");
                return one(
                    remap::Strided{m.ints("size"), m.ints("stride"),
                                   m.given("storage_offset") ? m.integer("storage_offset") : m.meta("self").offset});
              },
      });
  ops.add(resized,
          {
              // in place alone in PyTorch
              .schema = "tenon::resized(Tensor(a) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> "
                        "Tensor(a)",
              .kind = OpKind::view,
              .view = [](MetaCall& m) { return resized_map(m, m.ints("size")); },
              .to_torch = [](Build& b) { return of_first_elements(b["self"], b.ints("size")); },
          });
  ops.in_place(resized, "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)");
  ops.add(
      resized_as,
      {
          .schema = "tenon::resized_as(Tensor(a) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
                    "Tensor(a)",
          .kind = OpKind::view,
          .view = [](MetaCall& m) { return resized_map(m, m.meta("the_template").sizes); },
          .to_torch = [](Build& b) { return of_first_elements(b["self"], b["the_template"].sizes()); },
      });
  ops.in_place(resized_as,
               "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> "
               "Tensor(a!)");
  ops.add(unfold, {
                      .schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
                      .kind = OpKind::view,
                      .view =
                          [](MetaCall& m) {
                            return one(remap::Unfold{m.dim("dimension", m.meta("self").rank()), m.integer("size"),
                                                     m.integer("step")});
                          },
                  });
  ops.add(alias, {
                     .schema = "alias(Tensor(a) self) -> Tensor(a)",
                     .kind = OpKind::view,
                     .view = [](MetaCall&) { return Maps{IndexMap{}}; },
                 });
  ops.alias(alias, {"lift_fresh"});
  ops.add(detach, {
                      .schema = "detach(Tensor(a) self) -> Tensor(a)",
                      .kind = OpKind::view,
                      .traits = {.stops_gradient = true},
                      .view = [](MetaCall&) { return one(remap::Stop{}); },
                  });
}

}  // namespace tenon
