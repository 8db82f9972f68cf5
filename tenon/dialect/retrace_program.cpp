#include "tenon/dialect/retrace_program.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "tenon/export/spell_sizes.h"
#include "tenon/ops/structural.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/sym/evaluate.h"
#include "tenon/trace/recorded.h"

namespace tenon::dialect {
namespace {

bool is_number(const ValueInfo& info) {
  return info.type == ValueType::integer || info.type == ValueType::floating || info.type == ValueType::boolean;
}

/// The value that each symbol is first known by: a number, or a tensor one of whose sizes it is.
std::unordered_map<SymInt, Value> first_known_by(const GraphBody& graph) {
  std::unordered_map<SymInt, Value> out;
  auto learn = [&](Value v) {
    if (!v) return;
    const ValueInfo& info = graph.info(v);
    if (is_number(info) && info.expr.is_symbol()) out.try_emplace(info.expr, v);
    for (SymInt size : info.meta.sizes)
      if (size.is_symbol()) out.try_emplace(size, v);
  };
  for (const Arg& input : graph.inputs) for_each_tensor(input, learn);
  for (const Node& node : graph.nodes) for_each_result(node, learn);
  return out;
}

/// What nobody reads goes, results of several-result nodes too; those lose their names. Random nodes stay, as in
/// torch.fx. A tensor whose size is an argument is read.
void remove_unread(GraphBody& graph) {
  std::vector<bool> read(graph.values.size());
  const std::unordered_map<SymInt, Value> known_by = first_known_by(graph);
  auto mark_number = [&](SymInt number) {
    if (number.is_int()) return;
    for (SymInt symbol : sym::symbols_of(number))
      if (auto at = known_by.find(symbol); at != known_by.end()) read[at->second.id] = true;
  };
  std::function<void(const Arg&)> mark = [&](const Arg& arg) {
    if (auto* number = arg.get<SymInt>()) mark_number(*number);
    else if (auto* sizes = arg.get<Sizes>()) std::for_each(sizes->begin(), sizes->end(), mark_number);
    else if (auto* items = arg.get<Arg::Items>()) std::for_each(items->begin(), items->end(), mark);
    else
      for_each_tensor(arg, [&](const Value& v) {
        if (v) read[v.id] = true;
      });
  };
  for (const Arg& output : graph.outputs) mark(output);
  std::vector<Node> kept;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    bool live = node.op->stays() || node.op->traits.random;
    for_each_result(node, [&](Value v) { live = live || read[v.id]; });
    if (!live) continue;
    for (const Arg& arg : node.args) mark(arg);
    bool single = node.results.size() == 1 && node.results[0].is<Value>();
    if (!single)
      for_each_result(node, [&](Value v) {
        if (!read[v.id]) graph.info(v).name.clear();
      });
    kept.push_back(std::move(node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
}

class Retracer {
 public:
  Retracer(const GraphBody& from, const Policy& policy) : from_(from), policy_(policy), values_(from.values.size()) {
    out_.map.resize(from.values.size());
    graph().shapes = from.shapes;
    graph().single_tensor_return = from.single_tensor_return;
    graph().unknown_ops = from.unknown_ops;
  }

  Retraced run() {
    ShapesScope shapes(&graph().shapes);
    DispatchScope scope(&functional_);
    inputs();
    nodes(from_, values_, true);
    outputs();
    rename_sizes();
    remove_unread(graph());
    nodes_.insert_sizes();
    return std::move(out_);
  }

 private:
  GraphBody& graph() { return out_.graph.body(); }

  void inputs() {
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      nodes_.names.reserve(text("arg", i, "_1"));
      const Value* v = from_.inputs[i].get<Value>();
      if (!v) {
        graph().inputs.push_back(from_.inputs[i]);
        continue;
      }
      ValueInfo info = from_.info(*v);
      info.producer = no_id;
      Value made = add_value(graph(), info);
      graph().info(made).name = info.name;
      graph().inputs.emplace_back(made);
      out_.map[v->id] = made;
      if (is_number(info)) values_[v->id] = info.expr;
      else if (info.type == ValueType::tensor) values_[v->id] = functional_.fresh(nodes_.tracer.tensor(made));
      else others_[v->id] = made;
      handles_.push_back(values_[v->id]);
    }
  }

  CallArg argument(const Arg& arg, const GraphBody& from, const std::vector<CallArg>& values) {
    if (auto* v = arg.get<Value>()) return *v ? values[v->id] : CallArg();
    if (auto* items = arg.get<Arg::Items>()) {
      CallArg::Items out;
      bool numbers = !items->empty();
      for (const Arg& item : *items) {
        out.push_back(argument(item, from, values));
        numbers = numbers && out.back().is<SymInt>();
      }
      if (!numbers) return out;
      Sizes sizes;
      for (const CallArg& item : out) sizes.push_back(*item.get<SymInt>());
      return sizes;
    }
    return map_tensors<Tensor>(arg, [&](const Value& v) { return v ? values[v.id].as<Tensor>() : Tensor(); });
  }

  void nodes(const GraphBody& from, std::vector<CallArg>& values, bool outermost) {
    for (const Node& node : from.nodes) {
      if (node.op->kind == OpKind::symbolic || node.op->traits.measures != Measure::none) {
        std::vector<SymInt> operands;
        for (const Arg& arg : node.args) {
          CallArg number = argument(arg, from, values);
          if (auto* e = number.get<SymInt>()) operands.push_back(*e);
          else if (auto* d = number.get<double>()) operands.push_back(SymInt::real(*d));
        }
        for_each_result(node, [&](Value v) {
          values[v.id] = from.info(v).expr;
          nodes_.number(*node.op, operands, from.info(v).expr);
        });
        continue;
      }
      nodes_.tracer.metadata = node.origin.metadata;
      nodes_.tracer.phase = node.phase;
      if (node.op->traits.control == Control::grad_region) region(node, from, values);
      else if (stays(*node.op)) structural(node, from, values);
      else call(node, from, values);
      nodes_.tracer.metadata = {};
      if (outermost)
        for_each_result(node, [&](Value v) {
          if (auto* t = values[v.id].get<Tensor>(); t && *t) out_.map[v.id] = nodes_.tracer.value(functional_.peek(*t));
        });
    }
  }

  // Control flow, and operators of which nothing is known but their names, unless they are known to be others.
  bool stays(const Op& op) const {
    return op.kind == OpKind::structural && !op.traits.asserts && !(op.traits.unknown && policy_.composite(op));
  }

  void call(const Node& node, const GraphBody& from, std::vector<CallArg>& values) {
    CallArgs args;
    for (const Arg& a : node.args) args.push_back(argument(a, from, values));
    std::vector<BasicArg<TensorMeta>> metas = recorded_metas(from, node);
    require_as_said(node, from, values, args);
    const Op& op = lies_otherwise(node, args, metas) ? reshape.op() : *node.op;
    const bool hold = !op.functional && lie_as_recorded(node, from, args);
    nodes_.recorded = {&op, metas, read_results(node, from), hold};
    GradMode grad(node.grad_enabled);
    CallResults results = functional_.call(op, std::move(args));
    nodes_.recorded.reset();
    for (size_t i = 0; i < results.size() && i < metas.size(); ++i) same_sizes(results[i], metas[i]);
    keep_results(node, results, values);
  }

  // By other nodes; one of a list is not asked for.
  std::vector<bool> read_results(const Node& node, const GraphBody& from) {
    auto [at, first] = read_.try_emplace(&from, from.values.size());
    std::vector<bool>& read = at->second;
    if (first) {
      auto mark = [&](const Value& v) {
        if (v) read[v.id] = true;
      };
      for (const Node& user : from.nodes)
        for (const Arg& arg : user.args) for_each_tensor(arg, mark);
    }
    std::vector<bool> out;
    for (const Arg& r : node.results) {
      auto* v = r.get<Value>();
      out.push_back(v && *v && read[v->id]);
    }
    return out;
  }

  // Recorded results are those of recorded operands.
  bool lie_as_recorded(const Node& node, const GraphBody& from, const CallArgs& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const Value* v = node.args[i].get<Value>();
      auto* t = args[i].get<Tensor>();
      if (!v || !*v || !t || !*t) continue;
      const Sizes &recorded = from.info(*v).meta.strides, strides = functional_.peek(*t).meta().strides;
      for (size_t d = 0; d < std::min(recorded.size(), strides.size()); ++d)
        if (recorded[d].is_int() && strides[d].is_int() && recorded[d] != strides[d]) return false;
    }
    return true;
  }
  // What became of a composite may have other strides than the file says; a view that these do not allow is a copy
  // then.
  bool lies_otherwise(const Node& node, const CallArgs& args, const std::vector<BasicArg<TensorMeta>>& metas) {
    if (node.op != &view.op()) return false;
    const TensorMeta base = functional_.peek(args[0].as<Tensor>()).meta();
    const TensorMeta* result = metas[0].get<TensorMeta>();
    return result && !view_strides(base.sizes, base.strides, result->sizes);
  }

  // A size that only a run can tell has one name, also where what a call became gave it another.
  void same_sizes(const CallArg& made, const BasicArg<TensorMeta>& known) {
    auto same = [&](SymInt fresh, SymInt old) {
      if (fresh.is_boolean_typed() && old.is_boolean_typed()) {  // a truth is told by a symbol that is 0 or 1
        std::vector<SymInt> told = sym::symbols_of(fresh), known = sym::symbols_of(old);
        if (told.size() == 1 && known.size() == 1) fresh = told[0], old = known[0];
      }
      if (!old.is_symbol() || fresh == old) return;
      if (fresh.is_symbol()) same_.push_back({fresh, old});
      else if (!fresh.is_int()) named_.emplace(fresh, old);
    };
    auto* t = made.get<Tensor>();
    auto* meta = known.get<TensorMeta>();
    if (t && *t && meta && t->rank() == meta->rank()) {
      for (size_t d = 0; d < meta->rank(); ++d) same(t->sizes()[d], meta->sizes[d]);
      same(t->meta().offset, meta->offset);
      return;
    }
    auto* number = made.get<SymInt>();
    auto* old = known.get<SymInt>();
    if (number && old) same(*number, *old);
    auto* list = made.get<std::vector<Tensor>>();
    auto* metas = known.get<std::vector<TensorMeta>>();
    if (list && metas && list->size() == metas->size())
      for (size_t i = 0; i < list->size(); ++i) same_sizes(CallArg((*list)[i]), BasicArg<TensorMeta>((*metas)[i]));
  }

  void rename_sizes() {
    if (same_.empty() && named_.empty()) return;
    auto renamed = [&](SymInt& e) {
      if (e.is_int()) return;
      auto named = named_.find(e);
      e = named == named_.end() ? sym::substitute(e, same_) : named->second;
    };
    auto all = [&](Sizes& sizes) {
      for (SymInt& e : sizes) renamed(e);
    };
    for (ValueInfo& info : graph().values) {
      all(info.meta.sizes);
      all(info.meta.strides);
      renamed(info.meta.offset);
      if (is_number(info)) renamed(info.expr);
    }
    for (Node& node : graph().nodes)
      for (Arg& arg : node.args) {
        if (auto* e = arg.get<SymInt>()) renamed(*e);
        else if (auto* sizes = arg.get<Sizes>()) all(*sizes);
      }
  }

  // Grad mode says nothing behind autograd: the body stands where the region stood.
  void region(const Node& node, const GraphBody& from, std::vector<CallArg>& values) {
    const GraphBody& body = *node.args.at(1).as<Subgraph>().body;
    std::vector<CallArg> inside(body.values.size());
    require(node.args.size() == body.inputs.size() + 2, node.op->target, ": ", node.args.size() - 2,
            " operands for a graph of ", body.inputs.size(), " inputs");
    for (size_t i = 0; i < body.inputs.size(); ++i)
      if (const Value* v = body.inputs[i].get<Value>()) inside[v->id] = argument(node.args[i + 2], from, values);
    nodes(body, inside, false);
    std::vector<CallArg> given;
    for (const Arg& output : body.outputs) given.push_back(argument(output, body, inside));
    size_t next = 0;
    for_each_result(node, [&](Value v) {
      require(next < given.size(), node.op->target, ": more results than its graph has outputs");
      values[v.id] = given[next++];
    });
  }

  // A user's operator that returns nothing is there for what it writes, and its file does not say to what.
  static void require_results(const Node& node) {
    const std::string& target = node.op->target;
    bool custom = node.op->traits.unknown && starts_with(target, "torch.ops.") &&
                  !starts_with(target, "torch.ops.higher_order.") && !starts_with(target, "torch.ops.aten.");
    bool gives = false;
    for_each_result(node, [&](Value) { gives = true; });
    if (custom && !gives)
      fail_unsupported(text("a call of ", target,
                            " returns nothing, so it writes to its arguments, and the functional ",
                            "dialects have no writes; name a library with its schema with --ops"));
  }

  // Control flow and what is unknown stays a node; graphs within are traced anew.
  void structural(const Node& node, const GraphBody& from, std::vector<CallArg>& values) {
    require_results(node);
    Node made = node;
    made.origin.keywords = node.origin.keywords;
    for (Arg& arg : made.args) arg = spelled(arg, node, from, values);
    GraphBody& graph = this->graph();
    for (Arg& result : made.results)
      for_each_tensor(result, [&](Value& v) {
        if (!v) return;
        ValueInfo info = from.info(v);
        Value old = v;
        v = add_value(graph, info);
        if (is_number(info)) values[old.id] = info.expr;
        else if (info.type == ValueType::tensor) values[old.id] = functional_.fresh(nodes_.tracer.tensor(v));
        else others_[old.id] = v;
      });
    add_node(graph, made);
    Node& added = graph.nodes.back();
    added.origin.name = nodes_.names.make(name_of(*node.op));
    bool single = added.results.size() == 1 && added.results[0].is<Value>() &&
                  (!starts_with(node.op->target, "torch.ops.higher_order.") || node.origin.hop_single_return > 0);
    for_each_result(added,
                    [&](Value v) { graph.info(v).name = single ? added.origin.name : nodes_.names.make("getitem"); });
  }

  static std::string name_of(const Op& op) {
    if (starts_with(op.target, "torch.ops.higher_order.")) return op.target.substr(23);
    return std::string(op.schema.base());
  }

  Arg spelled(const Arg& arg, const Node& node, const GraphBody& from, const std::vector<CallArg>& values) {
    if (auto* within = arg.get<Subgraph>()) return body_of(*within, node);
    if (auto* v = arg.get<Value>()) {
      if (!*v) return arg;
      if (auto other = others_.find(v->id); other != others_.end()) return other->second;
      return nodes_.spelled(nodes_.tracer.arg(of_graph(values[v->id])));
    }
    if (auto* items = arg.get<Arg::Items>()) {
      Arg::Items out;
      for (const Arg& item : *items) out.push_back(spelled(item, node, from, values));
      return out;
    }
    return map_tensors<Value>(arg, [&](const Value& v) {
      return v ? nodes_.tracer.value(functional_.value_of(values[v.id].as<Tensor>())) : v;
    });
  }

  CallArg of_graph(const CallArg& arg) {
    return map_tensors<Tensor>(arg, [&](const Tensor& t) { return functional_.value_of(t); });
  }

  Arg body_of(const Subgraph& within, const Node& node) {
    Retraced made = retrace_graph(*within.body, policy_);
    require(made.written.empty(), node.op->target,
            ": its graph writes to what it is given, which the functional dialects",
            " cannot say; carry the tensor instead");
    return Subgraph{within.name, std::shared_ptr<const GraphBody>(made.graph.release())};
  }

  void outputs() {
    size_t next = 0;
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      if (!from_.inputs[i].get<Value>()) continue;
      const CallArg& handle = handles_[next++];
      auto* t = handle.get<Tensor>();
      if (!t || !*t) continue;
      const TensorMeta &came = functional_.as_it_came(*t), &now = t->meta();
      require(came.sizes == now.sizes && came.strides == now.strides, "the program changes the sizes or strides of ",
              quoted(from_.info(*from_.inputs[i].get<Value>()).name), " in place, from ", came, " to ", now,
              ", which the functional dialects cannot say; use a view of it (t instead of t_)");
      if (!functional_.was_written(*t)) continue;
      out_.written.push_back(i);
      graph().outputs.emplace_back(nodes_.tracer.value(functional_.value_of(*t)));
    }
    for (const Arg& output : from_.outputs) {
      auto* v = output.get<Value>();
      if (v && *v && others_.contains(v->id)) graph().outputs.emplace_back(others_[v->id]);
      else if (output.is<Subgraph>()) graph().outputs.push_back(output);
      else graph().outputs.push_back(nodes_.spelled(nodes_.tracer.arg(of_graph(argument(output, from_, values_)))));
    }
  }

  const GraphBody& from_;
  const Policy& policy_;
  Retraced out_;
  NodeTracer nodes_{out_.graph.body(), policy_};
  FunctionalTracer functional_{nodes_, policy_};
  std::vector<CallArg> values_;                                   // of the old graph: handles and numbers
  std::unordered_map<ValueId, Value> others_;                     // tokens and objects
  std::unordered_map<const GraphBody*, std::vector<bool>> read_;  // which values nodes read
  std::vector<CallArg> handles_;                                  // of the inputs that are values
  std::vector<sym::Replacement> same_;                            // sizes of the new graph that the old one names
  std::unordered_map<SymInt, SymInt> named_;                      // likewise, where a call became an expression
};

// Arguments that are expressions become values that nodes compute.
bool has_expressions(const GraphBody& graph) {
  auto symbolic = [](const Arg& arg) {
    if (auto* e = arg.get<SymInt>()) return !e->is_int() && !e->is(sym::Kind::real) && !e->is(sym::Kind::boolean);
    if (auto* sizes = arg.get<Sizes>())
      return std::any_of(sizes->begin(), sizes->end(), [](SymInt e) { return !e.is_int(); });
    return false;
  };
  std::function<bool(const Arg&)> any = [&](const Arg& arg) {
    if (auto* items = arg.get<Arg::Items>()) return std::any_of(items->begin(), items->end(), any);
    return symbolic(arg);
  };
  if (std::any_of(graph.outputs.begin(), graph.outputs.end(), any)) return true;
  for (const Node& node : graph.nodes)
    if (std::any_of(node.args.begin(), node.args.end(), any)) return true;
  return false;
}

}  // namespace

bool is_normalized_first(const GraphBody& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op->traits.control == Control::autocast_region || node.op == &batch_entry.op() ||
        node.op == &dual_entry.op())
      return true;
    for (const Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>(); within && is_normalized_first(*within->body)) return true;
  }
  return false;
}

Retraced retrace_graph(const GraphBody& from, const Policy& policy) {
  Retraced out = Retracer(from, policy).run();
  if (has_expressions(out.graph.body())) {
    std::vector<std::string> names;
    for (const ValueInfo& info : out.graph->values) names.push_back(info.name);
    Graph spelled = spell_sizes(out.graph.body(), registry());
    std::unordered_map<std::string, Value> by_name;
    for (size_t i = 0; i < spelled->values.size(); ++i)
      by_name[spelled->values[i].name] = Value{static_cast<ValueId>(i)};
    for (Value& v : out.map)
      if (v) {
        auto at = by_name.find(names[v.id]);
        v = at == by_name.end() ? Value{} : at->second;
      }
    out.graph = std::move(spelled);
  }
  return out;
}

}  // namespace tenon::dialect
