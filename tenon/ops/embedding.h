// Rows of a table by index.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle embedding;

}  // namespace tenon
