#include "kernels/scan.h"

#include "kernels/lines.h"
#include "kernels/math.h"

namespace tenon::kernels {
namespace {

template <class T>
struct Running {
  using type = double;
};
template <>
struct Running<int64_t> {
  using type = int64_t;
};

/// Some neighbouring lines at a time, element by element, so that lines across the memory's order read whole rows.
template <class Method>
int scan(const tenon_args& args, int64_t lo, int64_t hi) {
  using T = typename Method::Element;
  const ScanParams& p = params<ScanParams>(args);
  const int64_t* sizes = args.params + sizeof(ScanParams) / 8;
  const Lines outer{p.rank - 1, sizes};
  const int64_t inner = sizes[p.rank - 1], groups = (inner + scan_together - 1) / scan_together;
  const int64_t *in_strides = sizes + p.rank, *out_strides = in_strides + p.rank, *index_strides = out_strides + p.rank;
  const int64_t in_inner = in_strides[p.rank - 1], out_inner = out_strides[p.rank - 1],
                index_inner = index_strides[p.rank - 1];
  for (int64_t task = lo; task < hi; ++task) {
    const int64_t o = task / groups, first = task % groups * scan_together;
    const int64_t count = least(inner - first, scan_together);
    const T* in = buffer<const T>(args, 0) + p.in + outer.begin(o, in_strides) + first * in_inner;
    T* out = buffer<T>(args, 1) + p.out + outer.begin(o, out_strides) + first * out_inner;
    int64_t* indices = nullptr;
    if constexpr (Method::has_indices)
      indices = buffer<int64_t>(args, 2) + p.indices + outer.begin(o, index_strides) + first * index_inner;
    typename Method::State state[scan_together];
    for (int64_t i = 0; i < count; ++i) state[i] = Method::start();
    for (int64_t at = 0; at < p.length; ++at) {
      for (int64_t i = 0; i < count; ++i) {
        Method::step(state[i], in[i * in_inner], at);
        out[i * out_inner] = Method::value(state[i]);
        if constexpr (Method::has_indices) indices[i * index_inner] = state[i].index;
      }
      in += p.in_stride;
      out += p.out_stride;
      if constexpr (Method::has_indices) indices += p.indices_stride;
    }
  }
  return TENON_KERNEL_OK;
}

template <class T>
struct Sum {
  using Element = T;
  using State = typename Running<T>::type;
  static constexpr bool has_indices = false;
  static State start() { return 0; }
  static void step(State& sum, T value, int64_t) { sum += static_cast<State>(value); }
  static T value(State sum) { return static_cast<T>(sum); }
};

template <class T>
struct Product : Sum<T> {
  using State = typename Sum<T>::State;
  static State start() { return 1; }
  static void step(State& product, T value, int64_t) { product *= static_cast<State>(value); }
};

template <class T>
struct LogSumExp : Sum<T> {
  static double start() { return -__builtin_inf(); }
  static void step(double& sum, T next, int64_t) {
    const double a = sum, b = static_cast<double>(next);
    if (a != a || b != b) {
      sum = a + b;
      return;
    }
    const double least = a < b ? a : b, most = a < b ? b : a;
    if (least == most && most - most != 0) sum = most;  // two equal infinities
    else sum = log1p(exp(least - most)) + most;
  }
};

template <class T, bool greatest>
struct Extreme {
  using Element = T;
  struct State {
    T value;
    int64_t index;
  };
  static constexpr bool has_indices = true;
  static State start() { return {T(), -1}; }
  static void step(State& best, T value, int64_t index) {
    const bool beats = greatest ? value >= best.value : value <= best.value;
    if (best.index < 0 || value != value || (best.value == best.value && beats)) best = {value, index};
  }
  static T value(const State& best) { return best.value; }
};
template <class T>
using Greatest = Extreme<T, true>;
template <class T>
using Least = Extreme<T, false>;

}  // namespace

TENON_KERNEL(scan_sum_f32) { return scan<Sum<float>>(*args, lo, hi); }
TENON_KERNEL(scan_sum_f64) { return scan<Sum<double>>(*args, lo, hi); }
TENON_KERNEL(scan_sum_i64) { return scan<Sum<int64_t>>(*args, lo, hi); }
TENON_KERNEL(scan_product_f32) { return scan<Product<float>>(*args, lo, hi); }
TENON_KERNEL(scan_product_f64) { return scan<Product<double>>(*args, lo, hi); }
TENON_KERNEL(scan_product_i64) { return scan<Product<int64_t>>(*args, lo, hi); }
TENON_KERNEL(scan_max_f32) { return scan<Greatest<float>>(*args, lo, hi); }
TENON_KERNEL(scan_max_f64) { return scan<Greatest<double>>(*args, lo, hi); }
TENON_KERNEL(scan_max_i64) { return scan<Greatest<int64_t>>(*args, lo, hi); }
TENON_KERNEL(scan_min_f32) { return scan<Least<float>>(*args, lo, hi); }
TENON_KERNEL(scan_min_f64) { return scan<Least<double>>(*args, lo, hi); }
TENON_KERNEL(scan_min_i64) { return scan<Least<int64_t>>(*args, lo, hi); }
TENON_KERNEL(scan_logsumexp_f32) { return scan<LogSumExp<float>>(*args, lo, hi); }
TENON_KERNEL(scan_logsumexp_f64) { return scan<LogSumExp<double>>(*args, lo, hi); }

}  // namespace tenon::kernels
