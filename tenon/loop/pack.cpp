#include "tenon/loop/pack.h"

#include "tenon/base/error.h"

namespace tenon::loop {
namespace {

bool is_depthwise(const Sizes& weights, SymInt groups) {
  return weights[0] == groups && weights[1] == SymInt(1) && groups != SymInt(1);
}
// Of the untransposed convolution: weights [o, c/groups, ...]. The forward sum runs over input channels.
bool sums_over_second(ConvPart part, bool transposed) { return (part == ConvPart::forward) != transposed; }

}  // namespace

bool is_depthwise(const Convolution& c) { return is_depthwise(c.w.sizes, c.groups); }

Expr panel_slot(DType dtype, Expr column) {
  if (dtype != DType::bf16) return column;
  auto number = [&](int64_t n) { return constant(*column.arena, n, Compute::i64); };
  const Expr four = call(Fn::floor_div, column, number(4));
  return call(Fn::remainder, column, number(4)) + call(Fn::remainder, four, number(2)) * number(8) +
         call(Fn::floor_div, four, number(2)) * number(4);
}

Sizes taken_stride(const Convolution& c) {
  Sizes out = c.stride;
  const Operand& steps = c.transposed ? c.x : c.y;
  for (size_t i = 0; i < out.size(); ++i) {
    const SymInt reach = (c.w.sizes[2 + i] - 1) * c.dilation[i] + 1;
    if (steps.sizes[2 + i] == SymInt(1)) out[i] = sym::min(out[i], sym::max(reach, 1));
  }
  return out;
}

Pack pack_of(const Gemm& gemm, BufferId to) {
  Pack pack{.from = gemm.b, .to = to};
  if (pack.from.strides[0] == SymInt(0)) pack.from.sizes[0] = 1;
  return pack;
}

Pack pack_of(const Convolution& c, BufferId to) {
  expect(c.part != ConvPart::weight_gradient, "the gradient of weights has no weights to pack");
  return {.from = c.w,
          .to = to,
          .of_convolution = true,
          .part = c.part,
          .stride = taken_stride(c),
          .padding = c.padding,
          .dilation = c.dilation,
          .transposed = c.transposed,
          .groups = c.groups};
}

Sizes packed_sizes(const Pack& p) {
  const Sizes& s = p.from.sizes;
  auto panels = [](SymInt columns) { return sym::ceil_div(columns, panel_width); };
  if (!p.of_convolution) return {s[0], panels(s[2]), s[1], panel_width};
  SymInt taps = 1;
  for (size_t i = 2; i < s.size(); ++i) taps *= s[i];
  if (is_depthwise(s, p.groups)) return {1, panels(p.groups), taps, panel_width};
  SymInt first = sym::floor_div(s[0], p.groups);
  bool second = sums_over_second(p.part, p.transposed);
  return {p.groups, panels(second ? first : s[1]), taps * (second ? s[1] : first), panel_width};
}

Gemm with_packed(Gemm gemm, BufferId packed) {
  Sizes sizes = packed_sizes(pack_of(gemm, packed));
  bool shared = gemm.b.strides[0] == SymInt(0);
  gemm.b = {packed, gemm.b.sizes, {shared ? SymInt(0) : sizes[1] * sizes[2] * sizes[3], 0, 0}, 0};
  gemm.packed = true;
  return gemm;
}

Convolution with_packed(Convolution c, BufferId packed) {
  c.w.buffer = packed;
  c.w.strides = Sizes(c.w.sizes.size(), 0);
  c.w.offset = 0;
  c.packed = true;
  return c;
}

}  // namespace tenon::loop
