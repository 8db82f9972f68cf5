// Which buffers a step reads and writes.
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/loop/program.h"
#include "tenon/tensor/arg_members.h"
#include "tenon/tensor/tensor.h"

namespace tenon {
template struct BasicArg<loop::BufferRef>;
template BasicArg<loop::BufferRef> without_tensors(const BasicArg<Tensor>&);
template BasicArg<Tensor> without_tensors(const BasicArg<loop::BufferRef>&);
}  // namespace tenon

namespace tenon::loop {
namespace {

using Visit = std::function<void(BufferId)>;

/// Visits the loads below some expressions, each expression once.
class Loads {
 public:
  Loads(const Program& program, const Visit& visit) : program_(program), visit_(visit) {}
  void of(ExprId id) {
    if (id == ~0u || !seen_.insert(id).second) return;
    const ExprNode& n = program_.arena[id];
    if (n.fn == Fn::load) visit_(n.buffer);
    for (ExprId arg : n.args) of(arg);
    of(n.guard);
    of(n.otherwise);
  }

 private:
  const Program& program_;
  const Visit& visit_;
  std::unordered_set<ExprId> seen_;
};

struct Reads {
  const Program& program;
  const Visit& visit;
  void operator()(const Stage& s) const {
    Loads loads(program, visit);
    for (const Accumulator& a : s.accumulators) loads.of(a.value);
    for (const Store& store : s.stores) {
      for (ExprId at : store.at) loads.of(at);
      loads.of(store.value);
      loads.of(store.where);
      if (store.mode != Mode::set) visit(store.to);
    }
  }
  void operator()(const Gemm& g) const {
    visit(g.a.buffer);
    visit(g.b.buffer);
    if (g.beta != 0) visit(g.out.buffer);
    of(g.epilogue);
  }
  void of(const Epilogue& e) const {
    if (e.has_bias) visit(e.bias.buffer);
    if (e.has_residual) visit(e.residual.buffer);
  }
  void operator()(const Convolution& c) const {
    if (c.part != ConvPart::input_gradient) visit(c.x.buffer);
    if (c.part != ConvPart::weight_gradient) visit(c.w.buffer);
    if (c.part != ConvPart::forward) visit(c.y.buffer);
    of(c.epilogue);
  }
  void operator()(const Pack& p) const { visit(p.from.buffer); }
  void operator()(const Attention& a) const {
    for (const Operand* o : {&a.q, &a.k, &a.v}) visit(o->buffer);
    if (a.has_mask) visit(a.mask.buffer);
  }
  void operator()(const AttentionGradient& a) const {
    for (const Operand* o : {&a.grad, &a.q, &a.k, &a.v, &a.out, &a.logsumexp}) visit(o->buffer);
    if (a.has_mask) visit(a.mask.buffer);
  }
  void operator()(const Sort& s) const { visit(s.in.buffer); }
  void operator()(const TopK& s) const { visit(s.in.buffer); }
  void operator()(const Scan& s) const { visit(s.in.buffer); }
  void operator()(const Call& c) const {
    for (const StepArg& arg : c.args)
      for_each_tensor(arg, [&](const BufferRef& b) {
        if (b) visit(b.id);
      });
  }
  void operator()(const Bind& b) const { visit(b.from); }
  void operator()(const Check& c) const {
    if (c.tensor != no_buffer) visit(c.tensor);
  }
  void operator()(const Control& c) const {
    for (const Body& body : c.bodies)
      for (const Step& step : body.steps) std::visit(*this, step);
  }
};

struct Writes {
  const Visit& visit;
  void operator()(const Stage& s) const {
    for (const Store& store : s.stores) visit(store.to);
  }
  void operator()(const Gemm& g) const { visit(g.out.buffer); }
  void operator()(const Convolution& c) const {
    visit((c.part == ConvPart::forward ? c.y : c.part == ConvPart::input_gradient ? c.x : c.w).buffer);
  }
  void operator()(const Pack& p) const { visit(p.to); }
  void operator()(const Attention& a) const {
    visit(a.out.buffer);
    visit(a.logsumexp.buffer);
  }
  void operator()(const AttentionGradient& a) const {
    for (const Operand* o : {&a.grad_q, &a.grad_k, &a.grad_v}) visit(o->buffer);
  }
  void operator()(const Sort& s) const {
    visit(s.values.buffer);
    visit(s.indices.buffer);
  }
  void operator()(const TopK& s) const {
    visit(s.values.buffer);
    visit(s.indices.buffer);
  }
  void operator()(const Scan& s) const {
    visit(s.out.buffer);
    if (s.has_indices) visit(s.indices.buffer);
  }
  void operator()(const Call& c) const {
    for (const StepArg& result : c.results)
      for_each_tensor(result, [&](const BufferRef& b) {
        if (b) visit(b.id);
      });
  }
  void operator()(const Bind&) const {}
  void operator()(const Check&) const {}
  void operator()(const Control& c) const {
    for (const Body& body : c.bodies)
      for (const Step& step : body.steps) std::visit(*this, step);
  }
};

/// Visits the sizes below some expressions, each expression once.
class SizesWithin {
 public:
  SizesWithin(const Program& program, const std::function<void(SymInt)>& visit) : program_(program), visit_(visit) {}
  void of(ExprId id) {
    if (id == ~0u || !seen_.insert(id).second) return;
    const ExprNode& n = program_.arena[id];
    if (n.fn == Fn::size) visit_(n.size);
    for (ExprId arg : n.args) of(arg);
    of(n.guard);
    of(n.otherwise);
  }

 private:
  const Program& program_;
  const std::function<void(SymInt)>& visit_;
  std::unordered_set<ExprId> seen_;
};

struct SizesOf {
  const Program& program;
  const std::function<void(SymInt)>& visit;
  void list(const Sizes& sizes) const {
    for (SymInt e : sizes) visit(e);
  }
  template <class... Operands>
  void all(const Operands&... operands) const {
    for (const Operand* o : {&operands...}) {
      list(o->sizes);
      list(o->strides);
      visit(o->offset);
    }
  }
  void operator()(const Stage& s) const {
    list(s.domain);
    list(s.reduce);
    SizesWithin within(program, visit);
    for (const Accumulator& a : s.accumulators) within.of(a.value);
    for (const Store& store : s.stores) {
      for (ExprId at : store.at) within.of(at);
      within.of(store.value);
      within.of(store.where);
    }
  }
  void operator()(const Gemm& g) const { all(g.a, g.b, g.out, g.epilogue.bias, g.epilogue.residual); }
  void operator()(const Pack& p) const {
    all(p.from);
    for (const Sizes* sizes : {&p.stride, &p.padding, &p.dilation}) list(*sizes);
    visit(p.groups);
  }
  void operator()(const Convolution& c) const {
    all(c.x, c.w, c.y, c.epilogue.bias, c.epilogue.residual);
    for (const Sizes* sizes : {&c.stride, &c.padding, &c.dilation, &c.output_padding}) list(*sizes);
    visit(c.groups);
  }
  void operator()(const Attention& a) const { all(a.q, a.k, a.v, a.out, a.logsumexp, a.mask); }
  void operator()(const AttentionGradient& a) const {
    all(a.grad, a.q, a.k, a.v, a.out, a.logsumexp, a.grad_q, a.grad_k, a.grad_v, a.mask);
  }
  void operator()(const Sort& s) const { all(s.in, s.values, s.indices); }
  void operator()(const TopK& s) const {
    all(s.in, s.values, s.indices);
    visit(s.k);
  }
  void operator()(const Scan& s) const { all(s.in, s.out, s.indices); }
  void operator()(const Call& c) const {
    for (const StepArg& arg : c.args) {
      if (auto* e = arg.get<SymInt>()) visit(*e);
      if (auto* sizes = arg.get<Sizes>()) list(*sizes);
    }
  }
  void operator()(const Bind&) const {}
  void operator()(const Check& c) const {
    if (c.tensor == no_buffer) visit(c.condition);
  }
  void operator()(const Control& c) const { visit(c.value); }
};

}  // namespace

void for_each_read(const Program& program, const Step& step, const Visit& visit) {
  std::visit(Reads{program, visit}, step);
}
void for_each_write(const Program&, const Step& step, const Visit& visit) { std::visit(Writes{visit}, step); }
void for_each_size(const Program& program, const Step& step, const std::function<void(SymInt)>& visit) {
  std::visit(SizesOf{program, visit}, step);
}

}  // namespace tenon::loop
