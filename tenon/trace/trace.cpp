#include "tenon/trace/trace.h"

#include "tenon/graph/assigns.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/random.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Tensor Tracer::tensor(Value v) const { return v ? Tensor(graph_.values[v.id].meta, &graph_, v.id) : Tensor(); }

Value Tracer::value(const Tensor& t) {
  if (!t) return {};
  if (t.is_traced()) {
    expect(t.impl()->graph == &graph_, "a tensor of one graph used in another");
    return {t.impl()->value};
  }
  expect(t.rank() == 0, "a tensor with data, ", t.meta(), ", used in a graph that is being built");
  CallArg number = is_floating(t.dtype())        ? CallArg(scalar_value(t))
                   : t.dtype() == DType::boolean ? CallArg(scalar_integer(t) != 0)
                                                 : CallArg(scalar_integer(t));
  CallArgs args = {CallArg(Sizes{}), number, t.dtype(), CallArg(), CallArg(), CallArg()};
  CallResults made = call(full.op(), std::move(args));
  return {made[0].get<Tensor>()->impl()->value};
}

Arg Tracer::arg(const CallArg& a) {
  if (auto* t = a.get<Tensor>(); t && *t && !t->is_traced() && t->meta().wrapped_number) {  // a number stays a number
    if (is_floating(t->dtype())) return scalar_value(*t);
    if (t->dtype() == DType::boolean) return scalar_integer(*t) != 0;
    return scalar_integer(*t);
  }
  if (auto* t = a.get<Tensor>(); t && !*t) return {};
  return map_tensors<Value>(a, [&](const Tensor& t) { return value(t); });
}

CallArg Tracer::call_arg(const Arg& a) const {
  if (auto* v = a.get<Value>()) {
    if (!*v) return {};
    const ValueInfo& info = graph_.values[v->id];
    if (info.type != ValueType::tensor) return info.expr;  // a number the graph computes from sizes
  }
  return map_tensors<Tensor>(a, [&](const Value& v) { return tensor(v); });
}

CallResults Tracer::run(const Op& op, CallArgs args) {
  ShapesScope shapes(&graph_.shapes);
  Metas metas = infer_any(op, args);
  return add(op, args, metas.values);
}

CallResults Tracer::append(const Op& op, CallArgs args, std::vector<BasicArg<TensorMeta>> metas) {
  require_given(op, args);
  return add(op, args, metas);
}

CallResults Tracer::add(const Op& op, const CallArgs& args, const std::vector<BasicArg<TensorMeta>>& metas) {
  Node node;
  node.op = &op;
  for (size_t i = 0; i < args.size(); ++i) {
    node.args.push_back(arg(args[i]));
    // PyTorch takes numbers for tensors in a few ops only; elsewhere they become tensors.
    const Type* slot = i < op.schema.args.size() ? &op.schema.args[i].type : nullptr;
    if (slot && slot->kind == TypeKind::tensor && !slot->list && node.args[i].is_number() && !op.traits.takes_numbers &&
        op.def)
      node.args[i] = value(ArgsView(op, args).tensor(i));
  }
  node.grad_enabled = grad_enabled();
  node.phase = phase;
  node.origin.metadata = metadata;
  std::string base(op.schema.base());
  CallResults results;
  size_t which = 0;
  for (const auto& meta : metas) {
    if (auto* size = meta.get<SymInt>()) {  // a number
      ValueType type = size->is_boolean_typed()   ? ValueType::boolean
                       : size->is_integer_typed() ? ValueType::integer
                                                  : ValueType::floating;
      Value v = add_value(graph_, {.name = base, .type = type, .expr = *size});
      node.results.emplace_back(v);
      results.emplace_back(*size);
    } else {
      Arg result = map_tensors<Value>(meta, [&](const TensorMeta& m) {
        TensorMeta clean = m;
        clean.wrapped_number = false;
        clean.requires_grad = false;
        return add_value(graph_,
                         {.name = metas.size() > 1 ? text(base, "_", which++) : base, .meta = std::move(clean)});
      });
      results.push_back(map_tensors<Tensor>(result, [&](const Value& v) { return tensor(v); }));
      node.results.push_back(std::move(result));
    }
  }
  add_node(graph_, std::move(node));
  return results;
}

namespace {

// What an in-place form computes has the sizes of the tensor that it is written to.
void require_written_sizes(const Op& op, std::span<const CallArg> args) {
  if (!op.schema.args[0].writes) return;  // an out form
  Metas made = infer_any(*op.functional, args.first(op.functional->schema.args.size()));
  auto* result = made.values.empty() ? nullptr : made.values[0].get<TensorMeta>();
  if (!result) return;
  const TensorMeta& self = args[0].as<Tensor>().meta();
  bool same = result->rank() == self.rank();
  for (size_t d = 0; same && d < self.rank(); ++d) same = may_equal(result->sizes[d], self.sizes[d]);
  require(same, op.name(), ": it computes ", *result, ", which cannot be written to ", self);
}

}  // namespace

Metas infer_any(const Op& op, std::span<const CallArg> args) {
  if (op.functional && op.functional->kind !=
                           OpKind::view) {  // an in-place form gives its argument back, an out form the tensor it wrote
    require_written_sizes(op, args);
    Metas out;
    for (size_t i = 0; i < op.schema.args.size(); ++i)
      if (assigns(op, i)) out.values.emplace_back(args[i].as<Tensor>().meta());
    return out;
  }
  if (auto metas = infer(op.functional ? *op.functional : op, args)) return *metas;
  const OpDef* def = op.def;
  if (op.traits.asserts) return {};
  DecomposeRule meaning = meaning_of(op, args);
  if (!meaning && def && meets_complex(args))
    fail_unsupported(text("the operator ", op.name(), " of complex tensors is not supported yet"));
  if (!meaning && def) meaning = def->decompose;
  if (!meaning) fail_unsupported(text("the operator ", op.name(), " is not supported; tenon ops lists those that are"));
  // Trace what it means into a graph of its own; only the results' metas are of interest.
  GraphBody scratch;
  // Symbols for sizes that only a run can tell belong to the program: its shapes are lent to the graph.
  struct Loan {
    sym::ShapeEnv* own = growing_shapes();
    sym::ShapeEnv& lent;
    explicit Loan(sym::ShapeEnv& to) : lent(to) {
      if (own) lent = std::move(*own);
    }
    ~Loan() {
      if (own) *own = std::move(lent);
    }
  } loan(scratch.shapes);
  std::optional<ShapesScope> shapes;
  if (loan.own) shapes.emplace(&scratch.shapes);
  Tracer tracer(scratch);
  CallArgs inside;
  for (const CallArg& a : args)
    inside.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) {
      return t && !t.meta().wrapped_number ? tracer.tensor(add_input(scratch, "x", t.meta())) : t;
    }));
  DispatchScope scope(&tracer);
  RandomScope random([] { return random_state(0, 0); });  // of that graph; nothing is drawn
  Build build(op, inside);
  Results results = meaning(build);
  Metas metas;
  for (const CallArg& r : results.values) {
    if (auto* t = r.get<Tensor>(); t && !*t) metas.values.emplace_back();
    else metas.values.push_back(map_tensors<TensorMeta>(r, [](const Tensor& t) { return t.meta(); }));
  }
  return metas;
}

}  // namespace tenon
