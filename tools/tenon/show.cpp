#include "tenon/export/module_tree.h"
#include "tenon/package/artifact.h"
#include "tools/tenon/files.h"
#include "tools/tenon/graph_json.h"
#include "tools/tenon/progress.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

std::string shown_program(const ExportedProgram& program, const ShowRequest& request) {
  if (request.tree) return to_text(module_tree(program));
  Walk walk(program, request.walk);
  std::string out = request.json ? stage_json(walk, request) : show(walk, request.after);
  if (request.verbose) report_passes(walk.passes());
  if (request.json) return out;
  if (out.empty() || out.back() != '\n') out += '\n';
  return out;
}

std::string list(const std::vector<std::string>& names) {
  constexpr size_t most = 20;
  std::vector<std::string> safe;
  for (size_t i = 0; i < names.size() && i < most; ++i) safe.push_back(shown(names[i]));
  return text(join(safe, ", "), names.size() > most ? text(" and ", names.size() - most, " more") : "");
}

int show_compiled(const ShowRequest& request) {
  require(request.after == StageName::read, request.file, ": a compiled program has no stages; show the .pt2 file");
  require(!request.tree, request.file, ": a compiled program has no modules; show the .pt2 file");
  std::string out = about(request.file, [&] {
    package::Artifact artifact = package::Artifact::open(request.file);
    request.verify ? artifact.verify_checksums() : artifact.verify_code();
    return request.json ? package::to_json(artifact) : package::to_text(artifact);
  });
  print(out);
  return ok;
}

}  // namespace

int show_file(const ShowRequest& request) {
  if (is_compiled(request.file)) return show_compiled(request);
  require(!request.verify, "--verify: ", request.file, " is no compiled program; its checksums are always looked at");
  ExportedProgram program = open_program(request.file, request.open);
  std::vector<std::string> missing = missing_operators(program);
  std::string out, stopped;
  {
    Progress progress(text("reading ", shown(request.file)));
    out = about(request.file, [&] {
      if (missing.empty() || request.after == StageName::read) return shown_program(program, request);
      // Stages that know operators stop at a missing one: the program as it was read can always be shown.
      ShowRequest as_read = request;
      as_read.after = StageName::read;
      as_read.stage = "read";
      stopped = text(", so the program is shown as read and not ", request.stage);
      return shown_program(program, as_read);
    });
  }
  print(out);
  if (missing.empty()) return ok;
  complain(text(request.file, ": Tenon does not have ",
                missing.size() == 1 ? "the operator " : text(missing.size(), " of the operators: "), list(missing),
                stopped));
  return bad_input;
}

}  // namespace tenon::tool
