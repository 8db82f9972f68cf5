#include "tenon/passes/check_metas.h"

#include <algorithm>

#include "tenon/passes/attempt.h"
#include "tenon/passes/autocast.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"

namespace tenon {
namespace {

// What is the same for all graphs of a program.
struct Known {
  sym::ShapeEnv shapes;  // rules add symbols for sizes that only a run can tell: to this copy
  sym::Bindings hints;

  bool at_hints(SymInt e) const {
    for (SymInt s : sym::symbols_of(e))
      if (!hints.find(s)) return false;
    return true;
  }

  // False where the two certainly are, or were for the example inputs, different numbers.
  bool may_be_equal(SymInt a, SymInt b) const {
    if (a == b) return true;
    if (a.is_int() && b.is_int()) return false;
    constexpr uint64_t worth_comparing = 1000;
    if (a.is_boolean_typed() != b.is_boolean_typed() || sym::weight(a) + sym::weight(b) > worth_comparing) return true;
    try {
      if (at_hints(a) && at_hints(b)) {
        double x = sym::evaluate_real(a, hints), y = sym::evaluate_real(b, hints);
        return x == y || (x != x && y != y);
      }
      return shapes.decide(sym::eq(a, b)) != false;
    } catch (const Error&) { return true; }  // not to be computed this way
  }
};

class MetaChecker {
 public:
  MetaChecker(const GraphBody& graph, Known& known, bool autocast)
      : graph_(graph), known_(known), autocast_(autocast) {}
  // Corrects what it finds wrong instead of complaining, node by node, so that later nodes see it.
  MetaChecker(GraphBody* graph, Known& known) : graph_(*graph), corrected_(graph), known_(known), autocast_(false) {}

  // Results that nobody reads alone.
  void correct_unread() {
    std::vector<bool> read(graph_.values.size());
    auto mark = [&](const Arg& arg) {
      for_each_tensor(arg, [&](const Value& v) {
        if (v) read[v.id] = true;
      });
      if (auto* items = arg.get<Arg::Items>())
        for (const Arg& item : *items)
          for_each_tensor(item, [&](const Value& v) {
            if (v) read[v.id] = true;
          });
    };
    for (const Node& node : graph_.nodes)
      for (const Arg& arg : node.args) mark(arg);
    for (const Arg& output : graph_.outputs) mark(output);
    for (const Node& node : graph_.nodes) {
      auto unread = [&](const Arg& result) {
        auto* v = result.get<Value>();
        return v && *v && !read[v->id] && graph_.info(*v).type == ValueType::tensor;
      };
      if (node.results.size() < 2 || !has_rule(*node.op) ||
          std::none_of(node.results.begin(), node.results.end(), unread))
        continue;
      CallArgs args;
      for (const Arg& arg : node.args) args.push_back(call_arg(arg));
      Attempt given = attempt(*node.op, args);
      if (given.unsupported || !given.metas) continue;
      for (size_t i = 0; i < node.results.size() && i < given.metas->values.size(); ++i)
        if (auto* meta = given.metas->values[i].get<TensorMeta>(); meta && unread(node.results[i]))
          correct(*node.results[i].get<Value>(), *meta);
    }
  }

  // Results of operators that PyTorch misdescribes, and what is made of them, step by step.
  void correct_misdescribed() {
    std::vector<bool> corrected(graph_.values.size());
    for (const Node& node : graph_.nodes) {
      bool wrong = node.op->traits.misdescribed;
      for_each_input(node, [&](Value v) { wrong = wrong || corrected[v.id]; });
      if (!wrong || !has_rule(*node.op)) continue;
      CallArgs args;
      for (const Arg& arg : node.args) args.push_back(call_arg(arg));
      Attempt given = attempt(*node.op, args);
      if (given.unsupported || !given.metas) continue;
      for (size_t i = 0; i < node.results.size() && i < given.metas->values.size(); ++i) {
        auto* value = node.results[i].get<Value>();
        auto* meta = given.metas->values[i].get<TensorMeta>();
        if (!value || !*value || !meta || graph_.info(*value).type != ValueType::tensor) continue;
        if (graph_.info(*value).meta.sizes == meta->sizes || !follows_from(node, *meta)) continue;
        TensorMeta right = *meta;
        right.device = graph_.info(*value).meta.device;
        right.requires_grad = graph_.info(*value).meta.requires_grad;
        corrected_->info(*value).meta = std::move(right);
        corrected[value->id] = true;
      }
    }
  }

  void run() {
    for (const Node& node : graph_.nodes) {
      if (node.op->kind == OpKind::symbolic && node.op->def && node.op->def->symbolic) check_number(node);
      else if (has_rule(*node.op)) check(node);
    }
  }

 private:
  static bool has_rule(const Op& op) {
    const OpDef* def = op.functional ? op.functional->def : op.def;
    bool tensors = op.kind != OpKind::symbolic && op.kind != OpKind::structural;
    return tensors && def && !op.traits.unknown && !op.traits.asserts &&
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

  static std::optional<SymInt> number(const GraphBody& graph, const Arg& arg) {
    if (auto* v = arg.get<Value>()) {
      if (!*v || graph.info(*v).type == ValueType::tensor) return std::nullopt;
      return graph.info(*v).expr;
    }
    if (auto* e = arg.get<SymInt>()) return *e;
    if (auto* d = arg.get<double>()) return SymInt::real(*d);
    if (auto* b = arg.get<bool>()) return SymInt::boolean(*b);
    return std::nullopt;
  }

  // Operators on sizes and numbers.
  void check_number(const Node& node) {
    std::vector<SymInt> operands;
    for (const Arg& arg : node.args) {
      std::optional<SymInt> operand = number(graph_, arg);
      if (!operand) fail("node ", label(node), ": expected numbers, got ", to_text(graph_, arg));
      operands.push_back(*operand);
    }
    std::optional<SymInt> said = node.results.size() == 1 ? number(graph_, node.results[0]) : std::nullopt;
    if (!said) fail("node ", label(node), ": expected a number as its result");
    std::optional<SymInt> is;
    try {
      is = node.op->def->symbolic(operands);
    } catch (const Error&) { return; }  // beyond 64 bits on the way: what the file says is used
    if (Mistake found = compare(*node.results[0].get<Value>(), *is)) fail("node ", label(node), ": ", *found);
  }

  using Mistake = std::optional<std::string>;

  Mistake compare(Value value, SymInt is) const {
    const ValueInfo& said = graph_.info(value);
    if (known_.may_be_equal(said.expr, is)) return std::nullopt;
    return text("its result ", quoted(said.name), " is described as ", said.expr, ", but the operator gives ", is);
  }

  void check(const Node& node) {
    CallArgs args;
    for (const Arg& arg : node.args) args.push_back(call_arg(arg));
    Mistake found = mistake(node, args);
    if (!found) return;
    std::optional<DType> wanted = autocast_ ? floating_result(node) : std::nullopt;
    if (!wanted) fail("node ", label(node), ": ", *found);
    // What autocast converts is not written down; most operators are left alone.
    for (CallArg& arg : args)
      arg = map_tensors<Tensor>(arg, [&](const Tensor& t) {
        if (!t || !is_floating(t.dtype()) || t.dtype() == DType::f64) return t;
        TensorMeta meta = t.meta();
        meta.dtype = *wanted;
        return Tensor(std::move(meta), &nowhere_, t.impl()->value);
      });
    found = mistake(node, args);
    if (found) fail("node ", label(node), ": ", *found);
  }

  std::optional<DType> floating_result(const Node& node) const {
    std::optional<DType> found;
    for_each_result(node, [&](Value v) {
      const ValueInfo& info = graph_.info(v);
      if (!found && info.type == ValueType::tensor && is_floating(info.meta.dtype)) found = info.meta.dtype;
    });
    return found;
  }

  Mistake mistake(const Node& node, const CallArgs& args) {
    Attempt given = attempt(*node.op, args);
    if (given.unsupported) return std::nullopt;
    if (!given.metas) return text("its arguments do not go together: ", given.reason);
    for (size_t i = 0; i < node.results.size() && i < given.metas->values.size(); ++i)
      if (Mistake found = compare(node, node.results[i], given.metas->values[i])) return found;
    return std::nullopt;
  }

  Mistake other_kind(Value value, std::string_view is) const {
    const ValueInfo& said = graph_.info(value);
    return text("its result ", quoted(said.name), " is described as ",
                said.type == ValueType::tensor ? text(said.meta) : "a number", ", but the operator gives ", is);
  }

  Mistake compare(const Node& node, const Arg& said, const BasicArg<TensorMeta>& is) {
    auto* metas = is.get<std::vector<TensorMeta>>();
    if (auto* value = said.get<Value>(); value && *value) {
      bool tensor = graph_.info(*value).type == ValueType::tensor;
      if (auto* meta = is.get<TensorMeta>()) return compare(*value, *meta);
      if (tensor || metas) return other_kind(*value, is.is_none() ? "None" : metas ? "a list" : "a number");
      if (auto* number = is.get<SymInt>(); number && node.op->traits.measures != Measure::none)
        if (Mistake found = compare(*value, *number)) return found;
    }
    auto* values = said.get<std::vector<Value>>();
    if (!values && is.get<TensorMeta>() && said.is_number())
      return text("a result is described as a number, but the operator gives a tensor");
    if (!values) return std::nullopt;
    if (!metas || values->size() != metas->size())
      return text("it is described as giving ", values->size(), " tensors, but the operator gives ",
                  metas ? text(metas->size()) : "none");
    for (size_t i = 0; i < values->size(); ++i)
      if ((*values)[i])
        if (Mistake found = compare((*values)[i], (*metas)[i])) return found;
    return std::nullopt;
  }

  Mistake compare(Value value, const TensorMeta& is) {
    if (graph_.info(value).type != ValueType::tensor) return other_kind(value, "a tensor");
    const TensorMeta& said = graph_.info(value).meta;
    bool same = said.dtype == is.dtype && said.rank() == is.rank();
    for (size_t i = 0; same && i < is.rank(); ++i) same = known_.may_be_equal(said.sizes[i], is.sizes[i]);
    if (same) return std::nullopt;
    if (corrected_ && correct(value, is)) return std::nullopt;
    return text("its result ", quoted(graph_.info(value).name), " is described as ", said, ", but the operator gives ",
                is);
  }

  bool correct(Value value, const TensorMeta& is) {
    if (!is_static(is)) return false;
    TensorMeta& meta = corrected_->info(value).meta;
    TensorMeta right = is;
    right.device = meta.device;
    right.requires_grad = meta.requires_grad;
    meta = std::move(right);
    return true;
  }

  // Whether every symbol of its sizes is one of the node's tensors, not one that the rule has just made.
  bool follows_from(const Node& node, const TensorMeta& meta) const {
    std::vector<SymInt> known;
    for_each_input(node, [&](Value v) {
      for (SymInt size : graph_.info(v).meta.sizes)
        for (SymInt s : sym::symbols_of(size)) known.push_back(s);
    });
    for (SymInt size : meta.sizes)
      for (SymInt s : sym::symbols_of(size))
        if (std::find(known.begin(), known.end(), s) == known.end()) return false;
    return true;
  }

  static bool is_static(const TensorMeta& meta) {
    for (const Sizes* list : {&meta.sizes, &meta.strides})
      for (SymInt s : *list)
        if (!s.is_int()) return false;
    return meta.offset.is_int();
  }

  const GraphBody& graph_;
  GraphBody* corrected_ = nullptr;
  Known& known_;
  bool autocast_;
  GraphBody nowhere_;  // arguments stand in it; rules ask for their metas only
};

void check(const GraphBody& graph, Known& known, bool autocast) {
  MetaChecker(graph, known, autocast).run();
  for (const Node& node : graph.nodes)
    for (const Arg& arg : node.args)
      if (auto* subgraph = arg.get<Subgraph>()) check(*subgraph->body, known, autocast_within(node, autocast));
}

}  // namespace

void check_metas(const GraphBody& graph, const std::map<std::string, int64_t>& hints) {
  Known known{.shapes = graph.shapes};
  for (const auto& [name, value] : hints) known.hints.set(SymInt::symbol(name), value);
  ShapesScope scope(&known.shapes);
  check(graph, known, false);
}

void correct_unread_metas(GraphBody& graph) {
  Known known{.shapes = graph.shapes};
  ShapesScope scope(&known.shapes);
  MetaChecker(&graph, known).correct_unread();
}

void correct_misdescribed(GraphBody& graph) {
  Known known{.shapes = graph.shapes};
  ShapesScope scope(&known.shapes);
  MetaChecker(&graph, known).correct_misdescribed();
}

void correct_metas(GraphBody& graph) {
  Known known{.shapes = graph.shapes};
  ShapesScope scope(&known.shapes);
  MetaChecker(&graph, known).run();
}

}  // namespace tenon
