// How often integers occur, and points in bins.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

// Numbers between two; counted from the nearer end, so that both are met.
template <class T>
void spaced(tenon_tensor& out, T start, T end) {
  int64_t steps = out.sizes[0];
  T step = (end - start) / static_cast<T>(steps - 1);
  for (int64_t i = 0; i < steps; ++i) {
    T value =
        i < steps / 2 ? start + step * static_cast<T>(i) : end - step * (static_cast<T>(steps - 1) - static_cast<T>(i));
    static_cast<T*>(out.data)[i * out.strides[0]] = value;
  }
}

// Which bin, -1: none. The last one includes its right end.
int64_t bin_of(double x, const double* edges, int64_t count) {
  if (!(x >= edges[0] && x <= edges[count - 1])) return -1;
  int64_t low = 0, high = count;  // the first edge above x
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (edges[middle] > x) high = middle;
    else low = middle + 1;
  }
  return least(count - 2, low - 1);
}

}  // namespace

// self, weights or none; minlength
TENON_HOST_FUNCTION(bincount) {
  (void)lo, (void)hi;
  const tenon_tensor &x = call->inputs[0], &weights = call->inputs[1];
  int64_t bins = Params(*call).integer();
  if (x.rank != 1 || (is_present(weights) && !same_sizes(x, weights))) return TENON_KERNEL_ARITHMETIC;
  int64_t* places = elements<int64_t>(*call, x);
  if (!places) return TENON_KERNEL_MEMORY;
  for (int64_t i = 0; i < x.sizes[0]; ++i) {
    if (places[i] < 0) return refuse(*call, 1, places[i]);
    if (places[i] == INT64_MAX) return TENON_KERNEL_MEMORY;
    bins = greatest(bins, places[i] + 1);
  }
  if (int status = call->allocate(call, 0, 1, &bins)) return status;
  tenon_tensor& out = call->results[0];
  if (out.dtype == TENON_I64) {
    int64_t* totals = zeroed_work<int64_t>(*call, bins);
    if (!totals) return TENON_KERNEL_MEMORY;
    for (int64_t i = 0; i < x.sizes[0]; ++i) ++totals[places[i]];
    write(out, totals);
    return 0;
  }
  double *totals = zeroed_work<double>(*call, bins), *each = elements<double>(*call, weights);
  if (!totals || !each) return TENON_KERNEL_MEMORY;
  for (int64_t i = 0; i < x.sizes[0]; ++i) totals[places[i]] += each[i];
  write(out, totals);
  return 0;
}

// self [..., dims], weight; bins of each dimension, range or none, density. A result for each dimension.
TENON_HOST_FUNCTION(histogram_edges) {
  (void)lo, (void)hi;
  const tenon_tensor& x = call->inputs[0];
  Params params(*call);
  Params::List bins = params.list(), range{nullptr, 0};
  if (params.present()) range = params.list();
  int64_t dims = bins.count;
  if (x.rank < 1 || x.sizes[x.rank - 1] != dims || call->result_count != static_cast<uint64_t>(dims) ||
      (range.count && range.count != 2 * dims))
    return TENON_KERNEL_ARITHMETIC;
  int64_t n = count(x);
  double* all = range.count ? nullptr : elements<double>(*call, x);
  if (!range.count && !all) return TENON_KERNEL_MEMORY;
  for (int64_t d = 0; d < dims; ++d) {
    double low = 0, high = 1;
    if (range.count) {
      low = range.real(2 * d);
      high = range.real(2 * d + 1);
    } else if (n) {
      low = high = all[d];
      for (int64_t i = d; i < n; i += dims) {
        if (!is_finite(all[i])) return refuse(*call, 1, all[i]);
        low = least(low, all[i]);
        high = greatest(high, all[i]);
      }
    }
    if (low == high) {
      low -= 0.5;
      high += 0.5;
    }
    tenon_tensor& out = call->results[d];
    if (out.rank != 1 || out.sizes[0] != bins[d] + 1 || bins[d] < 1) return TENON_KERNEL_ARITHMETIC;
    if (out.dtype == TENON_F64) spaced(out, low, high);
    else spaced(out, static_cast<float>(low), static_cast<float>(high));
  }
  return 0;
}

// self [..., dims], the edges of each dimension, weight; density
TENON_HOST_FUNCTION(histogram_counts) {
  (void)lo, (void)hi;
  const tenon_tensor &x = call->inputs[0], &weight = call->inputs[call->input_count - 1];
  const tenon_tensor* bins = call->inputs + 1;
  tenon_tensor& out = call->results[0];
  int64_t dims = static_cast<int64_t>(call->input_count) - 2;
  bool density = Params(*call).flag();
  if (x.rank < 1 || x.sizes[x.rank - 1] != dims || out.rank != dims) return TENON_KERNEL_ARITHMETIC;
  int64_t total = count(out), n = dims ? count(x) / dims : 0;
  if (is_present(weight) && count(weight) != n) return TENON_KERNEL_ARITHMETIC;
  double* edges[TENON_MAX_RANK];
  for (int64_t d = 0; d < dims; ++d) {
    if (bins[d].rank != 1 || bins[d].sizes[0] < 2 || out.sizes[d] != bins[d].sizes[0] - 1)
      return TENON_KERNEL_ARITHMETIC;
    edges[d] = elements<double>(*call, bins[d]);
    if (!edges[d]) return TENON_KERNEL_MEMORY;
  }
  double *all = elements<double>(*call, x), *totals = zeroed_work<double>(*call, total);
  double* weights = is_present(weight) ? elements<double>(*call, weight) : nullptr;
  if (!all || !totals || (is_present(weight) && !weights)) return TENON_KERNEL_MEMORY;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (int64_t d = 0; d < dims && at >= 0; ++d) {
      int64_t bin = bin_of(all[i * dims + d], edges[d], bins[d].sizes[0]);
      at = bin < 0 ? -1 : at * out.sizes[d] + bin;
    }
    if (at >= 0) totals[at] += weights ? weights[i] : 1;
  }
  if (density) {
    double sum = 0;
    for (int64_t i = 0; i < total; ++i) sum += totals[i];
    for (int64_t i = 0; i < total; ++i) {
      totals[i] /= sum;
      int64_t rest = i;
      for (int64_t d = dims; d-- > 0; rest /= out.sizes[d]) {
        int64_t bin = rest % out.sizes[d];
        totals[i] /= edges[d][bin + 1] - edges[d][bin];
      }
    }
  }
  write(out, totals);
  return 0;
}

}  // namespace tenon::kernels
