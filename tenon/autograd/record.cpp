#include "tenon/autograd/record.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/autograd/nodes.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/lowering_options.h"
#include "tenon/rules/registry.h"
#include "tenon/trace/trace.h"

namespace tenon::autograd {
namespace {

Tensor without_data(const Tensor& t) {
  static const std::shared_ptr<Storage> nothing = std::make_shared<Storage>(size_t{0});
  if (!t) return t;
  TensorMeta meta = t.meta();
  meta.requires_grad = false;
  return Tensor(std::move(meta), nothing);
}

// The tensors of arguments or results, in order; none counts where a tensor could be.
template <class Visit>
void for_each_slot(std::span<const CallArg> args, Visit&& visit) {
  for (size_t i = 0; i < args.size(); ++i) for_each_tensor(args[i], [&](const Tensor& t) { visit(i, t); });
}
std::vector<Tensor> result_slots(std::span<const CallArg> results) {
  std::vector<Tensor> out;
  for (const CallArg& result : results) {
    if (result.is_none()) out.emplace_back();  // rules count results by the schema
    for_each_tensor(result, [&](const Tensor& t) { out.push_back(t); });
  }
  return out;
}

using Needed = SmallVector<uint8_t, 16>;  // by argument: a gradient is wanted

/// What is the same for all calls of an operator with arguments of the same metas and numbers: the arguments without
/// their elements, and of which of them the gradient reads the elements.
struct CallKind {
  const Op& op;
  CallArgs args;
  std::vector<Tensor> outs;
  std::vector<uint8_t> needed;             // by argument
  std::vector<bool> saves_arg, saves_out;  // by slot
  std::vector<TensorMeta> metas;           // of the argument slots
  std::vector<uint8_t> flows;              // by argument: a formula gives its gradient
  bool differentiable = false, saves_args = true, saves_outs = true;

  std::span<const bool> needs() const { return {reinterpret_cast<const bool*>(needed.data()), needed.size()}; }
};

// Runs the formulas on a graph, and sees of which inputs it reads the elements.
void find_saved(CallKind& kind) {
  Graph graph;
  Tracer tracer(graph.body());
  std::vector<Value> args, outs, grads;
  auto input = [&](const Tensor& t) {
    if (!t) return Value{};
    TensorMeta meta = t.meta();
    meta.offset = 0;
    return add_input(graph.body(), "x", std::move(meta));
  };
  CallArgs traced;
  for (const CallArg& arg : kind.args)
    traced.push_back(map_tensors<Tensor>(arg, [&](const Tensor& t) {
      args.push_back(input(t));
      return tracer.tensor(args.back());
    }));
  std::vector<Tensor> traced_outs, traced_grads;
  for (const Tensor& out : kind.outs) {
    outs.push_back(input(out));
    traced_outs.push_back(tracer.tensor(outs.back()));
    grads.push_back(out && is_differentiable(out.dtype()) ? input(out) : Value{});
    traced_grads.push_back(tracer.tensor(grads.back()));
  }
  std::vector<bool> read;
  auto mark = [&](Value v) {
    if (!v) return;
    if (read.size() <= v.id) read.resize(v.id + 1);
    read[v.id] = true;
  };
  DispatchScope scope(&tracer);
  auto follow = [&](std::span<const Tensor> given) {
    Vjp vjp(kind.op, traced, given, traced_outs, kind.needs());
    for (const Grad& grad : gradients(vjp)) {
      if (grad.one && grad.one.is_traced()) mark({grad.one.impl()->value});
      for (const Tensor& t : grad.list)
        if (t && t.is_traced()) mark({t.impl()->value});
    }
  };
  follow(traced_grads);
  for (size_t i = 0; traced_grads.size() > 1 && i < traced_grads.size(); ++i) {  // a formula may do without the others
    if (!traced_grads[i]) continue;
    std::vector<Tensor> alone(traced_grads.size());
    alone[i] = traced_grads[i];
    follow(alone);
  }
  for (const Node& node : graph->nodes) for_each_input(node, mark);
  auto is_read = [&](Value v) { return v && v.id < read.size() && read[v.id]; };
  for (size_t i = 0; i < args.size(); ++i) kind.saves_arg[i] = is_read(args[i]);
  for (size_t i = 0; i < outs.size(); ++i) kind.saves_out[i] = is_read(outs[i]);
}

std::shared_ptr<const CallKind> make_kind(const Op& op, const CallArgs& args, const std::vector<Tensor>& outs,
                                          const Needed& needed) {
  auto kind = std::make_shared<CallKind>(CallKind{.op = op});
  for (const CallArg& arg : args) kind->args.push_back(map_tensors<Tensor>(arg, without_data));
  for (const Tensor& out : outs) kind->outs.push_back(without_data(out));
  kind->needed.assign(needed.begin(), needed.end());
  kind->flows.resize(args.size());
  for (const GradFormula& f : op.def->vjp)
    for (const std::string& name : split(f.of, ','))
      if (int at = op.schema.find(trim(name)); at >= 0) kind->flows[static_cast<size_t>(at)] = true;
  for (size_t i = 0; i < args.size(); ++i) kind->differentiable |= kind->needed[i] && kind->flows[i];
  for_each_slot(kind->args, [&](size_t, const Tensor& t) { kind->metas.push_back(t ? t.meta() : TensorMeta()); });
  kind->saves_arg.assign(kind->metas.size(), true);
  kind->saves_out.assign(outs.size(), true);
  if (!kind->differentiable) return kind;
  try {
    find_saved(*kind);
  } catch (const Error&) {  // a formula that cannot be traced, as it reads numbers from tensors: everything is kept
    kind->saves_arg.assign(kind->metas.size(), true);
    kind->saves_out.assign(outs.size(), true);
  }
  auto any = [](const std::vector<bool>& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); };
  kind->saves_args = any(kind->saves_arg);
  kind->saves_outs = any(kind->saves_out);
  return kind;
}

template <class T>
void append_raw(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void append_key(std::string& key, const Tensor& t) {
  if (!t) return key.push_back('\0');
  const TensorMeta& m = t.meta();
  append_raw(key, static_cast<uint8_t>(m.dtype));
  append_raw(key, static_cast<uint8_t>(1 + m.rank() * 2 + m.wrapped_number));
  for (const SymInt& s : m.sizes) append_raw(key, s.as_int());
  for (const SymInt& s : m.strides) append_raw(key, s.as_int());
}
void append_key(std::string& key, const CallArg& arg) {
  append_raw(key, static_cast<uint8_t>(arg.v.index()));
  if (auto* t = arg.get<Tensor>()) append_key(key, *t);
  else if (auto* list = arg.get<std::vector<Tensor>>()) {
    append_raw(key, list->size());
    for (const Tensor& t : *list) append_key(key, t);
  } else if (auto* i = arg.get<SymInt>()) append_raw(key, i->as_int());
  else if (auto* b = arg.get<bool>()) append_raw(key, *b);
  else if (auto* d = arg.get<double>()) append_raw(key, *d);
  else if (auto* dtype = arg.get<DType>()) append_raw(key, *dtype);
  else if (auto* sizes = arg.get<Sizes>()) {
    append_raw(key, sizes->size());
    for (const SymInt& i : *sizes) append_raw(key, i.as_int());
  } else if (auto* reals = arg.get<std::vector<double>>()) {
    append_raw(key, reals->size());
    for (double d : *reals) append_raw(key, d);
  } else if (!arg.is_none()) key += describe(arg) + '\0';
}

/// The kinds of calls by what their gradients depend on, per thread: no lock in the way of a small call.
class CallKinds {
 public:
  /// Null where such a call has not been seen; the next call of add then makes it known.
  const std::shared_ptr<const CallKind>* find(const Op& op, const CallArgs& args, const Needed& needed) {
    key_.clear();
    append_raw(key_, &op);
    append_raw(key_, lowering_options());
    key_.append(reinterpret_cast<const char*>(needed.data()), needed.size());
    for (const CallArg& arg : args) append_key(key_, arg);
    auto found = kinds_.find(key_);
    return found == kinds_.end() ? nullptr : &found->second;
  }
  const std::shared_ptr<const CallKind>& add(std::string key, std::shared_ptr<const CallKind> kind) {
    constexpr size_t most = 4096;
    if (kinds_.size() >= most) kinds_.clear();
    return kinds_[std::move(key)] = std::move(kind);
  }
  const std::string& key() const { return key_; }  // of the last find

 private:
  std::unordered_map<std::string, std::shared_ptr<const CallKind>> kinds_;
  std::string key_;
};

std::string camel_case(std::string_view name) {
  std::string out;
  bool upper = true;
  for (char c : name) {
    if (c == '_') upper = true;
    else out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c, upper = false;
  }
  return out;
}

/// The gradient of one call, by its operator's rule.
class CallNode : public GradNode {
 public:
  CallNode(std::shared_ptr<const CallKind> kind) : kind_(std::move(kind)) {}
  std::string name() const override { return camel_case(kind_->op.schema.base()) + "Backward0"; }

  void save(const CallArgs& args, const CallResults& results, const Tensor& overwritten) {
    size_t slot = 0;
    if (kind_->saves_args)
      for_each_slot(args, [&](size_t, const Tensor& t) {
        if (kind_->saves_arg[slot] && t)
          saved_.push_back({slot, true, Saved(t.same_as(overwritten) ? contiguous_copy(t) : t)});
        ++slot;
      });
    if (!kind_->saves_outs) return;
    std::vector<Tensor> outs = result_slots(results);
    for (size_t i = 0; i < outs.size(); ++i)
      if (kind_->saves_out[i] && outs[i]) saved_.push_back({i, false, Saved(outs[i])});
  }

  std::vector<Tensor> apply(const std::vector<Tensor>& grads) override {
    require(!released_,
            "Trying to backward through the graph a second time: what the first time needed has been freed; give "
            "retain_graph = true the first time");
    std::vector<Tensor> slots, outs = kind_->outs;
    for_each_slot(kind_->args, [&](size_t, const Tensor& t) { slots.push_back(t); });
    for (const Kept& kept : saved_) {
      if (kept.of_args) slots[kept.slot] = kept.tensor.get(edges[kept.slot], name());
      else outs[kept.slot] = kept.tensor.get({shared_from_this(), kept.slot}, name());
    }
    CallArgs args;
    args.reserve(kind_->args.size());
    size_t next = 0;
    for (const CallArg& arg : kind_->args)
      args.push_back(map_tensors<Tensor>(arg, [&](const Tensor&) { return slots[next++]; }));
    std::vector<Tensor> given = grads;
    given.resize(outs.size());
    Vjp vjp(kind_->op, args, given, outs, kind_->needs());
    Grads results = gradients(vjp);
    std::vector<Tensor> out(slots.size());
    size_t slot = 0, item = 0, last = ~size_t{0};
    for_each_slot(args, [&](size_t arg, const Tensor&) {
      item = arg == last ? item + 1 : 0;
      last = arg;
      if (edges[slot] && arg < results.size()) {
        const Grad& grad = results[arg];
        bool list = kind_->args[arg].is<std::vector<Tensor>>();
        out[slot] =
            fitted(list ? (item < grad.list.size() ? grad.list[item] : Tensor()) : grad.one, kind_->metas[slot]);
      }
      ++slot;
    });
    return out;
  }

  void release() override {
    released_ = !saved_.empty() || released_;
    saved_.clear();
  }

 private:
  struct Kept {
    size_t slot = 0;
    bool of_args = true;
    Saved tensor;
  };
  std::shared_ptr<const CallKind> kind_;  // shared: calls of one kind
  std::vector<Kept> saved_;
  bool released_ = false;
};

class Missing : public GradNode {
 public:
  explicit Missing(const Op& op) : op_(op) {}
  std::string name() const override { return "NotImplemented"; }
  std::vector<Tensor> apply(const std::vector<Tensor>&) override {
    fail_unsupported(text("the operator ", op_.name(), " has no gradient yet"));
  }

 private:
  const Op& op_;
};

bool wants_grad(std::span<const CallArg> args) {
  bool any = false;
  for_each_slot(args, [&](size_t, const Tensor& t) { any = any || requires_grad(t); });
  return any;
}

CallResults plain(const Op& op, CallArgs args) {
  DispatchScope scope(nullptr);
  return dispatch(op, std::move(args));
}

bool is_among_args(const Tensor& t, std::span<const CallArg> args) {
  bool found = false;
  for_each_slot(args, [&](size_t, const Tensor& arg) { found = found || t.same_as(arg); });
  return found;
}

// `args` are those whose handles a result may be.
void attach(const std::shared_ptr<GradNode>& node, std::span<const CallArg> results, std::span<const CallArg> args) {
  size_t slot = 0;
  for (const CallArg& result : results) {
    if (result.is_none()) ++slot;
    for_each_tensor(result, [&](const Tensor& t) {
      if (t && is_differentiable(t.dtype()) && !is_among_args(t, args)) make_history(t).from = {node, slot};
      ++slot;
    });
  }
}

CallResults record_rule(const Op& op, CallArgs args, const Tensor& overwritten) {
  thread_local CallKinds kinds;
  std::vector<Edge> edges;
  edges.reserve(args.size());
  Needed needed(args.size(), 0);
  for_each_slot(args, [&](size_t i, const Tensor& t) {
    edges.push_back(edge_of(t));
    if (edges.back()) needed[i] = 1;
  });
  const std::shared_ptr<const CallKind>* known = kinds.find(op, args, needed);
  std::shared_ptr<const CallKind> kind;
  CallResults results;
  if (known && !(*known)->saves_args && op.kind == OpKind::pointwise) {  // whose results are never its arguments
    kind = *known;
    results = plain(op, std::move(args));
    args.clear();
  } else if (known) {
    kind = *known;
    results = plain(op, args);
  } else {
    std::string key = kinds.key();
    results = plain(op, args);
    kind = kinds.add(std::move(key), make_kind(op, args, result_slots(results), needed));
  }
  if (!kind->differentiable) return results;
  auto node = std::make_shared<CallNode>(kind);
  node->edges = std::move(edges);
  node->save(args, results, overwritten);
  attach(node, results, args);
  return results;
}

CallResults record_view(const Op& op, CallArgs args) {
  MetaCall call(op, args);
  std::vector<IndexMap> maps = op.def->view(call);
  Tensor base = call.tensor(size_t{0});
  CallResults results = plain(op, std::move(args));
  std::vector<Tensor> outs = result_slots(results);
  const History* of_base = history_of(base);
  for (size_t i = 0; i < outs.size(); ++i) {
    History& h = make_history(outs[i]);
    if (is_differentiable(outs[i].dtype())) h.from = view_edge(maps[i], base);
    h.base = of_base && of_base->base ? of_base->base : base;
    h.map = maps[i];
    if (of_base && of_base->base)
      h.map.parts.insert(h.map.parts.begin(), of_base->map.parts.begin(), of_base->map.parts.end());
    if (const History* root = history_of(h.base)) h.seen_writes = root->writes;
  }
  return results;
}

CallResults record_parts(const Op& op, CallArgs args, DecomposeRule rule) {
  for (CallArg& arg : args)  // a rule may choose by what needs a gradient
    arg = map_tensors<Tensor>(arg, [&](const Tensor& t) {
      if (!requires_grad(t)) return t;
      TensorMeta meta = t.meta();
      meta.requires_grad = true;
      Tensor marked = t.with_meta(std::move(meta));
      marked.impl()->grad = t.impl()->grad;
      return marked;
    });
  DispatchScope scope(&recorder());
  Build build(op, args);
  return rule(build).values;
}

CallResults record(const Op& op, CallArgs args, const Tensor& overwritten = {});

void require_writable(const Op& op, const Tensor& target) {
  const History* h = history_of(target);
  if (!h) return;
  require(!h->leaf_requires_grad || h->from,
          "a leaf Variable that requires grad is being used in an in-place operation: ", op.name(),
          "; write it where gradients are off (NoGradGuard), or use the operator that gives a new tensor");
  require(!h->view_of_function, op.name(), ": what a function with a gradient of its own (",
          h->from ? h->from.node->name() : "",
          ") gave is a view and is being modified inplace, which would go past its "
          "gradient; write a clone()");
  const History* base = history_of(h->base);
  require(!base || !base->leaf_requires_grad || base->from,
          "a view of a leaf Variable that requires grad is being used in an in-place operation: ", op.name(),
          "; write it where gradients are off (NoGradGuard), or use a clone()");
}

// What the functional twin computes is written, and the target gets its history.
CallResults record_write(const Op& op, CallArgs args) {
  Tensor target = args[0].as<Tensor>();
  require_writable(op, target);
  CallArgs functional(args.begin(), args.begin() + static_cast<ptrdiff_t>(op.functional->schema.args.size()));
  if (!op.functional->def || !op.functional->def->vjp)  // its parts may keep what is now overwritten
    functional[0] = with_edge(contiguous_copy(target), edge_of(target));
  CallResults values;
  {
    DispatchScope scope(&recorder());
    values = record(*op.functional, std::move(functional), target);
  }
  Tensor value = values[0].as<Tensor>();
  require(value.sizes() == target.sizes(), op.name(), ": expected a result of the sizes of self, ", target.meta(),
          ", got ", value.meta());
  if (value.dtype() != target.dtype()) {
    DispatchScope scope(&recorder());
    value = to(value, target.dtype());
  }
  Edge written = edge_of(value);
  plain(registry().in_place_form(copy.op()), {target, value, CallArg(false)});
  History& h = make_history(target);
  if (h.base) {
    Edge before = edge_of(h.base);
    if (!before && !written) return {CallArg(target)};
    History& base = make_history(h.base);
    base.from = write_edge(h.map, h.base.meta(), before, written);
    ++base.writes;
  } else {
    h.from = written;
    ++h.writes;
  }
  return {CallArg(target)};
}

CallResults record(const Op& op, CallArgs args, const Tensor& overwritten) {
  if (op.functional && op.functional->kind != OpKind::view) return record_write(op, std::move(args));
  if (op.kind == OpKind::view) return record_view(op, std::move(args));
  const OpDef* def = op.def;
  if (DecomposeRule complex = meets_complex(args) ? meaning_of(op, args) : nullptr)
    return record_parts(op, std::move(args), complex);
  DecomposeRule parts = def ? (def->for_grad ? def->for_grad : def->decompose) : nullptr;
  bool may_alias = op.traits.may_alias;
  for (const SchemaArg& result : op.schema.returns) may_alias = may_alias || !result.alias.empty();
  if (parts && (!def->vjp || may_alias)) return record_parts(op, std::move(args), parts);
  if (def && def->vjp) return record_rule(op, std::move(args), overwritten);
  CallResults results = plain(op, args);
  auto node = std::make_shared<Missing>(op);
  for_each_slot(args, [&](size_t, const Tensor& t) { node->edges.push_back(edge_of(t)); });
  attach(node, results, args);
  return results;
}

class Recorder : public Dispatcher {
 public:
  CallResults run(const Op& op, CallArgs args) override { return autograd::call(op, std::move(args)); }
};

}  // namespace

Dispatcher& recorder() {
  static Recorder recorder;
  return recorder;
}

CallResults call(const Op& op, CallArgs args) {
  if (context().unrecorded) return dispatch(op, std::move(args));
  bool is_view = op.kind == OpKind::view && !op.traits.stops_gradient && args[0].is<Tensor>() && args[0].as<Tensor>() &&
                 !args[0].as<Tensor>().is_traced();
  if (grad_enabled() && !op.traits.stops_gradient && (is_view || wants_grad(args))) {
    require_given(op, args);
    return record(op, std::move(args));
  }
  return top_dispatcher() == &recorder() ? plain(op, std::move(args)) : dispatch(op, std::move(args));
}

}  // namespace tenon::autograd
