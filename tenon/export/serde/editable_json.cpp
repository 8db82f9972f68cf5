#include "tenon/export/serde/editable_json.h"

#include "tenon/export/serde/codes.h"

namespace tenon::serde {

EditableJson::EditableJson() = default;
EditableJson::EditableJson(EditableJson&&) noexcept = default;
EditableJson& EditableJson::operator=(EditableJson&&) noexcept = default;
EditableJson::~EditableJson() = default;

EditableJson::EditableJson(Json json) {
  switch (json.kind()) {
    case JsonKind::null: return;
    case JsonKind::boolean: value_ = json.as_bool(); return;
    case JsonKind::integer: value_ = json.as_int(); return;
    case JsonKind::real: value_ = json.as_double(); return;
    case JsonKind::string: value_ = json.as_string(); return;
    case JsonKind::array: {
      Items items;
      items.reserve(json.size());
      for (Json item : json.items()) items.emplace_back(item);
      value_ = std::move(items);
      return;
    }
    case JsonKind::object: {
      Members members;
      members.reserve(json.size());
      for (JsonMember member : json.members()) members.push_back({member.key, EditableJson(member.value)});
      value_ = std::move(members);
      return;
    }
  }
  unreachable();
}

EditableJson EditableJson::boolean(bool value) {
  EditableJson out;
  out.value_ = value;
  return out;
}
EditableJson EditableJson::integer(int64_t value) {
  EditableJson out;
  out.value_ = value;
  return out;
}
EditableJson EditableJson::string(std::string_view value) {
  EditableJson out;
  out.value_ = value;
  return out;
}
EditableJson EditableJson::array(Items items) {
  EditableJson out;
  out.value_ = std::move(items);
  return out;
}
EditableJson EditableJson::object() {
  EditableJson out;
  out.value_ = Members();
  return out;
}

std::string_view EditableJson::as_string() const {
  if (auto* borrowed = std::get_if<std::string_view>(&value_)) return *borrowed;
  if (auto* owned = std::get_if<std::unique_ptr<std::string>>(&value_)) return **owned;
  return {};
}

std::optional<int64_t> EditableJson::integer() const {
  auto* value = std::get_if<int64_t>(&value_);
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<double> EditableJson::real() const {
  auto* value = std::get_if<double>(&value_);
  return value ? std::optional(*value) : std::nullopt;
}

std::span<EditableJson> EditableJson::items() {
  auto* items = std::get_if<Items>(&value_);
  return items ? std::span(*items) : std::span<EditableJson>();
}

std::span<EditableJson> EditableJson::items_of(std::string_view key) {
  EditableJson* value = find(key);
  return value ? value->items() : std::span<EditableJson>();
}

bool EditableJson::is_empty_array() const {
  auto* items = std::get_if<Items>(&value_);
  return items && items->empty();
}

bool EditableJson::is_true() const {
  auto* value = std::get_if<bool>(&value_);
  return value && *value;
}

void EditableJson::append_to(std::string_view key, EditableJson item) {
  EditableJson* value = find(key);
  if (auto* items = value ? std::get_if<Items>(&value->value_) : nullptr) items->push_back(std::move(item));
}

EditableJson* EditableJson::find(std::string_view key) {
  if (auto* members = std::get_if<Members>(&value_))
    for (Member& member : *members)
      if (member.key == key) return &member.value;
  return nullptr;
}

void EditableJson::set(std::string_view key, EditableJson value) {
  auto* members = std::get_if<Members>(&value_);
  if (!members) return;
  if (EditableJson* found = find(key)) *found = std::move(value);
  else members->push_back({key, std::move(value)});
}

void EditableJson::set_text(std::string value) { value_ = std::make_unique<std::string>(std::move(value)); }

void EditableJson::for_each_child(const std::function<void(std::string_view, EditableJson&)>& visit) {
  if (auto* items = std::get_if<Items>(&value_))
    for (EditableJson& item : *items) visit("", item);
  if (auto* members = std::get_if<Members>(&value_))
    for (Member& member : *members) visit(member.key, member.value);
}

void EditableJson::write(JsonWriter& out) const {
  if (std::holds_alternative<std::monostate>(value_)) out.null();
  else if (auto* b = std::get_if<bool>(&value_)) out.boolean(*b);
  else if (auto* i = std::get_if<int64_t>(&value_)) out.integer(*i);
  else if (auto* d = std::get_if<double>(&value_)) write_float(out, *d);
  else if (auto* items = std::get_if<Items>(&value_)) {
    out.begin_array();
    for (const EditableJson& item : *items) item.write(out);
    out.end_array();
  } else if (auto* members = std::get_if<Members>(&value_)) {
    out.begin_object();
    for (const Member& member : *members) out.key(member.key), member.value.write(out);
    out.end_object();
  } else {
    out.string(as_string());
  }
}

std::string EditableJson::to_text() const {
  JsonWriter out;
  write(out);
  return out.take();
}

}  // namespace tenon::serde
