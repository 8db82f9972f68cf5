// A limit on the memory that the process makes: --max-memory.
#pragma once
#include <cstdint>
#include <string>

namespace tenon::tool {

/// From now on an allocation that would bring the total above `bytes` fails as one does when the machine has no more
/// (std::bad_alloc). Mapped files do not count. 0: no limit.
void limit_memory(int64_t bytes);
int64_t memory_limit();

/// "512M", "2G", "100000", "1.5G": bytes, in units of 1024. An Error says what was expected.
int64_t parse_memory(const std::string& text);

}  // namespace tenon::tool
