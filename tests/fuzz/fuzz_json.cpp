// What was read is written, read again and written again: both texts must be equal.
#include "tenon/io/json.h"
#include "tests/fuzz/fuzz.h"

namespace tenon {
namespace {
void write(JsonWriter& out, Json value) {
  switch (value.kind()) {
    case JsonKind::null: return out.null();
    case JsonKind::boolean: return out.boolean(value.as_bool());
    case JsonKind::integer: return out.integer(value.as_int());
    case JsonKind::real: return out.real(value.as_double());
    case JsonKind::string: return out.string(value.as_string());
    case JsonKind::array:
      out.begin_array();
      for (Json item : value.items()) write(out, item);
      return out.end_array();
    case JsonKind::object:
      out.begin_object();
      for (auto [key, item] : value.members()) {
        claim(value.find(key).has_value());
        out.key(key);
        write(out, item);
      }
      return out.end_object();
  }
}
std::string rewritten(std::string_view source) {
  JsonDocument document(source, "fuzz");
  JsonWriter out;
  write(out, document.root());
  return out.take();
}
}  // namespace

void fuzz(FuzzBytes bytes) {
  std::string once = rewritten(as_text(bytes));
  try {
    claim(rewritten(once) == once);
  } catch (const Error&) { claim(false); }
}
}  // namespace tenon
