#include "tenon/interp/eager.h"
#include "tenon/io/safetensors.h"
#include "tools/tenon/arrays.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

std::vector<CallArg> arguments(const ExportedProgram& program, const RunRequest& request) {
  if (!request.inputs.empty())
    return arguments_from(expected_inputs(program), load_any_arrays(request.inputs), request.inputs);
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

std::vector<NamedResult> run_interpreted(const RunRequest& request) {
  ExportedProgram program = open_program(request.file, request.open);
  Progress progress(text("running ", shown(request.file)));
  if (request.threads > 0) interp::set_threads(request.threads);
  std::vector<CallArg> inputs = arguments(program, request);
  return about(request.file, [&] {
    program.check_payloads();
    Walk walk(program, {.inputs = inputs});
    RunResult result = run_program(walk, inputs, {.seed = request.seed, .absent_are_ones = true});
    if (request.verbose) report_passes(walk.passes());
    return named_results(result);
  });
}

std::vector<NamedResult> run_compiled(const RunRequest& request) {
  Progress progress(text("running ", shown(request.file)));
  auto program =
      about(request.file, [&] { return artifact::CompiledProgram::open(request.file, {.threads = request.threads}); });
  std::vector<CallArg> inputs = compiled_arguments(*program, request.file, request.inputs);
  return about(request.file, [&] {
    for (CallArg& input : inputs)
      if (auto* t = input.get<Tensor>(); t && *t) input = contiguous_copy(*t);  // which the program may write
    artifact::CompiledState state(program, request.seed);
    return named_results(artifact::CompiledSession(program).run(state, inputs));
  });
}

}  // namespace

std::vector<CallArg> compiled_arguments(const artifact::CompiledProgram& program, const std::string& file,
                                        const std::string& arrays) {
  if (!arrays.empty()) return arguments_from(expected_inputs(program.signature()), load_any_arrays(arrays), arrays);
  auto samples = program.samples();
  require(samples.has_value(), file, ": the file stores no sample inputs; give them with --inputs FILE.npz");
  return std::move(*samples);
}

int run_file(const RunRequest& request) {
  if (!request.outputs.empty()) {
    require_other_file(request.file, request.outputs);
    if (!request.inputs.empty()) require_other_file(request.inputs, request.outputs);
    require_writable(request.outputs);
  }
  std::vector<NamedResult> results = is_compiled(request.file) ? run_compiled(request) : run_interpreted(request);
  if (request.outputs.empty()) print_results(results);
  else if (request.outputs.ends_with(".safetensors"))
    save_safetensors(request.outputs, to_arrays(results, {.bfloat = true}));
  else save_npz(request.outputs, to_arrays(results));
  return ok;
}

}  // namespace tenon::tool
