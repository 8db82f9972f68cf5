// Programs from C++ functions: what torch.export does, for code over tenon::Tensor.
#pragma once
#include <tenon/program.h>
#include <tenon/tensor.h>

#include <map>
#include <utility>

namespace tenon::TENON_INLINE v0 {

struct ExportOptions {
  std::vector<std::string> input_names = {};                    // of forward; args_0, ... where there are none
  std::vector<std::pair<std::string, Tensor>> parameters = {};  // tensors that forward uses, under their dotted names
  std::vector<std::pair<std::string, Tensor>> buffers = {};
};

/// Calls forward once with tensors that have the inputs' dtypes and sizes and no elements, and gives the program of the
/// operators it called: views, writes and grad-mode changes as they happened, sizes as they are. Parameters and buffers
/// are its state; other tensors that it meets become its constants. What forward decides by C++ values is decided; a
/// look at elements is an Error. Several results become a tuple.
TENON_PUBLIC ExportedProgram
export_program(const std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>& forward,
               const std::vector<Tensor>& inputs, const ExportOptions& options = {});

}  // namespace tenon::TENON_INLINEv0
