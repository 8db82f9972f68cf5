#include "tenon/export/serde/save.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

bool is_gradient(const OutputSpec& spec) {
  return spec.kind == OutputKind::gradient_to_parameter || spec.kind == OutputKind::gradient_to_user_input;
}

}  // namespace

int grad_file(const GradRequest& request) {
  require_other_file(request.file, request.out);
  ExportedProgram program = open_program(request.file, request.open);
  require_writable(request.out);
  std::vector<std::string> names;
  {
    Progress progress(text("differentiating ", shown(request.file)));
    about(request.file, [&] {
      program.check_payloads();
      Walk walk(program, request.walk);
      ExportedProgram joint = differentiate(walk);
      if (request.verbose) report_passes(walk.passes());
      save_exported(joint, request.out,
                    [&](const std::string& warning) { complain(text(request.file, ": warning: ", warning)); });
      for (const OutputSpec& spec : joint.signature.outputs)
        if (is_gradient(spec)) names.push_back(shown(spec.target));
    });
  }
  print(text(request.out, ": output_", request.walk.of, " differentiated with respect to ",
             names.empty() ? "nothing: it depends on none of the tensors asked for" : join(names, ", "), "\n"));
  return ok;
}

}  // namespace tenon::tool
