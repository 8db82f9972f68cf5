// A Graph as JSON, in the words of PyTorch's schema.
#pragma once
#include <map>
#include <string>

#include "tenon/graph/graph.h"
#include "tenon/io/json.h"

namespace tenon::serde {

struct WriteContext {
  JsonWriter& out;
  const std::map<std::string, int64_t>& hints;  // values of the symbols for the example inputs
};

void write_symbolic(WriteContext& context, SymInt value);
void write_tensor_meta(WriteContext& context, const TensorMeta& meta);
/// A value by name or a constant, under the key of its kind: {"as_tensor": {"name": "x"}}.
void write_argument(WriteContext& context, const GraphBody& graph, const Arg& arg);
void write_graph(WriteContext& context, const GraphBody& graph);

}  // namespace tenon::serde
