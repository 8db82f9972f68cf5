// Fewer steps that pass over memory fewer times, with the same results bit for bit.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// Puts stages into the stages that read them, through views: a pointwise stage in place of the loads of its result
/// where that saves more than computing it there costs (so copies vanish, and cheap values are computed by each
/// reader), and a pointwise stage behind the reduction or the pointwise stage whose result it reads at its own index.
/// Stores that nobody reads and steps that do nothing else go. What storing rounded is rounded still, the order of
/// reductions stays, indices that data decides are checked by the step that checked them before and under its name,
/// and inputs and state are written behind all of that. Candidates are taken by the bytes they save, most first.
loop::Program fuse(loop::Program program);

}  // namespace tenon::optimize
