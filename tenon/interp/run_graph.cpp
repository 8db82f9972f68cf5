#include "tenon/interp/run_graph.h"

#include <algorithm>

#include "tenon/interp/bind_symbols.h"
#include "tenon/interp/eager.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/views.h"
#include "tenon/tensor/ones.h"

namespace tenon::interp {
namespace {

SymInt evaluated_int(SymInt e, const sym::Bindings& symbols) {
  return e.is_int() ? e : SymInt(sym::evaluate(e, symbols));
}

class Run {
 public:
  Run(const GraphBody& graph, std::span<const CallArg> inputs, const GraphRun& options,
      const sym::Bindings* around = nullptr)
      : graph_(graph), options_(options), values_(graph.values.size()), last_use_(graph.values.size(), 0) {
    std::vector<std::string> names;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      const Value* v = graph.inputs[i].get<Value>();
      names.push_back(v ? graph.info(*v).name : text("input ", i));
      if (v) values_[v->id] = inputs[i];
    }
    symbols_ = bind_symbols(graph, inputs, names);
    if (around)
      for (const auto& [symbol, value] : around->values())
        if (!symbols_.find(symbol)) {
          if (value.is_int()) symbols_.set(symbol, value.as_int());
          else symbols_.set_real(symbol, value.real_value());
        }
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for_each_input(graph.nodes[i], [&](Value v) { last_use_[v.id] = i + 1; });
    for (const Arg& output : graph.outputs)
      for_each_tensor(output, [&](const Value& v) {
        if (v) last_use_[v.id] = graph.nodes.size() + 1;
      });
  }

  std::vector<CallArg> operator()() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      try {
        step(node);
      } catch (const Error& e) {
        std::string_view what = e.what();  // the op's own messages start with its name already
        std::string where;
        for_each_result(node, [&](Value v) {
          if (where.empty()) where = "%" + graph_.info(v).name + " = ";
        });
        fail("node ", where, starts_with(what, node.op->name()) ? "" : node.op->name() + ": ", what);
      }
      for_each_input(node, [&](Value v) {
        if (last_use_[v.id] == i + 1) values_[v.id] = CallArg();
      });
      for_each_result(node, [&](Value v) {
        if (last_use_[v.id] == 0) values_[v.id] = CallArg();
      });
    }
    std::vector<CallArg> outputs;
    for (const Arg& output : graph_.outputs) outputs.push_back(argument(output));
    return outputs;
  }

 private:
  CallArg argument(const Arg& arg) {
    for_each_tensor(arg, [&](const Value& v) {
      if (v && values_[v.id].is_none() && graph_.info(v).producer == no_id && graph_.info(v).type == ValueType::tensor)
        values_[v.id] = ones(v);
    });
    if (auto* v = arg.get<Value>()) return *v ? values_[v->id] : CallArg();
    if (auto* e = arg.get<SymInt>()) return evaluated(*e, symbols_);
    if (auto* sizes = arg.get<Sizes>()) {
      Sizes out;
      for (SymInt e : *sizes) out.push_back(evaluated_int(e, symbols_));
      return out;
    }
    return map_tensors<Tensor>(arg, [&](const Value& v) { return v ? values_[v.id].as<Tensor>() : Tensor(); });
  }

  CallArg ones(Value v) {
    Sizes sizes = graph_.info(v).meta.sizes;
    for (SymInt& e : sizes) e = evaluated_int(e, symbols_);
    return ones_tensor(graph_.info(v).meta.dtype, sizes);
  }

  void step(const Node& node) {
    CallArgs args;
    args.reserve(node.args.size());
    for (const Arg& arg : node.args) args.push_back(argument(arg));
    if (options_.functional && node.op->kind == OpKind::view && !node.op->functional) lay_out(node, args);
    GradMode grad(node.grad_enabled);
    CallResults results = is_control(node) ? control(node, args) : dispatch(*node.op, std::move(args));
    expect(results.size() >= node.results.size(), node.op->name(), " gave ", results.size(),
           " results where its node has ", node.results.size());
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (auto* v = node.results[i].get<Value>(); v && *v) take(*v, std::move(results[i]));
      else if (auto* list = node.results[i].get<std::vector<Value>>()) {
        auto* tensors = results[i].get<std::vector<Tensor>>();
        require(tensors && tensors->size() == list->size(), node.op->name(),
                " gave another number of tensors than its node has results, ", list->size(),
                ": the program was exported for other sizes");
        for (size_t k = 0; k < list->size(); ++k) take((*list)[k], CallArg((*tensors)[k]));
      }
    }
  }

  static bool is_control(const Node& node) {
    return std::any_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.is<Subgraph>(); });
  }

  std::vector<CallArg> within(const CallArg& graph, const std::vector<CallArg>& inputs) const {
    return Run(*graph.as<Subgraph>().body, inputs, options_, &symbols_)();
  }
  static bool holds(const CallArg& condition) {
    if (auto* t = condition.get<Tensor>()) return scalar_value(*t) != 0;
    if (auto* b = condition.get<bool>()) return *b;
    return condition.as<SymInt>().as_int() != 0;
  }
  static std::vector<CallArg> list(const CallArg& arg) {
    auto& tensors = arg.as<std::vector<Tensor>>();
    return {tensors.begin(), tensors.end()};
  }
  static std::vector<CallArg> joined(std::vector<CallArg> a, const std::vector<CallArg>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  CallResults control(const Node& node, const CallArgs& args) {
    switch (node.op->traits.control) {
      case Control::choose: return within(args[holds(args[0]) ? 1 : 2], list(args[3]));
      case Control::repeat: {
        std::vector<CallArg> carried = list(args[2]), captured = list(args[3]);
        while (holds(within(args[0], joined(carried, captured)).at(0)))
          carried = within(args[1], joined(carried, captured));
        return carried;
      }
      case Control::map: return rows(node, args[0], {}, list(args[1]), list(args[2]));
      case Control::scan: return rows(node, args[0], list(args[1]), list(args[2]), list(args[3]));
      case Control::none:
      case Control::grad_region:
      case Control::autocast_region: break;
    }
    std::vector<CallArg> carried = list(args[2]), captured = list(args[3]);  // what is carried, round by round
    std::vector<std::vector<Tensor>> rounds(carried.size());
    while (holds(within(args[0], joined(carried, captured)).at(0))) {
      carried = within(args[1], joined(carried, captured));
      for (size_t i = 0; i < carried.size(); ++i) rounds[i].push_back(carried[i].as<Tensor>());
    }
    CallResults out;
    for (size_t i = 0; i < carried.size(); ++i) out.emplace_back(stacked(rounds[i], carried[i].as<Tensor>().meta()));
    return out;
  }

  CallResults rows(const Node& node, const CallArg& graph, std::vector<CallArg> carried,
                   const std::vector<CallArg>& scanned, const std::vector<CallArg>& captured) {
    size_t results = 0, kept = carried.size();
    for_each_result(node, [&](Value) { ++results; });
    std::vector<std::vector<Tensor>> made(results - kept);
    int64_t count = scanned.at(0).as<Tensor>().size(0).as_int();
    for (int64_t i = 0; i < count; ++i) {
      std::vector<CallArg> inputs = carried;
      for (const CallArg& x : scanned) inputs.emplace_back(Tensor(select(x.as<Tensor>(), 0, i)));
      std::vector<CallArg> outputs = within(graph, joined(inputs, captured));
      for (size_t k = kept; k < results; ++k) made[k - kept].push_back(outputs.at(k).as<Tensor>());
      carried.assign(outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(kept));
    }
    CallResults out = carried;
    size_t k = 0;
    for_each_result(node, [&](Value v) {
      if (k++ < kept) return;
      TensorMeta row = promised(v);
      row.sizes.erase(0);
      out.emplace_back(stacked(made[k - 1 - kept], row));
    });
    return out;
  }

  static Tensor stacked(const std::vector<Tensor>& rows, const TensorMeta& like) {
    if (!rows.empty()) return stack(rows, 0);
    Sizes sizes = {0};
    for (SymInt s : like.sizes) sizes.push_back(s);
    return Tensor::empty(like.dtype, sizes);
  }

  void take(Value v, CallArg result) {
    const ValueInfo& info = graph_.info(v);
    if (info.type != ValueType::tensor && info.expr.is_symbol()) {  // a number read from data
      if (auto* e = result.get<SymInt>()) symbols_.set(info.expr, e->as_int());
      else if (auto* d = result.get<double>()) symbols_.set_real(info.expr, *d);
      else if (auto* b = result.get<bool>()) symbols_.set(info.expr, *b);
    } else if (auto* t = result.get<Tensor>(); t && *t) {
      for (size_t d = 0; d < std::min(info.meta.rank(), t->rank()); ++d)  // a size that depends on data
        if (info.meta.sizes[d].is_symbol() && !symbols_.find(info.meta.sizes[d]))
          symbols_.set(info.meta.sizes[d], t->sizes()[d].as_int());
    }
    values_[v.id] = std::move(result);
  }

  // A view promises a layout of its base; where the base was computed in another one it is copied into that.
  void lay_out(const Node& node, CallArgs& args) {
    Tensor* base = args[0].get<Tensor>();
    const Value* v = node.args[0].get<Value>();
    if (!base || !*base || !v) return;
    MetaCall call(*node.op, args);
    bool fits = true;
    for (const IndexMap& map : node.op->def->view(call)) {
      TensorMeta meta = base->meta();
      for (const remap::Part& s : map.parts) {
        fits = fits && is_view(s, meta);
        if (!fits) break;
        if (std::holds_alternative<remap::Strided>(s))
          fits = fits && promised(*v).strides == base->strides() && base->meta().offset == SymInt(0);
        if (!fits) break;
        meta = viewed(s, meta);
      }
    }
    if (fits) return;
    Tensor copy = Tensor::empty(promised(*v));
    copy_elements(*base, copy);
    args[0] = CallArg(copy);
  }

  TensorMeta promised(Value v) {
    TensorMeta meta = graph_.info(v).meta;
    for (SymInt& e : meta.sizes) e = evaluated_int(e, symbols_);
    for (SymInt& e : meta.strides) e = evaluated_int(e, symbols_);
    meta.offset = 0;
    return is_dense(meta) ? meta : make_meta(meta.dtype, meta.sizes, meta.device);
  }

  const GraphBody& graph_;
  GraphRun options_;
  std::vector<CallArg> values_;
  std::vector<size_t> last_use_;  // node number + 1; 0: never
  sym::Bindings symbols_;
};

}  // namespace

sym::Bindings bind_symbols(const GraphBody& graph, std::span<const CallArg> inputs,
                           std::span<const std::string> names) {
  std::vector<loop::Input> expected;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    loop::Input input{.name = names[i]};
    if (const Value* v = graph.inputs[i].get<Value>()) {
      const ValueInfo& info = graph.info(*v);
      input.meta = info.meta;
      input.number = info.expr;
      input.type = info.type == ValueType::tensor     ? loop::Input::Type::tensor
                   : info.type == ValueType::floating ? loop::Input::Type::floating
                   : info.type == ValueType::boolean  ? loop::Input::Type::boolean
                                                      : loop::Input::Type::integer;
    } else {
      input.type = loop::Input::Type::constant;
    }
    expected.push_back(std::move(input));
  }
  return bind_symbols(expected, graph.shapes.ranges, inputs);
}

std::vector<CallArg> run_graph(const GraphBody& graph, std::span<const CallArg> inputs, const GraphRun& options) {
  expect(inputs.size() == graph.inputs.size(), "a graph of ", graph.inputs.size(), " inputs was given ", inputs.size());
  install();
  DispatchScope scope(options.calls);
  return Run(graph, inputs, options)();
}

}  // namespace tenon::interp
