#include "tenon/dialect/verify_dialect.h"

#include <algorithm>

#include "tenon/dialect/operators.h"

namespace tenon {
namespace {

void verify_graph(const GraphBody& graph, Dialect dialect, const std::vector<std::string>& keep) {
  for (const Node& node : graph.nodes) {
    for (const Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>()) verify_graph(*within->body, dialect, keep);
    const Op& op = *node.op;
    std::string what = text("node ", quoted(node.origin.name), " calls ", op.name());
    bool kept = std::find(keep.begin(), keep.end(), op.name()) != keep.end();
    require(!op.writes(), what, ", which writes to its arguments: the ", dialect == Dialect::core ? "core" : "aten",
            " dialect has values alone; bring the program there with run_decompositions");
    dialect::Facts facts = dialect::facts_of(op.name());
    bool aliases = facts.composite && !facts.preservable;
    require(kept || !aliases, what, ", a composite whose result may share memory with its argument: the ",
            dialect == Dialect::core ? "core" : "aten", " dialect has none of these");
    if (dialect != Dialect::core || kept) continue;
    bool outside = op.kind == OpKind::symbolic || op.kind == OpKind::structural || op.traits.asserts ||
                   op.traits.effects || op.traits.measures != Measure::none;
    require(outside || facts.core, what, ", which is no core ATen operator; name it in keep where it is meant to stay");
  }
}

}  // namespace

void verify_dialect(const ExportedProgram& program, Dialect dialect, const std::vector<std::string>& keep) {
  if (dialect == Dialect::training) return verify(program);
  verify_graph(program.graph.body(), dialect, keep);
}

}  // namespace tenon
