// What depends on state alone is computed when the state changes, not at every run.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

struct FoldOptions {
  bool trivial =
      true;  // copies and constants too: fuse puts those into their readers, so before it they are left alone
};

/// Moves steps that read nothing but state which the program does not write, constants and what such steps made, to
/// on_state; what the rest of the program reads of them becomes derived buffers. Steps that may fail, draw numbers or
/// have sizes that the caller decides stay.
loop::Program fold_state(loop::Program program, const FoldOptions& options = {});

}  // namespace tenon::optimize
