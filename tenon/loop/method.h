// How a convolution is computed: one question for whoever packs its weights and whoever calls the kernels.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::loop {

enum class ConvMethod : uint8_t {
  direct,
  winograd,  // F(2, 3), for 3 x 3 with steps of one place: sums are rounded in other places
};

/// What decides between methods, in cycles.
struct MachineCosts {
  double lanes = 16;  // products that one core adds up in a cycle
  double cores = 2;
  double bytes = 10;  // from main memory in a cycle, for all cores together
  double tile = 42;   // Winograd's transforms of a tile, in and out, for 16 channels
  double weight = 4;  // and of a pair of channels' weights
};

/// Whether there is more than one method for it; what is packed is decided.
bool has_methods(const Program& program, const Convolution& convolution);
/// Packed: the method that its weights were packed for; their buffer's sizes tell. Else the one that costs less:
/// Winograd needs 16 products instead of 36 for four results, but transforms, weights 16/9 as large and tiles that
/// reach beyond the image; it is for f32 and results with channels side by side, in multiples of 16. Errors stay those
/// of direct sums.
ConvMethod method_of(const Program& program, const Convolution& convolution, const MachineCosts& costs = {});
ConvMethod method_of(const Program& program, const Pack& pack);
/// The same for the gradient of weights, where both images must have their channels side by side, and sums so many
/// tiles that errors stay those of plain sums.
ConvMethod weight_gradient_method(const Program& program, const Convolution& convolution,
                                  const MachineCosts& costs = {});

/// Sizes of the buffer that weights are transformed into (`packed_sizes` of loop/pack.h for a direct one).
Sizes transformed_sizes(const Pack& pack);

}  // namespace tenon::loop
