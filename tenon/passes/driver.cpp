#include "tenon/passes/driver.h"

#include <cstdio>

namespace tenon {

std::string to_text(const std::vector<PassRecord>& records) {
  std::string out;
  for (const PassRecord& r : records) {
    char line[160];
    std::snprintf(line, sizeof line, "%-16.40s %10.3f ms %8zu -> %zu\n", r.name.c_str(), r.milliseconds, r.before,
                  r.after);
    out += line;
  }
  return out;
}

}  // namespace tenon
