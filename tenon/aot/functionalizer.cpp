// Views as other ways of looking at a memory, writes as its next version.
#include "tenon/aot/functionalizer.h"

#include <algorithm>

#include "tenon/graph/assigns.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/view_writes.h"
#include "tenon/ops/views.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

CallResults Functionalizer::run(const Op& op, CallArgs args) { return execute(op, std::move(args), nullptr); }

CallResults Functionalizer::execute(const Op& op, CallArgs args, const KnownMetas* known) {
  if (op.functional) return write_call(op, std::move(args));
  if (op.kind == OpKind::view) return view_call(op, args, known);
  const OpDef* def = op.def;
  bool declares_alias = false;
  for (const SchemaArg& r : op.schema.returns) declares_alias = declares_alias || !r.alias.empty();
  if (def && def->decompose && (op.traits.may_alias || op.traits.random || declares_alias)) {
    DispatchScope scope(this);
    Build build(op, args);
    return def->decompose(build).values;
  }
  require(!op.writes(), "the operator ", op.name(), " writes to its arguments in a way that is not supported yet");
  CallResults values = emit(op, args, known);
  for (CallArg& v : values) v = map_tensors<Tensor>(v, [&](const Tensor& t) { return fresh(t); });
  return values;
}

Tensor Functionalizer::fresh(const Tensor& value, size_t input, bool may_carry_gradient) {
  if (!value) return value;
  auto memory = std::make_shared<Memory>();
  memory->base = value;
  memory->input = input;
  memory->may_carry_gradient = may_carry_gradient && is_differentiable(value.dtype());
  return look(memory, whole, value.meta(), value);
}

Tensor Functionalizer::look(std::shared_ptr<Memory> memory, Path path, const TensorMeta& meta, Tensor current) {
  Tensor handle(meta, &tracer.graph(), current.impl()->value);
  uint64_t version = memory->version;
  tensors_[handle.impl()] = {handle, std::move(memory), path, std::move(current), version};
  return handle;
}

Path Functionalizer::along(Path path, const std::vector<remap::Part>& parts) {
  for (const remap::Part& part : parts) {
    pieces_.push_back({path, part});
    path = static_cast<Path>(pieces_.size());
  }
  return path;
}

std::vector<remap::Part> Functionalizer::parts_of(Path path) const {
  std::vector<remap::Part> parts;
  for (; path != whole; path = pieces_[path - 1].before) parts.push_back(pieces_[path - 1].part);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Tensor Functionalizer::read(const Tensor& handle) {
  if (!handle || !handle.is_traced()) return handle;
  AliasedTensor& t = find(handle);
  if (t.version != t.memory->version) {
    DispatchScope scope(&tracer);
    t.current = read_through(IndexMap{parts_of(t.path)}, t.memory->base);
    t.version = t.memory->version;
  }
  return t.current;
}

AliasedTensor& Functionalizer::find(const Tensor& handle) {
  auto it = tensors_.find(handle.impl());
  expect(it != tensors_.end(), "a tensor the functionalizer has not seen, ", handle.meta());
  return it->second;
}

CallArgs Functionalizer::values_of(const CallArgs& args) {
  CallArgs out;
  out.reserve(args.size());
  for (const CallArg& a : args) out.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) { return read(t); }));
  return out;
}

CallResults Functionalizer::emit(const Op& op, const CallArgs& args, const KnownMetas* known) {
  return known ? tracer.append(op, values_of(args), *known) : tracer.call(op, values_of(args));
}

CallResults Functionalizer::view_call(const Op& op, const CallArgs& args, const KnownMetas* known) {
  AliasedTensor base = find(args[0].as<Tensor>());  // a copy: look() may move the table
  MetaCall call(op, args);
  std::vector<IndexMap> maps = op.def->view(call);
  // The op itself is the best way to read its result now, unless the value lies otherwise than the program thinks.
  Tensor value = read(base.handle);
  bool direct = true;
  for (const IndexMap& map : maps) {
    TensorMeta m = value.meta();
    for (const remap::Part& s : map.parts) {
      direct = direct && is_view(s, m);
      if (std::holds_alternative<remap::Strided>(s))
        direct = direct && value.meta().strides == base.handle.meta().strides;
      if (!direct) break;
      m = viewed(s, m);
    }
  }
  std::vector<Tensor> currents;
  if (direct) {
    CallResults results = emit(op, args, known);
    for (const CallArg& r : results) for_each_tensor(r, [&](const Tensor& t) { currents.push_back(t); });
  } else {
    DispatchScope scope(&tracer);
    for (const IndexMap& map : maps) currents.push_back(read_through(map, value));
  }
  std::vector<TensorMeta> metas;  // as the file has them, where it does
  if (known)
    for (const auto& m : *known) for_each_tensor(m, [&](const TensorMeta& meta) { metas.push_back(meta); });
  std::vector<Tensor> handles;
  for (size_t i = 0; i < maps.size(); ++i) {
    TensorMeta meta = i < metas.size() ? metas[i] : viewed(maps[i], base.handle.meta());
    handles.push_back(look(base.memory, along(base.path, maps[i].parts), meta, currents[i]));
  }
  if (op.schema.returns[0].type.list) return {CallArg(std::move(handles))};
  CallResults out;
  for (Tensor& h : handles) out.emplace_back(std::move(h));
  return out;
}

CallResults Functionalizer::write_call(const Op& op, CallArgs args) {
  CallArgs plain(args.begin(), args.begin() + static_cast<ptrdiff_t>(op.functional->schema.args.size()));
  CallResults values = call(*op.functional, std::move(plain));
  if (op.functional->kind == OpKind::view) {  // unsqueeze_: the tensor itself looks another way from now on
    Tensor target = args[0].as<Tensor>();
    AliasedTensor now = find(values[0].as<Tensor>());
    target.impl()->meta = now.handle.meta();
    now.handle = target;
    tensors_[target.impl()] = std::move(now);
    return {CallArg(target)};
  }
  CallResults results;
  size_t next = 0;
  for (size_t i = 0; i < op.schema.args.size(); ++i) {
    if (!assigns(op, i)) continue;
    expect(next < values.size(), op.target, " writes more than ", op.functional->target, " gives");
    Tensor target = args[i].as<Tensor>();
    write(target, read(values[next++].as<Tensor>()));
    results.emplace_back(target);
  }
  return results;
}

void Functionalizer::write(const Tensor& target, Tensor value) {
  AliasedTensor t = find(target);
  Memory& memory = *t.memory;
  std::vector<remap::Part> parts = parts_of(t.path);
  DispatchScope scope(&tracer);
  if (value.dtype() != target.dtype()) {
    bool cuts = is_differentiable(target.dtype()) &&
                !is_differentiable(value.dtype());  // x.lt_(0): its gradient is zero, not absent
    value =
        cuts ? Tensor(copy(t.version == memory.version ? t.current : read_through(IndexMap{parts}, memory.base), value))
             : to(value, target.dtype());
  }
  if (value.sizes() != target.sizes()) value = expand(value, target.sizes());
  bool stopped = false;
  std::vector<Tensor> bases = {memory.base};
  for (const remap::Part& s : parts) {
    auto* seen = std::get_if<remap::Reinterpret>(&s);  // as integers: autograd does not look there either
    stopped = stopped || std::holds_alternative<remap::Stop>(s) || (seen && !is_differentiable(seen->dtype));
    bases.push_back(read_step(s, bases.back()));
  }
  Tensor updated = value;
  for (size_t i = parts.size(); i-- > 0;) updated = write_through(parts[i], bases[i], updated);
  if ((!grad_enabled() || stopped) &&
      memory.may_carry_gradient) {  // hidden from autograd: the old value's gradient stays
    GradMode on(true);
    updated = overlay(memory.base, updated);
  }
  memory.base = updated;
  ++memory.version;
  AliasedTensor& again = find(target);
  if (parts.empty()) again.current = updated;
  else again.current = value;
  again.version = memory.version;
}

}  // namespace tenon
