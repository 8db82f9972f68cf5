// The functions of convolution.h where every channel is a group: channels in the lanes, a few points at a time.
#pragma once
#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/kernel.h"
#include "kernels/taps.h"

namespace tenon::kernels {

/// The channels of a panel. The last one overlaps the one before where channels are no multiple of its width.
struct PanelChannels {
  int64_t first, count;
  PanelChannels(int64_t groups, int64_t panel)
      : first(greatest(int64_t{0}, least(panel * panel_width, groups - panel_width))),
        count(least(groups, int64_t{panel_width})) {}
};

template <class T>
int convolution_depthwise_pack(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionPackParams>(args);
  const int64_t(&k)[3] = p.taps.kernel;
  T* to = buffer<T>(args, 1) + p.to + lo * k[0] * k[1] * k[2] * panel_width;
  for (int64_t panel = lo; panel < hi; ++panel) {
    const PanelChannels channels(p.groups, panel);
    for (int64_t z = 0; z < k[0]; ++z)
      for (int64_t y = 0; y < k[1]; ++y, to += k[2] * panel_width)
        pack_panel(
            buffer<T>(args, 0) + p.from + channels.first * p.from_group + z * p.from_stride[0] + y * p.from_stride[1],
            p.from_stride[2], p.from_group, channels.count, k[2], to);
  }
  return TENON_KERNEL_OK;
}

/// Taps [first, last) of an axis.
struct TapRange {
  int64_t first, last;
  /// Those that read within [lo, hi) for result t.
  static TapRange within(const Axis& a, int64_t t, int64_t lo, int64_t hi) {
    TapRange range{0, a.taps};
    const int64_t at = t * a.step + a.offset;
    while (range.first < range.last && at + range.first * a.tap_step < lo) ++range.first;
    while (range.first < range.last && at + (range.last - 1) * a.tap_step >= hi) --range.last;
    return range;
  }
};

/// A row of results: taps, and what happens to finished sums.
template <class T>
struct DepthwiseRow {
  const Axis* axis;   // three
  TapRange range[2];  // of its z and y
  int64_t kernel[3], source_stride[3];
  int64_t bias_step, residual_channel, residual_row, residual_stride, out_channel, out_row, out_stride;
  bool has_bias, has_residual, relu;

  int64_t tap(int64_t z, int64_t y) const {
    return ((axis[0].kernel + z * axis[0].kernel_step) * kernel[1] + axis[1].kernel + y * axis[1].kernel_step) *
               kernel[2] +
           axis[2].kernel;
  }
  int64_t place(int64_t z, int64_t y) const {
    return z * axis[0].tap_step * source_stride[0] + y * axis[1].tap_step * source_stride[1];
  }
  bool side_by_side() const {
    return out_channel == 1 && (!has_bias || bias_step == 1) && (!has_residual || residual_channel == 1);
  }
};

/// What belongs to a panel of channels of such a row, from its first channel on.
template <class T>
struct DepthwisePanel {
  const T *source, *weights;  // source: what tap 0 of result 0 reads
  const T *bias, *residual;   // null: none. Residual and out: of place 0
  T* out;

  void next(const DepthwiseRow<T>& row, int64_t panels = 1) {
    source += panels * panel_width;
    weights += panels * row.kernel[0] * row.kernel[1] * row.kernel[2] * panel_width;
    if (row.has_bias) bias += panels * panel_width * row.bias_step;
    if (row.has_residual) residual += panels * panel_width * row.residual_channel;
    out += panels * panel_width * row.out_channel;
  }
  /// The same of the row of results below it, one place further down in the source.
  DepthwisePanel below(const DepthwiseRow<T>& row) const {
    return {source + row.source_stride[1], weights, bias, row.has_residual ? residual + row.residual_row : nullptr,
            out + row.out_row};
  }
};

namespace detail {

template <class T>
TENON_INLINE void finish_element(const DepthwiseRow<T>& row, const DepthwisePanel<T>& at, int64_t x, int64_t c, T sum) {
  const int64_t place = row.axis[2].place(x);
  if (row.has_bias) sum = sum + at.bias[c * row.bias_step];
  if (row.has_residual) sum = sum + at.residual[place * row.residual_stride + c * row.residual_channel];
  at.out[place * row.out_stride + c * row.out_channel] = row.relu ? relu(sum) : sum;
}

/// Sums of results [x, x + points), [points][lanes<T>], one by one.
template <class T>
__attribute__((noinline)) void finish_elements(const DepthwiseRow<T>& row, const DepthwisePanel<T>& at, int64_t x,
                                               int64_t points, int64_t channel, const T* sums) {
  for (int64_t c = 0; c < lanes<T>; ++c)
    for (int64_t i = 0; i < points; ++i) finish_element(row, at, x + i, channel + c, sums[i * lanes<T> + c]);
}

/// Sums of results [x, x + points), lanes v * lanes<T> and on of a panel, to where they belong.
template <class T, int points>
TENON_INLINE void finish_points(const DepthwiseRow<T>& row, const DepthwisePanel<T>& at, int64_t x, int v,
                                Vector<T> (&sum)[points]) {
  if (!row.side_by_side()) {
    T kept[points * lanes<T>];
#pragma GCC unroll 8
    for (int i = 0; i < points; ++i) store(kept + i * lanes<T>, sum[i]);
    return finish_elements(row, at, x, points, v * lanes<T>, kept);
  }
  const int64_t place = row.axis[2].place(x);
  if (row.has_bias) {
    const Vector<T> bias = load<T>(at.bias + v * lanes<T>);
#pragma GCC unroll 8
    for (int i = 0; i < points; ++i) sum[i] = sum[i] + bias;
  }
  if (row.has_residual) {
    const T* from = at.residual + place * row.residual_stride + v * lanes<T>;
    const int64_t next = row.axis[2].out_step * row.residual_stride;
#pragma GCC unroll 8
    for (int i = 0; i < points; ++i, from += next) sum[i] = sum[i] + load<T>(from);
  }
  if (row.relu) {
#pragma GCC unroll 8
    for (int i = 0; i < points; ++i) sum[i] = relu(sum[i]);
  }
  T* to = at.out + place * row.out_stride + v * lanes<T>;
  const int64_t next = row.axis[2].out_step * row.out_stride;
#pragma GCC unroll 8
  for (int i = 0; i < points; ++i) store(to + i * next, sum[i]);
}

/// The places of the source, counted from the first that results [x, x + points) read, that are there.
struct InputRange {
  int64_t first, last;
};

/// Results [x, x + points) of some panels where the row has `taps` taps side by side, `step` places from one result to
/// the next: each input is loaded once for a row of taps. At an edge, inputs outside of `inside` are left out.
template <class T, int points, int taps, int step, bool edge>
__attribute__((noinline)) void depthwise_run(const DepthwiseRow<T>& row, DepthwisePanel<T> panel, int64_t panels,
                                             int64_t x, InputRange inside) {
  constexpr int per_panel = panel_width / lanes<T>, inputs = (points - 1) * step + taps;
  const Axis* a = row.axis;
  const int64_t place = row.source_stride[2], kernel_step = a[2].kernel_step * panel_width;
  const int64_t row_step = a[1].tap_step * row.source_stride[1];
  const int64_t kernel_row = a[1].kernel_step * row.kernel[2] * panel_width;
  const int64_t z = row.range[0].first, depth = row.range[0].last - z;
  const int64_t y = row.range[1].first, lines = row.range[1].last - y;
  const int64_t first = x * step * place + row.place(z, y), first_tap = row.tap(z, y) * panel_width;
  const int64_t plane = row.place(z + 1, y) - row.place(z, y);
  const int64_t kernel_plane = (row.tap(z + 1, y) - row.tap(z, y)) * panel_width;
  for (; panels > 0; --panels, panel.next(row))
    for (int v = 0; v < per_panel; ++v) {
      Vector<T> sum[points];
#pragma GCC unroll 8
      for (int i = 0; i < points; ++i) sum[i] = Vector<T>{};
      for (int64_t d = 0; d < depth; ++d) {
        const T* line = panel.source + first + d * plane + v * lanes<T>;
        const T* line_weights = panel.weights + first_tap + d * kernel_plane + v * lanes<T>;
        for (int64_t n = lines; n > 0; --n, line += row_step, line_weights += kernel_row) {
          Vector<T> weight[taps];
#pragma GCC unroll 8
          for (int k = 0; k < taps; ++k) {
            weight[k] = load<T>(line_weights + k * kernel_step);
            keep(weight[k]);
          }
          const T* at = line;
#pragma GCC unroll 32
          for (int i = 0; i < inputs; ++i, at += place) {
            asm("" : "+r"(at));  // one running pointer, not one for each input
            if (edge && (i < inside.first || i >= inside.last)) continue;
            Vector<T> input = load<T>(at);
            keep(input);
#pragma GCC unroll 8
            for (int o = 0; o < points; ++o)
              if (i - o * step >= 0 && i - o * step < taps) sum[o] = fma(input, weight[i - o * step], sum[o]);
          }
        }
      }
      finish_points<T, points>(row, panel, x, v, sum);
    }
}

/// The same for two rows of results with three rows of taps that are all there: what both read is loaded once.
template <class T, int points, bool edge>
__attribute__((noinline)) void depthwise_pair(const DepthwiseRow<T>& row, DepthwisePanel<T> panel, int64_t panels,
                                              int64_t x, InputRange inside) {
  constexpr int per_panel = panel_width / lanes<T>, taps = 3, inputs = points - 1 + taps;
  const int64_t place = row.source_stride[2], row_step = row.source_stride[1], first = x * place;
  for (; panels > 0; --panels, panel.next(row))
    for (int v = 0; v < per_panel; ++v) {
      Vector<T> upper[points], lower[points];
#pragma GCC unroll 8
      for (int i = 0; i < points; ++i) upper[i] = lower[i] = Vector<T>{};
      const T* line = panel.source + first + v * lanes<T>;
      const T* weights = panel.weights + v * lanes<T>;
#pragma GCC unroll 4
      for (int l = 0; l < taps + 1; ++l, line += row_step) {
        Vector<T> weight[2][taps];  // of the rows of taps that the upper and the lower results have here
#pragma GCC unroll 4
        for (int k = 0; k < taps; ++k) {
          weight[0][k] = load<T>(weights + ((l < taps ? l : 0) * taps + k) * panel_width);
          weight[1][k] = load<T>(weights + ((l > 0 ? l - 1 : 0) * taps + k) * panel_width);
          keep(weight[0][k]);
          keep(weight[1][k]);
        }
        const T* at = line;
#pragma GCC unroll 32
        for (int i = 0; i < inputs; ++i, at += place) {
          asm("" : "+r"(at));
          if (edge && (i < inside.first || i >= inside.last)) continue;
          Vector<T> input = load<T>(at);
          keep(input);
#pragma GCC unroll 8
          for (int o = 0; o < points; ++o)
            if (i - o >= 0 && i - o < taps) {
              if (l < taps) upper[o] = fma(input, weight[0][i - o], upper[o]);
              if (l > 0) lower[o] = fma(input, weight[1][i - o], lower[o]);
            }
        }
      }
      finish_points<T, points>(row, panel, x, v, upper);
      finish_points<T, points>(row, panel.below(row), x, v, lower);
    }
}

/// Taps in a row that depthwise_run is made for; of 7 only with steps of 1, and where their weights fit into registers
/// beside eight sums.
inline bool has_runs(const Axis& a) {
  if (a.tap_step != 1 || (a.step != 1 && a.step != 2)) return false;
  return a.taps == 3 || a.taps == 5 || (a.taps == 7 && a.step == 1 && vector_registers == 32);
}
template <class T, int points, bool edge>
void depthwise_run_of(const DepthwiseRow<T>& row, const DepthwisePanel<T>& panel, int64_t panels, int64_t x,
                      InputRange inside) {
  const int64_t taps = row.axis[2].taps, step = row.axis[2].step;
  if (taps == 3 && step == 1) depthwise_run<T, points, 3, 1, edge>(row, panel, panels, x, inside);
  else if (taps == 3) depthwise_run<T, points, 3, 2, edge>(row, panel, panels, x, inside);
  else if (taps == 5 && step == 1) depthwise_run<T, points, 5, 1, edge>(row, panel, panels, x, inside);
  else if (taps == 5) depthwise_run<T, points, 5, 2, edge>(row, panel, panels, x, inside);
  else if constexpr (vector_registers == 32) depthwise_run<T, points, 7, 1, edge>(row, panel, panels, x, inside);
}

/// Results [x, x + points) of the row, all channels of some panels.
template <class T, int points>
void depthwise_points(const DepthwiseRow<T>& row, DepthwisePanel<T> panel, int64_t panels, int64_t x, TapRange range) {
  constexpr int per_panel = panel_width / lanes<T>;
  const Axis* a = row.axis;
  const int64_t step = a[2].step * row.source_stride[2], tap_step = a[2].tap_step * row.source_stride[2];
  const int64_t kernel_step = a[2].kernel_step * panel_width, taps = range.last - range.first;
  const int64_t row_step = a[1].tap_step * row.source_stride[1];
  const int64_t kernel_row = a[1].kernel_step * row.kernel[2] * panel_width;
  int64_t three = 3 * step;
  asm("" : "+r"(three));  // points are addressed by few registers, not by a pointer each
  for (; panels > 0; --panels, panel.next(row))
    for (int v = 0; v < per_panel; ++v) {
      Vector<T> sum[points];
#pragma GCC unroll 8
      for (int i = 0; i < points; ++i) sum[i] = Vector<T>{};
      for (int64_t z = row.range[0].first; z < row.range[0].last; ++z) {
        int64_t y = row.range[1].first;
        const T* line = panel.source + x * step + range.first * tap_step + row.place(z, y) + v * lanes<T>;
        const T* line_weights = panel.weights + row.tap(z, y) * panel_width + range.first * kernel_step + v * lanes<T>;
        for (; y < row.range[1].last; ++y, line += row_step, line_weights += kernel_row) {
          const T *at = line, *w = line_weights;
          for (int64_t k = 0; k < taps; ++k, at += tap_step, w += kernel_step) {
            const Vector<T> weight = load<T>(w);
            const T* far = at + 4 * step;
            asm("" : "+r"(far));
#pragma GCC unroll 8
            for (int i = 0; i < points; ++i) {
              const T* from = (i < 4 ? at : far) + (i % 4 == 3 ? three : i % 4 * step);
              sum[i] = fma(load<T>(from), weight, sum[i]);
            }
          }
        }
      }
      finish_points<T, points>(row, panel, x, v, sum);
    }
}

/// Result x of channels [first, last) of a panel, which alone may be read.
template <class T>
void depthwise_rest(const DepthwiseRow<T>& row, const DepthwisePanel<T>& panel, int64_t first, int64_t last, int64_t x,
                    TapRange range) {
  const Axis* a = row.axis;
  for (int64_t c = first; c < last; ++c) {
    T sum = 0;
    for (int64_t z = row.range[0].first; z < row.range[0].last; ++z)
      for (int64_t y = row.range[1].first; y < row.range[1].last; ++y)
        for (int64_t k = range.first; k < range.last; ++k)
          sum = fma(panel.source[row.place(z, y) + (x * a[2].step + k * a[2].tap_step) * row.source_stride[2] + c],
                    panel.weights[(row.tap(z, y) + k * a[2].kernel_step) * panel_width + c], sum);
    finish_element(row, panel, x, c, sum);
  }
}

}  // namespace detail

template <class T>
int convolution_depthwise(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionParams>(args);
  const ConvolutionTaps& t = p.taps;
  const T* const bias = p.flags & epilogue_bias ? buffer<T>(args, 3) + p.bias : nullptr;
  const T* const residual =
      p.flags & epilogue_residual ? buffer<T>(args, bias != nullptr ? 4 : 3) + p.residual : nullptr;
  const BlockEpilogue epilogue(args);
  int status = TENON_KERNEL_OK;
  Axis axis[3];
  DepthwiseRow<T> row;
  row.axis = axis;
  for (int d = 0; d < 3; ++d) {
    row.kernel[d] = t.kernel[d];
    row.source_stride[d] = p.source_stride[d];
  }
  row.bias_step = p.bias_step;
  row.residual_channel = p.residual_channel;
  row.residual_row = p.residual_stride[1];
  row.residual_stride = p.residual_stride[2];
  row.out_channel = p.out_channel;
  row.out_row = p.out_stride[1];
  row.out_stride = p.out_stride[2];
  row.has_bias = bias != nullptr;
  row.has_residual = residual != nullptr;
  row.relu = p.flags & epilogue_relu;
  const bool pairs = vector_registers == 32 && !t.gradient && t.kernel[0] == 1 && t.kernel[1] == 3 &&
                     t.kernel[2] == 3 && t.stride[1] == 1 && t.stride[2] == 1 && t.dilation[1] == 1 &&
                     t.dilation[2] == 1;
  const int64_t all_rows = p.batch * p.size[0] * p.size[1], all_panels = ceil_div(p.groups, panel_width);
  for (int64_t i = lo, rows = 1; i < hi; i += rows) {
    const int64_t block = i / all_rows, result_row = i % all_rows;
    const int64_t first_panel = all_panels * block / p.channel_blocks;
    const int64_t last_panel = all_panels * (block + 1) / p.channel_blocks;
    const int64_t y = result_row % p.size[1], z = result_row / p.size[1] % p.size[0],
                  n = result_row / p.size[1] / p.size[0];
    axis[0] = axis_of(t, 0, p.size[0], z % phases(t, 0));
    axis[1] = axis_of(t, 1, p.size[1], y % phases(t, 1));
    row.range[0] = TapRange::within(axis[0], z / axis[0].out_step, p.lo[0], p.hi[0]);
    row.range[1] = TapRange::within(axis[1], y / axis[1].out_step, p.lo[1], p.hi[1]);
    const bool all = row.range[0].last > 0 && row.range[1].first == 0 && row.range[1].last == axis[1].taps;
    const TapRange below = TapRange::within(axis[1], y + 1, p.lo[1], p.hi[1]);
    rows = pairs && all && i + 1 < hi && y + 1 < p.size[1] && below.last == axis[1].taps ? 2 : 1;
    const T* from = buffer<T>(args, 0) + p.source + n * p.source_batch +
                    (z / axis[0].out_step * axis[0].step + axis[0].offset) * p.source_stride[0] +
                    (y / axis[1].out_step * axis[1].step + axis[1].offset) * p.source_stride[1];
    T* out = buffer<T>(args, 2) + p.out + n * p.out_batch + z * p.out_stride[0] + y * p.out_stride[1];
    const T* add = residual == nullptr
                       ? nullptr
                       : residual + n * p.residual_batch + z * p.residual_stride[0] + y * p.residual_stride[1];
    for (int64_t phase = 0; phase < phases(t, 2); ++phase) {
      axis[2] = axis_of(t, 2, p.size[2], phase);
      const Axis& a = axis[2];
      int64_t whole = 0, whole_end = a.grid;  // results that all taps reach
      while (whole < whole_end && whole * a.step + a.offset < p.lo[2]) ++whole;
      while (whole < whole_end && (whole_end - 1) * a.step + a.offset + (a.taps - 1) * a.tap_step >= p.hi[2])
        --whole_end;
      // Some points of all panels, then the next: what they read stays in the first cache.
      const bool runs = detail::has_runs(a);
      for (int64_t x = 0; x < a.grid;) {
        const bool inside = x >= whole && x < whole_end;
        int64_t count = inside && x + 8 <= whole_end ? 8 : inside && x + 4 <= whole_end ? 4 : 1;
        if (runs) {
          const int64_t rest = a.grid - x;  // of 14 twice 7, of 9 not 8 and 1
          count = rest % 8 == 0 || rest > 14 ? 8 : rest % 7 == 0 ? 7 : rest >= 4 ? 4 : 1;
        }
        const TapRange range = inside ? TapRange{0, a.taps} : TapRange::within(a, x, p.lo[2], p.hi[2]);
        const int64_t first_input = x * a.step + a.offset, inputs = (count - 1) * a.step + a.taps;
        const detail::InputRange there{p.lo[2] - first_input, p.hi[2] - first_input};
        const bool edge = there.first > 0 || there.last < inputs;
        auto compute = [&](const DepthwisePanel<T>& panel, int64_t panels) {
          if constexpr (vector_registers == 32)
            if (rows == 2) {
              if (count == 8 && edge) return detail::depthwise_pair<T, 8, true>(row, panel, panels, x, there);
              if (count == 8) return detail::depthwise_pair<T, 8, false>(row, panel, panels, x, there);
              if (count == 7) return detail::depthwise_pair<T, 7, true>(row, panel, panels, x, there);
              if (count == 4) return detail::depthwise_pair<T, 4, true>(row, panel, panels, x, there);
              detail::depthwise_points<T, 1>(row, panel.below(row), panels, x, range);
            }
          if (runs && count == 8 && edge) detail::depthwise_run_of<T, 8, true>(row, panel, panels, x, there);
          else if (runs && count == 8) detail::depthwise_run_of<T, 8, false>(row, panel, panels, x, there);
          else if (runs && count == 7) detail::depthwise_run_of<T, 7, true>(row, panel, panels, x, there);
          else if (runs && count == 4) detail::depthwise_run_of<T, 4, true>(row, panel, panels, x, there);
          else if (count == 8) detail::depthwise_points<T, 8>(row, panel, panels, x, range);
          else if (count == 4) detail::depthwise_points<T, 4>(row, panel, panels, x, range);
          else detail::depthwise_points<T, 1>(row, panel, panels, x, range);
        };
        DepthwisePanel<T> panel{from + a.offset * p.source_stride[2], buffer<T>(args, 1) + p.weights, bias, add, out};
        panel.next(row, first_panel);
        const int64_t full = least(last_panel, p.groups / panel_width) - first_panel;
        compute(panel, full);
        if (full < last_panel - first_panel) {
          // The last panel begins earlier, unless there is but one. What overlaps has its residual already, if that is
          // the result's own memory.
          const int64_t channels = p.groups % panel_width, back = full > 0 ? panel_width - channels : 0;
          panel.next(row, full);
          panel.source -= back;
          panel.out -= back * p.out_channel;
          if (row.has_bias) panel.bias -= back * p.bias_step;
          if (row.has_residual) panel.residual -= back * p.residual_channel;
          const int64_t done = panel.residual == panel.out ? back : 0;
          if (full == 0 || done > 0)
            for (int64_t k = x; k < x + count; ++k) {
              const TapRange own = TapRange::within(a, k, p.lo[2], p.hi[2]);
              detail::depthwise_rest(row, panel, done, back + channels, k, own);
              if (rows == 2) detail::depthwise_rest(row, panel.below(row), done, back + channels, k, own);
            }
          else compute(panel, 1);
        }
        x += count;
      }
    }
    const int64_t channel = first_panel * panel_width;
    status |= epilogue(result_row * p.size[2], rows * p.size[2], channel,
                       least(last_panel * panel_width, p.groups) - channel);
  }
  return status;
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
