// A program as data: inputs, nodes in order of execution, outputs. A Graph owns its body through one pointer, so it
// moves through passes while values (ids within that body) stay good.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/base/copy_on_write.h"
#include "tenon/graph/op.h"
#include "tenon/sym/shape_env.h"
#include "tenon/tensor/arg.h"

namespace tenon {

using NodeId = uint32_t;
inline constexpr uint32_t no_id = ~0u;

/// A value of a graph by number; none stands for an absent optional value.
struct Value {
  ValueId id = no_id;
  explicit operator bool() const { return id != no_id; }
  bool operator==(const Value&) const = default;
};

enum class ValueType : uint8_t { tensor, integer, floating, boolean, token, custom_object };

struct ValueInfo {
  std::string name;
  ValueType type = ValueType::tensor;
  TensorMeta meta;          // tensor
  SymInt expr = 0;          // integer, floating, boolean: what it is in terms of the graph's symbols
  NodeId producer = no_id;  // no_id: an input
  std::string class_name;   // custom_object
};

using Arg = BasicArg<Value>;
extern template struct BasicArg<Value>;
using Args = std::vector<Arg>;

enum class Phase : uint8_t { forward, backward, update };

/// What a file says about a node: stack_trace, nn_module_stack, torch_fn, ... Nodes that passes make of it share it.
using NodeMetadata = CopyOnWrite<std::vector<std::pair<std::string, std::string>>>;

/// Where a node comes from, as the file says it; kept for writing back.
struct Origin {
  NodeMetadata metadata;
  std::string name;                   // the file's node name; may be empty
  std::vector<std::string> keywords;  // structural ops: names of trailing keyword arguments
  int hop_single_return = -1;         // is_hop_single_tensor_return: -1 null
};

struct Node {
  const Op* op = nullptr;
  Args args;               // in schema order, defaults filled in; structural ops: as written
  Args results;            // one per return: a value, a list of values, or none
  uint64_t given = ~0ull;  // bit i: argument i was written in the file
  bool grad_enabled = true;
  Phase phase = Phase::forward;
  Origin origin;
};

struct GraphBody {
  std::vector<ValueInfo> values;
  std::vector<Node> nodes;
  Args inputs;                                         // values, or constants for specialized inputs
  Args outputs;                                        // values or constants
  bool single_tensor_return = false;                   // subgraphs: returns a tensor instead of a tuple
  sym::ShapeEnv shapes;                                // ranges of the symbols
  std::unordered_map<std::string, int> names;          // name -> next suffix to try, for unique_name
  std::vector<std::shared_ptr<const Op>> unknown_ops;  // that its nodes point to; shared: with the graphs made from it

  GraphBody();
  GraphBody(const GraphBody&);
  GraphBody& operator=(const GraphBody&);
  GraphBody(GraphBody&&) noexcept;
  GraphBody& operator=(GraphBody&&) noexcept;
  ~GraphBody();
  const ValueInfo& info(Value v) const { return values[v.id]; }
  ValueInfo& info(Value v) { return values[v.id]; }
};

class Graph {
 public:
  Graph() : body_(std::make_unique<GraphBody>()) {}
  GraphBody& body() { return *body_; }
  const GraphBody& body() const { return *body_; }
  GraphBody* operator->() { return body_.get(); }
  const GraphBody* operator->() const { return body_.get(); }
  std::unique_ptr<GraphBody> release() { return std::move(body_); }
  Graph copy() const;

 private:
  std::unique_ptr<GraphBody> body_;
};

/// Adds a value under its name, or under name_1, name_2, ... where that is taken.
Value add_value(GraphBody& graph, ValueInfo info);
std::string unique_name(GraphBody& graph, const std::string& wanted);
Value add_input(GraphBody& graph, std::string name, TensorMeta meta);
/// Appends a node and sets the producer of its results.
NodeId add_node(GraphBody& graph, Node node);
/// An op with the trait unknown for a target we do not have, made from the names the file gives its arguments. It
/// belongs to the graph and to those replayed from it, so that reading files for ever adds nothing to the registry.
const Op* add_unknown_op(GraphBody& graph, std::string_view target, const std::vector<std::string>& arg_names,
                         size_t results);
/// Calls visit(Value) for every value a node reads.
template <class Visit>
void for_each_input(const Node& node, Visit&& visit) {
  for (const Arg& arg : node.args)
    for_each_tensor(arg, [&](Value v) {
      if (v) visit(v);
    });
}
/// Calls visit(Value) for every value a node makes.
template <class Visit>
void for_each_result(const Node& node, Visit&& visit) {
  for (const Arg& result : node.results)
    for_each_tensor(result, [&](Value v) {
      if (v) visit(v);
    });
}

/// Replays a graph into a new one with a value map; the base of every pass. An unchanged node keeps its metas.
class Replay {
 public:
  explicit Replay(const GraphBody& from);
  Graph graph;                      // the new graph
  std::vector<Value> map;           // old value -> new value
  void inputs();                    // copies all inputs
  Arg moved(const Arg& arg) const;  // the argument in terms of the new graph
  NodeId node(const Node& node);    // copies a node, its args moved, new results under the old names
  void outputs();
  const GraphBody& from() const { return from_; }

 private:
  const GraphBody& from_;
};

/// Drops nodes whose results nobody needs. Assertions and writes stay.
Graph remove_dead_code(Graph graph);

/// Structure: every use after its definition, one definition per value, results match the op. Throws InternalError.
void verify(const GraphBody& graph);

/// One line per node: "%add: f32[4] = aten::add.Tensor(%x, 1)". Labels are appended behind ';' where given.
std::string to_text(const GraphBody& graph,
                    const std::function<std::string(const GraphBody&, size_t input)>& input_label = {},
                    const std::function<std::string(const GraphBody&, size_t output)>& output_label = {});
std::string to_text(const GraphBody& graph, const Arg& arg);

/// Reads the form that to_text writes, without labels; for tests. Ops are looked up in the table.
Graph parse_graph(std::string_view text, const OpTable& ops);

}  // namespace tenon
