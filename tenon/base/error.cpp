#include "tenon/base/error.h"

#include "tenon/base/small_vector.h"

namespace tenon {

void fail_with(const std::string& message) { throw Error(message); }
void fail_unsupported(const std::string& message) { throw Unsupported(message); }

void fail_internal(Place at, const std::string& message) {
  std::string_view file = at.file;
  if (size_t folder = file.rfind("tenon/"); folder != std::string_view::npos) file.remove_prefix(folder);
  throw InternalError(text("internal error: ", message, " (", file, ":", at.line, "); please report it"));
}

void fail_index(size_t index, size_t size) {
  fail("a tensor or list of another size was expected: entry ", static_cast<int64_t>(index),
       " was asked for, there are ", size);
}

void unreachable(const char* file, int line) { fail_internal({file, line}, "a case that cannot occur"); }

}  // namespace tenon
