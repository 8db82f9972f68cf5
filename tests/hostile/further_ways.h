// Where a program can go beyond its loops: dialects, modes, gradients of many kinds, training, compiling, modules.
#pragma once
#include <string_view>
#include <vector>

#include "tenon/export/exported_program.h"
#include "tenon/rules/op_def.h"

namespace tenon {

struct FurtherWay {
  std::string_view name;
  /// `arguments`: what to run with; null where running would take long.
  void (*go)(const ExportedProgram& program, const std::vector<CallArg>* arguments, uint64_t choice);
};
const std::vector<FurtherWay>& further_ways();

/// Whether f ends without an Error.
template <class F>
bool reached(F&& f) {
  try {
    f();
    return true;
  } catch (const Error&) { return false; }
}

}  // namespace tenon
