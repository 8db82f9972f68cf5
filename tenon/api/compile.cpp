#include "tenon/artifact/compile.h"

#include <tenon/compile.h>

#include <mutex>

#include "tenon/api/arguments.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;
namespace artifact = tenon::artifact;

namespace {

artifact::CompileOptions options_of(const CompileOptions& options, tenon::Compilable& made) {
  artifact::CompileOptions out;
  if (!options.targets.empty()) out.targets.clear();
  for (const std::string& name : options.targets) {
    auto target = artifact::target_named(name);
    tenon::require(target.has_value(), "compile: expected the target x86-64-v3 or x86-64-v4, got ",
                   tenon::quoted(name, 60));
    out.targets.push_back(*target);
  }
  out.updatable = options.updatable;
  out.parameters = made.parameters;
  if (options.samples) out.samples = std::move(made.samples);
  if (options.samples && options.log && !made.warning.empty()) options.log(made.warning);
  return out;
}

template <class F>
auto compiled(const ExportedProgram& program, const CompileOptions& options, F&& write) {
  return guarded(ErrorKind::call, [&] {
    const tenon::ExportedProgram& inner = Access::unwrap(program);
    inner.check_payloads();
    tenon::WalkOptions walk_options;
    if (!options.weights.empty() && options.weights != "f32") {
      tenon::require(options.weights == "f16" || options.weights == "bf16",
                     "compile: expected weights in f32, f16 or bf16, got ", tenon::quoted(options.weights, 60));
      walk_options.packing.weights = options.weights == "f16" ? tenon::DType::f16 : tenon::DType::bf16;
    }
    tenon::Walk walk(inner, std::move(walk_options));
    tenon::Compilable made = tenon::prepare_to_compile(walk);
    artifact::CompileOptions chosen = options_of(options, made);
    if (options.log) detail::report(options.log, walk.passes());
    return write(made, chosen);
  });
}

}  // namespace

void compile(const ExportedProgram& program, const std::string& path, const CompileOptions& options) {
  compiled(program, options, [&](tenon::Compilable& made, const artifact::CompileOptions& chosen) {
    guarded(ErrorKind::file, [&] { artifact::compile_program(*made.executable, *made.state, path, chosen); });
  });
}

std::vector<std::byte> compile(const ExportedProgram& program, const CompileOptions& options) {
  return compiled(program, options, [&](tenon::Compilable& made, const artifact::CompileOptions& chosen) {
    return artifact::compile_program(*made.executable, *made.state, chosen);
  });
}

struct detail::CompiledModuleBody : detail::Counted {
  CompiledModuleBody(std::shared_ptr<const artifact::CompiledProgram> opened, uint64_t seed)
      : program(std::move(opened)), takes(detail::takes(program->signature())), state(program, seed) {}

  tenon::RunResult run(const detail::Arguments& arguments) {
    std::unique_ptr<artifact::CompiledSession> session;
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        session = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!session) session = std::make_unique<artifact::CompiledSession>(program);
    tenon::RunResult result = session->run(state, arguments.leaves);
    std::lock_guard lock(mutex);
    idle.push_back(std::move(session));
    return result;
  }

  std::shared_ptr<const artifact::CompiledProgram> program;
  const detail::Takes takes;
  artifact::CompiledState state;
  std::mutex mutex;
  std::vector<std::unique_ptr<artifact::CompiledSession>> idle;  // as many as ran at once
};

void detail::retain(CompiledModuleBody* body) noexcept { body->handles.fetch_add(1, std::memory_order_relaxed); }
void detail::release(CompiledModuleBody* body) noexcept {
  if (body->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body;
}

CompiledModule::CompiledModule(const std::string& path, const CompiledModuleOptions& options)
    : body_(guarded(ErrorKind::file, [&] {
        return new detail::CompiledModuleBody(artifact::CompiledProgram::open(path, {.threads = options.threads}),
                                              options.seed);
      })) {}
CompiledModule::CompiledModule(std::vector<std::byte> bytes, const CompiledModuleOptions& options)
    : body_(guarded(ErrorKind::file, [&] {
        return new detail::CompiledModuleBody(
            artifact::CompiledProgram::open(std::move(bytes), {.threads = options.threads}), options.seed);
      })) {}

std::vector<std::string> CompiledModule::input_names() const { return body_->program->signature().names; }
std::string CompiledModule::target() const { return body_->program->target(); }
std::vector<std::string> CompiledModule::names() const {
  return guarded(ErrorKind::call, [&] { return body_->state.names(); });
}
Tensor CompiledModule::get(const std::string& name) const {
  return guarded(ErrorKind::call, [&] { return Access::wrap(body_->state.get(name)); });
}
void CompiledModule::set(const std::string& name, const Tensor& value) {
  guarded(ErrorKind::call, [&] { body_->state.set(name, Access::unwrap(value, "a value to set")); });
}

RunResult CompiledModule::run(const std::vector<Value>& args, const Kwargs& kwargs) const {
  return guarded(ErrorKind::call, [&] {
    detail::Arguments arguments = detail::flatten(body_->takes, args, kwargs);
    tenon::require(!arguments.absent_are_ones, "a compiled program takes every cotangent; give ones where it is free");
    tenon::RunResult ran = body_->run(arguments);
    RunResult out;
    out.result = detail::unflatten(body_->program->signature().out, ran.outputs);
    for (auto& [name, gradient] : ran.gradients) out.gradients.emplace(name, Access::wrap(gradient));
    return out;
  });
}

CompiledModule load_compiled(const std::string& path, const CompiledModuleOptions& options) {
  return CompiledModule(path, options);
}

}  // namespace tenon::v0
