#include "tenon/autograd/control.h"

#include <algorithm>

#include "tenon/autograd/reverse.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/flip.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/structural.h"
#include "tenon/ops/views.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

using Tensors = std::vector<Tensor>;
using Values = std::vector<Value>;

const Values& values_of(const Arg& list) { return list.as<Values>(); }

Tensor zeros(const TensorMeta& meta) { return full(meta.sizes, 0.0, kw("dtype", meta.dtype)); }

TensorMeta plain(const TensorMeta& meta) { return make_meta(meta.dtype, meta.sizes, meta.device); }
TensorMeta row_of(const TensorMeta& meta) {
  Sizes sizes;
  for (size_t d = 1; d < meta.rank(); ++d) sizes.push_back(meta.sizes[d]);
  return make_meta(meta.dtype, sizes, meta.device);
}
TensorMeta stacked(const TensorMeta& meta, SymInt rows) {
  Sizes sizes = {rows};
  for (SymInt s : meta.sizes) sizes.push_back(s);
  return make_meta(meta.dtype, sizes, meta.device);
}

/// A graph made by hand.
struct Builder {
  Graph graph;
  Tracer tracer{graph.body()};
  DispatchScope scope{&tracer};
  explicit Builder(const sym::ShapeEnv& shapes) { graph->shapes = shapes; }

  Tensor input(std::string name, const TensorMeta& meta) {
    return tracer.tensor(add_input(graph.body(), std::move(name), plain(meta)));
  }
  Tensors inputs(const std::string& name, const std::vector<TensorMeta>& metas) {
    Tensors out;
    for (const TensorMeta& meta : metas) out.push_back(input(name, meta));
    return out;
  }
  /// The nodes of another graph on these tensors; what it gives.
  Tensors append(const GraphBody& from, const Tensors& operands) {
    std::vector<Value> map(from.values.size());
    for (size_t i = 0; i < operands.size(); ++i) map[from.inputs[i].as<Value>().id] = tracer.value(operands[i]);
    auto moved = [&](const Value& v) { return v ? map[v.id] : v; };
    for (Node node : from.nodes) {
      for (Arg& arg : node.args) arg = map_tensors<Value>(arg, moved);
      for (Arg& result : node.results)
        for_each_tensor(result, [&](Value& v) {
          if (v) v = map[v.id] = add_value(graph.body(), from.info(v));
        });
      add_node(graph.body(), std::move(node));
    }
    Tensors out;
    for (const Arg& output : from.outputs) out.push_back(tracer.tensor(moved(output.as<Value>())));
    return out;
  }
  void give(const Tensors& results) {
    for (const Tensor& t : results) graph->outputs.emplace_back(tracer.value(t));
  }
  Subgraph finish(const std::string& name) {
    return {name, std::shared_ptr<const GraphBody>(remove_dead_code(std::move(graph)).release())};
  }
};

/// Forward and backward of a graph: its inputs, then cotangents of the outputs that have one, to gradients of the
/// wanted inputs; zeros where nothing reaches them.
Graph gradient_graph(const GraphBody& body, const std::vector<bool>& wanted, const std::vector<bool>& arrives) {
  Graph made = prepare_for_gradients(body, wanted);
  GraphBody& graph = made.body();
  Values outputs, cotangents, inputs;
  for (size_t i = 0; i < arrives.size(); ++i) {
    if (!arrives[i]) continue;
    Value v = graph.outputs[i].as<Value>();
    Value cotangent = add_input(graph, "grad", plain(graph.info(v).meta));
    outputs.push_back(v);
    cotangents.push_back(cotangent);
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) inputs.push_back(graph.inputs[i].as<Value>());
  Values gradients = append_backward(graph, outputs, cotangents, inputs);
  Tracer tracer(graph);
  DispatchScope scope(&tracer);
  ShapesScope shapes(&graph.shapes);
  graph.outputs.clear();
  graph.single_tensor_return = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor g = gradients[i] ? tracer.tensor(gradients[i]) : zeros(graph.info(inputs[i]).meta);
    if (gradients[i] && graph.info(gradients[i]).producer == no_id) g = clone(g);  // a graph gives none of its inputs
    graph.outputs.emplace_back(tracer.value(g));
  }
  return remove_dead_code(std::move(made));
}

/// One control node through which gradients go back.
class Through {
 public:
  Through(const Node& node, const Tensors& grads, Tracer& tracer, const std::function<bool(Value)>& wanted)
      : node_(node), grads_(grads), tracer_(tracer), wanted_(wanted) {}

  std::vector<OperandGradient> choose() {
    const Values& operands = values_of(node_.args[3]);
    std::vector<bool> wanted = wanted_of(operands), arrives = arriving(node_.results.size());
    std::vector<BasicArg<TensorMeta>> metas;
    for (Value v : chosen(operands, wanted)) metas.emplace_back(plain(meta(v)));
    Tensors given = tensors(operands), arrived = present(0, grads_.size());
    given.insert(given.end(), arrived.begin(), arrived.end());
    CallArgs args = {tracer_.call_arg(node_.args[0])};
    for (size_t at : {size_t{1}, size_t{2}})
      args.emplace_back(
          Subgraph{name(at), std::shared_ptr<const GraphBody>(gradient_graph(body(at), wanted, arrives).release())});
    args.emplace_back(given);
    return paired(chosen(operands, wanted), call(*node_.op, std::move(args), metas), 0);
  }

  std::vector<OperandGradient> map() {
    const Values &mapped = values_of(node_.args[1]), &captured = values_of(node_.args[2]);
    std::vector<bool> mapped_wanted = wanted_of(mapped), captured_wanted = wanted_of(captured);
    std::vector<bool> wanted = mapped_wanted;
    wanted.insert(wanted.end(), captured_wanted.begin(), captured_wanted.end());
    Graph gradient = gradient_graph(body(0), wanted, arriving(node_.results.size()));
    Values to_rows = chosen(mapped, mapped_wanted), to_sums = chosen(captured, captured_wanted);

    Subgraph graph = [&] {
      Builder inside(gradient->shapes);
      Tensors sums = inside.inputs("accumulated", metas_of(to_sums)),
              rows = inside.inputs("row", rows_of(tensors(mapped)));
      Tensors arrived = inside.inputs("grad", rows_of(present(0, grads_.size())));
      Tensors kept = inside.inputs("captured", metas_of(captured));
      Tensors made = inside.append(gradient.body(), joined(rows, kept, arrived));
      Tensors give;
      for (size_t i = 0; i < to_sums.size(); ++i) give.push_back(sums[i] + made[to_rows.size() + i]);
      give.insert(give.end(), made.begin(), made.begin() + static_cast<ptrdiff_t>(to_rows.size()));
      inside.give(give);
      return inside.finish(name(0));
    }();

    Tensors over = joined(tensors(mapped), present(0, grads_.size()));
    std::vector<BasicArg<TensorMeta>> metas;
    for (Value v : to_sums) metas.emplace_back(plain(meta(v)));
    for (Value v : to_rows) metas.emplace_back(plain(meta(v)));
    CallResults results = to_sums.empty()
                              ? call(map_rows.op(), {graph, over, tensors(captured)}, metas)
                              : call(scan_rows.op(), {graph, zeros_like_all(to_sums), over, tensors(captured)}, metas);
    std::vector<OperandGradient> out = paired(to_sums, results, 0), more = paired(to_rows, results, to_sums.size());
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  // The last results are what was carried into each step: prepare_control has put them there.
  std::vector<OperandGradient> scan() {
    const Values &carried = values_of(node_.args[1]), &scanned = values_of(node_.args[2]);
    size_t saved = grads_.size() - carried.size();
    Tensors before;
    for (size_t i = 0; i < carried.size(); ++i) before.push_back(tracer_.tensor(node_.results[saved + i].as<Value>()));
    std::vector<bool> arrives = arriving(grads_.size());
    std::fill(arrives.begin() + static_cast<ptrdiff_t>(saved), arrives.end(), false);
    Tensors last(grads_.begin(), grads_.begin() + static_cast<ptrdiff_t>(carried.size()));
    return backwards(body(0), name(0), carried, before, last, present(carried.size(), saved), arrives, scanned,
                     values_of(node_.args[3]), false);
  }

  // Each round gives what it carries: its gradient comes from the next round and from the result.
  std::vector<OperandGradient> repeat() {
    const Values& carried = values_of(node_.args[2]);
    Tensors before;
    for (size_t i = 0; i < carried.size(); ++i) {
      Tensor start = unsqueeze(tracer_.tensor(carried[i]), 0);
      Tensor all = cat(Tensors{start, tracer_.tensor(node_.results[i].as<Value>())}, 0);
      before.push_back(slice(all, 0, 0, tracer_.tensor(node_.results[i].as<Value>()).size(0)));
    }
    return backwards(body(1), name(1), carried, before, Tensors(carried.size()), {}, arriving(carried.size()), {},
                     values_of(node_.args[3]), true);
  }

 private:
  /// The steps of a scan in reverse. `before`: what was carried into each, stacked; `last`: gradients of what was
  /// carried in the end; `arrived`: of what each step gave, stacked; `stacks`: what is carried is also given.
  std::vector<OperandGradient> backwards(const GraphBody& body, const std::string& name, const Values& carried,
                                         const Tensors& before, const Tensors& last, Tensors arrived,
                                         std::vector<bool> arrives, const Values& scanned, const Values& captured,
                                         bool stacks) {
    std::vector<bool> carries, scanned_wanted = wanted_of(scanned), captured_wanted = wanted_of(captured);
    for (Value v : carried) carries.push_back(is_differentiable(meta(v).dtype));
    Values through = chosen(carried, carries), to_rows = chosen(scanned, scanned_wanted),
           to_sums = chosen(captured, captured_wanted);
    std::vector<bool> from_result = arrives;  // stacks: which of the carried have a gradient from outside
    for (size_t i = 0; i < carried.size(); ++i) arrives[i] = carries[i];
    if (stacks) arrived = present(0, carried.size());
    std::vector<bool> wanted = carries;
    wanted.insert(wanted.end(), scanned_wanted.begin(), scanned_wanted.end());
    wanted.insert(wanted.end(), captured_wanted.begin(), captured_wanted.end());
    arrives.resize(body.outputs.size(), false);
    Graph gradient = gradient_graph(body, wanted, arrives);

    Subgraph graph = [&] {
      Builder inside(gradient->shapes);
      Tensors carry = inside.inputs("grad_carried", metas_of(through)),
              sums = inside.inputs("accumulated", metas_of(to_sums));
      Tensors states = inside.inputs("carried", rows_of(before)),
              rows = inside.inputs("row", rows_of(tensors(scanned)));
      Tensors given = inside.inputs("grad", rows_of(arrived)), kept = inside.inputs("captured", metas_of(captured));
      Tensors cotangents = carry;
      if (stacks)
        for (size_t i = 0, k = 0, g = 0; i < carried.size(); ++i) {
          if (carries[i] && from_result[i]) cotangents[k] = carry[k] + given[g];
          k += carries[i];
          g += from_result[i];
        }
      Tensors made =
          inside.append(gradient.body(), joined(joined(states, rows, kept), cotangents, stacks ? Tensors() : given));
      auto at = [&](size_t i) { return made.begin() + static_cast<ptrdiff_t>(i); };
      Tensors give(at(0), at(through.size()));
      for (size_t i = 0; i < to_sums.size(); ++i) give.push_back(sums[i] + made[through.size() + to_rows.size() + i]);
      give.insert(give.end(), at(through.size()), at(through.size() + to_rows.size()));
      inside.give(give);
      return inside.finish(name);
    }();

    Tensors begin, over;
    for (size_t i = 0; i < carried.size(); ++i)
      if (carries[i]) begin.push_back(last[i] ? Tensor(clone(last[i])) : zeros(meta(carried[i])));
    for (Value v : to_sums) begin.push_back(zeros(meta(v)));
    for (const Tensor& t : joined(before, tensors(scanned), arrived)) over.push_back(flip(t, Sizes{0}));
    std::vector<BasicArg<TensorMeta>> metas;
    for (const Values* list : {&through, &to_sums, &to_rows})
      for (Value v : *list) metas.emplace_back(plain(meta(v)));
    CallResults results = call(scan_rows.op(), {graph, begin, over, tensors(captured)}, metas);
    std::vector<OperandGradient> out = paired(through, results, 0), more = paired(to_sums, results, through.size());
    out.insert(out.end(), more.begin(), more.end());
    for (size_t i = 0; i < to_rows.size(); ++i)
      out.push_back({to_rows[i], flip(results[through.size() + to_sums.size() + i].as<Tensor>(), Sizes{0})});
    return out;
  }

  const GraphBody& body(size_t at) const { return *node_.args[at].as<Subgraph>().body; }
  std::string name(size_t at) const { return node_.args[at].as<Subgraph>().name + "_grad"; }
  TensorMeta meta(Value v) const { return tracer_.tensor(v).meta(); }
  Tensors tensors(const Values& values) const {
    Tensors out;
    for (Value v : values) out.push_back(tracer_.tensor(v));
    return out;
  }
  std::vector<TensorMeta> metas_of(const Values& values) const {
    std::vector<TensorMeta> out;
    for (Value v : values) out.push_back(meta(v));
    return out;
  }
  static std::vector<TensorMeta> rows_of(const Tensors& list) {
    std::vector<TensorMeta> out;
    for (const Tensor& t : list) out.push_back(row_of(t.meta()));
    return out;
  }
  Tensors zeros_like_all(const Values& values) const {
    Tensors out;
    for (Value v : values) out.push_back(zeros(meta(v)));
    return out;
  }
  static Tensors joined(Tensors a, const Tensors& b, const Tensors& c) {
    a.insert(a.end(), b.begin(), b.end());
    a.insert(a.end(), c.begin(), c.end());
    return a;
  }
  static Tensors joined(Tensors a, const Tensors& b) { return joined(std::move(a), b, {}); }
  std::vector<bool> wanted_of(const Values& operands) const {
    std::vector<bool> out;
    for (Value v : operands) out.push_back(is_differentiable(meta(v).dtype) && wanted_(v));
    return out;
  }
  static Values chosen(const Values& values, const std::vector<bool>& which) {
    Values out;
    for (size_t i = 0; i < values.size(); ++i)
      if (which[i]) out.push_back(values[i]);
    return out;
  }
  std::vector<bool> arriving(size_t count) const {
    std::vector<bool> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<bool>(grads_[i]);
    return out;
  }
  Tensors present(size_t begin, size_t end) const {
    Tensors out;
    for (size_t i = begin; i < end; ++i)
      if (grads_[i]) out.push_back(grads_[i]);
    return out;
  }
  CallResults call(const Op& op, CallArgs args, const std::vector<BasicArg<TensorMeta>>& metas) {
    return tracer_.append(op, std::move(args), metas);
  }
  static std::vector<OperandGradient> paired(const Values& operands, const CallResults& results, size_t first) {
    std::vector<OperandGradient> out;
    for (size_t i = 0; i < operands.size(); ++i) out.push_back({operands[i], results[first + i].as<Tensor>()});
    return out;
  }

  const Node& node_;
  const Tensors& grads_;
  Tracer& tracer_;
  const std::function<bool(Value)>& wanted_;
};

// The body gives what was carried into it, too.
void prepare_scan(const Node& node, Replay& replay) {
  GraphBody& graph = replay.graph.body();
  NodeId id = replay.node(node);
  const Subgraph& before = graph.nodes[id].args[0].as<Subgraph>();
  auto body = std::make_shared<GraphBody>(*before.body);
  Tracer tracer(*body);
  DispatchScope scope(&tracer);
  std::string name = before.name;
  const Values carried = values_of(graph.nodes[id].args[1]);
  SymInt rows = graph.info(values_of(graph.nodes[id].args[2]).at(0)).meta.sizes[0];
  for (size_t i = 0; i < carried.size(); ++i) {
    Tensor state = tracer.tensor(body->inputs[i].as<Value>());
    body->outputs.emplace_back(tracer.value(clone(state)));
    Value kept = add_value(graph, {.name = graph.info(carried[i]).name + "_kept",
                                   .meta = stacked(graph.info(carried[i]).meta, rows),
                                   .producer = id});
    graph.nodes[id].results.emplace_back(kept);
  }
  graph.nodes[id].args[0] = Subgraph{name, body};
}

// What is carried, round by round, behind what it begins as: the last of these is the result.
void prepare_repeat(const Node& node, Replay& replay) {
  GraphBody& graph = replay.graph.body();
  Tracer tracer(graph);
  tracer.metadata = node.origin.metadata;
  tracer.phase = node.phase;
  GradMode mode(node.grad_enabled);
  DispatchScope scope(&tracer);
  ShapesScope shapes(&graph.shapes);
  SymInt rounds = graph.shapes.fresh_unbacked();
  CallArgs args;
  for (const Arg& arg : node.args) args.push_back(tracer.call_arg(replay.moved(arg)));
  std::vector<BasicArg<TensorMeta>> metas;
  const Tensors carried = args[2].as<Tensors>();
  for (const Tensor& t : carried) metas.emplace_back(stacked(t.meta(), rounds));
  CallResults made = tracer.append(repeat_stacked.op(), std::move(args), std::move(metas));
  size_t i = 0;
  for_each_result(node, [&](Value v) {
    Tensor all = cat(Tensors{unsqueeze(carried[i], 0), made[i].as<Tensor>()}, 0);
    replay.map[v.id] = tracer.value(select(all, 0, rounds));
    ++i;
  });
}

}  // namespace

bool is_control(const Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.is<Subgraph>(); });
}

void prepare_control(const Node& node, Replay& replay) {
  switch (node.op->traits.control) {
    case Control::scan: return prepare_scan(node, replay);
    case Control::repeat: return prepare_repeat(node, replay);
    case Control::choose:
    case Control::map:
    case Control::none:
    case Control::grad_region:
    case Control::autocast_region: replay.node(node); return;
  }
  unreachable();
}

std::vector<OperandGradient> through_control(const Node& node, const std::vector<Tensor>& grads, Tracer& tracer,
                                             const std::function<bool(Value)>& wanted) {
  Through through(node, grads, tracer, wanted);
  switch (node.op->traits.control) {
    case Control::choose: return through.choose();
    case Control::map: return through.map();
    case Control::scan: return through.scan();
    case Control::none:
      if (node.op == &repeat_stacked.op()) return through.repeat();
      break;
    case Control::repeat:
    case Control::grad_region:
    case Control::autocast_region: break;
  }
  expect(false, node.op->name(), " was not prepared for gradients");
  unreachable();
}

}  // namespace tenon
