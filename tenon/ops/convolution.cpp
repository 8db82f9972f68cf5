#include "tenon/ops/convolution.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/padding.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/memory_format.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle convolution, convolution_backward;

namespace {

// How a kernel moves over an image.
struct Geometry {
  Sizes stride, padding, dilation, output_padding;
  bool transposed = false;
  SymInt groups = 1;
};

// The geometry that a call of convolution or convolution_backward gives.
Geometry geometry(const ArgsView& call, size_t space) {
  bool transposed = call.flag("transposed");
  return {.stride = call.ints("stride", space),
          .padding = call.ints("padding", space),
          .dilation = call.ints("dilation", space),
          .output_padding = transposed ? call.ints("output_padding", space) : Sizes(space, SymInt(0)),
          .transposed = transposed,
          .groups = call.integer("groups")};
}

Sizes convolved_sizes(const ArgsView& m, const TensorMeta& x, const TensorMeta& w, const Geometry& g) {
  size_t space = w.rank() - 2;
  SymInt channels = g.transposed ? w.sizes[0] : w.sizes[1] * g.groups;
  relies_on_equal(m, x.sizes[1], channels, "expected an input of ", channels, " channels for a weight ", w, " in ",
                  g.groups, " groups, got ", x);
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
    bool fits = !statically_true(sym::ge(g.output_padding[i], g.stride[i])) ||
                !statically_true(sym::ge(g.output_padding[i], g.dilation[i]));
    m.require(fits, "output_padding: expected less than the stride ", g.stride, " or the dilation ", g.dilation,
              ", got ", g.output_padding);
  }
}

// PyTorch follows channels-last strides of the input or of the weight.
TensorMeta in_format_of(const TensorMeta& x, const TensorMeta& w, Sizes sizes) {
  return formatted_like(suggested_format(x) != MemoryFormat::contiguous ? x : w, std::move(sizes), x.dtype);
}

Metas convolution_meta(MetaCall& m) {
  const TensorMeta &x = m.meta("input"), &w = m.meta("weight");
  m.require(w.rank() >= 3 && w.rank() <= 5, "expected a weight of 3 to 5 dimensions, got ", w);
  m.require(x.rank() == w.rank(), "expected an input of ", w.rank(), " dimensions for a weight ", w, ", got ", x);
  m.require(x.dtype == w.dtype, "expected an input and a weight of one dtype, got ", x, " and ", w);
  Geometry g = geometry(m, w.rank() - 2);
  require_geometry(m, g);
  Sizes sizes = convolved_sizes(m, x, w, g);
  if (!g.transposed)
    relies_on_equal(m, sym::mod(w.sizes[0], g.groups), 0, "expected a multiple of ", g.groups,
                    " output channels, got a weight ", w);
  if (m.given("bias")) {
    const TensorMeta& b = m.meta("bias");
    m.require(b.rank() == 1, "expected a bias of ", sizes[1], " elements, got ", b);
    relies_on_equal(m, b.sizes[0], sizes[1], "expected a bias of ", sizes[1], " elements, got ", b);
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
  Ref x = l.computable(l["input"]), w = l.computable(l["weight"]), out = l.out();
  DType compute = computable(out.dtype());
  Geometry g = geometry(l, w.sizes().size() - 2);
  bool biased = l.given("bias");
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
  l.tensor([&](const Index& i) {
    return biased ? y.at(i) + cast(l["bias"].at({i[1]}), loop::compute_of(compute)) : y.at(i);
  });
}

Metas backward_meta(MetaCall& m) {
  const TensorMeta &grad = m.meta("grad_output"), &x = m.meta("input"), &w = m.meta("weight");
  m.require(w.rank() >= 3 && w.rank() <= 5 && x.rank() == w.rank() && grad.rank() == w.rank(),
            "expected three tensors of 3 to 5 dimensions, got ", grad, ", ", x, " and ", w);
  m.require(is_floating(x.dtype) && x.dtype == w.dtype && x.dtype == grad.dtype,
            "expected three floating point tensors of one dtype, got ", grad, ", ", x, " and ", w);
  Geometry g = geometry(m, w.rank() - 2);
  require_geometry(m, g);
  Sizes sizes = convolved_sizes(m, x, w, g);
  for (size_t i = 0; i < sizes.size(); ++i)
    relies_on_equal(m, sizes[i], grad.sizes[i], "expected a gradient of sizes ", sizes, ", got ", grad);
  SymInt channels = g.transposed ? w.sizes[1] * g.groups : w.sizes[0];
  return masked_metas(m, {in_format_of(x, w, x.sizes), in_format_of(x, w, w.sizes), like(grad, {channels})});
}

void lower_backward(Lower& l) {
  Ref grad = l.computable(l["grad_output"]);
  size_t space = l["weight"].sizes().size() - 2;
  Geometry g = geometry(l, space);
  auto part = [&](loop::ConvPart which, size_t result) {
    Ref out = l.out(result);
    Ref target =
        computable(out.dtype()) == out.dtype() ? out : l.temporary(computable(out.dtype()), Sizes(out.sizes()));
    loop::Convolution c = anchor_of(g, which);
    bool to_input = which == loop::ConvPart::input_gradient;
    c.x = to_input ? target.operand() : l.computable(l["input"]).operand();
    c.w = to_input ? l.computable(l["weight"]).operand() : target.operand();
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

// convolution_backward with the geometry of a call.
Results backward(const ArgsView& call, const Tensor& grad, const Tensor& x, const Tensor& w, const CallArg& bias_sizes,
                 std::vector<bool> output_mask) {
  return convolution_backward(grad, x, w, bias_sizes, call.arg("stride"), call.arg("padding"), call.arg("dilation"),
                              call.arg("transposed"), call.arg("output_padding"), call.arg("groups"), output_mask);
}

// Of input, weight and bias.
Grads convolution_vjp(Vjp& v) {
  CallArg bias_sizes = v.given("bias") ? CallArg(v["bias"].sizes()) : CallArg();
  std::vector<bool> mask = {v.needs("input"), v.needs("weight"), v.given("bias") && v.needs("bias")};
  Results r = backward(v, v.grad(), v["input"], v["weight"], bias_sizes, mask);
  return {r[0], r[1], r[2]};
}

// All three results of convolution_backward are linear in grad_output; the first two also in weight and in input.
Tensor backward_vjp_of_grad(Vjp& v) {
  Tensor gx = v.grad(0), gw = v.grad(1), gb = v.grad(2), grad = v["grad_output"];
  auto forward = [&](const Tensor& x, const Tensor& w) -> Tensor {
    return convolution(x, w, none, v.arg("stride"), v.arg("padding"), v.arg("dilation"), v.arg("transposed"),
                       v.arg("output_padding"), v.arg("groups"));
  };
  Tensor total;
  auto add = [&](const Tensor& part) { total = total ? total + part : part; };
  if (gx) add(forward(gx, v["weight"]));
  if (gw) add(forward(v["input"], gw));
  if (gb) {
    Sizes sizes(grad.rank(), SymInt(1));
    sizes[1] = grad.size(1);
    add(expand(view(gb, sizes), grad.sizes()));
  }
  return total;
}
Tensor backward_vjp_of_input(Vjp& v) {
  Tensor gw = v.grad(1);
  return gw ? backward(v, v["grad_output"], v["input"], gw, CallArg(), {true, false, false})[0] : none;
}
Tensor backward_vjp_of_weight(Vjp& v) {
  Tensor gx = v.grad(0);
  return gx ? backward(v, v["grad_output"], gx, v["weight"], CallArg(), {false, true, false})[1] : none;
}

// conv1d, conv2d, ...: a missing batch dimension is added and taken away again.
Results convolved(const Build& b, size_t space, const Geometry& g, Tensor x) {
  Tensor weight = b["weight"];
  bool single = x.rank() == space + 1;
  b.require(single || x.rank() == space + 2, "expected an input of ", space + 1, " or ", space + 2, " dimensions, got ",
            x.meta());
  b.require(weight.rank() == space + 2, "expected a weight of ", space + 2, " dimensions, got ", weight.meta());
  if (single) x = unsqueeze(x, 0);
  Results y =
      convolution(x, weight, b["bias"], g.stride, g.padding, g.dilation, g.transposed, g.output_padding, g.groups);
  return single ? squeeze_dim(y, 0) : y;
}

template <size_t space>
Results conv(Build& b) {
  Geometry g = {.stride = b.ints("stride", space),
                .padding = b.ints("padding", space),
                .dilation = b.ints("dilation", space),
                .output_padding = Sizes(space, SymInt(0)),
                .groups = b.integer("groups")};
  return convolved(b, space, g, b["input"]);
}

template <size_t space>
Results conv_transpose(Build& b) {
  Geometry g = {.stride = b.ints("stride", space),
                .padding = b.ints("padding", space),
                .dilation = b.ints("dilation", space),
                .output_padding = b.ints("output_padding", space),
                .transposed = true,
                .groups = b.integer("groups")};
  return convolved(b, space, g, b["input"]);
}

// padding='same': an odd amount of padding puts one element more at the end.
template <size_t space>
Results conv_padding(Build& b) {
  const std::string& mode = b.string("padding");
  b.require(mode == "same" || mode == "valid", "padding: expected 'same' or 'valid', got ", quoted(mode));
  Sizes zeros(space, SymInt(0));
  Geometry g = {.stride = b.ints("stride", space),
                .padding = zeros,
                .dilation = b.ints("dilation", space),
                .output_padding = zeros,
                .groups = b.integer("groups")};
  Tensor x = b["input"], weight = b["weight"];
  if (mode == "valid") return convolved(b, space, g, x);
  b.require(weight.rank() == space + 2, "expected a weight of ", space + 2, " dimensions, got ", weight.meta());
  Sizes extra;  // for constant_pad_nd: pairs from the last dimension on
  bool uneven = false;
  for (size_t i = space; i-- > 0;) {
    b.require(!g.stride[i].is_int() || g.stride[i].as_int() == 1, "padding='same' needs a stride of 1, got ", g.stride);
    SymInt total = g.dilation[i] * (weight.sizes()[2 + i] - 1);
    g.padding[i] = sym::floor_div(total, 2);
    SymInt more = total - g.padding[i] * 2;
    extra.push_back(0);
    extra.push_back(more);
    uneven = uneven || !(more == SymInt(0));
  }
  if (uneven) x = constant_pad_nd(x, extra, 0);
  return convolved(b, space, g, x);
}

// What older programs call: as convolution, behind it how PyTorch may compute it.
Results convolution_of_any_rank(Build& b) {
  Tensor x = b["input"];
  b.require(b["weight"].rank() >= 3, "expected a weight of 3 dimensions or more, got ", b["weight"].meta());
  size_t space = b["weight"].rank() - 2;
  Geometry g = {.stride = b.ints("stride", space),
                .padding = b.ints("padding", space),
                .dilation = b.ints("dilation", space),
                .output_padding = b.ints("output_padding", space),
                .transposed = b.flag("transposed"),
                .groups = b.integer("groups")};
  return convolved(b, space, g, x);
}

Results convolution_of_any_rank_by_mode(Build& b) {
  switch (b["weight"].rank()) {
    case 3: return conv_padding<1>(b);
    case 4: return conv_padding<2>(b);
    case 5: return conv_padding<3>(b);
    default: b.require(false, "expected a weight of 3 to 5 dimensions, got ", b["weight"].meta());
  }
  return {};
}

// Time, batch, channels; the weight is window, input channels, output channels.
Results convolution_over_time(Build& b) {
  Tensor x = b["self"], weight = b["weight"];
  b.require(x.rank() == 3 && weight.rank() == 3, "expected an input and a weight of 3 dimensions, got ", x.meta(),
            " and ", weight.meta());
  Sizes one_each = {1};
  Tensor y = convolution(permute(x, Sizes{1, 2, 0}), permute(weight, Sizes{2, 1, 0}), b["bias"], one_each,
                         Sizes{b.integer("pad")}, one_each, false, Sizes{0}, 1);
  return clone(permute(y, Sizes{2, 0, 1}), MemoryFormat::contiguous);
}

template <size_t space>
void add_convolutions(Registry& ops, const char* conv_schema, const char* padding_schema,
                      const char* transpose_schema) {
  ops.add({.schema = conv_schema, .kind = OpKind::composite, .decompose = conv<space>});
  ops.add({.schema = padding_schema, .kind = OpKind::composite, .decompose = conv_padding<space>});
  ops.add({.schema = transpose_schema, .kind = OpKind::composite, .decompose = conv_transpose<space>});
}

Results complex_convolution(Build& b) {
  CallArgs args(b.args.begin(), b.args.end());
  args[b.index("bias")] = CallArg();
  Build plain(b.op, args);
  Results products = by_products(plain, "input", "weight");
  if (!b.given("bias")) return products;
  Sizes sizes(b.meta("input").rank() - 1, SymInt(1));
  sizes[0] = b.meta("bias").sizes[0];
  return add(products, reshape(b["bias"], sizes));
}

}  // namespace

void register_convolution(Registry& ops) {
  ops.add(convolution, {
                           .schema = "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] "
                                     "padding, SymInt[] dilation, bool transposed, SymInt[] "
                                     "output_padding, SymInt groups) -> Tensor",
                           .meta = convolution_meta,
                           .lower = lower_convolution,
                           .vjp = {{"input, weight, bias", convolution_vjp}},
                           .complex = complex_convolution,
                       });
  ops.add(convolution_backward, {
                                    .schema = "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
                                              "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] "
                                              "dilation, bool transposed, SymInt[] output_padding, SymInt groups, "
                                              "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
                                    .meta = backward_meta,
                                    .lower = lower_backward,
                                    .vjp = {{"grad_output", [](Vjp& v) { return backward_vjp_of_grad(v); }},
                                            {"input", [](Vjp& v) { return backward_vjp_of_input(v); }},
                                            {"weight", [](Vjp& v) { return backward_vjp_of_weight(v); }}},
                                });
  ops.add({
      .schema = "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] "
                "dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, bool "
                "deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
      .kind = OpKind::composite,
      .decompose = convolution_of_any_rank,
  });
  ops.add({
      .schema = "_convolution.deprecated(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
                "SymInt[] dilation, bool transposed, int[] output_padding, SymInt groups, bool benchmark, bool "
                "deterministic, bool cudnn_enabled) -> Tensor",
      .kind = OpKind::composite,
      .decompose = convolution_of_any_rank,
  });
  ops.add({
      .schema = "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, SymInt[] "
                "dilation, SymInt groups) -> Tensor",
      .kind = OpKind::composite,
      .decompose = convolution_of_any_rank_by_mode,
  });
  ops.add({
      .schema = "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = convolution_over_time,
  });
  add_convolutions<1>(
      ops,
      "conv1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], SymInt[1] padding=[0], "
      "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
      "conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], str padding=\"valid\", "
      "SymInt[1] dilation=[1], SymInt groups=1) -> Tensor",
      "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[1] stride=[1], "
      "SymInt[1] padding=[0], SymInt[1] output_padding=[0], SymInt groups=1, SymInt[1] dilation=[1]) -> Tensor");
  add_convolutions<2>(
      ops,
      "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], "
      "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
      "conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], str padding=\"valid\", "
      "SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor",
      "conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], "
      "SymInt[2] padding=[0, 0], SymInt[2] output_padding=[0, 0], SymInt groups=1, SymInt[2] dilation=[1, 1]) -> "
      "Tensor");
  add_convolutions<3>(
      ops,
      "conv3d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], SymInt[3] padding=[0, 0, 0], "
      "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
      "conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], str "
      "padding=\"valid\", "
      "SymInt[3] dilation=[1, 1, 1], SymInt groups=1) -> Tensor",
      "conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, SymInt[3] stride=[1, 1, 1], "
      "SymInt[3] padding=[0, 0, 0], SymInt[3] output_padding=[0, 0, 0], SymInt groups=1, SymInt[3] dilation=[1, 1, 1]) "
      "-> Tensor");
}

}  // namespace tenon
