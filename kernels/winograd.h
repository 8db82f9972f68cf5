// Winograd's F(2, 3) for convolutions of 3 x 3 over two dimensions that walk by one place, in one group, with channels
// in multiples of 16, side by side.
//
// convolution_winograd_pack_T: parameters of ConvolutionPackParams; weights, transformed, as sixteen matrices in
// panels: [position][panel][inner][16]. Gradient: the taps turned round. Iterations: panels. convolution_winograd_T:
// parameters and buffers of ConvolutionParams; out, residual and bias have channels side by side; places of the source
// outside of [lo, hi) count as zeros. Iterations: winograd_blocks. Scratch: winograd_scratch elements.
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
/// One block where it takes all tiles, so that weights are read once; else an even number.
constexpr int64_t winograd_tile_blocks(int64_t tiles, int64_t inner) {
  const int64_t most = winograd_tiles(inner);
  return tiles <= most ? 1 : (tiles + 2 * most - 1) / (2 * most) * 2;
}
/// An even number where there is one block of tiles: then threads share the columns.
constexpr int64_t winograd_column_blocks(int64_t panels, int64_t tile_blocks) {
  const int64_t blocks = (panels + winograd_most_panels - 1) / winograd_most_panels;
  return tile_blocks > 1 ? blocks : (blocks + 1) / 2 * 2;
}
constexpr int64_t winograd_blocks(int64_t tiles, int64_t inner, int64_t panels) {
  const int64_t tile_blocks = winograd_tile_blocks(tiles, inner);
  return tile_blocks * winograd_column_blocks(panels, tile_blocks);
}
constexpr int64_t winograd_scratch(int64_t inner) {
  const int64_t tiles = winograd_tiles(inner);
  return winograd_positions * (tiles * inner + 16) + winograd_positions * (tiles * winograd_most_panels * 16 + 16);
}

/// The gradient of the weights: convolution_winograd_weight_T has buffers x, y and sums, [position][inner][columns];
/// x and y have channels side by side, in multiples of 16; x is zero outside of its places. Iterations:
/// winograd_weight_blocks. Scratch: winograd_weight_scratch elements. convolution_winograd_weight_finish_T then has
/// buffers sums and the gradient. Iterations: inner / 16 * columns / 16.
struct WinogradWeightParams {
  int64_t batch, inner, columns;
  int64_t size[2], source_size[2], padding[2];  // size: of y
  int64_t source, source_batch, source_stride[2];
  int64_t y, y_batch, y_stride[2];
  int64_t out, out_column, out_inner, out_stride[2];
};
constexpr int64_t winograd_most_channels = 192;
constexpr int64_t winograd_weight_channels(int64_t inner, int64_t columns) {
  return (inner < winograd_most_channels ? inner : winograd_most_channels) +
         (columns < winograd_most_channels ? columns : winograd_most_channels) + 16;
}
/// Tiles at a time: what four positions of them need stays in the second cache.
constexpr int64_t winograd_weight_tiles(int64_t inner, int64_t columns) {
  const int64_t fit = 40960 / winograd_weight_channels(inner, columns) / 8 * 8;
  return fit < 512 ? fit : 512;
}
/// Sums of so many tiles are cut into parts of at most 128, nearly equal: each is summed from zero, then added.
constexpr int64_t winograd_weight_parts(int64_t tiles) { return tiles > 128 ? (tiles + 127) / 128 : 1; }
constexpr int64_t winograd_weight_blocks(int64_t inner, int64_t columns) {
  return 4 * ((inner + winograd_most_channels - 1) / winograd_most_channels) *
         ((columns + winograd_most_channels - 1) / winograd_most_channels);
}
constexpr int64_t winograd_weight_scratch(int64_t inner, int64_t columns) {
  return 4 * winograd_weight_tiles(inner, columns) * winograd_weight_channels(inner, columns);
}

}  // namespace tenon::kernels
