// Two kinds of error. `require`: the user's file, program or call is wrong, and the message says so. `expect`: we are.
// Pass the parts of a message as objects: nothing is formatted unless the check fails.
#pragma once
#include <source_location>
#include <stdexcept>
#include <string>

#include "tenon/base/text.h"

namespace tenon {

/// The input or the program is at fault. The message names the subject, what was expected, what came and the way out.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Tenon itself is at fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(text(parts...));
}

template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]] fail(parts...);
}

/// A condition and the place that asked.
struct Check {
  bool ok;
  std::source_location at;
  Check(bool ok, std::source_location at = std::source_location::current()) : ok(ok), at(at) {}
};

[[noreturn]] void fail_internal(const std::source_location& at, const std::string& message);

template <class... Parts>
void expect(Check check, const Parts&... parts) {
  if (!check.ok) [[unlikely]] fail_internal(check.at, text(parts...));
}

/// Ends a switch over a closed enum that has handled every case.
[[noreturn]] void unreachable(std::source_location at = std::source_location::current());

}  // namespace tenon
