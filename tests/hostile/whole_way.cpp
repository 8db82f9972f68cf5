#include "tests/hostile/whole_way.h"

#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/interp/eager.h"
#include "tenon/interp/run_graph.h"
#include "tenon/passes/check_metas.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tenon/sym/evaluate.h"
#include "tests/hostile/further_ways.h"
#include "tests/hostile/sample_values.h"

namespace tenon {
namespace {

// Whose work is a number among its arguments: a degree, or how many gamma functions are multiplied.
bool is_polynomial(const Op& op) {
  for (const char* family : {"polynomial", "mvlgamma", "multigammaln"})
    if (op.name().find(family) != std::string::npos) return true;
  return false;
}
bool is_pool(const Op& op) { return op.name().find("pool") != std::string::npos; }

// A polynomial of degree 10^12, a pool whose windows are so large, a tensor repeated so often and a loop that does not
// end are programs that compute for hours, as they say. They are executed call by call first, and given up where a call
// or all of them are too many.
class Budgeted : public Dispatcher {
  CallResults run(const Op& op, CallArgs args) override {
    require(--calls_ > 0, "too many calls");
    if (is_polynomial(op))
      for (size_t i = 0; i < args.size(); ++i)
        if (op.schema.args[i].name == "n" || op.schema.args[i].name == "p") require_low(args[i]);
    if (is_pool(op))
      for (const CallArg& arg : args)
        if (auto* windows = arg.get<Sizes>())
          for (SymInt s : *windows) require(s.as_int() <= 1'000'000, "too wide a window");
    return interp::execute(op, std::move(args));
  }

  static void require_low(const CallArg& degree) {
    auto check = [](double d) { require(!(d > 1e5), "too high a degree"); };
    if (auto* real = degree.get<double>()) check(*real);
    if (auto* number = degree.get<SymInt>()) check(static_cast<double>(number->as_int()));
    auto* t = degree.get<Tensor>();
    if (!t || !*t) return;
    Tensor dense = contiguous_copy(*t);
    for (int64_t i = 0, count = dense.numel().as_int(); i < count; ++i) {
      TensorMeta one = make_meta(dense.dtype(), {});
      one.offset = i;
      check(scalar_value(dense.with_meta(one)));
    }
  }

  int calls_ = 5'000;
};

enum class Cost { plain, to_be_seen, endless };

// Of a loop whose graphs have no calls nobody sees that it does not end.
Cost cost_of(const GraphBody& graph) {
  Cost out = Cost::plain;
  for (const Node& node : graph.nodes) {
    if (is_polynomial(*node.op) || is_pool(*node.op) || node.op->traits.control == Control::repeat)
      out = Cost::to_be_seen;
    for (const Arg& arg : node.args) {
      auto* inside = arg.get<Subgraph>();
      if (!inside) continue;
      if (node.op->traits.control == Control::repeat && inside->body->nodes.empty()) return Cost::endless;
      Cost within = cost_of(*inside->body);
      if (within == Cost::endless) return within;
      if (within != Cost::plain) out = within;
    }
  }
  return out;
}

// Its elements, where the example sizes tell them.
double elements_of(const TensorMeta& meta, const sym::Bindings& hints) {
  double out = 1;
  for (SymInt size : meta.sizes)
    if (!reached([&] { out *= sym::evaluate_real(size, hints); })) return 0;
  return out;
}

bool computes_for_long(Walk& walk) {
  const GraphBody& graph = walk.normalized().body();
  sym::Bindings hints;
  for (const auto& [name, value] : walk.program().hints) hints.set(SymInt::symbol(name), value);
  for (const ValueInfo& value : graph.values)
    if (value.type == ValueType::tensor && elements_of(value.meta, hints) > 1e7) return true;
  Cost cost = cost_of(graph);
  if (cost != Cost::to_be_seen) return cost == Cost::endless;
  Budgeted budget;
  interp::run_graph(graph, sample_inputs(walk.program()), {.functional = false, .calls = &budget});
  return false;
}

// One number for a text.
uint64_t hashed(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash ^ hash >> 32;
}

}  // namespace

Journey go_the_whole_way(std::string_view json, Ways ways) {
  Journey journey;
  std::optional<ExportedProgram> program;
  journey.read = reached([&] {
    program.emplace(read_program(json, "program", registry()));
    provide_state(*program);
    verify(*program);
  });
  if (!journey.read) return journey;
  journey.checked = reached([&] { check_metas(program->graph.body(), program->hints); });
  if (!journey.checked) return journey;
  to_text(*program);
  std::string written = to_json(*program);
  reached([&] { to_json(read_program(written, "written", registry())); });
  if (!missing_operators(*program).empty()) return journey;
  Wrt wrt = parse_wrt("inputs");
  Walk walk(*program, {.of = 0, .wrt = wrt, .inputs = {}});
  reached([&] { show(walk, StageName::normalized); });
  journey.functional = reached([&] { show(walk, StageName::functional); });
  journey.joint = reached([&] { show(walk, StageName::joint); });
  reached([&] { show(walk, StageName::partition); });
  reached([&] { to_json(differentiate(*program, 0, wrt)); });
  journey.lowered = reached([&] { show(walk, StageName::loops); });
  std::vector<CallArg> arguments;
  bool runs = reached([&] {
    arguments = sample_arguments(*program);
    require(!computes_for_long(walk), "computes for long");
  });
  if (runs) journey.ran = reached([&] { run_program(*program, arguments); });
  constexpr uint64_t few = 4;  // inputs to a further way: it costs some three times what comes before
  uint64_t hash = hashed(json);
  const std::vector<FurtherWay>& further = further_ways();
  for (size_t i = 0; i < further.size(); ++i)
    if (ways == Ways::all || i == hash % (few * further.size()))
      reached([&] { further[i].go(*program, runs ? &arguments : nullptr, hash / (few * further.size())); });
  return journey;
}

}  // namespace tenon
