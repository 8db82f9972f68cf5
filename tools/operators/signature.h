// The C++ functions of the public interface, made from the schemas of operators.
#pragma once
#include <string>
#include <vector>

#include "tenon/graph/op.h"

namespace tenon {

/// One parameter of a C++ function, or an argument of the operator that the function leaves at its default.
struct Parameter {
  std::string name, type;
  std::string default_value;  // empty: none
  bool shown = true;
};

struct Signature {
  const Op* op = nullptr;
  std::string name;  // exp, exp_
  std::vector<Parameter> parameters;
  std::string result;   // the C++ type
  std::string getter;   // of detail::Call, which gives it
  bool method = false;  // the first argument is a tensor called self
  bool writes = false;  // and it is written: the result is that tensor

  std::vector<const Parameter*> shown() const;
};

/// Every function of the interface, in the order of their declarations: the overloads of a name stand together. What
/// PyTorch keeps to itself (names with an underscore before them, gradients of operators, out forms), and what has
/// arguments that C++ users have no values of, is left out. Where a call with the defaults of two overloads could mean
/// either, the later one loses those defaults.
std::vector<Signature> signatures();

}  // namespace tenon
