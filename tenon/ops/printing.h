// What programs print while they run.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle printed_call;  // as the exporter has it: a format of Python, arguments by number and by name
extern Handle print_values;  // a format whose fields are the tensors, one after another

}  // namespace tenon
