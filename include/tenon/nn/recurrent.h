// Recurrent layers over whole sequences.
#pragma once
#include <tenon/nn/module.h>

namespace tenon::TENON_INLINE v0::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  // between layers, in training
  bool bidirectional = false;
  DType dtype = f32;
};

namespace detail {
class TENON_PUBLIC Recurrent : public Module {
 protected:
  Recurrent(std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options);
  std::vector<Tensor> weights() const;
  Tensor zero_state(const Tensor& input) const;
  std::int64_t hidden_;
  RecurrentOptions options_;

 private:
  std::vector<Parameter> weights_;
};
}  // namespace detail

/// Inputs are [time, batch, input], or [batch, time, input] with batch_first; states [layers * directions, batch,
/// hidden]. Parameters are named as in PyTorch: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ...
class TENON_PUBLIC LSTM : public detail::Recurrent {
 public:
  struct State {
    Tensor hidden, cell;
  };
  struct Result {
    Tensor output;
    State state;
  };
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : Recurrent(4, input_size, hidden_size, options) {}
  Result forward(const Tensor& input, const State& state = {}) const;  // a state that is none is zeros
  Result operator()(const Tensor& input, const State& state = {}) const { return forward(input, state); }
};

class TENON_PUBLIC GRU : public detail::Recurrent {
 public:
  struct Result {
    Tensor output, hidden;
  };
  GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {})
      : Recurrent(3, input_size, hidden_size, options) {}
  Result forward(const Tensor& input, const Tensor& hidden = {}) const;
  Result operator()(const Tensor& input, const Tensor& hidden = {}) const { return forward(input, hidden); }
};

}  // namespace tenon::TENON_INLINEv0::nn
