// Programs in PyTorch's dialects beside what PyTorch itself makes of them, to the letter.
#include "tests/dialect/recorded.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/dialect/run_decompositions.h"
#include "tenon/export/print.h"

namespace tenon {
namespace {

using tenon::testing::RecordedProgram;

// "NAME DIALECT reason": what is known to differ from PyTorch, and why.
std::map<std::string, std::string> known_differences() {
  std::map<std::string, std::string> out;
  std::ifstream file(TENON_DIFFERENCES);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t first = line.find(' '), second = line.find(' ', first + 1);
    out[line.substr(0, second)] = second == line.npos ? "" : line.substr(second + 1);
  }
  return out;
}

std::string first_difference(const std::string& ours, const std::string& theirs) {
  std::vector<std::string> a = split(ours, '\n'), b = split(theirs, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    std::string left = i < a.size() ? a[i] : "", right = i < b.size() ? b[i] : "";
    if (left != right) return text("\n  ours:    ", left, "\n  PyTorch: ", right);
  }
  return "";
}

std::string decomposed(const RecordedProgram& recorded, Dialect to) {
  ExportedProgram program = testing::program_of(recorded);
  return testing::comparable(to_text(run_decompositions(program, {.to = to})));
}

class Decompositions : public ::testing::TestWithParam<Dialect> {};

TEST_P(Decompositions, AreThoseOfPyTorchToTheLetter) {
  bool core = GetParam() == Dialect::core;
  std::map<std::string, std::string> known = known_differences();
  size_t equal = 0, all = 0;
  testing::for_each_recorded([&](const RecordedProgram& recorded) {
    const std::string& theirs = core ? recorded.core : recorded.aten;
    if (theirs.empty()) return;
    ++all;
    std::string difference;
    try {
      difference = first_difference(decomposed(recorded, GetParam()), testing::comparable(theirs));
    } catch (const std::exception& e) { difference = text("\n  ours:    ", e.what()); }
    std::string key = recorded.name + (core ? " core" : " aten");
    if (difference.empty()) {
      ++equal;
      EXPECT_FALSE(known.contains(key)) << key << " is equal now: take it from the list of differences";
    } else {
      EXPECT_TRUE(known.contains(key)) << key << " differs:" << difference;
    }
  });
  std::cout << equal << " of " << all << " programs equal\n";
  EXPECT_GT(all, 500u);
  EXPECT_GE(static_cast<double>(equal), 0.95 * static_cast<double>(all));
}

INSTANTIATE_TEST_SUITE_P(Dialects, Decompositions, ::testing::Values(Dialect::aten, Dialect::core),
                         [](const auto& info) { return info.param == Dialect::core ? "core" : "aten"; });

}  // namespace
}  // namespace tenon
