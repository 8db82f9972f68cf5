// The graph of a program's JSON as a Graph.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tenon/graph/graph.h"
#include "tenon/io/json.h"

namespace tenon::serde {

/// What the readers of one file share.
struct ReadContext {
  const OpTable& ops;
  Budget& budget;                                       // the archive's, or one of its own for JSON alone
  sym::ShapeEnv shapes;                                 // given to every graph, subgraphs too
  std::map<std::string, int64_t> hints;                 // values the symbols had for the example inputs
  std::unordered_map<std::string, SymInt> expressions;  // text read before: files repeat few expressions often
};

/// Sizes, strides and numbers: {"as_int": 3} or {"as_expr": {"expr_str": ..., "hint": ...}}, and so for floats and
/// booleans.
SymInt read_symbolic(Json value, ReadContext& context);
TensorMeta read_tensor_meta(Json meta, ReadContext& context);
/// A constant argument, as specialized inputs and outputs have; an error for anything that refers to a value.
Arg read_constant(Json argument);

/// A name that becomes part of printed code and of other names: of limited length, and nothing in it but what can be
/// shown.
std::string_view read_name(Json name);

/// Reads a graph and checks its names: each value defined once, before its use, with exactly one entry in the tables.
Graph read_graph(Json graph, ReadContext& context);
/// The value that an argument of the signature or of a module call refers to, or a constant. `names` are the graph's
/// values.
using Names = std::unordered_map<std::string_view, Value>;
Names names_of(const GraphBody& graph);
Arg read_reference(Json argument, const Names& names);

}  // namespace tenon::serde
