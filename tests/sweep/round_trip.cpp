#include <unistd.h>

#include <filesystem>

#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/rules/registry.h"
#include "tests/sweep/checks.h"
#include "tests/sweep/program_of.h"

namespace tenon::sweep {
Outcome check_round_trip(const Op& op, const Case& recorded, bool through_file) {
  ExportedProgram program = program_of(op, recorded);
  ExportedProgram back;
  if (through_file) {
    std::string path = (std::filesystem::temp_directory_path() / text("tenon_sweep_", getpid(), ".pt2")).string();
    save_exported(program, path);
    back = load_exported(path, registry());
    std::filesystem::remove(path);
  } else {
    back = read_program(to_json(program), "model.json", registry());
  }
  std::string before = to_text(program.graph.body()), after = to_text(back.graph.body());
  if (before != after) return text("written as ", before, " and read as ", after);
  const Node &a = program.graph->nodes.back(), &b = back.graph->nodes.back();
  if (a.op != b.op) return text("read as a call of ", b.op->name());
  if (a.given != b.given) return text("the arguments given were ", a.given, " and are read as ", b.given);
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!(a.args[i] == b.args[i]) && to_text(program.graph.body(), a.args[i]) != to_text(back.graph.body(), b.args[i]))
      return text("argument ", op.schema.args[i].name, " was ", to_text(program.graph.body(), a.args[i]),
                  " and is read as ", to_text(back.graph.body(), b.args[i]));
  return std::nullopt;
}

}  // namespace tenon::sweep
