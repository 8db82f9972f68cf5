// Sorting, and what is chosen from sorted rows.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle sort, topk;

}  // namespace tenon
