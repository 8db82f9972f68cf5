// A program as the modules it was exported from: each with what it takes, what it gives, and the steps of its forward.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tenon/export/exported_program.h"

namespace tenon {

struct ModuleCall;

/// A step of a module's forward: nodes of its own, as a program over its values, or the call of a module within.
struct ModuleStep {
  std::unique_ptr<ModuleCall> call;  // where it is one
  ExportedProgram own;               // else: state is bound by name, values are its user inputs and outputs
  Args takes;                        // values of the whole graph; own: in the order of its user inputs
  Args gives;
};
/// One call of a module.
struct ModuleCall {
  std::string path, class_name;
  int call = 0;       // which one of the module's
  bool kept = false;  // its signature was preserved at export: takes and gives are the arguments and results of it
  Args takes, gives;  // values of the whole graph, or constants of a preserved signature; state is not among them
  std::vector<ModuleStep> steps;
  std::vector<std::string> state;  // dotted names of parameters, buffers and constants that it uses, within too
};

/// The program must not write (use the aten dialect). Nodes that follow each other and stand in the same call of a
/// module are that call; what says nothing of modules belongs to the program itself.
ModuleCall split_modules(const ExportedProgram& program);

}  // namespace tenon
