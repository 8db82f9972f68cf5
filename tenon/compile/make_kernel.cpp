#include "tenon/compile/make_kernel.h"

#include <bit>

#include "tenon/base/error.h"
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

class Maker {
 public:
  Maker(const loop::Program& program, const loop::Stage& stage, const KernelOptions& options)
      : program_(program),
        stage_(stage),
        loops_(analyze(program, stage)),
        fixed_(!options.numbers_are_params),
        b_(options.name),
        values_(b_, program, loops_, options, out_) {}

  StageKernel run() {
    for (const loop::Store& s : stage_.stores) values_.mark_written(s.to);
    std::optional<size_t> lanes;
    if (stage_.accumulators.empty()) lanes = loops_.best_lanes();
    else {
      terms_ = fixed_ ? how_many(loops_, program_.ranges) : Terms::unknown;
      if (terms_ == Terms::few) lanes = loops_.best_lanes();
    }
    out_.serial = loops_.serial;
    out_.conditions = loops_.conditions;
    if (loops_.stores_meet && lanes) {
      blocks();
      out_.kernel = b_.finish();
      return std::move(out_);
    }
    for (size_t g = 0; g < loops_.domain.size(); ++g)
      if (g != lanes) nest_.push_back(&loops_.domain[g]);
    if (lanes) nest_.push_back(&loops_.domain[*lanes]);
    has_lanes_ = lanes.has_value();
    out_.extent = nest_.empty() ? SymInt(1) : nest_[0]->extent;
    Val lo = b_.lo(), hi = b_.hi();
    if (nest_.empty())
      b_.loop(lo, hi, {}, [&](Val, const Vals&) -> Vals {
        point();
        return {};
      });
    else domain(0);
    out_.kernel = b_.finish();
    return std::move(out_);
  }

 private:
  int ways() const {
    int sum = 0;
    for (const loop::Store& s : stage_.stores) sum += weight(program_, s.value);
    for (const loop::Accumulator& a : stage_.accumulators) sum += weight(program_, a.value);
    return sum > 24 || !stage_.accumulators.empty() ? 16 : 32;
  }

  void domain(size_t depth) {
    if (depth == nest_.size()) return point();
    const LoopGroup& group = *nest_[depth];
    bool lane = has_lanes_ && depth + 1 == nest_.size();
    Val from = depth == 0 ? b_.lo() : b_.integer(Type::i64, 0);
    Val to = depth == 0 ? b_.hi() : values_.size(group.extent);
    if (lane && sym::range_of(group.extent, program_.ranges).lo > 0 && depth > 0)
      for (const loop::Store& s : stage_.stores) values_.load_early(s.value);
    auto body = [&](Val i, const Vals&) -> Vals {
      auto known = values_.save();
      if (lane) values_.enter_lanes({&group, 1}, i);
      else values_.enter(group, i);
      domain(depth + 1);
      if (lane) values_.leave_lanes({&group, 1});
      else values_.leave(group);
      values_.restore(std::move(known));
      return {};
    };
    if (lane) b_.lanes(from, to, ways(), {}, body);
    else b_.loop(from, to, {}, body);
  }

  // Several stores may meet in one place: one after the other, over blocks of the domain, as the interpreter takes
  // them.
  void blocks() {
    SymInt points = 1;
    for (const LoopGroup& g : loops_.domain) points = points * g.extent;
    out_.extent = sym::ceil_div(points, block_points);
    Val lo = b_.lo(), hi = b_.hi(), end = values_.size(points);
    b_.loop(lo, hi, {}, [&](Val block, const Vals&) -> Vals {
      Val first = block * block_points, last = binary(Op::min, first + block_points, end);
      for (size_t i = 0; i < stage_.stores.size(); ++i)
        b_.lanes(first, last, ways(), {}, [&](Val position, const Vals&) -> Vals {
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
    for (const loop::Store& s : stage_.stores) values_.value(s.value);  // before any of them changes memory
    for (size_t i = 0; i < stage_.stores.size(); ++i) values_.store(stage_.stores[i], loops_.stores[i]);
  }

  const loop::Program& program_;
  const loop::Stage& stage_;
  StageLoops loops_;
  bool fixed_;
  Builder b_;
  StageKernel out_;
  StageValues values_;
  std::vector<const LoopGroup*> nest_;  // from the outside; lanes are the last
  bool has_lanes_ = false;
  Terms terms_ = Terms::few;
};

}  // namespace

StageKernel make_kernel(const loop::Program& program, const loop::Stage& stage, const KernelOptions& options) {
  return Maker(program, stage, options).run();
}

}  // namespace tenon::compile
