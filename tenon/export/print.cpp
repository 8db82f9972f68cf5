#include "tenon/export/print.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tenon/io/json.h"
#include "tenon/sym/print.h"

namespace tenon {
namespace {

std::string_view short_name(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "b8";
    case DType::f8_e4m3fn: return "f8e4m3fn";
    case DType::f8_e5m2: return "f8e5m2";
    case DType::f8_e4m3fnuz: return "f8e4m3fnuz";
    case DType::f8_e5m2fnuz: return "f8e5m2fnuz";
    case DType::f8_e8m0fnu: return "f8e8m0fnu";
    default: return name(dtype);
  }
}

std::string sizes_text(const Sizes& sizes) {
  std::string out = "[";
  for (size_t i = 0; i < sizes.size(); ++i) out += text(i ? ", " : "", sym::to_infix(sizes[i]));
  return out + "]";
}

// A string as Python's repr writes it: single quotes, unless it contains them and no double ones.
std::string python_string(std::string_view s) {
  char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (char c : s) {
    if (c == quote || c == '\\') out += {'\\', c};
    else if (c == '\n') out += "\\n";
    else if (c == '\t') out += "\\t";
    else if (c == '\r') out += "\\r";
    else if (static_cast<unsigned char>(c) < 32 || c == 127) {
      constexpr char digits[] = "0123456789abcdef";
      out += {'\\', 'x', digits[c >> 4 & 15], digits[c & 15]};
    } else out += c;
  }
  return out + quote;
}

// Names that mean something in Python or in the printed code: an input of such a name is given another one inside.
constexpr std::string_view reserved_names =
    " "
    "False None True abs aiter all and anext any as ascii assert async await bin bool break breakpoint bytearray bytes "
    "callable chr class classmethod compile complex continue copyright credits def del delattr device dict dir divmod "
    "elif "
    "else enumerate eval except exec exit filter finally float for format from frozenset fx_pytree getattr global "
    "globals "
    "hasattr hash help hex id if import in inf input int is isinstance issubclass iter lambda len license list locals "
    "map "
    "max memoryview min nan next nonlocal not object oct open or ord pass pow print property pytree quit raise range "
    "repr "
    "return reversed round set setattr slice sorted staticmethod str sum super torch try tuple type vars while with "
    "yield "
    "zip ";

bool is_reserved(const std::string& name) { return reserved_names.find(text(" ", name, " ")) != reserved_names.npos; }

// The value of an annotation as Python's str writes it.
std::string python_value(Json value) {
  switch (value.kind()) {
    case JsonKind::null: return "None";
    case JsonKind::boolean: return value.as_bool() ? "True" : "False";
    case JsonKind::integer: return text(value.as_int());
    case JsonKind::real: return text(value.as_double());
    case JsonKind::string: return python_string(value.as_string());
    case JsonKind::array: {
      std::string out = "[";
      for (Json item : value.items()) out += (out.size() > 1 ? ", " : "") + python_value(item);
      return out + "]";
    }
    case JsonKind::object: {
      std::string out = "{";
      for (JsonMember member : value.members())
        out += text(out.size() > 1 ? ", " : "", python_string(member.key), ": ", python_value(member.value));
      return out + "}";
    }
  }
  unreachable();
}

// What torch.fx.traceback.annotate left on a node, each value cut at 40 characters.
std::string annotation_text(const std::string& custom) {
  std::optional<JsonDocument> document = JsonDocument::if_valid(custom);
  if (!document || !document->root().is_object()) return "";  // free text of the file
  std::string out = "{";
  for (JsonMember member : document->root().members()) {
    bool is_text = member.value.is_string();
    std::string plain = is_text ? std::string(member.value.as_string()) : python_value(member.value);
    std::string shown = plain.size() > 40 ? python_string(plain.substr(0, 40) + "...") : python_value(member.value);
    out += text(out.size() > 1 ? ", " : "", python_string(member.key), ": ", shown);
  }
  return out.size() > 1 ? text(" Annotation: ", out, "}") : "";
}

// Names in the order they were met, each once.
struct Names {
  std::vector<std::string> list;
  std::unordered_set<std::string> met;
  void add(const std::string& name) {
    if (met.insert(name).second) list.push_back(name);
  }
};

// One assignment of the printed function.
struct Line {
  std::string name, annotation, expression;
  std::vector<std::string> reads;  // in order, each once
  const Origin* origin = nullptr;  // whose comment stands before it
};

class GraphPrinter {
 public:
  GraphPrinter(const GraphBody& graph, std::string name, const Signature* signature)
      : graph_(graph), name_(std::move(name)), signature_(signature) {
    for (const ValueInfo& info : graph.values) taken_.insert(info.name);
    for (const Arg& input : graph.inputs) {
      auto* v = input.get<Value>();
      if (!v || !is_reserved(graph.info(*v).name)) continue;
      renamed_[v->id] = unique(graph.info(*v).name + "_1");
    }
  }

  void print(std::string& out, const std::string& indent) {
    for (const Node& node : graph_.nodes) add_node(node);
    out += text(indent, "class ", name_, "(torch.nn.Module):\n", indent, "    def forward(self");
    for (size_t i = 0; i < graph_.inputs.size(); ++i) out += ", " + input_text(i);
    out += "):\n";
    std::string returned = result_text();
    print_lines(out, indent + "        ");
    out += text(indent, "        return ", returned, "\n\n");
    for (const Subgraph* subgraph : subgraphs_)
      GraphPrinter(*subgraph->body, subgraph->name, nullptr).print(out, indent + "    ");
  }

 private:
  std::string annotation(const ValueInfo& info) {
    if (info.type == ValueType::tensor)
      return text(": \"", short_name(info.meta.dtype), sizes_text(info.meta.sizes), "\"");
    bool constant = info.expr.is_int() || info.expr.is(sym::Kind::real) || info.expr.is(sym::Kind::boolean);
    return constant ? "" : text(": \"Sym(", sym::to_infix(info.expr), ")\"");
  }

  std::string input_text(size_t i) {
    if (auto* v = graph_.inputs[i].get<Value>()) return graph_.info(*v).name + annotation(graph_.info(*v));
    return signature_ ? signature_->inputs[i].name : text("arg_", i);
  }

  // Notes what is returned, too: that is used to the end.
  std::string result_text() {
    if (graph_.single_tensor_return && graph_.outputs.size() == 1) return arg_text(graph_.outputs[0], returned_);
    std::string out = "(";
    for (size_t i = 0; i < graph_.outputs.size(); ++i) out += (i ? ", " : "") + arg_text(graph_.outputs[i], returned_);
    return out + (graph_.outputs.size() == 1 ? ",)" : ")");
  }

  std::string unique(const std::string& wanted) {
    if (taken_.insert(wanted).second) return wanted;
    int& next = next_suffix_.try_emplace(wanted, 1).first->second;
    for (;;)
      if (std::string out = text(wanted, "_", next++); taken_.insert(out).second) return out;
  }

  std::string value_text(Value v, Names& reads) {
    if (!v) return "None";
    auto other = renamed_.find(v.id);
    const std::string& name = other == renamed_.end() ? graph_.info(v).name : other->second;
    reads.add(name);
    return name;
  }

  template <class List, class Print>
  static std::string list_text(const List& list, Print&& print) {
    std::string out = "[";
    bool first = true;
    for (const auto& item : list) {
      if (!first) out += ", ";
      first = false;
      out += print(item);
    }
    return out + "]";
  }

  std::string arg_text(const Arg& arg, Names& reads) {
    if (arg.is_none()) return "None";
    if (auto* v = arg.get<Value>()) return value_text(*v, reads);
    if (auto* b = arg.get<bool>()) return *b ? "True" : "False";
    if (auto* i = arg.get<SymInt>()) return sym::to_infix(*i);
    if (auto* d = arg.get<double>()) return text(*d);
    if (auto* s = arg.get<std::string>()) return python_string(*s);
    if (auto* t = arg.get<DType>()) return text("torch.", torch_name(*t));
    if (auto* l = arg.get<Layout>()) return text("torch.", name(*l));
    if (auto* f = arg.get<MemoryFormat>()) return text("torch.", name(*f));
    if (auto* device = arg.get<Device>())
      return device->index < 0
                 ? text("device(type=", python_string(name(device->type)), ")")
                 : text("device(type=", python_string(name(device->type)), ", index=", device->index, ")");
    if (auto* list = arg.get<std::vector<Value>>())
      return list_text(*list, [&](Value v) { return value_text(v, reads); });
    if (auto* sizes = arg.get<Sizes>()) return sizes_text(*sizes);
    if (auto* floats = arg.get<std::vector<double>>()) return list_text(*floats, [](double d) { return text(d); });
    if (auto* bools = arg.get<std::vector<bool>>())
      return list_text(*bools, [](bool b) { return b ? "True" : "False"; });
    if (auto* strings = arg.get<std::vector<std::string>>()) return list_text(*strings, python_string);
    if (auto* op = arg.get<OperatorName>()) return printable(op->name, Lines::one);
    if (auto* c = arg.get<std::complex<double>>()) return text("complex(", c->real(), ", ", c->imag(), ")");
    if (auto* items = arg.get<Arg::Items>())
      return list_text(*items, [&](const Arg& item) { return arg_text(item, reads); });
    if (auto* mapping = arg.get<Arg::Mapping>()) {
      std::string out = "{";
      for (size_t i = 0; i < mapping->keys.size(); ++i)
        out += text(i ? ", " : "", python_string(mapping->keys[i]), ": ", arg_text(mapping->values[i], reads));
      return out + "}";
    }
    if (auto* object = arg.get<ObjectName>()) return printable(object->name, Lines::one);
    if (auto* subgraph = arg.get<Subgraph>()) {
      std::string attribute = unique(subgraph->name);
      subgraphs_.push_back(subgraph);
      lines_.push_back({.name = attribute, .expression = "self." + subgraph->name, .origin = origin_});
      reads.add(attribute);
      return attribute;
    }
    unreachable();
  }

  std::string call_text(const Node& node, Names& reads) {
    const Op& op = *node.op;
    if (std::string_view sign = op.notation.sign; !sign.empty()) {
      std::string first = arg_text(node.args[0], reads);
      return node.args.size() == 1 ? text(sign, first) : text(first, sign, arg_text(node.args[1], reads));
    }
    std::vector<std::string> parts;
    bool schema_op = starts_with(op.target, "torch.ops.") && !starts_with(op.target, "torch.ops.higher_order.") &&
                     !op.traits.unknown;
    const auto& keywords = node.origin.keywords;
    size_t first_keyword = node.args.size() - std::min(node.args.size(), keywords.size());
    for (size_t i = 0; i < node.args.size(); ++i) {
      std::string keyword;
      if (schema_op) {
        const SchemaArg& slot = op.schema.args[i];
        if (node.given != ~0ull && !(node.given >> i & 1)) continue;
        if (node.given == ~0ull && slot.has_default &&
            node.args[i] == map_tensors<Value>(slot.default_value, [](const Tensor&) { return Value{}; }))
          continue;
        if (slot.keyword_only || std::find(keywords.begin(), keywords.end(), slot.name) != keywords.end())
          keyword = slot.name;
      } else if (i >= first_keyword) {
        keyword = keywords[i - first_keyword];
      }
      std::string value = arg_text(node.args[i], reads);
      parts.push_back(keyword.empty() ? value : text(keyword, " = ", value));
    }
    return text(op.target, "(", join(parts, ", "), ")");
  }

  void add_node(const Node& node) {
    origin_ = &node.origin;
    Line line{.origin = &node.origin};
    Names reads;
    line.expression = call_text(node, reads);  // first: it puts the lines of subgraphs before this one
    line.reads = std::move(reads.list);
    bool region = starts_with(node.op->target, "torch.ops.higher_order.");
    bool single =
        node.results.size() == 1 && node.results[0].is<Value>() && (!region || node.origin.hop_single_return > 0);
    if (single) {
      const ValueInfo& info = graph_.info(*node.results[0].get<Value>());
      line.name = info.name;
      line.annotation = annotation(info);
      lines_.push_back(std::move(line));
      return;
    }
    line.name = node.origin.name.empty() ? unique(text(node.op->schema.base(), "_", node.op->schema.overload()))
                                         : node.origin.name;
    std::string whole = line.name;
    lines_.push_back(std::move(line));
    auto add_item = [&](Value v, size_t i) {
      if (!v || graph_.info(v).name.empty()) return;  // nobody reads it, and it has no name
      lines_.push_back({.name = graph_.info(v).name,
                        .annotation = annotation(graph_.info(v)),
                        .expression = text(whole, "[", i, "]"),
                        .reads = {whole},
                        .origin = &node.origin});
    };
    if (node.results.size() == 1 && node.results[0].is<std::vector<Value>>()) {
      const auto& list = *node.results[0].get<std::vector<Value>>();
      for (size_t i = 0; i < list.size(); ++i) add_item(list[i], i);
      return;
    }
    for (size_t i = 0; i < node.results.size(); ++i)
      if (auto* v = node.results[i].get<Value>()) add_item(*v, i);
  }

  // File, line and function of the innermost frame whose code is given.
  static std::string comment(const Origin& origin) {
    std::string start = "#";
    for (const auto& [key, value] : *origin.metadata)
      if (key == "custom") start += annotation_text(value);
    for (const auto& [key, value] : *origin.metadata) {
      if (key != "stack_trace") continue;
      std::vector<std::string> frames = split(trim(value), '\n');
      for (size_t i = frames.size(); i-- > 1;) {
        std::string_view frame = trim(frames[i - 1]);
        size_t line = frame.rfind("\", line "), in = line == frame.npos ? line : frame.find(", in ", line);
        if (!starts_with(frame, "File \"") || in == frame.npos) continue;
        return text(start, " File: ", frame.substr(6, line - 6), ":", frame.substr(line + 8, in - line - 8), " in ",
                    frame.substr(in + 5), ", code: ", trim(frames[i]));
      }
    }
    return start + " No stacktrace found for following nodes";
  }

  void print_lines(std::string& out, const std::string& indent) {
    std::unordered_map<std::string_view, size_t> last_use;
    const std::unordered_set<std::string>& kept = returned_.met;
    for (size_t i = 0; i < lines_.size(); ++i)
      for (const std::string& name : lines_[i].reads) last_use[name] = i;
    for (const auto& [id, name] : renamed_) out += text(indent, name, " = ", graph_.values[id].name, "\n");
    std::string previous;
    const Origin* commented = nullptr;  // by `previous`; a node may have many lines
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      if (line.origin != commented) {
        std::string said = comment(*line.origin);
        if (said != previous) out += text(previous.empty() && renamed_.empty() ? "" : "\n", indent, said, "\n");
        previous = std::move(said);
        commented = line.origin;
      }
      out += text(indent, line.name, line.annotation, " = ", line.expression);
      std::string dropped;
      for (const std::string& name : line.reads)
        if (last_use[name] == i && !kept.contains(name)) dropped += name + " = ";
      if (!last_use.contains(line.name) && !kept.contains(line.name)) dropped += line.name + " = ";
      if (!dropped.empty()) out += text(";  ", dropped, "None");
      out += "\n";
    }
  }

  const GraphBody& graph_;
  std::string name_;
  const Signature* signature_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> next_suffix_;
  std::vector<Line> lines_;
  std::vector<const Subgraph*> subgraphs_;
  Names returned_;
  std::map<ValueId, std::string> renamed_;
  const Origin* origin_ = nullptr;
};

std::string signature_text(const ExportedProgram& program) {
  std::string out = "# inputs\n";
  for (const InputSpec& spec : program.signature.inputs) {
    out += text(spec.name, ": ", name(spec.kind));
    if (!spec.target.empty()) out += " target=" + python_string(spec.target);
    if (spec.kind == InputKind::buffer) out += text(" persistent=", spec.persistent ? "True" : "False");
    out += "\n";
  }
  out += "\n# outputs\n";
  for (const OutputSpec& spec : program.signature.outputs) {
    if (auto* v = spec.arg.get<Value>()) out += program.graph->info(*v).name;
    out += text(": ", name(spec.kind));
    if (!spec.target.empty()) out += " target=" + python_string(spec.target);
    out += "\n";
  }
  return out;
}

// The text with four spaces before each line but the first, empty ones included, as Python's replace does it.
std::string indented(std::string_view s) {
  std::string out;
  for (char c : s) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

}  // namespace

std::string to_text(const ExportedProgram& program) {
  std::string graph;
  GraphPrinter(program.graph.body(), "GraphModule", &program.signature).print(graph, "");
  graph.pop_back();
  std::string out = text("ExportedProgram:\n    ", indented(graph), "\nGraph signature:\n    ",
                         indented(signature_text(program)), "\n");
  out += "Range constraints: {";
  bool first = true;
  for (const auto& [key, range] : program.ranges) {
    std::string_view endless = starts_with(key, "zf") || starts_with(key, "zuf") ? "oo" : "int_oo";
    out += text(first ? "" : ", ", printable(key, Lines::one), ": VR[",
                range.has_lo() ? text(range.lo) : text("-", endless), ", ",
                range.has_hi() ? text(range.hi) : std::string(endless), "]");
    first = false;
  }
  return out + "}\n";
}

}  // namespace tenon
