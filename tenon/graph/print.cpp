#include "tenon/graph/graph.h"

namespace tenon {
namespace {

std::string value_text(const GraphBody& graph, Value v) { return v ? "%" + graph.values[v.id].name : "None"; }

std::string type_text(const ValueInfo& info) {
  switch (info.type) {
    case ValueType::tensor: return text(info.meta);
    case ValueType::integer: return text("int ", info.expr);
    case ValueType::floating: return text("float ", info.expr);
    case ValueType::boolean: return text("bool ", info.expr);
    case ValueType::token: return "token";
    case ValueType::custom_object: return "object " + info.class_name;
  }
  unreachable();
}

}  // namespace

std::string to_text(const GraphBody& graph, const Arg& arg) {
  if (arg.is_none()) return "None";
  if (auto* v = arg.get<Value>()) return value_text(graph, *v);
  if (auto* list = arg.get<std::vector<Value>>()) {
    std::string out = "[";
    for (size_t i = 0; i < list->size(); ++i) out += (i ? ", " : "") + value_text(graph, (*list)[i]);
    return out + "]";
  }
  if (auto* items = arg.get<Arg::Items>()) {
    std::string out = "[";
    for (size_t i = 0; i < items->size(); ++i) out += (i ? ", " : "") + to_text(graph, (*items)[i]);
    return out + "]";
  }
  if (auto* mapping = arg.get<Arg::Mapping>()) {
    std::string out = "{";
    for (size_t i = 0; i < mapping->keys.size(); ++i)
      out += text(i ? ", " : "", quoted(mapping->keys[i], 200), ": ", to_text(graph, mapping->values[i]));
    return out + "}";
  }
  if (auto* object = arg.get<ObjectName>()) return printable(object->name, Lines::one);
  if (auto* b = arg.get<bool>()) return *b ? "True" : "False";
  if (auto* i = arg.get<SymInt>()) return text(*i);
  if (auto* d = arg.get<double>()) return text(*d);
  if (auto* s = arg.get<std::string>()) return quoted(*s, 200);
  if (auto* d = arg.get<DType>()) return text("torch.", torch_name(*d));
  if (auto* d = arg.get<Device>()) return text("device(", *d, ")");
  if (auto* l = arg.get<Layout>()) return text("torch.", name(*l));
  if (auto* m = arg.get<MemoryFormat>()) return text("torch.", name(*m));
  if (auto* l = arg.get<Sizes>()) return text(*l);
  if (auto* l = arg.get<std::vector<double>>()) return text(*l);
  if (auto* l = arg.get<std::vector<bool>>()) {
    std::string out = "[";
    for (size_t i = 0; i < l->size(); ++i) out += std::string(i ? ", " : "") + ((*l)[i] ? "True" : "False");
    return out + "]";
  }
  if (auto* l = arg.get<std::vector<std::string>>()) {
    std::string out = "[";
    for (size_t i = 0; i < l->size(); ++i) out += (i ? ", " : "") + quoted((*l)[i], 200);
    return out + "]";
  }
  if (auto* g = arg.get<Subgraph>()) return "graph " + g->name;
  if (auto* o = arg.get<OperatorName>()) return o->name;
  if (auto* c = arg.get<std::complex<double>>()) return text(c->real(), "+", c->imag(), "j");
  unreachable();
}

namespace {

using Label = std::function<std::string(const GraphBody&, size_t)>;

// Line by line, each behind `margin`: graphs within graphs are written once, however deep they lie.
void print(std::string& out, const GraphBody& graph, const std::string& margin, const Label& input_label,
           const Label& output_label) {
  auto label = [](const std::string& s) { return s.empty() ? s : "  ; " + s; };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    out += margin;
    if (const Value* v = graph.inputs[i].get<Value>())
      out += text("%", graph.info(*v).name, ": ", type_text(graph.info(*v)), " = input()");
    else out += "input " + to_text(graph, graph.inputs[i]);
    if (input_label) out += label(input_label(graph, i));
    out += "\n";
  }
  for (const Node& node : graph.nodes) {
    std::string results;
    for (const Arg& result : node.results) {
      if (!results.empty()) results += ", ";
      if (const Value* v = result.get<Value>(); v && *v)
        results += text("%", graph.info(*v).name, ": ", type_text(graph.info(*v)));
      else if (auto* list = result.get<std::vector<Value>>()) {
        results += "[";
        for (size_t i = 0; i < list->size(); ++i)
          results += text(i ? ", " : "", "%", graph.info((*list)[i]).name, ": ", type_text(graph.info((*list)[i])));
        results += "]";
      } else results += "_";
    }
    out += margin;
    if (!results.empty()) out += results + " = ";
    out += node.op->name() + "(";
    const auto& slots = node.op->schema.args;
    bool first = true, skipped = false;
    for (size_t i = 0; i < node.args.size(); ++i) {
      bool slot = i < slots.size() && !node.op->traits.unknown && node.op->kind != OpKind::structural;
      if (slot && slots[i].has_default) {  // a default is not written
        CallArg as_default = slots[i].default_value;
        Arg value;
        if (!as_default.is<Tensor>()) value = map_tensors<Value>(as_default, [](const Tensor&) { return Value{}; });
        if (node.args[i] == value) {
          skipped = true;
          continue;
        }
      }
      if (!first) out += ", ";
      first = false;
      if (slot && (slots[i].keyword_only || skipped)) out += slots[i].name + "=";
      out += to_text(graph, node.args[i]);
    }
    out += ")";
    if (!node.grad_enabled) out += "  ; no_grad";
    if (node.phase == Phase::backward) out += "  ; backward";
    out += "\n";
    for (const Arg& arg : node.args)
      if (const Subgraph* sub = arg.get<Subgraph>()) {
        out += text(margin, "  ", sub->name, ":\n");
        print(out, *sub->body, margin + "    ", {}, {});
      }
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    out += margin + "return " + to_text(graph, graph.outputs[i]);
    if (output_label) out += label(output_label(graph, i));
    out += "\n";
  }
}

}  // namespace

std::string to_text(const GraphBody& graph, const Label& input_label, const Label& output_label) {
  std::string out;
  print(out, graph, "", input_label, output_label);
  return out;
}

}  // namespace tenon
