// JSON read into a compact immutable tree, and written as Python's json.dumps writes it.
// Schema-reading code stays short: every accessor checks the kind, and an error names file, path, what was expected and
// what came ("model.json: graph.nodes[3].name: expected a string, found the integer 7"). The path is found only then.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/budget.h"
#include "tenon/base/error.h"

namespace tenon {

enum class JsonKind : uint8_t { null, boolean, integer, real, string, array, object };

namespace detail {
struct JsonBody;
struct JsonNode {
  JsonKind kind;
  bool flag;       // boolean: the value; real: an integer beyond int64 in the file
  uint32_t count;  // items, members or bytes
  union {
    int64_t integer;
    double real;
    const char* string;
    uint32_t first;  // items, or members as key, value, key, value; behind those of a large object, the place of its
                     // sorted order
  };
};
}  // namespace detail

class JsonItems;
class JsonMembers;

/// A value of a JsonDocument, which must outlive it. Two words: pass it by value.
class Json {
 public:
  JsonKind kind() const { return node_->kind; }
  bool is_null() const { return kind() == JsonKind::null; }
  bool is_bool() const { return kind() == JsonKind::boolean; }
  bool is_int() const { return kind() == JsonKind::integer; }
  bool is_double() const { return kind() == JsonKind::real; }
  bool is_number() const { return is_int() || is_double(); }
  bool is_string() const { return kind() == JsonKind::string; }
  bool is_array() const { return kind() == JsonKind::array; }
  bool is_object() const { return kind() == JsonKind::object; }

  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  // integers too
  std::string_view as_string() const;

  size_t size() const;              // of an array or object
  JsonItems items() const;          // of an array
  Json operator[](size_t i) const;  // of an array
  JsonMembers members() const;      // of an object, in file order

  Json at(std::string_view key) const;                    // an error where absent
  std::optional<Json> find(std::string_view key) const;   // nothing where absent
  std::optional<Json> given(std::string_view key) const;  // nothing where absent or null

  /// "model.json: graph.nodes[3]", for messages.
  std::string where() const;
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(text(where(), ": ", parts...));
  }
  template <class... Parts>
  void require(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(parts...);
  }

 private:
  friend class JsonDocument;
  friend class JsonItems;
  friend class JsonMembers;
  Json(const detail::JsonBody* body, const detail::JsonNode* node) : body_(body), node_(node) {}
  const detail::JsonNode* need(JsonKind kind) const;
  [[noreturn]] void fail_kind(std::string_view expected) const;

  const detail::JsonBody* body_;
  const detail::JsonNode* node_;
};

class JsonItems {
 public:
  struct Iterator {
    const detail::JsonBody* body;
    const detail::JsonNode* node;
    Json operator*() const { return Json(body, node); }
    Iterator& operator++() { return ++node, *this; }
    bool operator==(const Iterator& other) const { return node == other.node; }
  };
  Iterator begin() const { return {body_, first_}; }
  Iterator end() const { return {body_, first_ + count_}; }
  size_t size() const { return count_; }

 private:
  friend class Json;
  JsonItems(const detail::JsonBody* body, const detail::JsonNode* first, size_t count)
      : body_(body), first_(first), count_(count) {}
  const detail::JsonBody* body_;
  const detail::JsonNode* first_;
  size_t count_;
};

struct JsonMember {
  std::string_view key;
  Json value;
};

class JsonMembers {
 public:
  struct Iterator {
    const detail::JsonBody* body;
    const detail::JsonNode* node;
    JsonMember operator*() const { return {{node->string, node->count}, Json(body, node + 1)}; }
    Iterator& operator++() { return node += 2, *this; }
    bool operator==(const Iterator& other) const { return node == other.node; }
  };
  Iterator begin() const { return {body_, first_}; }
  Iterator end() const { return {body_, first_ + 2 * count_}; }
  size_t size() const { return count_; }

 private:
  friend class Json;
  JsonMembers(const detail::JsonBody* body, const detail::JsonNode* first, size_t count)
      : body_(body), first_(first), count_(count) {}
  const detail::JsonBody* body_;
  const detail::JsonNode* first_;
  size_t count_;
};

struct JsonLimits {
  size_t bytes = size_t{1} << 30;
  size_t depth = 200;
  size_t values = size_t{16} << 20;  // 16 bytes each, twice while reading
  bool bare_infinities = false;      // take NaN and Infinity as Python writes them, which are no JSON
  Budget* budget = nullptr;          // of the file that the text is from
};

/// Owns the text and the values. Refused: duplicate keys, text that is not UTF-8, NaN and Infinity (unless asked for),
/// anything over the limits.
class JsonDocument {
 public:
  /// `subject` names the text in messages, as a file name or an entry of an archive.
  JsonDocument(std::string_view text, std::string subject, const JsonLimits& limits = {});
  /// Text that stands in another document, at `within`, which must outlive this one: messages name that place, which is
  /// looked for only then. Takes from the same budget.
  JsonDocument(std::string_view text, Json within);
  /// Text that may be JSON or anything else: nothing where it is none.
  static std::optional<JsonDocument> if_valid(std::string_view text);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;

  Json root() const;

 private:
  JsonDocument();
  /// What is wrong with the text; nothing where it is read.
  std::optional<std::string> read(std::string_view source, const JsonLimits& limits);
  std::unique_ptr<detail::JsonBody> body_;  // values point to it, so a document may move
};

/// Writes what json.dumps writes: ", " and ": ", ASCII only, floats as repr, keys in the order given.
class JsonWriter {
 public:
  void begin_object();
  void end_object();
  void begin_array();
  void end_array();
  void key(std::string_view key);
  void null();
  void boolean(bool value);
  void integer(int64_t value);
  void real(double value);  // must be finite: JSON has no other
  void string(std::string_view value);

  void field(std::string_view name, std::string_view value) { key(name), string(value); }
  void field(std::string_view name, const char* value) { key(name), string(value); }
  void field(std::string_view name, std::same_as<int64_t> auto value) { key(name), integer(value); }
  void field(std::string_view name, std::same_as<bool> auto value) { key(name), boolean(value); }
  void field(std::string_view name, std::same_as<double> auto value) { key(name), real(value); }

  /// The finished text; every container must have been ended.
  std::string take();

 private:
  enum class Place : uint8_t { array_start, array, object_start, object, after_key };
  void before_value();
  void end(Place start, Place later, char close);
  std::string out_;
  std::vector<Place> open_;
};

/// One string as json.dumps writes it, quotes included.
void append_json_string(std::string& out, std::string_view value);

}  // namespace tenon
