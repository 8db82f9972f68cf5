#include <algorithm>

#include "tenon/compile/make_kernel.h"
#include "tenon/compile/stage_loops.h"

namespace tenon::compile {
namespace {

using loop::BufferId;

/// An access from the start of the buffer that its own is a view of.
Linear in_root(const loop::Program& program, BufferId buffer, Linear at) {
  const loop::Buffer& b = program.buffers[buffer];
  if (b.view_of != loop::no_buffer) at.base = at.base + b.offset;
  return at;
}
BufferId root(const loop::Program& program, BufferId b) {
  return program.buffers[b].view_of == loop::no_buffer ? b : program.buffers[b].view_of;
}
bool same(const StageLoops& loops, const Linear& a, const Linear& b) {
  if (!(a.base == b.base)) return false;
  for (size_t k = 0; k < loops.extents.size(); ++k)
    if (loops.extents[k] != SymInt(1) && !(a.by_loop[k] == b.by_loop[k])) return false;
  return true;
}

/// Loops that walk over a dimension, outermost first, each of its places once.
class Walk {
 public:
  Walk(const StageLoops& loops, const Linear& at) : loops_(loops), at_(at), taken_(loops.extents.size()) {}
  bool over(SymInt size, SymInt stride, std::vector<size_t>& out) {
    for (SymInt done = 1; !(done == size);) {
      size_t k = 0;
      while (k < taken_.size() && (taken_[k] || loops_.extents[k] == SymInt(1) || !(at_.by_loop[k] == stride * done)))
        ++k;
      if (k == taken_.size()) return false;
      taken_[k] = true;
      out.insert(out.begin(), k);
      done = done * loops_.extents[k];
    }
    return true;
  }
  bool all() const {
    for (size_t k = 0; k < taken_.size(); ++k)
      if (!taken_[k] && loops_.extents[k] != SymInt(1)) return false;
    return true;
  }

 private:
  const StageLoops& loops_;
  const Linear& at_;
  std::vector<bool> taken_;
};

}  // namespace

std::optional<BlockStage> block_stage(const loop::Program& program, const loop::Stage& stage,
                                      const loop::Operand& result, size_t channel) {
  if (!stage.accumulators.empty() || !stage.reduce.empty()) return std::nullopt;
  const StageLoops loops = analyze(program, stage);
  if (loops.serial || loops.stores_meet || !loops.computed.empty()) return std::nullopt;
  const BufferId from = root(program, result.buffer);
  std::optional<Linear> at;
  for (const auto& [id, access] : loops.loads) {
    const BufferId b = program.arena[id].buffer;
    if (root(program, b) != from) continue;
    Linear own = in_root(program, b, access.at);
    if (program.buffers[b].dtype != program.buffers[result.buffer].dtype || (at && !same(loops, *at, own)))
      return std::nullopt;
    at = std::move(own);
  }
  Linear begin;
  begin.base = result.offset;
  if (!at || !(at->base == in_root(program, result.buffer, begin).base)) return std::nullopt;

  BlockStage out;
  out.stage = &stage;
  Walk walk(loops, *at);
  std::vector<size_t> columns;
  if (!walk.over(result.sizes[channel], result.strides[channel], columns) || columns.size() != 1) return std::nullopt;
  out.columns = columns[0];
  for (size_t d = result.sizes.size(); d-- > 0;)
    if (d != channel && !walk.over(result.sizes[d], result.strides[d], out.rows)) return std::nullopt;
  if (!walk.all()) return std::nullopt;
  auto step = [&](const LinearAccess& access) { return access.at.by_loop[out.columns]; };
  for (const auto& [id, access] : loops.loads)
    if (step(access) != SymInt(0) && step(access) != SymInt(1)) return std::nullopt;
  for (size_t i = 0; i < stage.stores.size(); ++i) {
    if (step(*loops.stores[i]) != SymInt(1)) return std::nullopt;
    const BufferId to = stage.stores[i].to;
    const loop::Buffer &made = program.buffers[to], &read = program.buffers[from];
    if (made.view_of == loop::no_buffer && made.dtype == read.dtype && made.sizes == read.sizes &&
        made.strides == read.strides && same(loops, loops.stores[i]->at, *at))
      out.in_place = to;
  }
  return out;
}

}  // namespace tenon::compile
