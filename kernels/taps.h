// The taps of a convolution along one dimension: which places of the source a place of the result reads.
#pragma once
#include "kernels/convolution.h"

namespace tenon::kernels {

/// Results at phase + t * out_step, for t in [0, grid), read the source at t * step + offset + i * tap_step with weight
/// kernel + i * kernel_step, for i in [0, taps).
struct Axis {
  int64_t grid, out_step, phase, step, taps, offset, tap_step, kernel, kernel_step;

  int64_t place(int64_t t) const { return phase + t * out_step; }
};

inline int64_t phases(const ConvolutionTaps& t, int d) { return t.gradient ? t.stride[d] : 1; }

/// The phase of the results that tap k reaches.
inline int64_t phase_of(const ConvolutionTaps& t, int d, int64_t k) {
  if (!t.gradient) return 0;
  const int64_t rest = (k * t.dilation[d] - t.padding[d]) % t.stride[d];
  return rest < 0 ? rest + t.stride[d] : rest;
}
inline int64_t taps_before(const ConvolutionTaps& t, int d, int64_t phase) {
  int64_t count = 0;
  for (int64_t k = 0; k < t.kernel[d]; ++k) count += phase_of(t, d, k) < phase;
  return count;
}

/// Taps are in ascending order of the places they read.
inline Axis axis_of(const ConvolutionTaps& t, int d, int64_t size, int64_t phase) {
  if (!t.gradient) return {size, 1, 0, t.stride[d], t.kernel[d], -t.padding[d], t.dilation[d], 0, 1};
  const int64_t stride = t.stride[d];
  Axis a{size > phase ? (size - phase + stride - 1) / stride : 0, stride, phase, 1, 0, 0, 0, 0, 0};
  int64_t previous = 0;
  for (int64_t k = t.kernel[d]; k-- > 0;) {
    if (phase_of(t, d, k) != phase) continue;
    const int64_t offset = (phase + t.padding[d] - k * t.dilation[d]) / stride;  // no rest
    if (a.taps == 0) {
      a.offset = offset;
      a.kernel = k;
    } else if (a.taps == 1) {
      a.tap_step = offset - a.offset;
      a.kernel_step = k - previous;
    }
    previous = k;
    ++a.taps;
  }
  return a;
}

/// A phase of all three dimensions.
struct Phase {
  Axis axis[3];
  int64_t taps, taps_before;

  Phase(const ConvolutionTaps& t, const int64_t (&size)[3], int64_t index) {
    const int64_t x = index % phases(t, 2), y = index / phases(t, 2) % phases(t, 1),
                  z = index / phases(t, 2) / phases(t, 1);
    const int64_t at[3] = {z, y, x};
    for (int d = 0; d < 3; ++d) axis[d] = axis_of(t, d, size[d], at[d]);
    taps = axis[0].taps * axis[1].taps * axis[2].taps;
    taps_before =
        kernels::taps_before(t, 0, z) * t.kernel[1] * t.kernel[2] +
        axis[0].taps * (kernels::taps_before(t, 1, y) * t.kernel[2] + axis[1].taps * kernels::taps_before(t, 2, x));
  }
  int64_t points() const { return axis[0].grid * axis[1].grid * axis[2].grid; }
};

inline int64_t all_phases(const ConvolutionTaps& t) { return phases(t, 0) * phases(t, 1) * phases(t, 2); }

/// A walk over the points of a phase, over all images.
struct Point {
  int64_t n, z, y, x;
  static Point at(const Axis (&axis)[3], int64_t i) {
    Point p;
    p.x = i % axis[2].grid, i /= axis[2].grid;
    p.y = i % axis[1].grid, i /= axis[1].grid;
    p.z = i % axis[0].grid, p.n = i / axis[0].grid;
    return p;
  }
  /// The first point of the next row.
  void next_row(const Axis (&axis)[3]) {
    x = 0;
    if (++y < axis[1].grid) return;
    y = 0;
    if (++z < axis[0].grid) return;
    z = 0;
    ++n;
  }
};

}  // namespace tenon::kernels
