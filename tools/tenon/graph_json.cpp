#include "tools/tenon/graph_json.h"

#include "tenon/io/json.h"

namespace tenon::tool {
namespace {

using Label = std::function<std::string(size_t)>;

std::string lowered(std::string_view upper) {
  std::string out;
  for (char c : upper) out += c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

template <class Spec>
std::string label(const Spec& spec) {
  std::string kind = lowered(name(spec.kind));
  return spec.target.empty() ? kind : kind + " " + spec.target;
}

void write_size(JsonWriter& json, SymInt size) {
  if (size.is_int()) json.integer(size.as_int());
  else json.string(text(size));
}

void write_sizes(JsonWriter& json, std::string_view key, const Sizes& sizes) {
  json.key(key);
  json.begin_array();
  for (SymInt size : sizes) write_size(json, size);
  json.end_array();
}

void write_value(JsonWriter& json, const GraphBody& graph, Value value) {
  const ValueInfo& info = graph.info(value);
  json.field("name", info.name);
  switch (info.type) {
    case ValueType::tensor:
      json.field("dtype", name(info.meta.dtype));
      write_sizes(json, "sizes", info.meta.sizes);
      write_sizes(json, "strides", info.meta.strides);
      break;
    case ValueType::integer: json.field("type", "int"); break;
    case ValueType::floating: json.field("type", "float"); break;
    case ValueType::boolean: json.field("type", "bool"); break;
    case ValueType::token: json.field("type", "token"); break;
    case ValueType::custom_object: json.field("type", info.class_name); break;
  }
  if (info.type == ValueType::integer || info.type == ValueType::floating || info.type == ValueType::boolean) {
    json.key("expr");
    write_size(json, info.expr);
  }
}

void write_slot(JsonWriter& json, const GraphBody& graph, const Arg& arg, const std::string& means) {
  json.begin_object();
  if (const Value* value = arg.get<Value>(); value && *value) write_value(json, graph, *value);
  else json.field("constant", to_text(graph, arg));
  if (!means.empty()) json.field("means", means);
  json.end_object();
}

void write_node(JsonWriter& json, const GraphBody& graph, const Node& node) {
  json.begin_object();
  json.field("op", node.op->name());
  json.key("args");
  json.begin_array();
  for (const Arg& arg : node.args) json.string(to_text(graph, arg));
  json.end_array();
  json.key("results");
  json.begin_array();
  for_each_result(node, [&](Value value) {
    json.begin_object();
    write_value(json, graph, value);
    json.end_object();
  });
  json.end_array();
  if (!node.grad_enabled) json.field("grad_enabled", false);
  if (node.phase == Phase::backward) json.field("phase", "backward");
  json.end_object();
}

void write_graph(JsonWriter& json, std::string_view name, const GraphBody& graph, const Label& input,
                 const Label& output) {
  json.begin_object();
  json.field("name", name);
  json.key("inputs");
  json.begin_array();
  for (size_t i = 0; i < graph.inputs.size(); ++i) write_slot(json, graph, graph.inputs[i], input(i));
  json.end_array();
  json.key("nodes");
  json.begin_array();
  for (const Node& node : graph.nodes) write_node(json, graph, node);
  json.end_array();
  json.key("outputs");
  json.begin_array();
  for (size_t i = 0; i < graph.outputs.size(); ++i) write_slot(json, graph, graph.outputs[i], output(i));
  json.end_array();
  json.end_object();
}

void write_graph(JsonWriter& json, std::string_view name, const GraphBody& graph, const Signature& signature) {
  write_graph(
      json, name, graph, [&](size_t i) { return label(signature.inputs.at(i)); },
      [&](size_t i) { return label(signature.outputs.at(i)); });
}

// `outer` is the convention whose inputs the outputs speak of: the forward's, for a backward.
void write_graph(JsonWriter& json, std::string_view name, const GraphBody& graph, const CallingConvention& own,
                 const CallingConvention& outer) {
  write_graph(
      json, name, graph, [&](size_t i) { return to_text(own.inputs[i]); },
      [&](size_t i) { return to_text(own.outputs[i], outer); });
}

void write_graphs(JsonWriter& json, Walk& walk, StageName after) {
  switch (after) {
    case StageName::read: write_graph(json, "program", walk.program().graph.body(), walk.program().signature); return;
    case StageName::normalized:
      write_graph(json, "program", walk.normalized().body(), walk.program().signature);
      return;
    case StageName::functional: {
      const FunctionalProgram& f = walk.functional();
      write_graph(json, "functional", f.graph.body(), f.convention, f.convention);
      return;
    }
    case StageName::joint: {
      const JointProgram& joint = walk.joint();
      write_graph(json, "joint", joint.graph.body(), joint.convention, joint.convention);
      return;
    }
    case StageName::partition: {
      const TrainingProgram& halves = walk.partition();
      write_graph(json, "forward", halves.forward.graph.body(), halves.forward.convention, halves.forward.convention);
      write_graph(json, "backward", halves.backward.graph.body(), halves.backward.convention,
                  halves.forward.convention);
      return;
    }
    case StageName::loops:
    case StageName::folded:
    case StageName::fused:
    case StageName::packed:
    case StageName::kernels: break;
  }
  unreachable();
}

}  // namespace

std::string stage_json(Walk& walk, const ShowRequest& request) {
  const ExportedProgram& program = walk.program();
  JsonWriter json;
  json.begin_object();
  json.field("file", request.file);
  json.field("stage", request.stage);
  json.field("torch_version", program.torch_version);
  json.field("schema_version", text(program.schema_major, ".", program.schema_minor));
  json.field("dialect", program.dialect);
  json.key("ranges");
  json.begin_object();
  for (const auto& [expr, range] : program.ranges) {
    json.key(expr);
    json.begin_array();
    json.integer(range.lo);
    if (range.hi == sym::Range::infinity) json.null();
    else json.integer(range.hi);
    json.end_array();
  }
  json.end_object();
  json.key("missing_operators");
  json.begin_array();
  for (const std::string& op : missing_operators(program)) json.string(op);
  json.end_array();
  if (request.after >= StageName::loops) {
    json.field("loops", show(walk, request.after));
  } else {
    json.key("graphs");
    json.begin_array();
    write_graphs(json, walk, request.after);
    json.end_array();
  }
  json.end_object();
  return json.take() + "\n";
}

}  // namespace tenon::tool
