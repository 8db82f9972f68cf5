// What reading one file may cost. Everything that is made from a file's content takes from one budget: inflated
// entries, copies, JSON and pickled values, values of graphs, expressions. So a file cannot ask for the limits of each
// reader in turn, and an archive within an archive not for those of a second file.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace tenon {

struct BudgetLimits {
  uint64_t bytes = uint64_t{256} << 20;  // made from the content, and
  uint64_t bytes_per_byte = 16;          // so many more for each byte of the file
  uint64_t values = uint64_t{16} << 20;  // of JSON and of pickles
  uint64_t weight = uint64_t{4} << 20;   // nodes of all symbolic expressions, each written out as a tree, and
  uint64_t weight_per_byte = 1;          // so many more for each byte of the file
  bool operator==(const BudgetLimits&) const = default;
};

/// Taking more than there is fails with a sentence that names the file. May be used from several threads.
class Budget {
 public:
  Budget(std::string subject, uint64_t file_bytes, const BudgetLimits& limits = {});

  void take_bytes(uint64_t count, const char* what) { take(bytes_, count, limit_.bytes, "bytes", what); }
  void take_values(uint64_t count, const char* what) { take(values_, count, limit_.values, "values", what); }
  void take_weight(uint64_t count, const char* what) { take(weight_, count, limit_.weight, "nodes", what); }

  uint64_t bytes_taken() const { return bytes_; }
  uint64_t bytes_limit() const { return limit_.bytes; }
  const std::string& subject() const { return subject_; }

 private:
  void take(std::atomic<uint64_t>& from, uint64_t count, uint64_t limit, const char* unit, const char* what) {
    uint64_t before = from.fetch_add(count, std::memory_order_relaxed);
    if (before > limit || count > limit - before) [[unlikely]]
      refuse(from, before, limit, unit, what);
  }
  [[noreturn]] void refuse(std::atomic<uint64_t>& from, uint64_t before, uint64_t limit, const char* unit,
                           const char* what);

  std::string subject_;
  BudgetLimits limit_;  // bytes, weight: both parts together
  std::atomic<uint64_t> bytes_ = 0, values_ = 0, weight_ = 0;
};

}  // namespace tenon
