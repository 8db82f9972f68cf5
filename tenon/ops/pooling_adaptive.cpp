// Pools whose windows follow from the size of the result.
#include "tenon/ops/conversion.h"
#include "tenon/ops/pooling.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle adaptive_avg_pool2d;
static Handle average2d, average3d, average2d_backward, average3d_backward, max2d, max3d, max2d_backward,
    max3d_backward;

namespace {

using loop::Compute;
using loop::Expr;

Sizes adaptive_sizes(const ArgsView& m, const TensorMeta& x, size_t space) {
  size_t first = require_image(m, x, space);
  Sizes out = x.sizes, wanted = m.ints("output_size", space);
  for (size_t k = 0; k < space; ++k) {
    size_t d = first + k;
    m.require(!statically_true(sym::lt(wanted[k], 0)), "output_size must not be negative, got ", wanted);
    m.require(!(x.sizes[d] == SymInt(0)) || wanted[k] == SymInt(0), "dimension ", d, " of ", x, " is empty");
    out[d] = wanted[k];
  }
  return out;
}

// Window o of n over `size` elements: from floor(o * size / n) up to ceil((o + 1) * size / n).
Expr begin_of(Lower& l, Expr o, SymInt size, SymInt n) {
  return call(loop::Fn::floor_div, o * l.extent(size), l.extent(n));
}
Expr end_of(Lower& l, Expr o, SymInt size, SymInt n) {
  return call(loop::Fn::floor_div, (o + 1) * l.extent(size) + l.extent(n - 1), l.extent(n));
}

// No window is longer than this.
SymInt longest(SymInt size, SymInt n) {
  if (n == SymInt(0)) return 0;
  if (size.is_int() && n.is_int())
    return size.as_int() % n.as_int() == 0 ? size.as_int() / n.as_int()
                                           : (size.as_int() + n.as_int() - 1) / n.as_int() + 1;
  return n == SymInt(1) ? size : sym::ceil_div(size, n) + 1;
}

Sizes extents(const Sizes& image, const Sizes& out, size_t space) {
  Sizes e;
  for (size_t d = image.size() - space; d < image.size(); ++d) e.push_back(longest(image[d], out[d]));
  return e;
}

struct Window {
  Index at;
  Expr inside, length;
};
Window window(Lower& l, const Sizes& image, const Sizes& out, size_t space, const Index& i, const Index& r) {
  Window w{i, loop::constant(l.program.arena, 1.0, Compute::boolean), l.extent(1)};
  for (size_t k = 0; k < space; ++k) {
    size_t d = i.size() - space + k;
    Expr begin = begin_of(l, i[d], image[d], out[d]), end = end_of(l, i[d], image[d], out[d]);
    w.at[d] = begin + r[k];
    w.inside = w.inside && w.at[d] < end;
    w.length = w.length * (end - begin);
  }
  return w;
}

template <size_t space>
void lower_average(Lower& l) {
  Ref x = l["self"];
  Sizes image = x.sizes(), out = l.out().sizes(), reach = extents(image, out, space);
  l.tensor([&](const Index& i) {
    Expr total = l.sum(reach, [&](const Index& r) {
      Window w = window(l, image, out, space, i, r);
      return x.at_if(w.inside, w.at, 0);
    });
    Index zero(space, Expr(0));
    return total / cast(window(l, image, out, space, i, zero).length, total.type());
  });
}

template <size_t space>
void lower_average_backward(Lower& l) {
  Ref grad = l["grad_output"], to = l.out();
  DType compute = computable(to.dtype());
  Ref target = compute == to.dtype() ? to : l.temporary(compute, Sizes(to.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  Sizes image = to.sizes(), out = grad.sizes(), domain = out;
  for (SymInt e : extents(image, out, space)) domain.push_back(e);
  l.stage(domain, [&](const Index& all) {
    Index i = all.drop_last(space), r = all.drop_first(i.size());
    Window w = window(l, image, out, space, i, r);
    l.store_if(w.inside, target, w.at, grad.at(i) / cast(w.length, loop::compute_of(compute)), loop::Mode::add);
  });
  if (target.id != to.id) l.copy(target, to);
}

template <size_t space>
void lower_max(Lower& l) {
  Ref x = l["self"];
  Sizes image = x.sizes(), out = l.out().sizes();
  lower_max_pool(l, x, space, extents(image, out, space), [&](const Index& i, const Index& r) {
    Window w = window(l, image, out, space, i, r);
    return PoolElement{w.at, w.inside};
  });
}

// The average of whole planes is a mean; its result keeps the channels where they were.
Results averaged(const Build& b, size_t space, const Handle& general) {
  Tensor x = b["self"];
  Sizes wanted = b.ints("output_size", space);
  bool whole = x.rank() == space + 1 || x.rank() == space + 2;
  for (SymInt w : wanted) whole = whole && w == SymInt(1);
  if (!whole) return general(x, wanted);
  Sizes dims;
  for (size_t k = 1; k <= space; ++k) dims.push_back(-static_cast<int64_t>(k));
  Results y = mean(x, dims, true);
  if (suggested_format(x.meta()) == MemoryFormat::contiguous) return y;
  Sizes last = {x.size(0)}, back = {0, SymInt(static_cast<int64_t>(space) + 1)};
  for (size_t k = 0; k < space; ++k) {
    last.push_back(1);
    back.push_back(static_cast<int64_t>(k) + 1);
  }
  last.push_back(x.size(1));
  return permute(view(y, last), back);
}

Results one_dimension(const Build& b, const Handle& pool2d, size_t results) {
  Sizes wanted = {1, b.ints("output_size", 1)[0]};
  return pool_one_row(b["self"], results, [&](const Tensor& x) { return pool2d(x, wanted); });
}

// Only images keep the format of their operand, not volumes.
template <size_t space>
TensorMeta result_like(const TensorMeta& x, Sizes sizes) {
  return space == 2 ? formatted_like(x, std::move(sizes)) : like(x, std::move(sizes));
}

template <size_t space, Handle& pool, Handle& backward>
void add_average(Registry& ops, const char* schema, const char* backward_schema) {
  ops.add(pool, {
                    .schema = schema,
                    .meta = [](MetaCall& m) -> Metas {
                      return result_like<space>(m.meta("self"), adaptive_sizes(m, m.meta("self"), space));
                    },
                    .lower = lower_average<space>,
                    .vjp = {{"self", [](Vjp& v) { return backward(v.grad(), v["self"]); }}},
                });
  ops.add(backward, {
                        .schema = backward_schema,
                        .meta = [](MetaCall& m) -> Metas {
                          require_pool_gradient(m, m.meta("grad_output"), m.meta("self"), space);
                          return result_like<space>(m.meta("self"), m.meta("self").sizes);
                        },
                        .lower = lower_average_backward<space>,
                        .vjp = {{"grad_output",
                                 [](Vjp& v) {
                                   Tensor pooled = v["grad_output"];
                                   return pool(v.grad(),
                                               Sizes(std::span<const SymInt>(pooled.sizes().end() - space, space)));
                                 }}},
                    });
}

template <size_t space, Handle& pool, Handle& backward>
void add_max(Registry& ops, const char* schema, const char* backward_schema) {
  ops.add(pool, {
                    .schema = schema,
                    .meta = [](MetaCall& m) -> Metas {
                      TensorMeta out = result_like<space>(m.meta("self"), adaptive_sizes(m, m.meta("self"), space)),
                                 indices = out;
                      indices.dtype = DType::i64;
                      return {out, indices};
                    },
                    .lower = lower_max<space>,
                    .vjp = {{"self", [](Vjp& v) { return backward(v.grad(), v["self"], v.out(1)); }}},
                });
  ops.add(backward, {
                        .schema = backward_schema,
                        .meta = [](MetaCall& m) -> Metas {
                          const TensorMeta &grad = m.meta("grad_output"), &x = m.meta("self");
                          require_pool_gradient(m, grad, x, space);
                          require_pool_indices(m, grad.sizes);
                          return result_like<space>(x, x.sizes);
                        },
                        .lower = [](Lower& l) { lower_max_unpool(l, l["grad_output"], space); },
                        .vjp = {{"grad_output", [](Vjp& v) { return gather_pooled(v.grad(), v["indices"], space); }}},
                    });
}

}  // namespace

void register_pooling_adaptive(Registry& ops) {
  add_average<2, average2d, average2d_backward>(
      ops, "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
      "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor");
  add_average<3, average3d, average3d_backward>(
      ops, "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
      "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor");
  add_max<2, max2d, max2d_backward>(
      ops, "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)",
      "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor");
  add_max<3, max3d, max3d_backward>(
      ops, "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)",
      "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor");
  ops.add(adaptive_avg_pool2d, {
                                   .schema = "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor",
                                   .kind = OpKind::composite,
                                   .decompose = [](Build& b) { return averaged(b, 2, average2d); },
                               });
  ops.add({
      .schema = "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return averaged(b, 3, average3d); },
  });
  ops.add({
      .schema = "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one_dimension(b, adaptive_avg_pool2d, 1); },
  });
  ops.add({
      .schema = "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one_dimension(b, max2d, 2); },
  });
}

}  // namespace tenon
