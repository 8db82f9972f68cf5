// Grids and combinations of elements.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle meshgrid;

}  // namespace tenon
