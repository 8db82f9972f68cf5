#include "tenon/aot/guards.h"

#include <charconv>

#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"

namespace tenon {
namespace {

// What a guard calls L['x']['a'][1].size()[0]: subscripts into the arguments, then a question to what is found there.
class SourceReader {
 public:
  SourceReader(std::string_view text, const ExportedProgram& program)
      : rest_(text), root_(program.in_tree()), names_(program.module_calls[0].signature->forward_arg_names) {}

  std::optional<GuardSource> read() {
    if (!take("L")) return std::nullopt;
    auto name = subscript();
    if (!name || !enter(*name)) return std::nullopt;
    while (!at_->is_leaf()) {
      auto key = subscript();
      if (!key || !descend(*at_, *key)) return std::nullopt;
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
  static std::string_view unquoted(std::string_view key) {
    bool quoted = key.size() >= 2 && (key.front() == '\'' || key.front() == '"') && key.back() == key.front();
    return quoted ? key.substr(1, key.size() - 2) : key;
  }
  static std::optional<size_t> as_position(std::string_view key) {
    size_t n = 0;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), n);
    if (error != std::errc() || end != key.data() + key.size()) return std::nullopt;
    return n;
  }

  // Arguments by name: x is one of forward's own; *args is args_0, args_1, ...; what **kw takes is among the keywords.
  bool enter(std::string_view key) {
    std::string name(unquoted(key));
    if (argument(name)) return true;
    auto next = subscript();
    return next && (argument(text(name, "_", *next)) || argument(std::string(unquoted(*next))));
  }
  bool argument(const std::string& name) {
    if (root_.children.size() != 2) return false;
    const Tree &args = root_.children[0], &keywords = root_.children[1];
    leaf_ = 0;
    for (size_t i = 0; i < args.children.size() && names_ && i < names_->size(); ++i)
      if ((*names_)[i] == name) return step(args, i);
    leaf_ = args.leaves();
    return descend(keywords, name);
  }
  bool descend(const Tree& tree, std::string_view key) {
    if (tree.keys.empty()) {
      auto position = as_position(key);
      return position && step(tree, *position);
    }
    for (size_t i = 0; i < tree.keys.size(); ++i)
      if (unquoted(tree.keys[i]) == unquoted(key)) return step(tree, i);
    return false;
  }
  bool step(const Tree& tree, size_t child) {
    if (child >= tree.children.size()) return false;
    for (size_t i = 0; i < child; ++i) leaf_ += tree.children[i].leaves();
    at_ = &tree.children[child];
    return true;
  }

  std::optional<GuardSource> question() {
    using What = GuardSource::What;
    auto asks = [&](What what, size_t dim = 0) { return GuardSource{.leaf = leaf_, .what = what, .dim = dim}; };
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
  const Tree& root_;
  const std::optional<std::vector<std::string>>& names_;
  const Tree* at_ = nullptr;
  size_t leaf_ = 0;
};

}  // namespace

std::vector<InputGuard> guards_of(const ExportedProgram& program) {
  std::vector<InputGuard> guards;
  for (const std::string& written : program.guards) {
    InputGuard guard{sym::parse_guard(written), {}, written};
    for (sym::Expr symbol : sym::symbols_of(guard.condition)) {
      auto source = SourceReader(symbol.name(), program).read();
      if (!source) break;
      source->symbol = symbol;
      guard.sources.push_back(*source);
    }
    if (guard.sources.size() == sym::symbols_of(guard.condition).size()) guards.push_back(std::move(guard));
  }
  return guards;
}

}  // namespace tenon
