#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::kernels {

/// The same numbers on every run; values in [-1, 1).
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 2654435761u + 12345) {}
  std::uint64_t bits() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(limit));
  }
  double unit() { return static_cast<double>(bits()) / (1u << 30) - 1.0; }
  template <class T>
  std::vector<T> vector(std::int64_t size) {
    std::vector<T> result(static_cast<std::size_t>(size));
    for (T& x : result) x = static_cast<T>(unit());
    return result;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tenon::kernels
