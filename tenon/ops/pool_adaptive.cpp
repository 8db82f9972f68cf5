// Pools whose windows follow from the size of the result.
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/rules/memory_format.h"
#include "tenon/ops/pool.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/views.h"

namespace tenon {

static Handle average2d, average3d, average2d_backward, average3d_backward, max2d, max3d, max2d_backward,
    max3d_backward;

namespace {

using loop::Compute;
using loop::Expr;

Sizes adaptive_sizes(const ArgsView& m, const TensorMeta& x, size_t space) {
  m.require(x.rank() == space + 1 || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2,
            " dimensions, got ", x);
  Sizes out = x.sizes, wanted = m.ints(1, space);
  for (size_t k = 0; k < space; ++k) {
    size_t d = x.rank() - space + k;
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

void lower_average(Lower& l, size_t space) {
  Ref x = l[0];
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

void lower_average_backward(Lower& l, size_t space) {
  Ref grad = l[0], to = l.out();
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

void lower_largest_adaptive(Lower& l, size_t space) {
  Ref x = l[0];
  Sizes image = x.sizes(), out = l.out().sizes();
  lower_largest(l, x, space, extents(image, out, space), [&](const Index& i, const Index& r) {
    Window w = window(l, image, out, space, i, r);
    return PoolElement{w.at, w.inside};
  });
}

// The average of whole planes is a mean; its result keeps the channels where they were.
Results averaged(Build& b, size_t space, Handle& general) {
  Tensor x = b[0];
  Sizes wanted = b.ints(1, space);
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

Results in_one_dimension(Build& b, const Handle& op, size_t results) {
  Tensor x = unsqueeze(b[0], -2);
  Results r = op(x, Sizes{1, b.ints(1, 1)[0]});
  Results out;
  for (size_t i = 0; i < results; ++i) out.values.push_back(CallArg(Tensor(squeeze_dim(r[i], -2))));
  return out;
}

}  // namespace

void register_pool_adaptive(Registry& ops) {
#define TENON_ADAPTIVE(n, space, average, average_backward, average_format, largest, largest_backward, max_format)    \
  ops.add(average, {.schema = "_adaptive_avg_pool" n "(Tensor self, SymInt[" #space "] output_size) -> Tensor",       \
                    .meta = [](MetaCall& m) -> Metas {                                                                \
                      return average_format(m.meta(0), adaptive_sizes(m, m.meta(0), space));                          \
                    },                                                                                                \
                    .lower = [](Lower& l) { lower_average(l, space); },                                               \
                    .vjp = {{"self", [](Vjp& v) { return average_backward(v.grad(), v["self"]); }}}});                     \
  ops.add(average_backward, {.schema = "_adaptive_avg_pool" n "_backward(Tensor grad_output, Tensor self) -> Tensor", \
                             .meta = [](MetaCall& m) -> Metas { return average_format(m.meta(1), m.meta(1).sizes); }, \
                             .lower = [](Lower& l) { lower_average_backward(l, space); },                             \
                             .vjp = {{"grad_output", [](Vjp& v) {                                                     \
                               Tensor pooled = v["grad_output"];                                                      \
                               return average(v.grad(), Sizes(std::span<const SymInt>(pooled.sizes().end() - space, space))); \
                             }}}});                                                                                     \
  ops.add(largest, {.schema = "adaptive_max_pool" n "(Tensor self, int[" #space "] output_size) -> (Tensor, Tensor)", \
                    .meta = [](MetaCall& m) -> Metas {                                                                \
                      TensorMeta out = max_format(m.meta(0), adaptive_sizes(m, m.meta(0), space)), indices = out;     \
                      indices.dtype = DType::i64;                                                                     \
                      return {BasicArg<TensorMeta>(out), BasicArg<TensorMeta>(indices)};                              \
                    },                                                                                                \
                    .lower = [](Lower& l) { lower_largest_adaptive(l, space); },                                      \
                    .vjp = {{"self", [](Vjp& v) { return largest_backward(v.grad(), v["self"], v.out(1)); }}}});           \
  ops.add(largest_backward,                                                                                           \
          {.schema = "adaptive_max_pool" n "_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor",    \
           .meta = [](MetaCall& m) -> Metas { return max_format(m.meta(1), m.meta(1).sizes); },                       \
           .lower = [](Lower& l) { lower_unpool(l, l["indices"], space); },                                                   \
           .vjp = {{"grad_output", [](Vjp& v) { return picked(v.grad(), v["indices"], space); }}}})
  TENON_ADAPTIVE("2d", 2, average2d, average2d_backward, formatted_like, max2d, max2d_backward, formatted_like);
  TENON_ADAPTIVE("3d", 3, average3d, average3d_backward, like, max3d, max3d_backward, like);
#undef TENON_ADAPTIVE
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
      .decompose = [](Build& b) { return in_one_dimension(b, adaptive_avg_pool2d, 1); },
  });
  ops.add({
      .schema = "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return in_one_dimension(b, max2d, 2); },
  });
}

}  // namespace tenon
