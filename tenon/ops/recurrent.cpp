// Recurrent cells and layers, as what they mean step by step. The number of steps must be a constant.
#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/dropout.h"
#include "tenon/ops/matmul.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/view.h"

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
  return Results(split_with_sizes(x, Sizes(static_cast<size_t>(count), width), -1)).list();
}

State lstm_step(const Tensor& from_input, const State& before, const Weights& w) {
  std::vector<Tensor> g = gates(from_input + linear(before.h, w.hidden, w.hidden_bias), 4);
  Tensor c = Tensor(sigmoid(g[1])) * before.c + Tensor(sigmoid(g[0])) * Tensor(tanh(g[2]));
  Tensor h = Tensor(sigmoid(g[3])) * Tensor(tanh(c));
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

/// One cell: (input, hx, w_ih, w_hh, b_ih, b_hh).
State cell(Build& b, const State& before, Step step, int64_t gate_count) {
  Weights w = {b[2], b[3], b[4], b[5], none};
  b.require(w.input.rank() == 2 && w.input.size(0) == before.h.size(-1) * gate_count, "expected input weights of ",
            gate_count, " rows for each of the ", before.h.size(-1), " hidden units, got ", w.input.meta());
  return step(linear(b[0], w.input, w.input_bias), before, w);
}

struct Layers {
  Tensor output;
  std::vector<Tensor> h, c;  // of each layer and direction
};

/// All layers of (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first).
Layers layers(Build& b, const Tensor& h0, const Tensor& c0, Step step) {
  std::vector<Tensor> params = b.tensors(2);
  bool biases = b.flag(3), both = b.flag(7), batch_first = b.flag(8);
  int64_t count = b.constant(4), directions = both ? 2 : 1;
  b.require(count > 0 && static_cast<size_t>(count) <= params.size(), "num_layers: expected 1 to ", params.size(),
            ", the number of weights, got ", count);
  bool projected = c0 && !(h0.size(-1) == c0.size(-1));
  size_t each = 2 + (biases ? 2 : 0) + (projected ? 1 : 0);
  b.require(b[0].rank() == 3, "expected an input of 3 dimensions, got ", b[0].meta());
  b.require(h0.rank() == 3 && h0.size(0) == SymInt(count * directions),
            "expected a hidden state of 3 dimensions, the first ", count * directions, ", got ", h0.meta());
  b.require(params.size() == each * static_cast<size_t>(count * directions), "expected ",
            each * static_cast<size_t>(count * directions), " weights, got ", params.size());
  Tensor x = batch_first ? Tensor(transpose(b[0], 0, 1)) : b[0];
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
      std::vector<Tensor> inputs = Results(unbind(linear(x, w.input, w.input_bias), 0)).list();
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
    if (b.flag(6) && b.number(5) > 0 && layer + 1 < count) x = dropout(x, b.number(5), true);
  }
  out.output = batch_first ? Tensor(transpose(x, 0, 1)) : x;
  return out;
}

Results plain_layers(Build& b, Step step) {
  Layers l = layers(b, b[1], none, step);
  return {{CallArg(l.output), CallArg(Tensor(stack(l.h, 0)))}};
}

}  // namespace

void register_recurrent(Registry& ops) {
  ops.add({
      .schema = "lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) "
                "-> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> hx = b.tensors("hx");
        b.require(hx.size() == 2, "expected two states, got ", hx.size());
        State s = cell(b, {hx[0], hx[1]}, lstm_step, 4);
        return {{CallArg(s.h), CallArg(s.c)}};
      },
  });
#define TENON_CELL(name, step, count)                                                                             \
  ops.add({                                                                                                       \
      .schema = name                                                                                              \
      "_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> Tensor", \
      .kind = OpKind::composite,                                                                                    \
      .decompose = [](Build& b) -> Results {                                                                      \
        return one(cell(b, {b[1], none}, step, count).h);                                                         \
      },                                                                                                          \
  })
  TENON_CELL("gru", gru_step, 3);
  TENON_CELL("rnn_tanh", tanh_step, 1);
  TENON_CELL("rnn_relu", relu_step, 1);
#undef TENON_CELL
  ops.add({
      .schema = "lstm.input(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
                "dropout, bool train, "
                "bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> hx = b.tensors("hx");
        b.require(hx.size() == 2, "expected two states, got ", hx.size());
        Layers l = layers(b, hx[0], hx[1], lstm_step);
        return {{CallArg(l.output), CallArg(Tensor(stack(l.h, 0))), CallArg(Tensor(stack(l.c, 0)))}};
      },
  });
#define TENON_LAYERS(name, step)                                                                                      \
  ops.add({                                                                                                           \
      .schema = name                                                                                                  \
      ".input(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, " \
      "bool bidirectional, bool batch_first) -> (Tensor, Tensor)",                                                    \
      .kind = OpKind::composite,                                                                                        \
      .decompose = [](Build& b) { return plain_layers(b, step); },                                                    \
  })
  TENON_LAYERS("gru", gru_step);
  TENON_LAYERS("rnn_tanh", tanh_step);
  TENON_LAYERS("rnn_relu", relu_step);
#undef TENON_LAYERS
}

}  // namespace tenon
