#include "tenon/ops/index_select.h"

#include "tenon/ops/accumulation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/indexing.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle index_select, index_add, index_fill, take, put;

namespace {

using loop::Expr;
using loop::Mode;

// A scalar counts as a tensor of one element here.
Index at_rank(const Index& i, size_t rank) { return rank == 0 ? Index{} : i; }

Metas index_select_meta(MetaCall& m) {
  require_index(m, m.meta("index"));
  const TensorMeta &self = m.meta("self"), &index = m.meta("index");
  m.require(index.rank() <= 1, "expected an index of at most 1 dimension, got ", index);
  SymInt n = index.rank() == 0 ? SymInt(1) : index.sizes[0];
  size_t dim = m.dim("dim", self.rank());
  Sizes sizes = self.sizes;
  if (!sizes.empty()) sizes[dim] = n;
  else relies_on_equal(m, n, 1, "a 0-d tensor has one place to select, got ", n, " indices");
  return like(self, sizes);
}

void lower_index_select(Lower& l) {
  Ref self = l["self"], index = l["index"];
  size_t dim = l.dim("dim", self.sizes().size());
  l.tensor([&](const Index& i) {
    if (i.empty()) return self.at({});
    return self.at(i.with(dim, index.at(at_rank({i[dim]}, index.sizes().size()))));
  });
}

// For each element of source, the place that index names along dim.
void lower_along(Lower& l, Ref target, Ref index, const Sizes& domain, size_t dim, bool wraps,
                 const std::function<Expr(const Index&)>& value, Mode mode) {
  Sizes sizes = target.sizes();
  l.stage(domain, [&](const Index& i) {
    if (sizes.empty()) return l.store(target, {}, value(i), mode);
    Expr at = index.at(at_rank({i[dim]}, index.sizes().size()));
    l.store(target, i.with(dim, wraps ? wrapped(l, at, sizes[dim]) : at), value(i), mode);
  });
}

Metas indexed_meta(MetaCall& m) {
  require_index(m, m.meta("index"));
  const TensorMeta &self = m.meta("self"), &index = m.meta("index"), &source = m.meta("source");
  m.require(index.rank() <= 1, "expected an index of at most 1 dimension, got ", index);
  m.require(self.dtype == source.dtype, "expected a source of the dtype of ", self, ", got ", source);
  m.require(source.rank() == self.rank() || source.rank() == 0 || self.rank() == 0, "expected a source of ",
            self.rank(), " dimensions, got ", source);
  size_t dim = m.dim("dim", self.rank());
  SymInt n = index.rank() == 0 ? SymInt(1) : index.sizes[0];
  for (size_t d = 0; d < self.rank() && source.rank() == self.rank(); ++d) {
    SymInt wanted = d == dim ? n : self.sizes[d];
    relies_on_equal(m, source.sizes[d], wanted, "expected size ", wanted, " in dimension ", d, ", got a source ",
                    source);
  }
  return like(self, self.sizes);
}

void lower_indexed(Lower& l, Mode mode, bool scaled) {
  Ref source = l["source"];
  WideResult wide(l, l.out());
  l.copy(l["self"], wide.target);
  loop::Compute type = loop::compute_of(wide.target.dtype());
  Sizes domain = source.sizes();
  if (domain.empty() && !wide.target.sizes().empty()) domain = Sizes(wide.target.sizes().size(), SymInt(1));
  lower_along(
      l, wide.target, l["index"], domain, l.dim("dim", l["self"].sizes().size()), false,
      [&](const Index& i) {
        Expr x = cast(source.at(source.sizes().empty() ? Index{} : i), type);
        return scaled ? x * l.scalar("alpha", type) : x;
      },
      mode);
  wide.finish();
}

Metas kept_meta(MetaCall& m) {
  require_index(m, m.meta("index"));
  const TensorMeta& self = m.meta("self");
  (void)m.dim("dim", self.rank());
  TensorMeta out = like(self, self.sizes);
  if (is_dense(self)) out.strides = self.strides;
  return out;
}

void lower_index_fill(Lower& l) {
  Ref self = l["self"], index = l["index"];
  l.copy(self, l.out());
  size_t dim = l.dim("dim", self.sizes().size());
  Sizes domain = self.sizes();
  if (!domain.empty()) domain[dim] = index.sizes().empty() ? SymInt(1) : index.size(0);
  lower_along(
      l, l.out(), index, domain, dim, true,
      [&](const Index&) { return l.scalar("value", loop::compute_of(self.dtype())); }, Mode::set);
}

// What a source gets: the slices it was written to. A source without dimensions was one element of them.
Tensor source_gradient(Vjp& v) {
  Tensor g = index_select(v.grad(), v.arg("dim"), v["index"]);
  if (v["source"].rank() < g.rank()) return view(g, v["source"].sizes());
  return g;
}
// Nothing where it was written over.
Grads zeroed_gradient(Vjp& v) { return {index_fill(v.grad(), v.arg("dim"), v["index"], 0)}; }

}  // namespace

void register_index_select(Registry& ops) {
  ops.add(index_select, {
                            .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
                            .meta = index_select_meta,
                            .lower = lower_index_select,
                            .vjp = {{"self",
                                     [](Vjp& v) {
                                       return index_add(zeros(v["self"].sizes(), v.grad()), v.arg("dim"), v["index"],
                                                        v.grad());
                                     }}},
                            .complex = [](Build& b) { return by_parts(b, "self"); },
                        });
  ops.add({
      .schema = "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return index_add(zeros(b.ints("self_sizes"), b["grad"]), b.arg("dim"), b["index"], b["grad"]);
          },
      .complex = [](Build& b) { return by_parts(b, "grad"); },
  });
  ops.add(index_add,
          {
              .schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
              .meta = indexed_meta,
              .lower = [](Lower& l) { lower_indexed(l, Mode::add, l.number("alpha") != 1); },
              .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                      {"source",
                       [](Vjp& v) -> Tensor {
                         Tensor g = source_gradient(v);
                         if (v.number("alpha") == 1) return g;
                         return mul(g, v.arg("alpha"));
                       }}},
              .complex = [](Build& b) { return by_parts(b, "self, source"); },
          });
  ops.add({
      .schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
      .meta = indexed_meta,
      .lower = [](Lower& l) { lower_indexed(l, Mode::set, false); },
      .vjp = {{"self", zeroed_gradient}, {"source", [](Vjp& v) { return source_gradient(v); }}},
      .complex = [](Build& b) { return by_parts(b, "self, source"); },
  });
  ops.add(index_fill, {
                          .schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
                          .meta = kept_meta,
                          .lower = lower_index_fill,
                          .vjp = {{"self", zeroed_gradient}},
                          .complex = [](Build& b) { return by_parts(b, "self, value"); },
                      });
  ops.add({
      .schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
      .meta =
          [](MetaCall& m) {
            m.require(m.meta("value").rank() == 0, "expected a value of 0 dimensions, got ", m.meta("value"));
            return kept_meta(m);
          },
      .lower = lower_index_fill,
      .vjp = {{"self", zeroed_gradient},
              {"value",
               [](Vjp& v) {
                 Tensor g = v.grad(), hit = index_fill(zeros_like(g), v.arg("dim"), v["index"], 1);
                 return sum(where(ne(hit, 0), g, 0.0), Sizes{});  // a place named twice counts once
               }}},
      .complex = [](Build& b) { return by_parts(b, "self, value"); },
  });
  ops.add({
      .schema = "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
                "include_self=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor source = b["source"], index = b["index"];
            Sizes sizes(source.rank(), SymInt(1));
            if (!sizes.empty()) sizes[b.dim("dim", source.rank())] = index.numel();
            return scatter_reduce(b["self"], b.arg("dim"), expand(reshape(index, sizes), source.sizes()), source,
                                  b.arg("reduce"), kw("include_self", b.arg("include_self")));
          },
  });
  ops.add(
      take,
      {
          .schema = "take(Tensor self, Tensor index) -> Tensor",
          .meta = [](MetaCall& m) -> Metas {
            m.require(m.meta("index").dtype == DType::i64, "expected i64 indices, got ", m.meta("index"));
            return like(m.meta("self"), m.meta("index").sizes);
          },
          .lower =
              [](Lower& l) {
                Sizes sizes = l["self"].sizes();
                l.tensor([&](const Index& i) {
                  return l["self"].at(unravelled(l, wrapped(l, l["index"].at(i), count(sizes)), sizes));
                });
              },
          .vjp = {{"self", [](Vjp& v) { return put(zeros(v["self"].sizes(), v.grad()), v["index"], v.grad(), true); }}},
          .complex = [](Build& b) { return by_parts(b, "self"); },
      });
  ops.add(put, {
                   .schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
                   .meta = [](MetaCall& m) -> Metas {
                     const TensorMeta &self = m.meta("self"), &index = m.meta("index"), &source = m.meta("source");
                     m.require(index.dtype == DType::i64, "expected i64 indices, got ", index);
                     m.require(source.dtype == self.dtype, "expected a source of the dtype of ", self, ", got ",
                               source);
                     SymInt a = count(index.sizes), b = count(source.sizes);
                     relies_on_equal(m, a, b, "expected as many elements as indices, got ", source, " for ", index);
                     TensorMeta out = like(self, self.sizes);
                     if (is_dense(self)) out.strides = self.strides;
                     return out;
                   },
                   .lower =
                       [](Lower& l) {
                         WideResult wide(l, l.out());
                         l.copy(l["self"], wide.target);
                         Sizes sizes = l.out().sizes(), from = l["source"].sizes();
                         l.stage(Sizes(l["index"].sizes()), [&](const Index& i) {
                           Expr flat = l.extent(0);
                           for (size_t d = 0; d < i.size(); ++d) flat = flat * l.extent(l["index"].size(d)) + i[d];
                           Index to = unravelled(l, wrapped(l, l["index"].at(i), count(sizes)), sizes);
                           l.store(wide.target, to, l["source"].at(unravelled(l, flat, from)),
                                   l.flag("accumulate") ? Mode::add : Mode::set);
                         });
                         wide.finish();
                       },
                   .vjp = {{"self",
                            [](Vjp& v) -> Tensor {
                              if (v.flag("accumulate")) return v.grad();
                              return put(v.grad(), v["index"], zeros(v["source"].sizes(), v.grad()), false);
                            }},
                           {"source", [](Vjp& v) { return reshape(take(v.grad(), v["index"]), v["source"].sizes()); }}},
                   .complex = [](Build& b) { return by_parts(b, "self, source"); },
               });
}

}  // namespace tenon
