#include "tenon/artifact/compile.h"

#include <filesystem>

#include "tenon/artifact/emit_source.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {

int compile_file(const CompileRequest& request) {
  require(!request.out.empty() || !request.source.empty(), "compile: expected -o OUT, --emit-source DIR or both");
  if (!request.out.empty()) {
    require_other_file(request.file, request.out);
    require_writable(request.out);
  }
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
    std::shared_ptr<const Executable> executable = walk.executable();
    std::unique_ptr<State> state = state_of(program);
    if (!request.source.empty()) {
      std::string library = request.out.empty() ? "model.so" : std::filesystem::path(request.out).filename().string();
      artifact::emit_source(*executable, *state, request.source, {options, library});
    }
    if (!request.out.empty() && request.with_c) artifact::compile_with_c(*executable, *state, request.out, options);
    else if (!request.out.empty()) artifact::compile_program(*executable, *state, request.out, options);
    if (request.verbose) report_passes(walk.passes());
  });
  return ok;
}

}  // namespace tenon::tool
