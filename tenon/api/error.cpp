#include <tenon/error.h>

namespace tenon::v0 {

Error::Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
Error::~Error() = default;

}  // namespace tenon::v0
