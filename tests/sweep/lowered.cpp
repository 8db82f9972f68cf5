// The call as a program, lowered and executed, against the same call made eagerly: bit for bit.
#include <cmath>
#include <cstring>

#include "tenon/pipeline.h"
#include "tenon/rules/call.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/compare.h"
#include "tests/sweep/program_of.h"

namespace tenon::sweep {
namespace {

Outcome differs(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.sizes() != want.sizes())
    return text("expected ", want.meta(), ", got ", got.meta());
  Tensor a = contiguous_copy(got), b = contiguous_copy(want);
  size_t bytes = static_cast<size_t>(a.numel().as_int()) * item_size(a.dtype());
  if (bytes == 0 || std::memcmp(a.bytes(), b.bytes(), bytes) == 0) return std::nullopt;
  std::vector<double> x = elements(got), y = elements(want);
  for (size_t i = 0; i < x.size(); ++i)
    if (!(x[i] == y[i]) && !(std::isnan(x[i]) && std::isnan(y[i])))
      return text("element ", i, " is ", x[i], ", eagerly ", y[i]);
  return std::nullopt;  // NaNs of other bits, or zeros of another sign
}

double number(const CallArg& a) {
  if (auto* b = a.get<bool>()) return *b;
  if (auto* d = a.get<double>()) return *d;
  return static_cast<double>(a.get<SymInt>()->as_int());
}

// An op that draws numbers only for some of its options: two calls give two results.
bool draws(const Op& op, const Case& recorded) {
  CallArgs first = recorded.arguments(op), second = recorded.arguments(op);
  Results a = call_op(op, first), b = call_op(op, second);
  for (size_t i = 0; i < a.values.size(); ++i) {
    auto *x = a.values[i].get<Tensor>(), *y = b.values[i].get<Tensor>();
    if (x && *x && y && *y && differs(*x, *y)) return true;
  }
  return false;
}

}  // namespace

Outcome check_lowered(const Op& op, const Case& recorded) {
  ExportedProgram program = program_of(op, recorded);
  if (program.graph->outputs.empty() || draws(op, recorded)) return std::nullopt;
  std::vector<CallArg> inputs;
  for (const CallArg& a : recorded.arguments(op))
    for_each_tensor(a, [&](const Tensor& t) {
      if (t && !t.meta().wrapped_number) inputs.emplace_back(t);
    });
  RunResult got = run_program(program, inputs);
  CallArgs args = recorded.arguments(op);
  Results want = call_op(op, args);
  std::vector<CallArg> results;
  for (const CallArg& r : want.values) {
    if (r.is_number()) results.push_back(r);
    for_each_tensor(r, [&](const Tensor& t) {
      if (t) results.emplace_back(t);
    });
  }
  if (results.size() != got.outputs.size())
    return text("expected ", results.size(), " results, got ", got.outputs.size());
  for (size_t i = 0; i < results.size(); ++i) {
    auto *ours = got.outputs[i].get<Tensor>(), *theirs = results[i].get<Tensor>();
    if (theirs && !ours) return text("result ", i, ": expected a tensor, got ", describe(got.outputs[i]));
    if (!theirs && number(got.outputs[i]) != number(results[i]))
      return text("result ", i, ": expected ", describe(results[i]), ", got ", describe(got.outputs[i]));
    if (!theirs) continue;
    if (auto wrong = differs(*ours, *theirs)) return text("result ", i, ": ", *wrong);
  }
  return std::nullopt;
}

}  // namespace tenon::sweep
