// Models written in C++ as programs that PyTorch opens.
#pragma once
#include <tenon/export.h>
#include <tenon/nn/module.h>

namespace tenon::TENON_INLINE v0::nn {

/// The program of model(inputs...), with the model's parameters and buffers as its state, in the mode it is in.
template <class M>
ExportedProgram export_program(const M& model, const std::vector<Tensor>& inputs,
                               std::vector<std::string> input_names = {}) {
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
    throw Error(ErrorKind::call, "export_program: the model cannot be called with " + std::to_string(x.size()) +
                                     " tensors; give a function to tenon::export_program");
  };
  return tenon::export_program(forward, inputs,
                               {.input_names = std::move(input_names),
                                .parameters = model.named_parameters(),
                                .buffers = model.named_buffers()});
}

}  // namespace tenon::TENON_INLINEv0::nn
