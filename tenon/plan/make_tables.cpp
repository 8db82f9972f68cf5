#include "tenon/plan/make_tables.h"

#include "tenon/plan/planner.h"

namespace tenon::plan {

std::string output_name(const OutputMeaning& meaning, const CallingConvention& convention) {
  if (auto* u = std::get_if<output::User>(&meaning)) return text("output_", u->leaf);
  if (auto* g = std::get_if<output::Gradient>(&meaning)) return "grad." + public_name(convention.inputs[g->input]);
  if (auto* v = std::get_if<output::Viewed>(&meaning)) return "input." + public_name(convention.inputs[v->input]);
  return to_text(meaning, convention);
}

Planner::Planner(const loop::Program& program, const CallingConvention& convention, const TablesOptions& options)
    : program_(program),
      convention_(convention),
      options_(options),
      out_{Tables("tenon " TENON_VERSION), {}, {}, {}, {}, {}, {}},
      symbols_(out_.tables, [this](const Expr& e) { return bind_long(e); }),
      ids_(program.buffers.size(), package::none),
      units_(make_units(program, program.steps)) {
  for (const Unit& unit : units_) made_.push_back(make(unit, program.steps, program.nodes));
  std::vector<std::string> calls;
  for (const Made& made : made_) calls.push_back(made.calls);
  batches_ = make_batches(program, units_, calls);
  std::vector<uint32_t> number(program.steps.size());
  for (uint32_t b = 0; b < batches_.size(); ++b)
    for (size_t u : batches_[b])
      for (size_t s : units_[u].steps) number[s] = b;
  lives_ = lifetimes(program, number);
  collect_told(program.steps);
}

Planned Planner::run() {
  declare_input_symbols();
  add_inputs();
  bind_input_sizes();
  for (size_t i = 0; i < program_.outputs.size(); ++i) add_output(i);
  bind_numbers();
  advance_random();
  on_state();
  for (now_ = 0; now_ < batches_.size(); ++now_) {
    std::vector<const Made*> batch;
    for (size_t u : batches_[now_]) batch.push_back(&made_[u]);
    execute(batch);
  }
  require_told();
  finish_outputs();
  store_random();
  drop_unused_state();
  t().weights_size(weights_);
  return std::move(out_);
}

void Planner::require_told() const {
  if (untold_.empty()) return;
  for (const loop::Buffer& b : program_.buffers)
    for (const Sizes* list : {&b.sizes, &b.strides})
      for (SymInt e : *list)
        for (SymInt s : sym::symbols_of(e))
          if (untold_.contains(s.name()))
            fail(b.name, ": its sizes are ", b.sizes, ", and no input and no data tell how much that is");
}

std::string to_text(const Planned& planned) {
  std::string out;
  for (const std::string& step : planned.steps) out += step + "\n";
  for (const auto& kernel : planned.kernels) out += "\n" + compile::to_text(*kernel);
  return out;
}

Planned make_tables(const loop::Program& program, const CallingConvention& convention, const TablesOptions& options) {
  return Planner(program, convention, options).run();
}

}  // namespace tenon::plan
