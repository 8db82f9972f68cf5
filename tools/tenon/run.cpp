#include "tenon/interp/eager.h"
#include "tenon/io/safetensors.h"
#include "tools/tenon/arrays.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

std::vector<CallArg> arguments(const ExportedProgram& program, const RunRequest& request) {
  if (!request.inputs.empty()) return arguments_from(program, load_any_arrays(request.inputs), request.inputs);
  auto samples = about(request.file, [&] { return program.samples ? program.samples() : std::nullopt; });
  require(samples.has_value(), request.file, ": the file stores no sample inputs; give them with --inputs FILE.npz");
  return std::move(samples->leaves);
}

void print_results(const std::vector<NamedResult>& results) {
  size_t width = 0;
  for (const NamedResult& result : results) width = std::max(width, result.key.size());
  for (const NamedResult& result : results) {
    std::string line = shown(result.key);
    line.append(line.size() < width ? width - line.size() : 0, ' ');
    print(text(line, "  ", summary(result.value), "\n"));
  }
  if (results.empty()) print("the program returns nothing and writes nothing\n");
}

}  // namespace

int run_file(const RunRequest& request) {
  if (!request.outputs.empty()) {
    require_other_file(request.file, request.outputs);
    if (!request.inputs.empty()) require_other_file(request.inputs, request.outputs);
    require_writable(request.outputs);
  }
  ExportedProgram program = open_program(request.file, request.open);
  std::vector<NamedResult> results;
  {
    Progress progress(text("running ", shown(request.file)));
    if (request.threads > 0) interp::set_threads(request.threads);
    std::vector<CallArg> inputs = arguments(program, request);
    results = about(request.file, [&] {
      program.check_payloads();
      Walk walk(program, {.inputs = inputs});
      RunResult result = run_program(walk, inputs, {.seed = request.seed, .absent_are_ones = true});
      if (request.verbose) report_passes(walk.passes());
      return named_results(result);
    });
  }
  if (request.outputs.empty()) print_results(results);
  else if (request.outputs.ends_with(".safetensors"))
    save_safetensors(request.outputs, to_arrays(results, {.bfloat = true}));
  else save_npz(request.outputs, to_arrays(results));
  return ok;
}

}  // namespace tenon::tool
