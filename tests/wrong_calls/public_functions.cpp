#include "tests/wrong_calls/public_functions.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <vector>

namespace tenon_test {
namespace {

using Tokens = std::vector<std::string>;

// Words and single characters; comments, strings, preprocessor lines and attributes of visibility are gone.
Tokens tokens_of(const std::string& text) {
  Tokens out;
  bool line_start = true;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == '\n') {
      line_start = true, ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (line_start && c == '#') {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
    } else if (text.compare(i, 2, "//") == 0) {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      size_t end = i + 1;
      while (text[end] != c) end += text[end] == '\\' ? 2 : 1;
      out.emplace_back("\"\"");
      line_start = false, i = end + 1;
    } else {
      size_t end = i;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
      if (end == i) ++end;
      if (text.compare(i, 2, "::") == 0) end = i + 2;
      std::string token = text.substr(i, end - i);
      if (token != "TENON_PUBLIC" && token != "TENON_INLINE") out.push_back(token);
      line_start = false, i = end;
    }
  }
  return out;
}

// Past what opens at `i`: the token after the one that closes it.
size_t past(const Tokens& t, size_t i, const char* open, const char* close) {
  int depth = 0;
  for (; i < t.size(); ++i) {
    if (t[i] == open) ++depth;
    else if (t[i] == close && --depth == 0) return i + 1;
  }
  throw std::logic_error("public_functions: nothing closes what opens");
}

// A declaration without `template <...>` and `requires (...)` before it.
Tokens bare(const Tokens& head) {
  Tokens out;
  for (size_t i = 0; i < head.size();) {
    if (head[i] == "template") i = past(head, i + 1, "<", ">");
    else if (head[i] == "requires" && head[i + 1] == "(") i = past(head, i + 1, "(", ")");
    else out.push_back(head[i++]);
  }
  return out;
}

// The name of the function that a declaration declares; empty where it declares none.
std::string function_name(const Tokens& declaration) {
  Tokens t = bare(declaration);
  if (t.empty() || t[0] == "using" || t[0] == "static_assert" || t[0] == "friend" || t[0] == "concept") return "";
  auto word = std::find(t.begin(), t.end(), "operator");
  if (word != t.end()) {
    auto i = static_cast<size_t>(word - t.begin());
    std::string name = "operator";
    bool conversion = std::isalpha(static_cast<unsigned char>(t[i + 1][0])) != 0;
    for (++i; i < t.size() && (t[i] != "(" || (name == "operator" && t[i + 1] == ")")); ++i)
      name += (conversion ? " " : "") + t[i];
    return name;
  }
  int angles = 0;
  for (size_t i = 1; i < t.size(); ++i) {
    if (t[i] == "<") ++angles;
    else if (t[i] == ">") --angles;
    else if (t[i] == "=" && angles == 0) return "";  // a variable and its value
    else if (t[i] == "(" && angles == 0) return t[i - 1];
  }
  return "";
}

bool ends(const Tokens& t, std::initializer_list<const char*> tail) {
  return t.size() >= tail.size() && std::equal(tail.begin(), tail.end(), t.end() - static_cast<ptrdiff_t>(tail.size()));
}

class Scan {
 public:
  Scan(Tokens tokens, std::map<std::string, int>& out) : t_(std::move(tokens)), out_(out) {}
  void run() { block("", ""); }

 private:
  // What stands between braces, or in the whole file: declarations within `scope`, of the class named so.
  void block(const std::string& scope, const std::string& of_class, bool visible = true) {
    Tokens head;
    while (i_ < t_.size()) {
      const std::string& token = t_[i_];
      if (token == "}") {
        ++i_;
        return;
      }
      if (!of_class.empty() && i_ + 1 < t_.size() && t_[i_ + 1] == ":" &&
          (token == "public" || token == "private" || token == "protected")) {
        visible = token == "public";
        i_ += 2;
        head.clear();
      } else if (token == ";") {
        declared(scope, of_class, head, visible);
        head.clear(), ++i_;
      } else if (token == "{") {
        open(scope, of_class, head, visible);
      } else if (token == "(") {  // braces of default arguments are none of ours
        size_t end = past(t_, i_, "(", ")");
        head.insert(head.end(), t_.begin() + static_cast<ptrdiff_t>(i_), t_.begin() + static_cast<ptrdiff_t>(end));
        i_ = end;
      } else {
        head.push_back(token), ++i_;
      }
    }
  }

  void open(const std::string& scope, const std::string& of_class, Tokens& head, bool visible) {
    Tokens plain = bare(head);
    bool function = !function_name(head).empty();
    if (!plain.empty() && plain[0] == "namespace") {
      std::string inner = scope;
      for (size_t i = 1; i < plain.size(); ++i)
        if (plain[i] != "::" && plain[i] != "v0" && plain[i] != "tenon") inner += plain[i] + "::";
      ++i_, head.clear();
      if (inner == "detail::") past_block();
      else block(inner, "");
    } else if (!function && !plain.empty() && (plain[0] == "class" || plain[0] == "struct")) {
      std::string name = plain[1];
      ++i_;
      if (!visible) past_block();
      else block(scope + name + "::", name, plain[0] == "struct");
      head.clear();
    } else if (function) {
      declared(scope, of_class, head, visible);
      ++i_, past_block(), head.clear();
    } else {  // an initializer, an enum, a concept
      ++i_, past_block();
    }
  }

  void past_block() {
    for (int depth = 1; depth > 0; ++i_) depth += t_.at(i_) == "{" ? 1 : t_[i_] == "}" ? -1 : 0;
  }

  void declared(const std::string& scope, const std::string& of_class, const Tokens& head, bool visible) {
    std::string name = function_name(head);
    bool given = !ends(head, {"=", "delete"}) && !ends(head, {"=", "default"});
    bool destructor = std::find(head.begin(), head.end(), "~") != head.end() && name == of_class;
    bool helper = of_class.empty() && scope.ends_with("detail::");
    if (!name.empty() && visible && given && !destructor && !helper) ++out_[scope + name];
  }

  Tokens t_;
  size_t i_ = 0;
  std::map<std::string, int>& out_;
};

}  // namespace

std::map<std::string, int> public_functions(const std::string& folder) {
  std::map<std::string, int> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream file(entry.path());
    Scan(tokens_of(std::string(std::istreambuf_iterator<char>(file), {})), out).run();
  }
  return out;
}

}  // namespace tenon_test
