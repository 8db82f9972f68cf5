#include "tenon/lower/lower.h"

#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

class Lowering {
 public:
  explicit Lowering(const GraphBody& graph)
      : graph_(graph), buffer_(graph.values.size(), loop::no_buffer), tensors_(graph.values.size()) {}

  loop::Program run() {
    ShapesScope shapes(&graph_.shapes);
    std::vector<bool> is_output(graph_.values.size());
    for (const Arg& output : graph_.outputs)
      for_each_tensor(output, [&](const Value& v) {
        if (v) is_output[v.id] = true;
      });
    for (const Arg& input : graph_.inputs)
      if (auto* v = input.get<Value>(); v && is_tensor(*v)) claim(*v, loop::Role::input);
    for (const Node& node : graph_.nodes) {
      for_each_result(node, [&](Value v) {
        if (is_tensor(v)) claim(v, is_output[v.id] ? loop::Role::output : loop::Role::temporary);
      });
      if (node.op->traits.asserts || node.op->kind == OpKind::symbolic) continue;
      if (node.op->kind == OpKind::view) view(node);
      else compute(node);
    }
    loop::verify(program_);
    return std::move(program_);
  }

 private:
  bool is_tensor(Value v) const { return graph_.info(v).type == ValueType::tensor; }

  void claim(Value v, loop::Role role) {
    const ValueInfo& info = graph_.info(v);
    tensors_[v.id] = Tensor(info.meta, const_cast<GraphBody*>(&graph_), v.id);
    program_.buffers.push_back({info.meta.dtype, info.meta.sizes, info.meta.strides, role, v.id, info.name});
    buffer_[v.id] = static_cast<loop::BufferId>(program_.buffers.size() - 1);
  }

  // A way of reading what is there already.
  void view(const Node& node) {
    loop::BufferId base = buffer_[node.args[0].get<Value>()->id];
    if (program_.buffers[base].view_of != loop::no_buffer) base = program_.buffers[base].view_of;
    Value root{static_cast<ValueId>(program_.buffers[base].slot)};
    for_each_result(node, [&](Value v) {
      loop::Buffer& b = program_.buffers[buffer_[v.id]];
      b.view_of = base;
      b.offset = graph_.info(v).meta.offset - graph_.info(root).meta.offset;
    });
  }

  void compute(const Node& node) {
    const OpDef* def = node.op->def;
    bool stages = def && (def->lower || def->scalar);
    require(stages || (def && def->kernel), node.op->name(), " has no stages; decompose the graph first");
    loop::Call call{node.op->name(), {}, {}};
    CallArgs args;
    for (const Arg& a : node.args) {
      if (auto* v = a.get<Value>(); v && *v && !is_tensor(*v)) {
        args.emplace_back(graph_.info(*v).expr);
        continue;
      }
      args.push_back(map_tensors<Tensor>(a, [&](const Value& v) { return v ? tensors_[v.id] : Tensor(); }));
      for_each_tensor(a, [&](const Value& v) {
        if (v) call.reads.push_back(buffer_[v.id]);
      });
    }
    std::vector<BasicArg<TensorMeta>> results;
    for (const Arg& r : node.results) {
      results.push_back(map_tensors<TensorMeta>(r, [&](const Value& v) { return graph_.info(v).meta; }));
      for_each_tensor(r, [&](const Value& v) {
        if (is_tensor(v)) call.writes.push_back(buffer_[v.id]);
      });
    }
    if (!stages || !lower_stages(node, args, results, call)) program_.steps.emplace_back(std::move(call));
  }

  // False where stages cannot do it for these arguments and a plain function can: an index by a mask.
  bool lower_stages(const Node& node, const CallArgs& args, const std::vector<BasicArg<TensorMeta>>& results,
                    const loop::Call& call) {
    std::vector<loop::BufferId> claimed = call.reads;
    claimed.insert(claimed.end(), call.writes.begin(), call.writes.end());
    size_t steps = program_.steps.size(), buffers = program_.buffers.size();
    try {
      Lower one(*node.op, args, results, program_, claimed);
      lower_op(one);
      return true;
    } catch (const Error&) {
      if (!node.op->def->kernel) throw;
      program_.steps.resize(steps);
      program_.buffers.resize(buffers);
      return false;
    }
  }

  const GraphBody& graph_;
  loop::Program program_;
  std::vector<loop::BufferId> buffer_;  // of each value that is a tensor
  std::vector<Tensor> tensors_;
};

}  // namespace

loop::Program lower(const GraphBody& graph) { return Lowering(graph).run(); }

}  // namespace tenon
