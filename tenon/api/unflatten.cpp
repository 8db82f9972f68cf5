#include "tenon/modules/unflatten.h"

#include <tenon/dialect.h>
#include <tenon/unflatten.h>

#include "tenon/api/arguments.h"
#include "tenon/dialect/run_decompositions.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;

struct detail::UnflattenedBody : detail::Counted {
  explicit UnflattenedBody(const tenon::ExportedProgram& program) : modules(program), takes(detail::takes(program)) {}
  tenon::Unflattened modules;
  const detail::Takes takes;
};

void detail::retain(UnflattenedBody* body) noexcept { body->handles.fetch_add(1, std::memory_order_relaxed); }
void detail::release(UnflattenedBody* body) noexcept {
  if (body->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body;
}

namespace {

std::vector<Value> to_values(const std::vector<tenon::CallArg>& args) {
  std::vector<Value> out;
  for (const tenon::CallArg& arg : args) out.push_back(detail::unflatten(tenon::Tree{}, {arg}));
  return out;
}

std::vector<tenon::CallArg> to_call_args(const std::vector<Value>& values) {
  std::vector<tenon::CallArg> out;
  for (const Value& value : values) {
    bool leaf = !value.is_sequence() && value.kind() != Value::Kind::dictionary;
    tenon::require(leaf, "a module takes and gives a flat list of values, got a container in it");
    out.push_back(detail::to_call_arg(value));
  }
  return out;
}

}  // namespace

ExportedProgram run_decompositions(const ExportedProgram& program, const DecomposeOptions& options) {
  return guarded(ErrorKind::call, [&] {
    auto dialect = tenon::dialect_named(options.dialect);
    tenon::require(dialect.has_value(), "expected the dialect training, aten or core, got ",
                   tenon::quoted(options.dialect));
    return Access::wrap(tenon::run_decompositions(Access::unwrap(program), {.to = *dialect, .keep = options.keep}));
  });
}

UnflattenedModule unflatten(const ExportedProgram& program) {
  UnflattenedModule out;
  out.body_ =
      detail::Shared(guarded(ErrorKind::call, [&] { return new detail::UnflattenedBody(Access::unwrap(program)); }));
  return out;
}

std::vector<std::string> UnflattenedModule::modules() const { return body_->modules.modules(); }
std::string UnflattenedModule::class_name(const std::string& path) const {
  return guarded(ErrorKind::call, [&] { return body_->modules.module(path).class_name; });
}
std::vector<std::string> UnflattenedModule::names(const std::string& path) const {
  return guarded(ErrorKind::call, [&] { return body_->modules.module(path).state; });
}
bool UnflattenedModule::has_signature(const std::string& path) const {
  return guarded(ErrorKind::call, [&] { return body_->modules.module(path).kept; });
}
Tensor UnflattenedModule::get(const std::string& name) const {
  return guarded(ErrorKind::call, [&] { return Access::wrap(tenon::contiguous_copy(body_->modules.get(name))); });
}
void UnflattenedModule::set(const std::string& name, const Tensor& value) {
  guarded(ErrorKind::call,
          [&] { body_->modules.set(name, tenon::contiguous_copy(Access::unwrap(value, "a value to set"))); });
}

Value UnflattenedModule::call(const std::vector<Value>& args, const Kwargs& kwargs) {
  return guarded(ErrorKind::call, [&] {
    const tenon::ExportedProgram& program = body_->modules.program();
    std::vector<tenon::CallArg> results = body_->modules.call(detail::flatten(body_->takes, args, kwargs).leaves);
    results.resize(program.out_tree().leaves());  // gradients of a joint program stand behind
    return detail::unflatten(program.out_tree(), results);
  });
}

std::vector<Value> UnflattenedModule::call_module(const std::string& path, const std::vector<Value>& inputs) {
  return guarded(ErrorKind::call, [&] { return to_values(body_->modules.call_module(path, to_call_args(inputs))); });
}

void UnflattenedModule::replace(const std::string& path, Forward forward) {
  guarded(ErrorKind::call, [&] {
    if (!forward) return body_->modules.replace(path, nullptr);
    body_->modules.replace(path, [forward = std::move(forward)](const std::vector<tenon::CallArg>& inputs) {
      return to_call_args(forward(to_values(inputs)));
    });
  });
}

void UnflattenedModule::restore(const std::string& path) {
  guarded(ErrorKind::call, [&] { body_->modules.restore(path); });
}

}  // namespace tenon::v0
