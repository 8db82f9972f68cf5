// How a PickleDocument keeps its values; for pickle*.cpp only.
#pragma once
#include "tenon/io/pickle.h"

namespace tenon {

namespace detail {

inline constexpr uint32_t no_value = UINT32_MAX;

struct PickleNode {
  PickleKind kind = PickleKind::none;
  bool flag = false;         // boolean: the value; call, object: what was added are pairs
  uint32_t a = no_value;     // string, bytes: length; global: module; call, object: callee; persistent: id
  uint32_t b = no_value;     // global: name; call, object: args
  uint32_t list = no_value;  // containers: their list; call, object: what was added
  union {
    int64_t integer = 0;
    double real;
    const char* string;
    uint32_t state;  // call, object
  };
};

// All values stand in one list and refer to each other by index, so cycles do not leak and freeing does not recurse.
struct PickleBody {
  std::string subject;
  std::string bytes;  // strings point here
  std::vector<PickleNode> nodes;
  std::vector<std::vector<uint32_t>> lists;
  uint32_t root = 0;
};

}  // namespace detail

}  // namespace tenon
