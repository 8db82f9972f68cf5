// Forward and backward in one graph.
#pragma once
#include <string>
#include <vector>

#include "tenon/aot/functionalize.h"

namespace tenon {

/// What to differentiate with respect to: parameters that require gradients, floating-point user inputs, both, or by
/// name (dotted name of a parameter or buffer, or input name).
struct Wrt {
  bool parameters = true;
  bool inputs = false;
  std::vector<std::string> names;  // where not empty, these alone
  bool operator==(const Wrt&) const = default;
};

/// "parameters", "inputs", "all" or NAME,NAME,...
Wrt parse_wrt(std::string_view text);

struct JointProgram {
  Graph graph;
  CallingConvention convention;  // inputs may end with a Tangent, outputs with Gradients
  size_t loss = 0;               // the user output that is differentiated
};

/// Gradients that the program computes already, as further results of the caller: (results, {"grad.NAME": gradient}).
FunctionalProgram gradients_as_outputs(FunctionalProgram functional);

/// Appends the gradients of user output `of`. Where it is no scalar its cotangent becomes a further input, unless only
/// the run tells its sizes: its cotangent is ones then, as a scalar's is. What the
/// output does not depend on gets no gradient. Parameters that are one tensor are one input, so their gradient is the
/// sum over all uses.
JointProgram make_joint(FunctionalProgram functional, size_t of, const Wrt& wrt);

}  // namespace tenon
