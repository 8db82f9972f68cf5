// The nodes of a program, called one after another; control flow with graphs that are made pure first.
#include <algorithm>

#include "tenon/aot/functionalizer.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/random.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/recorded.h"

namespace tenon {
namespace {

template <class F>
void for_each_expr(const std::vector<BasicArg<TensorMeta>>& metas, F&& f) {
  for (const auto& each : metas) {
    if (auto* number = each.get<SymInt>()) f(*number);
    for_each_tensor(each, [&](const TensorMeta& meta) {
      for (const Sizes* list : {&meta.sizes, &meta.strides})
        for (SymInt e : *list) f(e);
      f(meta.offset);
    });
  }
}

TensorMeta substituted(TensorMeta meta, const std::vector<sym::Replacement>& by) {
  for (Sizes* list : {&meta.sizes, &meta.strides})
    for (SymInt& e : *list) e = sym::substitute(e, by);
  meta.offset = sym::substitute(meta.offset, by);
  return meta;
}

template <class T, class F>
BasicArg<T> substituted(const BasicArg<T>& arg, const std::vector<sym::Replacement>& by, F&& tensor) {
  if (auto* number = arg.template get<SymInt>()) return sym::substitute(*number, by);
  if (auto* list = arg.template get<Sizes>()) {
    Sizes out;
    for (SymInt e : *list) out.push_back(sym::substitute(e, by));
    return out;
  }
  return map_tensors<T>(arg, tensor);
}

bool has_graphs(const Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.is<Subgraph>(); });
}

/// A graph without writes, and what it leaves in those of its inputs that it wrote to.
struct Pure {
  Graph graph;
  std::vector<Value> left;  // by input; none: it did not write to it
  Value state;              // that random operators in it draw from, no input yet; none where there are none
  Value next_state;         // for the next round
};

Pure purified(const GraphBody& body) {
  Pure out;
  GraphBody& graph = out.graph.body();
  graph.shapes = body.shapes;
  graph.single_tensor_return = body.single_tensor_return;
  Functionalizer inside(graph);
  std::vector<CallArg> values(body.values.size());
  std::vector<Tensor> came;
  for (const Arg& input : body.inputs) {
    Value v = input.as<Value>();
    ValueInfo info = body.info(v);
    info.producer = no_id;
    Value made = add_value(graph, std::move(info));
    graph.inputs.emplace_back(made);
    came.push_back(inside.fresh(inside.tracer.tensor(made)));
    values[v.id] = came.back();
  }
  RandomScope random([&]() -> Tensor {
    if (!out.state) out.state = add_value(graph, {.name = "rng_state", .meta = make_meta(DType::i64, {2})});
    return inside.fresh(inside.tracer.tensor(out.state));
  });
  ShapesScope shapes(&graph.shapes);
  DispatchScope scope(&inside);
  inside.replay(body, values);
  for (const Arg& output : body.outputs) {
    auto* v = output.get<Value>();
    if (!v || !*v) graph.outputs.push_back(output);
    else if (auto* t = values[v->id].get<Tensor>()) graph.outputs.emplace_back(inside.tracer.value(inside.read(*t)));
    else graph.outputs.emplace_back(values[v->id].as<SymInt>());
  }
  if (out.state)
    out.next_state = inside.tracer.value(inside.read(add(inside.fresh(inside.tracer.tensor(out.state)), 1)));
  for (const Tensor& t : came)
    out.left.push_back(inside.find(t).memory->version > 0 ? inside.tracer.value(inside.read(t)) : Value{});
  return out;
}

/// Graphs that draw random numbers get a state of their own as one more operand: a loop carries it on from round to
/// round, scans and maps have one for each row.
struct OwnState {
  size_t list = 0;       // the argument it is appended to
  size_t operand = 0;    // its place among the operands of the graphs
  bool carried = false;  // from round to round
  bool by_row = false;
};
OwnState place_of_state(const Op& op, const CallArgs& args) {
  auto count = [&](size_t i) { return args.at(i).as<std::vector<Tensor>>().size(); };
  switch (op.traits.control) {
    case Control::choose: return {3, count(3)};
    case Control::repeat: return {2, count(2), true};
    case Control::map: return {1, count(1), false, true};
    case Control::scan: return {2, count(1) + count(2), false, true};
    case Control::none:
    case Control::grad_region:
    case Control::autocast_region: break;
  }
  fail_unsupported(text("random operators within ", op.target, " are not supported; draw the numbers before it"));
}

}  // namespace

bool Functionalizer::has_open_symbols(const KnownMetas& metas) const {
  bool open = false;
  for_each_expr(metas, [&](SymInt e) {
    if (!e.is_int() && !open)
      for (SymInt s : sym::symbols_of(e)) open = open || !told_.contains(s);
  });
  return open;
}

void Functionalizer::now_told(const KnownMetas& metas) {
  for_each_expr(metas, [&](SymInt e) {
    if (!e.is_int())
      for (SymInt s : sym::symbols_of(e)) told_.insert(s);
  });
}

void Functionalizer::settle(const TensorMeta& recorded, const TensorMeta& is) {
  auto same = [&](SymInt a, SymInt b) {
    if (!a.is_symbol() || a == b || told_.contains(a)) return;
    for (SymInt s : sym::symbols_of(b))
      if (s == a || (!told_.contains(s) && tracer.graph().shapes.ranges.find(s) == nullptr)) return;
    told_.insert(a);
    settled_.emplace_back(a, b);
  };
  for (size_t d = 0; d < std::min(recorded.rank(), is.rank()); ++d) same(recorded.sizes[d], is.sizes[d]);
  same(recorded.offset, is.offset);
}

void Functionalizer::settle_symbols(const Op& op, const CallArgs& args, KnownMetas& metas) {
  if (!op.def || !op.def->view) return;
  std::optional<Metas> made = infer(op, args);
  size_t before = settled_.size();
  for (size_t i = 0; made && i < std::min(metas.size(), made->values.size()); ++i) {
    std::vector<TensorMeta> is;
    for_each_tensor(made->values[i], [&](const TensorMeta& m) { is.push_back(m); });
    size_t next = 0;
    for_each_tensor(metas[i], [&](const TensorMeta& m) {
      if (next < is.size()) settle(m, is[next++]);
    });
  }
  if (settled_.size() == before) return;
  for (auto& meta : metas)
    meta = substituted(meta, settled_, [&](const TensorMeta& m) { return substituted(m, settled_); });
}

void Functionalizer::settle_symbols(const KnownMetas& metas, const CallResults& results) {
  for (size_t i = 0; i < std::min(metas.size(), results.size()); ++i) {
    std::vector<TensorMeta> is;
    for_each_tensor(results[i], [&](const Tensor& t) {
      if (t) is.push_back(t.meta());
    });
    size_t next = 0;
    for_each_tensor(metas[i], [&](const TensorMeta& m) {
      if (next < is.size()) settle(m, is[next++]);
    });
  }
}

void Functionalizer::replay(const GraphBody& from, std::vector<CallArg>& values) {
  for (const Arg& input : from.inputs) {
    auto* v = input.get<Value>();
    if (!v || !*v) continue;
    const ValueInfo& info = from.info(*v);
    KnownMetas given;
    if (info.type == ValueType::tensor) given.emplace_back(info.meta);
    else given.emplace_back(info.expr);
    now_told(given);
  }
  for (const Node& node : from.nodes) {
    CallArgs args;
    for (const Arg& a : node.args) {
      if (auto* v = a.get<Value>()) args.push_back(*v ? values[v->id] : CallArg());
      else
        args.push_back(
            map_tensors<Tensor>(a, [&](const Value& v) { return v ? values[v.id].as<Tensor>() : Tensor(); }));
    }
    std::vector<BasicArg<TensorMeta>> metas = recorded_metas(from, node);
    require_as_said(node, from, values, args);
    if (!settled_.empty()) {
      for (CallArg& arg : args) arg = substituted(arg, settled_, [](const Tensor& t) { return t; });
      for (auto& meta : metas)
        meta = substituted(meta, settled_, [&](const TensorMeta& m) { return substituted(m, settled_); });
    }
    bool open = has_open_symbols(metas);
    if (open) settle_symbols(*node.op, args, metas);
    GradMode grad(node.grad_enabled);
    tracer.metadata = node.origin.metadata;
    require_given(*node.op, args);
    CallResults results =
        has_graphs(node) ? control(*node.op, std::move(args), metas) : execute(*node.op, std::move(args), &metas);
    tracer.metadata = {};
    if (open) settle_symbols(metas, results);
    now_told(metas);
    keep_results(node, results, values);
  }
}

// What one of the graphs of a choice writes to comes out of all of them, and is written when the choice is made.
CallResults Functionalizer::control(const Op& op, CallArgs args, KnownMetas metas) {
  std::vector<Pure> graphs;
  for (const CallArg& arg : args)
    if (auto* graph = arg.get<Subgraph>()) graphs.push_back(purified(*graph->body));
  bool draws =
      std::any_of(graphs.begin(), graphs.end(), [](const Pure& pure) { return static_cast<bool>(pure.state); });
  OwnState own;
  if (draws) {
    own = place_of_state(op, args);
    auto& list = *args[own.list].get<std::vector<Tensor>>();
    list.push_back(drawn_states(own.by_row ? Sizes{list.at(0).sizes()[0]} : Sizes{}));
    for (Pure& pure : graphs) {
      GraphBody& graph = pure.graph.body();
      if (!pure.state) pure.state = add_value(graph, {.name = "rng_state", .meta = make_meta(DType::i64, {2})});
      auto at = static_cast<ptrdiff_t>(own.operand);
      graph.inputs.insert(graph.inputs.begin() + at, Arg(pure.state));
      pure.left.insert(pure.left.begin() + at, Value{});
    }
    if (own.carried) {
      Pure& body = graphs.back();
      body.graph->outputs.emplace_back(body.next_state ? body.next_state : body.state);
      metas.emplace_back(make_meta(DType::i64, {2}));
    }
  }
  std::vector<Tensor> operands;
  for (const CallArg& arg : args)
    if (auto* list = arg.get<std::vector<Tensor>>()) operands.insert(operands.end(), list->begin(), list->end());
  std::vector<bool> written(operands.size());
  for (const Pure& pure : graphs)
    for (size_t i = 0; i < operands.size(); ++i) written[i] = written[i] || pure.left.at(i);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!written[i]) continue;
    require(op.traits.control == Control::choose, op.target,
            ": its graph writes to what it is given, which is not supported in loops; carry the tensor instead");
    for (size_t k = 0; k < operands.size(); ++k)
      require(k == i || find(operands[k]).memory != find(operands[i]).memory, op.target,
              ": its graph writes to a tensor that shares memory with another one it is given, which is not supported");
    metas.emplace_back(make_meta(operands[i].dtype(), operands[i].sizes(), operands[i].meta().device));
  }
  size_t results = metas.size() - static_cast<size_t>(std::count(written.begin(), written.end(), true));
  size_t next = 0;
  CallArgs values;
  for (const CallArg& arg : args) {
    if (auto* graph = arg.get<Subgraph>()) {
      Pure& pure = graphs[next++];
      for (size_t i = 0; i < operands.size(); ++i)
        if (written[i]) pure.graph->outputs.emplace_back(pure.left[i] ? Arg(pure.left[i]) : pure.graph->inputs[i]);
      values.emplace_back(
          Subgraph{graph->name, std::shared_ptr<const GraphBody>(remove_dead_code(std::move(pure.graph)).release())});
    } else {
      values.push_back(map_tensors<Tensor>(arg, [&](const Tensor& t) { return read(t); }));
    }
  }
  CallResults made = tracer.append(op, std::move(values), std::move(metas));
  for (size_t i = 0, at = results; i < operands.size(); ++i)
    if (written[i]) write(operands[i], made[at++].as<Tensor>());
  made.resize(results - own.carried);
  for (CallArg& v : made) v = map_tensors<Tensor>(v, [&](const Tensor& t) { return fresh(t); });
  return made;
}

}  // namespace tenon
