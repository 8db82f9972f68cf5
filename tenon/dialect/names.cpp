#include "tenon/dialect/names.h"

#include <cctype>
#include <optional>

namespace tenon::dialect {
namespace {

// Words that a name of a node may not be: Python's keywords and builtins, and what the printed code imports.
bool is_reserved(std::string_view name) {
  static const std::unordered_set<std::string_view> words = {
      "False",    "None",       "True",       "abs",        "aiter",      "all",     "and",       "anext",
      "any",      "as",         "ascii",      "assert",     "async",      "await",   "bin",       "bool",
      "break",    "breakpoint", "bytearray",  "bytes",      "callable",   "chr",     "class",     "classmethod",
      "compile",  "complex",    "continue",   "copyright",  "credits",    "def",     "del",       "delattr",
      "device",   "dict",       "dir",        "divmod",     "elif",       "else",    "enumerate", "eval",
      "except",   "exec",       "exit",       "filter",     "finally",    "float",   "for",       "format",
      "from",     "frozenset",  "fx_pytree",  "getattr",    "global",     "globals", "hasattr",   "hash",
      "help",     "hex",        "id",         "if",         "import",     "in",      "inf",       "input",
      "int",      "is",         "isinstance", "issubclass", "iter",       "lambda",  "len",       "license",
      "list",     "locals",     "map",        "max",        "memoryview", "min",     "nan",       "next",
      "nonlocal", "not",        "object",     "oct",        "open",       "or",      "ord",       "pass",
      "pow",      "print",      "property",   "pytree",     "quit",       "raise",   "range",     "repr",
      "return",   "reversed",   "round",      "set",        "setattr",    "slice",   "sorted",    "staticmethod",
      "str",      "sum",        "super",      "torch",      "try",        "tuple",   "type",      "vars",
      "while",    "with",       "yield",      "zip"};
  return words.contains(name);
}

struct Numbered {
  std::string base;
  std::optional<long> number;
};

// "add_12" as "add" and 12.
Numbered numbered(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(name[digits - 1]))) --digits;
  if (digits == name.size() || digits < 1 || name[digits - 1] != '_' || name.size() - digits > 9)
    return {std::string(name), std::nullopt};
  return {std::string(name.substr(0, digits - 1)), std::stol(std::string(name.substr(digits)))};
}

}  // namespace

std::string NodeNames::make(std::string_view wanted) {
  auto [base, number] = numbered(wanted);
  long count = number ? *number : 0;
  if (count == 0)
    if (auto at = counts_.find(base); at != counts_.end()) count = at->second;
  std::string candidate(wanted);
  while (used_.contains(candidate) || is_reserved(candidate)) candidate = base + "_" + std::to_string(++count);
  used_.insert(candidate);
  counts_[base] = count;
  return candidate;
}

std::string NamesAroundInputs::rename(const std::string& name, bool is_input) {
  Numbered parts = numbered(name);
  const std::string& key = parts.number && !is_input ? parts.base : name;
  std::string out = used_.contains(name) ? key + "_" + std::to_string(highest_[key] + 1) : name;
  if (Numbered made = numbered(out); made.number && *made.number > highest_[made.base])
    highest_[made.base] = *made.number;
  used_.insert(out);
  return out;
}

}  // namespace tenon::dialect
