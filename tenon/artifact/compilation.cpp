#include "tenon/artifact/compilation.h"

#include <cstring>

#include "tenon/artifact/derive.h"

namespace tenon::artifact {
namespace {

/// A tensor's bytes as a buffer of the program has them.
void put(const Tensor& given, const loop::Buffer& buffer, std::span<std::byte> to) {
  if (to.empty()) return;
  TensorMeta meta;
  meta.dtype = buffer.dtype;
  meta.sizes = buffer.sizes;
  meta.strides = buffer.strides;
  if (given.strides() == buffer.strides) {
    std::memcpy(to.data(), given.bytes(), to.size());
    return;
  }
  Tensor laid_out(meta, std::make_shared<Storage>(to.size()));
  copy_elements(given, laid_out);
  std::memcpy(to.data(), laid_out.bytes(), to.size());
}

CallSignature signature_of(const Executable& executable, const plan::Planned& planned) {
  const CallingConvention& c = executable.convention;
  const loop::Program& program = executable.program;
  CallSignature out;
  out.names = c.user_names;
  out.constants = c.user_inputs;
  out.outputs = c.user_outputs;
  out.in = c.in;
  out.out = c.out;
  out.ranges = program.ranges;
  std::vector<size_t> place(program.inputs.size(), 0);
  for (size_t i : planned.inputs) {
    auto* user = std::get_if<input::User>(&c.inputs[i]);
    require(user != nullptr, "only whole programs can be compiled; this one also takes ", to_text(c.inputs[i]));
    place[i] = out.inputs.size();
    out.inputs.push_back(program.inputs[i]);
    out.inputs.back().name = user->name;
    out.leaves.push_back(user->leaf);
  }
  auto names = [](const InputMeaning& m) {
    if (auto* p = std::get_if<input::Parameter>(&m)) return p->names;
    if (auto* b = std::get_if<input::Buffer>(&m)) return b->names;
    return std::vector<std::string>{public_name(m)};
  };
  for (size_t i : planned.outputs) {
    const OutputMeaning& m = c.outputs[i];
    Result r;
    r.number = program.outputs[i].buffer == loop::no_buffer;
    if (auto* u = std::get_if<output::User>(&m)) r.leaf = u->leaf;
    else if (auto* g = std::get_if<output::Gradient>(&m)) {
      r.kind = Result::Kind::gradient;
      r.names = names(c.inputs[g->input]);
    } else if (auto* v = std::get_if<output::Viewed>(&m)) {
      r.kind = Result::Kind::viewed;
      r.names = {public_name(c.inputs[v->input])};
    } else {
      fail("only whole programs can be compiled; this one also gives ", to_text(m, c));
    }
    out.results.push_back(std::move(r));
  }
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    auto* updated = std::get_if<output::Updated>(&c.outputs[i]);
    if (!updated) continue;
    const InputMeaning& of = c.inputs[updated->input];
    Update u;
    u.state = program.inputs[updated->input].name;
    u.names = names(of);
    u.kind = std::holds_alternative<input::Parameter>(of) ? Update::Kind::parameter
             : std::holds_alternative<input::Buffer>(of)  ? Update::Kind::buffer
                                                          : Update::Kind::input;
    if (std::holds_alternative<input::Constant>(of)) continue;
    u.input = place[updated->input];
    out.updates.push_back(std::move(u));
  }
  return out;
}

/// What a state starts as anyway.
bool is_zeros(const Tensor& t) {
  const auto* bytes = t.storage()->data();
  const size_t size = t.storage()->size();
  return size == 0 || (bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, size - 1) == 0);
}

std::vector<bool> not_stored(const Executable& executable, const State& state, const CompileOptions& options) {
  std::vector<bool> out(executable.program.inputs.size());
  for (size_t i = 0; i < out.size(); ++i)
    if (const Tensor* t = state.find(executable.program.inputs[i].name)) out[i] = !options.store_state || is_zeros(*t);
  return out;
}

Tensor number_tensor(const CallArg& number) {
  if (auto* b = number.get<bool>()) return Tensor::number(*b);
  if (auto* d = number.get<double>()) return Tensor::number(*d);
  return Tensor::number(number.get<SymInt>()->as_int());
}

}  // namespace

Compilation::Compilation(const Executable& executable, const State& state, const CompileOptions& options,
                         bool interpreted)
    : executable_(executable),
      state_(state),
      options_(options),
      planned_(plan::make_tables(executable.program, executable.convention,
                                 {.updatable = options.updatable,
                                  .interpreted = interpreted,
                                  .not_stored = not_stored(executable, state, options)})) {
  require(!options.targets.empty(), "a program is compiled for at least one target");
  if (!executable.convention.sharing.empty())
    fail_unsupported("a program whose arguments share memory that it writes cannot be compiled");
  CallSignature signature = signature_of(executable, planned_);
  signature.parameters = options.parameters;
  if (options.samples) place_samples(signature);
  planned_.tables.metadata("signature", to_json(signature));
}

void Compilation::fill(std::span<std::byte> weights) const {
  derive(
      executable_.program, [&](size_t input) { return state(input); }, planned_.weights, weights);
  for (const plan::WeightItem& item : planned_.weights) {
    const loop::Buffer& buffer = executable_.program.buffers[item.buffer];
    if (buffer.role == loop::Role::state) put(state(buffer.slot), buffer, weights.subspan(item.offset, item.bytes));
  }
  for (const auto& [tensor, sample] : samples_)
    if (sample.bytes > 0) std::memcpy(weights.data() + sample.offset, tensor.bytes(), sample.bytes);
}

Tensor Compilation::state(size_t input) const {
  const std::string& name = executable_.program.inputs[input].name;
  const Tensor* tensor = state_.find(name);
  require(tensor != nullptr, "the state has no ", name, "; it belongs to another program");
  return *tensor;
}

void Compilation::place_samples(CallSignature& signature) {
  uint64_t at = planned_.tables.weights_size();
  signature.has_samples = true;
  for (size_t leaf = 0; leaf < options_.samples->size(); ++leaf) {
    auto* t = (*options_.samples)[leaf].get<Tensor>();
    if (!t || !*t) {
      if (leaf < signature.constants.size() && signature.constants[leaf].is_none() &&
          (*options_.samples)[leaf].is_number())
        add_sample(signature, leaf, number_tensor((*options_.samples)[leaf]), at);
      continue;
    }
    add_sample(signature, leaf, contiguous_copy(*t), at);
  }
  planned_.tables.weights_size(at);
}

void Compilation::add_sample(CallSignature& signature, size_t leaf, const Tensor& t, uint64_t& at) {
  Sample s;
  s.leaf = leaf;
  s.dtype = t.dtype();
  for (SymInt e : t.sizes()) s.sizes.push_back(e.as_int());
  for (SymInt e : t.strides()) s.strides.push_back(e.as_int());
  s.offset = at;
  s.bytes = static_cast<uint64_t>(t.numel().as_int()) * item_size(t.dtype());
  at += (s.bytes + TENON_ALIGNMENT) / TENON_ALIGNMENT * TENON_ALIGNMENT;
  samples_.emplace_back(t, s);
  signature.samples.push_back(std::move(s));
}

}  // namespace tenon::artifact
