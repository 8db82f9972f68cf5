// A JSON value written as it was read; for tests and fuzz targets.
#pragma once
#include "tenon/io/json.h"

namespace tenon {

inline void rewrite(JsonWriter& out, Json value) {
  switch (value.kind()) {
    case JsonKind::null: return out.null();
    case JsonKind::boolean: return out.boolean(value.as_bool());
    case JsonKind::integer: return out.integer(value.as_int());
    case JsonKind::real: return out.real(value.as_double());
    case JsonKind::string: return out.string(value.as_string());
    case JsonKind::array:
      out.begin_array();
      for (Json item : value.items()) rewrite(out, item);
      return out.end_array();
    case JsonKind::object:
      out.begin_object();
      for (auto [key, item] : value.members()) {
        out.key(key);
        rewrite(out, item);
      }
      return out.end_object();
  }
}

inline std::string rewritten(std::string_view source, const std::string& subject) {
  JsonDocument document(source, subject);
  JsonWriter out;
  rewrite(out, document.root());
  return out.take();
}

}  // namespace tenon
