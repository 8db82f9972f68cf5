#pragma once
#include <cstdint>
#include <vector>

#include "tenon/templates/convolution.h"

namespace tenon::templates {

/// One spatial dimension of a sum over taps: point t of the grid reads source[t * step + offset] for each tap, and zero
/// outside of the source.
struct Axis {
  struct Tap {
    std::int64_t offset, weight;  // weight: the index in the kernel
  };
  std::int64_t grid = 1, step = 1, source = 1;
  std::vector<Tap> taps;
};

/// A tap of all three axes, with what the packing loops need ready.
struct Tap {
  std::int64_t offset[3];
  std::int64_t source, weight;  // in elements, from the point's origin and from the kernel's first weight
  std::int64_t lo, hi;          // points of the last axis that read inside of the source
};

/// Points [first, first + count) of the grid, one after the other on the last axis.
struct Run {
  std::int64_t column, count, z, y, x;
};

class Taps {
 public:
  Taps(const Axis (&axes)[3], const std::int64_t* source_stride, const std::int64_t* weight_stride);

  std::int64_t size() const { return static_cast<std::int64_t>(taps_.size()); }
  const Tap& operator[](std::int64_t i) const { return taps_[static_cast<std::size_t>(i)]; }
  std::int64_t points() const { return grid_[0] * grid_[1] * grid_[2]; }
  const std::int64_t (&grid() const)[3] { return grid_; }
  std::int64_t step() const { return step_[2] * stride_[2]; }  // from point to point of a run, in elements

  /// The runs of points [first, first + count); at most count of them. Returns their number.
  int runs(std::int64_t first, std::int64_t count, Run* to) const;
  std::int64_t origin(const Run& run) const {
    return run.z * step_[0] * stride_[0] + run.y * step_[1] * stride_[1] + run.x * step();
  }
  /// Which points of the run read inside of the source: [lo, hi) counted from its first.
  void inside(const Run& run, const Tap& tap, std::int64_t& lo, std::int64_t& hi) const;

 private:
  std::int64_t grid_[3], step_[3], source_[3], stride_[3];
  std::vector<Tap> taps_;
};

/// The axis of a convolution, and of its input gradient at the inputs congruent to `phase` modulo the stride.
Axis forward_axis(const ConvShape& shape, int dim);
Axis gradient_axis(const ConvShape& shape, int dim, std::int64_t phase);
/// A transposed convolution is the input gradient of this one.
ConvShape untransposed(const ConvShape& shape);

}  // namespace tenon::templates
