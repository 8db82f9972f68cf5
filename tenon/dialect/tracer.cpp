#include "tenon/dialect/tracer.h"

#include <algorithm>

#include "tenon/dialect/operators.h"
#include "tenon/dialect/rules.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon::dialect {
namespace {

std::string full_name(std::string_view spelled) {
  std::string_view name = spelled;
  if (starts_with(name, "torch.ops.")) name.remove_prefix(10);
  if (ends_with(name, ".default")) name.remove_suffix(8);
  if (name.find("::") != name.npos) return std::string(name);
  if (starts_with(name, "aten.")) name.remove_prefix(5);
  return text("aten::", name);
}

// Which arguments a call shows: those before the last that is no default, and keywords that are none.
uint64_t shown_arguments(const Op& op, const Args& args) {
  uint64_t bits = 0;
  bool positional = false;
  for (size_t i = std::min(args.size(), op.schema.args.size()); i-- > 0;) {
    const SchemaArg& slot = op.schema.args[i];
    bool is_default =
        slot.has_default && args[i] == map_tensors<Value>(slot.default_value, [](const Tensor&) { return Value{}; });
    if (slot.has_default && slot.default_value.is_none() && args[i].is_none()) is_default = true;
    if (slot.keyword_only ? !is_default : positional || !is_default) bits |= uint64_t{1} << i;
    if (!slot.keyword_only) positional = positional || !is_default;
  }
  return bits;
}

// "or" of __or__, "mul" of _operator.mul.
std::string_view fx_name(const Op& op) {
  std::string_view base = op.schema.base();
  if (op.kind == OpKind::symbolic) base = std::string_view(op.target).substr(op.target.rfind('.') + 1);
  if (base.size() > 4 && starts_with(base, "__") && ends_with(base, "__")) return base.substr(2, base.size() - 4);
  return base;
}

}  // namespace

Policy::Policy(const DecomposeOptions& options) : options_(options) {
  for (const std::string& name : options.keep) {
    std::string full = full_name(name);
    const Op* op = registry().find(full);
    require(op != nullptr, "keep: there is no operator ", quoted(name), "; tenon ops lists those there are");
    keep_.insert(full);
    if (op->functional) keep_.insert(op->functional->name());
  }
}

bool Policy::keeps(const Op& op) const { return keep_.contains(op.name()); }

std::function<Results(Build&)> Policy::composite(const Op& op) const {
  if (auto own = options_.table.find(op.name()); own != options_.table.end()) return own->second;
  Facts facts = facts_of(op.name());
  if (Rule rule = dispatched_rule(op.name())) return rule;
  if (!facts.composite) return {};
  if (facts.preservable && (options_.to == Dialect::aten || facts.kept)) return {};
  DecomposeRule own = op.def && !op.functional ? op.def->decompose : nullptr;
  Rule rule = composite_rule(op.name());
  if (!rule) return own ? std::function<Results(Build&)>(own) : nullptr;
  return [rule, own](Build& b) {  // a rule may not know every call
    Results made = rule(b);
    return made.values.empty() && own ? own(b) : made;
  };
}

std::function<Results(Build&)> Policy::decomposition(const Op& op) const {
  if (options_.to != Dialect::core || !facts_of(op.name()).replaced) return {};
  if (Rule rule = core_rule(op.name())) return rule;
  return {};
}

CallResults NodeTracer::run(const Op& op, CallArgs args) {
  if (!policy_.keeps(op)) {
    struct Deeper {
      int& depth;
      explicit Deeper(int& d) : depth(d) { expect(++depth < 64, "decompositions that never end"); }
      ~Deeper() { --depth; }
    } deeper(depth_);
    for (const auto& rule : {policy_.decomposition(op), policy_.composite(op)}) {
      if (!rule) continue;
      DispatchScope scope(this);
      Build build(op, args);
      Results made = rule(build);
      if ((!made.values.empty() || op.schema.returns.empty()) && stands_for(op, made)) return std::move(made.values);
    }
  }
  if (op.schema.space() == "tenon" && op.def && op.def->to_torch) {
    DispatchScope scope(this);
    Build build(op, args);
    return op.def->to_torch(build).values;
  }
  return node(op, std::move(args));
}

// PyTorch's decomposition of attention gives the weights where the operator gives sums that only its gradient reads:
// where that gradient is in the graph, the call stays.
bool NodeTracer::stands_for(const Op& op, const Results& made) const {
  if (!recorded || recorded->op != &op) return true;
  for (size_t i = 0; i < std::min(made.values.size(), recorded->metas.size()); ++i) {
    auto* t = made.values[i].get<Tensor>();
    auto* meta = recorded->metas[i].get<TensorMeta>();
    if (recorded->read[i] && t && *t && meta && t->rank() != meta->rank()) return false;
  }
  return true;
}

// A number that the data tell is what the file calls it, also where an assertion has told that it is a constant.
bool NodeTracer::gives_recorded_number(const Op& op) const {
  return recorded->metas.size() == 1 && recorded->metas[0].is<SymInt>() && op.schema.returns.size() == 1 &&
         op.schema.returns[0].type.kind == TypeKind::scalar;
}

CallResults NodeTracer::node(const Op& op, CallArgs args) {
  GraphBody& graph = tracer.graph();
  Metas metas;
  if (recorded && ((recorded->hold && recorded->op == &op) || gives_recorded_number(op)))
    metas.values = recorded->metas;
  else metas = infer_any(op, args);
  if (recorded) recorded->hold = false;
  Node node;
  node.op = &op;
  for (const CallArg& arg : args) node.args.push_back(spelled(tracer.arg(arg)));  // numbers stay numbers
  node.given = shown_arguments(op, node.args);
  node.grad_enabled = grad_enabled();
  node.phase = tracer.phase;
  node.origin.metadata = tracer.metadata;
  node.origin.name = names.make(fx_name(op));
  bool single = metas.values.size() == 1 && (metas.values[0].is<TensorMeta>() || metas.values[0].is<SymInt>());
  CallResults results;
  auto add = [&](ValueInfo info) {
    info.name = single ? node.origin.name : names.make("getitem");
    graph.values.push_back(std::move(info));
    return Value{static_cast<ValueId>(graph.values.size() - 1)};
  };
  for (const auto& meta : metas.values) {
    if (auto* number = meta.get<SymInt>()) {
      ValueType type = number->is_boolean_typed()   ? ValueType::boolean
                       : number->is_integer_typed() ? ValueType::integer
                                                    : ValueType::floating;
      Value made = add({.type = type, .expr = *number});
      numbers_.try_emplace(*number, made);
      node.results.emplace_back(made);
      results.emplace_back(*number);
    } else {
      if (metas.values.size() > 1 && meta.is<std::vector<TensorMeta>>())
        names.make("getitem");  // a list among other results has a node of its own in torch.fx
      Arg result = map_tensors<Value>(meta, [&](const TensorMeta& m) {
        TensorMeta clean = m;
        clean.wrapped_number = clean.requires_grad = false;
        return add({.meta = std::move(clean)});
      });
      results.push_back(map_tensors<Tensor>(result, [&](const Value& v) { return tracer.tensor(v); }));
      node.results.push_back(std::move(result));
    }
  }
  add_node(graph, std::move(node));
  return results;
}

std::optional<Value> NodeTracer::value_of(SymInt e) {
  if (auto at = numbers_.find(e); at != numbers_.end()) return at->second;
  if (!e.is_symbol()) return std::nullopt;
  GraphBody& graph = tracer.graph();
  for (const Arg& input : graph.inputs) {
    auto* v = input.get<Value>();
    if (!v || graph.info(*v).type != ValueType::tensor) continue;
    for (SymInt size : graph.info(*v).meta.sizes) {
      if (!(size == e)) continue;
      if (!measured_.contains(e)) names.make("sym_size_int");  // PyTorch's tracer asks for it, too
      graph.values.push_back({.type = ValueType::integer, .expr = e});
      Value made{static_cast<ValueId>(graph.values.size() - 1)};
      sizes_.emplace_back(e, made);
      return numbers_[e] = made;
    }
  }
  return std::nullopt;
}

Arg NodeTracer::spelled(const Arg& arg) {
  auto each = [&](SymInt e) -> Arg {
    if (e.is(sym::Kind::real)) return e.real_value();
    if (e.is_int()) return e;
    auto v = value_of(e);
    if (!v && e.is(sym::Kind::boolean)) return e.boolean_value();
    return v ? Arg(*v) : Arg(e);
  };
  if (auto* e = arg.get<SymInt>()) return each(*e);
  if (auto* sizes = arg.get<Sizes>()) {
    if (std::all_of(sizes->begin(), sizes->end(), [](SymInt e) { return e.is_int(); })) return arg;
    Arg::Items items;
    bool all = true;
    for (SymInt e : *sizes) {
      items.push_back(each(e));
      all = all && (e.is_int() || items.back().is<Value>());
    }
    return all ? Arg(std::move(items)) : arg;
  }
  if (auto* items = arg.get<Arg::Items>()) {
    Arg::Items out;
    for (const Arg& item : *items) out.push_back(spelled(item));
    return out;
  }
  return arg;
}

void NodeTracer::number(const Op& op, const std::vector<SymInt>& operands, SymInt result) {
  GraphBody& graph = tracer.graph();
  std::string name = names.make(op.traits.measures == Measure::size ? "sym_size_int" : std::string(fx_name(op)));
  if (op.traits.measures == Measure::size) measured_.insert(result);
  if (op.traits.measures != Measure::none || numbers_.contains(result)) return;  // named when it is needed
  Node node;
  node.op = &op;
  for (SymInt operand : operands) {
    node.args.push_back(spelled(Arg(operand)));
    if (auto* e = node.args.back().get<SymInt>(); e && !e->is_int() && !e->is(sym::Kind::real)) return;
  }
  node.origin.name = name;
  node.origin.metadata = tracer.metadata;
  ValueType type = result.is_boolean_typed()   ? ValueType::boolean
                   : result.is_integer_typed() ? ValueType::integer
                                               : ValueType::floating;
  graph.values.push_back({.name = std::move(name), .type = type, .expr = result});
  Value made{static_cast<ValueId>(graph.values.size() - 1)};
  node.results.emplace_back(made);
  numbers_[result] = made;
  add_node(graph, std::move(node));
}

void NodeTracer::insert_sizes() {
  GraphBody& graph = tracer.graph();
  std::vector<Node> first;
  std::unordered_set<SymInt> met;
  for (const Arg& input : graph.inputs) {
    auto* v = input.get<Value>();
    if (!v || graph.info(*v).type != ValueType::tensor) continue;
    const Sizes& sizes = graph.info(*v).meta.sizes;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (!sizes[dim].is_symbol() || !met.insert(sizes[dim]).second) continue;
      std::string name = sizes_.empty() ? "" : names.make("sym_size_int");
      auto used =
          std::find_if(sizes_.begin(), sizes_.end(), [&](const auto& each) { return each.first == sizes[dim]; });
      if (used == sizes_.end()) continue;
      Node node;
      node.op = registry().measuring(Measure::size);
      node.args = {*v, static_cast<int64_t>(dim)};
      node.origin.name = name;
      graph.info(used->second).name = std::move(name);
      node.results.emplace_back(used->second);
      first.push_back(std::move(node));
    }
  }
  graph.nodes.insert(graph.nodes.begin(), std::make_move_iterator(first.begin()), std::make_move_iterator(first.end()));
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for_each_result(graph.nodes[i], [&](Value v) { graph.info(v).producer = static_cast<NodeId>(i); });
}

const Op& aten_op(std::string_view name) {
  const Op* op = registry().find(full_name(name));
  expect(op != nullptr, "a decomposition calls ", name, ", which is not registered");
  return *op;
}

Results call_bound(const Op& op, std::span<Given> given) { return call_op(op, bind(op, given)); }

}  // namespace tenon::dialect
