#include "tenon/dialect/operators.h"

#include <algorithm>
#include <iterator>

namespace tenon::dialect {
namespace {

enum Flag : unsigned { composite = 1, preservable = 2, replaced = 4, kept = 8, core = 16 };
struct Row {
  std::string_view name;
  unsigned flags;
};
constexpr Row rows[] = {
#include "tenon/dialect/operators.inc"
};

}  // namespace

Facts facts_of(std::string_view op) {
  static const std::vector<Row> sorted = [] {
    std::vector<Row> all(std::begin(rows), std::end(rows));
    std::sort(all.begin(), all.end(), [](const Row& a, const Row& b) { return a.name < b.name; });
    return all;
  }();
  auto at = std::lower_bound(sorted.begin(), sorted.end(), op,
                             [](const Row& row, std::string_view name) { return row.name < name; });
  if (at == sorted.end() || at->name != op) return {};
  return {.composite = (at->flags & composite) != 0,
          .preservable = (at->flags & preservable) != 0,
          .replaced = (at->flags & replaced) != 0,
          .kept = (at->flags & kept) != 0,
          .core = (at->flags & core) != 0};
}

std::vector<std::string_view> core_operators() {
  std::vector<std::string_view> out;
  for (const Row& row : rows)
    if (row.flags & core) out.push_back(row.name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace tenon::dialect
