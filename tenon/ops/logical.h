// Logical operators on truth values, bitwise operators on integers.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle logical_not, logical_and, logical_or, logical_xor, bitwise_not, bitwise_and, bitwise_or, bitwise_xor;

}  // namespace tenon
