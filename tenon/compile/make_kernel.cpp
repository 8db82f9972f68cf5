#include "tenon/compile/make_kernel.h"

#include <algorithm>
#include <memory>

#include "tenon/base/error.h"
#include "tenon/compile/row_stages.h"
#include "tenon/compile/stage_reduction.h"

namespace tenon::compile {
namespace {

using loop::ExprId;
using loop::Fn;

constexpr int block_points = 1024;

// Instructions an expression costs, roughly: long bodies are unrolled less.
int weight(const loop::Program& program, ExprId id) {
  const loop::ExprNode& n = program.arena[id];
  bool long_one = n.fn == Fn::pow || n.fn == Fn::atan2 || n.fn == Fn::hypot || n.fn == Fn::random_bits ||
                  n.fn == Fn::fmod || n.fn == Fn::remainder || n.fn == Fn::floor_div ||
                  (n.fn >= Fn::exp && n.fn <= Fn::sigmoid);
  int sum = long_one ? 20 : 1;
  for (ExprId a : n.args)
    if (sum <= 24) sum += weight(program, a);
  return sum;
}

/// One stage of a kernel.
class Part {
 public:
  Part(Builder& b, const loop::Program& program, const loop::Stage& stage, StageLoops loops,
       const KernelOptions& options, StageKernel& out, StageMemory& memory)
      : program_(program),
        stage_(stage),
        loops_(std::move(loops)),
        fixed_(!options.numbers_are_params),
        b_(b),
        values_(b, program, loops_, options, out, memory) {
    for (const loop::Store& s : stage.stores) values_.mark_written(s.to);
    if (stage_.accumulators.empty()) lanes_ = loops_.best_lanes();
    else {
      terms_ = fixed_ ? how_many(stage, loops_, program_.ranges) : Terms::unknown;
      if (terms_ == Terms::few || terms_ == Terms::columns) lanes_ = loops_.best_lanes();
    }
    for (size_t g = 0; g < loops_.domain.size(); ++g)
      if (g != lanes_) nest_.push_back(&loops_.domain[g]);
    if (lanes_) nest_.push_back(&loops_.domain[*lanes_]);
  }

  const StageLoops& loops() const { return loops_; }
  /// Iterations of its outermost loop must be taken in order.
  bool is_serial() const {
    if (!loops_.serial) return false;
    if (loops_.stores_meet || nest_.size() < 2) return true;
    for (size_t k = nest_[0]->first; k <= nest_[0]->last; ++k)
      if (!loops_.apart[k]) return true;
    return false;
  }

  /// Certainly nothing to do: 2^40 rows of nothing are not walked.
  bool is_empty() const { return points() == SymInt(0); }
  /// The iterations that the kernel's [lo, hi) is of, where the stage is all there is.
  SymInt extent() const {
    if (in_blocks()) return sym::ceil_div(points(), block_points);
    if (is_empty()) return 0;
    return nest_.empty() ? SymInt(1) : nest_[0]->extent;
  }
  void emit_whole() {
    Val lo = b_.lo(), hi = b_.hi();
    if (in_blocks()) blocks(lo, hi);
    else if (!nest_.empty()) domain(0, true);
    else
      b_.loop(lo, hi, {}, [&](Val, const Vals&) -> Vals {
        point();
        return {};
      });
  }

  /// Rows [lo, hi) of a block, and their columns.
  void emit_block(const BlockStage& block, Val first, Val last) {
    // Loops over rows that every access walks through densely are one; often the columns belong to it, too.
    std::vector<size_t> innermost;
    std::vector<SymInt> extents;
    for (size_t k : block.rows) {
      if (!innermost.empty() && loops_.dense(innermost.back(), k)) {
        innermost.back() = k;
        extents.back() = extents.back() * loops_.extents[k];
      } else {
        innermost.push_back(k);
        extents.push_back(loops_.extents[k]);
      }
    }
    const LoopGroup columns{block.columns, block.columns, loops_.extents[block.columns]};
    Val lo = b_.lo(), hi = b_.hi();
    for (size_t k : block.rows) values_.enter({k, k, loops_.extents[k]}, Val());
    if (block.whole_rows && innermost.size() <= 1 &&
        std::all_of(innermost.begin(), innermost.end(), [&](size_t k) { return loops_.dense(k, block.columns); })) {
      Val width = values_.size(columns.extent), from = lo * width, to = hi * width;
      return columns_of(columns, from, to);
    }
    b_.loop(lo, hi, {}, [&](Val row, const Vals&) -> Vals {
      auto known = values_.save();
      Val rest = row;
      for (size_t g = innermost.size(); g-- > 0;) {
        Val index = rest;
        if (g > 0) {
          Val extent = values_.size(extents[g]);
          rest = binary(Op::div, rest, extent);
          index = index - rest * extent;
        }
        values_.enter({innermost[g], innermost[g], extents[g]}, index);
      }
      values_.load_early(stage_.stores);
      columns_of(columns, first, last);
      values_.restore(std::move(known));
      return {};
    });
  }

  Val size(SymInt value) { return values_.size(value); }
  void enter_row(const LoopGroup& group, Val index) {
    values_.enter(group, index);
    known_.push_back(values_.save());
  }
  void leave_row(const LoopGroup& group) {
    values_.restore(std::move(known_.back()));
    known_.pop_back();
    values_.leave(group);
  }
  /// What the stage does in the row where its loops over rows stand.
  void emit_row() {
    if (is_empty()) return;
    if (in_blocks()) blocks(b_.integer(Type::i64, 0), values_.size(extent()));
    else domain(0, false);
  }

 private:
  bool in_blocks() const { return loops_.stores_meet && lanes_; }
  SymInt points() const {
    SymInt points = 1;
    for (const LoopGroup& g : loops_.domain) points = points * g.extent;
    return points;
  }

  void columns_of(const LoopGroup& columns, Val from, Val to) {
    b_.lanes(from, to, ways(columns.extent), {}, [&](Val i, const Vals&) -> Vals {
      auto known = values_.save();
      values_.enter_lanes({&columns, 1}, i);
      point();
      values_.leave_lanes({&columns, 1});
      values_.restore(std::move(known));
      return {};
    });
  }

  /// Lanes that are unrolled to. A reduction of few terms within them asks for each term where it lies: once for as
  /// many lanes as there are.
  int ways(SymInt extent) const {
    const bool few = stage_.accumulators.size() == 1 && terms_ == Terms::few && is_four_bytes(stage_.accumulators[0]);
    if (few && extent.is_int() && extent.as_int() >= 32) return extent.as_int() >= 64 ? 64 : 32;
    int sum = 0;
    for (const loop::Store& s : stage_.stores) sum += weight(program_, s.value);
    for (const loop::Accumulator& a : stage_.accumulators) sum += weight(program_, a.value);
    return sum > 24 || !stage_.accumulators.empty() ? 16 : 32;
  }
  static bool is_four_bytes(const loop::Accumulator& a) {
    const bool value = a.combine != loop::Combine::argmin && a.combine != loop::Combine::argmax;
    return value && a.type == loop::Compute::f32;
  }

  void domain(size_t depth, bool whole) {
    if (depth == nest_.size()) return point();
    const LoopGroup& group = *nest_[depth];
    bool lane = lanes_ && depth + 1 == nest_.size(), shared = whole && depth == 0;
    Val from = shared ? b_.lo() : b_.integer(Type::i64, 0);
    Val to = shared ? b_.hi() : values_.size(group.extent);
    if (lane && sym::range_of(group.extent, program_.ranges).lo > 0 && !shared) values_.load_early(stage_.stores);
    if (lane && terms_ == Terms::columns) {
      StageReduction sums(b_, stage_, loops_, values_, fixed_);
      if (sums.streams(group)) return sums.emit_streamed(group, from, to, ways(group.extent), [&] { store_all(); });
    }
    auto body = [&](Val i, const Vals&) -> Vals {
      auto known = values_.save();
      if (lane) values_.enter_lanes({&group, 1}, i);
      else values_.enter(group, i);
      domain(depth + 1, whole);
      if (lane) values_.leave_lanes({&group, 1});
      else values_.leave(group);
      values_.restore(std::move(known));
      return {};
    };
    if (lane) b_.lanes(from, to, ways(group.extent), {}, body);
    else b_.loop(from, to, {}, body);
  }

  // Several stores may meet in one place: one after the other, over blocks of the domain, as the interpreter takes
  // them.
  void blocks(Val from, Val to) {
    Val end = values_.size(points());
    b_.loop(from, to, {}, [&](Val block, const Vals&) -> Vals {
      Val first = block * block_points, last = binary(Op::min, first + block_points, end);
      for (size_t i = 0; i < stage_.stores.size(); ++i)
        b_.lanes(first, last, ways(block_points), {}, [&](Val position, const Vals&) -> Vals {
          auto known = values_.save();
          values_.enter_lanes(loops_.domain, position);
          if (!stage_.accumulators.empty()) StageReduction(b_, stage_, loops_, values_, fixed_).emit(terms_);
          values_.store(stage_.stores[i], loops_.stores[i]);
          values_.leave_lanes(loops_.domain);
          values_.restore(std::move(known));
          return {};
        });
      return {};
    });
  }

  void point() {
    if (!stage_.accumulators.empty()) StageReduction(b_, stage_, loops_, values_, fixed_).emit(terms_);
    store_all();
  }
  void store_all() {
    for (const loop::Store& s : stage_.stores) values_.value(s.value);  // before any of them changes memory
    for (size_t i = 0; i < stage_.stores.size(); ++i) values_.store(stage_.stores[i], loops_.stores[i]);
  }

  const loop::Program& program_;
  const loop::Stage& stage_;
  StageLoops loops_;
  bool fixed_;
  Builder& b_;
  StageValues values_;
  std::optional<size_t> lanes_;
  std::vector<const LoopGroup*> nest_;  // from the outside; lanes are the last
  std::vector<std::map<ExprId, Val>> known_;
  Terms terms_ = Terms::few;
};

/// All stages in one row after another.
class Rows {
 public:
  Rows(Builder& b, std::vector<std::unique_ptr<Part>>& parts) : b_(b), parts_(parts) {
    size_t loops = parts[0]->loops().rows.size();
    for (size_t k = 0; k < loops; ++k) {
      bool joins = k > 0 && std::all_of(parts.begin(), parts.end(), [&](auto& p) { return p->loops().joined[k]; });
      if (!joins) starts_.push_back(k);
    }
    starts_.push_back(loops);
  }

  SymInt extent() const {
    bool empty = std::all_of(parts_.begin(), parts_.end(), [](auto& p) { return p->is_empty(); });
    for (size_t depth = 1; depth + 1 < starts_.size(); ++depth)
      empty = empty || group(*parts_[0], depth).extent == SymInt(0);
    if (empty) return 0;
    return starts_.size() > 1 ? group(*parts_[0], 0).extent : SymInt(1);
  }
  void emit() {
    if (starts_.size() > 1) return nest(0);
    Val lo = b_.lo(), hi = b_.hi();
    b_.loop(lo, hi, {}, [&](Val, const Vals&) -> Vals {
      for (auto& p : parts_) p->emit_row();
      return {};
    });
  }

 private:
  LoopGroup group(const Part& part, size_t depth) const {
    const std::vector<LoopGroup>& rows = part.loops().rows;
    LoopGroup out{rows[starts_[depth]].first, rows[starts_[depth + 1] - 1].last, 1};
    for (size_t k = starts_[depth]; k < starts_[depth + 1]; ++k) out.extent = out.extent * rows[k].extent;
    return out;
  }
  void nest(size_t depth) {
    if (depth + 1 == starts_.size()) {
      for (auto& p : parts_) p->emit_row();
      return;
    }
    Val from = depth == 0 ? b_.lo() : b_.integer(Type::i64, 0);
    Val to = depth == 0 ? b_.hi() : parts_[0]->size(group(*parts_[0], depth).extent);
    b_.loop(from, to, {}, [&](Val i, const Vals&) -> Vals {
      for (auto& p : parts_) p->enter_row(group(*p, depth), i);
      nest(depth + 1);
      for (auto& p : parts_) p->leave_row(group(*p, depth));
      return {};
    });
  }

  Builder& b_;
  std::vector<std::unique_ptr<Part>>& parts_;
  std::vector<size_t> starts_;  // of groups of loops over rows that are walked as one; then their number
};

}  // namespace

StageKernel make_kernel(const loop::Program& program, const loop::Stage& stage, const KernelOptions& options) {
  StageKernel out;
  StageMemory memory;
  Builder b(options.name);
  Part part(b, program, stage, analyze(program, stage), options, out, memory);
  out.serial = part.is_serial();
  out.conditions = part.loops().conditions;
  out.extent = part.extent();
  part.emit_whole();
  out.kernel = b.finish();
  return out;
}

StageKernel make_kernel(const loop::Program& program, const BlockStage& block, const KernelOptions& options) {
  StageKernel out;
  StageMemory memory;
  Builder b(options.name);
  Part part(b, program, *block.stage, analyze(program, *block.stage), options, out, memory);
  out.conditions = part.loops().conditions;
  out.extent = 1;
  for (size_t k : block.rows) out.extent = out.extent * part.loops().extents[k];
  const uint32_t columns = b.scratch("columns", Element::i64, 2);
  Val first = b.load({columns, b.integer(Type::i64, 0)}), last = b.load({columns, b.integer(Type::i64, 1)});
  part.emit_block(block, first, last);
  out.kernel = b.finish();
  return out;
}

StageKernel make_kernel(const loop::Program& program, const RowStages& stages, const KernelOptions& options) {
  StageKernel out;
  StageMemory memory;
  Builder b(options.name);
  AnalyzedRows analyzed = analyze(program, stages);
  for (const RowLocal& local : analyzed.locals)
    memory.rows[local.buffer] =
        b.scratch(text("row", memory.rows.size()), element_of(program.buffers[local.buffer].dtype), local.count);
  std::vector<std::unique_ptr<Part>> parts;
  for (size_t i = 0; i < stages.stages.size(); ++i) {
    parts.push_back(
        std::make_unique<Part>(b, program, *stages.stages[i], std::move(analyzed.loops[i]), options, out, memory));
    for (SymInt c : parts.back()->loops().conditions)
      if (std::find(out.conditions.begin(), out.conditions.end(), c) == out.conditions.end())
        out.conditions.push_back(c);
  }
  Rows rows(b, parts);
  out.extent = rows.extent();
  rows.emit();
  out.kernel = b.finish();
  return out;
}

}  // namespace tenon::compile
