// Long reductions in two stages, so that threads can share them and lanes need not walk over terms that lie apart.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// A reduction of many terms to few results (statistics of a batch, gradients of a bias), or over the places of an
/// image whose channels lie side by side, becomes one over some of its loops, with a result for each iteration of the
/// others, and one over those. The order of a sum follows from the extents, so it is another one than before: results
/// change in their last bits.
loop::Program split_sums(loop::Program program);

}  // namespace tenon::optimize
