#include "tenon/aot/functionalize.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/interp/eager.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/ops/infer.h"
#include "tenon/ops/known.h"
#include "tenon/ops/random.h"
#include "tenon/ops/view.h"
#include "tenon/passes/normalise.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

constexpr size_t no_input = ~size_t{0};

/// What several tensors look at. A write makes a new version of its base.
struct Memory {
  Tensor base;  // the current contents, a value of the new graph
  uint64_t version = 0;
  size_t input = no_input;  // the graph input that it belongs to
  bool may_carry_gradient = true;
};

/// A tensor of the program: a way of looking at a memory.
struct AliasedTensor {
  Tensor handle;                   // kept alive: it is the key
  std::shared_ptr<Memory> memory;  // shared by all tensors that look at it
  std::vector<step::Step> steps;   // from the base
  Tensor current;                  // its value in the new graph, good for `version`
  uint64_t version = 0;
};

/// Replays a program that writes and aliases as one that does not. Tensors that rules and nodes see are handles with
/// the metas of the original program, so that questions about strides are answered as PyTorch answers them.
class Functionalizer : public Dispatcher {
 public:
  explicit Functionalizer(GraphBody& graph) : tracer(graph) {}
  Tracer tracer;
  const std::vector<BasicArg<TensorMeta>>* known_metas = nullptr;  // of the results of the node being replayed
  const Op* known_for = nullptr;

  CallResults call(const Op& op, CallArgs args) override {
    if (op.functional) return write_call(op, std::move(args));
    if (op.kind == Kind::view) return view_call(op, args);
    const OpDef* def = op.def;
    bool declares_alias = false;
    for (const SchemaArg& r : op.schema.returns) declares_alias = declares_alias || !r.alias.empty();
    if (def && def->decompose && (op.traits.may_alias || op.traits.random || declares_alias)) {
      DispatchScope scope(this);
      Build build(op, args);
      return def->decompose(build).values;
    }
    require(!op.writes(), "the operator ", op.name(), " writes to its arguments in a way that is not supported yet");
    CallResults values = emit(op, args);
    for (CallArg& v : values) v = map_tensors<Tensor>(v, [&](const Tensor& t) { return fresh(t); });
    return values;
  }

  /// A tensor with a memory of its own.
  Tensor fresh(const Tensor& value, size_t input = no_input, bool may_carry_gradient = true) {
    if (!value) return value;
    auto memory = std::make_shared<Memory>();
    memory->base = value;
    memory->input = input;
    memory->may_carry_gradient = may_carry_gradient && is_differentiable(value.dtype());
    return look(memory, {}, value.meta(), value);
  }

  /// The value a handle stands for now; read again through its steps where its memory was written since.
  Tensor read(const Tensor& handle) {
    if (!handle || !handle.is_traced()) return handle;
    AliasedTensor& t = find(handle);
    if (t.version != t.memory->version) {
      DispatchScope scope(&tracer);
      t.current = read_through(IndexMap{t.steps}, t.memory->base);
      t.version = t.memory->version;
    }
    return t.current;
  }

  AliasedTensor& find(const Tensor& handle) {
    auto it = tensors_.find(handle.impl());
    expect(it != tensors_.end(), "a tensor the functionaliser has not seen, ", handle.meta());
    return it->second;
  }

  /// A tensor that looks at a memory.
  Tensor look(std::shared_ptr<Memory> memory, std::vector<step::Step> steps, const TensorMeta& meta, Tensor current) {
    Tensor handle(meta, &tracer.graph(), current.impl()->value);
    uint64_t version = memory->version;
    tensors_[handle.impl()] = {handle, std::move(memory), std::move(steps), std::move(current), version};
    return handle;
  }

 private:
  CallArgs values_of(const CallArgs& args) {
    CallArgs out;
    out.reserve(args.size());
    for (const CallArg& a : args) out.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) { return read(t); }));
    return out;
  }

  CallResults emit(const Op& op, const CallArgs& args) {
    CallArgs values = values_of(args);
    if (known_metas && known_for == &op) {
      tracer.known_metas = known_metas;
      known_for = nullptr;
    }
    CallResults results = tracer.call(op, std::move(values));
    tracer.known_metas = nullptr;
    return results;
  }

  CallResults view_call(const Op& op, const CallArgs& args) {
    AliasedTensor base = find(*args[0].get<Tensor>());  // a copy: look() may move the table
    MetaCall call(op, args);
    std::vector<IndexMap> maps = op.def->view(call);
    const auto* known = known_for == &op ? known_metas : nullptr;
    // The op itself is the best way to read its result now, unless the value lies otherwise than the program thinks.
    Tensor value = read(base.handle);
    bool direct = true;
    for (const IndexMap& map : maps) {
      TensorMeta m = value.meta();
      for (const step::Step& s : map.steps) {
        if (auto* r = std::get_if<step::Reshape>(&s))
          direct = direct && view_strides(m.sizes, m.strides, r->sizes).has_value();
        if (std::holds_alternative<step::Strided>(s))
          direct = direct && value.meta().strides == base.handle.meta().strides;
        if (!direct) break;
        m = viewed(s, m);
      }
    }
    std::vector<Tensor> currents;
    if (direct) {
      CallResults results = emit(op, args);
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
      std::vector<step::Step> steps = base.steps;
      steps.insert(steps.end(), maps[i].steps.begin(), maps[i].steps.end());
      TensorMeta meta = i < metas.size() ? metas[i] : viewed(maps[i], base.handle.meta());
      handles.push_back(look(base.memory, std::move(steps), meta, currents[i]));
    }
    if (op.schema.returns[0].type.list) return {CallArg(std::move(handles))};
    CallResults out;
    for (Tensor& h : handles) out.emplace_back(std::move(h));
    return out;
  }

  CallResults write_call(const Op& op, CallArgs args) {
    size_t own = op.functional->schema.args.size();
    CallArgs plain(args.begin(), args.begin() + static_cast<ptrdiff_t>(own));
    CallResults values = call(*op.functional, std::move(plain));
    if (op.functional->kind == Kind::view) {  // unsqueeze_: the tensor itself looks another way from now on
      Tensor target = *args[0].get<Tensor>();
      AliasedTensor now = find(*values[0].get<Tensor>());
      target.impl()->meta = now.handle.meta();
      now.handle = target;
      tensors_[target.impl()] = std::move(now);
      return {CallArg(target)};
    }
    CallResults results;
    size_t next = 0;
    for (size_t i = 0; i < op.schema.args.size(); ++i) {
      if (!op.schema.args[i].writes) continue;
      Tensor target = *args[i].get<Tensor>();
      write(target, read(*values[next++].get<Tensor>()));
      results.emplace_back(target);
    }
    return results;
  }

  void write(const Tensor& target, Tensor value) {
    AliasedTensor t = find(target);
    Memory& memory = *t.memory;
    DispatchScope scope(&tracer);
    if (value.dtype() != target.dtype()) {
      bool cuts = is_differentiable(target.dtype()) &&
                  !is_differentiable(value.dtype());  // x.lt_(0): its gradient is zero, not absent
      value = cuts ? Tensor(copy(t.version == memory.version ? t.current : read_through(IndexMap{t.steps}, memory.base),
                                 value))
                   : to(value, target.dtype());
    }
    if (value.sizes() != target.sizes()) value = expand(value, target.sizes());
    bool stopped = false;
    std::vector<Tensor> bases = {memory.base};
    for (const step::Step& s : t.steps) {
      stopped = stopped || std::holds_alternative<step::Stop>(s);
      bases.push_back(read_step(s, bases.back()));
    }
    Tensor updated = value;
    for (size_t i = t.steps.size(); i-- > 0;) updated = write_through(t.steps[i], bases[i], updated);
    if ((!grad_enabled() || stopped) &&
        memory.may_carry_gradient) {  // hidden from autograd: the old value's gradient stays
      GradMode on(true);
      updated = overlay(memory.base, updated);
    }
    memory.base = updated;
    ++memory.version;
    AliasedTensor& again = find(target);
    if (t.steps.empty()) again.current = updated;
    else again.current = value;
    again.version = memory.version;
  }

  std::unordered_map<const Tensor::Impl*, AliasedTensor> tensors_;
};

}  // namespace

namespace {

InputMeaning meaning_of(const InputSpec& spec, size_t& leaf) {
  switch (spec.kind) {
    case InputKind::parameter: return input::Parameter{{spec.target}};
    case InputKind::buffer: return input::Buffer{{spec.target}, spec.persistent};
    case InputKind::constant_tensor: return input::Constant{spec.target};
    case InputKind::user_input: return input::User{leaf++, spec.name};
    case InputKind::custom_object:
      fail("input ", spec.name, " is a custom object (", spec.target, "), which is not supported");
    case InputKind::token: fail("input ", spec.name, " is an effect token, which is not supported yet");
  }
  unreachable();
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a && b && a.storage() == b.storage() && a.meta().offset == b.meta().offset && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.dtype() == b.dtype() && a.storage()->size() > 0;
}

std::vector<BasicArg<TensorMeta>> metas_of(const GraphBody& graph, const Node& node) {
  std::vector<BasicArg<TensorMeta>> metas;
  for (const Arg& r : node.results) {
    auto* v = r.get<Value>();
    if (v && *v && graph.info(*v).type != ValueType::tensor) metas.emplace_back(graph.info(*v).expr);
    else if (v && !*v) metas.emplace_back();
    else metas.push_back(map_tensors<TensorMeta>(r, [&](const Value& value) { return graph.info(value).meta; }));
  }
  return metas;
}

}  // namespace

namespace {

/// Inputs over one storage, with their places in it.
struct Sharing {
  std::vector<size_t> inputs;      // of the signature
  std::vector<TensorMeta> places;  // constant sizes, strides and offset
  int64_t elements = 0;            // of the storage
};

std::vector<Sharing> sharings_of(const ExportedProgram& program, const std::vector<CallArg>& user_inputs) {
  std::vector<std::pair<Tensor, size_t>> tensors;
  size_t leaf = 0;
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    Tensor t;
    if (spec.kind == InputKind::user_input) {
      if (leaf < user_inputs.size())
        if (auto* given = user_inputs[leaf].get<Tensor>()) t = *given;
      ++leaf;
    } else if (spec.kind != InputKind::token && spec.kind != InputKind::custom_object) {
      t = program.tensor_of(spec);
    }
    if (t && t.storage() && t.storage()->size() > 0) tensors.emplace_back(t, i);
  }
  std::vector<Sharing> out;
  std::unordered_map<const Storage*, size_t> by_storage;
  for (auto& [t, input] : tensors) {
    auto [at, fresh] = by_storage.try_emplace(t.storage().get(), out.size());
    if (fresh) out.emplace_back();
    Sharing& s = out[at->second];
    if (!s.inputs.empty() && s.places[0].dtype != t.dtype()) continue;  // seen as two dtypes: not one memory to us
    s.inputs.push_back(input);
    s.places.push_back(t.meta());
    s.elements = static_cast<int64_t>(t.storage()->size() / item_size(t.dtype()));
  }
  std::erase_if(out, [](const Sharing& s) { return s.inputs.size() < 2; });
  return out;
}

// Makes the tensors of a sharing look at one memory. Its first contents are put together from theirs.
void share(const Sharing& sharing, const GraphBody& from, Functionalizer& functionalizer,
           std::vector<CallArg>& values) {
  auto memory = std::make_shared<Memory>();
  Tensor first;
  {
    DispatchScope scope(&functionalizer.tracer);
    for (size_t k = 0; k < sharing.inputs.size(); ++k) {
      const Value* v = from.inputs[sharing.inputs[k]].get<Value>();
      if (!v || !values[v->id].is<Tensor>()) continue;
      Tensor t = functionalizer.read(*values[v->id].get<Tensor>());
      if (!first) {
        first = t;
        memory->base = zeros(Sizes{sharing.elements}, t);
        memory->input = functionalizer.find(*values[v->id].get<Tensor>()).memory->input;
      }
      const TensorMeta& place = sharing.places[k];
      memory->base = as_strided_scatter(memory->base, t, place.sizes, place.strides, place.offset);
    }
  }
  for (size_t k = 0; k < sharing.inputs.size(); ++k) {
    const Value* v = from.inputs[sharing.inputs[k]].get<Value>();
    if (!v || !values[v->id].is<Tensor>()) continue;
    const TensorMeta& place = sharing.places[k];
    const Tensor& own = *values[v->id].get<Tensor>();
    values[v->id] = functionalizer.look(memory, {step::Strided{place.sizes, place.strides, place.offset}}, own.meta(),
                                        functionalizer.read(own));
  }
}

/// `written[k]` tells of sharing k whether the program writes to a tensor of it.
FunctionalProgram functionalized(const ExportedProgram& program, const GraphBody& from,
                                 const std::vector<Sharing>& sharings, const std::vector<Sharing>& candidates,
                                 std::vector<bool>& written) {
  FunctionalProgram out;
  GraphBody& graph = out.graph.body();
  CallingConvention& convention = out.convention;
  graph.shapes = from.shapes;
  convention.in = program.in_tree();
  convention.out = program.out_tree();

  Functionalizer functionalizer(graph);
  std::vector<CallArg> values(from.values.size());  // handles, or numbers
  std::vector<Tensor> state;  // per input of the new graph: the tensor it holds, for finding equal ones
  std::vector<size_t> own_input(from.inputs.size(), no_input);  // signature -> input of the new graph
  size_t leaf = 0;
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    const Value* v = from.inputs[i].get<Value>();
    if (!v) {  // an argument specialised to a constant
      convention.user_inputs.push_back(map_tensors<Tensor>(from.inputs[i], [](const Value&) { return Tensor(); }));
      convention.user_names.push_back(spec.name);
      ++leaf;
      continue;
    }
    InputMeaning meaning = meaning_of(spec, leaf);
    if (std::holds_alternative<input::User>(meaning)) {
      convention.user_inputs.emplace_back();
      convention.user_names.push_back(spec.name);
    }
    const ValueInfo& info = from.info(*v);
    Tensor held = is_state(meaning) ? program.tensor_of(spec) : Tensor();
    size_t same = no_input;  // parameters and buffers that are one tensor are one input
    for (size_t k = 0; held && k < state.size() && same == no_input; ++k)
      if (same_tensor(state[k], held) && convention.inputs[k].index() == meaning.index()) same = k;
    if (same != no_input) {
      if (auto* p = std::get_if<input::Parameter>(&convention.inputs[same])) p->names.push_back(spec.target);
      else if (auto* b = std::get_if<input::Buffer>(&convention.inputs[same])) b->names.push_back(spec.target);
      for (size_t k = 0; k < i; ++k)
        if (const Value* other = from.inputs[k].get<Value>();
            other && same_tensor(program.tensor_of(program.signature.inputs[k]), held))
          values[v->id] = values[other->id];
      continue;
    }
    ValueInfo fresh = info;
    fresh.producer = no_id;
    Value input = add_value(graph, fresh);
    graph.inputs.emplace_back(input);
    convention.inputs.push_back(meaning);
    state.push_back(held);
    own_input[i] = graph.inputs.size() - 1;
    if (info.type != ValueType::tensor) {
      values[v->id] = info.expr;
      continue;
    }
    bool may_carry = std::holds_alternative<input::Parameter>(meaning) || std::holds_alternative<input::User>(meaning);
    values[v->id] = functionalizer.fresh(functionalizer.tracer.tensor(input), graph.inputs.size() - 1, may_carry);
  }
  for (const Sharing& sharing : sharings) share(sharing, from, functionalizer, values);

  // Random operators draw from a state that is an input of the pure graph; it is there only where it is used.
  Value rng;
  RandomScope random([&]() -> Tensor {
    if (!rng) {
      rng = add_value(graph, {.name = "rng_state", .meta = make_meta(DType::i64, {2})});
      graph.inputs.emplace_back(rng);
      convention.inputs.emplace_back(input::RngState{});
    }
    return functionalizer.fresh(functionalizer.tracer.tensor(rng), no_input, false);
  });

  {
    ShapesScope shapes(&graph.shapes);
    DispatchScope scope(&functionalizer);
    for (const Node& node : from.nodes) {
      CallArgs args;
      for (const Arg& a : node.args) {
        if (auto* v = a.get<Value>()) args.push_back(*v ? values[v->id] : CallArg());
        else
          args.push_back(
              map_tensors<Tensor>(a, [&](const Value& v) { return v ? *values[v.id].get<Tensor>() : Tensor(); }));
      }
      std::vector<BasicArg<TensorMeta>> metas = metas_of(from, node);
      GradMode grad(node.grad_enabled);
      functionalizer.tracer.origin = &node.origin;
      functionalizer.known_metas = &metas;
      functionalizer.known_for = node.op->functional ? nullptr : node.op;
      CallResults results = functionalizer.call(*node.op, std::move(args));
      functionalizer.known_metas = nullptr;
      functionalizer.tracer.origin = nullptr;
      for (size_t i = 0; i < node.results.size(); ++i) {
        if (auto* v = node.results[i].get<Value>(); v && *v) values[v->id] = results[i];
        else if (auto* list = node.results[i].get<std::vector<Value>>()) {
          auto* tensors = results[i].get<std::vector<Tensor>>();
          expect(tensors && tensors->size() == list->size(), node.op->name(),
                 " gave another number of tensors than its node has results");
          for (size_t k = 0; k < list->size(); ++k) values[(*list)[k].id] = CallArg((*tensors)[k]);
        }
      }
    }
  }

  // What the program wrote comes out first, in the order of inputs; then the results.
  auto emit_output = [&](const Tensor& t, OutputMeaning meaning) {
    graph.outputs.emplace_back(functionalizer.tracer.value(t));
    convention.outputs.push_back(std::move(meaning));
  };
  auto is_written = [&](size_t i) {
    const Value* v = from.inputs[i].get<Value>();
    auto* t = v ? values[v->id].get<Tensor>() : nullptr;
    return t && functionalizer.find(*t).memory->version > 0;
  };
  for (const Sharing& candidate : candidates)
    written.push_back(std::any_of(candidate.inputs.begin(), candidate.inputs.end(), is_written));
  std::vector<bool> emitted(graph.inputs.size());
  for (size_t i = 0; i < from.inputs.size(); ++i) {
    if (!is_written(i)) continue;
    const Tensor& t = *values[from.inputs[i].get<Value>()->id].get<Tensor>();
    size_t input = own_input[i];
    if (input == no_input || emitted[input]) continue;
    emitted[input] = true;
    emit_output(functionalizer.read(t), output::Updated{input});
  }

  size_t result = 0;
  std::vector<std::pair<Memory*, size_t>> seen;  // memories of earlier results
  for (size_t i = 0; i < from.outputs.size(); ++i) {
    const OutputSpec& spec = program.signature.outputs[i];
    const Arg& output = from.outputs[i];
    const Value* v = output.get<Value>();
    CallArg value = v && *v ? values[v->id] : map_tensors<Tensor>(output, [](const Value&) { return Tensor(); });
    auto* tensor = value.get<Tensor>();
    switch (spec.kind) {
      case OutputKind::buffer_mutation:
      case OutputKind::parameter_mutation:
      case OutputKind::user_input_mutation: {  // a functional (ATEN) program says so itself
        size_t target = no_input;
        for (size_t k = 0; k < convention.inputs.size(); ++k) {
          const InputMeaning& m = convention.inputs[k];
          auto named = [&](const std::vector<std::string>& names) {
            return std::find(names.begin(), names.end(), spec.target) != names.end();
          };
          if (auto* b = std::get_if<input::Buffer>(&m);
              b && spec.kind == OutputKind::buffer_mutation && named(b->names))
            target = k;
          if (auto* p = std::get_if<input::Parameter>(&m);
              p && spec.kind == OutputKind::parameter_mutation && named(p->names))
            target = k;
          if (auto* u = std::get_if<input::User>(&m);
              u && spec.kind == OutputKind::user_input_mutation && u->name == spec.target)
            target = k;
        }
        require(target != no_input && tensor, "output ", i, " updates ", quoted(spec.target), ", which is no input");
        emit_output(functionalizer.read(*tensor), output::Updated{target});
        continue;
      }
      case OutputKind::gradient_to_parameter:
      case OutputKind::gradient_to_user_input: {
        size_t target = no_input;
        for (size_t k = 0; k < convention.inputs.size(); ++k) {
          const InputMeaning& m = convention.inputs[k];
          if (auto* p = std::get_if<input::Parameter>(&m);
              p && std::find(p->names.begin(), p->names.end(), spec.target) != p->names.end())
            target = k;
          if (auto* u = std::get_if<input::User>(&m); u && u->name == spec.target) target = k;
        }
        require(target != no_input && tensor, "output ", i, " is the gradient of ", quoted(spec.target),
                ", which is no input");
        emit_output(functionalizer.read(*tensor), output::Gradient{target});
        continue;
      }
      case OutputKind::token: continue;
      case OutputKind::user_output:
      case OutputKind::loss_output: break;
    }
    convention.user_outputs.emplace_back();
    if (tensor && *tensor) {
      const AliasedTensor& t = functionalizer.find(*tensor);
      if (t.memory->input != no_input)
        convention.aliases.push_back({result, Alias::input, t.memory->input, t.steps.empty()});
      for (auto& [memory, earlier] : seen)
        if (memory == t.memory.get() && t.memory->input == no_input) {
          convention.aliases.push_back({result, Alias::output, earlier, false});
          break;
        }
      seen.emplace_back(t.memory.get(), result);
      emit_output(functionalizer.read(*tensor), output::User{result});
    } else if (value.is<SymInt>() && !value.get<SymInt>()->is_int()) {
      graph.outputs.emplace_back(*value.get<SymInt>());
      convention.outputs.emplace_back(output::User{result});
    } else {
      convention.user_outputs.back() = value;
    }
    ++result;
  }
  out.graph = remove_dead_code(std::move(out.graph));
  verify(out.graph.body());
  return out;
}

}  // namespace

FunctionalProgram functionalize(const ExportedProgram& program, const std::vector<CallArg>& user_inputs) {
  interp::install();  // rules may compute with real numbers while they are traced
  Graph source = normalise(program.graph.body());
  std::vector<Sharing> sharings = sharings_of(program, user_inputs);
  std::vector<bool> written;
  FunctionalProgram apart = functionalized(program, source.body(), {}, sharings, written);
  if (std::none_of(written.begin(), written.end(), [](bool w) { return w; })) return apart;
  std::vector<Sharing> together;
  for (size_t k = 0; k < sharings.size(); ++k)
    if (written[k]) together.push_back(sharings[k]);
  return functionalized(program, source.body(), together, {}, written);
}

}  // namespace tenon
