#include "tests/dialect/recorded.h"

#include <cstring>

#include "tenon/base/file.h"
#include "tenon/base/text.h"
#include "tenon/export/serde/load.h"
#include "tenon/io/json.h"
#include "tenon/io/zip.h"
#include "tenon/rules/registry.h"

namespace tenon::testing {

void for_each_recorded(const std::function<void(const RecordedProgram&)>& visit) {
  std::string path = TENON_TEST_DATA "/dialect/decompositions.zip";
  auto file = MappedFile::open(path);
  ZipArchive archive(file->bytes(), path);
  for (const ZipEntry& entry : archive.entries()) {
    JsonDocument document(archive.content(entry), std::string(entry.name));
    for (Json each : document.root().items()) {
      auto field = [&](std::string_view key) {
        auto found = each.given(key);
        return found ? std::string(found->as_string()) : std::string();
      };
      visit({field("name"), field("program"), field("aten"), field("core")});
    }
  }
}

ExportedProgram program_of(const RecordedProgram& recorded) {
  ExportedProgram program = read_program(recorded.program, recorded.name, registry());
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    const Value* v = program.graph->inputs[i].get<Value>();
    bool weight = spec.kind == InputKind::parameter || (spec.kind == InputKind::buffer && spec.persistent);
    bool constant = spec.kind == InputKind::constant_tensor || (spec.kind == InputKind::buffer && !spec.persistent);
    if (!v || (!weight && !constant) || program.find_state(spec.target)) continue;
    Tensor zeros = Tensor::empty(program.graph->info(*v).meta);
    std::memset(zeros.storage()->mutable_data(), 0, zeros.storage()->size());
    (weight ? program.state : program.constants).push_back({spec.target, zeros, spec.kind == InputKind::parameter});
  }
  return program;
}

std::string comparable(const std::string& printed) {
  std::string out;
  for (const std::string& line : split(printed, '\n')) {
    std::string_view words = trim(line);
    if (words.empty() || starts_with(words, "# ")) continue;
    out += words;
    out += '\n';
  }
  return out;
}

}  // namespace tenon::testing
