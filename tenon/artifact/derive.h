// What a program derives from its weights (packed, folded, converted), made once when it is compiled.
#pragma once
#include <functional>
#include <span>

#include "tenon/plan/make_tables.h"
#include "tenon/tensor/tensor.h"

namespace tenon::artifact {

/// Runs program.on_state on all threads; each derived buffer of `items` is written where it lies in `weights`.
/// `state(i)` is the tensor of the program's input i.
void derive(const loop::Program& program, const std::function<Tensor(size_t)>& state,
            std::span<const plan::WeightItem> items, std::span<std::byte> weights);

}  // namespace tenon::artifact
