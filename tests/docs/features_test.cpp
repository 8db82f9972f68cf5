// docs/features.md names tests that are there, and has one line for each number.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tenon/base/file.h"
#include "tenon/base/text.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

const fs::path source = TENON_SOURCE;

struct Row {
  std::string number, state;
  std::vector<std::string> tests;  // file: name
};

/// The rows of the tables, each "| number | what | state | `file: name`, ... |".
std::vector<Row> rows_of(std::string_view document) {
  std::vector<Row> rows;
  for (const std::string& line : split(document, '\n')) {
    if (!starts_with(line, "| F") && !starts_with(line, "| W")) continue;
    std::vector<std::string> cells = split(line, '|');
    if (cells.size() != 6) {
      ADD_FAILURE() << "no row of four cells: " << line;
      continue;
    }
    Row row{std::string(trim(cells[1])), std::string(trim(cells[3])), {}};
    std::vector<std::string> quoted = split(cells[4], '`');
    for (size_t i = 1; i < quoted.size(); i += 2) row.tests.push_back(quoted[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// White space, also where a long line was broken, as one blank.
std::string with_single_blanks(std::string_view content) {
  std::string out;
  for (char c : content)
    if (c != ' ' && c != '\n') out += c;
    else if (!out.empty() && out.back() != ' ') out += ' ';
  return out;
}

/// Whether a file of tests/ has a test of that name: a TEST of gtest, a function of Python, a case of a golden file.
bool is_there(const std::string& file, const std::string& name) {
  static std::map<std::string, std::string> contents;
  auto [at, unread] = contents.try_emplace(file);
  if (unread && fs::exists(source / "tests" / file)) {
    at->second = read_file(source / "tests" / file);
    if (ends_with(file, ".cpp")) at->second = with_single_blanks(at->second);
  }
  auto has = [&content = at->second](const std::string& what) { return content.find(what) != content.npos; };
  if (ends_with(file, ".txt")) return has("# " + name + "  ");
  if (ends_with(file, ".py")) return has("def " + name + "(");
  size_t dot = name.find('.');
  if (dot == name.npos) return false;
  std::string in_brackets = "(" + name.substr(0, dot) + ", " + name.substr(dot + 1) + ")";
  return has("TEST" + in_brackets) || has("TEST_F" + in_brackets) || has("TEST_P" + in_brackets);
}

TEST(Features, every_number_has_one_row) {
  std::set<std::string> expected, found;
  for (int i = 1; i <= 163; ++i) expected.insert(text("F", i));
  for (int i = 1; i <= 103; ++i) expected.insert(text("W", i));
  for (const Row& row : rows_of(read_file(source / "docs/features.md")))
    EXPECT_TRUE(found.insert(row.number).second) << row.number << " has two rows";
  EXPECT_EQ(found, expected);
}

TEST(Features, every_test_that_is_named_is_there) {
  for (const Row& row : rows_of(read_file(source / "docs/features.md")))
    for (const std::string& test : row.tests) {
      size_t colon = test.find(": ");
      ASSERT_NE(colon, test.npos) << row.number << ": " << test;
      EXPECT_TRUE(is_there(test.substr(0, colon), test.substr(colon + 2))) << row.number << ": no test " << test;
    }
}

TEST(Features, what_is_there_is_shown_and_what_is_not_has_a_reason) {
  for (const Row& row : rows_of(read_file(source / "docs/features.md"))) {
    bool there = starts_with(row.state, "yes") || starts_with(row.state, "gone") || starts_with(row.state, "shown");
    bool reasoned = starts_with(row.state, "no: ") || starts_with(row.state, "kept: ") ||
                    starts_with(row.state, "not applicable: ");
    EXPECT_NE(there, reasoned) << row.number << ": state '" << row.state << "'";
    EXPECT_TRUE(!there || !row.tests.empty()) << row.number << " names no test";
  }
}

TEST(Features, a_test_that_is_not_there_is_found) {
  EXPECT_TRUE(is_there("docs/features_test.cpp", "Features.a_test_that_is_not_there_is_found"));
  EXPECT_FALSE(is_there("docs/features_test.cpp", "Features.nothing"));
  EXPECT_FALSE(is_there("docs/no_such_file.cpp", "Features.nothing"));
  EXPECT_FALSE(is_there("interop/programs.py", "no_such_program"));
}

}  // namespace
}  // namespace tenon
