// The loops of a stage as a kernel has them: those that every access walks through densely are one, and one of them is
// chosen as lanes. For make_kernel.cpp, row_stages.cpp and stage_values.cpp only.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "tenon/loop/program.h"

namespace tenon::compile {

/// base + sum of coefficient * loop index.
struct Linear {
  SymInt base = 0;
  SmallVector<SymInt, 8> by_loop;
};

/// An access whose every index is linear in the loops: an offset in elements.
struct LinearAccess {
  Linear at;
  bool store = false;
};

/// Some neighbouring loops of the stage, walked as one.
struct LoopGroup {
  size_t first = 0, last = 0;  // the stage's loops, both included
  SymInt extent = 1;
};

struct StageLoops {
  std::vector<SymInt> extents;  // of the stage's loops: domain, then reduction
  size_t domain_rank = 0;
  std::vector<LoopGroup> domain, reduce;  // without loops of one iteration, and without those over rows
  std::vector<LoopGroup> rows;            // outer loops that several stages share, one by one
  std::vector<bool> joined;               // of those: every access walks through it and the one before densely
  size_t row_loops = 0;                   // how many loops of the stage those are
  SymInt terms = 1;                       // of a reduction
  bool serial = false;                    // the order of iterations matters
  std::vector<bool> apart;                // serial: iterations of this loop of the domain never meet
  bool stores_meet = false;               // and so does that of the stores: several may go to one place
  std::vector<SymInt> conditions;
  std::map<loop::ExprId, LinearAccess> loads;       // by the load
  std::vector<std::optional<LinearAccess>> stores;  // per store; nothing: by computed indices
  std::vector<loop::BufferId> computed;             // buffers that are read or written at computed indices

  std::vector<bool> raw;  // by loop: its index is a value of the stage

  /// The domain's loop that becomes lanes; nothing where there is none.
  std::optional<size_t> best_lanes() const;
  /// Every access walks through both loops as through one.
  bool dense(size_t outer, size_t inner) const;
};

/// The first `row_loops` loops of the domain are walked one by one, outside of the others.
StageLoops analyze(const loop::Program& program, const loop::Stage& stage, size_t row_loops = 0);

/// Nothing where the expression is not a sum of products of loop indices with sizes.
std::optional<Linear> linear_form(const loop::Program& program, loop::ExprId id, size_t loops);

}  // namespace tenon::compile
