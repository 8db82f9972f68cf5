#include "tenon/aot/guards.h"

#include <charconv>

#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"

namespace tenon {
namespace {

// What a guard calls L['x']['a'][1].size()[0]: subscripts into the arguments, then a question to what is found there.
class Source {
 public:
  Source(std::string_view text, const ExportedProgram& program, std::span<const CallArg> inputs)
      : rest_(text),
        inputs_(inputs),
        root_(program.in_tree()),
        names_(program.module_calls[0].signature->forward_arg_names) {}

  std::optional<int64_t> value() {
    if (!take("L")) return std::nullopt;
    auto name = subscript();
    if (!name || !enter(*name)) return std::nullopt;
    while (!at_->is_leaf()) {
      auto key = subscript();
      if (!key || !descend(*at_, *key)) return std::nullopt;
    }
    return leaf_ < inputs_.size() ? answer(inputs_[leaf_]) : std::nullopt;
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

  std::optional<int64_t> answer(const CallArg& given) {
    auto* t = given.get<Tensor>();
    if (!t || !*t) {
      auto* number = given.get<SymInt>();
      return rest_.empty() && number ? number->constant() : std::nullopt;
    }
    if (rest_.empty() && t->numel() == SymInt(1) && !is_floating(t->dtype())) return scalar_integer(*t);
    if (rest_ == ".dim()") return static_cast<int64_t>(t->rank());
    if (rest_ == ".numel()") return t->numel().constant();
    if (rest_ == ".storage_offset()") return t->meta().offset.constant();
    const Sizes* list = take(".size()") ? &t->sizes() : take(".stride()") ? &t->meta().strides : nullptr;
    auto dim = list ? subscript() : std::nullopt;
    auto position = dim ? as_position(*dim) : std::nullopt;
    return position && *position < list->size() ? (*list)[*position].constant() : std::nullopt;
  }

  std::string_view rest_;
  std::span<const CallArg> inputs_;
  const Tree& root_;
  const std::optional<std::vector<std::string>>& names_;
  const Tree* at_ = nullptr;
  size_t leaf_ = 0;
};

}  // namespace

void check_guards(const ExportedProgram& program, std::span<const CallArg> inputs) {
  for (const std::string& written : program.guards) {
    sym::Expr guard = sym::parse_guard(written);
    sym::Bindings bindings;
    std::string numbers;
    bool known = true;
    for (sym::Expr symbol : sym::symbols_of(guard)) {
      auto value = Source(symbol.name(), program, inputs).value();
      known = known && value;
      if (!known) break;
      bindings.set(symbol, *value);
      numbers += text(numbers.empty() ? "" : ", ", symbol.name(), " is ", *value);
    }
    if (!known) continue;
    require(sym::evaluate_bool(guard, bindings),
            "the inputs do not meet a condition the program was exported under: ", quoted(written, 200), ", but ",
            numbers, "; pass inputs that do, or export the program for these");
  }
}

}  // namespace tenon
