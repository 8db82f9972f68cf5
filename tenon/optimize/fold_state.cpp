#include "tenon/optimize/fold_state.h"

#include <algorithm>

#include "tenon/optimize/compact.h"
#include "tenon/optimize/rewrite.h"
#include "tenon/optimize/step_list.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::Role;

bool all_numbers(const Sizes& sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [](SymInt e) { return e.is_int(); });
}

class Folding {
 public:
  Folding(loop::Program& program, StepList& list, const FoldOptions& options)
      : program_(program), options_(options), list_(list), folds_(list.size(), false) {}

  void run() {
    for (size_t i = 0; i < list_.size(); ++i) folds_[i] = may_fold(i);
    drop_halves();
    for (size_t i = 0; i < list_.size(); ++i) {
      if (!folds_[i]) continue;
      for (BufferId b : list_.writes(i))
        if (std::any_of(list_.readers(b).begin(), list_.readers(b).end(), [&](size_t r) { return !folds_[r]; }))
          make_derived(b);
      program_.on_state.push_back(list_[i]);
    }
    for (size_t i = 0; i < list_.size(); ++i)
      if (folds_[i]) list_.remove(i);
  }

 private:
  bool may_fold(size_t i) const {
    if (list_.fails(i) || !has_numbers(list_[i])) return false;
    auto good = [&](BufferId b) { return is_given(b) || is_filled_once(b); };
    return std::all_of(list_.reads(i).begin(), list_.reads(i).end(), good) &&
           std::all_of(list_.writes(i).begin(), list_.writes(i).end(), [&](BufferId b) { return is_filled_once(b); });
  }
  bool is_given(BufferId b) const {
    const loop::Buffer& buffer = program_.buffers[b];
    return buffer.role == Role::derived || (buffer.role == Role::state && !program_.inputs[buffer.slot].written);
  }
  // By one step or several, and read by others only when all of them are done.
  bool is_filled_once(BufferId b) const {
    const std::set<size_t>& writers = list_.writers(b);
    if (!list_.is_private(b) || writers.empty() || !all_numbers(program_.buffers[b].sizes)) return false;
    for (size_t r : list_.readers(b)) {
      if (r > *writers.rbegin()) break;
      if (!writers.contains(r)) return false;
    }
    return true;
  }

  // A buffer of which only some writers fold keeps all of them, and so does what is made of it.
  void drop_halves() {
    auto stays = [&](BufferId b) {
      const std::set<size_t>& writers = list_.writers(b);
      return std::any_of(writers.begin(), writers.end(), [&](size_t w) { return !folds_[w]; });
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < list_.size(); ++i) {
        if (!folds_[i] || (std::none_of(list_.reads(i).begin(), list_.reads(i).end(), stays) &&
                           std::none_of(list_.writes(i).begin(), list_.writes(i).end(), stays)))
          continue;
        folds_[i] = false;
        changed = true;
      }
    }
  }

  bool has_numbers(const loop::Step& step) const {
    auto operands = [](std::initializer_list<const loop::Operand*> list) {
      return std::all_of(list.begin(), list.end(), [](const loop::Operand* o) {
        return all_numbers(o->sizes) && all_numbers(o->strides) && o->offset.is_int();
      });
    };
    if (auto* stage = std::get_if<loop::Stage>(&step)) {
      bool numbers = all_numbers(stage->domain) && all_numbers(stage->reduce);
      bool draws = false;
      for_each_node(program_.arena, expressions_of(*stage), [&](loop::ExprId id) {
        const loop::ExprNode& n = program_.arena[id];
        if (n.fn == loop::Fn::size) numbers = numbers && n.size.is_int();
        draws = draws || n.fn == loop::Fn::random_bits;
      });
      if (!numbers || draws) return false;
      return options_.trivial || !stage->accumulators.empty() || !is_trivial(*stage);
    }
    if (auto* gemm = std::get_if<loop::Gemm>(&step)) return operands({&gemm->a, &gemm->b, &gemm->out});
    if (auto* c = std::get_if<loop::Convolution>(&step))
      return operands({&c->x, &c->w, &c->y}) && all_numbers(c->stride) && all_numbers(c->padding) &&
             all_numbers(c->dilation) && all_numbers(c->output_padding) && c->groups.is_int();
    return false;
  }

  bool is_trivial(const loop::Stage& stage) const {
    return std::all_of(stage.stores.begin(), stage.stores.end(), [&](const loop::Store& s) {
      return s.mode == loop::Mode::set && weight(program_, std::span(&s.value, 1)).work <= 2;
    });
  }

  void make_derived(BufferId root) {
    for (loop::Buffer& b : program_.buffers)
      if (b.view_of == root) b.role = Role::derived;
    program_.buffers[root].role = Role::derived;
  }

  loop::Program& program_;
  FoldOptions options_;
  StepList& list_;
  std::vector<bool> folds_;  // steps
};

}  // namespace

loop::Program fold_state(loop::Program program, const FoldOptions& options) {
  for_each_list(program, [&](StepList& list) { Folding(program, list, options).run(); });
  return compact(std::move(program));
}

}  // namespace tenon::optimize
