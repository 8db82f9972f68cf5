// Text in, text out: every case of the .txt files beside this one is a graph, the pass to run and what it makes of the
// graph.
#include <gtest/gtest.h>

#include <filesystem>

#include "tenon/base/file.h"
#include "tenon/ops/registry.h"
#include "tenon/passes/decompose.h"
#include "tenon/passes/normalise.h"
#include "tenon/passes/to_torch.h"

namespace tenon {
namespace {

Graph run_pass(const std::string& pass, Graph graph) {
  if (pass == "remove_dead_code") return remove_dead_code(std::move(graph));
  if (pass == "decompose") return decompose(graph.body());
  if (pass == "normalise") return normalise(graph.body());
  if (pass == "to_torch") return to_torch(graph.body());
  if (pass == "print") return graph;
  fail("there is no pass ", tenon::quoted(pass));
}

struct Case {
  std::string title, pass, before, after;
};

// # title    run: pass, then the graph, a line of dashes and the graph expected.
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

TEST(Golden, EveryCaseGivesItsText) {
  size_t run = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TENON_GOLDEN)) {
    if (entry.path().extension() != ".txt") continue;
    for (const Case& c : cases_of(read_file(entry.path().string()))) {
      Graph made = run_pass(c.pass, parse_graph(c.before, registry()));
      EXPECT_EQ(to_text(made.body()), c.after) << entry.path().filename() << ": " << c.title;
      ++run;
    }
  }
  EXPECT_GE(run, 7u);
}

}  // namespace
}  // namespace tenon
