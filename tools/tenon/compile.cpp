#include "tenon/artifact/compile.h"

#include <filesystem>

#include "tenon/artifact/emit_source.h"
#include "tenon/artifact/tune.h"
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
    artifact::Tuner tuner;
    WalkOptions walk_options;
    if (request.tune)
      walk_options.packing.methods = [&](const loop::Program& p, const loop::Convolution& c) {
        return tuner.choose(p, c);
      };
    walk_options.packing.weights = request.weights;
    Walk walk(program, std::move(walk_options));
    artifact::CompileOptions options;
    options.targets = request.targets;
    options.updatable = request.updatable;
    Compilable made = prepare_to_compile(walk);
    options.parameters = made.parameters;
    if (request.samples) options.samples = std::move(made.samples);
    if (request.samples && !made.warning.empty()) warn_about(request.file, made.warning);
    if (!request.source.empty()) {
      std::string library = request.out.empty() ? "model.so" : std::filesystem::path(request.out).filename().string();
      artifact::emit_source(*made.executable, *made.state, request.source, {options, library});
    }
    if (!request.out.empty() && request.with_c)
      artifact::compile_with_c(*made.executable, *made.state, request.out, options);
    else if (!request.out.empty()) artifact::compile_program(*made.executable, *made.state, request.out, options);
    if (request.verbose) {
      report_passes(walk.passes());
      for (const artifact::Tuner::Measured& m : tuner.measured())
        complain(text("convolution ", m.convolution, ": direct ", m.us[0], " us, winograd ", m.us[1], " us"));
    }
  });
  return ok;
}

}  // namespace tenon::tool
