// Executes operators on real tensors, one call at a time. The bottom of the dispatcher stack.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon::interp {

/// Makes the interpreter what calls of operators run on. Public entry points call it; repeated calls do nothing.
void install();

/// Threads that kernels may use.
void set_threads(int count);

/// Runs one call: views share storage, writes go to their argument, composites run their meaning, the rest is lowered,
/// compiled to block instructions (kept for the next call of this kind) and executed.
CallResults execute(const Op& op, CallArgs args);

/// An Error with the program's own message where an assertion does not hold.
void check_assertion(const Op& op, std::span<const CallArg> args);

}  // namespace tenon::interp
