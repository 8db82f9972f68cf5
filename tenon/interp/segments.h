// The steps of a program cut where data tells a size, with the life of every buffer. For ProgramRunner only.
#pragma once
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/interp/anchors.h"
#include "tenon/plan/host.h"
#include "tenon/tensor/storage.h"

namespace tenon::interp {

using Symbols = std::unordered_set<std::string_view>;  // names of symbols that the program holds

/// A segment made ready for one combination of sizes.
struct Prepared {
  std::vector<std::optional<SymInt>> symbols;                // the values of what the segment depends on
  std::unordered_map<loop::BufferId, loop::Buffer> buffers;  // that it uses, with numbers for sizes that are known
  std::vector<std::optional<CompiledStage>> stages;
  std::vector<std::optional<PreparedAnchor>> anchors;
  std::vector<std::string> failures;             // of anchors whose sizes do not belong together
  std::vector<std::vector<size_t>> temporaries;  // of anchors: offsets in the segment's memory
  std::vector<size_t> offsets;                   // of the segment's `born`, likewise
  std::vector<int64_t> extents;                  // of those: their bytes
  size_t bytes = 0;
  struct View {
    loop::BufferId buffer, root;
    SymInt offset;  // in bytes; an expression where it changes from one run of a body to the next
    int64_t bytes;
  };
  std::vector<View> views;                                                // whose sizes are known
  std::unordered_map<loop::BufferId, std::vector<size_t>> views_of_told;  // of these, by the result they lie in
  std::vector<loop::BufferId> outputs;                                    // likewise
};

struct Block;

/// Steps between two places where data tells a size.
struct Segment {
  std::span<const loop::Step> steps;
  const uint32_t* origins = nullptr;        // of each step; null in on_state
  std::vector<loop::BufferId> born;         // arena buffers first written here whose size is known by then
  std::vector<size_t> first, last;          // of each of those: the steps of its life, within this segment
  std::vector<loop::BufferId> uses;         // what its steps speak of; of what bodies do, what lies outside of them
  std::vector<loop::BufferId> views;        // of these, those that the block places
  std::vector<size_t> inputs;               // likewise the program's; of the first segment, all of them
  std::vector<SymInt> depends;              // symbols that its stages and the sizes of what it uses speak of
  std::vector<std::vector<Block>> control;  // of each step: its bodies, where it is a control step
  std::vector<std::optional<plan::HostCall>> calls;  // of each step, where it is a call
  std::vector<std::vector<bool>> told;               // of each call: the results whose sizes it tells
  std::list<Prepared> prepared;                      // the most recent first
  std::shared_ptr<Storage> memory;                   // of its arena buffers; on_state: shared by runners
};

/// The steps of the program or of a body.
struct Block {
  std::vector<Segment> segments;       // of the program: on_state comes first
  std::vector<loop::BufferId> views;   // that its steps use, and none outside of it
  std::vector<loop::BufferId> called;  // results whose sizes its calls tell: memory comes with each call
};

struct Segments {
  Block main;
  Symbols changing;  // within a run: the counts of loops, what bodies bind, what choices depend on
  std::vector<loop::Buffer>
      buffers;  // scratch: the program's, some with the sizes that a segment was last prepared for
};

Segments cut(const loop::Program& program);

}  // namespace tenon::interp
