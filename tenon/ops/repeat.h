// Elements repeated.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle repeat, repeat_interleave_int;

}  // namespace tenon
