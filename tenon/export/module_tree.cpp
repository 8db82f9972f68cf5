#include "tenon/export/module_tree.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "tenon/sym/evaluate.h"

namespace tenon {
namespace {

std::string parent_of(const std::string& path) {
  size_t dot = path.rfind('.');
  return dot == path.npos ? "" : path.substr(0, dot);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

ModuleNode& at_path(ModuleNode& root, const std::string& path) {
  if (path.empty()) return root;
  ModuleNode& parent = at_path(root, parent_of(path));
  for (ModuleNode& child : parent.children)
    if (child.path == path) return child;
  parent.children.push_back({.name = last_part(path), .path = path});
  return parent.children.back();
}

void count_nodes(const GraphBody& graph, ModuleNode& root, std::set<std::string>& calls) {
  for (const Node& node : graph.nodes) {
    for (const Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>()) count_nodes(*within->body, root, calls);
    std::vector<ModuleFrame> stack = module_stack(node);
    if (stack.empty()) stack.push_back({});
    std::set<std::string> met;
    for (const ModuleFrame& frame : stack) {
      ModuleNode& module = at_path(root, frame.path);
      if (!frame.class_name.empty()) module.class_name = frame.class_name;
      if (calls.insert(text(frame.path, "@", frame.call)).second) ++module.calls;
      if (met.insert(frame.path).second) ++module.nodes;
    }
    if (!met.contains("")) ++root.nodes;
  }
}

std::string with_commas(int64_t number) {
  std::string digits = std::to_string(number), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string in_bytes(int64_t bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit < 4; ++unit) size /= 1024;
  if (unit == 0) return text(bytes, " B");
  auto tenths = static_cast<int64_t>(size * 10 + 0.5);
  return text(tenths / 10, ".", tenths % 10, " ", units[unit]);
}

struct Row {
  std::string module, nodes, parameters, buffers, bytes;
};

void add_rows(const ModuleNode& node, std::vector<Row>& rows, const std::string& indent) {
  std::string_view type = std::string_view(node.class_name).substr(node.class_name.rfind('.') + 1);
  std::string name = node.path.empty() ? "(program)" : node.name;
  std::string calls = node.calls > 1 ? text(", ", node.calls, " calls") : "";
  rows.push_back(
      {text(indent, printable(name, Lines::one), type.empty() ? "" : text(": ", printable(type, Lines::one)), calls),
       with_commas(static_cast<int64_t>(node.nodes)), with_commas(node.parameters), with_commas(node.buffers),
       in_bytes(node.bytes)});
  for (const ModuleNode& child : node.children) add_rows(child, rows, indent + "  ");
}

}  // namespace

std::vector<ModuleFrame> module_stack(const Node& node) {
  std::vector<ModuleFrame> out;
  for (const auto& [key, value] : *node.origin.metadata) {
    if (key != "nn_module_stack") continue;
    for (const std::string& entry : split(value, ';')) {
      size_t first = entry.find(','), second = first == entry.npos ? first : entry.find(',', first + 1);
      if (second == entry.npos) continue;
      ModuleFrame frame{entry.substr(first + 1, second - first - 1), entry.substr(second + 1)};
      for (std::string_view from : {std::string_view(entry).substr(0, first), std::string_view(frame.path)})
        if (size_t at = from.rfind('@'); at != from.npos)
          std::from_chars(from.data() + at + 1, from.data() + from.size(), frame.call);
      if (size_t at = frame.path.rfind('@'); at != frame.path.npos) frame.path.resize(at);
      out.push_back(std::move(frame));
    }
  }
  return out;
}

ModuleNode module_tree(const ExportedProgram& program) {
  ModuleNode root;
  std::set<const Storage*> counted;
  StateIndex state(program);
  for (const InputSpec& spec : program.signature.inputs) {
    bool parameter = spec.kind == InputKind::parameter;
    if (!parameter && spec.kind != InputKind::buffer) continue;
    const NamedTensor* held = state.find(spec.target);
    if (!held || !held->tensor) continue;
    ModuleNode* at = &at_path(root, parent_of(spec.target));
    if (!counted.insert(held->tensor.storage().get()).second) continue;
    int64_t elements = held->tensor.numel().as_int();
    auto bytes = elements * static_cast<int64_t>(item_size(held->tensor.dtype()));
    for (std::string path = at->path;; path = parent_of(path)) {
      ModuleNode& module = at_path(root, path);
      (parameter ? module.parameters : module.buffers) += elements;
      module.bytes += bytes;
      if (path.empty()) break;
    }
  }
  std::set<std::string> calls;
  count_nodes(program.graph.body(), root, calls);
  return root;
}

std::string to_text(const ModuleNode& tree) {
  std::vector<Row> rows = {{"module", "nodes", "parameters", "buffers", "size"}};
  add_rows(tree, rows, "");
  size_t widths[5] = {};
  auto each = [](Row& row, size_t i) -> std::string& {
    std::string* fields[] = {&row.module, &row.nodes, &row.parameters, &row.buffers, &row.bytes};
    return *fields[i];
  };
  for (Row& row : rows)
    for (size_t i = 0; i < 5; ++i) widths[i] = std::max(widths[i], each(row, i).size());
  std::string out;
  for (Row& row : rows) {
    out += row.module + std::string(widths[0] - row.module.size(), ' ');
    for (size_t i = 1; i < 5; ++i) out += "  " + std::string(widths[i] - each(row, i).size(), ' ') + each(row, i);
    out += "\n";
  }
  return out;
}

}  // namespace tenon
