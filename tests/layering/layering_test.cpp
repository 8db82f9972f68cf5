// Every #include of tenon/ against tenon/LAYERS.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tenon/base/file.h"
#include "tenon/base/text.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

struct Layers {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> allowed;
};

Layers read_layers(std::string_view content) {
  Layers layers;
  for (const std::string& line : split(content, '\n')) {
    if (trim(line).empty() || line[0] == '#') continue;
    std::string folder(trim(line.substr(0, line.find(':'))));
    layers.order.push_back(folder);
    for (const std::string& needed : split(line.substr(line.find(':') + 1), ' '))
      if (!needed.empty()) layers.allowed[folder].insert(needed);
  }
  return layers;
}

/// The folder of tenon/ that a path below it belongs to; files of tenon/ itself are the pipeline.
std::string folder_of(const std::string& path) {
  size_t slash = path.find('/');
  return slash == path.npos ? "pipeline" : path.substr(0, slash);
}

std::vector<std::string> includes_of(std::string_view source) {
  std::vector<std::string> out;
  for (const std::string& line : split(source, '\n')) {
    std::string_view rest = trim(line);
    if (!starts_with(rest, "#")) continue;
    rest = trim(rest.substr(1));
    if (!starts_with(rest, "include")) continue;
    rest = trim(rest.substr(7));
    size_t end = rest.size() > 1 ? rest.find(rest[0] == '<' ? '>' : '"', 1) : rest.npos;
    if (end != rest.npos) out.emplace_back(rest.substr(1, end - 1));
  }
  return out;
}

/// What is wrong with the includes of one file, given by its path below tenon/.
std::vector<std::string> violations(const Layers& layers, const std::string& path, std::string_view source) {
  std::vector<std::string> out;
  std::string own = folder_of(path);
  auto allowed = layers.allowed.find(own);
  for (const std::string& include : includes_of(source)) {
    if (starts_with(include, "tools/") || starts_with(include, "tests/")) out.push_back(path + " includes " + include);
    if (!starts_with(include, "tenon/")) continue;
    std::string other = folder_of(include.substr(6));
    if (other != own && (allowed == layers.allowed.end() || !allowed->second.count(other)))
      out.push_back(text("tenon/", path, " includes ", include, ", which tenon/LAYERS does not allow to ", own));
  }
  return out;
}

const fs::path source = TENON_SOURCE;
Layers layers() { return read_layers(read_file(source / "tenon/LAYERS")); }

TEST(Layering, every_include_is_allowed) {
  Layers known = layers();
  size_t files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source / "tenon")) {
    std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    ++files;
    std::string path = fs::relative(entry.path(), source / "tenon");
    for (const std::string& violation : violations(known, path, read_file(entry.path()))) ADD_FAILURE() << violation;
  }
  EXPECT_GT(files, 50u);
}

TEST(Layering, models_and_optimizers_see_the_public_headers_alone) {
  size_t files = 0;
  for (const char* folder : {"nn", "optim", "include/tenon"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(source / folder)) {
      if (entry.path().extension() != ".h" && entry.path().extension() != ".cpp") continue;
      ++files;
      for (const std::string& line : split(read_file(entry.path()), '\n'))
        EXPECT_FALSE(starts_with(trim(line), "#include \"")) << entry.path() << ": " << line;
    }
  EXPECT_GT(files, 20u);
}

// What tenon.h makes a user's compiler read. <functional>, <memory>, <iostream>, <regex>, <unordered_map> and their
// like each cost more than all of our own headers.
TEST(Layering, the_one_include_needs_few_headers_of_the_standard_library) {
  const std::set<std::string> cheap = {
      "array",     "concepts", "cstddef",     "cstdint", "initializer_list", "iosfwd",  "map",   "optional", "span",
      "stdexcept", "string",   "string_view", "tuple",   "type_traits",      "utility", "vector"};
  std::set<std::string> seen, to_read{"tenon/tenon.h"};
  while (!to_read.empty()) {
    std::string header = *to_read.begin();
    to_read.erase(to_read.begin());
    if (!seen.insert(header).second) continue;
    fs::path own = source / "include" / header, made = fs::path(TENON_MADE_HEADERS) / header;
    ASSERT_TRUE(fs::exists(own) || fs::exists(made)) << header;
    for (const std::string& include : includes_of(read_file(fs::exists(own) ? own : made))) {
      if (starts_with(include, "tenon/")) to_read.insert(include);
      else EXPECT_TRUE(cheap.contains(include)) << header << " includes <" << include << ">";
    }
  }
  EXPECT_GT(seen.size(), 12u);
}

TEST(Layering, every_folder_has_a_line) {
  Layers known = layers();
  std::set<std::string> listed(known.order.begin(), known.order.end());
  for (const fs::directory_entry& entry : fs::directory_iterator(source / "tenon"))
    EXPECT_TRUE(!entry.is_directory() || listed.count(entry.path().filename()))
        << entry.path() << " is not in tenon/LAYERS";
}

TEST(Layering, a_folder_needs_only_lower_ones) {
  std::set<std::string> lower;
  Layers known = layers();
  for (const std::string& folder : known.order) {
    for (const std::string& needed : known.allowed[folder])
      EXPECT_TRUE(lower.count(needed)) << folder << " needs " << needed;
    EXPECT_TRUE(lower.insert(folder).second) << folder << " has two lines";
  }
}

TEST(Layering, an_include_from_below_is_found) {
  Layers known = read_layers("# comment\nbase:\nio: base\n");
  EXPECT_EQ(violations(known, "base/text.cpp", "#include \"tenon/io/json.h\"\n").size(), 1u);
  EXPECT_EQ(violations(known, "base/text.cpp", "  #  include <tenon/io/json.h>\n").size(), 1u);
  EXPECT_EQ(
      violations(known, "io/json.cpp", "#include \"tenon/base/text.h\"\n#include <map>\n#include \"tenon/io/zip.h\"\n")
          .size(),
      0u);
  EXPECT_EQ(violations(known, "io/json.cpp", "#include \"tools/tenon/files.h\"\n").size(), 1u);
}

}  // namespace
}  // namespace tenon
