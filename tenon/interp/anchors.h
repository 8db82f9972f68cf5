// Runs the anchors of a loop program with the kernels of templates/.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::interp {

/// buffers[i] points to the first element of buffer i. Stages are not run here.
void run_anchor(const loop::Program& program, const loop::Step& step, std::byte* const* buffers);

}  // namespace tenon::interp
