#include "tenon/autograd/reverse.h"
#include "tenon/interp/run_graph.h"
#include "tenon/ops/conversion.h"
#include "tenon/rules/op_def.h"
#include "tenon/trace/trace.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/compare.h"

namespace tenon::sweep {
namespace {

/// A graph of one call. Its inputs are the tensors of the call, in order.
struct OneCall {
  Graph graph;
  std::vector<Tensor> tensors;     // the real ones
  std::vector<std::string> names;  // self, tensors[1]
  OneCall(const Op& op, std::span<const CallArg> args) {
    Tracer tracer(graph.body());
    CallArgs traced;
    for (size_t i = 0; i < op.schema.args.size(); ++i) {
      bool list = args[i].is<std::vector<Tensor>>();
      size_t item = 0;
      traced.push_back(map_tensors<Tensor>(args[i], [&](const Tensor& t) -> Tensor {
        size_t k = item++;
        if (!t || t.meta().wrapped_number) return t;
        tensors.push_back(t);
        names.push_back(list ? text(op.schema.args[i].name, "[", k, "]") : op.schema.args[i].name);
        return tracer.tensor(add_input(graph.body(), "x", t.meta()));
      }));
    }
    tracer.call(op, std::move(traced));
    for (const Arg& result : graph->nodes.back().results) {
      if (result.is_none()) graph->outputs.emplace_back();
      for_each_tensor(result, [&](const Value& v) { graph->outputs.emplace_back(v); });
    }
  }
};

bool all_zero(const Tensor& t) {
  for (double x : elements(t))
    if (x != 0) return false;
  return true;
}

}  // namespace

bool has_gradient_rule(const Op& op) {
  const OpDef* def = op.functional ? op.functional->def : op.def;
  return def && (def->vjp || def->view || def->decompose || def->for_grad);
}

Outcome check_gradients(const Op& op, const Case& recorded) {
  const Op& computes = op.functional ? *op.functional : op;
  ExpectedGradients want = *recorded.gradients();
  CallArgs args = recorded.arguments(op);
  args.resize(computes.schema.args.size());
  OneCall call(computes, args);
  // PyTorch leaves the history of a float tensor that a comparison overwrites as it was; nothing depends on it any
  // more.
  if (op.functional && !is_differentiable(call.graph->info(*call.graph->outputs[0].get<Value>()).meta.dtype))
    return std::nullopt;

  std::vector<bool> differentiable;
  for (const std::string& name : call.names) differentiable.push_back(want.wrt.contains(name));
  Graph graph = prepare_for_gradients(call.graph.body(), differentiable);
  std::vector<Value> outputs, cotangents, inputs;
  std::vector<CallArg> values(call.tensors.begin(), call.tensors.end());
  if (graph->outputs.size() != want.cotangents.size())
    return text("expected ", want.cotangents.size(), " results, got ", graph->outputs.size());
  for (size_t i = 0; i < want.cotangents.size(); ++i) {
    if (!want.cotangents[i]) continue;
    Value output = *graph->outputs[i].get<Value>();
    Tensor cotangent = to(want.cotangents[i], graph->info(output).meta.dtype);
    outputs.push_back(output);
    cotangents.push_back(add_input(graph.body(), "cotangent", cotangent.meta()));
    values.push_back(cotangent);
  }
  for (size_t i = 0; i < call.names.size(); ++i)
    if (differentiable[i]) inputs.push_back(*graph->inputs[i].get<Value>());
  std::vector<Value> found = append_backward(graph.body(), outputs, cotangents, inputs);
  graph->outputs.clear();
  for (Value v : found)
    if (v) graph->outputs.emplace_back(v);
  graph = remove_dead_code(std::move(graph));
  verify(graph.body());
  std::vector<CallArg> results = interp::run_graph(graph.body(), values);

  size_t next = 0, which = 0;
  for (size_t i = 0; i < call.names.size(); ++i) {
    if (!differentiable[i]) continue;
    Tensor got = found[which++] ? *results[next++].get<Tensor>() : Tensor();
    const std::optional<Expected>& expected = want.wrt[call.names[i]];
    if (!expected) {
      if (got && !all_zero(got)) return text("of ", call.names[i], ": expected none, got one that is not zero");
      continue;
    }
    if (!got) {
      if (all_zero(expected->exact)) continue;
      return text("of ", call.names[i], ": expected one, got none");
    }
    const TensorMeta& meta = call.tensors[i].meta();
    if (got.dtype() != meta.dtype || got.sizes() != meta.sizes)
      return text("of ", call.names[i], ": expected ", make_meta(meta.dtype, meta.sizes), ", got ", got.meta());
    if (auto wrong = values_differ(got, expected->exact, expected->error))
      return text("of ", call.names[i], ": ", *wrong);
  }
  return std::nullopt;
}

}  // namespace tenon::sweep
