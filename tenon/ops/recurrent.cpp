// Recurrent cells and layers, as what they mean step by step. The number of steps must be a constant.
#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/dropout.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/random.h"
#include "tenon/ops/splitting.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

/// The weights of one direction of one layer; what is absent is none.
struct Weights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};

struct State {
  Tensor h, c;  // c: lstm only
};

/// A step: what the input gives to all gates, the state before and the weights.
using Step = State (*)(const Tensor& from_input, const State& before, const Weights& w);

std::vector<Tensor> gates(const Tensor& x, int64_t count) {
  SymInt width = sym::floor_div(x.size(-1), count);
  return split_with_sizes(x, Sizes(static_cast<size_t>(count), width), -1).list();
}

State lstm_step(const Tensor& from_input, const State& before, const Weights& w) {
  std::vector<Tensor> g = gates(from_input + linear(before.h, w.hidden, w.hidden_bias), 4);
  Tensor c = sigmoid(g[1]) * before.c + sigmoid(g[0]) * tanh(g[2]);
  Tensor h = sigmoid(g[3]) * tanh(c);
  return {w.projection ? Tensor(linear(h, w.projection)) : h, c};
}

State gru_step(const Tensor& from_input, const State& before, const Weights& w) {
  std::vector<Tensor> x = gates(from_input, 3), h = gates(linear(before.h, w.hidden, w.hidden_bias), 3);
  Tensor reset = sigmoid(x[0] + h[0]), update = sigmoid(x[1] + h[1]), fresh = tanh(x[2] + reset * h[2]);
  return {(before.h - fresh) * update + fresh, none};
}

State tanh_step(const Tensor& from_input, const State& before, const Weights& w) {
  return {tanh(from_input + linear(before.h, w.hidden, w.hidden_bias)), none};
}

State relu_step(const Tensor& from_input, const State& before, const Weights& w) {
  return {relu(from_input + linear(before.h, w.hidden, w.hidden_bias)), none};
}

State cell(const Build& b, const State& before, Step step, int64_t gate_count) {
  Weights w = {b["w_ih"], b["w_hh"], b["b_ih"], b["b_hh"], none};
  b.require(w.input.rank() == 2 && w.input.size(0) == before.h.size(-1) * gate_count, "expected input weights of ",
            gate_count, " rows for each of the ", before.h.size(-1), " hidden units, got ", w.input.meta());
  return step(linear(b["input"], w.input, w.input_bias), before, w);
}

struct Layers {
  Tensor output;
  std::vector<Tensor> h, c;  // of each layer and direction
};

Layers layers(const Build& b, const Tensor& h0, const Tensor& c0, Step step) {
  Tensor x = b["input"];
  std::vector<Tensor> params = b.tensors("params");
  bool biases = b.flag("has_biases"), both = b.flag("bidirectional"), batch_first = b.flag("batch_first");
  int64_t count = b.constant("num_layers"), directions = both ? 2 : 1;
  b.require(count > 0 && static_cast<size_t>(count) <= params.size(), "num_layers: expected 1 to ", params.size(),
            ", the number of weights, got ", count);
  bool projected = c0 && !(h0.size(-1) == c0.size(-1));
  size_t each = 2 + (biases ? 2 : 0) + (projected ? 1 : 0);
  b.require(x.rank() == 3, "expected an input of 3 dimensions, got ", x.meta());
  b.require(h0.rank() == 3 && h0.size(0) == SymInt(count * directions),
            "expected a hidden state of 3 dimensions, the first ", count * directions, ", got ", h0.meta());
  b.require(params.size() == each * static_cast<size_t>(count * directions), "expected ",
            each * static_cast<size_t>(count * directions), " weights, got ", params.size());
  if (batch_first) x = transpose(x, 0, 1);
  b.require(x.size(0).is_int() && x.size(0).as_int() > 0, "expected a constant number of steps, at least one, got ",
            x.size(0), "; export the model with a fixed sequence length");
  int64_t steps = x.size(0).as_int();
  Layers out;
  for (int64_t layer = 0; layer < count; ++layer) {
    std::vector<Tensor> sides;
    for (int64_t side = 0; side < directions; ++side) {
      int64_t at = layer * directions + side;
      const Tensor* p = &params[static_cast<size_t>(at) * each];
      Weights w = {p[0], p[1], biases ? p[2] : none, biases ? p[3] : none, projected ? p[each - 1] : none};
      std::vector<Tensor> inputs = unbind(linear(x, w.input, w.input_bias), 0).list();
      State state = {select(h0, 0, at), c0 ? Tensor(select(c0, 0, at)) : none};
      std::vector<Tensor> results(static_cast<size_t>(steps));
      for (int64_t i = 0; i < steps; ++i) {
        auto t = static_cast<size_t>(side == 0 ? i : steps - 1 - i);
        state = step(inputs[t], state, w);
        results[t] = state.h;
      }
      out.h.push_back(state.h);
      if (c0) out.c.push_back(state.c);
      sides.push_back(stack(results, 0));
    }
    x = both ? Tensor(cat(sides, -1)) : sides[0];
    if (b.flag("train") && b.number("dropout") > 0 && layer + 1 < count) x = dropout(x, b.arg("dropout"), true);
  }
  out.output = batch_first ? Tensor(transpose(x, 0, 1)) : x;
  return out;
}

// The states before: hidden and cell.
State lstm_states(const Build& b) {
  std::vector<Tensor> hx = b.tensors("hx");
  b.require(hx.size() == 2, "expected two states, got ", hx.size());
  return {hx[0], hx[1]};
}

template <Step step, int64_t gate_count>
void add_cell(Registry& ops, const char* schema) {
  ops.add({
      .schema = schema,
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return one(cell(b, {b["hx"], none}, step, gate_count).h);
          },
  });
}

template <Step step>
void add_layers(Registry& ops, const char* schema) {
  ops.add({
      .schema = schema,
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Layers l = layers(b, b["hx"], none, step);
        return {{CallArg(l.output), CallArg(Tensor(stack(l.h, 0)))}};
      },
  });
}

}  // namespace

void register_recurrent(Registry& ops) {
  ops.add({
      .schema = "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) "
                "-> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        State s = cell(b, lstm_states(b), lstm_step, 4);
        return {{CallArg(s.h), CallArg(s.c)}};
      },
  });
  add_cell<gru_step, 3>(ops,
                        "gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
                        "b_hh=None) -> Tensor");
  add_cell<tanh_step, 1>(ops,
                         "rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
                         "b_hh=None) -> Tensor");
  add_cell<relu_step, 1>(ops,
                         "rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
                         "b_hh=None) -> Tensor");
  ops.add({
      .schema = "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
                "dropout, bool train, "
                "bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        State before = lstm_states(b);
        Layers l = layers(b, before.h, before.c, lstm_step);
        return {{CallArg(l.output), CallArg(Tensor(stack(l.h, 0))), CallArg(Tensor(stack(l.c, 0)))}};
      },
  });
  add_layers<gru_step>(
      ops,
      "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
      "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)");
  add_layers<tanh_step>(
      ops,
      "rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
      "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)");
  add_layers<relu_step>(
      ops,
      "rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool "
      "train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)");
}

}  // namespace tenon
