#include "tenon/graph/schema.h"

#include <cctype>
#include <charconv>
#include <cstdio>

namespace tenon {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  Schema schema() {
    Schema s;
    s.name = std::string(take_until('('));
    if (s.name.find("::") == std::string::npos) s.name = "aten::" + s.name;
    if (ends_with(s.name, ".default")) s.name.resize(s.name.size() - 8);
    need('(');
    bool keyword_only = false;
    while (!closed()) {
      if (accept('*')) keyword_only = true;
      else {
        s.args.push_back(arg(true));
        s.args.back().keyword_only = keyword_only;
      }
      accept(',');
    }
    expect(accept_word("->"), "schema without a result: ", whole_);
    if (accept('(')) {
      while (!closed()) {
        s.returns.push_back(arg(false));
        accept(',');
      }
    } else {
      s.returns.push_back(arg(false));
    }
    skip_space();
    expect(rest_.empty(), "text after the end of the schema: ", whole_);
    return s;
  }

 private:
  void skip_space() { rest_ = trim(rest_); }
  bool accept(char c) {
    skip_space();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!starts_with(rest_, word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool closed() {
    if (accept(')')) return true;
    expect(!rest_.empty(), "a parenthesis is not closed in schema ", whole_);
    return false;
  }
  void need(char c) { expect(accept(c), "expected '", c, "' at '", rest_, "' in schema ", whole_); }
  std::string_view take_until(char c) {
    size_t end = rest_.find(c);
    expect(end != std::string_view::npos, "no '", c, "' in schema ", whole_);
    std::string_view word = trim(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }
  std::string_view word() {
    skip_space();
    size_t n = 0;
    while (n < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_' || rest_[n] == '.'))
      ++n;
    std::string_view w = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return w;
  }

  static TypeKind kind_of(std::string_view w) {
    if (w == "Tensor") return TypeKind::tensor;
    if (w == "Scalar" || w == "number") return TypeKind::scalar;
    if (w == "int" || w == "SymInt") return TypeKind::integer;
    if (w == "float" || w == "SymFloat") return TypeKind::floating;
    if (w == "bool" || w == "SymBool") return TypeKind::boolean;
    if (w == "str") return TypeKind::string;
    if (w == "ScalarType") return TypeKind::dtype;
    if (w == "Layout") return TypeKind::layout;
    if (w == "MemoryFormat") return TypeKind::memory_format;
    if (w == "Device") return TypeKind::device;
    if (w == "Generator") return TypeKind::generator;
    if (w == "Storage") return TypeKind::storage;
    if (w == "Stream") return TypeKind::stream;
    return TypeKind::other;
  }

  SchemaArg arg(bool named) {
    SchemaArg a;
    std::string_view base = word();
    a.type.kind = kind_of(base);
    a.type.text = std::string(base);
    if (accept('(')) {  // alias annotation: a, a!, a -> *, a|b
      std::string_view inside = take_until(')');
      need(')');
      a.writes = inside.find('!') != std::string_view::npos;
      a.alias_any = ends_with(inside, "*");
      a.alias = std::string(inside.substr(0, inside.find_first_of("!| -")));
      if (a.alias.empty()) a.alias = "a";
    }
    bool inner_optional = accept('?');
    if (accept('[')) {
      a.type.list = true;
      a.type.optional_items = inner_optional;
      std::string_view size = take_until(']');
      need(']');
      a.type.broadcasting_list = !size.empty();
      a.type.text += (inner_optional ? "?[" : "[") + std::string(size) + "]";
      if (accept('(')) {  // (a!) after a list
        std::string_view inside = take_until(')');
        need(')');
        a.writes = a.writes || inside.find('!') != std::string_view::npos;
      }
      a.type.optional = accept('?');
      if (a.type.optional) a.type.text += "?";
    } else {
      a.type.optional = inner_optional;
      if (inner_optional) a.type.text += "?";
    }
    a.name = std::string(word());
    if (named && accept('=')) {
      a.has_default = true;
      a.default_value = default_value(a.type);
    }
    return a;
  }

  CallArg default_value(const Type& type) {
    skip_space();
    if (accept('[')) {
      std::string_view inside = take_until(']');
      need(']');
      if (type.kind == TypeKind::floating) {
        std::vector<double> values;
        for (const std::string& part : split(inside, ','))
          if (!trim(part).empty()) values.push_back(std::stod(part));
        return values;
      }
      if (type.kind == TypeKind::boolean) {
        std::vector<bool> values;
        for (const std::string& part : split(inside, ','))
          if (!trim(part).empty()) values.push_back(trim(part) == "True");
        return values;
      }
      Sizes values;
      for (const std::string& part : split(inside, ','))
        if (!trim(part).empty()) values.push_back(SymInt(std::stoll(part)));
      return values;
    }
    if (!rest_.empty() && (rest_[0] == '"' || rest_[0] == '\'')) {
      char quote = rest_[0];
      rest_.remove_prefix(1);
      std::string value(take_until(quote));
      need(quote);
      return value;
    }
    bool negative = accept('-');
    size_t n = 0;  // a number may hold e-05: the minus is part of it
    while (n < rest_.size() && rest_[n] != ',' && rest_[n] != ')' && rest_[n] != ' ') ++n;
    std::string w(rest_.substr(0, n));
    rest_.remove_prefix(n);
    if (w == "None") return {};
    if (w == "True") return true;
    if (w == "False") return false;
    if (w == "Mean") return int64_t{1};  // Reduction::Mean
    if (w == "contiguous_format") return MemoryFormat::contiguous;
    if (w == "strided") return Layout::strided;
    if (w == "long") return DType::i64;
    if (w == "inf")
      return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    if (w.find_first_of(".en") != std::string::npos) return negative ? -std::stod(w) : std::stod(w);
    int64_t i = std::stoll(w);
    if (negative) i = -i;
    if (type.kind == TypeKind::dtype && i == 4) return DType::i64;  // files spell "long" as its number
    if (type.kind == TypeKind::dtype && i == 6) return DType::f32;  // and "float"
    if (type.list) return Sizes(2, SymInt(i));  // int[2] stride=1; a broadcasting list takes its length when used
    if (type.kind == TypeKind::floating) return static_cast<double>(i);
    return i;
  }

  std::string_view whole_, rest_;
};

// 17 digits, and a point where there is neither point nor exponent: 2., 1.0000000000000001e-05.
std::string double_text(double value) {
  char digits[40];
  std::string out(digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 17).ptr);
  return out.find_first_of(".en") == std::string::npos ? out + "." : out;
}

std::string value_text(const CallArg& value, const Type& type) {
  if (value.is_none()) return "None";
  if (auto* b = value.get<bool>()) return *b ? "True" : "False";
  if (auto* s = value.get<std::string>()) return "\"" + *s + "\"";
  if (auto* l = value.get<Sizes>()) {
    if (type.broadcasting_list && !l->empty()) {
      bool same = true;
      for (SymInt i : *l) same = same && i == (*l)[0];
      if (same && l->size() == 2 && type.text != "SymInt[2]") return text((*l)[0]);
    }
    return text(*l);
  }
  if (auto* i = value.get<SymInt>()) return text(*i);
  if (auto* d = value.get<double>()) return double_text(*d);
  if (value.is<MemoryFormat>()) return "0";  // only contiguous_format is a default
  if (auto* l = value.get<Layout>()) return std::string(name(*l));
  if (auto* d = value.get<DType>())
    return *d == DType::i64 ? "4" : *d == DType::f32 ? "6" : std::string(torch_name(*d));
  if (auto* l = value.get<std::vector<double>>()) return text(*l);
  if (auto* l = value.get<std::vector<bool>>()) {
    std::string out = "[";
    for (size_t i = 0; i < l->size(); ++i) out += std::string(i ? ", " : "") + ((*l)[i] ? "True" : "False");
    return out + "]";
  }
  return "?";
}

}  // namespace

std::string_view Schema::space() const { return std::string_view(name).substr(0, name.find("::")); }
std::string_view Schema::base() const {
  std::string_view rest = std::string_view(name).substr(name.find("::") + 2);
  return rest.substr(0, rest.find('.'));
}
std::string_view Schema::overload() const {
  size_t dot = name.find('.', name.find("::"));
  return dot == std::string::npos ? std::string_view("default") : std::string_view(name).substr(dot + 1);
}
int Schema::find(std::string_view arg) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name == arg) return static_cast<int>(i);
  return -1;
}
bool Schema::writes() const {
  for (const SchemaArg& a : args)
    if (a.writes) return true;
  return false;
}

Schema parse_schema(std::string_view text) { return Parser(text).schema(); }

std::string to_text(const Schema& schema) {
  auto type_text = [](const SchemaArg& a) {
    std::string out = a.type.text;
    if (!a.alias.empty()) {
      size_t end = out.find_first_of("[?");
      out.insert(end == std::string::npos ? out.size() : end,
                 "(" + a.alias + (a.writes ? "!" : "") + (a.alias_any ? " -> *" : "") + ")");
    }
    return out;
  };
  std::string out = schema.name + "(";
  bool star = false;
  for (size_t i = 0; i < schema.args.size(); ++i) {
    const SchemaArg& a = schema.args[i];
    if (i) out += ", ";
    if (a.keyword_only && !star) {
      out += "*, ";
      star = true;
    }
    out += type_text(a) + " " + a.name;
    if (a.has_default) out += "=" + value_text(a.default_value, a.type);
  }
  out += ") -> ";
  bool bracket = schema.returns.size() != 1;
  if (bracket) out += "(";
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (i) out += ", ";
    out += type_text(schema.returns[i]);
    if (!schema.returns[i].name.empty()) out += " " + schema.returns[i].name;
  }
  return bracket ? out + ")" : out;
}

namespace {

bool is_int_value(const SymInt& i) { return i.is_int() || i.kind() != sym::Kind::boolean; }

// One item of a list, or the whole argument where the slot is no list.
bool fits_item(CallArg& arg, const Type& type) {
  switch (type.kind) {
    case TypeKind::tensor: return arg.is<Tensor>() || arg.is_number();
    case TypeKind::scalar: return arg.is_number() || arg.is<Tensor>();
    case TypeKind::integer:
      if (auto* b = arg.get<bool>()) arg = CallArg(static_cast<int64_t>(*b));
      return (arg.is<SymInt>() && is_int_value(*arg.get<SymInt>())) || arg.is<Tensor>();
    case TypeKind::floating:
      if (auto* i = arg.get<SymInt>(); i && i->is_int()) arg = CallArg(static_cast<double>(i->as_int()));
      return arg.is<double>() || arg.is<SymInt>() || arg.is<Tensor>();
    case TypeKind::boolean: return arg.is<bool>() || arg.is<SymInt>() || arg.is<Tensor>();
    case TypeKind::string: return arg.is<std::string>();
    case TypeKind::dtype: return arg.is<DType>();
    case TypeKind::layout: return arg.is<Layout>();
    case TypeKind::memory_format: return arg.is<MemoryFormat>();
    case TypeKind::device: return arg.is<Device>();
    case TypeKind::generator:
    case TypeKind::storage:
    case TypeKind::stream: return arg.is_none();
    case TypeKind::other: return true;
  }
  unreachable();
}

bool empty_list(const CallArg& arg) {
  if (auto* l = arg.get<Sizes>()) return l->empty();
  if (auto* l = arg.get<std::vector<double>>()) return l->empty();
  if (auto* l = arg.get<std::vector<bool>>()) return l->empty();
  if (auto* l = arg.get<std::vector<std::string>>()) return l->empty();
  if (auto* l = arg.get<std::vector<Tensor>>()) return l->empty();
  if (auto* l = arg.get<CallArg::Items>()) return l->empty();
  return false;
}

bool fits_list(CallArg& arg, const Type& type) {
  if (empty_list(arg)) {
    switch (type.kind) {
      case TypeKind::tensor: arg = CallArg(std::vector<Tensor>{}); return true;
      case TypeKind::floating: arg = CallArg(std::vector<double>{}); return true;
      case TypeKind::boolean: arg = CallArg(std::vector<bool>{}); return true;
      case TypeKind::string: arg = CallArg(std::vector<std::string>{}); return true;
      case TypeKind::scalar: return true;
      default: arg = CallArg(Sizes{}); return true;
    }
  }
  switch (type.kind) {
    case TypeKind::tensor: {
      if (auto* list = arg.get<std::vector<Tensor>>()) {
        if (!type.optional_items)
          for (const Tensor& t : *list)
            if (!t) return false;
        return true;
      }
      return false;
    }
    case TypeKind::integer:
      if (arg.is<Sizes>()) return true;
      if (auto* items = arg.get<CallArg::Items>()) {  // ints mixed with values of a graph
        for (CallArg& item : *items)
          if (!fits_item(item, type)) return false;
        return true;
      }
      if (type.broadcasting_list && arg.is<SymInt>()) {
        arg = CallArg(Sizes(1, *arg.get<SymInt>()));
        return true;
      }
      return false;
    case TypeKind::floating:
      if (auto* ints = arg.get<Sizes>()) {
        std::vector<double> values;
        for (SymInt i : *ints) {
          if (!i.is_int()) return false;
          values.push_back(static_cast<double>(i.as_int()));
        }
        arg = CallArg(values);
      }
      return arg.is<std::vector<double>>();
    case TypeKind::boolean: return arg.is<std::vector<bool>>();
    case TypeKind::string: return arg.is<std::vector<std::string>>();
    default: return true;
  }
}

}  // namespace

std::optional<std::string> coerce(CallArg& arg, const SchemaArg& slot) {
  const Type& type = slot.type;
  if (arg.is_none()) {
    if (type.optional || type.kind == TypeKind::generator || type.kind == TypeKind::other || type.optional_items)
      return std::nullopt;
    return type.text;
  }
  if (auto* t = arg.get<Tensor>(); t && !*t && type.optional) return std::nullopt;
  bool fits = type.list ? fits_list(arg, type) : fits_item(arg, type);
  if (fits) return std::nullopt;
  return type.text;
}

}  // namespace tenon
