#include "tenon/ops/pooling.h"

#include <limits>

#include "tenon/ops/conversion.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/views.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

using loop::Compute;
using loop::Expr;

size_t require_image(const ArgsView& call, const TensorMeta& x, size_t space) {
  call.require(x.rank() == space + 1 || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2,
               " dimensions, got ", x);
  return x.rank() - space;
}

void require_pool_gradient(const ArgsView& call, const TensorMeta& grad, const TensorMeta& input, size_t space) {
  size_t first = require_image(call, input, space);
  bool fits = grad.rank() == input.rank();
  for (size_t d = 0; fits && d < first; ++d) fits = !statically_true(sym::ne(grad.sizes[d], input.sizes[d]));
  call.require(fits, "grad_output: expected the dimensions of the input ", input, " with other sizes of its last ",
               space, ", got ", grad);
}

void require_pool_indices(const ArgsView& call, const Sizes& pooled) {
  const TensorMeta& indices = call.meta("indices");
  call.require(indices.dtype == DType::i64, "indices: expected dtype i64, got ", indices);
  require_sizes(call, "indices", pooled);
}

Windows::Windows(const ArgsView& call, size_t space)
    : space(space),
      kernel(call.ints("kernel_size", space)),
      stride(call.ints("stride").empty() ? kernel : call.ints("stride", space)),
      padding(call.ints("padding", space)),
      dilation(call.op.schema.find("dilation") < 0 ? Sizes(space, SymInt(1)) : call.ints("dilation", space)),
      ceil(call.flag("ceil_mode")) {
  for (size_t i = 0; i < space; ++i) {
    auto positive = [](SymInt v) { return !v.is_int() || v.as_int() > 0; };
    call.require(positive(kernel[i]) && positive(stride[i]) && positive(dilation[i]),
                 "kernel, stride and dilation must be positive, got ", kernel, ", ", stride, " and ", dilation);
    SymInt reach = dilation[i] * (kernel[i] - 1) + 1;
    call.require(!statically_true(sym::lt(padding[i], 0)) && !statically_true(sym::gt(padding[i] * 2, reach)),
                 "padding: expected at most half of the kernel's reach ", reach, ", got ", padding);
  }
}

Sizes pooled_sizes(const ArgsView& m, const TensorMeta& x, const Windows& w) {
  size_t first = require_image(m, x, w.space);
  Sizes out = x.sizes;
  for (size_t i = 0; i < w.space; ++i) {
    size_t d = first + i;
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
  for (size_t d = first - 1; d < x.rank(); ++d)
    m.require(!(x.sizes[d] == SymInt(0)), "only the batch may be empty, got ", x);
  return out;
}

namespace {

// The least value of a compute type: what an element outside the image counts as.
Expr lowest(Lower& l, Compute type) {
  if (type == Compute::i64) return loop::constant(l.program.arena, std::numeric_limits<int64_t>::min(), type);
  return l.constant(-std::numeric_limits<double>::infinity(), type);
}

// The position of an image element within its plane.
Expr flat_position(Lower& l, Ref x, const Index& at, size_t space) {
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

void lower_max_pool(Lower& l, Ref x, size_t space, const Sizes& extents,
                    const std::function<PoolElement(const Index&, const Index&)>& element) {
  bool indexed = l.outs() > 1;
  Sizes domain = l.out().sizes();
  l.stage(domain, [&](const Index& i) {
    Compute type = loop::compute_of(x.dtype());
    auto value = [&](const Index& r) {
      PoolElement p = element(i, r);
      return p.always ? x.at(p.at) : x.at_if(p.inside, p.at, lowest(l, type));
    };
    l.store(l.out(0), i, l.reduce(loop::Combine::max, extents, value));
    if (!indexed) return;
    Expr best = l.reduce(loop::Combine::argmax, extents, value);
    if (type != Compute::i64) {
      Expr last_nan = l.reduce(loop::Combine::max, extents, [&](const Index& r) {
        return loop::select(is_nan(value(r)), row_major(l, r, extents), l.constant(-1, Compute::i64));
      });
      best = loop::select(last_nan >= 0, last_nan, best);
    }
    Index r(extents.size(), Expr(0));
    for (size_t k = extents.size(); k-- > 0;) {
      r[k] = k == 0 ? best : call(loop::Fn::remainder, best, l.extent(extents[k]));
      best = call(loop::Fn::floor_div, best, l.extent(extents[k]));
    }
    l.store(l.out(1), i, flat_position(l, x, element(i, r).at, space));
  });
}

void lower_max_unpool(Lower& l, Ref values, size_t space, loop::Mode mode) {
  Ref indices = l["indices"], out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  l.stage(Sizes(values.sizes()), [&](const Index& i) {
    Expr rest = indices.at(i);
    Index to = i;
    for (size_t k = i.size(); k-- > i.size() - space;) {
      to[k] = k == i.size() - space ? rest : call(loop::Fn::remainder, rest, l.extent(out.size(k)));
      rest = call(loop::Fn::floor_div, rest, l.extent(out.size(k)));
    }
    l.store(target, to, values.at(i), mode);
  });
  if (target.id != out.id) l.copy(target, out);
}

Tensor gather_pooled(const Tensor& x, const Tensor& indices, size_t space) {
  auto flattened = [&](const Tensor& t) -> Tensor {
    Sizes sizes(std::span<const SymInt>(t.sizes().begin(), t.rank() - space));
    sizes.push_back(count(Sizes(std::span<const SymInt>(t.sizes().end() - space, space))));
    return reshape(t, sizes);
  };
  Tensor taken = gather(flattened(x), -1, flattened(indices));
  return view(taken, indices.sizes());
}

Results pool_one_row(const Tensor& x, size_t results, const std::function<Results(const Tensor&)>& pool2d) {
  Results wide = pool2d(unsqueeze(x, -2)), out;
  for (size_t i = 0; i < results; ++i) out.values.push_back(CallArg(Tensor(squeeze_dim(wide[i], -2))));
  return out;
}

}  // namespace tenon
