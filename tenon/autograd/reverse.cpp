#include "tenon/autograd/reverse.h"

#include "tenon/autograd/control.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/view_writes.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/retrace.h"

namespace tenon {
namespace {

bool is_differentiable(const GraphBody& graph, Value v) {
  const ValueInfo& info = graph.info(v);
  return info.type == ValueType::tensor && tenon::is_differentiable(info.meta.dtype);
}

/// Which values carry gradients back to the wanted inputs.
class Reach {
 public:
  Reach(const GraphBody& graph) : graph_(graph) {}
  bool operator[](Value v) const { return v.id < carries_.size() && carries_[v.id]; }
  void start(Value v) { set(v); }
  bool through(const Node& node) const {  // whether any of its inputs does
    bool any = false;
    if (node.grad_enabled && !node.op->traits.stops_gradient)
      for_each_input(node, [&](Value v) { any = any || (*this)[v]; });
    return any;
  }
  void pass(const Node& node) {
    if (through(node))
      for_each_result(node, [&](Value v) {
        if (is_differentiable(graph_, v)) set(v);
      });
  }

 private:
  void set(Value v) {
    if (carries_.size() <= v.id) carries_.resize(std::max<size_t>(v.id + 1, graph_.values.size()));
    carries_[v.id] = true;
  }
  const GraphBody& graph_;
  std::vector<bool> carries_;
};

bool has_rule(const Op& op) { return op.def && (op.def->vjp || op.kind == OpKind::view); }

// Of complex numbers an op is differentiated as what it stands for.
DecomposeRule complex_meaning(const Op& op, std::span<const CallArg> args) {
  if (!op.def || op.kind == OpKind::view || op.functional || !meets_complex(args)) return nullptr;
  return meaning_of(op, args);
}

bool gives_differentiable(const GraphBody& graph, const Node& node) {
  bool any = false;
  for_each_result(node, [&](Value v) { any = any || is_differentiable(graph, v); });
  return any;
}

Tensor requiring_grad(const Tensor& t) {
  TensorMeta meta = t.meta();
  meta.requires_grad = true;
  return Tensor(std::move(meta), t.impl()->graph, t.impl()->value);
}

/// Traces calls; those that gradients flow through and that have no rule are replaced as they come.
class Preparer : public Dispatcher {
 public:
  Preparer(GraphBody& graph) : tracer(graph), reach(graph) {}
  Tracer tracer;
  Reach reach;

  CallResults run(const Op& op, CallArgs args) override {
    bool flows = false;
    if (grad_enabled() && !op.traits.stops_gradient)
      for (const CallArg& a : args)
        for_each_tensor(a, [&](const Tensor& t) { flows = flows || (t && t.is_traced() && reach[{t.impl()->value}]); });
    DecomposeRule complex = flows ? complex_meaning(op, args) : nullptr;
    if (flows && (complex || !has_rule(op))) {
      const OpDef* def = op.def;
      DecomposeRule rule = complex ? complex : def ? (def->for_grad ? def->for_grad : def->decompose) : nullptr;
      if (rule) {
        for (CallArg& a : args)  // a rule may choose by what needs a gradient
          a = map_tensors<Tensor>(a, [&](const Tensor& t) {
            return t && t.is_traced() && reach[{t.impl()->value}] ? requiring_grad(t) : t;
          });
        DispatchScope scope(this);
        Build build(op, args);
        return rule(build).values;
      }
    }
    size_t before = tracer.graph().nodes.size();
    CallResults results = tracer.call(op, std::move(args));
    for (size_t i = before; i < tracer.graph().nodes.size(); ++i) {
      const Node& node = tracer.graph().nodes[i];
      require(!reach.through(node) || has_rule(*node.op) || !gives_differentiable(tracer.graph(), node),
              "the operator ", node.op->name(), " has no gradient yet");
      reach.pass(node);
    }
    return results;
  }
};

/// Which nodes the values depend on; all where there are none.
std::vector<bool> leading_to(const GraphBody& graph, const std::vector<Value>& values) {
  std::vector<bool> nodes(graph.nodes.size(), values.empty()), read(graph.values.size());
  for (Value v : values) read[v.id] = true;
  for (size_t i = graph.nodes.size(); !values.empty() && i-- > 0;) {
    for_each_result(graph.nodes[i], [&](Value v) { nodes[i] = nodes[i] || read[v.id]; });
    if (nodes[i]) for_each_input(graph.nodes[i], [&](Value v) { read[v.id] = true; });
  }
  return nodes;
}

}  // namespace

Graph prepare_for_gradients(const GraphBody& from, const std::vector<bool>& differentiable,
                            const std::vector<Value>& of) {
  Replay replay(from);
  Preparer preparer(replay.graph.body());
  // A graph within another, of which the gradient is being made: symbols of the two have names of their own.
  sym::ShapeEnv* around = growing_shapes();
  int& next = replay.graph->shapes.next_unbacked;
  if (around) next = std::max(next, around->next_unbacked);
  ShapesScope shapes(&from.shapes);
  replay.inputs();
  for (size_t i = 0; i < from.inputs.size(); ++i)
    if (const Value* v = from.inputs[i].get<Value>(); v && differentiable[i]) preparer.reach.start(replay.map[v->id]);
  const std::vector<bool> leads = leading_to(from, of);
  for (size_t n = 0; n < from.nodes.size(); ++n) {
    const Node& node = from.nodes[n];
    bool flows = false;
    if (leads[n] && node.grad_enabled && !node.op->traits.stops_gradient)
      for_each_input(node, [&](Value v) { flows = flows || preparer.reach[replay.map[v.id]]; });
    if (flows && is_control(node) && gives_differentiable(from, node)) {
      auto first = static_cast<NodeId>(replay.graph->nodes.size());
      prepare_control(node, replay);
      for (NodeId id = first; id < replay.graph->nodes.size(); ++id) preparer.reach.pass(replay.graph->nodes[id]);
      continue;
    }
    bool stays = !flows || !gives_differentiable(from, node);
    if (!stays) {
      CallArgs args;
      for (const Arg& a : node.args) args.push_back(preparer.tracer.call_arg(replay.moved(a)));
      // What is not supported is described by the file alone: no rule may rely on it.
      if (meets_complex(args) && implementation_of(*node.op, args) == Implementation::none)
        fail_unsupported(text("the operator ", node.op->name(), " of complex tensors is not supported yet"));
      if (has_rule(*node.op)) stays = !complex_meaning(*node.op, args);
    }
    if (stays) {
      NodeId id = replay.node(node);
      if (leads[n]) preparer.reach.pass(replay.graph->nodes[id]);
      continue;
    }
    retrace(node, replay, preparer.tracer, preparer);
  }
  replay.outputs();
  if (around) around->next_unbacked = std::max(around->next_unbacked, next);
  return std::move(replay.graph);
}

namespace {

class Backward {
 public:
  explicit Backward(GraphBody& graph) : graph_(graph), tracer_(graph), grads_(graph.values.size()) {}

  std::vector<Value> run(const std::vector<Value>& outputs, const std::vector<Value>& cotangents,
                         const std::vector<Value>& inputs) {
    size_t forward_nodes = graph_.nodes.size();
    Reach reach(graph_);
    for (Value v : inputs) reach.start(v);
    for (size_t i = 0; i < forward_nodes; ++i) reach.pass(graph_.nodes[i]);
    ShapesScope shapes(&graph_.shapes);
    DispatchScope scope(&tracer_);
    tracer_.phase = Phase::backward;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (reach[outputs[i]]) accumulate(outputs[i], tracer_.tensor(cotangents[i]));
    for (size_t i = forward_nodes; i-- > 0;) {
      Node node = graph_.nodes[i];  // a copy: rules append nodes
      if (!reach.through(node)) continue;
      std::vector<Tensor> grads, outs;
      bool any = false;
      auto take = [&](Value v) {
        if (v && v.id < grads_.size()) any = any || grads_[v.id];
        grads.push_back(v && v.id < grads_.size() ? std::move(grads_[v.id]) : Tensor());
        outs.push_back(tracer_.tensor(v));
        if (v && v.id < grads_.size()) grads_[v.id] = Tensor();
      };
      for (const Arg& result : node.results) {
        if (result.is_none()) take({});  // rules count results by the schema
        for_each_tensor(result, [&](const Value& v) { take(v); });
      }
      if (!any) continue;
      tracer_.metadata = node.origin.metadata;
      if (node.op->kind == OpKind::view) through_view(node, grads);
      else if (is_control(node)) {
        for (OperandGradient& g : through_control(node, grads, tracer_, [&](Value v) { return reach[v]; }))
          if (reach[g.operand]) accumulate(g.operand, g.gradient);
      } else through_rule(node, grads, outs, reach);
    }
    std::vector<Value> out;
    for (Value v : inputs) out.push_back(v && grads_[v.id] ? tracer_.value(grads_[v.id]) : Value{});
    return out;
  }

 private:
  void accumulate(Value v, Tensor g) {
    if (!g || !v) return;
    const TensorMeta meta = graph_.info(v).meta;  // a copy: what follows appends values
    if (g.sizes() != meta.sizes && g.rank() >= meta.rank()) g = sum_to(g, meta.sizes);
    if (g.dtype() != meta.dtype) g = to(g, meta.dtype);
    grads_.resize(std::max(grads_.size(), graph_.values.size()));
    grads_[v.id] = grads_[v.id] ? grads_[v.id] + g : g;
  }

  void through_view(const Node& node, const std::vector<Tensor>& grads) {
    CallArgs args;
    for (const Arg& a : node.args) args.push_back(tracer_.call_arg(a));
    MetaCall call(*node.op, args);
    std::vector<IndexMap> maps = node.op->def->view(call);
    const TensorMeta base = call.meta(size_t{0});
    for (size_t i = 0; i < maps.size(); ++i)
      if (grads[i]) accumulate(*node.args[0].get<Value>(), gradient_through(maps[i], base, grads[i]));
  }

  void through_rule(const Node& node, const std::vector<Tensor>& grads, const std::vector<Tensor>& outs,
                    const Reach& reach) {
    CallArgs args;
    std::vector<uint8_t> needed;
    for (const Arg& a : node.args) {
      args.push_back(tracer_.call_arg(a));
      bool any = false;
      for_each_tensor(a, [&](const Value& v) { any = any || (v && reach[v]); });
      needed.push_back(any);
    }
    expect(node.op->def && node.op->def->vjp, node.op->name(), " has no gradient rule");
    Vjp call(*node.op, args, grads, outs,
             std::span<const bool>(reinterpret_cast<const bool*>(needed.data()), needed.size()));
    Grads results = gradients(call);
    for (size_t i = 0; i < std::min(results.size(), node.args.size()); ++i) {
      if (!needed[i]) continue;
      if (auto* v = node.args[i].get<Value>()) accumulate(*v, results[i].one);
      else if (auto* list = node.args[i].get<std::vector<Value>>())
        for (size_t k = 0; k < std::min(list->size(), results[i].list.size()); ++k)
          if ((*list)[k] && reach[(*list)[k]]) accumulate((*list)[k], results[i].list[k]);
    }
  }

  GraphBody& graph_;
  Tracer tracer_;
  std::vector<Tensor> grads_;  // by value
};

}  // namespace

std::vector<Value> append_backward(GraphBody& graph, const std::vector<Value>& outputs,
                                   const std::vector<Value>& cotangents, const std::vector<Value>& inputs) {
  return Backward(graph).run(outputs, cotangents, inputs);
}

}  // namespace tenon
