// For ops that write what they compute to an argument.
#pragma once
#include "tenon/ops/conversion.h"
#include "tenon/rules/registry.h"

namespace tenon {

/// copy_ of a value, converted to the dtype of what it is written to.
inline void write(const Tensor& to, const Tensor& value) {
  static const Op& copy_into = registry().in_place_form(copy.op());
  call_op(copy_into, {to, value, false});
}

}  // namespace tenon
