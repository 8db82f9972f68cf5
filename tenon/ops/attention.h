// Scaled dot product attention.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle flash_attention, flash_attention_backward;

}  // namespace tenon
