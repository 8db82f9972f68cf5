#include "tenon/ops/conv.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/rules/memory_format.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/padding.h"
#include "tenon/ops/views.h"

namespace tenon {

Handle convolution, convolution_backward;

namespace {

// The arguments that say how a kernel moves over an image; `at` is the position of stride in the schema.
struct Geometry {
  Sizes stride, padding, dilation, output_padding;
  bool transposed = false;
  SymInt groups = 1;
};

Geometry geometry(const ArgsView& call, size_t at, size_t space) {
  Geometry g{call.ints(at, space), call.ints(at + 1, space), call.ints(at + 2, space), {},
             call.flag(at + 3),    call.integer(at + 5)};
  g.output_padding = g.transposed ? call.ints(at + 4, space) : Sizes(space, SymInt(0));
  return g;
}

bool surely_differ(SymInt a, SymInt b) { return a.is_int() && b.is_int() && !(a == b); }

Sizes convolved_sizes(const ArgsView& m, const TensorMeta& x, const TensorMeta& w, const Geometry& g) {
  size_t space = w.rank() - 2;
  SymInt channels = g.transposed ? w.sizes[0] : w.sizes[1] * g.groups;
  m.require(!surely_differ(x.sizes[1], channels), "expected an input of ", channels, " channels for a weight ", w,
            " in ", g.groups, " groups, got ", x);
  Sizes out = {x.sizes[0], g.transposed ? w.sizes[1] * g.groups : w.sizes[0]};
  for (size_t i = 0; i < space; ++i) {
    SymInt size = x.sizes[2 + i], reach = g.dilation[i] * (w.sizes[2 + i] - 1);
    SymInt length = g.transposed ? (size - 1) * g.stride[i] - g.padding[i] * 2 + reach + g.output_padding[i] + 1
                                 : sym::floor_div(size + g.padding[i] * 2 - reach - 1, g.stride[i]) + 1;
    m.require(!length.is_int() || length.as_int() > 0 || size == SymInt(0), "the kernel does not fit: dimension ",
              2 + i, " of ", x, " with a weight ", w, " would have size ", length);
    out.push_back(length);
  }
  return out;
}

void require_geometry(const ArgsView& m, const Geometry& g) {
  auto all_at_least = [&](const Sizes& list, int64_t least, const char* what) {
    for (SymInt v : list)
      m.require(!v.is_int() || v.as_int() >= least, what, ": expected numbers of at least ", least, ", got ", list);
  };
  all_at_least(g.stride, 1, "stride");
  all_at_least(g.padding, 0, "padding");
  all_at_least(g.dilation, 1, "dilation");
  all_at_least(g.output_padding, 0, "output_padding");
  m.require(!g.groups.is_int() || g.groups.as_int() > 0, "groups: expected a positive number, got ", g.groups);
  for (size_t i = 0; i < g.output_padding.size(); ++i) {
    bool fits =
        !statically_true(sym::ge(g.output_padding[i], g.stride[i])) || !statically_true(sym::ge(g.output_padding[i], g.dilation[i]));
    m.require(fits, "output_padding: expected less than the stride ", g.stride, " or the dilation ", g.dilation,
              ", got ", g.output_padding);
  }
}

// PyTorch follows channels-last strides of the input or of the weight.
TensorMeta in_format_of(const TensorMeta& x, const TensorMeta& w, Sizes sizes) {
  return formatted_like(suggested_format(x) != MemoryFormat::contiguous ? x : w, std::move(sizes), x.dtype);
}

Metas convolution_meta(MetaCall& m) {
  const TensorMeta &x = m.meta(0), &w = m.meta(1);
  m.require(w.rank() >= 3 && w.rank() <= 5, "expected a weight of 3 to 5 dimensions, got ", w);
  m.require(x.rank() == w.rank(), "expected an input of ", w.rank(), " dimensions for a weight ", w, ", got ", x);
  m.require(x.dtype == w.dtype, "expected an input and a weight of one dtype, got ", x, " and ", w);
  Geometry g = geometry(m, 3, w.rank() - 2);
  require_geometry(m, g);
  Sizes sizes = convolved_sizes(m, x, w, g);
  m.require(g.transposed || !w.sizes[0].is_int() || !g.groups.is_int() || w.sizes[0].as_int() % g.groups.as_int() == 0,
            "expected a multiple of ", g.groups, " output channels, got a weight ", w);
  if (m.given(2)) {
    const TensorMeta& b = m.meta(2);
    m.require(b.rank() == 1 && !surely_differ(b.sizes[0], sizes[1]), "expected a bias of ", sizes[1], " elements, got ",
              b);
  }
  return in_format_of(x, w, sizes);
}

loop::Convolution anchor_of(const Geometry& g, loop::ConvPart part) {
  loop::Convolution c;
  c.part = part;
  c.stride = g.stride;
  c.padding = g.padding;
  c.dilation = g.dilation;
  c.output_padding = g.output_padding;
  c.transposed = g.transposed;
  c.groups = g.groups;
  return c;
}

// y = x * w for dtypes the anchor does not compute in (integers): each output sums over what its kernel meets.
void lower_by_sums(Lower& l, Ref x, Ref w, Ref y, const Geometry& g) {
  size_t space = w.sizes().size() - 2;
  SymInt in_group = sym::floor_div(x.size(1), g.groups), out_group = sym::floor_div(y.size(1), g.groups);
  Sizes extents = {in_group};
  for (size_t i = 0; i < space; ++i) extents.push_back(w.size(2 + i));
  l.tensor(y, [&](const Index& i) {
    loop::Expr group = call(loop::Fn::floor_div, i[1], l.extent(out_group));
    return l.sum(extents, [&](const Index& r) {
      Index from = {i[0], group * l.extent(in_group) + r[0]};
      Index weight =
          g.transposed ? Index{from[1], call(loop::Fn::remainder, i[1], l.extent(out_group))} : Index{i[1], r[0]};
      loop::Expr inside = loop::constant(l.program.arena, 1.0, loop::Compute::boolean);
      for (size_t d = 0; d < space; ++d) {
        loop::Expr at = r[1 + d] * l.extent(g.dilation[d]), stride = l.extent(g.stride[d]);
        if (g.transposed) {
          loop::Expr reached = i[2 + d] + l.extent(g.padding[d]) - at;
          inside = inside && call(loop::Fn::remainder, reached, stride) == 0;
          at = call(loop::Fn::floor_div, reached, stride);
        } else {
          at = i[2 + d] * stride + at - l.extent(g.padding[d]);
        }
        inside = inside && at >= 0 && at < l.extent(x.size(2 + d));
        from.push_back(at);
        weight.push_back(r[1 + d]);
      }
      return x.at_if(inside, from, 0) * w.at(weight);
    });
  });
}

void lower_convolution(Lower& l) {
  Ref x = l.computable(l[0]), w = l.computable(l[1]), out = l.out();
  DType compute = computable(out.dtype());
  Geometry g = geometry(l, 3, w.sizes().size() - 2);
  bool biased = l.given(2);
  Ref y = !biased && compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  if (compute == DType::i64) {
    lower_by_sums(l, x, w, y, g);
  } else {
    loop::Convolution c = anchor_of(g, loop::ConvPart::forward);
    c.x = x.operand();
    c.w = w.operand();
    c.y = y.operand();
    l.anchor(std::move(c));
  }
  if (y.id == out.id) return;
  l.tensor(
      [&](const Index& i) { return biased ? y.at(i) + cast(l[2].at({i[1]}), loop::compute_of(compute)) : y.at(i); });
}

const std::vector<bool>& mask_of(const ArgsView& call, size_t at) {
  auto* mask = call.arg(at).get<std::vector<bool>>();
  call.require(mask && mask->size() == 3, "output_mask: expected three booleans, got ", describe(call.arg(at)));
  return *mask;
}

Metas backward_meta(MetaCall& m) {
  const TensorMeta &grad = m.meta(0), &x = m.meta(1), &w = m.meta(2);
  m.require(w.rank() >= 3 && w.rank() <= 5 && x.rank() == w.rank() && grad.rank() == w.rank(),
            "expected three tensors of 3 to 5 dimensions, got ", grad, ", ", x, " and ", w);
  m.require(is_floating(x.dtype) && x.dtype == w.dtype && x.dtype == grad.dtype,
            "expected three floating point tensors of one dtype, got ", grad, ", ", x, " and ", w);
  Geometry g = geometry(m, 4, w.rank() - 2);
  require_geometry(m, g);
  Sizes sizes = convolved_sizes(m, x, w, g);
  for (size_t i = 0; i < sizes.size(); ++i)
    m.require(!surely_differ(sizes[i], grad.sizes[i]), "expected a gradient of sizes ", sizes, ", got ", grad);
  const std::vector<bool>& mask = mask_of(m, 10);
  using Result = BasicArg<TensorMeta>;
  SymInt channels = m.flag(7) ? w.sizes[1] * m.integer(9) : w.sizes[0];
  return {mask[0] ? Result(in_format_of(x, w, x.sizes)) : Result(),
          mask[1] ? Result(in_format_of(x, w, w.sizes)) : Result(),
          mask[2] ? Result(like(grad, {channels})) : Result()};
}

void lower_backward(Lower& l) {
  Ref grad = l.computable(l[0]);
  size_t space = l[2].sizes().size() - 2;
  Geometry g = geometry(l, 4, space);
  auto part = [&](loop::ConvPart which, size_t result) {
    Ref out = l.out(result);
    Ref target =
        computable(out.dtype()) == out.dtype() ? out : l.temporary(computable(out.dtype()), Sizes(out.sizes()));
    loop::Convolution c = anchor_of(g, which);
    bool to_input = which == loop::ConvPart::input_gradient;
    c.x = to_input ? target.operand() : l.computable(l[1]).operand();
    c.w = to_input ? l.computable(l[2]).operand() : target.operand();
    c.y = grad.operand();
    l.anchor(std::move(c));
    if (target.id != out.id) l.copy(target, out);
  };
  if (l.wants(0)) part(loop::ConvPart::input_gradient, 0);
  if (l.wants(1)) part(loop::ConvPart::weight_gradient, 1);
  if (!l.wants(2)) return;
  Sizes extents = {grad.size(0)};
  for (size_t i = 0; i < space; ++i) extents.push_back(grad.size(2 + i));
  l.tensor(l.out(2), [&](const Index& i) {
    return l.sum(extents, [&](const Index& r) { return grad.at(r.inserted(1, i[0])); });
  });
}

// What follows stride in the calls that a gradient makes: the geometry as it was given.
Results backward(const ArgsView& call, size_t stride_at, const Tensor& grad, const Tensor& x, const Tensor& w,
                 const CallArg& bias_sizes, bool dx, bool dw, bool db) {
  auto a = [&](size_t i) { return call.arg(stride_at + i); };
  return convolution_backward(grad, x, w, bias_sizes, a(0), a(1), a(2), a(3), a(4), a(5),
                              std::vector<bool>{dx, dw, db});
}

Grads convolution_vjp(Vjp& v) {
  CallArg bias_sizes = v.given(2) ? CallArg(v[2].sizes()) : CallArg();
  Results r = backward(v, 3, v.grad(0), v[0], v[1], bias_sizes, v.needs(0), v.needs(1), v.given(2) && v.needs(2));
  return {r[0], r[1], r[2]};
}

// All three results are linear in grad_output; the first two also in weight and in input.
Grads backward_vjp(Vjp& v) {
  Tensor gx = v.grad(0), gw = v.grad(1), gb = v.grad(2), grad = v[0], x = v[1], w = v[2];
  auto forward = [&](const Tensor& x, const Tensor& w) -> Tensor {
    return convolution(x, w, none, v.arg(4), v.arg(5), v.arg(6), v.arg(7), v.arg(8), v.arg(9));
  };
  Tensor to_grad, to_x, to_w;
  if (v.needs(0)) {
    if (gx) to_grad = forward(gx, w);
    if (gw) to_grad = to_grad ? to_grad + forward(x, gw) : forward(x, gw);
    if (gb) {
      Sizes sizes(grad.rank(), SymInt(1));
      sizes[1] = grad.size(1);
      Tensor spread = expand(view(gb, sizes), grad.sizes());
      to_grad = to_grad ? to_grad + spread : spread;
    }
  }
  if (v.needs(1) && gw) to_x = backward(v, 4, grad, x, gw, CallArg(), true, false, false)[0];
  if (v.needs(2) && gx) to_w = backward(v, 4, grad, gx, w, CallArg(), false, true, false)[1];
  return {to_grad, to_x, to_w};
}

// conv1d, conv2d, ...: a missing batch dimension is added and taken away again.
Results convolved(Build& b, size_t space, const Sizes& stride, const Sizes& padding, const Sizes& dilation,
                  bool transposed, const Sizes& output_padding, SymInt groups, Tensor x = none) {
  if (!x) x = b[0];
  bool single = x.rank() == space + 1;
  b.require(single || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2, " dimensions, got ",
            x.meta());
  b.require(b[1].rank() == space + 2, "expected a weight of ", space + 2, " dimensions, got ", b[1].meta());
  if (single) x = unsqueeze(x, 0);
  Results y = convolution(x, b[1], b[2], stride, padding, dilation, transposed, output_padding, groups);
  return single ? squeeze_dim(y, 0) : y;
}

Results plain(Build& b, size_t space) {
  return convolved(b, space, b.ints(3, space), b.ints(4, space), b.ints(5, space), false, Sizes(space, SymInt(0)),
                   b.integer(6));
}

Results padded_by_name(Build& b, size_t space) {
  const std::string& mode = b.string(4);
  b.require(mode == "same" || mode == "valid", "padding: expected 'same' or 'valid', got ", quoted(mode));
  Sizes stride = b.ints(3, space), dilation = b.ints(5, space), padding(space, SymInt(0)), none_extra(space, SymInt(0));
  if (mode == "valid") return convolved(b, space, stride, padding, dilation, false, none_extra, b.integer(6));
  b.require(b[1].rank() == space + 2, "expected a weight of ", space + 2, " dimensions, got ", b[1].meta());
  Sizes extra;  // for constant_pad_nd: pairs from the last dimension on
  bool uneven = false;
  for (size_t i = space; i-- > 0;) {
    b.require(!stride[i].is_int() || stride[i].as_int() == 1, "padding='same' needs a stride of 1, got ", stride);
    SymInt total = dilation[i] * (b[1].size(static_cast<int64_t>(2 + i)) - 1);
    padding[i] = sym::floor_div(total, 2);
    SymInt more = total - padding[i] * 2;
    extra.push_back(0);
    extra.push_back(more);
    uneven = uneven || !(more == SymInt(0));
  }
  Tensor x = b[0];
  if (uneven) x = constant_pad_nd(x, extra, 0);
  return convolved(b, space, stride, padding, dilation, false, none_extra, b.integer(6), x);
}

Results transposed(Build& b, size_t space) {
  return convolved(b, space, b.ints(3, space), b.ints(4, space), b.ints(7, space), true, b.ints(5, space),
                   b.integer(6));
}

}  // namespace

void register_conv(Registry& ops) {
  ops.add(convolution, {
      .schema = "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
                "padding, SymInt[] dilation, bool transposed, SymInt[] "
                "output_padding, SymInt groups) -> Tensor",
      .meta = convolution_meta,
      .lower = lower_convolution,
      .vjp = {{"input, weight, bias, stride, padding, dilation, transposed, output_padding, groups", convolution_vjp}},
  });
  ops.add(convolution_backward, {
      .schema = "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
                "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] "
                "dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
                "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
      .meta = backward_meta,
      .lower = lower_backward,
      .vjp = {{"grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask", backward_vjp}},
  });
#define TENON_CONVOLUTIONS(n, one, zero)                                                                               \
  ops.add({.schema = "conv" #n "d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=" one          \
                     ", SymInt[" #n "] padding=" zero ", SymInt[" #n "] dilation=" one ", SymInt groups=1) -> Tensor", \
           .kind = OpKind::composite,                                                                                    \
           .decompose = [](Build& b) { return plain(b, n); }});                                                        \
  ops.add({.schema = "conv" #n "d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=" one  \
                     ", str padding=\"valid\", SymInt[" #n "] dilation=" one ", SymInt groups=1) -> Tensor",           \
           .kind = OpKind::composite,                                                                                    \
           .decompose = [](Build& b) { return padded_by_name(b, n); }})
#define TENON_TRANSPOSED(n, name, one, zero)                                                                           \
  ops.add({.schema = name "(Tensor input, Tensor weight, Tensor? bias=None, SymInt[" #n "] stride=" one ", SymInt[" #n \
                          "] padding=" zero ", SymInt[" #n "] output_padding=" zero ", SymInt groups=1, SymInt[" #n    \
                          "] dilation=" one ") -> Tensor",                                                             \
           .kind = OpKind::composite,                                                                                    \
           .decompose = [](Build& b) { return transposed(b, n); }})
  TENON_CONVOLUTIONS(1, "[1]", "[0]");
  TENON_CONVOLUTIONS(2, "[1, 1]", "[0, 0]");
  TENON_CONVOLUTIONS(3, "[1, 1, 1]", "[0, 0, 0]");
  TENON_TRANSPOSED(1, "conv_transpose1d", "[1]", "[0]");
  TENON_TRANSPOSED(2, "conv_transpose2d.input", "[1, 1]", "[0, 0]");
  TENON_TRANSPOSED(3, "conv_transpose3d.input", "[1, 1, 1]", "[0, 0, 0]");
#undef TENON_CONVOLUTIONS
#undef TENON_TRANSPOSED
}

}  // namespace tenon
