// The sources of the kernel library, as the build found them: what emitted source is shipped with.
#pragma once
#include <span>
#include <string_view>

namespace tenon::artifact {

struct SourceText {
  std::string_view path;    // kernels/sort.cpp
  std::string_view family;  // a source that belongs to one; empty: every family may need it
  std::string_view text;
};
std::span<const SourceText> library_text();

}  // namespace tenon::artifact
