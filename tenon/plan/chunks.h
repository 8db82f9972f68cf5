// How a loop is cut into chunks for threads.
#pragma once
#include "tenon/sym/expr.h"

namespace tenon::plan {

/// Iterations of a chunk, where each does `work`: as many as are worth a thread, or up to eight times as many if two
/// halves of the chunks then have more nearly equal numbers of iterations. Of two threads the first takes the first
/// half: equal parts, and in every step of a program the same.
SymInt fair_grain(SymInt extent, SymInt work, int64_t worth);

}  // namespace tenon::plan
