// What was read is written, read again and written again: both texts must be equal.
#include "tests/fuzz/fuzz.h"
#include "tests/io/rewrite_json.h"

namespace tenon {
namespace {
void find_all(Json value) {
  if (value.kind() == JsonKind::array)
    for (Json item : value.items()) find_all(item);
  if (value.kind() == JsonKind::object)
    for (auto [key, item] : value.members()) {
      claim(value.find(key).has_value());
      find_all(item);
    }
}
}  // namespace

void fuzz(FuzzBytes bytes) {
  JsonDocument document(as_text(bytes), "fuzz");
  find_all(document.root());
  std::string once = rewritten(as_text(bytes), "fuzz");
  try {
    claim(rewritten(once, "again") == once);
  } catch (const Error&) { claim(false); }
}
}  // namespace tenon
