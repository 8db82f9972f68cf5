#pragma once
#include <cstdint>

namespace tenon::templates {

/// A tensor as lines along one dimension: line (o, i) begins at o * outer_stride + i * inner_stride and its elements
/// are `stride` apart.
struct Lines {
  std::int64_t outer = 1, inner = 1, length = 0;
  std::int64_t outer_stride = 0, inner_stride = 1, stride = 1;

  /// Of a contiguous tensor [outer, length, inner].
  static Lines contiguous(std::int64_t outer, std::int64_t length, std::int64_t inner) {
    return {outer, inner, length, length * inner, 1, inner};
  }
  std::int64_t count() const { return outer * inner; }
  std::int64_t begin(std::int64_t line) const { return line / inner * outer_stride + line % inner * inner_stride; }
};

}  // namespace tenon::templates
