// JSON that can be changed, for upgrading programs of older schemas. Text is borrowed from the document it was made
// from, which must outlive it. Accessors are lenient: what is not there is not found, because the reader complains
// afterwards.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/io/json.h"

namespace tenon::serde {

class EditableJson {
 public:
  using Items = std::vector<EditableJson>;
  struct Member;
  using Members = std::vector<Member>;

  EditableJson();  // null
  explicit EditableJson(Json json);
  EditableJson(EditableJson&&) noexcept;
  EditableJson& operator=(EditableJson&&) noexcept;
  ~EditableJson();
  static EditableJson boolean(bool value);
  static EditableJson integer(int64_t value);
  static EditableJson string(std::string_view value);  // borrowed
  static EditableJson array(Items items);
  static EditableJson object();

  std::string_view as_string() const;  // empty where it is no string
  std::optional<int64_t> integer() const;
  std::optional<double> real() const;

  std::span<EditableJson> items();                         // of an array; none otherwise
  std::span<EditableJson> items_of(std::string_view key);  // of the array under that key
  bool is_empty_array() const;
  bool is_true() const;
  void append_to(std::string_view key, EditableJson item);  // to the array under that key, if there is one
  EditableJson* find(std::string_view key);                 // null where it is no object or has no such member
  void set(std::string_view key, EditableJson value);       // replaces or adds; the key is borrowed
  void set_text(std::string value);                         // an owned string
  void for_each_child(const std::function<void(std::string_view key, EditableJson& child)>& visit);

  /// The text, with infinities as strings.
  std::string to_text() const;

 private:
  void write(JsonWriter& out) const;
  // std::string stands behind a pointer: few are made, and every value is as large as the largest alternative.
  std::variant<std::monostate, bool, int64_t, double, std::string_view, std::unique_ptr<std::string>, Items, Members>
      value_;
};

struct EditableJson::Member {
  std::string_view key;
  EditableJson value;
};

}  // namespace tenon::serde
