// Runs the anchors of a program with the kernels of templates/.
#pragma once
#include "tenon/interp/stage.h"

namespace tenon::interp {

/// The same anchor with numbers for its sizes.
loop::Step resolve_anchor(const loop::Step& step, const Resolved& program);
/// places[i] points to the first element of buffer i. Stages, calls, bindings and checks are not run here.
void run_anchor(std::span<const loop::Buffer> buffers, const loop::Step& step, std::byte* const* places);

}  // namespace tenon::interp
