#include "tenon/passes/autocast.h"

#include "tenon/ops/conversion.h"
#include "tenon/passes/attempt.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

// The floating dtype that the first result with one is described in.
std::optional<DType> described(const GraphBody& graph, const Node& node) {
  std::optional<DType> found;
  for_each_result(node, [&](Value v) {
    const ValueInfo& info = graph.info(v);
    if (!found && info.type == ValueType::tensor && is_floating(info.meta.dtype)) found = info.meta.dtype;
  });
  return found;
}

// Promotion within an operator gives the same dtype as a conversion before it, but rounds elsewhere.
bool takes_narrower(const GraphBody& graph, const Node& node, DType wanted) {
  bool any = false;
  for_each_input(node, [&](Value v) {
    const ValueInfo& info = graph.info(v);
    any = any || (info.type == ValueType::tensor && is_floating(info.meta.dtype) &&
                  item_size(info.meta.dtype) < item_size(wanted));
  });
  return any;
}

bool gives(Tracer& tracer, const Node& node, DType wanted) {
  CallArgs args;
  for (const Arg& arg : node.args) args.push_back(tracer.call_arg(arg));
  sym::ShapeEnv shapes = tracer.graph().shapes;  // a trial leaves no symbols behind
  ShapesScope scope(&shapes);
  Attempt as_it_stands = attempt(*node.op, args);
  if (!as_it_stands.metas) return false;
  std::optional<DType> first;
  for (const auto& meta : as_it_stands.metas->values)
    for_each_tensor(meta, [&](const TensorMeta& m) {
      if (!first && is_floating(m.dtype)) first = m.dtype;
    });
  return first == wanted;
}

}  // namespace

bool autocast_within(const Node& region, bool around) {
  if (region.op->traits.control != Control::autocast_region) return around;
  const bool* enabled = region.args.size() > 2 ? region.args[2].get<bool>() : nullptr;
  return enabled && *enabled;
}

void convert_for_autocast(GraphBody& graph, Node& node) {
  std::optional<DType> wanted = described(graph, node);
  Tracer tracer(graph);
  if (!wanted || node.op->writes() || node.op->kind == OpKind::view) return;
  if (gives(tracer, node, *wanted) && (*wanted == DType::f64 || !takes_narrower(graph, node, *wanted))) return;
  GradMode grad(node.grad_enabled);
  DispatchScope scope(&tracer);
  for (Arg& arg : node.args)
    for_each_tensor(arg, [&](Value& v) {
      if (!v || graph.info(v).type != ValueType::tensor) return;
      DType dtype = graph.info(v).meta.dtype;
      if (is_floating(dtype) && dtype != DType::f64 && dtype != *wanted)
        v = tracer.value(to(tracer.tensor(v), *wanted));
    });
}

}  // namespace tenon
