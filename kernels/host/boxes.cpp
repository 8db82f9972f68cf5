// Boxes in images: those that overlap better ones dropped, and the parts of an image that boxes name, resampled.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

/// Indices by falling scores, equal ones in their order, NaN first.
int64_t* by_falling_score(Call& call, const double* scores, int64_t n) {
  auto *order = work<int64_t>(call, n), *spare = work<int64_t>(call, n);
  if (!order || !spare) return nullptr;
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  auto before = [&](int64_t a, int64_t b) {
    return scores[a] > scores[b] || (is_nan(scores[a]) && !is_nan(scores[b]));
  };
  for (int64_t run = 1; run < n; run *= 2) {
    for (int64_t start = 0; start < n; start += 2 * run) {
      int64_t middle = start + run < n ? start + run : n, end = start + 2 * run < n ? start + 2 * run : n;
      int64_t a = start, b = middle;
      for (int64_t i = start; i < end; ++i) {
        bool second = a == middle || (b < end && before(order[b], order[a]));
        spare[i] = order[second ? b++ : a++];
      }
    }
    exchange(order, spare);
  }
  return order;
}

/// Boxes that no better one overlaps by more than the threshold, in the arithmetic of T.
template <class T>
int64_t keep(const double* boxes, const int64_t* order, int64_t n, double threshold, bool* dropped, int64_t* kept) {
  auto side = [&](int64_t box, int k) { return static_cast<T>(boxes[box * 4 + k]); };
  auto area = [&](int64_t box) { return (side(box, 2) - side(box, 0)) * (side(box, 3) - side(box, 1)); };
  auto larger = [](T a, T b) { return a < b ? b : a; };
  auto smaller = [](T a, T b) { return b < a ? b : a; };
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t best = order[i];
    if (dropped[best]) continue;
    kept[found++] = best;
    for (int64_t j = i + 1; j < n; ++j) {
      int64_t other = order[j];
      if (dropped[other]) continue;
      T width = larger(T(0), smaller(side(best, 2), side(other, 2)) - larger(side(best, 0), side(other, 0)));
      T height = larger(T(0), smaller(side(best, 3), side(other, 3)) - larger(side(best, 1), side(other, 1)));
      T both = width * height, overlap = both / (area(best) + area(other) - both);
      if (static_cast<double>(overlap) > threshold) dropped[other] = true;
    }
  }
  return found;
}

/// The four pixels around a point and their weights; none where the point is outside.
struct Around {
  int64_t at[4] = {};
  double weight[4] = {};

  Around(double y, double x, int64_t height, int64_t width) {
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return;
    int64_t rows[2], columns[2];
    double down = between(y, height, rows), right = between(x, width, columns);
    for (int k = 0; k < 4; ++k) {
      at[k] = rows[k / 2] * width + columns[k % 2];
      weight[k] = (k / 2 ? down : 1 - down) * (k % 2 ? right : 1 - right);
    }
  }

 private:
  static double between(double at, int64_t size, int64_t (&places)[2]) {
    if (at < 0) at = 0;
    places[0] = static_cast<int64_t>(at);
    places[1] = places[0] + 1;
    if (places[0] < size - 1) return at - static_cast<double>(places[0]);
    places[0] = places[1] = size - 1;
    return 0;
  }
};

/// How the parts of images are cut into bins, and bins sampled.
struct Regions {
  double scale;
  int64_t bins[2];
  int64_t samples;  // along each side of a bin; 0 or less: as many as it has pixels
  bool aligned;

  /// Calls visit(bin, pixels around a sample, 1 / samples in the bin), in the arithmetic of T.
  template <class T, class Visit>
  void each(const double* box, int64_t height, int64_t width, Visit&& visit) const {
    T shift = aligned ? T(0.5) : T(0), start[2], bin[2];
    int64_t counts[2];
    for (int d = 0; d < 2; ++d) {  // rows, columns; the box is x, y, x, y
      start[d] = static_cast<T>(box[1 - d]) * static_cast<T>(scale) - shift;
      T length = static_cast<T>(box[3 - d]) * static_cast<T>(scale) - shift - start[d];
      if (!aligned && length < T(1)) length = T(1);
      bin[d] = length / static_cast<T>(bins[d]);
      counts[d] = samples > 0 ? samples : rounded_up(static_cast<double>(length / static_cast<T>(bins[d])));
    }
    int64_t all = counts[0] * counts[1];
    double share = 1 / static_cast<double>(all > 1 ? all : 1);
    for (int64_t i = 0; i < bins[0] * bins[1]; ++i)
      for (int64_t k = 0; k < all; ++k) {
        T y = start[0] + static_cast<T>(i / bins[1]) * bin[0] +
              (static_cast<T>(k / counts[1]) + T(0.5)) * bin[0] / static_cast<T>(counts[0]);
        T x = start[1] + static_cast<T>(i % bins[1]) * bin[1] +
              (static_cast<T>(k % counts[1]) + T(0.5)) * bin[1] / static_cast<T>(counts[1]);
        visit(i, Around(static_cast<double>(y), static_cast<double>(x), height, width), share);
      }
  }

 private:
  static int64_t rounded_up(double x) {
    if (!(x > 0)) return 0;
    if (x > 0x1p20) return int64_t{1} << 20;
    auto whole = static_cast<int64_t>(x);
    return static_cast<double>(whole) < x ? whole + 1 : whole;
  }
};

Regions regions_of(Params& params) {
  Regions r{};
  r.scale = params.real();
  for (int64_t& n : r.bins) n = params.integer();
  return r;
}

/// Which image each region is of; false where there is no such image.
bool image_of(const double* region, int64_t images, int64_t& image) {
  if (!(region[0] >= 0 && region[0] < static_cast<double>(images))) return false;
  image = static_cast<int64_t>(region[0]);
  return true;
}

}  // namespace

// boxes, scores; threshold
TENON_HOST_FUNCTION(nms) {
  (void)lo, (void)hi;
  const tenon_tensor& boxes = call->inputs[0];
  int64_t n = boxes.rank == 2 ? boxes.sizes[0] : -1, found = 0;
  if (n < 0 || boxes.sizes[1] != 4 || count(call->inputs[1]) != n) return TENON_KERNEL_ARITHMETIC;
  double threshold = Params(*call).real();
  auto *sides = elements<double>(*call, boxes), *scores = elements<double>(*call, call->inputs[1]);
  bool* dropped = zeroed_work<bool>(*call, n);
  auto* kept = work<int64_t>(*call, n);
  int64_t* order = scores ? by_falling_score(*call, scores, n) : nullptr;
  if (!sides || !dropped || !kept || !order) return TENON_KERNEL_MEMORY;
  found = boxes.dtype == TENON_F64 ? keep<double>(sides, order, n, threshold, dropped, kept)
                                   : keep<float>(sides, order, n, threshold, dropped, kept);
  if (int status = call->allocate(call, 0, 1, &found)) return status;
  write(call->results[0], kept);
  return 0;
}

// images, regions; scale, rows, columns, samples, aligned
TENON_HOST_FUNCTION(roi_align) {
  (void)lo, (void)hi;
  const tenon_tensor &input = call->inputs[0], &rois = call->inputs[1];
  tenon_tensor& out = call->results[0];
  if (input.rank != 4 || rois.rank != 2 || rois.sizes[1] != 5 || out.rank != 4) return TENON_KERNEL_ARITHMETIC;
  Params params(*call);
  Regions regions = regions_of(params);
  regions.samples = params.integer();
  regions.aligned = params.flag();
  int64_t channels = input.sizes[1], height = input.sizes[2], width = input.sizes[3], image = 0,
          bins = regions.bins[0] * regions.bins[1];
  auto *x = elements<double>(*call, input), *boxes = elements<double>(*call, rois);
  auto* y = zeroed_work<double>(*call, count(out));
  if (!x || !boxes || !y) return TENON_KERNEL_MEMORY;
  for (int64_t r = 0; r < rois.sizes[0]; ++r) {
    if (!image_of(boxes + r * 5, input.sizes[0], image))
      return refuse(*call, 1, r, static_cast<int64_t>(boxes[r * 5]), input.sizes[0]);
    auto sample = [&](int64_t bin, const Around& near, double share) {
      for (int64_t c = 0; c < channels; ++c) {
        const double* plane = x + (image * channels + c) * height * width;
        double sum = 0;
        for (int k = 0; k < 4; ++k)
          if (near.weight[k] != 0) sum += near.weight[k] * plane[near.at[k]];
        y[(r * channels + c) * bins + bin] += sum * share;
      }
    };
    if (input.dtype == TENON_F64) regions.each<double>(boxes + r * 5 + 1, height, width, sample);
    else regions.each<float>(boxes + r * 5 + 1, height, width, sample);
  }
  write(out, y);
  return 0;
}

// gradients of regions, regions; scale, rows, columns, images, channels, height, width, samples, aligned
TENON_HOST_FUNCTION(roi_align_backward) {
  (void)lo, (void)hi;
  const tenon_tensor &grad = call->inputs[0], &rois = call->inputs[1];
  tenon_tensor& out = call->results[0];
  if (grad.rank != 4 || rois.rank != 2 || rois.sizes[1] != 5 || out.rank != 4) return TENON_KERNEL_ARITHMETIC;
  Params params(*call);
  Regions regions = regions_of(params);
  for (int i = 0; i < 4; ++i) params.integer();  // the sizes of the result
  regions.samples = params.integer();
  regions.aligned = params.flag();
  int64_t channels = out.sizes[1], height = out.sizes[2], width = out.sizes[3], image = 0,
          bins = regions.bins[0] * regions.bins[1];
  if (grad.sizes[0] != rois.sizes[0] || grad.sizes[1] != channels || grad.sizes[2] * grad.sizes[3] != bins)
    return TENON_KERNEL_ARITHMETIC;
  auto *g = elements<double>(*call, grad), *boxes = elements<double>(*call, rois);
  auto* x = zeroed_work<double>(*call, count(out));
  if (!g || !boxes || !x) return TENON_KERNEL_MEMORY;
  for (int64_t r = 0; r < rois.sizes[0]; ++r) {
    if (!image_of(boxes + r * 5, out.sizes[0], image))
      return refuse(*call, 1, r, static_cast<int64_t>(boxes[r * 5]), out.sizes[0]);
    auto sample = [&](int64_t bin, const Around& near, double share) {
      for (int64_t c = 0; c < channels; ++c) {
        double* plane = x + (image * channels + c) * height * width;
        for (int k = 0; k < 4; ++k)
          if (near.weight[k] != 0) plane[near.at[k]] += near.weight[k] * share * g[(r * channels + c) * bins + bin];
      }
    };
    if (grad.dtype == TENON_F64) regions.each<double>(boxes + r * 5 + 1, height, width, sample);
    else regions.each<float>(boxes + r * 5 + 1, height, width, sample);
  }
  write(out, x);
  return 0;
}

}  // namespace tenon::kernels
