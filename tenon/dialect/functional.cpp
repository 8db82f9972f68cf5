#include <algorithm>
#include <unordered_map>
#include <utility>

#include "tenon/dialect/tracer.h"
#include "tenon/graph/assigns.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/sym/evaluate.h"

namespace tenon::dialect {
namespace {

Sizes inverse_permutation(const Sizes& dims) {
  Sizes out(dims.size(), SymInt(0));
  auto rank = static_cast<int64_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = dims[i].as_int();
    out[static_cast<size_t>(d < 0 ? d + rank : d)] = static_cast<int64_t>(i);
  }
  return out;
}

// The bounds of an item of a split along a dimension.
struct Bounds {
  SymInt start = 0, end = 0;
};

Bounds bounds_of(const ViewStep& step, const Tensor& base) {
  ArgsView call(*step.op, step.args);
  if (step.op->schema.find("split_sizes") >= 0) {
    Sizes sizes = call.ints("split_sizes");
    SymInt start = 0;
    for (size_t i = 0; i < step.item; ++i) start = start + sizes[i];
    return {start, start + sizes[step.item]};
  }
  SymInt size = call.integer("split_size"), start = size * SymInt(static_cast<int64_t>(step.item)), end = start + size;
  SymInt whole = base.size(call.constant("dim"));
  if (whole.is_int() && end.is_int() && end.as_int() > whole.as_int()) end = whole;
  return {start, end};
}

Tensor summed_to(Tensor value, const Sizes& sizes) {
  Sizes dims;
  size_t leading = value.rank() - sizes.size();
  for (size_t d = 0; d < leading; ++d) dims.push_back(static_cast<int64_t>(d));
  for (size_t d = leading; d < value.rank(); ++d)
    if (sizes[d - leading] == SymInt(1) && !(value.sizes()[d] == SymInt(1))) dims.push_back(static_cast<int64_t>(d));
  if (!dims.empty()) value = aten("sum.dim_IntList", value, dims, true);
  return leading > 0 ? Tensor(aten("view", value, sizes)) : value;
}

// A view's base with the view's new value in its place.
struct WriteBack {
  ArgsView call;
  const ViewStep& step;
  const Tensor &base, &value;
};
using WriteBackRule = Tensor (*)(const WriteBack&);

Tensor reshaped_back(const WriteBack& w) { return aten("view", w.value, w.base.sizes()); }
Tensor itself(const WriteBack& w) { return w.value; }

Tensor unsqueezed_back(const WriteBack& w) {
  Tensor out = w.value;
  for (size_t d = 0; d < w.base.rank(); ++d)
    if (out.rank() < w.base.rank() && w.base.sizes()[d] == SymInt(1) &&
        (d >= out.rank() || !(out.sizes()[d] == SymInt(1))))
      out = aten("unsqueeze", out, static_cast<int64_t>(d));
  return out;
}

Tensor item_put_back(const WriteBack& w) {
  Bounds bounds = bounds_of(w.step, w.base);
  return aten("slice_scatter", w.base, w.value, w.call.integer("dim"), bounds.start, bounds.end);
}

// PyTorch sums windows, which is right where they neither overlap nor leave something out.
Tensor folded_back(const WriteBack& w) {
  SymInt size = w.call.integer("size"), step = w.call.integer("step");
  int64_t dim = w.call.constant("dimension");
  SymInt whole = w.base.rank() == 0 ? SymInt(1) : w.base.size(dim), left = sym::mod(whole, step);
  if (!(size == step) || !(left == SymInt(0)))
    fail_unsupported(text("a write through windows of ", size, " elements, ", step, " apart, of a dimension of ", whole,
                          " cannot be said in the functional dialects; write to a copy"));
  return aten("unfold_backward", w.value, w.base.sizes(), dim, size, step);
}

const std::unordered_map<std::string_view, WriteBackRule>& write_backs() {
  static const std::unordered_map<std::string_view, WriteBackRule> all = {
      {"aten::unbind.int",
       [](const WriteBack& w) -> Tensor {
         return aten("select_scatter", w.base, w.value, w.call.integer("dim"), static_cast<int64_t>(w.step.item));
       }},
      {"aten::split.Tensor", item_put_back},
      {"aten::split_with_sizes", item_put_back},
      {"aten::view", reshaped_back},
      {"aten::_unsafe_view", reshaped_back},
      {"aten::_reshape_alias", reshaped_back},
      {"aten::view.dtype", [](const WriteBack& w) -> Tensor { return aten("view.dtype", w.value, w.base.dtype()); }},
      {"aten::detach", itself},
      {"aten::lift_fresh", itself},
      {"aten::alias", [](const WriteBack& w) -> Tensor { return aten("alias", w.value); }},
      {"aten::t", [](const WriteBack& w) -> Tensor { return aten("t", w.value); }},
      {"aten::transpose.int",
       [](const WriteBack& w) -> Tensor {
         return aten("transpose.int", w.value, w.call.integer("dim0"), w.call.integer("dim1"));
       }},
      {"aten::permute",
       [](const WriteBack& w) -> Tensor { return aten("permute", w.value, inverse_permutation(w.call.ints("dims"))); }},
      {"aten::unsqueeze",
       [](const WriteBack& w) -> Tensor { return aten("squeeze.dim", w.value, w.call.integer("dim")); }},
      {"aten::squeeze", unsqueezed_back},
      {"aten::squeeze.dim", unsqueezed_back},
      {"aten::squeeze.dims", unsqueezed_back},
      {"aten::select.int",
       [](const WriteBack& w) -> Tensor {
         return aten("select_scatter", w.base, w.value, w.call.integer("dim"), w.call.integer("index"));
       }},
      {"aten::slice.Tensor",
       [](const WriteBack& w) -> Tensor {
         return aten("slice_scatter", w.base, w.value, w.call.integer("dim"), w.call.arg("start"), w.call.arg("end"),
                     w.call.integer("step"));
       }},
      {"aten::expand", [](const WriteBack& w) -> Tensor { return summed_to(w.value, w.base.sizes()); }},
      {"aten::diagonal",
       [](const WriteBack& w) -> Tensor {
         return aten("diagonal_scatter", w.base, w.value, w.call.integer("offset"), w.call.integer("dim1"),
                     w.call.integer("dim2"));
       }},
      {"aten::as_strided",
       [](const WriteBack& w) -> Tensor {
         return aten("as_strided_scatter", w.base, w.value, w.call.ints("size"), w.call.ints("stride"),
                     w.call.arg("storage_offset"));
       }},
      {"aten::unfold", folded_back},
      {"aten::view_as_real", [](const WriteBack& w) { return Tensor(aten("view_as_complex", w.value)); }},
      {"aten::view_as_complex", [](const WriteBack& w) { return Tensor(aten("view_as_real", w.value)); }},
      {"aten::_conj", [](const WriteBack& w) { return Tensor(aten("_conj", w.value)); }},
  };
  return all;
}

}  // namespace

FunctionalTracer::Aliased& FunctionalTracer::find(const Tensor& handle) {
  auto it = tensors_.find(handle.impl());
  expect(it != tensors_.end(), "a tensor that was not traced, ", handle.meta());
  return it->second;
}

Tensor FunctionalTracer::add(std::shared_ptr<Memory> memory, std::vector<ViewStep> views, const Tensor& value,
                             uint64_t generation) {
  Tensor handle(value.meta(), &nodes_.tracer.graph(), value.impl()->value);
  tensors_[handle.impl()] = {handle, std::move(memory), std::move(views), value, generation, value.meta()};
  return handle;
}

Tensor FunctionalTracer::fresh(const Tensor& value) {
  if (!value) return value;
  auto memory = std::make_shared<Memory>();
  memory->base = value;
  return add(std::move(memory), {}, value, 0);
}

bool FunctionalTracer::was_written(const Tensor& handle) { return find(handle).memory->written; }
const TensorMeta& FunctionalTracer::as_it_came(const Tensor& handle) { return find(handle).came; }

Tensor FunctionalTracer::value_of(const Tensor& handle) {
  if (!handle || !handle.is_traced()) return handle;
  Aliased& t = find(handle);
  if (t.generation != t.memory->generation) {
    DispatchScope scope(&nodes_);
    // What the file says of the result of the call being traced is not said of these, though they be of the same
    // operator.
    std::optional<NodeTracer::Recorded> recorded = std::exchange(nodes_.recorded, std::nullopt);
    t.value = t.memory->base;
    for (const ViewStep& step : t.views) t.value = viewed(step, t.value);
    nodes_.recorded = std::move(recorded);
    t.generation = t.memory->generation;
  }
  return t.value;
}

CallArgs FunctionalTracer::values_of(const CallArgs& args) {
  CallArgs out;
  out.reserve(args.size());
  for (const CallArg& a : args) out.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) { return value_of(t); }));
  return out;
}

// An item of a list of views is read by itself.
Tensor FunctionalTracer::viewed(const ViewStep& step, const Tensor& base) {
  if (!step.of_list) {
    CallArgs args = step.args;
    args[0] = base;
    return nodes_.call(*step.op, std::move(args)).at(0).as<Tensor>();
  }
  ArgsView call(*step.op, step.args);
  if (step.op->schema.find("split_size") < 0 && step.op->schema.find("split_sizes") < 0)
    return aten("select.int", base, call.integer("dim"), static_cast<int64_t>(step.item));
  Bounds bounds = bounds_of(step, base);
  return aten("slice.Tensor", base, call.integer("dim"), bounds.start, bounds.end);
}

Tensor FunctionalTracer::written_back(const ViewStep& step, const Tensor& base, const Tensor& value) {
  auto at = write_backs().find(step.op->name());
  if (at == write_backs().end()) fail_unsupported(text("a write through ", step.op->name(), " is not supported here"));
  return at->second({ArgsView(*step.op, step.args), step, base, value});
}

void FunctionalTracer::write(const Tensor& handle, Tensor value) {
  Aliased t = find(handle);
  Memory& memory = *t.memory;
  require(!memory.shared_by, memory.shared_by ? memory.shared_by->name() : "",
          ": the program writes to memory that its result shares, so it cannot be kept; leave it out of keep");
  DispatchScope scope(&nodes_);
  if (value.dtype() != handle.dtype())
    value = aten("_to_copy", value, kw("dtype", handle.dtype()), kw("layout", Layout::strided));
  if (value.sizes() != handle.sizes()) value = aten("expand", value, Sizes(handle.sizes()));
  std::vector<Tensor> bases = {memory.base};
  for (size_t i = 0; i + 1 < t.views.size(); ++i) bases.push_back(viewed(t.views[i], bases.back()));
  Tensor updated = value;
  for (size_t i = t.views.size(); i-- > 0;) updated = written_back(t.views[i], bases[i], updated);
  memory.base = updated;
  memory.written = true;
  ++memory.generation;
  value_of(handle);
}

CallResults FunctionalTracer::run(const Op& op, CallArgs args) {
  if (policy_.keeps(op)) return kept_call(op, args);
  if (auto rule = policy_.composite(op)) {
    DispatchScope scope(this);
    Build build(op, args);
    Results made = rule(build);
    if (!made.values.empty()) return std::move(made.values);
  }
  if (op.writes()) return write_call(op, args);
  if (op.kind == OpKind::view) return view_call(op, args);
  CallResults results = nodes_.call(op, values_of(args));
  for (CallArg& r : results) r = map_tensors<Tensor>(r, [&](const Tensor& t) { return fresh(t); });
  return results;
}

CallResults FunctionalTracer::kept_call(const Op& op, const CallArgs& args) {
  if (op.writes()) return write_call(op, args);
  if (op.kind == OpKind::view) return view_call(op, args);
  bool shares = op.traits.may_alias;
  for (const SchemaArg& r : op.schema.returns) shares = shares || !r.alias.empty();
  CallResults results = nodes_.call(op, values_of(args));
  for (CallArg& r : results) r = map_tensors<Tensor>(r, [&](const Tensor& t) { return fresh(t); });
  if (!shares) return results;
  auto mark = [&](const Tensor& t) {
    if (t && t.is_traced()) find(t).memory->shared_by = &op;
  };
  if (auto* of = args.at(0).get<Tensor>(); of && *of) {
    require(!was_written(*of), op.name(),
            ": the program writes to memory that its result shares, so it cannot be kept;", " leave it out of keep");
    mark(*of);
  }
  for (const CallArg& r : results) for_each_tensor(r, mark);
  return results;
}

CallResults FunctionalTracer::view_call(const Op& op, const CallArgs& args) {
  Tensor of = args.at(0).as<Tensor>();
  CallResults made = nodes_.call(op, values_of(args));
  Aliased base = find(of);
  bool of_list = op.schema.returns[0].type.list;
  size_t item = 0;
  for (CallArg& r : made)
    r = map_tensors<Tensor>(r, [&](const Tensor& t) {
      std::vector<ViewStep> views = base.views;
      views.push_back({&op, args, item++, of_list});
      return add(base.memory, std::move(views), t, 0);
    });
  return made;
}

// A view that PyTorch has in place alone (resize_) is one by strides.
Tensor FunctionalTracer::seen_by(const Op& view, const CallArgs& args) {
  if (view.schema.space() != "tenon") return call(view, args).at(0).as<Tensor>();
  std::optional<Metas> metas = infer(view, values_of(args));
  expect(metas && metas->values.size() == 1, "a view in place without a rule for its sizes");
  const TensorMeta& meta = metas->values[0].as<TensorMeta>();
  DispatchScope scope(this);
  return aten("as_strided", args[0], meta.sizes, meta.strides);
}

CallResults FunctionalTracer::write_call(const Op& op, const CallArgs& args) {
  require(op.functional || op.def, "the operator ", op.name(), " writes in a way that is not supported here");
  if (op.functional && op.functional->kind == OpKind::view) {  // t_: the tensor itself is another view from now on
    Tensor target = args.at(0).as<Tensor>();
    Tensor seen = seen_by(*op.functional, args);
    Aliased now = find(seen);
    target.impl()->meta = seen.meta();
    now.handle = target;
    now.came = find(target).came;
    tensors_[target.impl()] = std::move(now);
    return {CallArg(target)};
  }
  if (!op.functional) {
    if (const Op* twin = registry().find(text(op.schema.space(), "::", op.schema.base(), "_functional")))
      return write_through_twin(op, *twin, args);
    require(op.def->decompose != nullptr, "the operator ", op.name(), " writes in a way that is not supported here");
    DispatchScope scope(this);
    Build build(op, args);
    return op.def->decompose(build).values;
  }
  CallArgs plain = args;
  plain.resize(op.functional->schema.args.size());
  CallResults values =
      op.functional->writes() ? call(*op.functional, plain) : nodes_.call(*op.functional, values_of(plain));
  CallResults results;
  size_t next = 0;
  for (size_t i = 0; i < op.schema.args.size(); ++i) {
    if (!assigns(op, i)) continue;
    Tensor target = args[i].as<Tensor>(), value = values.at(next++).as<Tensor>();
    write(target, op.functional->writes() ? value_of(value) : value);
    results.emplace_back(target);
  }
  return results;
}

// The operator's form without writes gives what it would have written behind its results.
CallResults FunctionalTracer::write_through_twin(const Op& op, const Op& twin, const CallArgs& args) {
  CallResults values = nodes_.call(twin, values_of(args));
  size_t next = op.schema.returns.size();
  for (size_t i = 0; i < op.schema.args.size(); ++i)
    if (op.schema.args[i].writes) write(args[i].as<Tensor>(), values.at(next++).as<Tensor>());
  values.resize(op.schema.returns.size());
  for (CallArg& r : values) r = map_tensors<Tensor>(r, [&](const Tensor& t) { return fresh(t); });
  return values;
}

}  // namespace tenon::dialect
