// Along one dimension, an index for every element.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle gather, scatter_src, scatter_value, scatter_add, scatter_reduce;

}  // namespace tenon
