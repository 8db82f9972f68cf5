// Evenly spaced numbers.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle arange, linspace, one_hot;

}  // namespace tenon
