// The one exception that public functions throw.
#pragma once
#include <tenon/visibility.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tenon::TENON_INLINE v0 {
enum class ErrorKind : std::uint8_t {
  file,         // a file is missing, damaged or no program
  call,         // an argument or a request is wrong
  unsupported,  // nothing is wrong with the program, but Tenon does not run or differentiate it
  internal      // Tenon itself is at fault; please report it
};

/// The message names the subject, what was expected, what came and the way out.
class TENON_PUBLIC Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  ~Error() override;
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace tenon::TENON_INLINEv0
