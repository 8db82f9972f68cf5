// Dropout of elements and of channels.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle native_dropout, dropout;

}  // namespace tenon
