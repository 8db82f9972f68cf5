#include "tenon/optimize/compact.h"

#include "tenon/optimize/index.h"
#include "tenon/tensor/arg_members.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::ExprId;
using loop::Operand;

struct Buffers {
  const std::function<void(BufferId&)>& visit;
  template <class... Operands>
  void all(Operands&... operands) const {
    for (Operand* o : {&operands...}) visit(o->buffer);
  }
  void epilogue(loop::Epilogue& e) const { all(e.bias, e.residual); }
  void operator()(loop::Stage& s) const {
    for (loop::Store& store : s.stores) visit(store.to);
  }
  void operator()(loop::Gemm& g) const {
    all(g.a, g.b, g.out);
    epilogue(g.epilogue);
  }
  void operator()(loop::Convolution& c) const {
    all(c.x, c.w, c.y);
    epilogue(c.epilogue);
  }
  void operator()(loop::Pack& p) const {
    all(p.from);
    visit(p.to);
  }
  void operator()(loop::Attention& a) const { all(a.q, a.k, a.v, a.out, a.logsumexp, a.mask); }
  void operator()(loop::AttentionGradient& a) const {
    all(a.grad, a.q, a.k, a.v, a.out, a.logsumexp, a.grad_q, a.grad_k, a.grad_v, a.mask);
  }
  void operator()(loop::Sort& s) const { all(s.in, s.values, s.indices); }
  void operator()(loop::TopK& s) const { all(s.in, s.values, s.indices); }
  void operator()(loop::Scan& s) const { all(s.in, s.out, s.indices); }
  void operator()(loop::Call& c) const {
    for (auto* list : {&c.args, &c.results})
      for (loop::StepArg& arg : *list)
        arg = map_tensors<loop::BufferRef>(arg, [&](loop::BufferRef b) {
          if (b) visit(b.id);
          return b;
        });
  }
  void operator()(loop::Bind& b) const { visit(b.from); }
  void operator()(loop::Check& c) const {
    if (c.tensor != loop::no_buffer) visit(c.tensor);
  }
  void operator()(loop::Control& c) const {
    for (loop::Body& body : c.bodies)
      for (loop::Step& step : body.steps) std::visit(*this, step);
  }
};

class Compaction {
 public:
  explicit Compaction(loop::Program& program) : program_(program), now_(program.buffers.size(), loop::no_buffer) {}

  void run() {
    std::vector<bool> used(program_.buffers.size(), false);
    auto use = [&](BufferId b) {
      if (b == loop::no_buffer) return;
      used[b] = true;
      used[root_of(program_, b)] = true;
    };
    for (const loop::Input& input : program_.inputs) use(input.buffer);
    for (const loop::Output& output : program_.outputs) use(output.buffer);
    for (auto* steps : {&program_.on_state, &program_.steps})
      for (const loop::Step& step : *steps) {
        loop::for_each_read(program_, step, use);
        loop::for_each_write(program_, step, use);
      }
    std::vector<loop::Buffer> kept;
    for (BufferId b = 0; b < used.size(); ++b)
      if (used[b]) {
        now_[b] = static_cast<BufferId>(kept.size());
        kept.push_back(std::move(program_.buffers[b]));
      }
    for (loop::Buffer& b : kept) move(b.view_of);
    program_.buffers = std::move(kept);
    for (loop::Input& input : program_.inputs) move(input.buffer);
    for (loop::Output& output : program_.outputs) move(output.buffer);
    moved_.assign(program_.arena.size(), ~0u);
    for (auto* steps : {&program_.on_state, &program_.steps})
      for (loop::Step& step : *steps) {
        for_each_buffer(step, [&](BufferId& b) { b = now_[b] == loop::no_buffer ? 0 : now_[b]; });  // an absent operand
        move_stages(step);
      }
    program_.arena = std::move(arena_);
  }

 private:
  void move(BufferId& b) const {
    if (b != loop::no_buffer) b = now_[b];
  }
  void move_stages(loop::Step& step) {
    if (auto* stage = std::get_if<loop::Stage>(&step)) move(*stage);
    if (auto* control = std::get_if<loop::Control>(&step))
      for (loop::Body& body : control->bodies)
        for (loop::Step& inner : body.steps) move_stages(inner);
  }
  void move(loop::Stage& stage) {
    for (loop::Accumulator& a : stage.accumulators) a.value = moved(a.value);
    for (loop::Store& s : stage.stores) {
      for (ExprId& at : s.at) at = moved(at);
      s.value = moved(s.value);
      s.where = moved(s.where);
    }
  }
  ExprId moved(ExprId id) {
    if (id == ~0u || moved_[id] != ~0u) return id == ~0u ? id : moved_[id];
    loop::ExprNode node = program_.arena[id];
    for (ExprId& arg : node.args) arg = moved(arg);
    node.guard = moved(node.guard);
    node.otherwise = moved(node.otherwise);
    if (node.fn == loop::Fn::load) node.buffer = now_[node.buffer];
    return moved_[id] = arena_.add(std::move(node));
  }

  loop::Program& program_;
  loop::Arena arena_;
  std::vector<BufferId> now_;
  std::vector<ExprId> moved_;
};

}  // namespace

void for_each_buffer(loop::Step& step, const std::function<void(BufferId&)>& visit) {
  std::visit(Buffers{visit}, step);
}

loop::Program compact(loop::Program program) {
  Compaction(program).run();
  return program;
}

}  // namespace tenon::optimize
