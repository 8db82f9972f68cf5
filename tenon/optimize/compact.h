// A program without what none of its steps use.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// Drops buffers and expressions that no step, input or output names; the rest keep their order.
loop::Program compact(loop::Program program);

/// Calls visit(id) for each buffer that a step is written with, where it can be exchanged; loads of stages aside.
void for_each_buffer(loop::Step& step, const std::function<void(loop::BufferId&)>& visit);

}  // namespace tenon::optimize
