// What the verbs say and where they write it.
#pragma once
#include <string>
#include <string_view>

#include "tenon/base/error.h"

namespace tenon::tool {

/// To stdout; what a terminal would act on is escaped, line ends and tabs aside.
void print(std::string_view text);
/// To stderr: "tenon: message", one line of limited length, escaped likewise.
void complain(std::string_view message);
/// A warning about a file, which is named once: also where the warning names it itself.
void warn_about(const std::string& file, std::string warning);
std::string shown(std::string_view name);  // a name from a file, safe to print, without quotes
/// Writes what print() buffered; an Error where stdout cannot take it (a full disk).
void flush_output();

/// Fails before long work where `out` certainly cannot be written: it is a folder, its folder is missing or closed to
/// us.
void require_writable(const std::string& out);
/// Fails where `out` is the file `in` itself, under whatever name.
void require_other_file(const std::string& in, const std::string& out);

/// Whether a file begins as a compiled program does.
bool is_compiled(const std::string& file);

/// Runs f; an Error that does not name the file gets its name in front.
template <class F>
auto about(const std::string& file, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    std::string_view message = error.what();
    if (message.find(file) != message.npos) throw;
    fail(file, ": ", message);
  }
}

}  // namespace tenon::tool
