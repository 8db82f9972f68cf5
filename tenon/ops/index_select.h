// Whole slices by an index along one dimension, and elements by their number among all.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle index_select, index_add, index_fill, take, put;

}  // namespace tenon
