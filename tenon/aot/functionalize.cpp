#include "tenon/aot/functionalize.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/aot/functionalizer.h"
#include "tenon/aot/guards.h"
#include "tenon/aot/sharing.h"
#include "tenon/graph/symbol_names.h"
#include "tenon/interp/eager.h"
#include "tenon/ops/random.h"
#include "tenon/passes/normalize.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

InputMeaning meaning_of(const InputSpec& spec, size_t& leaf) {
  switch (spec.kind) {
    case InputKind::parameter: return input::Parameter{{spec.target}};
    case InputKind::buffer: return input::Buffer{{spec.target}, spec.persistent};
    case InputKind::constant_tensor: return input::Constant{spec.target};
    case InputKind::user_input: return input::User{leaf++, spec.name};
    case InputKind::custom_object:
      fail("input ", spec.name, " is a custom object (", spec.target, "), which is not supported");
    case InputKind::token: break;  // says what comes after what: no value
  }
  unreachable();
}

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a && b && a.storage() == b.storage() && a.meta().offset == b.meta().offset && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.dtype() == b.dtype() && a.storage()->size() > 0;
}

// Equal for tensors that same_tensor finds equal.
size_t place_of(const Tensor& t) {
  size_t hash = std::hash<const void*>()(t.storage().get());
  auto mix = [&](size_t value) { hash = (hash ^ value) * 0x9e3779b97f4a7c15ull; };
  mix(t.meta().offset.hash());
  mix(static_cast<size_t>(t.dtype()));
  for (SymInt s : t.sizes()) mix(s.hash());
  for (SymInt s : t.strides()) mix(s.hash());
  return hash;
}

/// One walk over a program: inputs, nodes, then what it wrote and what it returns.
class Walk {
 public:
  Walk(const ExportedProgram& program, const GraphBody& from)
      : program_(program), from_(from), values_(from.values.size()), own_input_(from.inputs.size(), no_input) {
    graph_.shapes = from.shapes;
    reserve_names(from, graph_.shapes);
    convention_.in = program.in_tree();
    convention_.out = program.out_tree();
  }

  FunctionalProgram run(const std::vector<Sharing>& sharings) {
    bind_inputs();
    for (const Sharing& sharing : sharings) share(sharing, from_, functionalizer_, values_);
    remember_inputs();
    replay_nodes();
    add_updates();
    add_results();
    out_.graph = remove_dead_code(std::move(out_.graph));
    verify(out_.graph.body());
    return std::move(out_);
  }

  /// Whether the program wrote to this input of the signature.
  bool wrote(size_t i) { return came_[i] && functionalizer_.find(came_[i]).memory->version > 0; }

 private:
  void bind_inputs() {
    struct Held {
      Tensor tensor;
      size_t input;  // of the new graph
      ValueId value;
    };
    std::unordered_multimap<size_t, Held> held_before;  // by place_of
    StateIndex state(program_);
    size_t leaf = 0;
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      const InputSpec& spec = program_.signature.inputs[i];
      if (spec.kind == InputKind::token) continue;
      const Value* v = from_.inputs[i].get<Value>();
      if (!v) {  // an argument specialized to a constant
        convention_.user_inputs.push_back(map_tensors<Tensor>(from_.inputs[i], [](const Value&) { return Tensor(); }));
        convention_.user_names.push_back(spec.name);
        ++leaf;
        continue;
      }
      InputMeaning meaning = meaning_of(spec, leaf);
      if (std::holds_alternative<input::User>(meaning)) {
        convention_.user_inputs.emplace_back();
        convention_.user_names.push_back(spec.name);
      }
      const ValueInfo& info = from_.info(*v);
      Tensor held = is_state(meaning) ? state.tensor_of(spec) : Tensor();
      const Held* same = nullptr;  // parameters and buffers that are one tensor are one input
      if (held) {
        auto [first, last] = held_before.equal_range(place_of(held));
        for (auto it = first; it != last && !same; ++it)
          if (same_tensor(it->second.tensor, held) && convention_.inputs[it->second.input].index() == meaning.index())
            same = &it->second;
      }
      if (same) {
        if (auto* p = std::get_if<input::Parameter>(&convention_.inputs[same->input])) p->names.push_back(spec.target);
        else if (auto* b = std::get_if<input::Buffer>(&convention_.inputs[same->input]))
          b->names.push_back(spec.target);
        values_[v->id] = values_[same->value];
        continue;
      }
      ValueInfo fresh = info;
      fresh.producer = no_id;
      if (!all_of_sizes(info.meta.strides)) fresh.meta.strides = contiguous_strides(info.meta.sizes);
      Value input = add_value(graph_, fresh);
      graph_.inputs.emplace_back(input);
      convention_.inputs.push_back(meaning);
      if (held) held_before.emplace(place_of(held), Held{held, graph_.inputs.size() - 1, v->id});
      own_input_[i] = graph_.inputs.size() - 1;
      if (info.type != ValueType::tensor) {
        values_[v->id] = info.expr;
        continue;
      }
      bool may_carry =
          std::holds_alternative<input::Parameter>(meaning) || std::holds_alternative<input::User>(meaning);
      values_[v->id] = functionalizer_.fresh(functionalizer_.tracer.tensor(input), graph_.inputs.size() - 1, may_carry);
    }
  }

  /// Whether nothing but sizes of the inputs, which a call binds, decides these strides: an input exported as a part of
  /// a larger tensor has a stride of its own, and is taken as a whole one.
  bool all_of_sizes(const Sizes& strides) {
    for (SymInt stride : strides)
      for (SymInt symbol : sym::symbols_of(stride)) {
        if (!bound_) collect_bound();
        if (!bound_->contains(symbol.name())) return false;
      }
    return true;
  }
  void collect_bound() {
    bound_.emplace();
    for (const Arg& input : from_.inputs)
      if (const Value* v = input.get<Value>()) {
        for (SymInt size : from_.info(*v).meta.sizes)
          for (SymInt symbol : sym::symbols_of(size)) bound_->insert(symbol.name());
        for (SymInt symbol : sym::symbols_of(from_.info(*v).expr)) bound_->insert(symbol.name());
      }
  }

  // Each tensor as it came: the program may make its own look another way (t_).
  void remember_inputs() {
    came_.resize(from_.inputs.size());
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      const Value* v = from_.inputs[i].get<Value>();
      auto* t = v ? values_[v->id].get<Tensor>() : nullptr;
      if (!t || !*t) continue;
      AliasedTensor now = functionalizer_.find(*t);
      came_[i] = functionalizer_.look(now.memory, now.path, now.handle.meta(), now.current);
    }
  }

  void replay_nodes() {
    // Random operators draw from a state that is an input of the pure graph; it is there only where it is used.
    Value rng;
    RandomScope random([&]() -> Tensor {
      if (!rng) {
        rng = add_value(graph_, {.name = "rng_state", .meta = make_meta(DType::i64, {2})});
        graph_.inputs.emplace_back(rng);
        convention_.inputs.emplace_back(input::RngState{});
      }
      return functionalizer_.fresh(functionalizer_.tracer.tensor(rng), no_input, false);
    });
    ShapesScope shapes(&graph_.shapes);
    DispatchScope scope(&functionalizer_);
    functionalizer_.replay(from_, values_);
  }

  void emit_output(const Tensor& t, OutputMeaning meaning) {
    graph_.outputs.emplace_back(functionalizer_.tracer.value(t));
    convention_.outputs.push_back(std::move(meaning));
  }

  // What the program wrote comes out first, in the order of inputs; then the results.
  void add_updates() {
    std::vector<bool> emitted(graph_.inputs.size());
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      if (!wrote(i)) continue;
      size_t input = own_input_[i];
      if (input == no_input || emitted[input]) continue;
      emitted[input] = true;
      emit_output(functionalizer_.read(came_[i]), output::Updated{input});
    }
    for (size_t i = 0; i < from_.inputs.size(); ++i) {
      if (!came_[i] || own_input_[i] == no_input) continue;
      const Tensor& left = values_[from_.inputs[i].get<Value>()->id].as<Tensor>();
      const TensorMeta &before = came_[i].meta(), &after = left.meta();
      if (before.sizes == after.sizes && before.strides == after.strides && before.offset == after.offset) continue;
      const InputMeaning& of = convention_.inputs[own_input_[i]];
      require(std::holds_alternative<input::User>(of), "the program changes the sizes or strides of ", to_text(of),
              " in place, from ", before, " to ", after,
              ", which is not supported for state; use a view of it (t instead of t_)");
      emit_output(functionalizer_.read(left), output::Viewed{own_input_[i]});
    }
  }

  void add_results() {
    size_t result = 0;
    for (size_t i = 0; i < from_.outputs.size(); ++i) {
      const OutputSpec& spec = program_.signature.outputs[i];
      const Arg& output = from_.outputs[i];
      const Value* v = output.get<Value>();
      CallArg value = v && *v ? values_[v->id] : map_tensors<Tensor>(output, [](const Value&) { return Tensor(); });
      auto* tensor = value.get<Tensor>();
      switch (spec.kind) {
        case OutputKind::buffer_mutation:
        case OutputKind::parameter_mutation:
        case OutputKind::user_input_mutation: {  // a functional (ATEN) program says so itself
          size_t target = input_named(spec);
          require(target != no_input && tensor, "output ", i, " updates ", quoted(spec.target), ", which is no input");
          require_update_of(target, tensor->meta());
          emit_output(functionalizer_.read(*tensor), output::Updated{target});
          continue;
        }
        case OutputKind::gradient_to_parameter:
        case OutputKind::gradient_to_user_input: {
          size_t target = input_named(spec);
          require(target != no_input && tensor, "output ", i, " is the gradient of ", quoted(spec.target),
                  ", which is no input");
          emit_output(functionalizer_.read(*tensor), output::Gradient{target});
          continue;
        }
        case OutputKind::token: continue;
        case OutputKind::user_output:
        case OutputKind::loss_output: break;
      }
      add_result(value, result++);
    }
  }

  // What PyTorch makes of a program that changed the sizes of an input in place (t_) cannot be copied into it.
  void require_update_of(size_t target, const TensorMeta& value) const {
    const TensorMeta& own = graph_.info(graph_.inputs[target].as<Value>()).meta;
    bool fits = own.rank() == value.rank();
    for (size_t d = 0; fits && d < own.rank(); ++d) fits = known(sym::eq(own.sizes[d], value.sizes[d])) != false;
    fits = fits && (own.sizes == value.sizes || !is_permuted(own.sizes, value.sizes));
    require(fits, "the program updates ", to_text(convention_.inputs[target]), ", ", own, ", with ", value,
            ", which has other sizes; use a view of it where it is changed in place (t instead of t_)");
  }
  static bool is_permuted(const Sizes& a, const Sizes& b) {
    return std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
  }

  // The input that an output of the signature updates, or is the gradient of.
  size_t input_named(const OutputSpec& spec) const {
    bool buffers = spec.kind == OutputKind::buffer_mutation || spec.kind == OutputKind::gradient_to_parameter;
    bool parameters = spec.kind == OutputKind::parameter_mutation || spec.kind == OutputKind::gradient_to_parameter;
    auto named = [&](const std::vector<std::string>& names) {
      return std::find(names.begin(), names.end(), spec.target) != names.end();
    };
    for (size_t k = 0; k < convention_.inputs.size(); ++k) {
      const InputMeaning& m = convention_.inputs[k];
      if (auto* b = std::get_if<input::Buffer>(&m); b && buffers && named(b->names)) return k;
      if (auto* p = std::get_if<input::Parameter>(&m); p && parameters && named(p->names)) return k;
      if (auto* u = std::get_if<input::User>(&m); u && !buffers && !parameters && u->name == spec.target) return k;
    }
    return no_input;
  }

  // A result of the caller: a tensor with whom it shares memory, a number of the graph, or a constant.
  void add_result(const CallArg& value, size_t result) {
    convention_.user_outputs.emplace_back();
    if (auto* tensor = value.get<Tensor>(); tensor && *tensor) {
      const AliasedTensor& t = functionalizer_.find(*tensor);
      if (t.memory->input != no_input)
        convention_.aliases.push_back({result, Alias::input, t.memory->input, t.path == whole});
      auto [first, fresh] = first_result_.emplace(t.memory.get(), result);
      if (!fresh && t.memory->input == no_input)
        convention_.aliases.push_back({result, Alias::output, first->second, false});
      emit_output(functionalizer_.read(*tensor), output::User{result});
    } else if (value.is<SymInt>() && !value.get<SymInt>()->is_int()) {
      graph_.outputs.emplace_back(*value.get<SymInt>());
      convention_.outputs.emplace_back(output::User{result});
    } else {
      convention_.user_outputs.back() = value;
    }
  }

  const ExportedProgram& program_;
  const GraphBody& from_;
  FunctionalProgram out_;
  GraphBody& graph_ = out_.graph.body();
  CallingConvention& convention_ = out_.convention;
  Functionalizer functionalizer_{graph_};
  std::vector<CallArg> values_;                                // by value of the program: handles, or numbers
  std::vector<Tensor> came_;                                   // by input of the signature: the tensor as it came
  std::vector<size_t> own_input_;                              // signature -> input of the new graph
  std::unordered_map<const Memory*, size_t> first_result_;     // that looks at a memory
  std::optional<std::unordered_set<std::string_view>> bound_;  // symbols that sizes and numbers given by a call decide
};

std::string in_words(const std::vector<Sharing>& sharings, const ExportedProgram& program) {
  std::vector<std::string> out;
  for (const Sharing& s : sharings) out.push_back(to_text(s, program));
  return join(out, "; ");
}

bool has_user_input(const Sharing& sharing, const ExportedProgram& program) {
  auto user = [&](size_t i) { return program.signature.inputs[i].kind == InputKind::user_input; };
  return std::any_of(sharing.inputs.begin(), sharing.inputs.end(), user) ||
         std::any_of(sharing.otherwise.begin(), sharing.otherwise.end(), user);
}

// A program without writes that hands out what it would have written was made for one way of sharing memory: none,
// unless it says which.
std::string check_sharing(const ExportedProgram& program, std::vector<Sharing> sharings, bool called) {
  std::string made_for;
  for (const auto& [key, value] : program.metadata)
    if (key == sharing_key) made_for = value;
  if (!called) return made_for;
  auto updated = [&](size_t i) {
    const InputSpec& input = program.signature.inputs[i];
    for (const OutputSpec& spec : program.signature.outputs) {
      if (spec.kind == OutputKind::user_input_mutation && input.kind == InputKind::user_input &&
          spec.target == input.name)
        return true;
      bool state = spec.kind == OutputKind::buffer_mutation || spec.kind == OutputKind::parameter_mutation;
      if (state && input.kind != InputKind::user_input && spec.target == input.target) return true;
    }
    return false;
  };
  std::erase_if(sharings, [&](const Sharing& s) {
    return !has_user_input(s, program) || (std::none_of(s.inputs.begin(), s.inputs.end(), updated) &&
                                           std::none_of(s.otherwise.begin(), s.otherwise.end(), updated));
  });
  std::string given = in_words(sharings, program);
  auto said = [](const std::string& words) { return words.empty() ? std::string("no input shares memory") : words; };
  require(given == made_for,
          "the program updates inputs and was made for inputs that share memory so: ", said(made_for),
          "; got inputs of which: ", said(given),
          "; pass inputs that share memory so, or differentiate the program with sample inputs that share as these do");
  return made_for;
}

}  // namespace

FunctionalProgram functionalize(const ExportedProgram& program, const std::vector<CallArg>& user_inputs) {
  return functionalize(program, normalize(program.graph.body()), user_inputs);
}

FunctionalProgram functionalize(const ExportedProgram& program, const Graph& source,
                                const std::vector<CallArg>& user_inputs) {
  interp::install();  // rules may compute with real numbers while they are traced
  Walk apart(program, source.body());
  FunctionalProgram out = apart.run({});
  // Where storage is shared and written, once more with the sharing inputs over one memory.
  std::vector<Sharing> together = sharings_of(program, user_inputs);
  std::string made_for = check_sharing(program, together, !user_inputs.empty());
  std::erase_if(together, [&](const Sharing& sharing) {
    auto wrote = [&](size_t i) { return apart.wrote(i); };
    return std::none_of(sharing.inputs.begin(), sharing.inputs.end(), wrote) &&
           std::none_of(sharing.otherwise.begin(), sharing.otherwise.end(), wrote);
  });
  for (const Sharing& sharing : together)
    if (!sharing.otherwise.empty())
      fail("the inputs ", program.signature.inputs[sharing.inputs[0]].name, " and ",
           program.signature.inputs[sharing.otherwise[0]].name,
           " see the same memory as two dtypes and the program writes to it, which is not supported; pass a copy of "
           "one");
  if (!together.empty()) out = Walk(program, source.body()).run(together);
  out.convention.guards = guards_of(program, out.graph.body(), out.convention);
  std::erase_if(together, [&](const Sharing& sharing) { return !has_user_input(sharing, program); });
  out.convention.sharing = together.empty() ? made_for : in_words(together, program);
  return out;
}

}  // namespace tenon
