// Max pooling over windows, and its inverse by indices.
#include "tenon/ops/pooling.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle max_pool2d_with_indices;
static Handle max_pool3d_with_indices, max_pool2d_backward, max_pool3d_backward;

namespace {

using loop::Compute;
using loop::Expr;

/// Without padding, every window lies within the image.
bool fits(Lower& l, Ref x, const Windows& w, size_t first, size_t k) {
  const SymInt reach = w.dilation[k] * (w.kernel[k] - 1) + 1;
  return statically_true(sym::le((l.out().size(first + k) - 1) * w.stride[k] + reach, x.size(first + k)));
}

PoolElement max_pool_element(Lower& l, Ref x, const Windows& w, const Index& i, const Index& r) {
  size_t first = i.size() - w.space;
  PoolElement p{i, loop::constant(l.program.arena, 1.0, Compute::boolean), true};
  for (size_t k = 0; k < w.space; ++k) {
    const SymInt reach = w.dilation[k] * (w.kernel[k] - 1) + 1;
    const bool plain = w.padding[k] == SymInt(0), dense = w.dilation[k] == SymInt(1);
    Expr corner = i[first + k] * l.extent(w.stride[k]), step = l.extent(w.dilation[k]);
    if (!plain) corner = corner - l.extent(w.padding[k]);
    // The first element that is inside comes first, so that it wins where all are equal.
    Expr start = plain   ? corner
                 : dense ? max(corner, l.extent(0))
                         : max(corner, corner - call(loop::Fn::floor_div, corner, step) * step);
    p.at[first + k] = start + r[k] * step;
    if (dense && !(plain && fits(l, x, w, first, k))) {
      // The last element inside may be taken more than once: the first of equals wins, and a place is clamped likewise.
      p.at[first + k] = min(p.at[first + k], min(corner + l.extent(reach), l.extent(x.size(first + k))) - l.extent(1));
      continue;
    }
    if (plain && fits(l, x, w, first, k)) continue;
    p.inside = p.inside && p.at[first + k] < min(corner + l.extent(reach), l.extent(x.size(first + k)));
    p.always = false;
  }
  return p;
}

template <size_t space>
void lower_windows(Lower& l) {
  Windows w(l, space);
  Ref x = l["self"];
  Sizes extents = w.kernel;  // no more of a window than of the image can be inside
  for (size_t k = 0; k < space; ++k) {
    SymInt size = x.size(x.sizes().size() - space + k);
    if (statically_true(sym::lt(size, extents[k]))) extents[k] = size;
  }
  lower_max_pool(l, x, space, extents, [&](const Index& i, const Index& r) { return max_pool_element(l, x, w, i, r); });
}

template <size_t space>
TensorMeta pooled(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  m.require(x.dtype != DType::boolean, "expected numbers, got ", x);
  return formatted_like(x, pooled_sizes(m, x, Windows(m, space)));
}

template <size_t space>
Metas pool_meta(MetaCall& m) {
  return pooled<space>(m);
}

template <size_t space>
Metas pool_with_indices_meta(MetaCall& m) {
  TensorMeta out = pooled<space>(m), indices = out;
  indices.dtype = DType::i64;
  return {out, indices};
}

template <size_t space>
Metas unpool_meta(MetaCall& m) {
  const TensorMeta &x = m.meta("self"), &indices = m.meta("indices");
  size_t first = require_image(m, x, space);
  m.require(indices.dtype == DType::i64 && indices.sizes == x.sizes, "expected i64 indices of the sizes of ", x,
            ", got ", indices);
  Sizes sizes = x.sizes, wanted = m.ints("output_size", space);
  for (size_t k = 0; k < space; ++k) sizes[first + k] = wanted[k];
  return space == 2 ? formatted_like(x, sizes) : like(x, sizes);
}

Results call_with_indices(const Handle& op, const Build& b) {
  return op(b["self"], b.arg("kernel_size"), b.arg("stride"), b.arg("padding"), b.arg("dilation"), b.arg("ceil_mode"));
}

// max_pool, max_pool_with_indices and its gradient.
struct MaxPool {
  const char *pool, *with_indices, *backward;  // schemas
};

template <size_t space, Handle& with_indices, Handle& backward>
void add_max_pool(Registry& ops, const MaxPool& schemas) {
  ops.add({
      .schema = schemas.pool,
      .meta = pool_meta<space>,
      .lower = lower_windows<space>,
      .for_grad = [](Build& b) { return one(call_with_indices(with_indices, b)[0]); },
  });
  ops.add(with_indices, {
                            .schema = schemas.with_indices,
                            .meta = pool_with_indices_meta<space>,
                            .lower = lower_windows<space>,
                            .vjp = {{"self",
                                     [](Vjp& v) {
                                       Windows w(v, space);
                                       return backward(v.grad(), v["self"], w.kernel, w.stride, w.padding, w.dilation,
                                                       w.ceil, v.out(1));
                                     }}},
                        });
  ops.add(backward, {
                        .schema = schemas.backward,
                        .meta = [](MetaCall& m) -> Metas {
                          const TensorMeta &grad = m.meta("grad_output"), &x = m.meta("self");
                          require_pool_gradient(m, grad, x, space);
                          require_pool_indices(m, grad.sizes);
                          return formatted_like(x, x.sizes);
                        },
                        .lower = [](Lower& l) { lower_max_unpool(l, l["grad_output"], space); },
                        .vjp = {{"grad_output", [](Vjp& v) { return gather_pooled(v.grad(), v["indices"], space); }}},
                    });
}

template <size_t space>
void add_max_unpool(Registry& ops, const char* schema) {
  ops.add({
      .schema = schema,
      .meta = unpool_meta<space>,
      .lower = [](Lower& l) { lower_max_unpool(l, l["self"], space, loop::Mode::set); },
      .vjp = {{"self", [](Vjp& v) { return gather_pooled(v.grad(), v["indices"], space); }}},
  });
}

Results one_dimension(const Build& b, size_t results) {
  auto row = [&](const char* arg, int64_t of_rows) {
    Sizes own = b.ints(arg);
    b.require(own.size() <= 1, arg, ": expected one number, got ", own);
    return own.empty() ? own : Sizes{of_rows, own[0]};
  };
  return pool_one_row(b["self"], results, [&](const Tensor& x) {
    return max_pool2d_with_indices(x, row("kernel_size", 1), row("stride", 1), row("padding", 0), row("dilation", 1),
                                   b.arg("ceil_mode"));
  });
}

}  // namespace

void register_pooling_max(Registry& ops) {
  add_max_pool<2, max_pool2d_with_indices, max_pool2d_backward>(
      ops,
      {.pool = "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
               "bool ceil_mode=False) -> Tensor",
       .with_indices = "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
                       "int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       .backward = "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
                   "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor"});
  add_max_pool<3, max_pool3d_with_indices, max_pool3d_backward>(
      ops,
      {.pool = "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
               "bool ceil_mode=False) -> Tensor",
       .with_indices = "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, "
                       "int[3] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)",
       .backward = "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
                   "stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor"});
  ops.add({
      .schema = "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
                "dilation=[1], bool ceil_mode=False) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one_dimension(b, 2); },
  });
  ops.add({
      .schema = "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
                "dilation=[1], bool ceil_mode=False) -> Tensor",
      .meta = pool_meta<1>,
      .lower = lower_windows<1>,
      .for_grad = [](Build& b) { return one_dimension(b, 1); },
  });
  add_max_unpool<2>(ops, "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor");
  add_max_unpool<3>(
      ops, "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor");
}

}  // namespace tenon
