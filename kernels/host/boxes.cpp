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

/// Along one side of an image: how much of each pixel goes into each bin of a region, and which pixels do.
struct Side {
  int64_t bins = 0, pixels = 0;
  double* weights = nullptr;  // [bins, pixels]
  int64_t *first = nullptr, *last = nullptr;

  bool prepare(Call& call, int64_t of_bins, int64_t of_pixels) {
    bins = of_bins, pixels = of_pixels;
    weights = work<double>(call, bins * pixels);
    first = work<int64_t>(call, bins);
    last = work<int64_t>(call, bins);
    return weights && first && last;
  }
  void clear() {
    for (int64_t i = 0; i < bins * pixels; ++i) weights[i] = 0;
    for (int64_t i = 0; i < bins; ++i) first[i] = pixels, last[i] = -1;
  }
  /// A sample between two pixels; one outside of the image counts nothing.
  void sample(int64_t bin, double at) {
    if (pixels == 0 || !(at >= -1 && at <= static_cast<double>(pixels))) return;
    if (at < 0) at = 0;
    auto low = static_cast<int64_t>(at);
    double part = at - static_cast<double>(low);
    if (low >= pixels - 1) low = pixels - 1, part = 0;
    add(bin, low, 1 - part);
    if (part != 0) add(bin, low + 1, part);
  }

 private:
  void add(int64_t bin, int64_t pixel, double weight) {
    weights[bin * pixels + pixel] += weight;
    if (pixel < first[bin]) first[bin] = pixel;
    if (pixel > last[bin]) last[bin] = pixel;
  }
};

/// How regions of images are cut into bins, and bins sampled. A sample's weights are a product of those along both
/// sides, so that the samples of a bin need not be met one by one.
struct Regions {
  double scale = 0;
  int64_t bins[2] = {};
  int64_t samples = 0;  // along each side of a bin; 0 or less: as many as it has pixels
  bool aligned = false;
  Side sides[2];     // rows, columns
  double share = 0;  // of one sample in its bin
  static constexpr int64_t most_samples = int64_t{1} << 16;

  /// Weighs the pixels for a box (x, y, x, y), in the arithmetic of T; false where a bin has too many samples.
  template <class T>
  bool weigh(const double* box) {
    T shift = aligned ? T(0.5) : T(0);
    int64_t all = 1;
    for (int d = 0; d < 2; ++d) {
      T start = static_cast<T>(box[1 - d]) * static_cast<T>(scale) - shift;
      T length = static_cast<T>(box[3 - d]) * static_cast<T>(scale) - shift - start;
      if (!aligned && length < T(1)) length = T(1);
      T bin = length / static_cast<T>(bins[d]);
      int64_t n = samples > 0 ? samples : rounded_up(static_cast<double>(bin));
      if (n > most_samples) return false;
      sides[d].clear();
      for (int64_t i = 0; i < bins[d]; ++i)
        for (int64_t k = 0; k < n; ++k)
          sides[d].sample(i, static_cast<double>(start + static_cast<T>(i) * bin +
                                                 (static_cast<T>(k) + T(0.5)) * bin / static_cast<T>(n)));
      all *= n;
    }
    share = 1 / static_cast<double>(all > 1 ? all : 1);
    return true;
  }
  bool weigh(const double* box, int32_t dtype) { return dtype == TENON_F64 ? weigh<double>(box) : weigh<float>(box); }

  /// Calls visit(pixel, weight) for what goes into a bin.
  template <class Visit>
  void each(int64_t bin, Visit&& visit) const {
    const Side &rows = sides[0], &columns = sides[1];
    int64_t i = bin / bins[1], j = bin % bins[1];
    for (int64_t y = rows.first[i]; y <= rows.last[i]; ++y)
      for (int64_t x = columns.first[j]; x <= columns.last[j]; ++x) {
        double weight = rows.weights[i * rows.pixels + y] * columns.weights[j * columns.pixels + x];
        if (weight != 0) visit(y * columns.pixels + x, weight * share);
      }
  }

 private:
  static int64_t rounded_up(double x) {
    if (!(x > 0)) return 0;
    if (x > static_cast<double>(most_samples)) return most_samples + 1;
    auto whole = static_cast<int64_t>(x);
    return static_cast<double>(whole) < x ? whole + 1 : whole;
  }
};

Regions regions_of(Params& params) {
  Regions r;
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
  int64_t channels = input.sizes[1], pixels = input.sizes[2] * input.sizes[3], image = 0,
          bins = regions.bins[0] * regions.bins[1];
  auto *x = elements<double>(*call, input), *boxes = elements<double>(*call, rois);
  auto* y = zeroed_work<double>(*call, count(out));
  if (!x || !boxes || !y || !regions.sides[0].prepare(*call, regions.bins[0], input.sizes[2]) ||
      !regions.sides[1].prepare(*call, regions.bins[1], input.sizes[3]))
    return TENON_KERNEL_MEMORY;
  for (int64_t r = 0; r < rois.sizes[0]; ++r) {
    if (!image_of(boxes + r * 5, input.sizes[0], image))
      return refuse(*call, 1, r, static_cast<int64_t>(boxes[r * 5]), input.sizes[0]);
    if (!regions.weigh(boxes + r * 5 + 1, input.dtype)) return refuse(*call, 2, r, Regions::most_samples);
    for (int64_t c = 0; c < channels; ++c) {
      const double* plane = x + (image * channels + c) * pixels;
      for (int64_t bin = 0; bin < bins; ++bin) {
        double sum = 0;
        regions.each(bin, [&](int64_t pixel, double weight) { sum += weight * plane[pixel]; });
        y[(r * channels + c) * bins + bin] = sum;
      }
    }
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
  int64_t channels = out.sizes[1], pixels = out.sizes[2] * out.sizes[3], image = 0,
          bins = regions.bins[0] * regions.bins[1];
  if (grad.sizes[0] != rois.sizes[0] || grad.sizes[1] != channels || grad.sizes[2] * grad.sizes[3] != bins)
    return TENON_KERNEL_ARITHMETIC;
  auto *g = elements<double>(*call, grad), *boxes = elements<double>(*call, rois);
  auto* x = zeroed_work<double>(*call, count(out));
  if (!g || !boxes || !x || !regions.sides[0].prepare(*call, regions.bins[0], out.sizes[2]) ||
      !regions.sides[1].prepare(*call, regions.bins[1], out.sizes[3]))
    return TENON_KERNEL_MEMORY;
  for (int64_t r = 0; r < rois.sizes[0]; ++r) {
    if (!image_of(boxes + r * 5, out.sizes[0], image))
      return refuse(*call, 1, r, static_cast<int64_t>(boxes[r * 5]), out.sizes[0]);
    if (!regions.weigh(boxes + r * 5 + 1, grad.dtype)) return refuse(*call, 2, r, Regions::most_samples);
    for (int64_t c = 0; c < channels; ++c) {
      double* plane = x + (image * channels + c) * pixels;
      for (int64_t bin = 0; bin < bins; ++bin) {
        double given = g[(r * channels + c) * bins + bin];
        regions.each(bin, [&](int64_t pixel, double weight) { plane[pixel] += weight * given; });
      }
    }
  }
  write(out, x);
  return 0;
}

}  // namespace tenon::kernels
