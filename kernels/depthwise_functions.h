// The functions of convolution.h where every channel is a group: channels in the lanes, a few points at a time.
#pragma once
#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/kernel.h"
#include "kernels/taps.h"

namespace tenon::kernels {

template <class T>
int convolution_depthwise_pack(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionPackParams>(args);
  const int64_t(&k)[3] = p.taps.kernel;
  T* to = buffer<T>(args, 1) + p.to + lo * k[0] * k[1] * k[2] * panel_width;
  for (int64_t panel = lo; panel < hi; ++panel) {
    const int64_t channel = panel * panel_width, channels = least(p.groups - channel, int64_t{panel_width});
    for (int64_t z = 0; z < k[0]; ++z)
      for (int64_t y = 0; y < k[1]; ++y, to += k[2] * panel_width)
        pack_panel(buffer<T>(args, 0) + p.from + channel * p.from_group + z * p.from_stride[0] + y * p.from_stride[1],
                   p.from_stride[2], p.from_group, channels, k[2], to);
  }
  return TENON_KERNEL_OK;
}

/// The taps of one row of results: weights begin at the first tap of a panel.
template <class T>
struct DepthwiseRow {
  const Axis* axis;  // three
  int64_t kernel[3];
  int64_t source_stride[3];
  int64_t point_step;  // from result to result
};

namespace detail {

/// Sums of `points` results of a whole panel, [points][16].
template <class T, int points>
void depthwise_sums(const DepthwiseRow<T>& row, const T* source, const T* weights, T* sums) {
  constexpr int per_panel = panel_width / lanes<T>;
  const Axis* a = row.axis;
  for (int v = 0; v < per_panel; ++v) {
    Vector<T> sum[points];
    for (int i = 0; i < points; ++i) sum[i] = Vector<T>{};
    for (int64_t z = 0; z < a[0].taps; ++z)
      for (int64_t y = 0; y < a[1].taps; ++y) {
        const T* at =
            source + z * a[0].tap_step * row.source_stride[0] + y * a[1].tap_step * row.source_stride[1] + v * lanes<T>;
        const T* w = weights +
                     (((a[0].kernel + z * a[0].kernel_step) * row.kernel[1] + a[1].kernel + y * a[1].kernel_step) *
                          row.kernel[2] +
                      a[2].kernel) *
                         panel_width +
                     v * lanes<T>;
        for (int64_t x = 0; x < a[2].taps; ++x) {
          const Vector<T> weight = load<T>(w);
#pragma GCC unroll 8
          for (int i = 0; i < points; ++i) sum[i] = fma(load<T>(at + i * row.point_step), weight, sum[i]);
          at += a[2].tap_step * row.source_stride[2];
          w += a[2].kernel_step * panel_width;
        }
      }
    for (int i = 0; i < points; ++i) store(sums + i * panel_width + v * lanes<T>, sum[i]);
  }
}

/// The same of the first `channels` of a panel, which alone may be read.
template <class T>
void depthwise_rest(const DepthwiseRow<T>& row, const T* source, const T* weights, int64_t channels, T* sums) {
  const Axis* a = row.axis;
  for (int64_t c = 0; c < channels; ++c) {
    T sum = 0;
    for (int64_t z = 0; z < a[0].taps; ++z)
      for (int64_t y = 0; y < a[1].taps; ++y)
        for (int64_t x = 0; x < a[2].taps; ++x)
          sum =
              fma(source[z * a[0].tap_step * row.source_stride[0] + y * a[1].tap_step * row.source_stride[1] +
                         x * a[2].tap_step * row.source_stride[2] + c],
                  weights[(((a[0].kernel + z * a[0].kernel_step) * row.kernel[1] + a[1].kernel + y * a[1].kernel_step) *
                               row.kernel[2] +
                           a[2].kernel + x * a[2].kernel_step) *
                              panel_width +
                          c],
                  sum);
    sums[c] = sum;
  }
}

}  // namespace detail

template <class T>
int convolution_depthwise(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionParams>(args);
  constexpr int points = 6;
  const ConvolutionTaps& t = p.taps;
  const int64_t taps = t.kernel[0] * t.kernel[1] * t.kernel[2], panels = ceil_div(p.groups, panel_width);
  const T* const bias = p.flags & epilogue_bias ? buffer<T>(args, 3) + p.bias : nullptr;
  const T* const residual =
      p.flags & epilogue_residual ? buffer<T>(args, bias != nullptr ? 4 : 3) + p.residual : nullptr;
  const bool cut = p.flags & epilogue_relu;
  T sums[points * panel_width];
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t y = i % p.size[1], z = i / p.size[1] % p.size[0], n = i / p.size[1] / p.size[0];
    Axis axis[3] = {axis_of(t, 0, p.size[0], z % phases(t, 0)), axis_of(t, 1, p.size[1], y % phases(t, 1)), {}};
    const int64_t from = n * p.source_batch +
                         (z / axis[0].out_step * axis[0].step + axis[0].offset) * p.source_stride[0] +
                         (y / axis[1].out_step * axis[1].step + axis[1].offset) * p.source_stride[1];
    const int64_t to = n * p.out_batch + z * p.out_stride[0] + y * p.out_stride[1];
    const int64_t other = n * p.residual_batch + z * p.residual_stride[0] + y * p.residual_stride[1];
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t channel = panel * panel_width, channels = least(p.groups - channel, int64_t{panel_width});
      const T* weights = buffer<T>(args, 1) + p.weights + panel * taps * panel_width;
      for (int64_t phase = 0; phase < phases(t, 2); ++phase) {
        axis[2] = axis_of(t, 2, p.size[2], phase);
        const DepthwiseRow<T> row{axis,
                                  {t.kernel[0], t.kernel[1], t.kernel[2]},
                                  {p.source_stride[0], p.source_stride[1], p.source_stride[2]},
                                  axis[2].step * p.source_stride[2]};
        const T* source = buffer<T>(args, 0) + p.source + from + axis[2].offset * p.source_stride[2] + channel;
        for (int64_t x = 0; x < axis[2].grid;) {
          const T* at = source + x * row.point_step;
          int64_t count = 1;
          if (channels < panel_width) detail::depthwise_rest(row, at, weights, channels, sums);
          else if (x + points <= axis[2].grid) {
            detail::depthwise_sums<T, points>(row, at, weights, sums);
            count = points;
          } else detail::depthwise_sums<T, 1>(row, at, weights, sums);
          for (int64_t k = 0; k < count; ++k, ++x) {
            T* out = buffer<T>(args, 2) + p.out + to + axis[2].place(x) * p.out_stride[2] + channel * p.out_channel;
            const T* add = residual == nullptr ? nullptr
                                               : residual + other + axis[2].place(x) * p.residual_stride[2] +
                                                     channel * p.residual_channel;
            for (int64_t c = 0; c < channels; ++c) {
              T sum = sums[k * panel_width + c];
              if (bias != nullptr) sum = sum + bias[(channel + c) * p.bias_step];
              if (add != nullptr) sum = sum + add[c * p.residual_channel];
              out[c * p.out_channel] = cut ? relu(sum) : sum;
            }
          }
        }
      }
    }
  }
  return TENON_KERNEL_OK;
}

template <class T>
int convolution_depthwise_weight(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionWeightParams>(args);
  const ConvolutionTaps& t = p.taps;
  const int64_t images = p.batch * p.size[0], step = t.stride[2] * p.source_stride[2];
  const int64_t chunk_rows = greatest(int64_t{1}, chunk_terms / greatest(int64_t{1}, p.size[2]));
  constexpr int per_panel = panel_width / lanes<T>;
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t ky = i % t.kernel[1], kz = i / t.kernel[1] % t.kernel[0], panel = i / t.kernel[1] / t.kernel[0];
    const int64_t channel = panel * panel_width, channels = least(p.groups - channel, int64_t{panel_width});
    const T* points = buffer<T>(args, 1) + p.points + panel * images * p.size[1] * p.size[2] * panel_width;
    const T* source = buffer<T>(args, 0) + p.source + channel +
                      (kz * t.dilation[0] - t.padding[0]) * p.source_stride[0] +
                      (ky * t.dilation[1] - t.padding[1]) * p.source_stride[1] - t.padding[2] * p.source_stride[2];
    for (int64_t kx = 0; kx < t.kernel[2]; ++kx) {
      T total[panel_width] = {};
      for (int64_t first = 0; first < images * p.size[1]; first += chunk_rows) {
        const int64_t last = least(images * p.size[1], first + chunk_rows);
        T part[panel_width] = {};
        auto row_of = [&](int64_t r) {
          const int64_t y = r % p.size[1], z = r / p.size[1] % p.size[0], n = r / p.size[1] / p.size[0];
          return source + n * p.source_batch + z * t.stride[0] * p.source_stride[0] +
                 y * t.stride[1] * p.source_stride[1] + kx * t.dilation[2] * p.source_stride[2];
        };
        if (channels == panel_width) {
          Vector<T> sum[per_panel] = {};
          for (int64_t r = first; r < last; ++r) {
            const T* at = row_of(r);
            const T* w = points + r * p.size[2] * panel_width;
            for (int64_t x = 0; x < p.size[2]; ++x, at += step, w += panel_width)
#pragma GCC unroll 8
              for (int v = 0; v < per_panel; ++v)
                sum[v] = fma(load<T>(at + v * lanes<T>), load<T>(w + v * lanes<T>), sum[v]);
          }
          for (int v = 0; v < per_panel; ++v) store(part + v * lanes<T>, sum[v]);
        } else {
          for (int64_t r = first; r < last; ++r) {
            const T* at = row_of(r);
            const T* w = points + r * p.size[2] * panel_width;
            for (int64_t x = 0; x < p.size[2]; ++x, at += step, w += panel_width)
              for (int64_t c = 0; c < channels; ++c) part[c] = fma(at[c], w[c], part[c]);
          }
        }
        for (int c = 0; c < panel_width; ++c) total[c] = first == 0 ? part[c] : total[c] + part[c];
      }
      T* out = buffer<T>(args, 2) + p.out + channel * p.out_group + kz * p.out_stride[0] + ky * p.out_stride[1] +
               kx * p.out_stride[2];
      for (int64_t c = 0; c < channels; ++c) out[c * p.out_group] = total[c];
    }
  }
  return TENON_KERNEL_OK;
}

}  // namespace tenon::kernels
