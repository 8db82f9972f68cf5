#include "tenon/export/runnable.h"

namespace tenon {
namespace {

class Search {
 public:
  void look(const TensorMeta& meta, std::string_view name) {
    if (meta.device.type != DeviceType::cpu)
      found(text("the tensor ", quoted(name), " is on ", quoted(text(meta.device)),
                 "; Tenon runs programs on the CPU: give --device cpu to move this one there"));
    else if (meta.dtype == DType::c32)
      found(
          text("complex tensors of halves are not supported yet, and ", quoted(name), " is ", meta.dtype, unrunnable));
    else if (meta.layout != Layout::strided)
      found(text("only dense tensors are supported yet, and ", quoted(name), " has the layout ",
                 tenon::name(meta.layout), unrunnable));
  }

  void look(const GraphBody& graph) {
    for (const ValueInfo& info : graph.values) {
      switch (info.type) {
        case ValueType::tensor: look(info.meta, info.name); break;
        case ValueType::custom_object:
          found(text("custom objects are not supported yet, and ", quoted(info.name), " is one of the class ",
                     quoted(info.class_name), unrunnable));
          break;
        case ValueType::token:
        case ValueType::integer:
        case ValueType::floating:
        case ValueType::boolean: break;
      }
      if (reason) return;
    }
    for (const Node& node : graph.nodes)
      for (const Arg& arg : node.args) {
        if (auto* subgraph = arg.get<Subgraph>()) look(*subgraph->body);
        if (auto* device = arg.get<Device>();
            device && device->type != DeviceType::cpu && device->type != DeviceType::meta)
          found(text("the node ", quoted(node.origin.name), " (", node.op->target, ") makes a tensor on ",
                     quoted(text(*device)),
                     "; Tenon runs programs on the CPU: give --device cpu to move this one there"));
      }
  }

  // PyTorch 2.6 describes the tensors of such regions in the dtypes they would have outside of them.
  void look_for_autocast(const GraphBody& graph) {
    for (const Node& node : graph.nodes) {
      const bool* enabled = node.args.size() > 2 ? node.args[2].get<bool>() : nullptr;
      if (node.op->traits.control == Control::autocast_region && enabled && *enabled)
        found(text(
            "the file was exported by PyTorch 2.6, which describes the tensors of autocast regions as if there were ",
            "none, so that it cannot be read from the file what is computed in which dtype", unrunnable,
            "; export the model again with PyTorch 2.7 or later"));
      for (const Arg& arg : node.args)
        if (auto* subgraph = arg.get<Subgraph>()) look_for_autocast(*subgraph->body);
    }
  }

  void found(std::string what) {
    if (!reason) reason = std::move(what);
  }

  std::optional<std::string> reason;

 private:
  static constexpr std::string_view unrunnable = "; the program can be shown and converted only";
};

void move_graph(GraphBody& graph) {
  for (ValueInfo& info : graph.values) info.meta.device = Device();
  for (Node& node : graph.nodes)
    for (Arg& arg : node.args) {
      if (auto* device = arg.get<Device>(); device && device->type != DeviceType::meta) arg = Device();
      if (auto* subgraph = arg.get<Subgraph>()) {
        auto moved = std::make_shared<GraphBody>(*subgraph->body);
        move_graph(*moved);
        arg = Subgraph{subgraph->name, std::move(moved)};
      }
      // Regions name the kind of device that they autocast.
      if (node.op->traits.control == Control::autocast_region && &arg == node.args.data() && arg.is<std::string>())
        arg = std::string("cpu");
    }
}

Tensor on_cpu(const Tensor& tensor) {
  TensorMeta meta = tensor.meta();
  meta.device = Device();
  return Tensor(std::move(meta), tensor.storage());
}

}  // namespace

std::optional<std::string> why_not_runnable(const ExportedProgram& program) {
  Search search;
  for (const OpaquePayload& payload : program.opaque)
    search.found(
        text(quoted(payload.name),
             " is stored as a pickle of a custom class, which Tenon does not execute; the program can be shown "
             "and converted only"));
  search.look(program.graph.body());
  if (starts_with(program.torch_version, "2.6")) search.look_for_autocast(program.graph.body());
  for (const auto* list : {&program.state, &program.constants})
    for (const NamedTensor& t : *list) search.look(t.tensor.meta(), t.name);
  return search.reason;
}

void move_to_cpu(ExportedProgram& program) {
  move_graph(program.graph.body());
  for (auto* list : {&program.state, &program.constants})
    for (NamedTensor& t : *list) t.tensor = on_cpu(t.tensor);
  if (!program.samples) return;
  program.samples = [samples = std::move(program.samples)] {
    std::optional<SampleInputs> out = samples();
    if (!out) return out;
    for (CallArg& leaf : out->leaves)
      if (auto* tensor = leaf.get<Tensor>()) leaf = on_cpu(*tensor);
    out->file = {};
    return out;
  };
}

}  // namespace tenon
