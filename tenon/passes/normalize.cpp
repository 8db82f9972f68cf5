#include "tenon/passes/normalize.h"

#include <optional>
#include <set>

#include "tenon/autograd/forward.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/printing.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/splitting.h"
#include "tenon/ops/structural.h"
#include "tenon/ops/views.h"
#include "tenon/passes/autocast.h"
#include "tenon/passes/batches.h"
#include "tenon/passes/prints.h"
#include "tenon/passes/stands_for.h"
#include "tenon/passes/wrapped_calls.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

class Normalizer {
 public:
  explicit Normalizer(const GraphBody& from) : replay_(from) {}

  Graph run(const GraphBody& from) {
    refuse_unknown(from);
    replay_.inputs();
    nodes(from, replay_.map, true, false);
    for (const Arg& output : from.outputs) replay_.graph->outputs.push_back(translated(output, from, replay_.map));
    return std::move(replay_.graph);
  }

 private:
  using Map = std::vector<Value>;  // values of the body being read -> values of the new graph

  // All of them at once: a user who meets one missing operator wants to know of the others.
  static void collect_unknown(const GraphBody& graph, std::set<std::string>& names) {
    for (const Node& node : graph.nodes) {
      if (node.op->traits.unknown) names.insert(node.op->target);
      if (auto missing = missing_operator(node)) names.insert(*missing);
      for (const Arg& arg : node.args)
        if (const Subgraph* sub = arg.get<Subgraph>()) collect_unknown(*sub->body, names);
    }
  }
  static void refuse_unknown(const GraphBody& graph) {
    std::set<std::string> names;
    collect_unknown(graph, names);
    require(names.empty(),
            names.size() == 1 ? "an operator is not supported: " : text(names.size(), " operators are not supported: "),
            join(std::vector<std::string>(names.begin(), names.end()), ", "));
  }

  // A tensor without a value in the new graph is one of a batch, or with a direction.
  static Value in_new_graph(Value v, const ValueInfo& info, const Map& map) {
    if (info.type == ValueType::tensor && !map[v.id])
      fail("the tensor ", quoted(info.name),
           " is one of a batch, or with a direction, and used where that has not ended");
    return map[v.id];
  }

  // An argument in terms of the new graph: numbers that the graph computes become expressions.
  Arg translated(const Arg& arg, const GraphBody& from, const Map& map) {
    if (auto* v = arg.get<Value>()) {
      if (!*v) return {};
      const ValueInfo& info = from.values[v->id];
      if (info.type == ValueType::integer || info.type == ValueType::floating || info.type == ValueType::boolean)
        return info.expr;
      return in_new_graph(*v, info, map);
    }
    if (auto* mapping = arg.get<Arg::Mapping>()) {
      Arg::Mapping out{mapping->keys, {}};
      for (const Arg& item : mapping->values) out.values.push_back(translated(item, from, map));
      return out;
    }
    if (auto* items = arg.get<Arg::Items>()) {
      Arg::Items out;
      bool numbers = true;
      for (const Arg& item : *items) {
        out.push_back(translated(item, from, map));
        numbers = numbers && out.back().is<SymInt>();
      }
      if (!numbers) return out;
      Sizes sizes;
      for (const Arg& item : out) sizes.push_back(*item.get<SymInt>());
      return sizes;
    }
    return map_tensors<Value>(arg, [&](const Value& v) { return v ? in_new_graph(v, from.info(v), map) : v; });
  }

  void nodes(const GraphBody& from, Map& map, bool grad, bool autocast) {
    BatchReader batches(BatchReader::Of::samples), duals(BatchReader::Of::directions);
    for (const Node& node : from.nodes) {
      if (batches.ends_before(node)) mapped(batches.take(), from, map, grad, autocast);
      if (batches.takes(node)) continue;
      if (duals.ends_before(node)) moved(duals.take(), from, map, grad, autocast);
      if (duals.takes(node)) continue;
      switch (node.op->traits.control) {
        case Control::none:
          if (!other_region(node, from, map, grad, autocast)) break;
          continue;
        case Control::grad_region:
          inlined(node, from, map, *node.args.at(0).get<bool>() /* nested regions set it anew */, autocast, 1, 2);
          continue;
        case Control::autocast_region: inlined(node, from, map, grad, autocast_within(node, autocast), 4, 5); continue;
        case Control::choose: control(node, from, map, grad, autocast, {1, 2}, {3}); continue;
        case Control::repeat: control(node, from, map, grad, autocast, {0, 1}, {2, 3}); continue;
        case Control::map: control(node, from, map, grad, autocast, {0}, {1, 2}); continue;
        case Control::scan: control(node, from, map, grad, autocast, {0}, {1, 2, 3}); continue;
      }
      bool on_sizes = node.op->kind == OpKind::symbolic || node.op->traits.measures != Measure::none;
      bool asserts = node.op->traits.asserts;
      if (on_sizes || asserts) {
        if (asserts && node.op->schema.find("self") >= 0) assertion(node, from, map);
        else if (asserts && node.op->schema.find("a") >= 0) metadata(node, from);
        continue;  // sizes are expressions now; ranges are in the shape environment
      }
      Node copy = node;
      for (Arg& arg : copy.args) arg = translated(arg, from, map);
      copy.grad_enabled = grad && node.grad_enabled;
      count_pieces(copy, from);
      results(copy, from, map);
      if (autocast) convert_for_autocast(replay_.graph.body(), copy);
      add_node(replay_.graph.body(), std::move(copy));
    }
    if (batches.reading()) mapped(batches.take(), from, map, grad, autocast);
    if (duals.reading()) moved(duals.take(), from, map, grad, autocast);
  }

  // A value of the new graph in place of one that is no longer computed.
  void stand_for(const Node& node, const GraphBody& from, Map& map, Value said, Value made) {
    require(static_cast<bool>(made), node.op->target, ": its result ", quoted(from.info(said).name),
            " is described as ", from.info(said).type == ValueType::tensor ? "a tensor" : "a number",
            ", but it is None");
    require_stands_for(node, "its result", from.info(said), replay_.graph->info(made));
    map[said.id] = made;
  }
  static Value only_result(const Node& node) {
    const Value* v = node.results.size() == 1 ? node.results[0].get<Value>() : nullptr;
    require(v && *v, node.op->target, ": expected one tensor as its result");
    return *v;
  }
  // The tensor that a node is given, in terms of the graph being read.
  static Value tensor_given(const Node& node, size_t at, const GraphBody& from) {
    const Value* v = at < node.args.size() ? node.args[at].get<Value>() : nullptr;
    require(v && *v && from.info(*v).type == ValueType::tensor, node.op->target, ": expected a tensor as argument ", at,
            ", got ", at < node.args.size() ? to_text(from, node.args[at]) : "none");
    return *v;
  }

  static Sizes stacked(SymInt count, const Sizes& each) {
    Sizes out = {count};
    for (SymInt size : each) out.push_back(size);
    return out;
  }

  // The nodes of one sample, run for each of a batch.
  void mapped(const Batch& batch, const GraphBody& from, Map& map, bool grad, bool autocast) {
    if (batch.exits.empty()) return;  // nothing of it is used
    std::vector<Value> captured;
    GraphBody sample = batch.sample(from, captured);
    auto body = Normalizer(sample).body(sample, grad, autocast);
    GraphBody& graph = replay_.graph.body();
    Tracer tracer(graph);
    GradMode mode(grad && batch.entries[0]->grad_enabled);
    DispatchScope scope(&tracer);
    ShapesScope shapes(&graph.shapes);
    tracer.metadata = batch.entries[0]->origin.metadata;
    auto number = [&](const Arg& arg) {
      Arg made = translated(arg, from, map);
      auto* e = made.get<SymInt>();
      require(e != nullptr, "a batch: expected a number, got ", to_text(from, arg));
      return *e;
    };
    std::vector<Tensor> rows, with;
    for (const Node* entry : batch.entries) {
      SymInt dim = number(entry->args.at(1));
      Value batch_given = tensor_given(*entry, 0, from);
      Value one = only_result(*entry);
      require_stands_for(*entry, "its result", from.info(one), sample_of(*entry, from.info(batch_given), dim));
      Tensor x = tracer.tensor(map[batch_given.id]);
      rows.push_back(dim == SymInt(0) ? x : Tensor(movedim(x, Sizes{dim}, Sizes{0})));
    }
    for (Value v : captured) with.push_back(tracer.tensor(map[v.id]));
    SymInt count = rows[0].size(0);
    std::vector<BasicArg<TensorMeta>> metas;
    for (const Arg& output : body->outputs) {
      const TensorMeta& each = body->info(output.as<Value>()).meta;
      metas.emplace_back(make_meta(each.dtype, stacked(count, each.sizes), each.device));
    }
    CallResults made;
    if (!metas.empty())
      made = tracer.append(map_rows.op(), {Subgraph{text("sample_graph_", batches_++), body}, rows, with},
                           std::move(metas));
    size_t next = 0;
    for (const Node* exit : batch.exits) {
      SymInt dim = number(exit->args.at(3));
      Tensor all;
      if (batch.varies(exit->args.at(0))) {
        all = made[next++].as<Tensor>();
      } else {  // the same for every sample
        Tensor each = tracer.tensor(map[tensor_given(*exit, 0, from).id]);
        all = expand(unsqueeze(each, 0), stacked(count, each.sizes()));
      }
      if (dim != SymInt(0)) all = movedim(all, Sizes{0}, Sizes{dim});
      for_each_result(*exit, [&](Value v) { stand_for(*exit, from, map, v, tracer.value(all)); });
    }
  }

  // Nodes that compute with directions, and what these become.
  void moved(const Batch& duals, const GraphBody& from, Map& map, bool grad, bool autocast) {
    for (const Node* entry : duals.entries)
      for (size_t i : {size_t{0}, size_t{1}})
        require_stands_for(*entry, i == 0 ? "the tensor of" : "the direction of", from.info(only_result(*entry)),
                           from.info(tensor_given(*entry, i, from)));
    for (const Node* exit : duals.exits) {
      tensor_given(*exit, 0, from);
      for (const Arg& result : exit->results)
        require(result.is<Value>(), exit->op->target, ": expected tensors as its results");
    }
    std::vector<Value> captured;
    GraphBody still = duals.sample(from, captured);
    auto body = Normalizer(still).body(still, grad, autocast);
    for (const Node& node : body->nodes)
      if (node.op->writes())
        fail_unsupported(
            text("a jvp of a function that writes to a tensor is not supported yet, and it calls ", node.op->name()));
    Graph forward = push_forward(*body, duals.entries.size());
    auto given = [&](const Node* node, size_t at) { return map[tensor_given(*node, at, from).id]; };
    std::vector<Value> operands;
    for (const Node* entry : duals.entries) operands.push_back(given(entry, 0));
    for (Value v : captured) operands.push_back(map[v.id]);
    for (const Node* entry : duals.entries) operands.push_back(given(entry, 1));
    expect(operands.size() == forward->inputs.size(), "a graph of directions of another number of inputs");
    Map inside(forward->values.size());
    for (size_t i = 0; i < operands.size(); ++i) inside[forward->inputs[i].as<Value>().id] = operands[i];
    for (const Node& node : forward->nodes) {
      Node copy = node;
      for (Arg& arg : copy.args) arg = translated(arg, forward.body(), inside);
      copy.phase = Phase::forward;
      copy.grad_enabled = grad;
      results(copy, forward.body(), inside);
      add_node(replay_.graph.body(), std::move(copy));
    }
    Tracer tracer(replay_.graph.body());
    DispatchScope scope(&tracer);
    size_t next = 0, count = body->outputs.size();
    for (const Node* exit : duals.exits) {
      bool moves = duals.varies(exit->args.at(0));
      Value value = moves ? inside[forward->outputs[next].as<Value>().id] : given(exit, 0), tangent;
      if (moves)
        if (auto* v = forward->outputs[count + next++].get<Value>(); v && *v) tangent = inside[v->id];
      size_t which = 0;
      for_each_result(*exit, [&](Value v) {
        if (which++ > 0 && !tangent) tangent = tracer.value(zeros_like(tracer.tensor(value)));
        stand_for(*exit, from, map, v, which == 1 ? value : tangent);
      });
    }
    for (const Node* node : duals.passed) same(*node, from, map);
  }

  // Which nobody reads: tensors say theirs.
  static bool gives_a_dtype(const Op& op) {
    return op.schema.returns.size() == 1 && op.schema.returns[0].type.kind == TypeKind::dtype;
  }

  // What stands for another form, or for nothing. False: it is none of these.
  bool other_region(const Node& node, const GraphBody& from, Map& map, bool grad, bool autocast) {
    const Op* op = node.op;
    if (op == &called_region.op()) inlined(node, from, map, grad, autocast, 0, 2);
    else if (op == &packed_region.op()) inlined(node, from, map, grad, autocast, 0, 1);
    else if (op == &hinted_region.op() || op == &strict_region.op()) inlined(node, from, map, grad, autocast, 0, 1);
    else if (op == &repeat_stacked.op()) stacked_rounds(node, from, map, grad, autocast);
    else if (op == &associative_scan.op()) scan_of(node, from, map, grad, autocast);
    else if (is_wrapped_call(*op)) unwrapped(node, from, map, grad);
    else if (gives_a_dtype(*op)) return true;
    else if (op == &unwrapped_for_grad.op()) same(node, from, map);
    else if (op == &printed_call.op()) trace_print(replay_.graph.body(), here(node, from, map, grad));
    else return false;
    return true;
  }

  // How many pieces there are is what the file says, where their sizes do not tell.
  static void count_pieces(Node& node, const GraphBody& from) {
    if (node.op != &split_tensor.op() && node.op != &unsafe_split_tensor.op()) return;
    const auto* pieces = node.results.empty() ? nullptr : node.results[0].get<std::vector<Value>>();
    if (!pieces || pieces->empty()) return;
    size_t dim = normal_dim(node.args[2].as<SymInt>().as_int(), from.info(pieces->front()).meta.rank());
    Sizes lengths;
    bool symbolic = false;
    for (Value v : *pieces) {
      lengths.push_back(from.info(v).meta.sizes[dim]);
      symbolic = symbolic || !lengths.back().is_int();
    }
    if (!symbolic) return;
    node.op = &split_with_sizes.op();
    node.args[1] = lengths;
  }

  // What the graph says of its tensors is so when it runs: an assertion about it fails before that or never.
  static void metadata(const Node& node, const GraphBody& from) {
    GraphBody nowhere;
    CallArgs args;
    for (const Arg& arg : node.args) {
      auto* v = arg.get<Value>();
      if (v && *v && from.info(*v).type != ValueType::tensor) args.emplace_back(from.info(*v).expr);
      else
        args.push_back(map_tensors<Tensor>(
            arg, [&](const Value& each) { return each ? Tensor(from.info(each).meta, &nowhere, each.id) : Tensor(); }));
    }
    for (const CallArg& arg : args)
      if (arg.is<CallArg::Items>()) return;  // sizes computed one by one
    for (const Assertion& a : node.op->def->asserts(ArgsView(*node.op, args)))
      require(known(a.condition) != false, "an assertion of the program failed: ", a.message);
  }

  void same(const Node& node, const GraphBody& from, Map& map) {
    Value v = tensor_given(node, 0, from);
    for_each_result(node, [&](Value result) { stand_for(node, from, map, result, map[v.id]); });
  }

  Node here(const Node& node, const GraphBody& from, Map& map, bool grad) {
    Node out = node;
    for (Arg& arg : out.args) arg = translated(arg, from, map);
    out.grad_enabled = grad && node.grad_enabled;
    return out;
  }

  void unwrapped(const Node& node, const GraphBody& from, Map& map, bool grad) {
    Args made = unwrap_call(replay_.graph.body(), here(node, from, map, grad));
    for (size_t i = 0; i < node.results.size(); ++i) {  // that of an operator without results is None
      std::vector<Value> fresh;
      if (i < made.size()) for_each_tensor(made[i], [&](const Value& v) { fresh.push_back(v); });
      size_t next = 0;
      for_each_tensor(node.results[i], [&](const Value& v) {
        const size_t at = next++;
        if (!v) return;
        require(at < fresh.size(), node.op->target, ": more results than its operator gives");
        if (from.info(v).type == ValueType::token) map[v.id] = fresh[at];
        else stand_for(node, from, map, v, fresh[at]);
      });
    }
  }

  void assertion(const Node& node, const GraphBody& from, Map& map) {
    Node copy = node;
    for (Arg& arg : copy.args) arg = translated(arg, from, map);
    add_node(replay_.graph.body(), std::move(copy));
  }

  void results(Node& node, const GraphBody& from, Map& map) {
    for (Arg& result : node.results)
      for_each_tensor(result, [&](Value& v) {
        if (!v) return;
        Value fresh = add_value(replay_.graph.body(), from.values[v.id]);
        map[v.id] = fresh;
        v = fresh;
      });
  }

  static const GraphBody& body_of(const Node& node, size_t at) {
    const Subgraph* sub = at < node.args.size() ? node.args[at].get<Subgraph>() : nullptr;
    require(sub && sub->body, node.op->target, ": expected a graph as argument ", at);
    return *sub->body;
  }

  // The operands from an argument on: a list, or one by one.
  static std::vector<Arg> operands_of(const Node& node, size_t first, bool listed) {
    require(!listed || first < node.args.size(), node.op->target, ": expected a list of values as argument ", first);
    // What keywords say is said of the region, not given to it.
    size_t last = node.args.size() - std::min(node.origin.keywords.size(), node.args.size());
    if (!listed)
      return {node.args.begin() + static_cast<ptrdiff_t>(std::min(first, last)),
              node.args.begin() + static_cast<ptrdiff_t>(last)};
    const Arg& arg = node.args[first];
    if (auto* items = arg.get<Arg::Items>()) return *items;
    if (auto* values = arg.get<std::vector<Value>>()) return {values->begin(), values->end()};
    auto* sizes = arg.get<Sizes>();
    require(sizes, node.op->target, ": expected a list of values as argument ", first);
    std::vector<Arg> out;
    for (SymInt e : *sizes) out.emplace_back(e);
    return out;
  }

  // The body of a region in place of its call, given the positions of its graph and of its operands.
  void inlined(const Node& node, const GraphBody& from, Map& map, bool grad, bool autocast, size_t at, size_t first) {
    const GraphBody& body = body_of(node, at);
    Map inside(body.values.size());
    std::vector<Arg> operands =
        operands_of(node, first, node.op == &hinted_region.op() || node.op == &strict_region.op());
    require(operands.size() == body.inputs.size(), node.op->target, ": ", operands.size(), " operands for a graph of ",
            body.inputs.size(), " inputs");
    for (size_t i = 0; i < operands.size(); ++i) {
      const Value* placeholder = body.inputs[i].get<Value>();
      if (!placeholder) continue;
      const Value* operand = operands[i].get<Value>();
      if (operand && *operand && from.values[operand->id].type == ValueType::tensor) {
        require_stands_for(node, "the input", body.info(*placeholder), from.info(*operand));
        inside[placeholder->id] = map[operand->id];
      } else same_number(node, operands[i], from, body.info(*placeholder));
    }
    nodes(body, inside, grad, autocast);
    std::vector<Value> given;  // of the body
    for (const Arg& output : body.outputs) for_each_tensor(output, [&](const Value& v) { given.push_back(v); });
    size_t next = 0;
    for_each_result(node, [&](Value v) {
      require(next < given.size(), node.op->target, ": more results than its graph has outputs");
      Value output = given[next++];
      if (output && body.info(output).type != ValueType::tensor)
        require_stands_for(node, "its result", from.info(v), body.info(output));
      else stand_for(node, from, map, v, output ? inside[output.id] : output);
    });
  }

  // A number within a body goes by the expression that it is outside.
  static void same_number(const Node& node, const Arg& operand, const GraphBody& from, const ValueInfo& inside) {
    const Value* v = operand.get<Value>();
    auto* e = operand.get<SymInt>();
    std::optional<SymInt> outside = v && *v ? std::optional(from.info(*v).expr) : e ? std::optional(*e) : std::nullopt;
    require(outside && *outside == inside.expr, node.op->target, ": the number ", quoted(inside.name),
            " of its graph is ", inside.expr, ", but it gets ", to_text(from, operand),
            ", which is not supported yet; the program can be shown and converted");
  }

  // Control flow stays a node: its graphs are normalized, and take tensors alone. `graphs` and `lists` are the
  // positions of its graphs and of the lists of their operands.
  void control(const Node& node, const GraphBody& from, Map& map, bool grad, bool autocast,
               std::initializer_list<size_t> graphs, std::initializer_list<size_t> lists) {
    Node copy;
    copy.op = node.op;
    copy.origin = node.origin;
    copy.grad_enabled = grad && node.grad_enabled;
    copy.args.resize(*(lists.end() - 1) + 1);
    if (*graphs.begin() == 1) copy.args[0] = translated(node.args.at(0), from, map);  // the condition
    std::vector<Arg> all;
    bool carries = *(lists.end() - 1) == 3 && *graphs.begin() == 0;
    for (size_t at : lists) {
      std::vector<Arg> operands;
      if (at < node.args.size()) operands = operands_of(node, at, true);
      std::vector<Value> tensors;
      for (const Arg& operand : operands) {
        const Value* v = operand.get<Value>();
        if (v && *v && from.info(*v).type == ValueType::tensor) tensors.push_back(map[v->id]);
        else
          require(!carries || at != *lists.begin(), node.op->target,
                  ": a number that is carried from round to round is not supported yet; carry a tensor instead");
      }
      copy.args[at] = std::move(tensors);
      all.insert(all.end(), operands.begin(), operands.end());
    }
    for (size_t at : graphs) {
      const GraphBody& body = body_of(node, at);
      require(all.size() == body.inputs.size(), node.op->target, ": ", all.size(), " operands for a graph of ",
              body.inputs.size(), " inputs");
      for (size_t i = 0; i < all.size(); ++i)
        if (const Value* v = body.inputs[i].get<Value>(); v && body.info(*v).type != ValueType::tensor)
          same_number(node, all[i], from, body.info(*v));
      copy.args[at] = Subgraph{node.args[at].get<Subgraph>()->name, Normalizer(body).body(body, grad, autocast)};
    }
    copy.results = node.results;
    for (size_t at : graphs) {
      const GraphBody& body = body_of(node, at);
      bool condition = carries && graphs.size() == 2 && at == 0;
      require(body.outputs.size() == (condition ? 1 : node.results.size()), node.op->target, ": a graph that gives ",
              body.outputs.size(), " values for ", node.results.size(), " results");
    }
    for_each_result(node, [&](Value v) {
      require(from.info(v).type == ValueType::tensor, node.op->target, ": its result ", quoted(from.info(v).name),
              " is a number, which is not supported yet; give a tensor instead");
    });
    results(copy, from, map);
    add_node(replay_.graph.body(), std::move(copy));
  }

  // A loop whose results are what it carried, round after round.
  void stacked_rounds(const Node& node, const GraphBody& from, Map& map, bool grad, bool autocast) {
    std::vector<Arg> carried = operands_of(node, 2, true), all = carried;
    for (const Arg& operand : operands_of(node, 3, true)) all.push_back(operand);
    for (size_t at : {size_t{0}, size_t{1}}) {
      const GraphBody& inside = body_of(node, at);
      require(all.size() == inside.inputs.size(), node.op->target, ": ", all.size(), " operands for a graph of ",
              inside.inputs.size(), " inputs");
      for (size_t i = 0; i < all.size(); ++i) {
        const Value *given = all[i].get<Value>(), *wanted = inside.inputs[i].get<Value>();
        if (given && *given && wanted && *wanted)
          require_stands_for(node, "the input", inside.info(*wanted), from.info(*given));
      }
    }
    const GraphBody& step = body_of(node, 1);
    require(step.outputs.size() == carried.size() && node.results.size() == carried.size(), node.op->target,
            ": it carries ", carried.size(), " values, but its graph gives ", step.outputs.size(), " and it ",
            node.results.size());
    for (size_t i = 0; i < carried.size(); ++i) {
      const Value *made = step.outputs[i].get<Value>(), *kept = carried[i].get<Value>(),
                  *result = node.results[i].get<Value>();
      require(made && *made && kept && *kept && result && *result, node.op->target, ": expected tensors to carry");
      require_stands_for(node, "what its graph gives,", step.info(*made), from.info(*kept));
      require_stands_for(node, "one round of its result", sample_of(node, from.info(*result), 0), from.info(*kept));
    }
    control(node, from, map, grad, autocast, {0, 1}, {2, 3});
  }

  // A graph within: its inputs that are tensors, its nodes, its outputs.
  std::shared_ptr<const GraphBody> body(const GraphBody& from, bool grad, bool autocast) {
    for (const Arg& input : from.inputs) {
      const Value* v = input.get<Value>();
      if (!v || from.info(*v).type != ValueType::tensor) continue;
      replay_.map[v->id] = add_value(replay_.graph.body(), from.info(*v));
      replay_.graph->inputs.emplace_back(replay_.map[v->id]);
    }
    nodes(from, replay_.map, grad, autocast);
    for (const Arg& output : from.outputs) replay_.graph->outputs.push_back(translated(output, from, replay_.map));
    return replay_.graph.release();
  }

  // Its first row is what a scan over the others begins with; what is carried is also what each step gives.
  void scan_of(const Node& node, const GraphBody& from, Map& map, bool grad, bool autocast) {
    std::vector<Arg> scanned = operands_of(node, 1, true), captured = operands_of(node, 2, true);
    const GraphBody& combine = body_of(node, 0);
    require(combine.inputs.size() == 2 * scanned.size() + captured.size() && combine.outputs.size() == scanned.size(),
            node.op->target, ": operands that do not belong to its graph");
    auto input = [&](size_t i, const ValueInfo& is) {
      const Value* v = combine.inputs[i].get<Value>();
      require(v && *v, node.op->target, ": expected its graph to take tensors");
      require_stands_for(node, "the input", combine.info(*v), is);
    };
    auto given = [&](const Arg& operand) -> const ValueInfo& {
      const Value* v = operand.get<Value>();
      require(v && *v && from.info(*v).type == ValueType::tensor, node.op->target, ": expected tensors, got ",
              to_text(from, operand));
      return from.info(*v);
    };
    for (size_t i = 0; i < scanned.size(); ++i) {
      ValueInfo row = sample_of(node, given(scanned[i]), 0);
      input(i, row);
      input(scanned.size() + i, row);
      const Value* v = combine.outputs[i].get<Value>();
      require(v && *v, node.op->target, ": expected its graph to give tensors");
      require_stands_for(node, "what its graph gives,", combine.info(*v), row);
    }
    for (size_t i = 0; i < captured.size(); ++i) input(2 * scanned.size() + i, given(captured[i]));
    auto step = std::const_pointer_cast<GraphBody>(Normalizer(combine).body(combine, grad, autocast));
    for (size_t i = 0; i < scanned.size(); ++i) step->outputs.push_back(step->outputs[i]);
    GraphBody& graph = replay_.graph.body();
    Tracer tracer(graph);
    GradMode mode(grad && node.grad_enabled);
    DispatchScope scope(&tracer);
    ShapesScope shapes(&graph.shapes);
    tracer.metadata = node.origin.metadata;
    std::vector<Tensor> first, rows, others, begin;
    for (const Arg& arg : scanned) {
      Tensor x = tracer.tensor(map[arg.as<Value>().id]);
      rows.push_back(x);
      begin.push_back(select(x, 0, 0));
      first.push_back(slice(x, 0, 0, 1));
      others.push_back(slice(x, 0, 1, CallArg()));
    }
    std::vector<Tensor> with;
    for (const Arg& arg : captured) with.push_back(tracer.tensor(map[arg.as<Value>().id]));
    std::vector<BasicArg<TensorMeta>> metas;
    for (const Tensor& t : begin) metas.emplace_back(make_meta(t.dtype(), t.sizes(), t.meta().device));
    for (const Tensor& t : others) metas.emplace_back(make_meta(t.dtype(), t.sizes(), t.meta().device));
    CallResults made = tracer.append(
        scan_rows.op(), {Subgraph{node.args[0].get<Subgraph>()->name, step}, begin, others, with}, std::move(metas));
    size_t next = 0;
    for_each_result(node, [&](Value v) {
      require(next < scanned.size(), node.op->target, ": more results than it goes over tensors");
      Tensor rest = made[scanned.size() + next].as<Tensor>();
      stand_for(node, from, map, v, tracer.value(cat(std::vector<Tensor>{first[next], rest}, 0)));
      ++next;
    });
  }

  Replay replay_;
  size_t batches_ = 0;
};

}  // namespace

Graph normalize(const GraphBody& graph) {
  Graph out = Normalizer(graph).run(graph);
  verify(out.body());
  return out;
}

}  // namespace tenon
