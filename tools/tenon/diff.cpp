#include "tenon/export/compare_programs.h"
#include "tools/tenon/files.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {

int diff_files(const DiffRequest& request) {
  ExportedProgram first = open_program(request.first, request.open),
                  second = open_program(request.second, request.open);
  ProgramDifferences differences = compare_programs(first, second);
  if (differences.none()) return ok;
  print(text("- ", shown(request.first), "\n+ ", shown(request.second), "\n", to_text(differences)));
  return 1;
}

}  // namespace tenon::tool
