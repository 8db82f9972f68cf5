#include "tenon/export/spell_sizes.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_set>

#include "tenon/sym/evaluate.h"
#include "tenon/sym/print.h"

namespace tenon {
namespace {

class Speller {
 public:
  Speller(const GraphBody& from, const OpTable& ops) : from_(from), ops_(ops), replay_(from) {}

  Graph run() {
    replay_.inputs();
    for (const Arg& input : replay_.graph->inputs) learn(input);
    for (const Node& node : from_.nodes) {
      Node spelled = node;
      for (Arg& arg : spelled.args) arg = spell(arg);
      NodeId id = replay_.node(node);
      Node& made = replay_.graph->nodes[id];
      for (size_t i = 0; i < made.args.size(); ++i) made.args[i] = std::move(spelled.args[i]);
      name_region(made);
      for (const Arg& result : made.results) learn(result);
    }
    for (const Arg& output : from_.outputs) replay_.graph->outputs.push_back(spell(output));
    return std::move(replay_.graph);
  }

 private:
  // PyTorch would name a node with graphs as it names values, after its operator.
  void name_region(Node& node) {
    bool region = std::any_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.is<Subgraph>(); });
    const Value* first =
        region && node.origin.name.empty() && !node.results.empty() ? node.results[0].get<Value>() : nullptr;
    if (first)
      node.origin.name =
          unique_name(replay_.graph.body(), text(replay_.graph->info(*first).name, "_", node.op->schema.base()));
  }

  struct Place {
    Value tensor;
    int64_t dim;
  };

  // Numbers stand for themselves; sizes of tensors are asked for when they are needed.
  void learn(const Arg& arg) {
    for_each_tensor(arg, [&](Value v) {
      if (!v) return;
      const ValueInfo& info = replay_.graph->info(v);
      if (info.type != ValueType::tensor) {
        if (is_number(info.type) && !is_constant(info.expr)) values_.try_emplace(info.expr, v);
        return;
      }
      if (info.meta.offset.is_symbol()) offsets_.try_emplace(info.meta.offset, v);
      for (size_t dim = 0; dim < info.meta.rank(); ++dim)
        if (!info.meta.sizes[dim].is_int())
          places_.try_emplace(info.meta.sizes[dim], Place{v, static_cast<int64_t>(dim)});
    });
  }

  // An argument of the old graph, in terms of the new one and without expressions.
  Arg spell(const Arg& arg) {
    if (auto* number = arg.get<SymInt>()) return spell_number(*number);
    if (auto* sizes = arg.get<Sizes>()) {
      bool symbolic = false;
      for (SymInt s : *sizes) symbolic |= !s.is_int();
      if (!symbolic) return arg;
      Arg::Items items;
      for (SymInt s : *sizes) items.push_back(spell_number(s));
      return items;
    }
    if (auto* items = arg.get<Arg::Items>()) {
      Arg::Items out;
      for (const Arg& item : *items) out.push_back(spell(item));
      return out;
    }
    if (auto* mapping = arg.get<Arg::Mapping>()) {
      Arg::Mapping out{mapping->keys, {}};
      for (const Arg& item : mapping->values) out.values.push_back(spell(item));
      return out;
    }
    if (auto* subgraph = arg.get<Subgraph>()) {
      std::string name = subgraph->name;  // PyTorch keeps graphs by name
      for (int i = 1; !graph_names_.insert(name).second; ++i) name = text(subgraph->name, "_", i);
      return Subgraph{name, std::shared_ptr<const GraphBody>(spell_sizes(*subgraph->body, ops_).release())};
    }
    return replay_.moved(arg);
  }

  Arg spell_number(SymInt number) { return part(number); }

  Value value_of(SymInt e) {
    if (auto found = values_.find(e); found != values_.end()) return found->second;
    if (auto place = places_.find(e); place != places_.end())
      return compute(e, ops_.measuring(Measure::size), {place->second.tensor, place->second.dim});
    if (auto offset = offsets_.find(e); offset != offsets_.end())
      return compute(e, ops_.measuring(Measure::offset), {offset->second});
    if (e.is_symbol())
      if (auto solved = solve_for(e)) return *solved;
    require(!e.is_symbol(), "the size ", sym::to_infix(e),
            " is needed as an argument, but no input or result before it has it");
    return compute_parts(e);
  }

  // A symbol that no size is equal to, from one that it can be solved for: s from a size of 2*s.
  std::optional<Value> solve_for(SymInt symbol) {
    for (const auto& [size, place] : places_) {
      std::vector<SymInt> symbols = sym::symbols_of(size);
      if (symbols.size() != 1 || !(symbols[0] == symbol)) continue;
      SymInt known = SymInt::symbol("solved_size");
      auto solution = sym::solve(size, known, symbol);
      if (!solution) continue;
      stands_for_ = {{known, size}};
      values_[known] = value_of(size);
      Value v = value_of(solution->value);
      values_.erase(known);
      stands_for_.clear();
      values_[symbol] = v;
      replay_.graph->info(v).expr = symbol;
      return v;
    }
    return std::nullopt;
  }

  static bool is_number(ValueType type) {
    return type == ValueType::integer || type == ValueType::floating || type == ValueType::boolean;
  }
  static bool is_constant(SymInt e) {
    return e.is_int() || e.kind() == sym::Kind::real || e.kind() == sym::Kind::rational ||
           e.kind() == sym::Kind::boolean;
  }

  Arg part(SymInt e) {
    if (e.is_int()) return e;
    if (e.kind() == sym::Kind::boolean) return e == SymInt::boolean(true);
    return is_constant(e) ? Arg(e.real_value()) : Arg(value_of(e));
  }

  // By one node, or by several where an operator of two operands meets a sum of more.
  Value compute_parts(SymInt e) {
    const Op* op = ops_.computing(e);
    require(op != nullptr, "the size ", sym::to_infix(e),
            " cannot be written as an argument: no operators for it are known");
    if (e.is(sym::Kind::piecewise)) return choose(e, op);
    SymInt so_far = e.args()[0];
    Arg left = part(so_far);
    if (op->schema.args.size() == 1) return compute(e, op, {left});
    expect(op->schema.args.size() == 2, op->name(), " does not take two operands");
    std::optional<Value> last;
    for (SymInt next : e.args().subspan(1)) {
      Arg right = part(next);
      so_far = sym::make(e.kind(), std::array{so_far, next});
      // PyTorch's operators take the computed number first.
      if (!left.is<Value>() && right.is<Value>() && commutes(e.kind())) std::swap(left, right);
      last = compute(so_far, op, {left, right});
      left = *last;
    }
    expect(last.has_value(), "an operation on one number: ", sym::to_infix(e));
    return *last;
  }

  // value, condition, value, condition, ...: the first whose condition holds; the last holds always.
  Value choose(SymInt e, const Op* op) {
    std::span<const SymInt> parts = e.args();
    require(parts.size() >= 4 && parts.back() == SymInt::boolean(true), "the size ", sym::to_infix(e),
            " cannot be written as an argument: it has no value where none of its conditions holds");
    SymInt rest = parts.size() == 4 ? parts[2] : sym::piecewise(parts.subspan(2));
    return compute(e, op, {part(parts[1]), part(parts[0]), part(rest)});
  }

  static bool commutes(sym::Kind kind) {
    using enum sym::Kind;
    return kind == add || kind == mul || kind == max || kind == min || kind == logical_and || kind == logical_or ||
           kind == bit_and || kind == bit_or;
  }

  // "_operator.and_" names its results sym_and, "math.trunc" sym_trunc.
  static std::string result_name(const Op& op) {
    std::string_view name = op.kind == OpKind::symbolic ? op.name() : op.schema.base();
    name.remove_prefix(name.rfind('.') + 1);
    while (starts_with(name, "_")) name.remove_prefix(1);
    while (ends_with(name, "_")) name.remove_suffix(1);
    return text(starts_with(name, "sym_") ? "" : "sym_", name);
  }

  Value compute(SymInt e, const Op* op, Args args) {
    if (auto found = values_.find(e); found != values_.end()) return found->second;
    expect(op != nullptr, "no operator gives ", sym::to_infix(e));
    ValueType type = e.is_boolean_typed()   ? ValueType::boolean
                     : e.is_integer_typed() ? ValueType::integer
                                            : ValueType::floating;
    Value v = add_value(replay_.graph.body(),
                        {.name = result_name(*op), .type = type, .expr = sym::substitute(e, stands_for_)});
    add_node(replay_.graph.body(), {.op = op, .args = std::move(args), .results = {v}});
    values_.emplace(e, v);
    return v;
  }

  const GraphBody& from_;
  const OpTable& ops_;
  Replay replay_;
  std::unordered_set<std::string> graph_names_;
  std::unordered_map<SymInt, Value> values_;
  std::unordered_map<SymInt, Place> places_;
  std::unordered_map<SymInt, Value> offsets_;  // tensors whose offset is a symbol
  std::vector<sym::Replacement> stands_for_;   // while a symbol is solved for: the size it is solved from
};

}  // namespace

Graph spell_sizes(const GraphBody& graph, const OpTable& ops) { return Speller(graph, ops).run(); }

}  // namespace tenon
