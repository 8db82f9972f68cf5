// Programs over all operators, made from a stream of bytes: arguments are drawn by schema, results are described as our
// own inference has them, and now and then as it has not.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// Decisions taken from bytes; zeros where they are used up.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : bytes_(bytes) {}
  uint8_t byte();
  /// 0 .. count - 1.
  size_t below(size_t count);
  bool one_in(size_t count) { return below(count) == 0; }
  template <class T>
  const T& of(std::span<const T> items) {
    return items[below(items.size())];
  }
  bool used_up() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

/// The JSON of a program (models/model.json) of a few nodes. `stateful`: of its inputs the first are parameters and
/// buffers.
std::string generated_program(Choices& choices, bool stateful = false);

/// JSON with some values changed as a tree: numbers, strings and kinds replaced, items dropped, doubled and exchanged.
/// Text that is no JSON comes back as it is.
std::string mutated_json(std::string_view json, Choices& choices);

}  // namespace tenon
