#include "tenon/base/error.h"

namespace tenon {

void fail_internal(Place at, const std::string& message) {
  std::string_view file = at.file;
  if (size_t folder = file.rfind("tenon/"); folder != std::string_view::npos) file.remove_prefix(folder);
  throw InternalError(text("internal error: ", message, " (", file, ":", at.line, "); please report it"));
}

void unreachable(const char* file, int line) { fail_internal({file, line}, "a case that cannot occur"); }

}  // namespace tenon
