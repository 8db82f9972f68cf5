#include "tenon/templates/taps.h"

#include <utility>

#include "tenon/templates/pack.h"

namespace tenon::templates {
namespace {
using Int = std::int64_t;

Int ceil_div_signed(Int a, Int b) { return a >= 0 ? ceil_div(a, b) : -(-a / b); }  // b > 0

}  // namespace

Taps::Taps(const Axis (&axes)[3], const Int* source_stride, const Int* weight_stride) {
  for (int d = 0; d < 3; ++d) {
    grid_[d] = axes[d].grid;
    step_[d] = axes[d].step;
    source_[d] = axes[d].source;
    stride_[d] = source_stride[d];
  }
  taps_.reserve(axes[0].taps.size() * axes[1].taps.size() * axes[2].taps.size());
  for (const Axis::Tap& z : axes[0].taps)
    for (const Axis::Tap& y : axes[1].taps)
      for (const Axis::Tap& x : axes[2].taps) {
        Tap tap;
        tap.offset[0] = z.offset, tap.offset[1] = y.offset, tap.offset[2] = x.offset;
        tap.source = z.offset * stride_[0] + y.offset * stride_[1] + x.offset * stride_[2];
        tap.weight = z.weight * weight_stride[0] + y.weight * weight_stride[1] + x.weight * weight_stride[2];
        tap.lo = ceil_div_signed(-x.offset, step_[2]);
        tap.hi = ceil_div_signed(source_[2] - x.offset, step_[2]);
        taps_.push_back(tap);
      }
}

int Taps::runs(Int first, Int count, Run* to) const {
  int number = 0;
  for (Int column = 0; column < count;) {
    Int at = first + column;
    Run run{column, 0, at / (grid_[1] * grid_[2]), at / grid_[2] % grid_[1], at % grid_[2]};
    run.count = grid_[2] - run.x < count - column ? grid_[2] - run.x : count - column;
    column += run.count;
    to[number++] = run;
  }
  return number;
}

void Taps::inside(const Run& run, const Tap& tap, Int& lo, Int& hi) const {
  Int z = run.z * step_[0] + tap.offset[0], y = run.y * step_[1] + tap.offset[1];
  lo = tap.lo - run.x;
  hi = tap.hi - run.x;
  if (lo < 0) lo = 0;
  if (hi > run.count) hi = run.count;
  if (z < 0 || z >= source_[0] || y < 0 || y >= source_[1] || hi < lo) lo = hi = 0;
}

Axis forward_axis(const ConvShape& s, int d) {
  Axis axis{s.out[d], s.stride[d], s.in[d], {}};
  for (Int k = 0; k < s.kernel[d]; ++k) axis.taps.push_back({k * s.dilation[d] - s.padding[d], k});
  return axis;
}

Axis gradient_axis(const ConvShape& s, int d, Int phase) {
  // Output o meets input i through tap k where o * stride = i + padding - k * dilation; i = phase + t * stride.
  Axis axis{ceil_div_signed(s.in[d] - phase, s.stride[d]), 1, s.out[d], {}};
  for (Int k = 0; k < s.kernel[d]; ++k) {
    Int from = phase + s.padding[d] - k * s.dilation[d];
    if (from % s.stride[d] == 0) axis.taps.push_back({from / s.stride[d], k});
  }
  return axis;
}

ConvShape untransposed(const ConvShape& shape) {
  ConvShape result = shape;
  result.transposed = false;
  std::swap(result.in_channels, result.out_channels);
  for (int d = 0; d < 3; ++d) std::swap(result.in[d], result.out[d]);
  return result;
}

void ConvShape::set_out(const Int (&output_padding)[3]) {
  for (int d = 0; d < 3; ++d) {
    Int reach = dilation[d] * (kernel[d] - 1) + 1;
    if (transposed) {
      out[d] = (in[d] - 1) * stride[d] - 2 * padding[d] + reach + output_padding[d];
    } else {
      Int room = in[d] + 2 * padding[d] - reach;
      out[d] = room < 0 ? 0 : room / stride[d] + 1;
    }
  }
}

}  // namespace tenon::templates
