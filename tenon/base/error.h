// Two kinds of error. `require`: the user's file, program or call is wrong, and the message says so. `expect`: we are.
// Pass the parts of a message as objects: nothing is formatted unless the check fails.
#pragma once
#include <stdexcept>
#include <string>

#include "tenon/base/text.h"

namespace tenon {

/// The input or the program is at fault. The message names the subject, what was expected, what came and the way out.
/// One that came to more than `longest_message` characters keeps its beginning and its end: text of a file cannot make
/// it longer.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(shortened(message)) {}
};

/// Nothing is wrong with it, but Tenon does not do it: it can still be shown and written.
class Unsupported : public Error {
 public:
  using Error::Error;
};

/// Tenon itself is at fault.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void fail_with(const std::string& message);
[[noreturn]] void fail_unsupported(const std::string& message);

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  fail_with(text(parts...));
}

template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(parts...);
}

/// The place in our source that asked. (clang 14 has no std::source_location.)
struct Place {
  const char* file;
  int line;
};

/// A condition and the place that asked.
struct Check {
  bool ok;
  Place at;
  Check(bool ok, const char* file = __builtin_FILE(), int line = __builtin_LINE()) : ok(ok), at{file, line} {}
};

[[noreturn]] void fail_internal(Place at, const std::string& message);

template <class... Parts>
void expect(Check check, const Parts&... parts) {
  if (!check.ok) [[unlikely]]
    fail_internal(check.at, text(parts...));
}

/// Ends a switch over a closed enum that has handled every case.
[[noreturn]] void unreachable(const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace tenon
