#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/shared.h>
#include <tenon/tensor.h>

namespace tenon::v0 {

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
Error::~Error() = default;

void detail::fail_empty() {
  throw Error(ErrorKind::call,
              "this object is empty, as one is that was moved from; use the one it was moved to, or make a new one");
}
void detail::fail_no_function() {
  throw Error(ErrorKind::call, "a function was expected, got an empty one; give a lambda or a pointer to a function");
}
void detail::fail_narrowed(std::int64_t value, std::size_t bytes) {
  throw Error(ErrorKind::call, "the integer " + std::to_string(value) + " does not fit into a type of " +
                                   std::to_string(bytes) + " bytes that was asked for; ask for std::int64_t");
}

}  // namespace tenon::v0
