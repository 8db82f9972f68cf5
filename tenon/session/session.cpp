#include "tenon/session/session.h"

#include <mutex>
#include <unordered_map>

#include "tenon/interp/program_runner.h"
#include "tenon/ops/random.h"
#include "tenon/rules/call.h"
#include "tenon/session/arguments.h"

namespace tenon {
Session::Session(std::shared_ptr<const Executable> executable)
    : executable_(std::move(executable)), runner_(std::make_unique<interp::ProgramRunner>(executable_->program)) {
  for (size_t i = 0; i < executable_->program.inputs.size(); ++i)
    writes_state_ =
        writes_state_ || (executable_->program.inputs[i].written && is_state(executable_->convention.inputs[i]));
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

RunResult Session::run(State& state, const std::vector<CallArg>& inputs, const RunOptions& options) {
  const CallingConvention& c = executable_->convention;
  const loop::Program& program = executable_->program;
  size_t tangents = 0;
  for (const InputMeaning& m : c.inputs) tangents += std::holds_alternative<input::Tangent>(m);
  require(inputs.size() == c.user_inputs.size() + tangents, "expected ", c.user_inputs.size() + tangents, " inputs (",
          join(c.user_names, ", "), "), got ", inputs.size());
  require_constants(c.user_names, c.user_inputs, inputs);

  std::shared_lock reading(state.mutex(), std::defer_lock);
  std::unique_lock writing(state.mutex(), std::defer_lock);
  if (writes_state_) writing.lock();
  else reading.lock();

  std::vector<CallArg> bound;
  bound.reserve(c.inputs.size());
  size_t tangent = c.user_inputs.size();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const InputMeaning& m = c.inputs[i];
    const loop::Input& input = program.inputs[i];
    if (is_state(m)) {
      if (input.written) state.own(input.name);
      const Tensor* t = state.find(input.name);
      require(t != nullptr, "the state has no ", input.name, "; it belongs to another program");
      bound.emplace_back(*t);
    } else if (auto* u = std::get_if<input::User>(&m)) {
      bool tensor = input.type == loop::Input::Type::tensor;
      require(!tensor || options.absent_are_ones || !inputs[u->leaf].is_none(), "input ", u->name,
              ": expected a tensor, ", input.meta);
      bound.push_back(tensor ? inputs[u->leaf] : as_number(inputs[u->leaf], input.type, u->name));
    } else if (std::holds_alternative<input::Tangent>(m)) {
      bound.push_back(inputs[tangent++]);
    } else if (std::holds_alternative<input::RngState>(m)) {
      bound.emplace_back(random_state(static_cast<int64_t>(state.seed()), state.draw()));
    } else {
      expect(false, "an input that only other stages bind: ", to_text(m));
    }
  }
  std::shared_ptr<interp::Derived> derived = program.on_state.empty() ? nullptr : state.derived_by(executable_);
  std::vector<CallArg> results = runner_->run(
      bound, {.absent_are_ones = options.absent_are_ones, .derived = derived.get(), .state_version = state.version()});
  if (writes_state_) {
    bool current =
        derived && derived->version == state.version();  // what is derived does not depend on what is written
    state.changed();
    if (current) derived->version = state.version();
  }

  RunResult out;
  std::unordered_map<size_t, size_t> written;  // inputs: their places in out.inputs
  out.outputs = c.user_outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputMeaning& m = c.outputs[i];
    if (auto* u = std::get_if<output::User>(&m)) out.outputs[u->leaf] = results[i];
    else if (auto* updated = std::get_if<output::Updated>(&m)) {
      const InputMeaning& of = c.inputs[updated->input];
      Tensor value = results[i].as<Tensor>();
      if (auto* b = std::get_if<input::Buffer>(&of))
        for (const std::string& name : b->names) out.buffers.emplace_back(name, value);
      else if (auto* p = std::get_if<input::Parameter>(&of))
        for (const std::string& name : p->names) out.parameters.emplace_back(name, value);
      else if (std::holds_alternative<input::User>(of)) {
        written.emplace(updated->input, out.inputs.size());
        out.inputs.emplace_back(public_name(of), value);
      }
    } else if (auto* viewed = std::get_if<output::Viewed>(&m)) {
      const Tensor& now = *results[i].get<Tensor>();
      if (auto place = written.find(viewed->input); place != written.end()) out.inputs[place->second].second = now;
      else out.inputs.emplace_back(public_name(c.inputs[viewed->input]), now);
    } else if (auto* g = std::get_if<output::Gradient>(&m)) {
      const InputMeaning& of = c.inputs[g->input];
      Tensor value = results[i].as<Tensor>();
      if (auto* p = std::get_if<input::Parameter>(&of))
        for (const std::string& name : p->names) out.gradients.emplace_back(name, value);
      else if (auto* b = std::get_if<input::Buffer>(&of))
        for (const std::string& name : b->names) out.gradients.emplace_back(name, value);
      else out.gradients.emplace_back(public_name(of), value);
    }
  }
  return out;
}

}  // namespace tenon
