#include "tenon/lower/lower.h"

#include "tenon/ops/infer.h"
#include "tenon/ops/known.h"

namespace tenon {

loop::Program lower(const GraphBody& graph) {
  loop::Program program;
  ShapesScope shapes(&graph.shapes);
  std::vector<loop::BufferId> buffer(graph.values.size(), ~0u);
  std::vector<Tensor> tensors(graph.values.size());
  std::vector<bool> is_output(graph.values.size());
  for (const Arg& output : graph.outputs)
    for_each_tensor(output, [&](const Value& v) {
      if (v) is_output[v.id] = true;
    });
  auto claim = [&](Value v, loop::Role role) {
    const ValueInfo& info = graph.info(v);
    tensors[v.id] = Tensor(info.meta, const_cast<GraphBody*>(&graph), v.id);
    program.buffers.push_back({info.meta.dtype, info.meta.sizes, info.meta.strides, role, v.id, info.name});
    buffer[v.id] = static_cast<loop::BufferId>(program.buffers.size() - 1);
  };
  for (const Arg& input : graph.inputs)
    if (auto* v = input.get<Value>(); v && graph.info(*v).type == ValueType::tensor) claim(*v, loop::Role::input);
  for (const Node& node : graph.nodes) {
    for_each_result(node, [&](Value v) {
      if (graph.info(v).type == ValueType::tensor)
        claim(v, is_output[v.id] ? loop::Role::output : loop::Role::temporary);
    });
    if (node.op->kind == Kind::view) {  // a way of reading
      Value viewed = *node.args[0].get<Value>();
      loop::BufferId base = program.buffers[buffer[viewed.id]].view_of;
      if (base == loop::no_buffer) base = buffer[viewed.id];
      Value root{static_cast<ValueId>(program.buffers[base].slot)};
      for_each_result(node, [&](Value v) {
        loop::Buffer& b = program.buffers[buffer[v.id]];
        b.view_of = base;
        b.offset = graph.info(v).meta.offset - graph.info(root).meta.offset;
      });
    }
    if (node.op->traits.asserts || node.op->kind == Kind::view || node.op->kind == Kind::symbolic) continue;
    const OpDef* def = node.op->def;
    require(def && (def->lower || def->scalar), node.op->name(), " has no stages; decompose the graph first");
    CallArgs args;
    std::vector<loop::BufferId> claimed;
    for (const Arg& a : node.args) {
      if (auto* v = a.get<Value>(); v && *v && graph.info(*v).type != ValueType::tensor) {
        args.emplace_back(graph.info(*v).expr);
        continue;
      }
      args.push_back(map_tensors<Tensor>(a, [&](const Value& v) { return v ? tensors[v.id] : Tensor(); }));
      for_each_tensor(a, [&](const Value& v) {
        if (v) claimed.push_back(buffer[v.id]);
      });
    }
    std::vector<BasicArg<TensorMeta>> results;
    for (const Arg& r : node.results) {
      results.push_back(map_tensors<TensorMeta>(r, [&](const Value& v) { return graph.info(v).meta; }));
      for_each_tensor(r, [&](const Value& v) { claimed.push_back(buffer[v.id]); });
    }
    Lower one(*node.op, args, results, program, claimed);
    lower_op(one);
  }
  loop::verify(program);
  return program;
}

}  // namespace tenon
