// Reads the text form of graphs, one line per node: what to_text writes, for tests.
#include "tenon/sym/parse.h"

#include <cctype>
#include <charconv>
#include <map>

#include "tenon/graph/graph.h"

namespace tenon {
namespace {

using Subgraphs = std::map<std::string, std::shared_ptr<const GraphBody>>;

class Line {
 public:
  Line(std::string_view text, GraphBody& graph, const OpTable& ops, std::unordered_map<std::string, Value>& values,
       const Subgraphs& subgraphs)
      : whole_(text), rest_(text), graph_(graph), ops_(ops), values_(values), subgraphs_(subgraphs) {}

  void read() {
    if (accept("return ")) {
      graph_.outputs.push_back(arg(nullptr));
      return;
    }
    std::vector<Named> results;
    bool list = accept("[");
    do {
      if (peek() != '%') break;
      Named r;
      r.name = name();
      need(":");
      r.info = type(r.name);
      results.push_back(std::move(r));
    } while (accept(","));
    if (list) need("]");
    if (!results.empty()) need("=");
    std::string op = std::string(trim(take_until('(')));
    need("(");
    if (op == "input") {
      need(")");
      for (Named& r : results) values_[r.name] = input(r);
      return;
    }
    Node node;
    node.op = ops_.find(op);
    require(node.op != nullptr, "there is no operator ", quoted(op), " in ", quoted(whole_, 200));
    arguments(node);
    node.grad_enabled = !accept("; no_grad");
    if (accept("; backward")) node.phase = Phase::backward;
    std::vector<Value> made;
    for (Named& r : results) made.push_back(values_[r.name] = add_value(graph_, r.info));
    if (list) node.results.emplace_back(made);
    else
      for (Value v : made) node.results.emplace_back(v);
    add_node(graph_, std::move(node));
  }

 private:
  struct Named {
    std::string name;
    ValueInfo info;
  };

  Value input(const Named& r) {
    Value v = add_value(graph_, r.info);
    graph_.inputs.emplace_back(v);
    return v;
  }

  void skip() { rest_ = trim(rest_); }
  char peek() {
    skip();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool accept(std::string_view word) {
    skip();
    if (!starts_with(rest_, word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void need(std::string_view word) {
    require(accept(word), "expected ", quoted(word), " at ", quoted(rest_), " in ", quoted(whole_, 200));
  }
  std::string_view take_until(char end) {
    size_t n = rest_.find(end);
    require(n != std::string_view::npos, "no '", end, "' in ", quoted(whole_, 200));
    std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  std::string word() {
    skip();
    size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_' ||
                                rest_[n] == '.' || rest_[n] == '-'))
      ++n;
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  // The first of `ends` that is not within parentheses.
  size_t end_of_expression(std::string_view ends) const {
    int depth = 0;
    for (size_t i = 0; i < rest_.size(); ++i) {
      if (depth == 0 && ends.find(rest_[i]) != std::string_view::npos) return i;
      if (rest_[i] == '(') ++depth;
      if (rest_[i] == ')') --depth;
    }
    return std::string_view::npos;
  }
  std::string name() {
    need("%");
    return word();
  }
  Sizes sizes() {
    need("[");
    Sizes out;
    while (!accept("]")) {
      size_t n = end_of_expression(",]");
      out.push_back(sym::parse(trim(rest_.substr(0, n))));
      rest_.remove_prefix(n);
      accept(",");
      skip();
    }
    return out;
  }
  // int = s0 + 1, or a tensor: f32[2, s0][1, 2]
  ValueInfo type(std::string name) {
    for (auto [word, kind] :
         {std::pair{"int", ValueType::integer}, {"float", ValueType::floating}, {"bool", ValueType::boolean}})
      if (accept(text(word, " ")))
        return {.name = std::move(name), .type = kind, .expr = sym::parse(trim(take_until('=')))};
    return {.name = std::move(name), .meta = meta()};
  }
  TensorMeta meta() {
    auto dtype = dtype_of(word());
    require(dtype.has_value(), "expected a dtype in ", quoted(whole_, 200));
    TensorMeta out = make_meta(*dtype, sizes());
    if (peek() == '[') out.strides = sizes();
    return out;
  }

  void arguments(Node& node) {
    if (node.op->kind == OpKind::structural) {  // takes what it is given
      for (; !accept(")"); accept(",")) node.args.push_back(arg(nullptr));
      return;
    }
    const auto& slots = node.op->schema.args;
    node.args.resize(slots.size());
    uint64_t given = 0;
    for (size_t next = 0; !accept(")");) {
      size_t at = next++;
      size_t equals = rest_.find('='), comma = rest_.find_first_of(",)[");
      if (equals != std::string_view::npos && equals < comma) {
        int found = node.op->schema.find(trim(rest_.substr(0, equals)));
        require(found >= 0, "an argument that ", node.op->name(), " does not have, in ", quoted(whole_, 200));
        at = static_cast<size_t>(found);
        rest_.remove_prefix(equals + 1);
      }
      require(at < slots.size(), "too many arguments in ", quoted(whole_, 200));
      node.args[at] = arg(&slots[at].type);
      given |= 1ull << at;
      accept(",");
    }
    for (size_t i = 0; i < slots.size(); ++i)
      if (!(given >> i & 1))
        node.args[i] = map_tensors<Value>(slots[i].default_value, [](const Tensor&) { return Value{}; });
  }

  Arg arg(const Type* type) {
    if (peek() == '%') {
      std::string n = name();
      auto found = values_.find(n);
      require(found != values_.end(), "%", n, " is used before it is defined in ", quoted(whole_, 200));
      return found->second;
    }
    if (peek() == '[') {
      if (type && type->kind == TypeKind::tensor) {
        need("[");
        std::vector<Value> out;
        while (!accept("]")) {
          Arg item = arg(nullptr);
          out.push_back(item.is_none() ? Value{} : *item.get<Value>());
          accept(",");
        }
        return out;
      }
      if (rest_.find('%') < rest_.find(']')) {  // numbers that nodes compute among them
        need("[");
        Arg::Items items;
        for (; !accept("]"); accept(",")) items.push_back(arg(nullptr));
        return items;
      }
      return sizes();
    }
    if (accept("graph ")) {
      std::string called = word();
      auto found = subgraphs_.find(called);
      require(found != subgraphs_.end(), "no graph ", quoted(called), " follows ", quoted(whole_, 200));
      return Subgraph{called, found->second};
    }
    if (accept("'")) {
      std::string out(take_until('\''));
      need("'");
      return out;
    }
    if (accept("torch.")) {
      std::string w = word();
      if (auto dtype = dtype_of(w)) return *dtype;
      for (MemoryFormat f : {MemoryFormat::contiguous, MemoryFormat::channels_last, MemoryFormat::channels_last_3d,
                             MemoryFormat::preserve})
        if (w == tenon::name(f)) return f;
      fail("torch.", w, " is not understood in ", quoted(whole_, 200));
    }
    size_t n = end_of_expression(",);]");
    std::string_view w = trim(rest_.substr(0, n));
    rest_.remove_prefix(n == std::string_view::npos ? rest_.size() : n);
    if (w == "None") return {};
    if (w == "True") return true;
    if (w == "False") return false;
    if (w.find_first_of(".en") != std::string_view::npos && w.find_first_of("su") == std::string_view::npos) {
      double value = 0;
      auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), value);
      if (error == std::errc() && end == w.data() + w.size()) return value;
    }
    return sym::parse(w);
  }

  std::string_view whole_, rest_;
  GraphBody& graph_;
  const OpTable& ops_;
  std::unordered_map<std::string, Value>& values_;
  const Subgraphs& subgraphs_;
};

size_t indent_of(std::string_view line) { return std::min(line.find_first_not_of(' '), line.size()); }

// The lines from the first on that are indented as it is, and what is indented deeper: the graphs of the node above it,
// each a name and a block.
Graph read_block(std::span<const std::string> lines, const OpTable& ops) {
  Graph graph;
  std::unordered_map<std::string, Value> values;
  for (size_t i = 0; i < lines.size();) {
    size_t indent = indent_of(lines[i]), end = i + 1;
    auto block_end = [&](size_t from, size_t deeper_than) {
      while (from < lines.size() && indent_of(lines[from]) > deeper_than) ++from;
      return from;
    };
    Subgraphs subgraphs;
    for (size_t stop = block_end(end, indent); end < stop;) {
      std::string_view title = trim(lines[end]);
      require(ends_with(title, ":"), "expected the name of a graph and ':', got ", quoted(title));
      size_t last = block_end(end + 1, indent_of(lines[end]));
      Graph body = read_block(lines.subspan(end + 1, last - end - 1), ops);
      subgraphs[std::string(title.substr(0, title.size() - 1))] = body.release();
      end = last;
    }
    Line(trim(lines[i]), graph.body(), ops, values, subgraphs).read();
    i = end;
  }
  return graph;
}

}  // namespace

Graph parse_graph(std::string_view text, const OpTable& ops) {
  std::vector<std::string> lines;
  for (std::string& line : split(text, '\n'))
    if (!trim(line).empty() && trim(line)[0] != '#') lines.push_back(std::move(line));
  Graph graph = read_block(lines, ops);
  verify(graph.body());
  return graph;
}

}  // namespace tenon
