#include "tenon/aot/guards.h"

#include <charconv>
#include <unordered_map>

#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"

namespace tenon {
namespace {

// Where a number of a guard comes from: a question to one of the caller's flattened arguments.
struct Source {
  size_t leaf = 0;
  enum class What : uint8_t { value, rank, count, offset, size, stride } what = What::value;
  size_t dim = 0;  // size, stride
};

std::string_view unquoted(std::string_view key) {
  bool quoted = key.size() >= 2 && (key.front() == '\'' || key.front() == '"') && key.back() == key.front();
  return quoted ? key.substr(1, key.size() - 2) : key;
}
std::optional<size_t> as_position(std::string_view key) {
  size_t n = 0;
  auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), n);
  if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return n;
}

// The caller's arguments by name and key. What is below a tree is counted once, however many guards ask.
class Arguments {
 public:
  struct Place {
    const Tree* tree = nullptr;
    size_t leaf = 0;  // the first below it
  };
  explicit Arguments(const ExportedProgram& program) {
    const Tree& root = program.in_tree();
    if (root.children.size() != 2) return;
    const Tree &args = root.children[0], &keywords = root.children[1];
    keywords_ = {&keywords, args.leaves()};
    if (const auto& names = program.module_calls[0].signature->forward_arg_names)
      for (size_t i = 0; i < args.children.size() && i < names->size(); ++i)
        positional_.emplace((*names)[i], at({&args, 0}, i));
  }

  // x is one of forward's own; *args is args_0, args_1, ...; what **kw takes is among the keywords.
  std::optional<Place> named(std::string_view name) {
    if (!keywords_.tree) return std::nullopt;
    if (auto found = positional_.find(name); found != positional_.end()) return found->second;
    return below(keywords_, name);
  }
  std::optional<Place> below(const Place& place, std::string_view key) {
    if (place.tree->keys.empty()) {
      auto position = as_position(key);
      return position && *position < place.tree->children.size() ? std::optional(at(place, *position)) : std::nullopt;
    }
    const Index& index = of(*place.tree);
    auto found = index.by_key.find(unquoted(key));
    return found == index.by_key.end() ? std::nullopt : std::optional(at(place, found->second));
  }

 private:
  struct Index {
    std::vector<size_t> leaves;  // before each child
    std::unordered_map<std::string_view, size_t> by_key;
  };
  const Index& of(const Tree& tree) {
    auto [found, fresh] = known_.try_emplace(&tree);
    Index& index = found->second;
    if (!fresh) return index;
    size_t leaves = 0;
    for (size_t i = 0; i < tree.children.size(); ++i) {
      index.leaves.push_back(leaves);
      leaves += tree.children[i].leaves();
      if (i < tree.keys.size()) index.by_key.emplace(unquoted(tree.keys[i]), i);
    }
    return index;
  }
  Place at(const Place& place, size_t child) {
    return {&place.tree->children[child], place.leaf + of(*place.tree).leaves[child]};
  }

  std::unordered_map<std::string_view, Place> positional_;
  Place keywords_;
  std::unordered_map<const Tree*, Index> known_;
};

// What a guard calls L['x']['a'][1].size()[0]: subscripts into the arguments, then a question to what is found there.
class SourceReader {
 public:
  SourceReader(std::string_view text, Arguments& arguments) : rest_(text), arguments_(arguments) {}

  std::optional<Source> read() {
    if (!take("L")) return std::nullopt;
    auto name = subscript();
    if (!name || !enter(*name)) return std::nullopt;
    while (!at_->tree->is_leaf()) {
      auto key = subscript();
      at_ = key ? arguments_.below(*at_, *key) : std::nullopt;
      if (!at_) return std::nullopt;
    }
    return question();
  }

 private:
  bool take(std::string_view word) {
    if (!starts_with(rest_, word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  // ['key'] or [3], as it is spelled in a tree's keys: "key", 3.
  std::optional<std::string> subscript() {
    if (!take("[")) return std::nullopt;
    bool text = !rest_.empty() && (rest_[0] == '\'' || rest_[0] == '"');
    size_t end = text ? rest_.find(std::string{rest_[0], ']'}, 1) : rest_.find(']');
    if (text && end != std::string_view::npos) ++end;
    if (end == std::string_view::npos) return std::nullopt;
    std::string inside(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return inside;
  }

  bool enter(std::string_view key) {
    std::string_view name = unquoted(key);
    at_ = arguments_.named(name);
    if (at_) return true;
    auto next = subscript();
    if (next) at_ = arguments_.named(text(name, "_", *next));
    if (next && !at_) at_ = arguments_.named(unquoted(*next));
    return at_.has_value();
  }

  std::optional<Source> question() {
    using What = Source::What;
    auto asks = [&](What what, size_t dim = 0) { return Source{.leaf = at_->leaf, .what = what, .dim = dim}; };
    if (rest_.empty()) return asks(What::value);
    if (rest_ == ".dim()") return asks(What::rank);
    if (rest_ == ".numel()") return asks(What::count);
    if (rest_ == ".storage_offset()") return asks(What::offset);
    bool size = take(".size()");
    if (!size && !take(".stride()")) return std::nullopt;
    auto dim = subscript();
    auto position = dim ? as_position(*dim) : std::nullopt;
    if (!position) return std::nullopt;
    return asks(size ? What::size : What::stride, *position);
  }

  std::string_view rest_;
  Arguments& arguments_;
  std::optional<Arguments::Place> at_;
};

// What a graph calls the numbers of its user's arguments. Inputs are laid out as the program was exported, whatever
// they lay like before.
class Answers {
 public:
  Answers(const ExportedProgram& program, const GraphBody& graph, const CallingConvention& convention) : graph_(graph) {
    for (size_t i = 0; i < program.graph->inputs.size(); ++i) {
      if (program.signature.inputs[i].kind != InputKind::user_input) continue;
      const Value* v = program.graph->inputs[i].get<Value>();
      exported_.push_back(v ? &program.graph->info(*v).meta.strides : nullptr);
    }
    for (size_t i = 0; i < graph.inputs.size(); ++i)
      if (auto* user = std::get_if<input::User>(&convention.inputs[i]))
        if (const Value* v = graph.inputs[i].get<Value>()) inputs_.emplace(user->leaf, *v);
  }
  std::optional<SymInt> operator()(const Source& source) const {
    auto found = inputs_.find(source.leaf);
    if (found == inputs_.end()) return std::nullopt;
    const ValueInfo& info = graph_.info(found->second);
    bool tensor = info.type == ValueType::tensor;
    if (tensor == (source.what == Source::What::value)) return std::nullopt;
    auto in = [&](const Sizes& list) {
      return source.dim < list.size() ? std::optional(list[source.dim]) : std::nullopt;
    };
    switch (source.what) {
      case Source::What::value: return info.expr;
      case Source::What::rank: return SymInt(info.meta.rank());
      case Source::What::count: return count(info.meta.sizes);
      case Source::What::offset: return info.meta.offset;
      case Source::What::size: return in(info.meta.sizes);
      case Source::What::stride: {
        // The stride of a part of a larger tensor is nothing that the program relies on: it takes the part as a whole.
        const Sizes* exported = source.leaf < exported_.size() ? exported_[source.leaf] : nullptr;
        return exported && *exported == info.meta.strides ? in(info.meta.strides) : std::nullopt;
      }
    }
    unreachable();
  }

 private:
  const GraphBody& graph_;
  std::unordered_map<size_t, Value> inputs_;  // by the argument they are
  std::vector<const Sizes*> exported_;        // by argument: the strides that the file says
};

}  // namespace

std::vector<sym::Guard> guards_of(const ExportedProgram& program, const GraphBody& graph,
                                  const CallingConvention& convention) {
  std::vector<sym::Guard> guards;
  Answers answer(program, graph, convention);
  Arguments arguments(program);
  for (const std::string& written : program.guards) {
    sym::Expr condition = sym::parse_guard(written);
    std::vector<sym::Expr> numbers = sym::symbols_of(condition);
    std::vector<sym::Replacement> replacements;
    std::string where;
    for (sym::Expr number : numbers) {
      auto source = SourceReader(number.name(), arguments).read();
      auto is = source ? answer(*source) : std::nullopt;
      if (!is) break;
      replacements.emplace_back(number, *is);
      where += text(where.empty() ? "" : ", ", number.name(), " is ", *is);
    }
    if (replacements.size() != numbers.size()) continue;
    condition = sym::substitute(condition, replacements);
    if (condition != SymInt::boolean(true)) guards.push_back({condition, where, written});
  }
  return guards;
}

}  // namespace tenon
