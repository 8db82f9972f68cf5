// Programs written as text, for tests: a graph as parse_graph reads it, and the signature that follows from its names.
#pragma once
#include <initializer_list>

#include "tenon/export/exported_program.h"

namespace tenon {

/// Inputs p_NAME are parameters, b_NAME buffers, as PyTorch names them; the others are the user's.
ExportedProgram program_of(Graph graph);
ExportedProgram program_of(std::string_view graph);

Tensor floats(Sizes sizes, std::initializer_list<float> values);
Tensor counting(Sizes sizes);  // 0, 1, 2, ...
Tensor integers(Sizes sizes, std::initializer_list<int64_t> values);
std::vector<float> values_of(const Tensor& t);

/// Whether a recorded file holds an operator of which PyTorch has no gradient either: factors of LDL, products with
/// packed weights of 4 bits.
bool has_no_gradient(std::string_view path);

}  // namespace tenon
