// Along one dimension: gather, scatter and the index_ ops; and by position among all elements: take, put.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/create.h"
#include "tenon/ops/index.h"
#include "tenon/ops/infer.h"
#include "tenon/ops/reduce.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle index_select, index_add, index_fill, gather, scatter_src, scatter_value, scatter_add, scatter_reduce, take, put;

namespace {

using loop::Expr;
using loop::Mode;

void require_index(const MetaCall& m, size_t at) {
  DType d = m.meta(at).dtype;
  bool unread = count(m.meta(at).sizes) == SymInt(0);
  m.require(d == DType::i64 || d == DType::i32 || unread, "expected i64 or i32 indices, got ", m.meta(at));
}

// A scalar counts as a tensor of one element here.
size_t dim_of(const ArgsView& call) { return call.dim(1, call.meta(0).rank()); }
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

Metas gather_meta(MetaCall& m) {
  require_index(m, 2);
  const TensorMeta &self = m.meta(0), &index = m.meta(2);
  bool scalar = self.rank() == 0 || index.rank() == 0;
  bool unread = count(index.sizes) == SymInt(0);
  m.require(unread || self.rank() == index.rank() || (scalar && self.rank() <= 1 && index.rank() <= 1),
            "expected an index of ", self.rank(), " dimensions, got ", index);
  size_t dim = dim_of(m);
  for (size_t d = 0; d < self.rank() && !scalar && !(count(index.sizes) == SymInt(0)); ++d) {
    bool fits = d == dim || !index.sizes[d].is_int() || !self.sizes[d].is_int() ||
                index.sizes[d].as_int() <= self.sizes[d].as_int();
    m.require(fits, "the index ", index, " is larger than ", self, " in dimension ", d);
  }
  return like(self, index.sizes);
}

void lower_gather(Lower& l) {
  Ref self = l[0], index = l[2];
  if (count(index.sizes()) == SymInt(0)) return;
  size_t dim = dim_of(l), rank = self.sizes().size();
  l.tensor([&](const Index& i) {
    Expr at = index.at(i);
    if (rank == 0) return self.at({});
    return self.at(i.empty() ? Index{at} : i.with(dim, at));
  });
}

Metas scatter_meta(MetaCall& m, bool has_source) {
  const TensorMeta &self = m.meta(0), &index = m.meta(2);
  require_index(m, 2);
  size_t dim = dim_of(m);
  bool empty = count(index.sizes) == SymInt(0);
  bool scalar = self.rank() == 0 || index.rank() == 0;
  m.require(empty || self.rank() == index.rank() || (scalar && self.rank() <= 1 && index.rank() <= 1),
            "expected an index of ", self.rank(), " dimensions, got ", index);
  for (size_t d = 0; d < self.rank() && !scalar && !empty; ++d) {
    bool fits = d == dim || !index.sizes[d].is_int() || !self.sizes[d].is_int() ||
                index.sizes[d].as_int() <= self.sizes[d].as_int();
    m.require(fits, "the index ", index, " is larger than ", self, " in dimension ", d);
  }
  if (has_source) {
    const TensorMeta& src = m.meta(3);
    m.require(src.dtype == self.dtype, "expected a source of the dtype of ", self, ", got ", src);
    for (size_t d = 0; d < index.rank() && src.rank() == index.rank() && !empty; ++d)
      m.require(!index.sizes[d].is_int() || !src.sizes[d].is_int() || index.sizes[d].as_int() <= src.sizes[d].as_int(),
                "the index ", index, " is larger than the source ", src, " in dimension ", d);
  }
  return like(self, self.sizes);
}
Metas scatter_source_meta(MetaCall& m) { return scatter_meta(m, true); }
Metas scatter_value_meta(MetaCall& m) { return scatter_meta(m, false); }

// For each element of index: the place it names in target.
void at_index(Lower& l, Ref target, const std::function<void(const Index&, const Index&)>& body) {
  Ref index = l[2];
  size_t dim = dim_of(l);
  bool scalar = target.sizes().empty();
  l.stage(Sizes(index.sizes()), [&](const Index& i) {
    Expr at = index.at(i);
    body(i, scalar ? Index{} : i.empty() ? Index{at} : i.with(dim, at));
  });
}

Mode reduction_mode(const ArgsView& call, const std::string& name) {
  if (name == "add" || name == "sum" || name == "mean") return Mode::add;
  if (name == "multiply" || name == "prod") return Mode::mul;
  if (name == "amax") return Mode::max;
  call.require(name == "amin", "reduce: expected 'sum', 'prod', 'mean', 'amax' or 'amin', got ", quoted(name));
  return Mode::min;
}

Expr source_at(Ref src, const Index& i) {
  return src.at(src.sizes().size() == i.size() ? i : src.sizes().empty() ? Index{} : Index{Expr(0)});
}

void lower_scatter(Lower& l, bool has_source, Mode mode) {
  WideResult wide(l, l.out());
  l.copy(l[0], wide.target);
  loop::Compute type = loop::compute_of(wide.target.dtype());
  if (!(count(l[2].sizes()) == SymInt(0)))
    at_index(l, wide.target, [&](const Index& i, const Index& at) {
      l.store(wide.target, at, has_source ? cast(source_at(l[3], i), type) : l.scalar(3, type), mode);
    });
  wide.finish();
}

double identity_of(Mode mode) {
  switch (mode) {
    case Mode::set:
    case Mode::add: return 0;
    case Mode::mul: return 1;
    case Mode::min: return std::numeric_limits<double>::infinity();
    case Mode::max: return -std::numeric_limits<double>::infinity();
  }
  unreachable();
}

void lower_scatter_reduce(Lower& l) {
  const std::string& name = l.string(4);
  Mode mode = reduction_mode(l, name);
  bool include_self = l.flag(5), average = name == "mean";
  WideResult wide(l, l.out());
  Ref target = wide.target;
  l.copy(l[0], target);
  if (!(count(l[2].sizes()) == SymInt(0))) {
    loop::Compute type = loop::compute_of(target.dtype());
    Expr nothing;
    if (type == loop::Compute::i64 && (mode == Mode::min || mode == Mode::max))
      nothing = loop::constant(
          l.program.arena,
          mode == Mode::min ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min(), type);
    else
      nothing = type == loop::Compute::boolean ? l.constant(mode == Mode::min || mode == Mode::mul, type)
                                               : l.constant(identity_of(mode), type);
    if (!include_self) at_index(l, target, [&](const Index&, const Index& at) { l.store(target, at, nothing); });
    at_index(l, target,
             [&](const Index& i, const Index& at) { l.store(target, at, cast(source_at(l[3], i), type), mode); });
    if (average) {
      Ref counts =
          l.temporary(DType::i64, Sizes(target.sizes()), [&](const Index&) { return l.extent(include_self ? 1 : 0); });
      at_index(l, counts, [&](const Index&, const Index& at) { l.store(counts, at, l.extent(1), Mode::add); });
      l.tensor(target, [&](const Index& i) {
        Expr n = max(counts.at(i), l.extent(1)), total = target.at(i);
        return type == loop::Compute::i64 ? call(loop::Fn::floor_div, total, n) : total / cast(n, type);
      });
    }
  }
  wide.finish();
}

// As PyTorch: ties of amax and amin share, zeros of a product are told apart.
Grads scatter_reduce_vjp(Vjp& v) {
  Tensor g = v.grad(0), self = v[0], index = v[2], src = v[3], result = v.out(0);
  CallArg dim = v.arg(1);
  const std::string& name = v.string(4);
  bool include_self = v.flag(5);
  auto taken = [&](const Tensor& from) -> Tensor { return gather(from, dim, index); };
  auto as_numbers = [&](const Tensor& condition) -> Tensor { return where(condition, full_like(g, 1.0), 0.0); };
  Tensor to_self, to_src;
  if (name == "sum") {
    to_self = g;
    to_src = taken(g);
  } else if (name == "mean") {
    Tensor n = include_self ? ones_like(g) : zeros_like(g);
    n = scatter_add(n, dim, index, ones_like(src));
    Tensor share = g / Tensor(where(eq(n, 0.0), 1.0, n));
    to_self = share;
    to_src = taken(share);
  } else if (name == "prod") {
    Tensor whole_self = where(eq(self, 0.0), 1.0, self);
    Tensor without_zero = scatter_reduce(whole_self, dim, index, src, "prod", kw("include_self", include_self));
    to_self = g * without_zero / whole_self;
    Tensor is_zero = eq(src, 0.0),
           zero_count = taken(scatter_add(zeros_like(self), dim, index, where(is_zero, ones_like(src), 0.0)));
    Tensor lone_zero = logical_and(is_zero, eq(zero_count, 1.0));
    Tensor others =
        scatter_reduce(self, dim, index, where(lone_zero, 1.0, src), "prod", kw("include_self", include_self));
    to_src = where(lone_zero, taken(g * others), taken(g * result) / Tensor(where(is_zero, 1.0, src)));
  } else {
    Tensor self_is = as_numbers(eq(self, result)), src_is = where(eq(src, taken(result)), full_like(src, 1.0), 0.0);
    Tensor n = scatter_add(self_is, dim, index, src_is), share = g / n;
    to_self = self_is * share;
    to_src = src_is * taken(share);
  }
  if (!include_self) to_self = scatter_value(to_self, dim, index, 0.0);
  return {to_self, {}, {}, to_src};
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

void register_scatter(Registry& ops) {
  ops.add(index_select, {
      .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
      .meta = index_select_meta,
      .lower = lower_index_select,
      .vjp = [](Vjp& v) -> Grads {
        return {index_add(zeros(v[0].sizes(), v.grad(0)), v.arg(1), v[2], v.grad(0))};
      },
  });
  ops.add({
      .schema = "index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return index_add(zeros(b.ints(1), b[0]), b.arg(2), b[3], b[0]); },
  });
  ops.add({
      .schema = "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return scatter_add(zeros(b[1].sizes(), b[0]), b.arg(2), b[3], b[0]); },
  });
  ops.add(index_add, {
      .schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
      .meta = indexed_meta,
      .lower = [](Lower& l) { lower_indexed(l, Mode::add, 4); },
      .vjp = [](Vjp& v) -> Grads {
        Grad source;
        if (v.needs(3)) {
          Tensor g = index_select(v.grad(0), v.arg(1), v[2]);
          if (v[3].rank() < g.rank()) g = view(g, v[3].sizes());
          source = v.number(4) == 1 ? g : Tensor(mul(g, v.arg(4)));
        }
        return {v.grad(0), {}, {}, source};
      },
  });
  ops.add({
      .schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
      .meta = indexed_meta,
      .lower = [](Lower& l) { lower_indexed(l, Mode::set, -1); },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        Grad source;
        if (v.needs(3)) {
          Tensor own = index_select(g, v.arg(1), v[2]);
          source = v[3].rank() < own.rank() ? Tensor(view(own, v[3].sizes())) : own;
        }
        return {v.needs(0) ? Grad(index_fill(g, v.arg(1), v[2], 0)) : Grad(), {}, {}, source};
      },
  });
  ops.add(index_fill, {
      .schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
      .meta = kept_meta,
      .lower = lower_index_fill,
      .vjp = [](Vjp& v) -> Grads { return {index_fill(v.grad(0), v.arg(1), v[2], 0)}; },
  });
  ops.add({
      .schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
      .meta =
          [](MetaCall& m) {
            m.require(m.meta(3).rank() == 0, "expected a value of 0 dimensions, got ", m.meta(3));
            return kept_meta(m);
          },
      .lower = lower_index_fill,
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs(0) ? Grad(index_fill(g, v.arg(1), v[2], 0)) : Grad(),
                {},
                {},
                v.needs(3)
                    ? Grad(sum(where(ne(index_fill(zeros_like(g), v.arg(1), v[2], 1), 0), g, 0.0), Sizes{}))
                    : Grad()};  // a place named twice counts once
      },
  });
  ops.add({
      .schema = "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
                "include_self=True) -> Tensor",
      .kind = Kind::composite,
      .decompose =
          [](Build& b) {
            Tensor source = b[3], index = b[2];
            Sizes sizes(source.rank(), SymInt(1));
            if (!sizes.empty()) sizes[b.dim(1, source.rank())] = index.numel();
            return scatter_reduce(b[0], b.arg(1), expand(reshape(index, sizes), source.sizes()), source, b.arg(4),
                                  kw("include_self", b.arg(5)));
          },
  });
  ops.add(gather, {
      .schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
      .meta = gather_meta,
      .lower = lower_gather,
      .vjp = [](Vjp& v) -> Grads {
        return {scatter_add(zeros(v[0].sizes(), v.grad(0)), v.arg(1), v[2], v.grad(0))};
      },
  });
  ops.add({
      .schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor self = b[0], indices = b[1];
        if (!b.given(2)) return gather(reshape(self, Sizes{-1}), 0, reshape(indices, Sizes{-1}));
        b.require(self.rank() == indices.rank(), "expected indices of ", self.rank(), " dimensions, got ",
                  indices.meta());
        size_t dim = b.dim(2, self.rank());
        Sizes common = self.sizes(), own = indices.sizes();
        common[dim] = 1;
        own[dim] = 1;
        Sizes from = broadcast(common, own, b), to = from;
        from[dim] = self.sizes()[dim];
        to[dim] = indices.sizes()[dim];
        Tensor places = where(lt(indices, 0), add(indices, self.sizes()[dim]), indices);
        return gather(expand(self, from), dim, expand(places, to));
      },
  });
  ops.add(scatter_src, {
      .schema = "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
      .meta = scatter_source_meta,
      .lower = [](Lower& l) { lower_scatter(l, true, Mode::set); },
      .vjp = [](Vjp& v) -> Grads {
        return {v.needs(0) ? Grad(scatter_value(v.grad(0), v.arg(1), v[2], 0)) : Grad(),
                {},
                {},
                v.needs(3) ? Grad(gather(v.grad(0), v.arg(1), v[2])) : Grad()};
      },
  });
  ops.add(scatter_value, {
      .schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
      .meta = scatter_value_meta,
      .lower = [](Lower& l) { lower_scatter(l, false, Mode::set); },
      .vjp = [](Vjp& v) -> Grads { return {scatter_value(v.grad(0), v.arg(1), v[2], 0)}; },
  });
  ops.add({
      .schema = "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
      .meta = scatter_source_meta,
      .lower = [](Lower& l) { lower_scatter(l, true, reduction_mode(l, l.string(4))); },
  });
  ops.add({
      .schema = "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
      .meta = scatter_value_meta,
      .lower = [](Lower& l) { lower_scatter(l, false, reduction_mode(l, l.string(4))); },
  });
  ops.add(scatter_add, {
      .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
      .meta = scatter_source_meta,
      .lower = [](Lower& l) { lower_scatter(l, true, Mode::add); },
      .vjp = [](Vjp& v) -> Grads {
        return {v.grad(0), {}, {}, v.needs(3) ? Grad(gather(v.grad(0), v.arg(1), v[2])) : Grad()};
      },
  });
  ops.add(scatter_reduce, {
      .schema = "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str "
                "reduce, *, bool include_self=True) -> Tensor",
      .meta =
          [](MetaCall& m) {
            reduction_mode(m, m.string(4));
            return scatter_source_meta(m);
          },
      .lower = lower_scatter_reduce,
      .vjp = scatter_reduce_vjp,
  });
  ops.add(take, {
      .schema = "take(Tensor self, Tensor index) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta(1).dtype == DType::i64, "expected i64 indices, got ", m.meta(1));
        return like(m.meta(0), m.meta(1).sizes);
      },
      .lower =
          [](Lower& l) {
            Sizes sizes = l[0].sizes();
            l.tensor([&](const Index& i) {
              return l[0].at(unravelled(l, wrapped(l, l[1].at(i), count(sizes)), sizes));
            });
          },
      .vjp = [](Vjp& v) -> Grads { return {put(zeros(v[0].sizes(), v.grad(0)), v[1], v.grad(0), true)}; },
  });
  ops.add(put, {
      .schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta &self = m.meta(0), &index = m.meta(1), &source = m.meta(2);
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
            l.copy(l[0], wide.target);
            Sizes sizes = l.out().sizes(), from = l[2].sizes();
            l.stage(Sizes(l[1].sizes()), [&](const Index& i) {
              Expr flat = l.extent(0);
              for (size_t d = 0; d < i.size(); ++d) flat = flat * l.extent(l[1].size(d)) + i[d];
              Index to = unravelled(l, wrapped(l, l[1].at(i), count(sizes)), sizes);
              l.store(wide.target, to, l[2].at(unravelled(l, flat, from)), l.flag(3) ? Mode::add : Mode::set);
            });
            wide.finish();
          },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        Grad self;
        if (v.needs(0)) self = v.flag(3) ? Grad(g) : Grad(put(g, v[1], zeros(v[2].sizes(), g), false));
        return {self, {}, v.needs(2) ? Grad(reshape(take(g, v[1]), v[2].sizes())) : Grad()};
      },
  });
}

}  // namespace tenon
