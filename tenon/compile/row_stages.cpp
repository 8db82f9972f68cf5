#include "tenon/compile/row_stages.h"

#include <algorithm>
#include <set>

#include "tenon/base/error.h"
#include "tenon/compile/stage_reduction.h"

namespace tenon::compile {
namespace {

using loop::BufferId;

constexpr int64_t most_local_elements = 16384;    // of one buffer's row
constexpr int64_t most_local_bytes = 192 * 1024;  // of all of them: they should stay in the second cache

/// Loops of the stage's domain up to the `rows`th that has more than one iteration.
std::optional<size_t> row_loops_of(const loop::Stage& stage, size_t rows) {
  size_t found = 0, k = 0;
  for (; k < stage.domain.size() && found < rows; ++k)
    if (stage.domain[k] != SymInt(1)) ++found;
  return found == rows ? std::optional(k) : std::nullopt;
}

/// How the stages reach one buffer: by which distance from row to row, and from where to where within a row.
struct Reach {
  std::vector<SymInt> by_row;
  SymInt first = 0, last = 0;  // of the first row
};

class RowAnalysis {
 public:
  RowAnalysis(const loop::Program& program, const RowStages& stages) : program_(program), stages_(stages) {}

  bool prepare() {
    for (const loop::Stage* stage : stages_.stages) {
      auto loops = row_loops_of(*stage, stages_.rows);
      if (!loops) return false;
      loops_.push_back(compile::analyze(program_, *stage, *loops));
      const StageLoops& own = loops_.back();
      if (stages_.rows > 0 && (own.serial || own.stores_meet)) return false;
      if (stages_.rows > 0 && sums_columns(*stage)) return false;
      for (size_t k = 0; k < stages_.rows; ++k)
        if (own.rows[k].extent != loops_[0].rows[k].extent) return false;
      for (const loop::Store& s : stage->stores) written_.insert(root(s.to));
    }
    return true;
  }

  bool row_by_row() {
    if (stages_.rows == 0) return true;
    return std::all_of(written_.begin(), written_.end(), [&](BufferId b) { return reach(b).has_value(); });
  }

  AnalyzedRows run() {
    AnalyzedRows out;
    int64_t bytes = 0;
    for (BufferId b : stages_.locals) {
      auto whole = reach(b);
      if (!whole) continue;
      SymInt count = whole->last - whole->first + 1;
      if (!count.is_int() || count.as_int() <= 0 || count.as_int() > most_local_elements) continue;
      bytes += count.as_int() * static_cast<int64_t>(item_size(program_.buffers[b].dtype));
      if (bytes > most_local_bytes) break;
      out.locals.push_back({b, static_cast<uint64_t>(count.as_int())});
      for (StageLoops& loops : loops_)
        for_each_access(loops, b, [&](const loop::Buffer& buffer, Linear& at) {
          at.base = at.base + (buffer.view_of == loop::no_buffer ? SymInt(0) : buffer.offset) - whole->first;
          for (size_t k = 0; k < loops.row_loops; ++k) at.by_loop[k] = 0;
        });
    }
    out.loops = std::move(loops_);
    return out;
  }

 private:
  /// It does better with lanes over its points than with one point, which is a row, after another.
  bool sums_columns(const loop::Stage& stage) const {
    if (stage.accumulators.empty()) return false;
    StageLoops whole = compile::analyze(program_, stage), inner = loops_.back();
    return how_many(stage, whole, program_.ranges) == Terms::columns &&
           how_many(stage, inner, program_.ranges) != Terms::columns;
  }

  BufferId root(BufferId b) const {
    return program_.buffers[b].view_of == loop::no_buffer ? b : program_.buffers[b].view_of;
  }
  bool holds(SymInt condition) const { return sym::decide(condition, program_.ranges) == true; }

  template <class F>
  void for_each_access(StageLoops& loops, BufferId of, F&& visit) {
    for (auto& [id, access] : loops.loads) {
      BufferId b = program_.arena[id].buffer;
      if (root(b) == of) visit(program_.buffers[b], access.at);
    }
    const loop::Stage& stage = *stages_.stages[static_cast<size_t>(&loops - loops_.data())];
    for (size_t i = 0; i < stage.stores.size(); ++i)
      if (root(stage.stores[i].to) == of && loops.stores[i])
        visit(program_.buffers[stage.stores[i].to], loops.stores[i]->at);
  }

  /// Nothing where rows are not apart: a row of one access would meet another row of one.
  std::optional<Reach> reach(BufferId b) {
    std::optional<Reach> out;
    bool fits = true;
    for (StageLoops& loops : loops_) {
      for (BufferId c : loops.computed) fits = fits && root(c) != b;
      for_each_access(loops, b, [&](const loop::Buffer& buffer, const Linear& at) {
        fits = fits && add(loops, buffer, program_.buffers[b].dtype, at, out);
      });
    }
    if (!fits || !out) return std::nullopt;
    SymInt within = out->last - out->first + 1;
    for (size_t k = stages_.rows; k-- > 0;) {
      if (!holds(sym::ge(out->by_row[k], within))) return std::nullopt;
      within = out->by_row[k] * loops_[0].rows[k].extent;
    }
    return out;
  }
  bool add(const StageLoops& loops, const loop::Buffer& buffer, DType dtype, const Linear& at,
           std::optional<Reach>& out) const {
    if (buffer.dtype != dtype) return false;
    Reach one;
    one.first = at.base + (buffer.view_of == loop::no_buffer ? SymInt(0) : buffer.offset);
    one.last = one.first;
    for (const LoopGroup& row : loops.rows) one.by_row.push_back(at.by_loop[row.last]);
    for (size_t i = loops.row_loops; i < loops.extents.size(); ++i) {
      if (at.by_loop[i] == SymInt(0) || loops.extents[i] == SymInt(1)) continue;
      if (!holds(sym::ge(at.by_loop[i], 0))) return false;
      one.last = one.last + at.by_loop[i] * (loops.extents[i] - 1);
    }
    if (!out) {
      out = std::move(one);
      return true;
    }
    if (out->by_row != one.by_row) return false;
    if (!holds(sym::le(out->first, one.first))) {
      if (!holds(sym::le(one.first, out->first))) return false;
      out->first = one.first;
    }
    if (!holds(sym::le(one.last, out->last))) {
      if (!holds(sym::le(out->last, one.last))) return false;
      out->last = one.last;
    }
    return true;
  }

  const loop::Program& program_;
  const RowStages& stages_;
  std::vector<StageLoops> loops_;
  std::set<BufferId> written_;  // roots
};

}  // namespace

bool row_by_row(const loop::Program& program, const RowStages& stages) {
  RowAnalysis analysis(program, stages);
  return analysis.prepare() && analysis.row_by_row();
}

AnalyzedRows analyze(const loop::Program& program, const RowStages& stages) {
  RowAnalysis analysis(program, stages);
  expect(analysis.prepare(), "stages without common rows");
  return analysis.run();
}

}  // namespace tenon::compile
