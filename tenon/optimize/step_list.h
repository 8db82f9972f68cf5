// A list of steps while a pass changes it: who reads and who writes each buffer, kept up to date.
#pragma once
#include <set>
#include <vector>

#include "tenon/optimize/index.h"

namespace tenon::optimize {

/// Steps keep their places until `finish`: what is taken out leaves a gap, so that places stay comparable. Buffers are
/// meant by their roots.
class StepList {
 public:
  /// `outside`: buffers that other lists of the program use too.
  StepList(loop::Program& program, std::vector<loop::Step>& steps, std::vector<uint32_t>& nodes,
           std::vector<bool> outside);

  size_t size() const { return steps_.size(); }
  bool alive(size_t i) const { return items_[i].alive; }
  const loop::Step& operator[](size_t i) const { return steps_[i]; }
  loop::Stage* stage(size_t i) { return std::get_if<loop::Stage>(&steps_[i]); }
  const std::vector<loop::BufferId>& reads(size_t i) const { return items_[i].reads; }
  const std::vector<loop::BufferId>& writes(size_t i) const { return items_[i].writes; }
  bool fails(size_t i) const { return items_[i].fails; }      // a stage that may
  bool updates(size_t i) const { return items_[i].updates; }  // it writes inputs or state
  size_t first_update() const { return first_update_; }
  const std::set<size_t>& readers(loop::BufferId root) const { return readers_[root]; }
  const std::set<size_t>& writers(loop::BufferId root) const { return writers_[root]; }
  /// Memory of the session that no other list knows: it need not be written if nobody reads it.
  bool is_private(loop::BufferId root) const;
  /// A step behind `after`, up to `last`, writes one of the buffers that step `reader` reads.
  bool overwritten(size_t reader, size_t after, size_t last) const;
  uint32_t& node(size_t i) { return nodes_[i]; }

  void grow();  // buffers were added to the program
  void replace(size_t i, loop::Step step);
  void remove(size_t i);
  /// Stores that nobody reads, and steps that write nothing else. What may fail stays.
  void remove_dead();
  bool remove_dead(size_t i);
  void finish();

 private:
  struct Item {
    std::vector<loop::BufferId> reads, writes;
    bool alive = true, fails = false, updates = false;
  };
  void enter(size_t i);
  void leave(size_t i);

  loop::Program& program_;
  std::vector<loop::Step>& steps_;
  std::vector<uint32_t>& nodes_;
  std::vector<bool> outside_;
  std::vector<Item> items_;
  std::vector<std::set<size_t>> readers_, writers_;
  size_t first_update_;
};

/// Calls change(list) for each list of steps that is run at every call and puts the changed one in its place: those
/// within control steps first, then what these stand in.
void for_each_list(loop::Program& program, const std::function<void(StepList&)>& change);

}  // namespace tenon::optimize
