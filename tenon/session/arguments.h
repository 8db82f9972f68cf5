// The caller's flattened arguments against what a program was specialized to.
#pragma once
#include <string>
#include <vector>

#include "tenon/loop/program.h"
#include "tenon/tensor/dispatch.h"

namespace tenon {

/// Those that were specialized to a constant equal it. An Error names the argument.
void require_constants(const std::vector<std::string>& names, const std::vector<CallArg>& constants,
                       const std::vector<CallArg>& given);
/// A number, or a tensor of one element, as the number that an input of this type is.
CallArg as_number(const CallArg& given, loop::Input::Type type, const std::string& name);

}  // namespace tenon
