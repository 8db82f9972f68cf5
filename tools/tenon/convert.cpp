#include "tenon/export/serde/save.h"
#include "tools/tenon/files.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {

int convert_file(const ConvertRequest& request) {
  require_other_file(request.file, request.out);
  ExportedProgram program = open_program(request.file, request.open);
  require_writable(request.out);
  Progress progress(text("writing ", shown(request.out)));
  about(request.file, [&] {
    if (request.mode) program = in_mode(program, *request.mode);
    if (request.dialect) program = run_decompositions(program, {.to = *request.dialect, .keep = request.keep});
    save_exported(program, request.out, [&](const std::string& warning) { warn_about(request.file, warning); });
  });
  return ok;
}

}  // namespace tenon::tool
