#include "tenon/io/json.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tenon {

namespace detail {
struct JsonBody {
  std::string own_subject;
  std::optional<Json> within;  // in place of a subject
  Budget* budget = nullptr;
  std::string subject() const { return within ? within->where() : own_subject; }
  std::unique_ptr<char[]> text;  // strings are decoded in place and values point here
  std::vector<JsonNode> nodes;   // the items of a container stand together, before the container; the root is last
  std::vector<uint32_t> sorted;  // for each large object, its members sorted by key
};
}  // namespace detail

using detail::JsonBody;
using detail::JsonNode;

namespace {

constexpr uint32_t large_object = 12;  // from here on members are found by their sorted order

std::string_view key_of(const JsonNode* member) { return {member->string, member->count}; }

/// The members of a large object in the order of their keys: the list starts at the place noted just behind the
/// members.
const uint32_t* sorted_members(const JsonBody& body, const JsonNode& object) {
  return body.sorted.data() + body.nodes[object.first + 2 * size_t{object.count}].first;
}

/// Whether a number beyond the range of a double is too small for it, not too large.
bool is_tiny(std::string_view number) {
  size_t e = std::min(number.find_first_of("eE"), number.size());
  std::string_view digits = number.substr(0, e);
  size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  size_t point = std::min(digits.find('.'), digits.size());
  auto place = static_cast<int64_t>(point) - static_cast<int64_t>(first);  // above 0 in front of the point
  bool negative = false;
  int64_t exponent = 0;
  for (char c : number.substr(std::min(e + 1, number.size()))) {
    if (c == '-') negative = true;
    else if (c != '+') exponent = std::min<int64_t>(exponent * 10 + (c - '0'), int64_t{1} << 40);
  }
  return place + (negative ? -exponent : exponent) < 0;
}

/// Takes the reader's events. A value waits on the stack until its container ends, and then moves behind its siblings.
struct Builder {
  using Ch = char;
  JsonBody& body;
  const JsonLimits& limits;
  std::vector<JsonNode> stack = {};
  size_t depth = 0;
  std::string error = {};

  bool refuse(std::string message) {
    error = std::move(message);
    return false;
  }
  // What a value takes: its place in the tree, and on the stack while it is read.
  static constexpr uint64_t value_bytes = 2 * sizeof(JsonNode);
  static constexpr size_t taken_at_once = 1024;
  size_t ahead = 0;  // values that were taken from the budget and are not there yet
  void take_value() {
    if (!body.budget || ahead-- > 0) return;
    body.budget->take_values(taken_at_once, "JSON");
    body.budget->take_bytes(taken_at_once * value_bytes, "JSON");
    ahead = taken_at_once - 1;
  }
  bool push(JsonNode node) {
    take_value();
    if (stack.size() + body.nodes.size() >= limits.values)
      return refuse(text("more than ", limits.values, " values; the limit guards memory"));
    stack.push_back(node);
    return true;
  }
  static JsonNode make(JsonKind kind) {
    JsonNode node{};
    node.kind = kind;
    return node;
  }

  bool Null() { return push(make(JsonKind::null)); }
  bool Bool(bool value) {
    JsonNode node = make(JsonKind::boolean);
    node.flag = value;
    return push(node);
  }
  bool RawNumber(const char* digits, unsigned length, bool) {
    std::string_view number(digits, length);
    const char* end = digits + length;
    JsonNode node = make(JsonKind::integer);
    node.flag = number.find_first_of(".eE") == std::string_view::npos;
    if (node.flag && std::from_chars(digits, end, node.integer).ec == std::errc()) return push(node);
    node.kind = JsonKind::real;
    if (std::from_chars(digits, end, node.real).ec == std::errc()) return push(node);
    if (!is_tiny(number)) return refuse(text("the number ", quoted(number, 30), " is too large"));
    node.real = number.front() == '-' ? -0.0 : 0.0;
    return push(node);
  }
  // The reader hands every number to RawNumber.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }
  bool String(const char* string, unsigned length, bool) {
    JsonNode node = make(JsonKind::string);
    node.count = length;
    node.string = string;
    return push(node);
  }
  bool Key(const char* string, unsigned length, bool copy) { return String(string, length, copy); }
  bool start() { return ++depth <= limits.depth || refuse(text("nested deeper than ", limits.depth, " levels")); }
  bool StartArray() { return start(); }
  bool StartObject() { return start(); }
  bool EndArray(unsigned count) { return end(JsonKind::array, count, count); }
  bool EndObject(unsigned count) {
    if (!end(JsonKind::object, count, 2 * size_t{count})) return false;
    const JsonNode& object = stack.back();
    const JsonNode* members = body.nodes.data() + object.first;
    if (count < large_object) {
      for (uint32_t i = 1; i < count; ++i)
        for (uint32_t j = 0; j < i; ++j)
          if (key_of(members + 2 * i) == key_of(members + 2 * j)) return refuse_twice(members + 2 * i);
      return true;
    }
    JsonNode place = make(JsonKind::null);
    place.first = static_cast<uint32_t>(body.sorted.size());
    for (uint32_t i = 0; i < count; ++i) body.sorted.push_back(i);
    auto begin = body.sorted.begin() + place.first;
    std::sort(begin, body.sorted.end(), [&](uint32_t a, uint32_t b) {
      return key_of(members + 2 * size_t{a}) < key_of(members + 2 * size_t{b});
    });
    for (auto i = begin + 1; i != body.sorted.end(); ++i)
      if (key_of(members + 2 * size_t{i[-1]}) == key_of(members + 2 * size_t{*i}))
        return refuse_twice(members + 2 * size_t{*i});
    body.nodes.push_back(place);
    return true;
  }
  bool refuse_twice(const JsonNode* key) {
    return refuse(text("the key ", quoted(key_of(key)), " occurs twice in one object"));
  }
  bool end(JsonKind kind, uint32_t count, size_t values) {
    JsonNode node = make(kind);
    node.count = count;
    node.first = static_cast<uint32_t>(body.nodes.size());
    body.nodes.insert(body.nodes.end(), stack.end() - static_cast<ptrdiff_t>(values), stack.end());
    stack.resize(stack.size() - values);
    --depth;
    return push(node);
  }
};

std::string line_and_column(std::string_view text_before) {
  size_t line = 1 + static_cast<size_t>(std::count(text_before.begin(), text_before.end(), '\n'));
  size_t start = text_before.rfind('\n') + 1;  // npos + 1 is 0
  return text("line ", line, ", column ", text_before.size() - start + 1);
}

}  // namespace

JsonDocument::JsonDocument(std::string_view source, std::string subject, const JsonLimits& limits)
    : body_(std::make_unique<JsonBody>()) {
  body_->own_subject = std::move(subject);
  if (auto wrong = read(source, limits)) fail(body_->subject(), ": ", *wrong);
}

JsonDocument::JsonDocument(std::string_view source, Json within) : body_(std::make_unique<JsonBody>()) {
  body_->within = within;
  if (auto wrong = read(source, {.budget = within.body_->budget})) fail(body_->subject(), ": ", *wrong);
}

JsonDocument::JsonDocument() : body_(std::make_unique<JsonBody>()) {}
std::optional<JsonDocument> JsonDocument::if_valid(std::string_view source) {
  JsonDocument document;
  if (document.read(source, {})) return std::nullopt;
  return document;
}

std::optional<std::string> JsonDocument::read(std::string_view source, const JsonLimits& limits) {
  size_t most = std::min(limits.bytes, size_t{UINT32_MAX});
  if (source.size() > most) return text("JSON of ", source.size(), " bytes is above the limit of ", most);
  body_->budget = limits.budget;
  if (limits.budget) limits.budget->take_bytes(source.size(), "JSON");
  // RapidJSON stops at the first NUL outside a character, but takes the whole of a character that is cut: up to 3 bytes
  // more.
  constexpr size_t padding = 8;
  body_->text = std::make_unique_for_overwrite<char[]>(source.size() + padding);
  std::copy(source.begin(), source.end(), body_->text.get());
  std::memset(body_->text.get() + source.size(), 0, padding);

  // Numbers are converted here: RapidJSON rounds most of them, and its exact conversion of 0e300 is undefined
  // behaviour.
  constexpr unsigned flags = rapidjson::kParseInsituFlag | rapidjson::kParseIterativeFlag |
                             rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseValidateEncodingFlag;
  Builder builder{.body = *body_, .limits = limits};
  rapidjson::InsituStringStream stream(body_->text.get());
  rapidjson::Reader reader;
  rapidjson::ParseResult result = limits.bare_infinities
                                      ? reader.Parse<flags | rapidjson::kParseNanAndInfFlag>(stream, builder)
                                      : reader.Parse<flags>(stream, builder);
  size_t end = result ? stream.Tell() : result.Offset();
  if (result && end == source.size()) {
    body_->nodes.push_back(builder.stack.back());
    return std::nullopt;
  }
  std::string what = !builder.error.empty() ? builder.error
                     : end >= source.size() ? "the text ends too early"
                     : result               ? "unexpected character '\\x00'"
                                            : rapidjson::GetParseError_En(result.Code());
  if (what.ends_with('.')) what.pop_back();
  return text("not valid JSON at ", line_and_column(source.substr(0, end)), ": ", what);
}

JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;

Json JsonDocument::root() const { return Json(body_.get(), &body_->nodes.back()); }

namespace {

std::string_view kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return "a boolean";
    case JsonKind::integer: return "an integer";
    case JsonKind::real: return "a number";
    case JsonKind::string: return "a string";
    case JsonKind::array: return "an array";
    case JsonKind::object: return "an object";
  }
  unreachable();
}

std::string describe(const JsonNode& node) {
  switch (node.kind) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return node.flag ? "true" : "false";
    case JsonKind::integer: return text("the integer ", node.integer);
    case JsonKind::real: return text(node.flag ? "an integer beyond 64 bits, " : "the number ", node.real);
    case JsonKind::string: return text("the string ", quoted({node.string, node.count}));
    case JsonKind::array: return text("an array of ", node.count);
    case JsonKind::object: return text("an object of ", node.count);
  }
  unreachable();
}

bool plain_key(std::string_view key) {
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), plain);
}

// Searches the tree below `at`; its depth is limited by the reader.
bool append_path(std::string& out, const JsonBody& body, const JsonNode* at, const JsonNode* wanted) {
  if (at == wanted) return true;
  size_t length = out.size();
  const JsonNode* first = body.nodes.data() + at->first;
  if (at->kind == JsonKind::array) {
    for (uint32_t i = 0; i < at->count; ++i) {
      out += text('[', i, ']');
      if (append_path(out, body, first + i, wanted)) return true;
      out.resize(length);
    }
  } else if (at->kind == JsonKind::object) {
    for (uint32_t i = 0; i < at->count; ++i) {
      std::string_view key = key_of(first + 2 * size_t{i});
      if (!plain_key(key)) out += text('[', quoted(key), ']');
      else out += out.empty() ? std::string(key) : text('.', key);
      if (append_path(out, body, first + 2 * size_t{i} + 1, wanted)) return true;
      out.resize(length);
    }
  }
  return false;
}

}  // namespace

std::string Json::where() const {
  std::string path;
  append_path(path, *body_, &body_->nodes.back(), node_);
  return path.empty() ? body_->subject() : text(body_->subject(), ": ", path);
}

void Json::fail_kind(std::string_view expected) const { fail("expected ", expected, ", found ", describe(*node_)); }

const JsonNode* Json::need(JsonKind kind) const {
  if (node_->kind != kind) [[unlikely]]
    fail_kind(kind_name(kind));
  return node_;
}

bool Json::as_bool() const { return need(JsonKind::boolean)->flag; }
int64_t Json::as_int() const { return need(JsonKind::integer)->integer; }
double Json::as_double() const { return is_int() ? static_cast<double>(node_->integer) : need(JsonKind::real)->real; }
std::string_view Json::as_string() const {
  need(JsonKind::string);
  return {node_->string, node_->count};
}
size_t Json::size() const {
  if (!is_array() && !is_object()) fail_kind("an array or object");
  return node_->count;
}
JsonItems Json::items() const {
  need(JsonKind::array);
  return {body_, body_->nodes.data() + node_->first, node_->count};
}
Json Json::operator[](size_t i) const {
  need(JsonKind::array);
  require(i < node_->count, "expected more than ", i, " items, found ", node_->count);
  return Json(body_, body_->nodes.data() + node_->first + i);
}
JsonMembers Json::members() const {
  need(JsonKind::object);
  return {body_, body_->nodes.data() + node_->first, node_->count};
}

std::optional<Json> Json::find(std::string_view key) const {
  need(JsonKind::object);
  const JsonNode* members = body_->nodes.data() + node_->first;
  if (node_->count < large_object) {
    for (const JsonNode *member = members, *end = members + 2 * node_->count; member != end; member += 2)
      if (key_of(member) == key) return Json(body_, member + 1);
    return {};
  }
  const uint32_t* begin = sorted_members(*body_, *node_);
  const uint32_t* end = begin + node_->count;
  const uint32_t* found = std::lower_bound(
      begin, end, key, [&](uint32_t i, std::string_view wanted) { return key_of(members + 2 * size_t{i}) < wanted; });
  if (found == end || key_of(members + 2 * size_t{*found}) != key) return {};
  return Json(body_, members + 2 * size_t{*found} + 1);
}

std::optional<Json> Json::given(std::string_view key) const {
  std::optional<Json> value = find(key);
  return value && !value->is_null() ? value : std::nullopt;
}

Json Json::at(std::string_view key) const {
  std::optional<Json> value = find(key);
  if (!value) fail("expected a member ", quoted(key), ", found none");
  return *value;
}

}  // namespace tenon
