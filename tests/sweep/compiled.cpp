// The call as a program, compiled: the interpreter of kernels and machine code for every target of this machine give
// the same bits, and the values of the interpreter of programs.
#include <cmath>
#include <cstring>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/compile/emit_native.h"
#include "tenon/pipeline.h"
#include "tenon/rules/call.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/compare.h"
#include "tests/sweep/program_of.h"

namespace tenon::sweep {
namespace {

using artifact::CompiledProgram;
using artifact::CompiledSession;

std::vector<CallArg> results_of(const RunResult& r) {
  std::vector<CallArg> out = r.outputs;
  for (const auto* list : {&r.buffers, &r.parameters, &r.inputs, &r.gradients})
    for (const auto& [name, tensor] : *list) out.emplace_back(tensor);
  return out;
}

/// Bit for bit; any NaN is equal to any NaN.
Outcome bits_differ(const Tensor& got, const Tensor& want) {
  if (auto wrong = meta_differs(got.meta(), want.meta())) return wrong;
  Tensor a = contiguous_copy(got), b = contiguous_copy(want);
  size_t item = item_size(a.dtype()), count = static_cast<size_t>(a.numel().as_int());
  std::vector<double> x, y;
  for (size_t i = 0; i < count; ++i) {
    if (std::memcmp(a.bytes() + i * item, b.bytes() + i * item, item) == 0) continue;
    if (x.empty()) x = elements(a), y = elements(b);
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    return text("element ", i, " is ", x[i], ", expected ", y[i]);
  }
  return std::nullopt;
}

Outcome differ(const std::vector<CallArg>& got, const std::vector<CallArg>& want, bool bits) {
  if (got.size() != want.size()) return text("expected ", want.size(), " results, got ", got.size());
  for (size_t i = 0; i < got.size(); ++i) {
    auto *a = got[i].get<Tensor>(), *b = want[i].get<Tensor>();
    if ((a && *a) != (b && *b)) return text("result ", i, ": expected ", describe(want[i]), ", got ", describe(got[i]));
    Outcome wrong;
    if (a && *a) {
      wrong = bits ? bits_differ(*a, *b) : meta_differs(a->meta(), b->meta());
      if (!wrong && !bits) wrong = values_differ(*a, *b, std::nullopt);
    } else if (!(got[i] == want[i])) {
      wrong = text("expected ", describe(want[i]), ", got ", describe(got[i]));
    }
    if (wrong) return text("result ", i, ": ", *wrong);
  }
  return std::nullopt;
}

std::vector<CallArg> run(const std::shared_ptr<const CompiledProgram>& program, const std::vector<CallArg>& inputs) {
  artifact::CompiledState state(program);
  return results_of(CompiledSession(program).run(state, inputs));
}

std::vector<CallArg> copies(const std::vector<CallArg>& inputs) {
  std::vector<CallArg> out;
  for (const CallArg& a : inputs) {
    auto* t = a.get<Tensor>();
    if (!t || !*t) {
      out.push_back(a);
      continue;
    }
    auto storage = std::make_shared<Storage>(t->storage()->size());
    if (storage->size() > 0) std::memcpy(storage->mutable_data(), t->storage()->data(), storage->size());
    out.emplace_back(Tensor(t->meta(), storage));
  }
  return out;
}

}  // namespace

Outcome check_compiled(const Op& op, const Case& recorded) {
  ExportedProgram program = program_of(op, recorded);
  if (program.graph->outputs.empty()) return std::nullopt;
  std::vector<CallArg> inputs;
  for (const CallArg& a : recorded.arguments(op))
    for_each_tensor(a, [&](const Tensor& t) {
      if (t && !t.meta().wrapped_number) inputs.emplace_back(t);
    });
  Walk walk(program, {.inputs = inputs});
  std::shared_ptr<const Executable> executable = walk.executable();
  if (!executable->convention.sharing.empty()) return std::nullopt;  // arguments that share memory are refused
  std::unique_ptr<State> state = state_of(program);
  std::vector<CallArg> lowered, interpreted;
  {
    auto own = copies(inputs);
    lowered = results_of(Session(executable).run(*state, own));
  }
  {
    auto own = copies(inputs);
    interpreted = run(artifact::interpret_compiled(*executable, *state), own);
  }
  if (auto wrong = differ(interpreted, lowered, false)) return text("the interpreter of kernels: ", *wrong);
  for (artifact::Target target : {artifact::Target::x86_64_v3, artifact::Target::x86_64_v4}) {
    auto isa = target == artifact::Target::x86_64_v3 ? compile::Isa::v3 : compile::Isa::v4;
    if (!compile::machine_has(isa)) continue;
    auto compiled = CompiledProgram::open(artifact::compile_program(*executable, *state, {.targets = {target}}), {});
    auto own = copies(inputs);
    if (auto wrong = differ(run(compiled, own), interpreted, true))
      return text("machine code for ", name(target), ": ", *wrong);
  }
  return std::nullopt;
}

}  // namespace tenon::sweep
