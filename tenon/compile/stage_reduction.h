// The reductions of a stage at one point of its domain, in the order that loop/program.h gives. For make_kernel.cpp
// only.
#pragma once
#include <functional>

#include "tenon/compile/stage_values.h"

namespace tenon::compile {

constexpr int short_reduction = 32;  // up to here terms are taken one after another
constexpr int chunk_terms = 1024;
constexpr int chunk_ways = 32;
constexpr int most_column_chunks = 8;              // each is written out
constexpr int64_t most_streamed_bytes = 16 << 10;  // of partial results: they stay in the first cache

/// What is known about the number of terms. Columns: many, whose neighbours lie apart, while those of the domain lie
/// together (sums over rows of a matrix): the domain's lanes stand around them.
enum class Terms : uint8_t { few, many, unknown, columns };
Terms how_many(const loop::Stage& stage, const StageLoops& loops, const sym::Ranges& ranges);

class StageReduction {
 public:
  StageReduction(Builder& b, const loop::Stage& stage, const StageLoops& loops, StageValues& values, bool fixed_size);
  /// Emits the loops and tells `values` the results. Lanes run over the terms where they are many; where they are few,
  /// or in columns, the domain's lanes may stand around.
  void emit(Terms terms);
  /// Whether sums of columns are better streamed: where a row of terms is long, and partial results of all of it, or of
  /// a long run, stay in the first cache. Several accumulators do better in registers.
  bool streams(const LoopGroup& group) const;
  /// Sums of columns, for lanes [from, to) of `group`: one row of terms after another is added to partial results in
  /// scratch memory, so that memory is read straight through. In the same order, so with the same bits. Calls `store`
  /// for each lane with the results told.
  void emit_streamed(const LoopGroup& group, Val from, Val to, int ways, const std::function<void()>& store);

 private:
  struct Slot {  // of an accumulator among the carried values
    size_t at = 0;
    Type type = Type::f32;
    bool position = false;  // the next carried value is one
  };
  Vals initial(bool exact) const;
  Vals with_term(const Vals& so_far, Val position);
  Vals merged(const Vals& a, const Vals& b) const;
  Val combined(size_t k, Val a, Val b) const;
  Val displaces(size_t k, Val a, Val b) const;
  Vals one_by_one(const Val* enabled);
  Vals nest(size_t depth, const Vals& so_far, Val position, const Val* enabled);
  Vals in_chunks(const Val* disabled);
  Vals chunk(Val start, Val end);
  Vals in_columns();
  Vals column_chunk(int64_t first, int64_t count);
  /// Where the loops over terms stand at a position in row-major order.
  Vals indices(Val position);
  /// Lanes whose partial results are kept at a time.
  int64_t streamed_lanes() const;
  void tell(const Vals& results);

  Builder& b_;
  const loop::Stage& stage_;
  const StageLoops& loops_;
  StageValues& values_;
  std::vector<Slot> slots_;
  size_t carried_ = 0;
  bool fixed_size_;  // the number of terms may be built in where it is known
};

}  // namespace tenon::compile
