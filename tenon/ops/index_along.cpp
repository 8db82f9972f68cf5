// Along one dimension, an index for whole slices: index_select, index_add, index_fill; and by position among all
// elements: take, put.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/where.h"
#include "tenon/ops/index.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle index_select, index_add, index_fill, take, put;

void require_index(const MetaCall& m, size_t at) {
  DType d = m.meta(at).dtype;
  bool unread = count(m.meta(at).sizes) == SymInt(0);
  m.require(d == DType::i64 || d == DType::i32 || unread, "expected i64 or i32 indices, got ", m.meta(at));
}

size_t dim_of(const ArgsView& call) { return call.dim(1, call.meta(0).rank()); }

namespace {

using loop::Expr;
using loop::Mode;

// A scalar counts as a tensor of one element here.
Index at_rank(const Index& i, size_t rank) { return rank == 0 ? Index{} : i; }

Metas index_select_meta(MetaCall& m) {
  require_index(m, 2);
  const TensorMeta &self = m.meta(0), &index = m.meta(2);
  m.require(index.rank() <= 1, "expected an index of at most 1 dimension, got ", index);
  SymInt n = index.rank() == 0 ? SymInt(1) : index.sizes[0];
  size_t dim = dim_of(m);
  Sizes sizes = self.sizes;
  if (!sizes.empty()) sizes[dim] = n;
  else m.require(!n.is_int() || n == SymInt(1), "a 0-d tensor has one place to select, got ", n, " indices");
  return like(self, sizes);
}

void lower_index_select(Lower& l) {
  Ref self = l[0], index = l[2];
  size_t dim = dim_of(l);
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
  require_index(m, 2);
  const TensorMeta &self = m.meta(0), &index = m.meta(2), &source = m.meta(3);
  m.require(index.rank() <= 1, "expected an index of at most 1 dimension, got ", index);
  m.require(self.dtype == source.dtype, "expected a source of the dtype of ", self, ", got ", source);
  m.require(source.rank() == self.rank() || source.rank() == 0 || self.rank() == 0, "expected a source of ",
            self.rank(), " dimensions, got ", source);
  size_t dim = dim_of(m);
  SymInt n = index.rank() == 0 ? SymInt(1) : index.sizes[0];
  for (size_t d = 0; d < self.rank() && source.rank() == self.rank(); ++d) {
    SymInt wanted = d == dim ? n : self.sizes[d];
    m.require(source.sizes[d] == wanted || !source.sizes[d].is_int() || !wanted.is_int(), "expected size ", wanted,
              " in dimension ", d, ", got a source ", source);
  }
  return like(self, self.sizes);
}

void lower_indexed(Lower& l, Mode mode, int alpha_at) {
  Ref source = l[3];
  WideResult wide(l, l.out());
  l.copy(l[0], wide.target);
  loop::Compute type = loop::compute_of(wide.target.dtype());
  Sizes domain = source.sizes();
  if (domain.empty() && !wide.target.sizes().empty()) domain = Sizes(wide.target.sizes().size(), SymInt(1));
  bool scaled = alpha_at >= 0 && l.number(static_cast<size_t>(alpha_at)) != 1;
  lower_along(
      l, wide.target, l[2], domain, dim_of(l), false,
      [&](const Index& i) {
        Expr x = cast(source.at(source.sizes().empty() ? Index{} : i), type);
        return scaled ? x * l.scalar(static_cast<size_t>(alpha_at), type) : x;
      },
      mode);
  wide.finish();
}

Metas kept_meta(MetaCall& m) {
  require_index(m, 2);
  const TensorMeta& self = m.meta(0);
  dim_of(m);
  TensorMeta out = like(self, self.sizes);
  if (is_dense(self)) out.strides = self.strides;
  return out;
}

void lower_index_fill(Lower& l) {
  Ref self = l[0], index = l[2];
  l.copy(self, l.out());
  size_t dim = dim_of(l);
  Sizes domain = self.sizes();
  if (!domain.empty()) domain[dim] = index.sizes().empty() ? SymInt(1) : index.size(0);
  lower_along(
      l, l.out(), index, domain, dim, true, [&](const Index&) { return l.scalar(3, loop::compute_of(self.dtype())); },
      Mode::set);
}

Index unravelled(Lower& l, Expr flat, const Sizes& sizes) {
  Index at(sizes.size(), Expr(0));
  for (size_t d = sizes.size(); d-- > 0;) {
    at[d] = d == 0 ? flat : call(loop::Fn::remainder, flat, l.extent(sizes[d]));
    flat = call(loop::Fn::floor_div, flat, l.extent(sizes[d]));
  }
  return at;
}

}  // namespace

void register_index_along(Registry& ops) {
  ops.add(index_select, {
      .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
      .meta = index_select_meta,
      .lower = lower_index_select,
      .vjp = {{"self", [](Vjp& v) { return index_add(zeros(v["self"].sizes(), v.grad()), v.arg("dim"), v["index"], v.grad()); }}},
  });
  ops.add({
      .schema = "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return index_add(zeros(b.ints("self_sizes"), b["grad"]), b.arg("dim"), b["index"], b["grad"]); },
  });
  ops.add(index_add, {
      .schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
      .meta = indexed_meta,
      .lower = [](Lower& l) { lower_indexed(l, Mode::add, 4); },
      .vjp = {{"self, dim, index, source, alpha", [](Vjp& v) -> Grads {
        Grad source;
        if (v.needs("source")) {
          Tensor g = index_select(v.grad(0), v.arg("dim"), v["index"]);
          if (v["source"].rank() < g.rank()) g = view(g, v["source"].sizes());
          source = v.number("alpha") == 1 ? g : Tensor(mul(g, v.arg("alpha")));
        }
        return {v.grad(0), {}, {}, source};
      }}},
  });
  ops.add({
      .schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
      .meta = indexed_meta,
      .lower = [](Lower& l) { lower_indexed(l, Mode::set, -1); },
      .vjp = {{"self, dim, index, source", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        Grad source;
        if (v.needs("source")) {
          Tensor own = index_select(g, v.arg("dim"), v["index"]);
          source = v["source"].rank() < own.rank() ? Tensor(view(own, v["source"].sizes())) : own;
        }
        return {v.needs("self") ? Grad(index_fill(g, v.arg("dim"), v["index"], 0)) : Grad(), {}, {}, source};
      }}},
  });
  ops.add(index_fill, {
      .schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
      .meta = kept_meta,
      .lower = lower_index_fill,
      .vjp = {{"self", [](Vjp& v) { return index_fill(v.grad(), v.arg("dim"), v["index"], 0); }}},
  });
  ops.add({
      .schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
      .meta =
          [](MetaCall& m) {
            m.require(m.meta("value").rank() == 0, "expected a value of 0 dimensions, got ", m.meta("value"));
            return kept_meta(m);
          },
      .lower = lower_index_fill,
      .vjp = {{"self, dim, index, value", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs("self") ? Grad(index_fill(g, v.arg("dim"), v["index"], 0)) : Grad(),
                {},
                {},
                v.needs("value")
                    ? Grad(sum(where(ne(index_fill(zeros_like(g), v.arg("dim"), v["index"], 1), 0), g, 0.0), Sizes{}))
                    : Grad()};  // a place named twice counts once
      }}},
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
            return scatter_reduce(b["self"], b.arg("dim"), expand(reshape(index, sizes), source.sizes()), source, b.arg("reduce"),
                                  kw("include_self", b.arg("include_self")));
          },
  });
  ops.add(take, {
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
  });
  ops.add(put, {
      .schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta &self = m.meta("self"), &index = m.meta("index"), &source = m.meta("source");
        m.require(index.dtype == DType::i64, "expected i64 indices, got ", index);
        m.require(source.dtype == self.dtype, "expected a source of the dtype of ", self, ", got ", source);
        SymInt a = count(index.sizes), b = count(source.sizes);
        m.require(a == b || !a.is_int() || !b.is_int(), "expected as many elements as indices, got ", source,
                  " for ", index);
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
              l.store(wide.target, to, l["source"].at(unravelled(l, flat, from)), l.flag("accumulate") ? Mode::add : Mode::set);
            });
            wide.finish();
          },
      .vjp = {{"self, index, source, accumulate", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        Grad self;
        if (v.needs("self")) self = v.flag("accumulate") ? Grad(g) : Grad(put(g, v["index"], zeros(v["source"].sizes(), g), false));
        return {self, {}, v.needs("source") ? Grad(reshape(take(g, v["index"]), v["source"].sizes())) : Grad()};
      }}},
  });
}

}  // namespace tenon
