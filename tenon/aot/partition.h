// A joint graph cut in two.
#pragma once
#include "tenon/aot/joint.h"

namespace tenon {

struct TrainingProgram {
  FunctionalProgram forward;   // outputs end with the values it saves
  FunctionalProgram backward;  // inputs: saved values, then cotangents
};

/// PyTorch's default partition: everything the forward computes stays there, what the backward needs of it is saved.
/// Where only the sizes of a value are needed, the value is not saved: sizes are expressions, and a symbol that
/// no tensor of the backward shows is handed over as a number. An input that the program
/// updates is never saved.
TrainingProgram split(const JointProgram& joint);

}  // namespace tenon
