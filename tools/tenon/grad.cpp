#include "tenon/export/serde/save.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

bool is_gradient(const OutputSpec& spec) {
  return spec.kind == OutputKind::gradient_to_parameter || spec.kind == OutputKind::gradient_to_user_input;
}

// Gradients count as outputs behind the others.
size_t output_of(const GradRequest& request, const ExportedProgram& program) {
  if (request.of_gradient.empty()) return request.walk.of;
  size_t outputs = 0, gradients = 0;
  for (const OutputSpec& spec : program.signature.outputs)
    outputs += spec.kind == OutputKind::user_output || spec.kind == OutputKind::loss_output;
  std::vector<std::string> names;
  for (const OutputSpec& spec : program.signature.outputs) {
    if (!is_gradient(spec)) continue;
    if (spec.target == request.of_gradient) return outputs + gradients;
    names.push_back(shown(spec.target));
    ++gradients;
  }
  fail("there is no gradient ", quoted(request.of_gradient), " to differentiate; ",
       names.empty() ? "the program computes none: make one that does with tenon grad"
                     : "there are those of " + join(names, ", "));
}

}  // namespace

int grad_file(const GradRequest& request) {
  require_other_file(request.file, request.out);
  ExportedProgram program = open_program(request.file, request.open);
  require_writable(request.out);
  std::vector<std::string> names;
  size_t of = 0;
  {
    Progress progress(text("differentiating ", shown(request.file)));
    about(request.file, [&] {
      program.check_payloads();
      WalkOptions options = request.walk;
      options.of = of = output_of(request, program);
      Walk walk(program, options);
      ExportedProgram joint = differentiate(walk);
      if (request.verbose) report_passes(walk.passes());
      save_exported(joint, request.out, [&](const std::string& warning) { warn_about(request.file, warning); });
      for (const OutputSpec& spec : joint.signature.outputs)
        if (is_gradient(spec)) names.push_back(shown(spec.target));
    });
  }
  print(text(request.out, ": output_", of, " differentiated with respect to ",
             names.empty() ? "nothing: it depends on none of the tensors asked for" : join(names, ", "), "\n"));
  return ok;
}

}  // namespace tenon::tool
