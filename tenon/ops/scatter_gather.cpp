#include "tenon/ops/scatter_gather.h"

#include "tenon/ops/accumulation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/indexing.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle gather, scatter_src, scatter_value, scatter_add, scatter_reduce;

namespace {

using loop::Expr;
using loop::Mode;

// The index of gather and scatter has the dims of self, and is no larger where it does not choose. A scalar counts as a
// tensor of one element.
void require_fitting_index(const MetaCall& m) {
  const TensorMeta &self = m.meta("self"), &index = m.meta("index");
  require_index(m, index);
  size_t dim = m.dim("dim", self.rank());
  bool empty = count(index.sizes) == SymInt(0);
  bool scalar = self.rank() == 0 || index.rank() == 0;
  m.require(empty || self.rank() == index.rank() || (scalar && self.rank() <= 1 && index.rank() <= 1),
            "expected an index of ", self.rank(), " dimensions, got ", index);
  for (size_t d = 0; d < self.rank() && !scalar && !empty; ++d)
    if (d != dim && !(index.sizes[d] == self.sizes[d]))
      relies_on(m, sym::le(index.sizes[d], self.sizes[d]), "the index ", index, " is larger than ", self,
                " in dimension ", d);
}

Metas gather_meta(MetaCall& m) {
  require_fitting_index(m);
  return like(m.meta("self"), m.meta("index").sizes);
}

void lower_gather(Lower& l) {
  Ref self = l["self"], index = l["index"];
  if (count(index.sizes()) == SymInt(0)) return;
  size_t rank = self.sizes().size(), dim = l.dim("dim", rank);
  l.tensor([&](const Index& i) {
    Expr at = index.at(i);
    if (rank == 0) return self.at({});
    return self.at(i.empty() ? Index{at} : i.with(dim, at));
  });
}

// What is linear in the real parts and in the imaginary ones.
void require_sum(const Build& b) {
  b.supports(b.string("reduce") == "add", "reduce: of complex numbers add is supported, got ",
             quoted(b.string("reduce")));
}

Metas scatter_value_meta(MetaCall& m) {
  require_fitting_index(m);
  return like(m.meta("self"), m.meta("self").sizes);
}
Metas scatter_source_meta(MetaCall& m) {
  require_fitting_index(m);
  const TensorMeta &self = m.meta("self"), &index = m.meta("index"), &src = m.meta("src");
  bool empty = count(index.sizes) == SymInt(0);
  m.require(src.dtype == self.dtype, "expected a source of the dtype of ", self, ", got ", src);
  for (size_t d = 0; d < index.rank() && src.rank() == index.rank() && !empty; ++d)
    if (!(index.sizes[d] == src.sizes[d]))
      relies_on(m, sym::le(index.sizes[d], src.sizes[d]), "the index ", index, " is larger than the source ", src,
                " in dimension ", d);
  return like(self, self.sizes);
}

// For each element of index: the place it names in target.
void at_index(Lower& l, Ref target, const std::function<void(const Index&, const Index&)>& body) {
  Ref index = l["index"];
  size_t dim = l.dim("dim", l["self"].sizes().size());
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

void lower_scatter(Lower& l, Mode mode, const std::function<Expr(const Index&, loop::Compute)>& value) {
  WideResult wide(l, l.out());
  l.copy(l["self"], wide.target);
  loop::Compute type = loop::compute_of(wide.target.dtype());
  if (!(count(l["index"].sizes()) == SymInt(0)))
    at_index(l, wide.target, [&](const Index& i, const Index& at) { l.store(wide.target, at, value(i, type), mode); });
  wide.finish();
}
void lower_scatter_source(Lower& l, Mode mode) {
  lower_scatter(l, mode, [&](const Index& i, loop::Compute type) { return cast(source_at(l["src"], i), type); });
}
void lower_scatter_value(Lower& l, Mode mode) {
  lower_scatter(l, mode, [&](const Index&, loop::Compute type) { return l.scalar("value", type); });
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
  const std::string& name = l.string("reduce");
  Mode mode = reduction_mode(l, name);
  bool include_self = l.flag("include_self"), average = name == "mean";
  WideResult wide(l, l.out());
  Ref target = wide.target;
  l.copy(l["self"], target);
  if (!(count(l["index"].sizes()) == SymInt(0))) {
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
             [&](const Index& i, const Index& at) { l.store(target, at, cast(source_at(l["src"], i), type), mode); });
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
Grads scatter_reduce_gradient(Vjp& v) {
  Tensor g = v.grad(), self = v["self"], index = v["index"], src = v["src"], result = v.out();
  CallArg dim = v.arg("dim");
  const std::string& name = v.string("reduce");
  bool include_self = v.flag("include_self");
  auto taken = [&](const Tensor& from) -> Tensor { return gather(from, dim, index); };
  auto as_numbers = [&](const Tensor& condition) -> Tensor { return where(condition, full_like(g, 1.0), 0.0); };
  Tensor to_self, to_src;
  if (name == "sum") {
    to_self = g;
    to_src = taken(g);
  } else if (name == "mean") {
    Tensor n = include_self ? ones_like(g) : zeros_like(g);
    n = scatter_add(n, dim, index, ones_like(src));
    Tensor share = g / where(eq(n, 0.0), 1.0, n);
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
    to_src = where(lone_zero, taken(g * others), taken(g * result) / where(is_zero, 1.0, src));
  } else {
    Tensor self_is = as_numbers(eq(self, result)), src_is = where(eq(src, taken(result)), full_like(src, 1.0), 0.0);
    Tensor n = scatter_add(self_is, dim, index, src_is), share = g / n;
    to_self = self_is * share;
    to_src = src_is * taken(share);
  }
  if (!include_self) to_self = scatter_value(to_self, dim, index, 0.0);
  return {to_self, to_src};
}

}  // namespace

void register_scatter_gather(Registry& ops) {
  ops.add({
      .schema = "gather_backward(Tensor grad, Tensor self, int dim, Tensor index, bool sparse_grad) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return scatter_add(zeros(b["self"].sizes(), b["grad"]), b.arg("dim"), b["index"], b["grad"]);
          },
      .complex = [](Build& b) { return by_parts(b, "grad, self"); },
  });
  ops.add(gather, {
                      .schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
                      .meta = gather_meta,
                      .lower = lower_gather,
                      .vjp = {{"self",
                               [](Vjp& v) {
                                 return scatter_add(zeros(v["self"].sizes(), v.grad()), v.arg("dim"), v["index"],
                                                    v.grad());
                               }}},
                      .complex = [](Build& b) { return by_parts(b, "self"); },
                  });
  ops.add({
      .schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor self = b["self"], indices = b["indices"];
        if (!b.given("dim")) {
          Tensor places = reshape(indices, Sizes{-1}), all = reshape(self, Sizes{-1});
          return gather(all, 0, places);
        }
        b.require(self.rank() == indices.rank(), "expected indices of ", self.rank(), " dimensions, got ",
                  indices.meta());
        size_t dim = b.dim("dim", self.rank());
        Sizes common = self.sizes(), own = indices.sizes();
        common[dim] = 1;
        own[dim] = 1;
        Sizes from = broadcast(common, own, b), to = from;
        from[dim] = self.sizes()[dim];
        to[dim] = indices.sizes()[dim];
        Tensor moved = add(indices, self.sizes()[dim]);
        Tensor places = expand(where(lt(indices, 0), moved, indices), to);
        return gather(expand(self, from), dim, places);
      },
  });
  ops.add(scatter_src,
          {
              .schema = "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
              .meta = scatter_source_meta,
              .lower = [](Lower& l) { lower_scatter_source(l, Mode::set); },
              .vjp = {{"self", [](Vjp& v) { return scatter_value(v.grad(), v.arg("dim"), v["index"], 0); }},
                      {"src", [](Vjp& v) { return gather(v.grad(), v.arg("dim"), v["index"]); }}},
              .complex = [](Build& b) { return by_parts(b, "self, src"); },
          });
  ops.add(scatter_value,
          {
              .schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
              .meta = scatter_value_meta,
              .lower = [](Lower& l) { lower_scatter_value(l, Mode::set); },
              .vjp = {{"self", [](Vjp& v) { return scatter_value(v.grad(), v.arg("dim"), v["index"], 0); }}},
              .complex = [](Build& b) { return by_parts(b, "self, value"); },
          });
  ops.add({
      .schema = "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
      .meta = scatter_source_meta,
      .lower = [](Lower& l) { lower_scatter_source(l, reduction_mode(l, l.string("reduce"))); },
      .complex =
          [](Build& b) {
            require_sum(b);
            return by_parts(b, "self, src");
          },
  });
  ops.add({
      .schema = "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
      .meta = scatter_value_meta,
      .lower = [](Lower& l) { lower_scatter_value(l, reduction_mode(l, l.string("reduce"))); },
      .complex =
          [](Build& b) {
            require_sum(b);
            return by_parts(b, "self, value");
          },
  });
  ops.add(scatter_add, {
                           .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
                           .meta = scatter_source_meta,
                           .lower = [](Lower& l) { lower_scatter_source(l, Mode::add); },
                           .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                                   {"src", [](Vjp& v) { return gather(v.grad(), v.arg("dim"), v["index"]); }}},
                           .complex = [](Build& b) { return by_parts(b, "self, src"); },
                       });
  ops.add(scatter_reduce, {
                              .schema = "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str "
                                        "reduce, *, bool include_self=True) -> Tensor",
                              .meta =
                                  [](MetaCall& m) {
                                    reduction_mode(m, m.string("reduce"));
                                    return scatter_source_meta(m);
                                  },
                              .lower = lower_scatter_reduce,
                              .vjp = {{"self, src", scatter_reduce_gradient}},
                          });
}

}  // namespace tenon
