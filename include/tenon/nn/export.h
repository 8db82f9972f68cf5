// Models written in C++ as programs that PyTorch opens.
#pragma once
#include <tenon/export.h>
#include <tenon/nn/module.h>

namespace tenon::TENON_INLINE v0::nn {

struct ModelExportOptions {
  std::vector<std::string> input_names = {};  // args_0, ... where there are none
  DynamicShapes dynamic_shapes = {};
  std::vector<std::string> preserve_module_call_signature = {};  // dotted names of parts: see tenon::ExportOptions
};

/// The program of model(inputs...), with the model's parameters and buffers as its state, in the mode it is in, as
/// tenon::export_program makes it. Calls within a Scope carry the names of their modules.
template <class M>
ExportedProgram export_program(const M& model, const std::vector<Tensor>& inputs,
                               const ModelExportOptions& options = {}) {
  auto forward = [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
    if constexpr (requires { model(x[0]); }) {
      if (x.size() == 1) return {model(x[0])};
    }
    if constexpr (requires { model(x[0], x[1]); }) {
      if (x.size() == 2) return {model(x[0], x[1])};
    }
    if constexpr (requires { model(x[0], x[1], x[2]); }) {
      if (x.size() == 3) return {model(x[0], x[1], x[2])};
    }
    if constexpr (requires { model(x[0], x[1], x[2], x[3]); }) {
      if (x.size() == 4) return {model(x[0], x[1], x[2], x[3])};
    }
    throw Error(ErrorKind::call, "export_program: the model cannot be called with " + std::to_string(x.size()) +
                                     " tensors; give a function to tenon::export_program");
  };
  return export_module(model, typeid(M).name(), forward, inputs,
                       {.input_names = options.input_names,
                        .dynamic_shapes = options.dynamic_shapes,
                        .preserve_module_call_signature = options.preserve_module_call_signature});
}

}  // namespace tenon::TENON_INLINEv0::nn
