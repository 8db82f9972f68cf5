// The expressions of a stage as values of a kernel, at the place where the loops stand. For make_kernel.cpp only.
#pragma once
#include <map>
#include <set>

#include "tenon/compile/builder.h"
#include "tenon/compile/make_kernel.h"
#include "tenon/compile/stage_loops.h"

namespace tenon::compile {

Type type_of(loop::Compute compute);
Element element_of(DType dtype);  // Unsupported where kernels have none

/// The memory that the stages of one kernel know.
struct StageMemory {
  std::map<loop::BufferId, uint32_t> ids;   // memory of the kernel
  std::vector<loop::BufferId> written;      // by any of the stages
  std::map<loop::BufferId, uint32_t> rows;  // buffers of which one row is kept, in scratch memory
};

class StageValues {
 public:
  StageValues(Builder& b, const loop::Program& program, const StageLoops& loops, const KernelOptions& options,
              StageKernel& out, StageMemory& memory)
      : b_(b),
        program_(program),
        loops_(loops),
        options_(options),
        out_(out),
        memory_(memory),
        index_(loops.extents.size()) {}

  Val size(SymInt value);  // i64, uniform
  uint32_t memory(loop::BufferId buffer, bool written = false);

  /// Where a loop stands: the index of the innermost loop of a group stands for the whole group.
  void enter(const LoopGroup& group, Val index, bool is_lane = false, bool varies = false);
  void leave(const LoopGroup& group);
  /// Lanes over loops, which stand at a position in row-major order.
  void enter_lanes(std::span<const LoopGroup> groups, Val position);
  void leave_lanes(std::span<const LoopGroup> groups);

  /// What an accumulator came to.
  void set_accumulated(size_t which, Val value) { accumulated_[static_cast<int64_t>(which)] = value; }

  Val value(loop::ExprId id);
  /// Loads that do not depend on loops yet to be entered, made now: those of stores, or of accumulators.
  template <class T>
  void load_early(const std::vector<T>& parts) {
    std::set<loop::ExprId> seen;
    for (const T& part : parts) load_early(part.value, seen);
  }
  void store(const loop::Store& store, const std::optional<LinearAccess>& access);

  /// Values made in a scope are forgotten at its end.
  std::map<loop::ExprId, Val> save() const { return known_; }
  void restore(std::map<loop::ExprId, Val> known) { known_ = std::move(known); }
  void mark_written(loop::BufferId buffer) {
    written_.push_back(buffer);
    memory_.written.push_back(buffer);
  }

 private:
  void load_early(loop::ExprId id, std::set<loop::ExprId>& seen);
  Val param(SymInt value, Param::Kind kind);
  Val load(loop::ExprId id, const loop::ExprNode& n);
  Val call(loop::ExprId id, const loop::ExprNode& n);
  Val call_logical(const loop::ExprNode& n, const Vals& a);
  Val from_memory(Val loaded, DType dtype);
  Val to_memory(Val value, DType dtype);
  Val rounded(Val x, DType dtype);
  Val divisor(const loop::ExprNode& n, const Vals& operands);  // a fault where an integer is zero
  Place place(uint32_t memory, const Linear& at, bool always_over_lanes);
  /// A place by computed indices, and whether it is inside of the buffer; a fault where it is not and `wanted` holds.
  Place computed_place(uint32_t memory, const loop::Buffer& buffer, std::span<const loop::ExprId> at, const Val* wanted,
                       Val& inside, bool always_over_lanes);
  bool is_place(loop::ExprId at, SymInt places) const;
  struct Bounds {
    int64_t least, most;
  };
  /// Of an index made of loops of known extents; nothing where that is not known, or could be large.
  std::optional<Bounds> bounds_of(loop::ExprId id) const;
  std::optional<Bounds> found_bounds(loop::ExprId id) const;
  bool varies(Val v) const { return b_.value(v.id).varying; }

  struct Position {
    Val index;
    bool entered = false, is_lane = false, varies = false;
  };
  Builder& b_;
  const loop::Program& program_;
  const StageLoops& loops_;
  const KernelOptions& options_;
  StageKernel& out_;
  StageMemory& memory_;
  std::vector<Position> index_;  // per loop of the stage
  std::map<loop::ExprId, Val> known_;
  mutable std::map<loop::ExprId, std::optional<Bounds>> bounds_;
  std::map<int64_t, Val> accumulated_;
  std::vector<loop::BufferId> written_;  // by this stage
  bool in_lanes_ = false;
};

}  // namespace tenon::compile
