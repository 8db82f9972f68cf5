// The modules a program was exported from, as far as it tells: from the paths and classes that its nodes carry and from
// the names of its state.
#pragma once
#include <string>
#include <vector>

#include "tenon/export/exported_program.h"

namespace tenon {

/// One entry of a node's nn_module_stack.
struct ModuleFrame {
  std::string path;        // features.0; the program itself is ""
  std::string class_name;  // torch.nn.modules.conv.Conv2d
  int call = 0;            // which call of a module that is called more than once
};
/// From the outermost module to the one whose forward the node stands in. Empty where the node does not say.
std::vector<ModuleFrame> module_stack(const Node& node);

struct ModuleNode {
  std::string name, path, class_name;   // name: the last part of the path
  size_t nodes = 0;                     // operators in it and in the modules within
  int64_t parameters = 0, buffers = 0;  // elements, likewise; a tensor with several names counts once
  int64_t bytes = 0;
  size_t calls = 0;
  std::vector<ModuleNode> children;  // in order of names in the state, then of use
};
ModuleNode module_tree(const ExportedProgram& program);

/// A line for each module: name, class, operators, parameters, bytes.
std::string to_text(const ModuleNode& tree);

}  // namespace tenon
