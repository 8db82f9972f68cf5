#include "tenon/passes/check_metas.h"

#include "tenon/passes/autocast.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

class MetaChecker {
 public:
  // Rules add symbols for sizes that only a run can tell: to a copy.
  explicit MetaChecker(const GraphBody& graph) : graph_(graph), shapes_(graph.shapes) {}
  // Corrects what it finds wrong instead of complaining, node by node, so that later nodes see it.
  explicit MetaChecker(GraphBody* graph) : graph_(*graph), corrected_(graph), shapes_(graph->shapes) {}

  void run() {
    ShapesScope scope(&shapes_);
    for (const Node& node : graph_.nodes)
      if (has_rule(*node.op)) check(node);
  }

 private:
  static bool has_rule(const Op& op) {
    const OpDef* def = op.functional ? op.functional->def : op.def;
    bool tensors = op.kind != OpKind::symbolic && op.kind != OpKind::structural;
    return tensors && def && !op.traits.unknown && !op.traits.asserts && op.traits.measures == Measure::none &&
           (def->meta || def->view || def->scalar || def->decompose);
  }

  Tensor tensor(Value v) { return v ? Tensor(graph_.info(v).meta, &nowhere_, v.id) : Tensor(); }

  CallArg call_arg(const Arg& arg) {
    if (auto* v = arg.get<Value>()) {
      if (!*v) return {};
      if (graph_.info(*v).type != ValueType::tensor) return graph_.info(*v).expr;
    }
    auto* items = arg.get<Arg::Items>();
    if (!items) return map_tensors<Tensor>(arg, [&](Value v) { return tensor(v); });
    CallArg::Items out;
    Sizes sizes;
    for (const Arg& item : *items) {
      out.push_back(call_arg(item));
      if (auto* size = out.back().get<SymInt>()) sizes.push_back(*size);
    }
    if (sizes.size() == out.size()) return sizes;
    return out;
  }

  static std::string label(const Node& node) {
    return node.origin.name.empty() ? node.op->target : text(quoted(node.origin.name), " (", node.op->target, ")");
  }

  void check(const Node& node) {
    CallArgs args;
    for (const Arg& arg : node.args) args.push_back(call_arg(arg));
    Metas given;
    try {
      given = infer_any(*node.op, args);
    } catch (const Unsupported&) { return; } catch (const Error& error) {
      fail("node ", label(node), ": its arguments do not go together: ", std::string_view(error.what()));
    }
    for (size_t i = 0; i < node.results.size() && i < given.values.size(); ++i)
      compare(node, node.results[i], given.values[i]);
  }

  void compare(const Node& node, const Arg& said, const BasicArg<TensorMeta>& is) {
    if (auto* value = said.get<Value>())
      if (auto* meta = is.get<TensorMeta>()) compare(node, *value, *meta);
    auto* values = said.get<std::vector<Value>>();
    auto* metas = is.get<std::vector<TensorMeta>>();
    if (!values || !metas) return;
    require(values->size() == metas->size(), "node ", label(node), " is described as giving ", values->size(),
            " tensors, but the operator gives ", metas->size());
    for (size_t i = 0; i < values->size(); ++i) compare(node, (*values)[i], (*metas)[i]);
  }

  void compare(const Node& node, Value value, const TensorMeta& is) {
    if (!value || graph_.info(value).type != ValueType::tensor) return;
    const TensorMeta& said = graph_.info(value).meta;
    bool same = said.dtype == is.dtype && said.rank() == is.rank();
    for (size_t i = 0; same && i < is.rank(); ++i)
      same = said.sizes[i] == is.sizes[i] || !said.sizes[i].is_int() || !is.sizes[i].is_int();
    if (!same && corrected_ && is_static(is)) {
      TensorMeta& meta = corrected_->info(value).meta;
      TensorMeta right = is;
      right.device = meta.device;
      right.requires_grad = meta.requires_grad;
      meta = std::move(right);
      return;
    }
    require(same, "node ", label(node), ": its result ", quoted(graph_.info(value).name), " is described as ", said,
            ", but the operator gives ", is);
  }

  static bool is_static(const TensorMeta& meta) {
    for (const Sizes* list : {&meta.sizes, &meta.strides})
      for (SymInt s : *list)
        if (!s.is_int()) return false;
    return meta.offset.is_int();
  }

  const GraphBody& graph_;
  GraphBody* corrected_ = nullptr;
  sym::ShapeEnv shapes_;
  GraphBody nowhere_;  // arguments stand in it; rules ask for their metas only
};

void check(const GraphBody& graph, bool autocast) {
  if (!autocast) MetaChecker(graph).run();  // else the dtypes of results say what arguments are converted to
  for (const Node& node : graph.nodes)
    for (const Arg& arg : node.args)
      if (auto* subgraph = arg.get<Subgraph>()) check(*subgraph->body, autocast_within(node, autocast));
}

}  // namespace

void check_metas(const GraphBody& graph) { check(graph, false); }

void correct_metas(GraphBody& graph) { MetaChecker(&graph).run(); }

}  // namespace tenon
