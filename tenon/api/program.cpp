#include <tenon/program.h>

#include "tenon/api/access.h"
#include "tenon/export/serde/save.h"
#include "tenon/pipeline.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;

void detail::retain(ProgramBody* body) noexcept { body->handles.fetch_add(1, std::memory_order_relaxed); }
void detail::release(ProgramBody* body) noexcept {
  if (body->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body;
}

ExportedProgram Access::wrap(tenon::ExportedProgram program) {
  ExportedProgram out;
  out.body_ = detail::Shared(new detail::ProgramBody(std::move(program)));
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

void detail::report(const Log& log, const std::vector<tenon::PassRecord>& passes) {
  if (!log) return;
  for (const std::string& line : tenon::split(tenon::to_text(passes), '\n'))
    if (!line.empty()) log(line);
}

ExportedProgram load_program(const std::string& path, const LoadOptions& options) {
  if (options.progress) options.progress({1, 1, "reading the file"});
  return guarded(ErrorKind::file, [&] { return Access::wrap(tenon::open_program(path, {.model = options.model})); });
}

void save(const ExportedProgram& program, const std::string& path, const SaveOptions& options) {
  const tenon::ExportedProgram& inner = Access::unwrap(program);
  guarded(ErrorKind::file, [&] { tenon::save_exported(inner, path, detail::as_warning(options.log)); });
}

ExportedProgram differentiate(const ExportedProgram& program, const DifferentiateOptions& options) {
  auto doing = [&](int step, const char* what) {
    if (options.progress) options.progress({step, 3, what});
  };
  doing(1, "making the program functional");
  auto walk = guarded(ErrorKind::call, [&] {
    auto made = std::make_unique<tenon::Walk>(
        Access::unwrap(program), tenon::WalkOptions{.of = options.of, .wrt = tenon::parse_wrt(options.wrt)});
    made->functional();
    return made;
  });
  doing(2, "differentiating");
  guarded(ErrorKind::call, [&] { walk->joint(); });
  detail::report(options.log, walk->passes());
  doing(3, "making the program that can be saved");
  return guarded(ErrorKind::call, [&] { return Access::wrap(tenon::differentiate(*walk)); });
}

std::string show(const ExportedProgram& program, const ShowOptions& options) {
  return guarded(ErrorKind::call, [&] {
    auto stage = tenon::stage_named(options.after);
    tenon::require(stage.has_value(), "show: there is no stage ", tenon::quoted(options.after, 60),
                   "; the stages are read, normalized, functional, joint, partition and loops");
    tenon::Walk walk(Access::unwrap(program), {.of = options.of, .wrt = tenon::parse_wrt(options.wrt)});
    std::string out = tenon::show(walk, *stage);
    detail::report(options.log, walk.passes());
    return out;
  });
}

}  // namespace tenon::v0
