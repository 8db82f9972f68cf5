// Reads code that the build compiled and linked flat (flat.ld), as the compiler would hand it to the writer.
#pragma once
#include <string>

#include "tenon/package/artifact_writer.h"

namespace tenon::package {
CodeImage read_code_image(const std::string& path, tenon_target target);
}  // namespace tenon::package
