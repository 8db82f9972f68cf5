// Text in, text out: every case of the .txt files beside this one is a graph, the pass or stage to run and what it
// makes of the graph. With TENON_GOLDEN_UPDATE set in the environment the files are written anew; read the difference
// before you keep it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tenon/base/file.h"
#include "tenon/export/spell_sizes.h"
#include "tenon/passes/decompose.h"
#include "tenon/passes/grad_regions.h"
#include "tenon/passes/normalize.h"
#include "tenon/passes/to_torch.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

std::string run_pass(const std::string& pass, Graph graph) {
  if (auto stage = stage_named(pass); stage && *stage != StageName::normalized) {
    ExportedProgram program = program_of(std::move(graph));
    Walk walk(program, {.wrt = parse_wrt("all")});
    return show(walk, *stage);
  }
  if (pass == "print") return to_text(graph.body());
  if (pass == "remove_dead_code") return to_text(remove_dead_code(std::move(graph)).body());
  if (pass == "decompose") return to_text(decompose(graph.body()).body());
  if (pass == "normalized") return to_text(normalize(graph.body()).body());
  if (pass == "grad_regions") return to_text(make_grad_regions(graph.body()).body());
  if (pass == "spell_sizes") return to_text(spell_sizes(graph.body(), registry()).body());
  if (pass == "to_torch") return to_text(to_torch(graph.body()).body());
  fail("there is no pass ", tenon::quoted(pass));
}

struct Case {
  std::string title, pass, before, after;
};

// # title    run: pass, then the graph, a line of dashes and what is expected.
std::vector<Case> cases_of(const std::string& content) {
  std::vector<Case> cases;
  bool after = false;
  for (const std::string& line : split(content, '\n')) {
    if (size_t run = line.find("run: "); starts_with(line, "# ") && run != std::string::npos) {
      cases.push_back({std::string(trim(std::string_view(line).substr(2, run - 2))), line.substr(run + 5), "", ""});
      after = false;
    } else if (starts_with(line, "----")) after = true;
    else if (!cases.empty() && !line.empty()) (after ? cases.back().after : cases.back().before) += line + "\n";
  }
  return cases;
}

std::string without_empty_lines(const std::string& s) {
  std::string out;
  for (const std::string& line : split(s, '\n'))
    if (!trim(line).empty()) out += line + "\n";
  return out;
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_GOLDEN))
    if (entry.path().extension() == ".txt" && entry.path().stem() != "CMakeLists")
      out.push_back(entry.path().stem().string());
  std::sort(out.begin(), out.end());
  return out;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, EveryCaseGivesItsText) {
  std::string path = text(TENON_GOLDEN "/", GetParam(), ".txt"), anew;
  bool update = std::getenv("TENON_GOLDEN_UPDATE") != nullptr;
  std::vector<Case> cases = cases_of(read_file(path));
  ASSERT_FALSE(cases.empty());
  for (const Case& c : cases) {
    std::string made;
    try {
      made = run_pass(c.pass, parse_graph(c.before, registry()));
    } catch (const Error& e) { made = text("error: ", e.what(), "\n"); }
    made = without_empty_lines(made);
    anew += text(anew.empty() ? "" : "\n", "# ", c.title, "          run: ", c.pass, "\n", c.before, "----\n", made);
    if (!update) { EXPECT_EQ(made, c.after) << c.title; }
  }
  if (update) write_file_atomically(path, anew);
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, testing::ValuesIn(files()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon
