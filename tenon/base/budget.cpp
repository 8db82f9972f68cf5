#include "tenon/base/budget.h"

#include "tenon/base/error.h"

namespace tenon {

Budget::Budget(std::string subject, uint64_t file_bytes, const BudgetLimits& limits)
    : subject_(std::move(subject)), limit_(limits) {
  auto grow = [&](uint64_t& limit, uint64_t per_byte) {
    uint64_t more = 0;
    if (__builtin_mul_overflow(file_bytes, per_byte, &more) || __builtin_add_overflow(limit, more, &limit))
      limit = UINT64_MAX;
  };
  grow(limit_.bytes, limits.bytes_per_byte);
  grow(limit_.weight, limits.weight_per_byte);
}

void Budget::refuse(std::atomic<uint64_t>& from, uint64_t before, uint64_t limit, const char* unit, const char* what) {
  from.store(before, std::memory_order_relaxed);  // what was refused was not taken
  // Without the number: it follows from the size of the file, and SECURITY.md says how.
  (void)limit;
  fail(subject_, ": reading ", what, " takes more ", unit, " than a file of its size may take");
}

}  // namespace tenon
