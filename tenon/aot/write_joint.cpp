#include "tenon/aot/write_joint.h"

#include <algorithm>

#include "tenon/export/spell_sizes.h"
#include "tenon/interp/eager.h"
#include "tenon/interp/run_graph.h"
#include "tenon/passes/grad_regions.h"
#include "tenon/passes/to_torch.h"
#include "tenon/rules/registry.h"
#include "tenon/tensor/ones.h"

namespace tenon {
namespace {

bool has_name(const InputMeaning& meaning, const InputSpec& spec) {
  auto named = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), spec.target) != names.end();
  };
  switch (spec.kind) {
    case InputKind::parameter: {
      auto* p = std::get_if<input::Parameter>(&meaning);
      return p && named(p->names);
    }
    case InputKind::buffer: {
      auto* b = std::get_if<input::Buffer>(&meaning);
      return b && named(b->names);
    }
    case InputKind::constant_tensor: {
      auto* c = std::get_if<input::Constant>(&meaning);
      return c && c->name == spec.target;
    }
    case InputKind::user_input: {
      auto* u = std::get_if<input::User>(&meaning);
      return u && u->name == spec.name;
    }
    case InputKind::custom_object:
    case InputKind::token: return false;
  }
  unreachable();
}

class Writer {
 public:
  Writer(const JointProgram& joint, const ExportedProgram& original)
      : joint_(joint), original_(original), spelled_(to_torch(joint.graph.body())), replay_(spelled_.body()) {}

  ExportedProgram run() {
    inputs();
    for (const Node& node : spelled_->nodes) replay_.node(node);
    outputs();
    out_.graph = make_grad_regions(spell_sizes(replay_.graph.body(), registry()).body());
    for (size_t i = 0; i < out_.signature.outputs.size(); ++i) out_.signature.outputs[i].arg = out_.graph->outputs[i];
    for (size_t i = 0; i < out_.signature.inputs.size(); ++i) out_.signature.inputs[i].arg = out_.graph->inputs[i];
    rest();
    verify(out_);
    return std::move(out_);
  }

 private:
  // One placeholder for each of the original's, in its order, so that names and arguments stay what they were; then
  // cotangents.
  void inputs() {
    std::vector<bool> taken(joint_.convention.inputs.size());
    const GraphBody& old = original_.graph.body();
    for (size_t i = 0; i < original_.signature.inputs.size(); ++i) {
      InputSpec spec = original_.signature.inputs[i];
      const Value* placeholder = old.inputs[i].get<Value>();
      if (!placeholder) {
        replay_.graph->inputs.push_back(old.inputs[i]);
      } else {
        Value made = add_value(replay_.graph.body(), input_info(old.info(*placeholder)));
        replay_.graph->inputs.emplace_back(made);
        for (size_t k = 0; k < taken.size(); ++k)
          if (!taken[k] && has_name(joint_.convention.inputs[k], spec)) {
            replay_.map[spelled_->inputs[k].get<Value>()->id] = made;
            taken[k] = true;
            break;
          }
      }
      out_.signature.inputs.push_back(std::move(spec));
    }
    for (size_t k = 0; k < taken.size(); ++k)
      if (std::holds_alternative<input::Tangent>(joint_.convention.inputs[k])) {
        Value v = *spelled_->inputs[k].get<Value>();
        Value made = add_value(replay_.graph.body(), spelled_->info(v));
        replay_.map[v.id] = made;
        replay_.graph->inputs.emplace_back(made);
        InputSpec spec;
        spec.name = tangent_name_ = free_name(public_name(joint_.convention.inputs[k]));
        tangent_ = spelled_->info(v).meta;
        out_.signature.inputs.push_back(std::move(spec));
      }
  }

  // A joint program that is differentiated again has a cotangent already.
  std::string free_name(const std::string& wanted) const {
    auto taken = [&](const std::string& name) {
      return std::any_of(original_.signature.inputs.begin(), original_.signature.inputs.end(),
                         [&](const InputSpec& spec) { return spec.name == name; });
    };
    std::string name = wanted;
    for (int i = 1; taken(name); ++i) name = text(wanted, "_", i);
    return name;
  }

  static ValueInfo input_info(ValueInfo info) {
    info.producer = no_id;
    return info;
  }

  void output(OutputKind kind, const Arg& value, std::string target = "") {
    replay_.graph->outputs.push_back(value);
    OutputSpec spec;
    spec.kind = kind;
    spec.target = std::move(target);
    out_.signature.outputs.push_back(std::move(spec));
  }

  bool has_gradients() const {
    for (const OutputMeaning& meaning : joint_.convention.outputs)
      if (std::holds_alternative<output::Gradient>(meaning)) return true;
    return false;
  }

  void outputs() {
    const CallingConvention& c = joint_.convention;
    auto value = [&](size_t i) { return replay_.moved(spelled_->outputs[i]); };
    for (const OutputMeaning& meaning : c.outputs)
      if (auto* v = std::get_if<output::Viewed>(&meaning))
        fail("the program changes the sizes or strides of ", to_text(c.inputs[v->input]),
             " in place, which a file of a functional program cannot say; use a view of it (t instead of t_)");
    for (size_t i = 0; i < c.outputs.size(); ++i)
      if (auto* u = std::get_if<output::Updated>(&c.outputs[i])) {
        const InputMeaning& of = c.inputs[u->input];
        OutputKind kind = std::holds_alternative<input::Buffer>(of)      ? OutputKind::buffer_mutation
                          : std::holds_alternative<input::Parameter>(of) ? OutputKind::parameter_mutation
                                                                         : OutputKind::user_input_mutation;
        output(kind, value(i), public_name(of));
      }
    for (size_t leaf = 0; leaf < c.user_outputs.size(); ++leaf) {
      Arg result = map_tensors<Value>(c.user_outputs[leaf], [](const Tensor&) { return Value{}; });
      for (size_t i = 0; i < c.outputs.size(); ++i)
        if (auto* u = std::get_if<output::User>(&c.outputs[i]); u && u->leaf == leaf) result = value(i);
      bool is_loss = leaf == joint_.loss && !tangent_ && has_gradients();
      output(is_loss ? OutputKind::loss_output : OutputKind::user_output, result);
    }
    for (size_t i = 0; i < c.outputs.size(); ++i)
      if (auto* g = std::get_if<output::Gradient>(&c.outputs[i])) {
        const InputMeaning& of = c.inputs[g->input];
        // Files know gradients of state and of inputs; a buffer's is one of state.
        const std::vector<std::string>* names = nullptr;
        if (auto* p = std::get_if<input::Parameter>(&of)) names = &p->names;
        if (auto* b = std::get_if<input::Buffer>(&of)) names = &b->names;
        if (!names) output(OutputKind::gradient_to_user_input, value(i), public_name(of));
        for (size_t k = 0; names && k < names->size(); ++k)
          output(OutputKind::gradient_to_parameter, value(i), (*names)[k]);
      }
  }

  // Of sizes that gradients brought, in graphs within the graph too.
  void add_ranges(const GraphBody& graph) {
    for (const sym::Ranges::Entry& entry : graph.shapes.ranges.entries()) {
      if (out_.graph->shapes.ranges.find(entry.symbol)) continue;
      out_.graph->shapes.constrain(entry.symbol, entry.range);
      out_.ranges.emplace_back(entry.symbol.name(), entry.range);
    }
    for (const Node& node : graph.nodes)
      for (const Arg& arg : node.args)
        if (auto* within = arg.get<Subgraph>()) add_ranges(*within->body);
  }

  void rest() {
    out_.state = original_.state;
    out_.constants = original_.constants;
    module_calls();
    out_.extra_files = original_.extra_files;
    out_.ranges = original_.ranges;
    out_.guards = original_.guards;
    out_.graph->shapes = original_.graph->shapes;
    add_ranges(joint_.graph.body());
    out_.dialect = "ATEN";
    out_.torch_version = original_.torch_version;
    out_.metadata = original_.metadata;
    std::erase_if(out_.metadata, [](const auto& entry) { return entry.first == sharing_key; });
    if (!joint_.convention.sharing.empty())
      out_.metadata.emplace_back(std::string(sharing_key), joint_.convention.sharing);
    out_.namedtuple_fields = original_.namedtuple_fields;
    out_.opset_version = original_.opset_version;
    out_.hints = original_.hints;
    out_.check_payloads = original_.check_payloads;
    ModuleCallSignature& call = *out_.module_calls[0].signature;
    call.out = joint_.convention.out;
    auto samples = original_.samples;
    if (!tangent_) {
      out_.samples = samples;
      return;
    }
    // The cotangent is a keyword argument behind all others: it comes last when arguments are flattened.
    std::string name = tangent_name_;
    add_keyword(call.in, name);
    if (call.forward_arg_names) call.forward_arg_names->push_back(name);
    Graph graph = original_.graph.copy();
    TensorMeta meta = *tangent_;
    out_.samples = [samples, meta, name, shared = std::make_shared<Graph>(std::move(graph)),
                    specs = original_.signature.inputs]() -> std::optional<SampleInputs> {
      std::optional<SampleInputs> given = samples ? samples() : std::nullopt;
      if (!given) return std::nullopt;
      // The sizes of the cotangent, from the sizes of the samples.
      GraphBody users;
      users.shapes = shared->body().shapes;
      std::vector<CallArg> values;
      std::vector<std::string> names;
      size_t leaf = 0;
      for (size_t i = 0; i < specs.size(); ++i) {
        if (specs[i].kind != InputKind::user_input) continue;
        if (const Value* v = shared->body().inputs[i].get<Value>()) {
          users.inputs.emplace_back(add_value(users, shared->body().info(*v)));
          values.push_back(given->leaves.at(leaf));
          names.push_back(specs[i].name);
        }
        ++leaf;
      }
      sym::Bindings symbols = interp::bind_symbols(users, values, names);
      TensorMeta made = meta;
      for (SymInt& s : made.sizes) s = sym::evaluate(s, symbols);
      given->leaves.emplace_back(ones_tensor(made.dtype, made.sizes));
      add_keyword(given->tree, name);
      return given;
    };
  }

  // The calls of submodules, in terms of the new graph. One whose values are no longer there keeps its name alone: what
  // it took and gave has no place in this program.
  void module_calls() {
    std::unordered_map<std::string_view, Value> by_name;  // of the original graph
    for (const Arg& input : out_.graph->inputs)
      if (auto* v = input.get<Value>()) by_name[out_.graph->info(*v).name] = *v;
    for (const Node& node : out_.graph->nodes)  // the last that was made of a node gives its result
      if (auto* v = node.results.size() == 1 ? node.results[0].get<Value>() : nullptr;
          v && node.phase == Phase::forward)
        by_name[node.origin.name] = *v;
    auto move = [&](Args& args) {
      bool found = true;
      for (Arg& arg : args)
        for_each_tensor(arg, [&](Value& v) {
          if (!v) return;
          const ValueInfo& old = original_.graph->info(v);
          auto at = by_name.find(old.name);
          found = found && at != by_name.end() && out_.graph->info(at->second).type == old.type &&
                  out_.graph->info(at->second).meta.sizes == old.meta.sizes;
          if (found) v = at->second;
        });
      return found;
    };
    for (ModuleCallEntry entry : original_.module_calls) {
      bool moved = !entry.signature || (move(entry.signature->inputs) && move(entry.signature->outputs));
      if (!moved && !entry.fqn.empty()) entry.signature.reset();
      else if (!moved) entry.signature->inputs.clear(), entry.signature->outputs.clear();  // that of the program
      out_.module_calls.push_back(std::move(entry));
    }
  }

  static void add_keyword(Tree& in, const std::string& name) {
    require(in.children.size() == 2, "the program's arguments are not (args, kwargs)");
    Tree& keywords = in.children[1];
    keywords.keys.push_back("'" + name + "'");
    keywords.children.emplace_back();
    keywords.context.clear();  // written anew from the keys
  }

  const JointProgram& joint_;
  const ExportedProgram& original_;
  Graph spelled_;
  Replay replay_;
  ExportedProgram out_;
  std::optional<TensorMeta> tangent_;
  std::string tangent_name_;
};

}  // namespace

ExportedProgram to_exported(const JointProgram& joint, const ExportedProgram& original) {
  return Writer(joint, original).run();
}

}  // namespace tenon
