// Diagonals, as views and as new tensors.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle diagonal, diag_embed;

}  // namespace tenon
