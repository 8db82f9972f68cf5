// What reading an image by a grid and its gradient share: the modes, and the image elements that a place reads.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// How coordinates from -1 to 1 over each dimension of space, the last one first, become reads of an image.
struct GridSampling {
  enum Interpolation : int64_t { bilinear, nearest, bicubic };
  enum Padding : int64_t { zeros, border, reflection };
  Interpolation interpolation;
  Padding padding;
  bool align_corners;
  GridSampling(const ArgsView& call, size_t space);
};

/// One of the image elements along a dimension that the places of a grid read.
struct GridTap {
  Tensor at;      // whole but of the grid's dtype
  Tensor weight;  // none: 1
  Tensor slope;   // the weight's derivative by the coordinate; none where it was not asked for, or is 0
};
std::vector<GridTap> grid_taps(const Tensor& coordinate, SymInt size, const GridSampling& how, bool slopes);

/// The image elements that one tap of each dimension reads together.
struct GridRead {
  Tensor index;   // i64[n, places], of the image's places laid out flat; 0 to the last one
  Tensor inside;  // whether there is one
};
GridRead grid_read(const std::vector<GridTap>& taps, std::span<const SymInt> sizes);

/// Calls body(taps) with one tap of each dimension, for all combinations; the first dimension changes fastest.
template <class Tap, class Body>
void for_each_combination(const std::vector<std::vector<Tap>>& of_dims, const Body& body) {
  size_t total = 1;
  for (const std::vector<Tap>& taps : of_dims) total *= taps.size();
  for (size_t k = 0; k < total; ++k) {
    std::vector<Tap> chosen;
    size_t rest = k;
    for (const std::vector<Tap>& taps : of_dims) {
      chosen.push_back(taps[rest % taps.size()]);
      rest /= taps.size();
    }
    body(chosen);
  }
}

}  // namespace tenon
