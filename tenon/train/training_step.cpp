#include "tenon/train/training_step.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "tenon/aot/rematerialize.h"
#include "tenon/autograd/reverse.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/structural.h"
#include "tenon/ops/views.h"
#include "tenon/passes/decompose.h"
#include "tenon/pipeline.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"

namespace tenon::train {
namespace {

struct WithLoss {
  FunctionalProgram program;  // user outputs: the loss, then what it counts
  std::vector<Target> targets;
  size_t loss = 0;  // which output of the graph
  bool counts_right = false;
};

void add_keyword(Tree& in, const std::string& name) {
  expect(in.children.size() == 2, "the program's arguments are not (args, kwargs)");
  in.children[1].keys.push_back("'" + name + "'");
  in.children[1].children.emplace_back();
  in.children[1].context.clear();
}

void require_free_name(const CallingConvention& convention, const std::string& name) {
  for (const std::string& taken : convention.user_names)
    require(taken != name, "the program has an input ", quoted(name),
            " itself, which is what the loss calls its target; use the loss none and return the loss from the program");
}

/// The functional program with the loss behind it; its own results are dropped.
WithLoss with_loss(const ExportedProgram& exported, const Loss& loss, Precision precision) {
  Walk walk(exported);
  const FunctionalProgram& functional = walk.functional();
  WithLoss out;
  out.program.graph =
      precision == Precision::full ? functional.graph.copy() : in_precision(functional.graph.body(), precision);
  out.program.convention = functional.convention;
  GraphBody& graph = out.program.graph.body();
  CallingConvention& c = out.program.convention;

  std::vector<Value> values(c.user_outputs.size());
  Args outputs;
  std::vector<OutputMeaning> meanings;
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    if (auto* user = std::get_if<output::User>(&c.outputs[i])) {
      if (auto* v = graph.outputs[i].get<Value>(); v && graph.info(*v).type == ValueType::tensor)
        values[user->leaf] = *v;
    } else if (!std::holds_alternative<output::Gradient>(c.outputs[i])) {
      outputs.push_back(graph.outputs[i]);
      meanings.push_back(c.outputs[i]);
    }
  }
  ShapesScope shapes(&graph.shapes);
  Tracer tracer(graph);
  DispatchScope scope(&tracer);
  std::vector<Tensor> results, targets;
  std::vector<TensorMeta> metas;
  for (Value v : values)
    if (v) {
      results.push_back(tracer.tensor(v));
      metas.push_back(results.back().meta());
    }
  out.targets = loss.targets(metas);
  for (const Target& target : out.targets) {
    require_free_name(c, target.name);
    Value v = add_input(graph, target.name, target.meta);
    c.inputs.emplace_back(input::User{c.user_inputs.size(), target.name});
    c.user_inputs.emplace_back();
    c.user_names.push_back(target.name);
    add_keyword(c.in, target.name);
    targets.push_back(tracer.tensor(v));
  }
  auto finish = [&](const Tensor& result) {
    outputs.emplace_back(tracer.value(result));
    meanings.emplace_back(output::User{c.user_outputs.size()});
    c.user_outputs.emplace_back();
  };
  c.user_outputs.clear();
  c.aliases.clear();
  out.loss = outputs.size();
  Tensor value = loss.value(results, targets);
  require(value && value.is_traced() && value.rank() == 0 && is_floating(value.dtype()), "the loss ", loss.name,
          ": expected a floating point scalar, got ", value ? text(value.meta()) : std::string("nothing"));
  finish(value);
  if (loss.right) {
    GradMode off(false);
    for (const Tensor& t : loss.right(results, targets)) finish(t);
    out.counts_right = true;
  }
  c.out = Tree{"builtins.tuple", "", {}, std::vector<Tree>(c.user_outputs.size())};
  graph.outputs = std::move(outputs);
  c.outputs = std::move(meanings);
  out.program.graph = remove_dead_code(std::move(out.program.graph));
  return out;
}

/// What stands behind a parameter in a group of its own, or in none.
struct Rates {
  double lr = 0, weight_decay = 0;
  bool operator<(const Rates& other) const {
    return std::pair(lr, weight_decay) < std::pair(other.lr, other.weight_decay);
  }
};

/// Builds the graphs of a step. Inputs of the functional program keep their places; what training keeps follows.
class Maker {
 public:
  Maker(const ExportedProgram& exported, const Loss& loss, const Optimizer& optimizer, const TrainingOptions& options)
      : exported_(exported),
        optimizer_(optimizer),
        options_(options),
        with_loss_(with_loss(exported, loss, options.precision)) {
    require(options.accumulate >= 1, "accumulate: expected 1 micro-batch to an update or more, got ",
            options.accumulate);
    choose();
    require_apart();
  }

  TrainingStep run() {
    out_.targets = with_loss_.targets;
    out_.counts_right = with_loss_.counts_right;
    differentiate();
    if (options_.accumulate > 1) out_.accumulate = made(&Maker::add_to_gradients);
    out_.update = made(&Maker::apply);
    return std::move(out_);
  }

 private:
  // One trained parameter that the loss depends on.
  struct Entry {
    size_t input;  // of the graph
    std::string name;
    Value gradient;
  };

  // Which parameters are trained; every pattern must say something.
  void choose() {
    const CallingConvention& c = with_loss_.program.convention;
    const GraphBody& graph = with_loss_.program.graph.body();
    wanted_.assign(graph.inputs.size(), false);
    std::vector<bool> used(options_.frozen.size()), used_groups(options_.groups.size());
    bool any = false;
    for (size_t i = 0; i < c.inputs.size(); ++i) {
      auto* p = std::get_if<input::Parameter>(&c.inputs[i]);
      const Value* v = graph.inputs[i].get<Value>();
      if (!p || !v) continue;
      bool frozen = false;
      for (const std::string& name : p->names) {
        for (size_t k = 0; k < options_.frozen.size(); ++k)
          if (matches(options_.frozen[k], name)) frozen = used[k] = true;
        for (size_t k = 0; k < options_.groups.size(); ++k)
          if (matches(options_.groups[k].pattern, name)) used_groups[k] = true;
      }
      const TensorMeta& meta = graph.info(*v).meta;
      wanted_[i] = !frozen && meta.requires_grad && is_differentiable(meta.dtype);
      any = any || wanted_[i];
    }
    for (size_t k = 0; k < used.size(); ++k) require_matched(used[k], options_.frozen[k]);
    for (size_t k = 0; k < used_groups.size(); ++k) require_matched(used_groups[k], options_.groups[k].pattern);
    require(any, "there is nothing to train: the program has no parameter that requires a gradient",
            options_.frozen.empty() ? "" : " and is not frozen");
    for (size_t i = 0; i < c.outputs.size(); ++i)
      if (auto* updated = std::get_if<output::Updated>(&c.outputs[i]); updated && wanted_[updated->input])
        fail("the program writes to ", to_text(c.inputs[updated->input]),
             " itself, so the optimizer cannot; freeze it, or make it a buffer");
  }

  void require_matched(bool used, const std::string& pattern) const {
    if (used) return;
    std::vector<std::string> names;
    for (const InputMeaning& m : with_loss_.program.convention.inputs)
      if (auto* p = std::get_if<input::Parameter>(&m)) names.push_back(p->names[0]);
    if (names.size() > 20) names.resize(20), names.emplace_back("...");
    fail("no parameter matches ", quoted(pattern), "; there are ", join(names, ", "));
  }

  // Two trained parameters over one memory would undo each other's updates.
  void require_apart() const {
    struct Extent {
      int64_t begin, end;
      std::string name;
    };
    std::map<const Storage*, std::vector<Extent>> by_storage;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      if (!wanted_[i]) continue;
      std::string name = public_name(with_loss_.program.convention.inputs[i]);
      const NamedTensor* held = exported_.find_state(name);
      if (!held || held->tensor.numel() == SymInt(0)) continue;
      const TensorMeta& meta = held->tensor.meta();
      int64_t last = meta.offset.as_int();
      for (size_t d = 0; d < meta.rank(); ++d) last += (meta.sizes[d].as_int() - 1) * meta.strides[d].as_int();
      by_storage[held->tensor.storage().get()].push_back({meta.offset.as_int(), last + 1, name});
    }
    for (auto& [storage, extents] : by_storage) {
      std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
      for (size_t i = 1; i < extents.size(); ++i)
        require(extents[i].begin >= extents[i - 1].end, "the parameters ", extents[i - 1].name, " and ",
                extents[i].name, " overlap in memory and cannot both be trained; freeze one of them");
    }
  }

  void differentiate() {
    const GraphBody& body = with_loss_.program.graph.body();
    joint_ = prepare_for_gradients(body, wanted_, {*body.outputs[with_loss_.loss].get<Value>()});
    GraphBody& graph = joint_.body();
    Value loss = *graph.outputs[with_loss_.loss].get<Value>();
    Tracer tracer(graph);
    Value cotangent;
    {
      DispatchScope scope(&tracer);
      Tensor value = tracer.tensor(loss);
      call_op(assert_async.op(), {Tensor(isfinite(value)), std::string(not_finite)});
      tracer.phase = Phase::backward;
      cotangent = tracer.value(full_like(value, 1.0 / static_cast<double>(options_.accumulate)));
    }
    std::vector<Value> inputs;
    std::vector<size_t> which;
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i]) {
        inputs.push_back(*graph.inputs[i].get<Value>());
        which.push_back(i);
      }
    std::vector<Value> gradients = append_backward(graph, {loss}, {cotangent}, inputs);
    for (size_t k = 0; k < which.size(); ++k) {
      std::string name = public_name(with_loss_.program.convention.inputs[which[k]]);
      if (gradients[k]) {
        entries_.push_back({which[k], name, gradients[k]});
        out_.trained.push_back(name);
      } else {
        out_.unreached.push_back(name);
      }
    }
    require(!entries_.empty(), "the loss depends on none of the parameters that are to be trained");
  }

  // A copy of the joint graph with more behind it.
  FunctionalProgram made(void (Maker::*rest)()) {
    current_.graph = joint_.copy();
    current_.convention = with_loss_.program.convention;
    GraphBody& graph = current_.graph.body();
    ShapesScope shapes(&graph.shapes);
    Tracer tracer(graph);
    tracer.phase = Phase::update;
    DispatchScope scope(&tracer);
    GradMode off(false);
    tracer_ = &tracer;
    (this->*rest)();
    tracer_ = nullptr;
    current_.graph = remove_dead_code(std::move(current_.graph));
    // Decomposed first: what a norm is made of is cheap to compute again, the norm is not.
    if (options_.memory_budget)
      current_.graph = rematerialize(decompose(current_.graph.body()).body(), current_.convention,
                                     {.memory_budget = *options_.memory_budget});
    verify(current_.graph.body());
    return std::move(current_);
  }

  struct Slot {
    Tensor now;
    size_t input;
  };

  // A further state of training: the first graph that asks for it declares it.
  Slot keep(Kept kept) {
    require(!exported_.find_state(kept.name), "the program has state of its own that is called ", quoted(kept.name),
            ", which is what training calls its own; rename it");
    GraphBody& graph = current_.graph.body();
    Value v = add_value(graph, {.name = kept.name, .meta = kept.meta});
    graph.inputs.emplace_back(v);
    current_.convention.inputs.emplace_back(input::Buffer{{kept.name}, true});
    auto known = [&](const Kept& k) { return k.name == kept.name; };
    if (std::none_of(out_.kept.begin(), out_.kept.end(), known)) out_.kept.push_back(std::move(kept));
    return {tracer_->tensor(v), graph.inputs.size() - 1};
  }

  // In the dtype it is kept in: beside a learning rate in f64 a parameter of no dimensions is computed in f64, too.
  void write(size_t input, const Tensor& value) {
    const TensorMeta wanted = current_.graph->info(*current_.graph->inputs[input].get<Value>()).meta;
    Value v = tracer_->value(to(value, wanted.dtype));
    const TensorMeta& made = current_.graph->info(v).meta;
    expect(made.dtype == wanted.dtype && made.sizes == wanted.sizes, "an update of ",
           public_name(current_.convention.inputs[input]), " is ", made, " where it is ", wanted);
    current_.graph->outputs.emplace_back(v);
    current_.convention.outputs.emplace_back(output::Updated{input});
  }

  const TensorMeta& meta_of(const Entry& e) const {
    return current_.graph->info(*current_.graph->inputs[e.input].get<Value>()).meta;
  }
  bool is_half(const Entry& e) const { return options_.master_weights && tenon::is_half(meta_of(e).dtype); }
  TensorMeta kept_meta(const Entry& e) const {
    return make_meta(is_half(e) ? DType::f32 : meta_of(e).dtype, meta_of(e).sizes, meta_of(e).device);
  }
  Tensor gradient(const Entry& e) {
    Tensor g = tracer_->tensor(e.gradient);
    return is_half(e) ? to(g, DType::f32) : g;
  }
  Slot sum_of_gradients(const Entry& e) { return keep({"gradient." + e.name, kept_meta(e), 0, ""}); }

  void add_to_gradients() {
    for (const Entry& e : entries_) {
      Slot sum = sum_of_gradients(e);
      write(sum.input, sum.now + gradient(e));
    }
  }

  // All gradients as one vector, made shorter where it is too long: as torch.nn.utils.clip_grad_norm_.
  void clip(std::vector<Tensor>& gradients) const {
    if (options_.clip_value > 0)
      for (Tensor& g : gradients) g = clamp(g, -options_.clip_value, options_.clip_value);
    if (options_.clip_norm <= 0) return;
    std::vector<Tensor> norms;
    for (const Tensor& g : gradients) norms.push_back(to(linalg_vector_norm(g), DType::f32));
    Tensor total = linalg_vector_norm(stack(norms));
    Tensor factor = clamp_max(options_.clip_norm / (total + 1e-6), 1.0);
    for (Tensor& g : gradients) g = g * to(factor, g.dtype());
  }

  Rates rates_of(const Entry& e) const {
    auto& p = std::get<input::Parameter>(current_.convention.inputs[e.input]);
    for (const ParameterGroup& group : options_.groups)
      for (const std::string& name : p.names)
        if (matches(group.pattern, name))
          return {group.lr.value_or(optimizer_.lr), group.weight_decay.value_or(optimizer_.weight_decay)};
    return {optimizer_.lr, optimizer_.weight_decay};
  }

  void apply() {
    std::vector<Tensor> gradients;
    for (const Entry& e : entries_) gradients.push_back(gradient(e));
    if (options_.accumulate > 1)
      for (size_t i = 0; i < entries_.size(); ++i) {
        Slot sum = sum_of_gradients(entries_[i]);
        gradients[i] = sum.now + gradients[i];
        write(sum.input, zeros_like(sum.now));
      }
    clip(gradients);

    Slot count = keep({"optimizer.step", make_meta(DType::i64, {}), 0, ""});
    Tensor before = to(count.now, DType::f64);
    write(count.input, add(count.now, 1));
    UpdateContext context;
    context.step = before + 1.0;

    std::map<Rates, std::vector<size_t>> groups;
    for (size_t i = 0; i < entries_.size(); ++i) groups[rates_of(entries_[i])].push_back(i);
    for (auto& [rates, members] : groups) {
      context.lr = options_.schedule ? options_.schedule(before, rates.lr) : before * 0.0 + rates.lr;
      context.weight_decay = rates.weight_decay;
      update_group(members, gradients, context);
    }
  }

  void update_group(const std::vector<size_t>& members, const std::vector<Tensor>& gradients,
                    const UpdateContext& context) {
    std::vector<Trained> group;
    std::vector<std::vector<Slot>> slots;
    std::vector<std::optional<Slot>> masters;
    for (size_t i : members) {
      const Entry& e = entries_[i];
      Trained p{.value = tracer_->tensor(*current_.graph->inputs[e.input].get<Value>()),
                .gradient = gradients[i],
                .slots = {}};
      masters.emplace_back();
      if (is_half(e)) {
        masters.back() = keep({"master." + e.name, kept_meta(e), 0, e.name});
        p.value = masters.back()->now;
      }
      slots.emplace_back();
      for (const Optimizer::Slot& slot : optimizer_.slots) {
        slots.back().push_back(keep({text("optimizer.", slot.name, ".", e.name), kept_meta(e), slot.initial, ""}));
        p.slots.push_back(slots.back().back().now);
      }
      group.push_back(std::move(p));
    }
    optimizer_.update(group, context);
    for (size_t k = 0; k < members.size(); ++k) {
      const Entry& e = entries_[members[k]];
      if (masters[k]) write(masters[k]->input, group[k].value);
      write(e.input, group[k].value);
      for (size_t s = 0; s < slots[k].size(); ++s) write(slots[k][s].input, group[k].slots[s]);
    }
  }

  const ExportedProgram& exported_;
  const Optimizer& optimizer_;
  const TrainingOptions& options_;
  WithLoss with_loss_;
  std::vector<bool> wanted_;  // by input of the graph
  Graph joint_;               // forward and backward
  std::vector<Entry> entries_;
  FunctionalProgram current_;
  Tracer* tracer_ = nullptr;
  TrainingStep out_;
};

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

TrainingStep make_training_step(const ExportedProgram& program, const Loss& loss, const Optimizer& optimizer,
                                const TrainingOptions& options) {
  return Maker(program, loss, optimizer, options).run();
}

Evaluation make_evaluation(const ExportedProgram& program, const Loss& loss) {
  WithLoss made = with_loss(program, loss, Precision::full);
  verify(made.program.graph.body());
  return {std::move(made.program), std::move(made.targets), made.counts_right};
}

std::unique_ptr<State> initial_state(const TrainingStep& step, const ExportedProgram& program, uint64_t seed) {
  std::unique_ptr<State> state = state_of(program, seed);
  for (const Kept& kept : step.kept) {
    // Made by operators, which know every dtype.
    DispatchScope eager(nullptr);
    if (kept.copy_of.empty()) {
      state->add(kept.name, full(kept.meta.sizes, kept.initial, kw("dtype", kept.meta.dtype)));
    } else {
      const Tensor* from = state->find(kept.copy_of);
      expect(from != nullptr, "there is no parameter ", kept.copy_of);
      state->add(kept.name, to(*from, kept.meta.dtype));
    }
  }
  return state;
}

}  // namespace tenon::train
