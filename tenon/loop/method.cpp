#include "tenon/loop/method.h"

#include "tenon/loop/pack.h"

namespace tenon::loop {
namespace {

constexpr int64_t positions = 16;
/// Of a sum for the gradient of weights: of fewer, what the transforms round outweighs what the sum itself does.
constexpr double least_tiles = 128;

bool forward(ConvPart part) { return part == ConvPart::forward; }

bool has_nine_taps(const Sizes& weights, const Sizes& stride, const Sizes& dilation) {
  if (weights.size() != 4) return false;
  for (size_t i = 0; i < 2; ++i)
    if (!(weights[2 + i] == SymInt(3)) || !(stride[i] == SymInt(1)) || !(dilation[i] == SymInt(1))) return false;
  return true;
}

bool holds_transformed(const Buffer& packed, const Sizes& weights, bool forward) {
  return packed.sizes.size() == 4 && packed.sizes[2] == weights[forward ? 1 : 0] * SymInt(positions);
}

bool side_by_side(const Operand& o) { return o.strides[1] == SymInt(1); }

bool has_winograd_shape(const Program& program, const Convolution& c) {
  if (c.transposed || !(c.groups == SymInt(1)) || !has_nine_taps(c.w.sizes, c.stride, c.dilation)) return false;
  if (program.buffers[c.y.buffer].dtype != DType::f32) return false;
  for (SymInt e : c.padding)
    if (!e.is_int()) return false;
  for (SymInt channels : {c.w.sizes[0], c.w.sizes[1]})
    if (!channels.is_int() || channels.as_int() < panel_width || channels.as_int() % panel_width != 0) return false;
  return true;
}

bool can_be_winograd(const Program& program, const Convolution& c) {
  const Operand& to = forward(c.part) ? c.y : c.x;
  if (c.part == ConvPart::weight_gradient || !has_winograd_shape(program, c)) return false;
  return side_by_side(to) && (!c.epilogue.has_residual || side_by_side(c.epilogue.residual)) &&
         (!c.epilogue.has_bias || c.epilogue.bias.strides[0] == SymInt(1));
}

/// Sizes that only the run tells count as 1: a batch, mostly.
double number(SymInt e) { return e.is_int() ? static_cast<double>(e.as_int()) : 1; }

/// Tiles of the image that a convolution of nine taps gives, or its gradient takes.
double tiles_of(const Operand& image) {
  auto halves = [](double e) { return static_cast<double>((static_cast<int64_t>(e) + 1) / 2); };
  return number(image.sizes[0]) * halves(number(image.sizes[2])) * halves(number(image.sizes[3]));
}

bool is_less_work(const Convolution& c, const MachineCosts& m) {
  const Operand& to = forward(c.part) ? c.y : c.x;
  const double batch = number(to.sizes[0]), height = number(to.sizes[2]), width = number(to.sizes[3]);
  const double tiles = tiles_of(to);
  const double pairs = number(c.w.sizes[0]) * number(c.w.sizes[1]);
  const double channels = number(c.w.sizes[0]) + number(c.w.sizes[1]);
  const double direct = 9 * batch * height * width * pairs / m.lanes / m.cores + 9 * 4 * pairs / m.bytes;
  const double transforms = tiles * channels / panel_width * m.tile + (c.packed ? 0 : pairs * m.weight);
  const double winograd = (positions * tiles * pairs / m.lanes + transforms) / m.cores + 16 * 4 * pairs / m.bytes;
  return winograd * 1.1 < direct;
}

}  // namespace

ConvMethod weight_gradient_method(const Program& program, const Convolution& c, const MachineCosts& m) {
  if (!has_winograd_shape(program, c) || !side_by_side(c.x) || !side_by_side(c.y)) return ConvMethod::direct;
  const double pairs = number(c.w.sizes[0]) * number(c.w.sizes[1]), tiles = tiles_of(c.y);
  if (tiles < least_tiles) return ConvMethod::direct;
  const double channels = number(c.w.sizes[0]) + number(c.w.sizes[1]);
  const double direct = 9 * number(c.y.sizes[0]) * number(c.y.sizes[2]) * number(c.y.sizes[3]) * pairs / m.lanes;
  const double winograd =
      positions * tiles * pairs / m.lanes + tiles * channels / panel_width * m.tile + pairs * m.weight;
  return winograd * 1.1 < direct ? ConvMethod::winograd : ConvMethod::direct;
}

bool has_methods(const Program& program, const Convolution& c) { return !c.packed && can_be_winograd(program, c); }

ConvMethod method_of(const Program& program, const Convolution& c, const MachineCosts& costs) {
  if (!can_be_winograd(program, c)) return ConvMethod::direct;
  const bool winograd =
      c.packed ? holds_transformed(program.buffers[c.w.buffer], c.w.sizes, forward(c.part)) : is_less_work(c, costs);
  return winograd ? ConvMethod::winograd : ConvMethod::direct;
}

ConvMethod method_of(const Program& program, const Pack& p) {
  const bool winograd = p.of_convolution && !p.transposed && p.groups == SymInt(1) &&
                        has_nine_taps(p.from.sizes, p.stride, p.dilation) &&
                        holds_transformed(program.buffers[p.to], p.from.sizes, forward(p.part));
  return winograd ? ConvMethod::winograd : ConvMethod::direct;
}

Sizes transformed_sizes(const Pack& p) {
  const SymInt columns = p.from.sizes[forward(p.part) ? 0 : 1], inner = p.from.sizes[forward(p.part) ? 1 : 0];
  return {1, sym::ceil_div(columns, panel_width), inner * SymInt(positions), panel_width};
}

}  // namespace tenon::loop
