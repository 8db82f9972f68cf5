// Nodes that hold graphs: what they hand in and out against what those graphs take and give.
#include "tenon/export/verify_regions.h"

namespace tenon {
namespace {

class RegionVerifier {
 public:
  RegionVerifier(const Node& node, const GraphBody& graph) : node_(node), graph_(graph) {}

  void run() {
    switch (node_.op->traits.control) {
      case Control::none: return;
      case Control::grad_region:
        need(node_.args.size() >= 2 && node_.args[0].is<bool>() && node_.args[1].is<Subgraph>(),
             "expected a truth value and a graph as its first arguments");
        return region(1);
      case Control::autocast_region:
        need(node_.args.size() >= 5 && node_.args[0].is<std::string>() &&
                 (node_.args[1].is<DType>() || node_.args[1].is_none()) && node_.args[2].is<bool>() &&
                 (node_.args[3].is<bool>() || node_.args[3].is_none()) && node_.args[4].is<Subgraph>(),
             "expected a device, a dtype, two truth values and a graph as its first arguments");
        return region(4);
      case Control::choose: return choose();
      case Control::repeat: return loop(2);
      case Control::map:
      case Control::scan: return loop(1);
    }
    unreachable();
  }

 private:
  template <class... Parts>
  void need(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail("the region ", quoted(node_.origin.name), " (", node_.op->target, "): ", parts...);
  }

  const GraphBody& body(size_t at) const {
    need(at < node_.args.size() && node_.args[at].is<Subgraph>() && node_.args[at].get<Subgraph>()->body,
         "expected a graph as argument ", at);
    return *node_.args[at].get<Subgraph>()->body;
  }

  // The two branches of a choice may differ in sizes, which are symbols outside then; the body of a region is the same
  // program as what is around it.
  bool same_size(SymInt a, SymInt b) const {
    bool inlined = node_.op->traits.control != Control::choose;
    return a == b || (!inlined && (!a.is_int() || !b.is_int()));
  }
  bool same(const ValueInfo& a, const ValueInfo& b) const {
    if (a.type != b.type) return false;
    if (a.type != ValueType::tensor) return true;
    bool good = a.meta.dtype == b.meta.dtype && a.meta.rank() == b.meta.rank();
    for (size_t i = 0; good && i < a.meta.rank(); ++i) good = same_size(a.meta.sizes[i], b.meta.sizes[i]);
    return good;
  }
  static std::string described(const ValueInfo& info) {
    return info.type == ValueType::tensor ? text(info.meta) : text("the number ", info.expr);
  }

  // Operands behind the graph, one for each of its inputs; then results, one for each output.
  void region(size_t at) const {
    const GraphBody& inside = body(at);
    size_t operands = node_.args.size() - at - 1;
    need(operands == inside.inputs.size(), "it gets ", operands, " values, but its graph has ", inside.inputs.size(),
         " inputs");
    for (size_t i = 0; i < operands; ++i) takes(node_.args[at + 1 + i], inside, inside.inputs[i]);
    gives(inside);
  }

  void takes(const Arg& operand, const GraphBody& inside, const Arg& input) const {
    const Value *given = operand.get<Value>(), *wanted = input.get<Value>();
    if (!wanted || !*wanted) return;
    const ValueInfo& inner = inside.info(*wanted);
    if (!given || !*given) {
      need(inner.type != ValueType::tensor, "its graph takes the tensor ", quoted(inner.name), ", but it gets ",
           to_text(graph_, operand));
      return;
    }
    const ValueInfo& outer = graph_.info(*given);
    if (!same(outer, inner))
      need(false, "it gets ", described(outer), " for the input ", quoted(inner.name), " of its graph, which is ",
           described(inner));
  }

  void gives(const GraphBody& inside) const {
    std::vector<Value> outputs, results;
    for (const Arg& output : inside.outputs) for_each_tensor(output, [&](const Value& v) { outputs.push_back(v); });
    for (const Arg& result : node_.results) for_each_tensor(result, [&](const Value& v) { results.push_back(v); });
    need(results.size() <= outputs.size(), "it is described as giving ", results.size(),
         " values, but its graph gives ", outputs.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) continue;
      const ValueInfo& said = graph_.info(results[i]);
      need(static_cast<bool>(outputs[i]), "its result ", quoted(said.name), " is described as ", described(said),
           ", but its graph gives None");
      if (const ValueInfo& is = inside.info(outputs[i]); !same(said, is))
        need(false, "its result ", quoted(said.name), " is described as ", described(said), ", but its graph gives ",
             described(is));
    }
  }

  void choose() const {
    need(node_.args.size() >= 3, "expected a condition and two graphs, found ", node_.args.size(), " arguments");
    const Arg& condition = node_.args[0];
    const Value* v = condition.get<Value>();
    bool good = condition.is<bool>() || (v && *v);
    if (v && *v) {
      const ValueInfo& info = graph_.info(*v);
      good = info.type == ValueType::boolean || info.type == ValueType::integer || info.type == ValueType::tensor;
    }
    need(good, "expected a condition as its first argument, got ", to_text(graph_, condition));
    for (size_t at : {size_t{1}, size_t{2}}) {
      const GraphBody& inside = body(at);
      if (node_.args.size() > 3) counted(inside, 3);
      gives(inside);
    }
  }

  // Loops hand in parts of their operands: only how many is compared.
  void loop(size_t graphs) const {
    for (size_t at = 0; at < graphs; ++at) {
      const GraphBody& inside = body(at);
      if (node_.args.size() > graphs) counted(inside, graphs);
    }
  }

  // The lists of operands from `first` on together have one for each input.
  void counted(const GraphBody& inside, size_t first) const {
    size_t operands = 0;
    for (size_t i = first; i < node_.args.size(); ++i) {
      if (auto* list = node_.args[i].get<std::vector<Value>>()) operands += list->size();
      else if (auto* items = node_.args[i].get<Arg::Items>()) operands += items->size();
      else if (auto* sizes = node_.args[i].get<Sizes>()) operands += sizes->size();
      else return;  // spelled in another way
    }
    need(operands == inside.inputs.size(), "it gets ", operands, " values, but its graph has ", inside.inputs.size(),
         " inputs");
  }

  const Node& node_;
  const GraphBody& graph_;
};

}  // namespace

void verify_region(const Node& node, const GraphBody& graph) { RegionVerifier(node, graph).run(); }

}  // namespace tenon
