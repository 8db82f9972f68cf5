// Anchors that the kernel library does not have yet, with the kernels of templates/.
#pragma once
#include "tenon/interp/stage.h"

namespace tenon::interp {

/// The same anchor with numbers for its sizes.
loop::Step resolve_anchor(const loop::Step& step, const Resolved& program);
/// places[i] points to the first element of buffer i.
void run_template(std::span<const loop::Buffer> buffers, const loop::Step& step, std::byte* const* places);

}  // namespace tenon::interp
