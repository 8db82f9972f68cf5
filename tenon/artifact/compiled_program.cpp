#include "tenon/artifact/compiled_program.h"

#include <cstring>

#include "runtime/open_tables.h"
#include "tenon/artifact/runtime_tensor.h"
#include "tenon/interp/bind_symbols.h"
#include "tenon/ops/custom_ops.h"
#include "tenon/package/artifact.h"
#include "tenon/session/arguments.h"

namespace tenon::artifact {
namespace {

CallArg number_of(const Tensor& t) {
  if (t.dtype() == DType::boolean) return scalar_integer(t) != 0;
  if (is_floating(t.dtype())) return scalar_value(t);
  return scalar_integer(t);
}

Tensor number_tensor(const CallArg& given, loop::Input::Type type) {
  Tensor t = Tensor::empty(type == loop::Input::Type::floating  ? DType::f64
                           : type == loop::Input::Type::boolean ? DType::boolean
                                                                : DType::i64,
                           {});
  auto* real = given.get<double>();
  auto* truth = given.get<bool>();
  auto* integer = given.get<SymInt>();
  if (type == loop::Input::Type::floating)
    *t.mutable_data<double>() = real ? *real : truth ? *truth : static_cast<double>(integer->as_int());
  else if (type == loop::Input::Type::boolean)
    *t.mutable_data<bool>() = truth ? *truth : real ? *real != 0 : integer->as_int() != 0;
  else *t.mutable_data<int64_t>() = truth ? *truth : integer ? integer->as_int() : static_cast<int64_t>(*real);
  return t;
}

}  // namespace

struct OpenedProgram {
  std::vector<std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::vector<tenon_named_function> functions;  // of operators of the user
  tenon_pool* pool = nullptr;
  tenon_program* program = nullptr;
  ~OpenedProgram() {
    tenon_program_close(program);
    tenon_pool_destroy(pool);
  }
};

namespace {

std::unique_ptr<OpenedProgram> prepare_options(const CompiledProgram::Options& options, tenon_options& out) {
  auto opened = std::make_unique<OpenedProgram>();
  out = {};
  out.struct_size = sizeof out;
  out.allocator = options.allocator;
  out.huge_pages = options.huge_pages ? 1 : 0;
  for (const auto& [name, kernel] : custom_kernels()) opened->functions.push_back({name, kernel});
  out.functions = opened->functions.data();
  out.function_count = opened->functions.size();
  if (options.threads > 0) {
    check(tenon_pool_create(options.threads, &opened->pool));
    out.pool = opened->pool;
  }
  return opened;
}

CallSignature read_signature(tenon_program* program, const std::string& name) {
  const char* json = tenon_program_metadata(program, "signature");
  require(json != nullptr, name, ": the artifact does not say what its inputs and outputs mean; call it through ",
          "<tenon/runtime.h>");
  return parse_signature(json, name);
}

}  // namespace

std::shared_ptr<const CompiledProgram> CompiledProgram::open(const std::string& path, const Options& options) {
  std::shared_ptr<CompiledProgram> out(new CompiledProgram);
  tenon_options o;
  out->name_ = path;
  out->opened_ = prepare_options(options, o);
  check(tenon_program_open(path.c_str(), &o, &out->opened_->program));
  out->signature_ = read_signature(out->handle(), path);
  return out;
}

std::shared_ptr<const CompiledProgram> CompiledProgram::open(std::vector<std::byte> bytes, const Options& options) {
  std::shared_ptr<CompiledProgram> out(new CompiledProgram);
  tenon_options o;
  out->name_ = "the compiled program";
  out->opened_ = prepare_options(options, o);
  out->opened_->bytes = std::move(bytes);
  check(tenon_program_open_memory(out->opened_->bytes.data(), out->opened_->bytes.size(), &o, &out->opened_->program));
  out->signature_ = read_signature(out->handle(), out->name_);
  return out;
}

std::shared_ptr<const CompiledProgram> CompiledProgram::over(tenon_program* program,
                                                             std::shared_ptr<const void> owner) {
  std::shared_ptr<CompiledProgram> out(new CompiledProgram);
  out->name_ = "the program";
  out->opened_ = std::make_unique<OpenedProgram>();
  out->opened_->owner = std::move(owner);
  out->opened_->program = program;
  out->signature_ = read_signature(program, out->name_);
  return out;
}

CompiledProgram::~CompiledProgram() = default;
tenon_program* CompiledProgram::handle() const { return opened_->program; }
std::string CompiledProgram::target() const { return tenon_program_target(handle()); }

std::optional<std::vector<CallArg>> CompiledProgram::samples() const {
  if (!signature_.has_samples) return std::nullopt;
  std::vector<CallArg> out = signature_.constants;
  size_t size = 0;
  const void* weights = tenon_program_weights(handle(), &size);
  for (const Sample& s : signature_.samples) {
    TensorMeta meta;
    meta.dtype = s.dtype;
    for (int64_t n : s.sizes) meta.sizes.push_back(n);
    for (int64_t n : s.strides) meta.strides.push_back(n);
    require(s.offset <= size && s.bytes <= size - s.offset && is_contiguous(meta) &&
                count(meta.sizes) * SymInt(static_cast<int64_t>(item_size(s.dtype))) == SymInt(s.bytes),
            name_, ": a sample input lies outside the file");
    Tensor t = Tensor::empty(meta);
    if (s.bytes > 0) std::memcpy(t.mutable_bytes(), static_cast<const std::byte*>(weights) + s.offset, s.bytes);
    out[s.leaf] = t;
  }
  return out;
}

CompiledState::CompiledState(std::shared_ptr<const CompiledProgram> program, uint64_t seed)
    : program_(std::move(program)) {
  check(tenon_state_create(program_->handle(), &state_));
  this->seed(seed);
}

CompiledState::CompiledState(std::shared_ptr<const CompiledProgram> program, uint64_t seed,
                             const std::vector<std::pair<std::string, Tensor>>& lent)
    : program_(std::move(program)) {
  std::vector<tn_lent> entries;
  for (const auto& [name, t] : lent) {
    if (!is_contiguous(t.meta())) continue;
    entries.push_back({.name = name.c_str(),
                       .data = const_cast<std::byte*>(t.bytes()),  // written only where the program writes the entry
                       .size = static_cast<uint64_t>(t.numel().as_int()) * item_size(t.dtype()),
                       .dtype = as_runtime(t.meta()).dtype,
                       .taken = false});
  }
  check(tn_state_create_over(program_->handle(), entries.data(), entries.size(), &state_));
  for (const tn_lent& entry : entries)
    if (entry.taken) lent_.insert(entry.name);
  for (const std::string& name : names())
    for (const auto& [given, t] : lent)
      if (given == name && !lent_.contains(name)) set(name, t);
  this->seed(seed);
}

void CompiledState::changed() { tn_state_changed(state_); }

void CompiledState::seed(uint64_t seed) {
  for (size_t i = 0; i < tenon_program_state_count(program_->handle()); ++i) {
    tenon_state_info info;
    check(tenon_program_state_info(program_->handle(), i, &info));
    if (info.kind == TENON_STATE_RANDOM) check(tenon_state_seed(state_, seed));
  }
}
CompiledState::~CompiledState() { tenon_state_destroy(state_); }

std::vector<std::string> CompiledState::names() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < tenon_program_state_count(program_->handle()); ++i) {
    tenon_state_info info;
    check(tenon_program_state_info(program_->handle(), i, &info));
    if (!info.frozen && info.kind != TENON_STATE_RANDOM) out.emplace_back(info.name);
  }
  return out;
}

Tensor CompiledState::get(const std::string& name) const {
  for (size_t i = 0; i < tenon_program_state_count(program_->handle()); ++i) {
    tenon_state_info info;
    check(tenon_program_state_info(program_->handle(), i, &info));
    if (name != info.name || info.frozen) continue;
    Sizes sizes;
    for (int32_t d = 0; d < info.rank; ++d) sizes.push_back(info.sizes[d]);
    Tensor out = Tensor::empty(dtype_of_code(info.dtype), sizes);
    tenon_tensor t = as_runtime(out);
    check(tenon_state_get(state_, info.name, &t));
    return out;
  }
  tenon_tensor none{};
  check(tenon_state_get(state_, name.c_str(), &none));  // which says why
  unreachable();
}

void CompiledState::set(const std::string& name, const Tensor& value) {
  Tensor dense = contiguous_copy(value);
  tenon_tensor t = as_runtime(dense);
  check(tenon_state_set(state_, name.c_str(), &t));
}

CompiledSession::CompiledSession(std::shared_ptr<const CompiledProgram> program) : program_(std::move(program)) {
  check(tenon_session_create(program_->handle(), &session_));
}
CompiledSession::~CompiledSession() { tenon_session_destroy(session_); }

size_t CompiledSession::memory() const { return tenon_session_memory(session_); }

void CompiledSession::observe(std::vector<StepTime>* times) {
  auto add = [](void* to, const char* name, tenon_step_kind kind, uint64_t nanoseconds, double flops, double bytes) {
    static_cast<std::vector<StepTime>*>(to)->push_back(
        {name, kind == TENON_STEP_KERNEL || kind == TENON_STEP_FUSED || kind == TENON_STEP_CALL, nanoseconds, flops,
         bytes});
  };
  tenon_session_observe(session_, times ? +add : nullptr, times);
}

/// The caller's arguments as the runtime takes them.
struct CompiledSession::Call {
  std::vector<Tensor> held;  // each input's memory
  std::vector<tenon_tensor> in;
  std::vector<std::pair<size_t, Tensor>> write_back;  // what was laid out anew and is written
};

CompiledSession::Call CompiledSession::bind(const std::vector<CallArg>& inputs) const {
  const CallSignature& s = program_->signature();
  require(inputs.size() == s.names.size(), "expected ", s.names.size(), " inputs (", join(s.names, ", "), "), got ",
          inputs.size());
  require_constants(s.names, s.constants, inputs);
  std::vector<CallArg> given;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const loop::Input& input = s.inputs[i];
    const CallArg& arg = inputs[s.leaves[i]];
    bool tensor = input.type == loop::Input::Type::tensor;
    require(!tensor || !arg.is_none(), "input ", input.name, ": expected a tensor, ", input.meta);
    given.push_back(tensor ? arg : as_number(arg, input.type, input.name));
  }
  sym::Bindings symbols = interp::bind_symbols(s.inputs, s.ranges, given);

  // The caller's memory is used as it is where it lies as the program expects; else it is laid out anew.
  Call call;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const loop::Input& input = s.inputs[i];
    if (input.type != loop::Input::Type::tensor) {
      call.held.push_back(number_tensor(given[i], input.type));
    } else {
      Tensor t = given[i].as<Tensor>();
      TensorMeta meta = t.meta();
      for (size_t d = 0; d < meta.strides.size(); ++d) meta.strides[d] = sym::evaluate(input.meta.strides[d], symbols);
      if (meta.strides != t.strides() && t.numel() != SymInt(0)) {
        meta.offset = 0;
        Tensor own = Tensor::empty(meta);
        copy_elements(t, own);
        if (input.written) call.write_back.emplace_back(i, t);
        call.held.push_back(own);
      } else {
        if (input.written) t.mutable_bytes();
        call.held.push_back(t);
      }
    }
    call.in.push_back(as_runtime(call.held.back()));
  }
  return call;
}

std::function<void()> CompiledSession::repeated(CompiledState& state, const std::vector<CallArg>& inputs) {
  auto call = std::make_shared<Call>(bind(inputs));
  tenon_session_set_output_allocator(session_, nullptr, nullptr);
  std::shared_ptr<std::vector<tenon_tensor>> out(new std::vector<tenon_tensor>(program_->signature().results.size()),
                                                 [](std::vector<tenon_tensor>* outputs) {
                                                   for (tenon_tensor& t : *outputs) tenon_output_release(&t);
                                                   delete outputs;
                                                 });
  std::vector<bool> deferred;
  for (size_t i = 0; i < out->size(); ++i) {
    tenon_value_info info;
    check(tenon_program_output_info(program_->handle(), i, &info));
    deferred.push_back(info.deferred != 0);
  }
  return [this, call, out, deferred, of = state.handle()] {
    for (size_t i = 0; i < out->size(); ++i)
      if (deferred[i]) tenon_output_release(&(*out)[i]);
    check(tenon_session_run(session_, of, call->in.data(), call->in.size(), out->data(), out->size()));
  };
}

RunResult CompiledSession::run(CompiledState& state, const std::vector<CallArg>& inputs,
                               const CompiledRunOptions& options) {
  const CallSignature& s = program_->signature();
  Call call = bind(inputs);
  std::vector<std::shared_ptr<Storage>> made(s.results.size());
  tenon_session_set_output_allocator(
      session_,
      [](void* to, size_t output, size_t bytes) -> void* {
        auto& storages = *static_cast<std::vector<std::shared_ptr<Storage>>*>(to);
        storages[output] = std::make_shared<Storage>(bytes);
        return storages[output]->mutable_data();
      },
      &made);
  std::vector<tenon_tensor> out(s.results.size());
  check(tenon_session_run(session_, state.handle(), call.in.data(), call.in.size(), out.data(), out.size()));
  for (auto& [i, callers] : call.write_back) copy_elements(call.held[i], callers);

  RunResult result;
  result.outputs = s.outputs;
  for (const Update& u : s.updates) {
    switch (u.kind) {
      case Update::Kind::input: {
        Tensor t = inputs[s.leaves[u.input]].as<Tensor>();
        result.inputs.emplace_back(s.inputs[u.input].name, t);
        break;
      }
      case Update::Kind::parameter:
      case Update::Kind::buffer: {
        if (!options.hand_out_updates) break;
        Tensor t = state.get(u.state);
        for (const std::string& name : u.names)
          (u.kind == Update::Kind::parameter ? result.parameters : result.buffers).emplace_back(name, t);
        break;
      }
    }
  }
  for (size_t i = 0; i < s.results.size(); ++i) {
    Tensor t(meta_of(out[i]), made[i] ? made[i] : std::make_shared<Storage>(0));
    const Result& r = s.results[i];
    switch (r.kind) {
      case Result::Kind::user: result.outputs[r.leaf] = r.number ? number_of(t) : CallArg(t); break;
      case Result::Kind::viewed:
        for (const std::string& name : r.names) {
          std::erase_if(result.inputs, [&](const auto& entry) { return entry.first == name; });
          result.inputs.emplace_back(name, t);
        }
        break;
      case Result::Kind::gradient:
        for (const std::string& name : r.names) result.gradients.emplace_back(name, t);
        break;
    }
  }
  return result;
}

}  // namespace tenon::artifact
