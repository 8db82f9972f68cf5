#include "tenon/artifact/compile.h"

#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {

int compile_file(const CompileRequest& request) {
  require_other_file(request.file, request.out);
  require_writable(request.out);
  ExportedProgram program = open_program(request.file, request.open);
  Progress progress(text("compiling ", shown(request.file)));
  about(request.file, [&] {
    program.check_payloads();
    Walk walk(program);
    artifact::CompileOptions options;
    options.targets = request.targets;
    options.updatable = request.updatable;
    if (request.samples) {
      try {
        if (auto samples = program.samples ? program.samples() : std::nullopt)
          options.samples = std::move(samples->leaves);
      } catch (const Error& e) {
        complain(text(request.file, ": warning: the sample inputs are left out: ", e.what()));
      }
    }
    artifact::compile_program(*walk.executable(), *state_of(program), request.out, options);
    if (request.verbose) report_passes(walk.passes());
  });
  return ok;
}

}  // namespace tenon::tool
