#include "tenon/base/error.h"

namespace tenon {

void fail_internal(const std::source_location& at, const std::string& message) {
  std::string_view file = at.file_name();
  if (size_t folder = file.rfind("tenon/"); folder != std::string_view::npos) file.remove_prefix(folder);
  throw InternalError(text("internal error: ", message, " (", file, ":", at.line(), "); please report it"));
}

void unreachable(std::source_location at) { fail_internal(at, "a case that cannot occur"); }

}  // namespace tenon
