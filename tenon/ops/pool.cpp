#include "tenon/ops/pool.h"

#include <limits>

#include "tenon/ops/scatter_gather.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/rules/memory_format.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/views.h"

namespace tenon {

Handle max_pool2d_with_indices, max_pool3d_with_indices, avg_pool2d, adaptive_avg_pool2d;
static Handle max_pool2d_backward, max_pool3d_backward, avg_pool3d, avg_pool2d_backward, avg_pool3d_backward;

Tensor picked(const Tensor& x, const Tensor& indices, size_t space) {
  auto flattened = [&](const Tensor& t) -> Tensor {
    Sizes sizes(std::span<const SymInt>(t.sizes().begin(), t.rank() - space));
    sizes.push_back(count(Sizes(std::span<const SymInt>(t.sizes().end() - space, space))));
    return reshape(t, sizes);
  };
  Tensor taken = gather(flattened(x), -1, flattened(indices));
  return view(taken, indices.sizes());
}

namespace {

using loop::Compute;
using loop::Expr;

// The least value of a compute type: what an element outside the image counts as.
Expr lowest(Lower& l, Compute type) {
  if (type == Compute::i64) return loop::constant(l.program.arena, std::numeric_limits<int64_t>::min(), type);
  return l.constant(-std::numeric_limits<double>::infinity(), type);
}

// The position of an image element within its plane.
Expr flat(Lower& l, Ref x, const Index& at, size_t space) {
  size_t first = at.size() - space;
  Expr out = at[first];
  for (size_t k = 1; k < space; ++k) out = out * l.extent(x.size(first + k)) + at[first + k];
  return out;
}

Expr row_major(Lower& l, const Index& r, const Sizes& extents) {
  Expr out = r[0];
  for (size_t k = 1; k < r.size(); ++k) out = out * l.extent(extents[k]) + r[k];
  return out;
}

}  // namespace

void lower_largest(Lower& l, Ref x, size_t space, const Sizes& extents,
                   const std::function<PoolElement(const Index&, const Index&)>& place) {
  bool indexed = l.outs() > 1;
  Sizes domain = l.out().sizes();
  l.stage(domain, [&](const Index& i) {
    Compute type = loop::compute_of(x.dtype());
    auto element = [&](const Index& r) {
      PoolElement p = place(i, r);
      return x.at_if(p.inside, p.at, lowest(l, type));
    };
    l.store(l.out(0), i, l.reduce(loop::Combine::max, extents, element));
    if (!indexed) return;
    Expr best = l.reduce(loop::Combine::argmax, extents, element);
    if (type != Compute::i64) {
      Expr last_nan = l.reduce(loop::Combine::max, extents, [&](const Index& r) {
        return loop::select(is_nan(element(r)), row_major(l, r, extents), l.constant(-1, Compute::i64));
      });
      best = loop::select(last_nan >= 0, last_nan, best);
    }
    Index r(extents.size(), Expr(0));
    for (size_t k = extents.size(); k-- > 0;) {
      r[k] = call(loop::Fn::remainder, best, l.extent(extents[k]));
      best = call(loop::Fn::floor_div, best, l.extent(extents[k]));
    }
    l.store(l.out(1), i, flat(l, x, place(i, r).at, space));
  });
}

void lower_unpool(Lower& l, Ref indices, size_t space, loop::Mode mode) {
  Ref grad = l[0], out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  l.stage(Sizes(grad.sizes()), [&](const Index& i) {
    Expr rest = indices.at(i);
    Index to = i;
    for (size_t k = i.size(); k-- > i.size() - space;) {
      to[k] = k == i.size() - space ? rest : call(loop::Fn::remainder, rest, l.extent(out.size(k)));
      rest = call(loop::Fn::floor_div, rest, l.extent(out.size(k)));
    }
    l.store(target, to, grad.at(i), mode);
  });
  if (target.id != out.id) l.copy(target, out);
}

namespace {

// Windows of a pool over the last `space` dimensions.
struct Windows {
  size_t space = 0;
  Sizes kernel, stride, padding, dilation;
  bool ceil = false;
};

Windows windows(const ArgsView& call, size_t space, size_t kernel_at, int dilation_at, size_t ceil_at) {
  Windows w;
  w.space = space;
  w.kernel = call.ints(kernel_at, space);
  w.stride = call.ints(kernel_at + 1).empty() ? w.kernel : call.ints(kernel_at + 1, space);
  w.padding = call.ints(kernel_at + 2, space);
  w.dilation = dilation_at < 0 ? Sizes(space, SymInt(1)) : call.ints(static_cast<size_t>(dilation_at), space);
  w.ceil = call.flag(ceil_at);
  for (size_t i = 0; i < space; ++i) {
    auto positive = [](SymInt v) { return !v.is_int() || v.as_int() > 0; };
    call.require(positive(w.kernel[i]) && positive(w.stride[i]) && positive(w.dilation[i]),
                 "kernel, stride and dilation must be positive, got ", w.kernel, ", ", w.stride, " and ", w.dilation);
    SymInt reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
    call.require(!statically_true(sym::lt(w.padding[i], 0)) && !statically_true(sym::gt(w.padding[i] * 2, reach)),
                 "padding: expected at most half of the kernel's reach ", reach, ", got ", w.padding);
  }
  return w;
}

Sizes pooled_sizes(const ArgsView& m, const TensorMeta& x, const Windows& w) {
  m.require(x.rank() == w.space + 1 || x.rank() == w.space + 2, "expected an input of ", w.space + 1, " or ",
            w.space + 2, " dimensions, got ", x);
  Sizes out = x.sizes;
  for (size_t i = 0; i < w.space; ++i) {
    size_t d = x.rank() - w.space + i;
    SymInt room = x.sizes[d] + w.padding[i] * 2 - w.dilation[i] * (w.kernel[i] - 1) - 1;
    SymInt n = sym::floor_div(w.ceil ? room + w.stride[i] - 1 : room, w.stride[i]) + 1;
    if (w.ceil) {  // the last window must start inside the image or its left padding
      sym::Expr outside = sym::ge((n - 1) * w.stride[i], x.sizes[d] + w.padding[i]);
      if (auto sure = known(outside)) n = *sure ? n - 1 : n;
      else n = sym::where(outside, n - 1, n);
    }
    m.require(!n.is_int() || n.as_int() > 0, "the windows do not fit: dimension ", d, " of ", x, " would have size ",
              n);
    out[d] = n;
  }
  for (size_t d = x.rank() - w.space - 1; d < x.rank(); ++d)
    m.require(!(x.sizes[d] == SymInt(0)), "only the batch may be empty, got ", x);
  return out;
}

PoolElement max_place(Lower& l, Ref x, const Windows& w, const Index& i, const Index& r) {
  size_t first = i.size() - w.space;
  PoolElement p{i, loop::constant(l.program.arena, 1.0, Compute::boolean)};
  for (size_t k = 0; k < w.space; ++k) {
    Expr corner = i[first + k] * l.extent(w.stride[k]) - l.extent(w.padding[k]), step = l.extent(w.dilation[k]);
    // The first element that is inside comes first, so that it wins where all are equal.
    Expr start =
        w.padding[k] == SymInt(0) ? corner : max(corner, corner - call(loop::Fn::floor_div, corner, step) * step);
    Expr at = start + r[k] * step;
    Expr end = min(corner + l.extent(w.dilation[k] * (w.kernel[k] - 1) + 1), l.extent(x.size(first + k)));
    p.inside = p.inside && at < end;
    p.at[first + k] = at;
  }
  return p;
}

void lower_max_pool(Lower& l, size_t space) {
  Windows w = windows(l, space, 1, 4, 5);
  Ref x = l[0];
  Sizes extents = w.kernel;  // no more of a window than of the image can be inside
  for (size_t k = 0; k < space; ++k)
    if (SymInt size = x.size(x.sizes().size() - space + k); statically_true(sym::lt(size, extents[k]))) extents[k] = size;
  lower_largest(l, x, space, extents, [&](const Index& i, const Index& r) { return max_place(l, x, w, i, r); });
}

void require_ordered(const MetaCall& m) {
  m.require(m.meta(0).dtype != DType::boolean, "expected numbers, got ", m.meta(0));
}

Metas max_pool_meta(MetaCall& m, size_t space, bool indexed) {
  require_ordered(m);
  TensorMeta out = formatted_like(m.meta(0), pooled_sizes(m, m.meta(0), windows(m, space, 1, 4, 5)));
  if (!indexed) return out;
  TensorMeta indices = out;
  indices.dtype = DType::i64;
  return {BasicArg<TensorMeta>(out), BasicArg<TensorMeta>(indices)};
}

Metas unpooled_meta(MetaCall& m, size_t space) {
  const TensorMeta &x = m.meta(0), &indices = m.meta(1);
  m.require(x.rank() == space + 1 || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2,
            " dimensions, got ", x);
  m.require(indices.dtype == DType::i64 && indices.sizes == x.sizes, "expected i64 indices of the sizes of ", x,
            ", got ", indices);
  Sizes sizes = x.sizes, wanted = m.ints(2, space);
  for (size_t k = 0; k < space; ++k) sizes[x.rank() - space + k] = wanted[k];
  return space == 2 ? formatted_like(x, sizes) : like(x, sizes);
}

// An average's window: [corner, end) with padding counted, and what is left of it inside the image.
struct Span {
  Expr corner, begin, end, full;
};
Span average_span(Lower& l, const Windows& w, size_t k, SymInt size, Expr at) {
  Expr corner = at * l.extent(w.stride[k]) - l.extent(w.padding[k]);
  Expr stop = min(corner + l.extent(w.kernel[k]), l.extent(size + w.padding[k]));
  return {corner, max(corner, l.extent(0)), min(stop, l.extent(size)), stop - corner};
}

// How many elements the average at `i` divides by.
Expr divisor(Lower& l, const Windows& w, const Sizes& image, const Index& i, bool include_padding, size_t override_at) {
  if (override_at && l.given(override_at)) return l.extent(l.integer(override_at));
  size_t first = i.size() - w.space;
  Expr out;
  for (size_t k = 0; k < w.space; ++k) {
    Span s = average_span(l, w, k, image[first + k], i[first + k]);
    Expr n = include_padding ? s.full : s.end - s.begin;
    out = k ? out * n : n;
  }
  return max(out, l.extent(1));
}

PoolElement average_place(Lower& l, const Windows& w, const Sizes& image, const Index& i, const Index& r) {
  size_t first = i.size() - w.space;
  PoolElement p{i, loop::constant(l.program.arena, 1.0, Compute::boolean)};
  for (size_t k = 0; k < w.space; ++k) {
    Span s = average_span(l, w, k, image[first + k], i[first + k]);
    Expr at = s.corner + r[k];
    p.inside = p.inside && at >= s.begin && at < s.end;
    p.at[first + k] = at;
  }
  return p;
}

void lower_average(Lower& l, size_t space) {
  Windows w = windows(l, space, 1, -1, 4);
  Ref x = l[0];
  Sizes image = x.sizes();
  Compute type = loop::compute_of(x.dtype());
  l.tensor([&](const Index& i) {
    Expr total = l.sum(w.kernel, [&](const Index& r) {
      PoolElement p = average_place(l, w, image, i, r);
      return x.at_if(p.inside, p.at, 0);
    });
    return total / cast(divisor(l, w, image, i, l.flag(5), 6), type);
  });
}

void lower_average_backward(Lower& l, size_t space) {
  Windows w = windows(l, space, 2, -1, 5);
  Ref grad = l[0], out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  Sizes image = out.sizes(), domain = grad.sizes();
  for (SymInt k : w.kernel) domain.push_back(k);
  l.stage(domain, [&](const Index& all) {
    Index i = all.drop_last(space), r = all.drop_first(i.size());
    PoolElement p = average_place(l, w, image, i, r);
    Expr share = grad.at(i) / cast(divisor(l, w, image, i, l.flag(6), 7), loop::compute_of(compute));
    l.store_if(p.inside, target, p.at, share, loop::Mode::add);
  });
  if (target.id != out.id) l.copy(target, out);
}

Metas average_meta(MetaCall& m, size_t space) {
  const TensorMeta& x = m.meta(0);
  m.require(is_floating(x.dtype) || x.dtype == DType::i64, "expected a floating point or i64 tensor, got ", x);
  m.require(!m.given(6) || m.constant(6) != 0, "divisor_override must not be 0");
  Sizes sizes = pooled_sizes(m, x, windows(m, space, 1, -1, 4));
  return space == 2 ? formatted_like(x, sizes) : like(x, sizes);
}

Metas like_input(MetaCall& m) { return formatted_like(m.meta(1), m.meta(1).sizes); }
Metas like_input_contiguous(MetaCall& m) { return like(m.meta(1), m.meta(1).sizes); }

// One dimension as two: the ops for images do the work.
Results in_one_dimension(Build& b, Handle& op, size_t results, std::initializer_list<size_t> lists,
                         std::initializer_list<int64_t> fills) {
  CallArgs args(b.args.begin(), b.args.end());
  args[0] = Tensor(unsqueeze(b[0], -2));
  auto fill = fills.begin();
  for (size_t at : lists) {
    Sizes own = b.ints(at);
    if (!own.empty()) args[at] = Sizes{SymInt(*fill), own[0]};
    else args[at] = own;
    ++fill;
  }
  args.resize(op.op().schema.args.size());
  Results r = call_op(op.op(), std::move(args));
  Results out;
  for (size_t i = 0; i < results; ++i) out.values.push_back(CallArg(Tensor(squeeze_dim(r[i], -2))));
  return out;
}

Results one_of(Results r) { return {{r.values[0]}}; }

}  // namespace

void register_pool(Registry& ops) {
#define TENON_MAX_POOL(n, handle, backward)                                                                           \
  ops.add(                                                                                                            \
      {.schema = "max_pool" #n "d(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n               \
                 "] padding=0, int[" #n "] dilation=1, bool ceil_mode=False) -> Tensor",                              \
       .meta = [](MetaCall& m) { return max_pool_meta(m, n, false); },                                                \
       .lower = [](Lower& l) { lower_max_pool(l, n); },                                                               \
       .for_grad = [](Build& b) { return one_of(handle(b[0], b.arg(1), b.arg(2), b.arg(3), b.arg(4), b.arg(5))); }}); \
  ops.add(handle, {.schema = "max_pool" #n "d_with_indices(Tensor self, int[" #n "] kernel_size, int[" #n             \
                             "] stride=[], int[" #n "] padding=0, int[" #n                                            \
                             "] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",                               \
                   .meta = [](MetaCall& m) { return max_pool_meta(m, n, true); },                                     \
                   .lower = [](Lower& l) { lower_max_pool(l, n); },                                                   \
                   .vjp = {{"self", [](Vjp& v) {                                                                      \
                     Windows w = windows(v, n, 1, 4, 5);                                                              \
                     return backward(v.grad(), v["self"], w.kernel, w.stride, w.padding, w.dilation, w.ceil, v.out(1)); \
                   }}}});                                                                                               \
  ops.add(backward, {.schema = "max_pool" #n "d_with_indices_backward(Tensor grad_output, Tensor self, int[" #n       \
                               "] kernel_size, int[" #n "] stride, int[" #n "] padding, int[" #n                      \
                               "] dilation, bool ceil_mode, Tensor indices) -> Tensor",                               \
                     .meta = like_input,                                                                              \
                     .lower = [](Lower& l) { lower_unpool(l, l["indices"], n); },                                             \
                     .vjp = {{"grad_output", [](Vjp& v) { return picked(v.grad(), v["indices"], n); }}}})
  TENON_MAX_POOL(2, max_pool2d_with_indices, max_pool2d_backward);
  TENON_MAX_POOL(3, max_pool3d_with_indices, max_pool3d_backward);
#undef TENON_MAX_POOL
  ops.add({
      .schema = "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
                "dilation=[1], bool ceil_mode=False) -> "
                "(Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return in_one_dimension(b, max_pool2d_with_indices, 2, {1, 2, 3, 4}, {1, 1, 0, 1});
          },
  });
  ops.add({
      .schema = "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
                "dilation=[1], bool ceil_mode=False) -> Tensor",
      .meta = [](MetaCall& m) { return max_pool_meta(m, 1, false); },
      .lower = [](Lower& l) { lower_max_pool(l, 1); },
      .for_grad =
          [](Build& b) {
            return in_one_dimension(b, max_pool2d_with_indices, 1, {1, 2, 3, 4}, {1, 1, 0, 1});
          },
  });

  ops.add({
      .schema = "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor",
      .meta = [](MetaCall& m) { return unpooled_meta(m, 2); },
      .lower = [](Lower& l) { lower_unpool(l, l["indices"], 2, loop::Mode::set); },
      .vjp = {{"self", [](Vjp& v) { return picked(v.grad(), v["indices"], 2); }}},
  });
  ops.add({
      .schema =
          "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor",
      .meta = [](MetaCall& m) { return unpooled_meta(m, 3); },
      .lower = [](Lower& l) { lower_unpool(l, l["indices"], 3, loop::Mode::set); },
      .vjp = {{"self", [](Vjp& v) { return picked(v.grad(), v["indices"], 3); }}},
  });

#define TENON_AVERAGE_POOL(n, handle, backward, backward_meta)                                                        \
  ops.add(                                                                                                            \
      handle,                                                                                                         \
      {.schema =                                                                                                      \
           "avg_pool" #n "d(Tensor self, int[" #n "] kernel_size, int[" #n "] stride=[], int[" #n                     \
           "] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",   \
       .meta = [](MetaCall& m) { return average_meta(m, n); },                                                        \
       .lower = [](Lower& l) { lower_average(l, n); },                                                                \
       .vjp = {{"self", [](Vjp& v) {                                                                                  \
         Windows w = windows(v, n, 1, -1, 4);                                                                         \
         return backward(v.grad(), v["self"], w.kernel, w.stride, w.padding, w.ceil, v.flag("count_include_pad"),     \
                         v.arg("divisor_override"));                                                                  \
       }}}});                                                                                                           \
  ops.add(backward, {.schema = "avg_pool" #n "d_backward(Tensor grad_output, Tensor self, int[" #n                    \
                               "] kernel_size, int[" #n "] stride, int[" #n                                           \
                               "] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor", \
                     .meta = backward_meta,                                                                           \
                     .lower = [](Lower& l) { lower_average_backward(l, n); },                                         \
                     .vjp = {{"grad_output", [](Vjp& v) {                                                             \
                       return handle(v.grad(), v.arg("kernel_size"), v.arg("stride"), v.arg("padding"),               \
                                     v.arg("ceil_mode"), v.arg("count_include_pad"), v.arg("divisor_override"));      \
                     }}}})
  TENON_AVERAGE_POOL(2, avg_pool2d, avg_pool2d_backward, like_input);
  TENON_AVERAGE_POOL(3, avg_pool3d, avg_pool3d_backward, like_input_contiguous);
#undef TENON_AVERAGE_POOL
  ops.add({
      .schema = "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
                "ceil_mode=False, bool count_include_pad=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return in_one_dimension(b, avg_pool2d, 1, {1, 2, 3}, {1, 1, 0});
          },
  });
}

}  // namespace tenon
