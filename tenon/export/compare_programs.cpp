#include "tenon/export/compare_programs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "tenon/export/print.h"

namespace tenon {
namespace {

std::vector<std::string> graph_lines(const ExportedProgram& program) {
  std::vector<std::string> out;
  for (const std::string& line : split(to_text(program), '\n')) {
    if (starts_with(line, "Graph signature:")) break;
    std::string_view words = trim(line);
    if (words.empty() || starts_with(words, "# ")) continue;
    out.push_back(line);
  }
  return out;
}

// The shortest way from one list of lines to the other (Myers), with lines in common left out. Lists that differ in
// more than `most` lines are told in whole.
std::vector<std::string> line_differences(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t begin = 0, end_a = a.size(), end_b = b.size();
  while (begin < end_a && begin < end_b && a[begin] == b[begin]) ++begin;
  while (end_a > begin && end_b > begin && a[end_a - 1] == b[end_b - 1]) --end_a, --end_b;
  auto n = static_cast<long>(end_a - begin), m = static_cast<long>(end_b - begin);
  constexpr long most = 2000;
  std::vector<std::string> out;
  auto whole = [&] {
    out.clear();
    for (size_t i = begin; i < end_a; ++i) out.push_back("- " + std::string(trim(a[i])));
    for (size_t i = begin; i < end_b; ++i) out.push_back("+ " + std::string(trim(b[i])));
  };
  std::vector<std::vector<long>> steps;
  std::vector<long> furthest(static_cast<size_t>(2 * most + 3), 0);
  auto at = [](std::vector<long>& v, long k) -> long& { return v[static_cast<size_t>(k + most + 1)]; };
  auto line = [&](long i, const std::vector<std::string>& of) -> const std::string& {
    return of[begin + static_cast<size_t>(i)];
  };
  for (long d = 0; d <= std::min(n + m, most); ++d) {
    steps.push_back(furthest);
    for (long k = -d; k <= d; k += 2) {
      bool down = k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
      long x = down ? at(furthest, k + 1) : at(furthest, k - 1) + 1, y = x - k;
      while (x < n && y < m && line(x, a) == line(y, b)) ++x, ++y;
      at(furthest, k) = x;
      if (x < n || y < m) continue;
      // Back along the steps.
      for (long e = d; e > 0; --e) {
        long back = x - y;
        bool was_down = back == -e || (back != e && at(steps[static_cast<size_t>(e)], back - 1) <
                                                        at(steps[static_cast<size_t>(e)], back + 1));
        long from = was_down ? back + 1 : back - 1, px = at(steps[static_cast<size_t>(e)], from), py = px - from;
        out.push_back(was_down ? "+ " + std::string(trim(line(py, b))) : "- " + std::string(trim(line(px, a))));
        x = px, y = py;
      }
      std::reverse(out.begin(), out.end());
      return out;
    }
  }
  whole();
  return out;
}

std::string words_of(const InputSpec& spec, const GraphBody& graph) {
  const Value* v = spec.arg.get<Value>();
  return text(spec.name, ": ", name(spec.kind), spec.target.empty() ? "" : text(" ", quoted(spec.target)),
              spec.kind == InputKind::buffer && !spec.persistent ? ", not persistent" : "",
              v && *v && graph.info(*v).type == ValueType::tensor ? text(", ", graph.info(*v).meta)
                                                                  : text(", ", to_text(graph, spec.arg)));
}

std::string words_of(const Tree& tree) {
  if (tree.is_leaf()) return "*";
  std::string out = text(std::string_view(tree.type).substr(tree.type.rfind('.') + 1), "(");
  for (size_t i = 0; i < tree.children.size(); ++i)
    out += text(i ? ", " : "", i < tree.keys.size() ? tree.keys[i] + ": " : "", words_of(tree.children[i]));
  return out + ")";
}

std::string words_of(const OutputSpec& spec, const GraphBody& graph) {
  return text(to_text(graph, spec.arg), ": ", name(spec.kind),
              spec.target.empty() ? "" : text(" ", quoted(spec.target)));
}

// Elements that differ in their bits, and by how much at most where they are numbers of 32 or 64 bits.
std::string element_differences(const Tensor& a, const Tensor& b) {
  int64_t count = a.numel().as_int(), differing = 0;
  double largest = 0;
  size_t width = item_size(a.dtype());
  std::vector<int64_t> index(a.rank(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at_a = a.meta().offset.as_int(), at_b = b.meta().offset.as_int();
    for (size_t d = 0; d < index.size(); ++d) {
      at_a += index[d] * a.strides()[d].as_int();
      at_b += index[d] * b.strides()[d].as_int();
    }
    const std::byte* x = a.storage()->data() + static_cast<size_t>(at_a) * width;
    const std::byte* y = b.storage()->data() + static_cast<size_t>(at_b) * width;
    if (std::memcmp(x, y, width) != 0) {
      ++differing;
      double p = 0, q = 0;
      if (a.dtype() == DType::f64) std::memcpy(&p, x, 8), std::memcpy(&q, y, 8);
      if (a.dtype() == DType::f32) {
        float f = 0, g = 0;
        std::memcpy(&f, x, 4), std::memcpy(&g, y, 4);
        p = f, q = g;
      }
      if (std::abs(p - q) > largest) largest = std::abs(p - q);
    }
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < a.sizes()[d].as_int()) break;
      index[d] = 0;
    }
  }
  if (differing == 0) return "";
  return text(differing, " of ", count, " elements differ", largest > 0 ? text(", by ", largest, " at most") : "");
}

void compare_state(const std::string& what, const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b,
                   std::vector<std::string>& out) {
  std::map<std::string, const NamedTensor*> second;
  for (const NamedTensor& t : b) second[t.name] = &t;
  for (const NamedTensor& t : a) {
    auto at = second.find(t.name);
    if (at == second.end()) {
      out.push_back(text("- ", what, " ", quoted(t.name), ": ", t.tensor.meta()));
      continue;
    }
    const NamedTensor& other = *at->second;
    second.erase(at);
    const TensorMeta &x = t.tensor.meta(), &y = other.tensor.meta();
    std::string said;
    if (x.dtype != y.dtype || x.sizes != y.sizes) said = text(x, " and ", y);
    else if (t.is_parameter != other.is_parameter)
      said = text(t.is_parameter ? "a parameter" : "no parameter", " and ",
                  other.is_parameter ? "a parameter" : "no parameter");
    else said = element_differences(t.tensor, other.tensor);
    if (!said.empty()) out.push_back(text("  ", what, " ", quoted(t.name), ": ", said));
  }
  for (const NamedTensor& t : b)
    if (second.contains(t.name)) out.push_back(text("+ ", what, " ", quoted(t.name), ": ", t.tensor.meta()));
}

template <class List, class Words>
void compare_lists(const List& a, const List& b, Words&& words, std::vector<std::string>& out) {
  std::vector<std::string> first, second;
  for (const auto& each : a) first.push_back(words(each, true));
  for (const auto& each : b) second.push_back(words(each, false));
  for (std::string& line : line_differences(first, second)) out.push_back(std::move(line));
}

void compare_words(const std::string& what, const std::string& a, const std::string& b, std::vector<std::string>& out) {
  if (a != b) out.push_back(text("  ", what, ": ", a.empty() ? "none" : a, " and ", b.empty() ? "none" : b));
}

}  // namespace

ProgramDifferences compare_programs(const ExportedProgram& a, const ExportedProgram& b) {
  ProgramDifferences out;
  out.graph = line_differences(graph_lines(a), graph_lines(b));
  auto graph = [&](bool first) -> const GraphBody& { return first ? a.graph.body() : b.graph.body(); };
  auto spec = [&](const auto& each, bool first) { return words_of(each, graph(first)); };
  compare_lists(a.signature.inputs, b.signature.inputs, spec, out.signature);
  compare_lists(a.signature.outputs, b.signature.outputs, spec, out.signature);
  auto trees = [](const ExportedProgram& p, bool in) {
    return p.module_calls.empty() || !p.module_calls[0].signature ? std::string()
                                                                  : words_of(in ? p.in_tree() : p.out_tree());
  };
  compare_words("arguments", trees(a, true), trees(b, true), out.signature);
  compare_words("results", trees(a, false), trees(b, false), out.signature);
  a.check_payloads();
  b.check_payloads();
  compare_state("state", a.state, b.state, out.state);
  compare_state("constant", a.constants, b.constants, out.state);
  compare_words("dialect", a.dialect, b.dialect, out.rest);
  auto range = [](const auto& each, bool) {
    const auto& [key, r] = each;
    return text("range of ", key, ": ", r.has_lo() ? text(r.lo) : "-int_oo", " to ",
                r.has_hi() ? text(r.hi) : "int_oo");
  };
  compare_lists(a.ranges, b.ranges, range, out.rest);
  compare_lists(
      a.guards, b.guards, [](const std::string& each, bool) { return "guard " + each; }, out.rest);
  auto call = [](const ModuleCallEntry& each, bool) {
    return text("module ", quoted(each.fqn), each.signature ? ", signature kept" : "");
  };
  compare_lists(a.module_calls, b.module_calls, call, out.rest);
  return out;
}

std::string to_text(const ProgramDifferences& differences) {
  std::string out;
  auto section = [&](const char* title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    out += text(title, "\n");
    for (const std::string& line : lines) out += text("  ", line, "\n");
  };
  section("graph", differences.graph);
  section("signature", differences.signature);
  section("state", differences.state);
  section("rest", differences.rest);
  return out;
}

}  // namespace tenon
