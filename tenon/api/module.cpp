#include <tenon/module.h>

#include <mutex>

#include "tenon/api/arguments.h"
#include "tenon/export/serde/save.h"
#include "tenon/interp/eager.h"
#include "tenon/pipeline.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;

struct detail::ModuleBody : detail::Counted {
  ModuleBody(ExportedProgram given, const ModuleOptions& options)
      : program(std::move(given)),
        inner(Access::unwrap(program)),
        takes(detail::takes(inner)),
        state(tenon::state_of(inner, options.seed)),
        executables(inner),
        options(options) {
    if (this->options.progress)
      executables.before_preparing = [this] { this->options.progress({3, 3, "preparing the program"}); };
    if (this->options.log)
      executables.after_preparing = [this](const std::vector<tenon::PassRecord>& passes) {
        detail::report(this->options.log, passes);
      };
  }

  tenon::RunResult run(const detail::Arguments& arguments) {
    if (options.check_weights)
      std::call_once(checked, [&] {
        if (options.progress) options.progress({2, 3, "checking the weights"});
        inner.check_payloads();
      });
    std::shared_ptr<const tenon::Executable> executable = executables.for_inputs(arguments.leaves);
    std::unique_ptr<tenon::Session> session = take(executable);
    tenon::RunResult result = session->run(*state, arguments.leaves, {.absent_are_ones = arguments.absent_are_ones});
    std::lock_guard lock(mutex);
    idle[executable.get()].push_back(std::move(session));  // one that threw is not used again
    return result;
  }

  std::unique_ptr<tenon::Session> take(const std::shared_ptr<const tenon::Executable>& executable) {
    {
      std::lock_guard lock(mutex);
      auto& free = idle[executable.get()];
      if (!free.empty()) {
        std::unique_ptr<tenon::Session> session = std::move(free.back());
        free.pop_back();
        return session;
      }
    }
    return std::make_unique<tenon::Session>(executable);
  }

  ExportedProgram program;
  const tenon::ExportedProgram& inner;
  const detail::Takes takes;
  std::unique_ptr<tenon::State> state;
  tenon::Executables executables;
  const ModuleOptions options;
  std::once_flag checked;
  std::mutex mutex;
  std::map<const tenon::Executable*, std::vector<std::unique_ptr<tenon::Session>>> idle;  // as many as ran at once
};

void detail::retain(ModuleBody* body) noexcept { body->handles.fetch_add(1, std::memory_order_relaxed); }
void detail::release(ModuleBody* body) noexcept {
  if (body->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body;
}

Module::Module(ExportedProgram program, const ModuleOptions& options)
    : body_(guarded(ErrorKind::call, [&] { return new detail::ModuleBody(std::move(program), options); })) {}

const ExportedProgram& Module::program() const { return body_->program; }

std::vector<std::string> Module::names() const { return body_->state->names(); }

Tensor Module::get(const std::string& name) const {
  return guarded(ErrorKind::call, [&] {
    std::shared_lock lock(body_->state->mutex());
    const tenon::Tensor* found = body_->state->find(name);
    tenon::require(found != nullptr, "the program has no parameter, buffer or constant ", tenon::quoted(name, 200),
                   "; names() lists them");
    return Access::wrap(tenon::contiguous_copy(*found));
  });
}

void Module::set(const std::string& name, const Tensor& value) {
  guarded(ErrorKind::call, [&] {
    tenon::Tensor copy =
        tenon::contiguous_copy(Access::unwrap(value, "a value to set"));  // it may lie in the state itself
    body_->state->set(name, copy);
  });
}

RunResult Module::run(const std::vector<Value>& args, const Kwargs& kwargs) const {
  return guarded(ErrorKind::call, [&] {
    tenon::RunResult ran = body_->run(detail::flatten(body_->takes, args, kwargs));
    RunResult out;
    out.result = detail::unflatten(body_->inner.out_tree(), ran.outputs);
    for (auto& [name, gradient] : ran.gradients) out.gradients.emplace(name, Access::wrap(gradient));
    return out;
  });
}

Module load(const std::string& path, const ModuleOptions& options) {
  if (options.progress) options.progress({1, 3, "reading the file"});
  return Module(load_program(path), options);
}

tenon::ExportedProgram Access::with_state(const Module& module) {
  const tenon::ExportedProgram& from = module.body_->inner;
  std::unique_ptr<tenon::State> state = module.body_->state->copy();  // with contents of its own: calls may go on
  tenon::ExportedProgram out;
  out.graph = from.graph.copy();
  out.signature = from.signature;
  out.state = from.state;
  out.constants = from.constants;
  out.opaque = from.opaque;
  for (auto* list : {&out.state, &out.constants})
    for (tenon::NamedTensor& each : *list)
      if (const tenon::Tensor* now = state->find(each.name)) each.tensor = *now;
  out.module_calls = from.module_calls;
  out.ranges = from.ranges;
  out.guards = from.guards;
  out.dialect = from.dialect;
  out.torch_version = from.torch_version;
  out.schema_major = from.schema_major;
  out.schema_minor = from.schema_minor;
  out.metadata = from.metadata;
  out.namedtuple_fields = from.namedtuple_fields;
  out.opset_version = from.opset_version;
  out.extra_files = from.extra_files;
  out.hints = from.hints;
  out.samples = from.samples;
  out.check_payloads = from.check_payloads;
  return out;
}

void save(const Module& module, const std::string& path, const SaveOptions& options) {
  guarded(ErrorKind::file,
          [&] { tenon::save_exported(Access::with_state(module), path, detail::as_warning(options.log)); });
}

void set_threads(int count) {
  if (count < 1) detail::fail_call("set_threads: expected at least one thread, got ", count);
  guarded(ErrorKind::call, [&] { tenon::interp::set_threads(count); });
}

}  // namespace tenon::v0
