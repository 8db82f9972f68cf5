// Reads a pickle and walks the whole of it as a tree.
#include "tenon/io/pickle.h"
#include "tests/fuzz/fuzz.h"

namespace tenon {
namespace {
void walk(PickleValue value, size_t depth, size_t& count) {
  claim(depth <= 200 && ++count <= 100'000);
  if (count < 100) value.describe();
  switch (value.kind()) {
    case PickleKind::none:
    case PickleKind::boolean:
    case PickleKind::integer:
    case PickleKind::real:
    case PickleKind::string:
    case PickleKind::bytes: return;
    case PickleKind::global: claim(value.is_global(value.module(), value.name())); return;
    case PickleKind::persistent: return walk(value.id(), depth + 1, count);
    case PickleKind::call:
    case PickleKind::object:
      walk(value.callee(), depth + 1, count);
      walk(value.args(), depth + 1, count);
      if (auto state = value.state()) walk(*state, depth + 1, count);
      break;
    case PickleKind::tuple:
    case PickleKind::list:
    case PickleKind::dict:
    case PickleKind::set: break;
  }
  for (size_t i = 0; i < value.size(); ++i) {
    if (value.has_pairs()) {
      walk(value.pair(i).key, depth + 1, count);
      walk(value.pair(i).value, depth + 1, count);
    } else {
      walk(value[i], depth + 1, count);
    }
  }
}
}  // namespace

void fuzz(FuzzBytes bytes) {
  PickleDocument document(bytes, "fuzz", {.values = 100'000, .expanded = 100'000});
  size_t count = 0;
  walk(document.root(), 1, count);
}
}  // namespace tenon
