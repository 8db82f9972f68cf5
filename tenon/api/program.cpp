#include <tenon/program.h>

#include "tenon/api/access.h"
#include "tenon/export/serde/save.h"
#include "tenon/pipeline.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;

ExportedProgram Access::wrap(tenon::ExportedProgram program) {
  ExportedProgram out;
  out.body_ = std::make_shared<const detail::ProgramBody>(detail::ProgramBody{std::move(program)});
  return out;
}

const tenon::ExportedProgram& Access::unwrap(const ExportedProgram& program) {
  if (!program.body_) detail::fail_call("the program is empty; get one from load_program, load or differentiate");
  return program.body_->program;
}

namespace {

std::vector<std::string> targets(const ExportedProgram& program, tenon::InputKind kind) {
  std::vector<std::string> out;
  for (const tenon::InputSpec& spec : Access::unwrap(program).signature.inputs)
    if (spec.kind == kind) out.push_back(kind == tenon::InputKind::user_input ? spec.name : spec.target);
  return out;
}

}  // namespace

std::vector<std::string> ExportedProgram::input_names() const { return targets(*this, tenon::InputKind::user_input); }
std::vector<std::string> ExportedProgram::parameter_names() const {
  return targets(*this, tenon::InputKind::parameter);
}
std::vector<std::string> ExportedProgram::buffer_names() const { return targets(*this, tenon::InputKind::buffer); }
std::string ExportedProgram::torch_version() const { return Access::unwrap(*this).torch_version; }
std::vector<std::string> ExportedProgram::missing_operators() const {
  return guarded(ErrorKind::call, [&] { return tenon::missing_operators(Access::unwrap(*this)); });
}

ExportedProgram load_program(const std::string& path) {
  return guarded(ErrorKind::file, [&] { return Access::wrap(tenon::open_program(path)); });
}

void save(const ExportedProgram& program, const std::string& path, const SaveOptions& options) {
  const tenon::ExportedProgram& inner = Access::unwrap(program);
  guarded(ErrorKind::file, [&] { tenon::save_exported(inner, path, options.log); });
}

ExportedProgram differentiate(const ExportedProgram& program, const DifferentiateOptions& options) {
  return guarded(ErrorKind::call, [&] {
    return Access::wrap(tenon::differentiate(Access::unwrap(program), options.of, tenon::parse_wrt(options.wrt)));
  });
}

std::string show(const ExportedProgram& program, const ShowOptions& options) {
  return guarded(ErrorKind::call, [&] {
    auto stage = tenon::stage_named(options.after);
    tenon::require(stage.has_value(), "show: there is no stage ", tenon::quoted(options.after, 60),
                   "; the stages are read, normalized, functional, joint, partition and loops");
    tenon::Walk walk(Access::unwrap(program), {.of = options.of, .wrt = tenon::parse_wrt(options.wrt)});
    return tenon::show(walk, *stage);
  });
}

}  // namespace tenon::v0
