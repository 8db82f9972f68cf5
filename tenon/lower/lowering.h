// From a graph to steps, node by node. For lower/ only.
#pragma once
#include <unordered_set>

#include "tenon/lower/lower.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/tensor/arg_members.h"

namespace tenon {

/// The program being made: what its graphs share.
struct Lowered {
  loop::Program program;
  sym::ShapeEnv shapes;                   // with the symbols of loops and choices
  std::unordered_set<std::string> bound;  // symbols that data has told so far
  std::unordered_set<std::string> given;  // symbols that the inputs tell
  sym::ShapeEnv relied_on;                // what rules have relied on so far, as guards
  std::vector<loop::Check> guards;        // of these, those over symbols that the inputs tell
  std::vector<uint32_t> guard_origins;
  size_t depth = 0;                   // of bodies of control flow
  std::vector<loop::Check> awaiting;  // numbers that data told, against expressions whose symbols are not bound yet
  std::unordered_map<loop::BufferId, TensorMeta>
      root_meta;  // of buffers that are no views: how the value lies in its storage
};

/// One graph: the program's own, or the body of control flow.
class Lowering {
  using BufferId = loop::BufferId;
  using Role = loop::Role;
  static constexpr BufferId no_buffer = loop::no_buffer;

 public:
  Lowering(const GraphBody& graph, const CallingConvention& convention, Lowered& lowered)
      : graph_(graph),
        convention_(convention),
        lowered_(lowered),
        program_(lowered.program),
        bound_(lowered.bound),
        root_meta_(lowered.root_meta),
        output_of_(graph.values.size(), ~size_t{0}),
        buffer_(graph.values.size(), no_buffer),
        tensors_(graph.values.size()) {}

  void run();
  static bool is_control(const Node& node);

 private:
  bool is_tensor(Value v) const { return graph_.info(v).type == ValueType::tensor; }

  /// A buffer for a value, and how the value lies in it. What is computed here has no gaps, whatever was recorded.
  BufferId claim(Value v, Role role, size_t slot);
  BufferId add_buffer(const TensorMeta& meta, Role role, size_t slot, std::string name);
  BufferId put(Value v, BufferId buffer, const TensorMeta& meta);
  void add_inputs();
  void find_outputs();
  void describe(const Node& node);
  void lower_nodes();
  void lower_node(const Node& node);
  void view(const Node& node, CallArgs args);
  /// A buffer that lies within another's: what `map` makes of that, which `meta` describes.
  BufferId add_view(BufferId from, const IndexMap& map, const TensorMeta& meta, std::string name);
  /// Whether every part of a map is a view of a tensor that lies so.
  bool fits(const IndexMap& map, TensorMeta meta, Value base) const;
  TensorMeta promised(Value v) const;
  void claim_results(const Node& node);
  std::vector<BasicArg<TensorMeta>> metas_of(const Node& node) const;
  void stages(const Node& node, const CallArgs& args);
  void claim_host_results(const Node& node, const std::unordered_set<std::string>& given);
  void host(const Node& node, const CallArgs& args);
  static void mention(SymInt e, std::unordered_set<std::string>& names);
  static void mention(const CallArg& arg, std::unordered_set<std::string>& names);
  void check_range(SymInt symbol);
  /// What the rule of a call with symbolic sizes relies on: guards of the program, or checks before the node's steps.
  void guard(const Node& node, const CallArgs& args);
  void add_guard(SymInt condition, std::string message);
  void add_guards_in_front();
  /// A number that a call leaves in a buffer, and the expression that it is in the program.
  void bind_number(SymInt expr, BufferId from, std::vector<loop::Bind>& binds);
  void add_binds(const std::vector<loop::Bind>& binds);
  void checks(const Node& node, const CallArgs& args);
  BufferId temporary(const loop::Buffer& like, Role role, size_t slot, std::string name);
  BufferId plain_number(BufferId of);
  void copy(BufferId from, BufferId to);
  BufferId as_real(BufferId of);
  void fill_from(BufferId from, BufferId to);
  void add_outputs();

  // Control flow: lower/control.cpp.
  void control(const Node& node);
  void choose(const Node& node);
  void repeat(const Node& node);
  void repeat_stacked(const Node& node);
  void rows(const Node& node, bool carries);
  /// The number 0 or 1 for a condition; a tensor's is bound.
  SymInt condition(const Arg& arg);
  /// Binds the sizes of results that differ between the branches.
  void bind_sizes(const Node& node, SymInt which, const GraphBody& then, const GraphBody& otherwise);
  bool is_known(SymInt size) const;
  /// A body of a control step: the steps that make() makes.
  template <class Make>
  void body(loop::Control& control, const Make& make);
  void lower_inside();
  /// Gives input `next` of a body, and those behind it, the tensors of an operand list.
  void take_operands(Lowering& inside, const Arg& list, size_t& next);
  void take(size_t input, BufferId buffer, const TensorMeta& meta);
  /// Buffers for carried values, with what they begin as.
  std::vector<BufferId> carry(const Arg& list);
  void take_carried(Lowering& inside, const std::vector<BufferId>& carried) const;
  /// What a body gives, into the buffers of what it carries.
  void carry_on(Lowering& inside, const std::vector<BufferId>& carried);
  void give_carried(const Node& node, const std::vector<BufferId>& carried);
  /// Row number `at` of a tensor.
  BufferId row(BufferId of, SymInt at, TensorMeta& made);
  BufferId number(std::string name, loop::Expr value, DType dtype);
  BufferId result_of(const Arg& output) const;
  TensorMeta meta_of(BufferId buffer) const;

  const GraphBody& graph_;
  const CallingConvention& convention_;
  Lowered& lowered_;
  loop::Program& program_;
  std::unordered_set<std::string>& bound_;
  std::unordered_map<loop::BufferId, TensorMeta>& root_meta_;
  std::vector<size_t> output_of_;       // of each value: the output that it is computed into
  std::vector<loop::BufferId> buffer_;  // of each value that is a tensor
  std::vector<Tensor> tensors_;
  std::unordered_set<uint32_t> laid_out_;  // values that lie otherwise here than the graph says
};

}  // namespace tenon
