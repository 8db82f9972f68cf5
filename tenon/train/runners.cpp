#include "tenon/train/runners.h"

#include <algorithm>
#include <set>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"

namespace tenon::train {
namespace {

constexpr const char* random_entry = "random";  // i64[2] of a compiled state: seed, draws

bool draws(const Executable& executable) {
  return std::any_of(executable.convention.inputs.begin(), executable.convention.inputs.end(),
                     [](const InputMeaning& m) { return std::holds_alternative<input::RngState>(m); });
}

std::vector<std::string> written_by(const Executable& executable) {
  std::vector<std::string> out;
  for (size_t i = 0; i < executable.program.inputs.size(); ++i)
    if (executable.program.inputs[i].written && is_state(executable.convention.inputs[i]))
      out.push_back(executable.program.inputs[i].name);
  return out;
}

/// From the first element to behind the last.
std::pair<int64_t, int64_t> extent_of(const TensorMeta& meta) {
  int64_t first = meta.offset.as_int(), last = first;
  for (size_t d = 0; d < meta.rank(); ++d) {
    if (meta.sizes[d].as_int() == 0) return {first, first};
    last += (meta.sizes[d].as_int() - 1) * meta.strides[d].as_int();
  }
  return {first, last + 1};
}

/// Two inputs over the same memory of which one is written: a compiled state keeps them apart. Empty where there are
/// none.
std::string shared_memory(const Executable& executable, const State& state, const std::vector<std::string>& written) {
  std::unordered_map<const Storage*, std::vector<std::string>> by_storage;
  for (size_t i = 0; i < executable.program.inputs.size(); ++i) {
    const std::string& name = executable.program.inputs[i].name;
    const Tensor* t = is_state(executable.convention.inputs[i]) ? state.find(name) : nullptr;
    if (!t) continue;
    auto& others = by_storage[t->storage().get()];
    for (const std::string& other : others) {
      auto [a, b] = extent_of(t->meta());
      auto [c, d] = extent_of(state.find(other)->meta());
      bool changes = std::binary_search(written.begin(), written.end(), name) ||
                     std::binary_search(written.begin(), written.end(), other);
      if (changes && a < d && c < b) return text(other, " and ", name, " share memory");
    }
    others.push_back(name);
  }
  return "";
}

}  // namespace

struct Runners::Program {
  std::shared_ptr<const Executable> executable;
  std::vector<std::string> writes;
  bool draws = false;
  std::optional<Session> session;  // interpreted

  // Compiled.
  std::shared_ptr<const artifact::CompiledProgram> code;
  std::unique_ptr<artifact::CompiledState> state;
  std::unique_ptr<artifact::CompiledSession> fast;
  std::vector<std::string> shared;  // entries in memory of their own that some program writes
  bool apart = false;               // it leaves the state as it is: what it writes is in memory of its own
  uint64_t version = 0;             // of what it has; 0: of nothing
};

Runners::Runners(std::vector<std::shared_ptr<const Executable>> programs, std::unique_ptr<State> state,
                 const RunnersOptions& options)
    : state_(std::move(state)) {
  std::set<std::string> written;
  for (auto& executable : programs) {
    auto p = std::make_unique<Program>();
    p->executable = executable;
    p->writes = written_by(*executable);
    p->draws = draws(*executable);
    written.insert(p->writes.begin(), p->writes.end());
    programs_.push_back(std::move(p));
  }
  written_.assign(written.begin(), written.end());
  if (options.compile) compile(options);
  if (compiled_) return;
  for (auto& p : programs_) p->session.emplace(p->executable);
}
Runners::~Runners() = default;

void Runners::compile(const RunnersOptions& options) {
  auto target = artifact::native_target();
  if (!target) {
    reason_ = "this machine has no AVX2";
    return;
  }
  for (auto& p : programs_)
    if (reason_ = shared_memory(*p->executable, *state_, written_); !reason_.empty()) return;
  artifact::CompileOptions how;
  how.targets = {*target};
  how.updatable = true;
  how.store_state = false;
  try {
    for (auto& p : programs_)
      p->code = artifact::CompiledProgram::open(artifact::compile_program(*p->executable, *state_, how),
                                                {.threads = options.threads});
  } catch (const Unsupported& e) {
    reason_ = e.what();
    return;
  }
  for (const std::string& name : written_) state_->own(name);
  for (auto& p : programs_) p->fast = std::make_unique<artifact::CompiledSession>(p->code);
  compiled_ = true;
}

// A compiled state lies in the tensors of the state itself wherever both have them in the same order.
void Runners::make_state(Program& p, bool apart) {
  std::vector<std::pair<std::string, Tensor>> lent;
  auto is_written = [&](const std::string& name) {
    return std::find(p.writes.begin(), p.writes.end(), name) != p.writes.end();
  };
  for (const loop::Input& input : p.executable->program.inputs)
    if (const Tensor* t = state_->find(input.name); t && !(apart && is_written(input.name)))
      lent.emplace_back(input.name, *t);
  p.state = std::make_unique<artifact::CompiledState>(p.code, state_->seed(), lent);
  p.apart = apart;
  p.version = 0;
  p.shared.clear();
  for (const std::string& name : p.state->names())
    if (!p.state->is_lent(name) && std::binary_search(written_.begin(), written_.end(), name)) p.shared.push_back(name);
}

void Runners::fill(Program& p, bool apart) {
  if (p.state && p.version == version_) return;
  bring_back();
  if (!p.state || p.apart != apart) make_state(p, apart);
  for (const std::string& name : p.shared)
    if (const Tensor* t = state_->find(name)) p.state->set(name, *t);
  if (p.draws) {
    Tensor random = Tensor::empty(DType::i64, {2});
    random.mutable_data<int64_t>()[0] = static_cast<int64_t>(state_->seed());
    random.mutable_data<int64_t>()[1] = state_->draws();
    p.state->set(random_entry, random);
  }
  p.state->changed();
  p.version = version_;
}

void Runners::bring_back() {
  if (!latest_) return;
  for (const std::string& name : latest_->writes)
    if (!latest_->state->is_lent(name)) state_->set(name, latest_->state->get(name));
  state_->changed();
  if (latest_->draws) {
    Tensor random = latest_->state->get(random_entry);
    state_->set_random(static_cast<uint64_t>(random.data<int64_t>()[0]), random.data<int64_t>()[1]);
  }
  latest_ = nullptr;
}

RunResult Runners::run(size_t program, const std::vector<CallArg>& inputs, bool apart) {
  Program& p = *programs_[program];
  bool touches = !p.writes.empty() || p.draws;
  if (!compiled_) {
    std::unique_ptr<State> own = apart && touches ? state_->copy() : nullptr;
    return p.session->run(own ? *own : *state_, inputs);
  }
  fill(p, apart && touches);
  if (touches) {
    // A run that fails leaves its state as it was: all writes come behind all checks.
    RunResult result = p.fast->run(*p.state, inputs, {.hand_out_updates = false});
    if (apart) p.version = 0;
    else p.version = ++version_, latest_ = &p;
    return result;
  }
  return p.fast->run(*p.state, inputs, {.hand_out_updates = false});
}

State& Runners::state() {
  bring_back();
  return *state_;
}

void Runners::replace_state(std::unique_ptr<State> state) {
  state_ = std::move(state);
  latest_ = nullptr;
  ++version_;
  if (!compiled_) return;
  for (const std::string& name : written_) state_->own(name);
  for (auto& p : programs_) p->state.reset();
}

}  // namespace tenon::train
