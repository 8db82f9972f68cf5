#include <tenon/nn/init.h>
#include <tenon/nn/recurrent.h>

#include <cmath>

namespace tenon::TENON_INLINE v0::nn {

detail::Recurrent::Recurrent(std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size,
                             const RecurrentOptions& options)
    : hidden_(hidden_size), options_(options) {
  if (input_size < 1 || hidden_size < 1 || options.num_layers < 1)
    throw Error(ErrorKind::call, "a recurrent layer has an input size, a hidden size and layers of at least 1, got " +
                                     std::to_string(input_size) + ", " + std::to_string(hidden_size) + " and " +
                                     std::to_string(options.num_layers));
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw Error(ErrorKind::call,
                "a recurrent layer: expected a probability as dropout, got " + std::to_string(options.dropout));
  std::int64_t directions = options.bidirectional ? 2 : 1;
  double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer)
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      std::int64_t in = layer == 0 ? input_size : hidden_size * directions;
      std::string suffix = "_l" + std::to_string(layer) + (direction ? "_reverse" : "");
      auto make = [&](const std::string& name, IntList sizes) {
        weights_.push_back(add_parameter(name + suffix, empty(sizes, options.dtype)));
        init::uniform_(weights_.back(), -bound, bound);
      };
      make("weight_ih", {gates * hidden_size, in});
      make("weight_hh", {gates * hidden_size, hidden_size});
      if (!options.bias) continue;
      make("bias_ih", {gates * hidden_size});
      make("bias_hh", {gates * hidden_size});
    }
}

std::vector<Tensor> detail::Recurrent::weights() const { return {weights_.begin(), weights_.end()}; }

Tensor detail::Recurrent::zero_state(const Tensor& input) const {
  if (input.dim() != 3)
    throw Error(ErrorKind::call, "a recurrent layer: expected an input of three dimensions, got " +
                                     std::to_string(input.dim()) + "; unsqueeze() the batch");
  std::int64_t layers = options_.num_layers * (options_.bidirectional ? 2 : 1);
  return zeros({layers, input.size(options_.batch_first ? 0 : 1), hidden_}, input.dtype());
}

LSTM::Result LSTM::forward(const Tensor& input, const State& state) const {
  Scope scope(*this, input, state.hidden, state.cell);
  if (state.hidden.defined() != state.cell.defined())
    throw Error(ErrorKind::call, "LSTM: expected a state with hidden and cell, or none, got one of the two");
  Tensor zero = state.hidden ? Tensor() : zero_state(input);
  auto [output, hidden, cell] =
      lstm(input, {state.hidden ? state.hidden : zero, state.cell ? state.cell : zero}, weights(), options_.bias,
           options_.num_layers, options_.dropout, is_training(), options_.bidirectional, options_.batch_first);
  scope.gives({output, hidden, cell});
  return {output, {hidden, cell}};
}

GRU::Result GRU::forward(const Tensor& input, const Tensor& hidden) const {
  Scope scope(*this, input, hidden);
  auto [output, last] = gru(input, hidden ? hidden : zero_state(input), weights(), options_.bias, options_.num_layers,
                            options_.dropout, is_training(), options_.bidirectional, options_.batch_first);
  scope.gives({output, last});
  return {output, last};
}

}  // namespace tenon::TENON_INLINEv0::nn
