#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tenon/export/exported_program.h"
#include "tenon/export/verify_regions.h"
#include "tenon/sym/evaluate.h"

namespace tenon {
namespace {

using StringMap = std::unordered_map<std::string_view, const NamedTensor*>;

StringMap by_name(const std::vector<NamedTensor>& tensors, std::string_view list) {
  StringMap out;
  for (const NamedTensor& t : tensors)
    require(out.emplace(t.name, &t).second, "the ", list, " hold two tensors of the name ", quoted(t.name));
  return out;
}

class ProgramVerifier {
 public:
  explicit ProgramVerifier(const ExportedProgram& program)
      : program_(program),
        graph_(program.graph.body()),
        state_(by_name(program.state, "weights")),
        constants_(by_name(program.constants, "constants")) {
    for (const OpaquePayload& payload : program.opaque) opaque_.insert(payload.name);
  }

  void run() {
    check_counts();
    for (size_t i = 0; i < graph_.inputs.size(); ++i) check_input(program_.signature.inputs[i]);
    check_outputs();
    check_trees();
    for (const auto& [key, range] : program_.ranges) {
      require(!range.is_empty(), "the range of ", quoted(key), " is empty: from ", range.lo, " to ", range.hi);
      named_.insert(key);
    }
    collect_named(graph_);
    check_hints();
    check_graph(graph_);
  }

 private:
  void check_counts() {
    require(program_.signature.inputs.size() == graph_.inputs.size(), "the graph has ", graph_.inputs.size(),
            " inputs, the signature ", program_.signature.inputs.size());
    require(program_.signature.outputs.size() == graph_.outputs.size(), "the graph has ", graph_.outputs.size(),
            " outputs, the signature ", program_.signature.outputs.size());
  }

  void check_input(const InputSpec& spec) {
    if (opaque_.contains(spec.target) && spec.kind != InputKind::user_input) {
      if (spec.kind == InputKind::parameter) parameters_.insert(spec.target);
      if (spec.kind == InputKind::buffer) buffers_.insert(spec.target);
      return;
    }
    switch (spec.kind) {
      case InputKind::user_input: user_inputs_.insert(spec.name); return;
      case InputKind::parameter: {
        const NamedTensor& t = find(spec, state_, "weights");
        require(t.is_parameter, "the input ", quoted(spec.name), " is the parameter ", quoted(spec.target),
                ", but the weights hold it as a buffer");
        parameters_.insert(spec.target);
        check_payload(spec, t);
        return;
      }
      case InputKind::buffer:
        require(spec.persistent || !state_.contains(spec.target), "the buffer ", quoted(spec.target),
                " is not persistent, but the weights hold it");
        buffers_.insert(spec.target);
        check_payload(spec, spec.persistent ? find(spec, state_, "weights") : find(spec, constants_, "constants"));
        return;
      case InputKind::constant_tensor: check_payload(spec, find(spec, constants_, "constants")); return;
      case InputKind::custom_object:
        fail("the input ", quoted(spec.name), " is the object ", quoted(spec.target),
             ", which the constants do not hold");
      case InputKind::token: return;
    }
  }

  const NamedTensor& find(const InputSpec& spec, const StringMap& list, std::string_view list_name) {
    auto found = list.find(spec.target);
    require(found != list.end(), "the input ", quoted(spec.name), " is ", quoted(spec.target), ", which the ",
            list_name, " do not hold");
    return *found->second;
  }

  void check_payload(const InputSpec& spec, const NamedTensor& stored) {
    const Value* value = spec.arg.get<Value>();
    require(value && graph_.info(*value).type == ValueType::tensor, "the input ", quoted(spec.name), " for ",
            quoted(spec.target), " is not a tensor");
    const TensorMeta& said = graph_.info(*value).meta;
    const TensorMeta& is = stored.tensor.meta();
    bool same = said.dtype == is.dtype && said.rank() == is.rank();
    bool empty = false;
    for (size_t i = 0; same && i < said.rank(); ++i) {
      same = !said.sizes[i].is_int() || said.sizes[i] == is.sizes[i];
      empty |= is.sizes[i] == SymInt(0);
    }
    // The stride of a dimension of size 1 says nothing.
    for (size_t i = 0; same && !empty && i < said.rank(); ++i)
      same = is.sizes[i] == SymInt(1) || !said.strides[i].is_int() || said.strides[i] == is.strides[i];
    require(same, "the input ", quoted(spec.name), " is described as ", said, ", but ", quoted(spec.target),
            " is stored as ", is);
  }

  void check_outputs() {
    bool user_seen = false;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const OutputSpec& spec = program_.signature.outputs[i];
      bool mutation = spec.kind == OutputKind::buffer_mutation || spec.kind == OutputKind::parameter_mutation ||
                      spec.kind == OutputKind::user_input_mutation;
      require(!mutation || !user_seen, "output ", i, " is of the kind ", name(spec.kind),
              " and stands behind a user output");
      switch (spec.kind) {
        case OutputKind::user_output:
        case OutputKind::loss_output: user_seen = true; break;
        case OutputKind::buffer_mutation: check_target(spec, i, buffers_, "buffer"); break;
        case OutputKind::parameter_mutation: check_target(spec, i, parameters_, "parameter"); break;
        case OutputKind::gradient_to_parameter:  // or to a buffer: the schema has no kind of its own for it
          if (!buffers_.contains(spec.target)) check_target(spec, i, parameters_, "parameter");
          break;
        case OutputKind::user_input_mutation:
        case OutputKind::gradient_to_user_input: check_target(spec, i, user_inputs_, "user input"); break;
        case OutputKind::token: break;
      }
    }
  }

  void check_target(const OutputSpec& spec, size_t output, const std::unordered_set<std::string_view>& known,
                    std::string_view noun) {
    require(known.contains(spec.target), "output ", output, " (", name(spec.kind), ") speaks of the ", noun, " ",
            quoted(spec.target), ", which the signature does not have");
  }

  void check_trees() {
    require(!program_.module_calls.empty() && program_.module_calls[0].signature,
            "the program does not say how its arguments and results are arranged");
    const Tree& in = program_.in_tree();
    require(in.type == "builtins.tuple" && in.children.size() == 2 && in.children[0].type == "builtins.tuple" &&
                in.children[1].type == "builtins.dict",
            "expected in_spec to be a tuple of positional arguments and a dict of keyword arguments");
    size_t inputs = 0, outputs = 0;
    for (const InputSpec& spec : program_.signature.inputs) inputs += spec.kind == InputKind::user_input;
    for (const OutputSpec& spec : program_.signature.outputs)
      outputs += spec.kind == OutputKind::user_output || spec.kind == OutputKind::loss_output;
    require(in.leaves() == inputs, "in_spec arranges ", in.leaves(), " inputs, but the program has ", inputs);
    require(program_.out_tree().leaves() == outputs, "out_spec arranges ", program_.out_tree().leaves(),
            " outputs, but the program has ", outputs);
  }

  void check_graph(const GraphBody& graph) {
    for (const ValueInfo& info : graph.values) {
      check_symbols(info.expr, info.name);
      for (const Sizes* list : {&info.meta.sizes, &info.meta.strides})
        for (SymInt s : *list) {
          if (s.is(sym::Kind::real) || s.is(sym::Kind::rational) || s.is_boolean_typed())
            fail("the value ", quoted(info.name), " has the size or stride ", s, ", which is not an integer");
          if (!s.is_integer_typed()) check_integers(s, info.name);
          check_symbols(s, info.name);
        }
      check_symbols(info.meta.offset, info.name);
    }
    for (const Node& node : graph.nodes) {
      if (program_.dialect == "ATEN" && node.op->writes() && !node.op->traits.unknown)
        fail("the node ", quoted(node.origin.name), " (", node.op->target,
             ") writes to its argument; programs of the dialect ATEN must not");
      verify_region(node, graph);
      for (const Arg& arg : node.args)
        if (auto* subgraph = arg.get<Subgraph>()) check_graph(*subgraph->body);
    }
  }

  void check_hints() {
    for (const sym::Ranges::Entry& entry : graph_.shapes.ranges.entries()) {
      auto hint = program_.hints.find(std::string(entry.symbol.name()));
      if (hint == program_.hints.end()) continue;
      require(entry.range.contains(hint->second), "the symbol ", quoted(hint->first), " was ", hint->second,
              " for the example inputs, which its range ", entry.range, " leaves out");
      hints_.set(entry.symbol, hint->second);
    }
  }

  void collect_named(const GraphBody& graph) {
    for (const ValueInfo& info : graph.values) {
      for (SymInt size : info.meta.sizes)
        if (size.is_symbol()) named_.insert(size.name());
      if (info.expr.is_symbol()) named_.insert(info.expr.name());
    }
    // PyTorch gives no range to the stride of an input that is a part of a larger tensor.
    for (const Arg& input : graph.inputs)
      if (const Value* v = input.get<Value>())
        for (SymInt stride : graph.info(*v).meta.strides)
          if (stride.is_symbol()) named_.insert(stride.name());
    for (const Node& node : graph.nodes)
      for (const Arg& arg : node.args)
        if (auto* subgraph = arg.get<Subgraph>()) collect_named(*subgraph->body);
  }

  // s0*s1/2 may be an integer; what holds a symbol that may be none is not one.
  static void check_integers(SymInt size, std::string_view value) {
    for (SymInt symbol : sym::symbols_of(size))
      if (!symbol.traits().integer)
        fail("the value ", quoted(value), " has the size or stride ", size, ", and its symbol ", quoted(symbol.name()),
             " is not said to be an integer");
  }

  void check_symbols(SymInt expr, std::string_view value) {
    if (expr.is_int() || !seen_.insert(expr).second) return;
    bool known = expr.is_integer_typed();
    for (SymInt symbol : sym::symbols_of(expr)) {
      if (symbol.traits().integer && !named_.contains(symbol.name()))
        fail("the value ", quoted(value), " depends on the symbol ", quoted(symbol.name()),
             ", which has no range in range_constraints and is no size of a tensor or stride of an input");
      known = known && hints_.find(symbol);
    }
    if (!known) return;
    try {
      sym::evaluate(expr, hints_);
    } catch (const Error& error) {
      fail("the value ", quoted(value), " depends on ", quoted(text(expr)),
           ", which cannot be computed for the example inputs: ", std::string_view(error.what()));
    }
  }

  const ExportedProgram& program_;
  const GraphBody& graph_;
  StringMap state_, constants_;
  std::unordered_set<std::string_view> opaque_, user_inputs_, parameters_, buffers_;
  std::unordered_set<std::string_view> named_;  // symbols with a range, or that are a size or a number themselves
  std::unordered_set<SymInt> seen_;
  sym::Bindings hints_;  // of the symbols, for the example inputs
};

}  // namespace

void verify(const ExportedProgram& program) { ProgramVerifier(program).run(); }

}  // namespace tenon
