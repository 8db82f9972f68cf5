// A 64-bit parameter of a kernel or host function, in terms of the program's symbols.
#pragma once
#include "tenon/sym/evaluate.h"
#include "tenon/tensor/meta.h"

namespace tenon::loop {

/// An integer, a condition as 0 or 1, or the bits of a double.
struct Param {
  SymInt value = 0;
  enum class Kind : uint8_t { integer, condition, real } kind = Kind::integer;
  bool operator==(const Param&) const = default;

  static Param real(double number);
};
int64_t evaluate(const Param& param, const sym::Bindings& symbols);

}  // namespace tenon::loop
