// Winograd's F(2, 3) for convolutions of 3 x 3 over two dimensions that walk by one place, in one group, with channels
// in multiples of 16, side by side.
//
// convolution_winograd_pack_T: parameters of ConvolutionPackParams; weights, transformed, as sixteen matrices in
// panels: [position][panel][inner][16]. Gradient: the taps turned round. Iterations: panels. convolution_winograd_T:
// parameters and buffers of ConvolutionParams; out, residual and bias have channels side by side; places of the source
// outside of [lo, hi) count as zeros. Iterations: winograd_column_blocks * winograd_tile_blocks. Scratch:
// winograd_scratch elements.
#pragma once
#include <stdint.h>

#include "kernels/convolution.h"

namespace tenon::kernels {

constexpr int64_t winograd_positions = 16, winograd_most_tiles = 24, winograd_most_panels = 12;

/// Tiles of one block: what they need stays in the second cache.
constexpr int64_t winograd_tiles(int64_t inner) {
  const int64_t fit = 8192 / (inner > 0 ? inner : 1);
  return fit < 8 ? 8 : fit > winograd_most_tiles ? winograd_most_tiles : fit;
}
/// An even number of blocks of tiles.
constexpr int64_t winograd_tile_blocks(int64_t tiles, int64_t inner) {
  const int64_t two = 2 * winograd_tiles(inner), pairs = (tiles + two - 1) / two;
  return pairs > 0 ? 2 * pairs : 2;
}
constexpr int64_t winograd_column_blocks(int64_t panels) {
  return (panels + winograd_most_panels - 1) / winograd_most_panels;
}
constexpr int64_t winograd_scratch(int64_t inner) {
  const int64_t tiles = winograd_tiles(inner);
  return winograd_positions * (tiles * inner + 16) + winograd_positions * (tiles * winograd_most_panels * 16 + 16);
}

}  // namespace tenon::kernels
