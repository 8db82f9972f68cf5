// The machine code of the tiles, read back from the linked families: the loop that does the work keeps its sums in
// registers and loads every vector once.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace tenon::kernels {
namespace {

struct Instruction {
  unsigned long address;
  std::string text;
};

/// Functions of a linked family by their mangled names.
std::map<std::string, std::vector<Instruction>> disassembled(const std::string& file) {
  std::map<std::string, std::vector<Instruction>> out;
  FILE* pipe = popen(("objdump -d --no-show-raw-insn " + file).c_str(), "r");
  if (!pipe) return out;
  std::array<char, 512> line;
  std::string name;
  while (std::fgets(line.data(), line.size(), pipe)) {
    std::string text = line.data();
    if (size_t open = text.find(" <"); text[0] != ' ' && open != text.npos && text.find(">:") != text.npos) {
      name = text.substr(open + 2, text.find(">:") - open - 2);
    } else if (size_t colon = text.find(":\t"); colon != text.npos) {
      out[name].push_back({std::strtoul(text.c_str(), nullptr, 16), text.substr(colon + 2)});
    }
  }
  pclose(pipe);
  return out;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

/// The loop with the most multiply-adds that has no other loop in it: from the target of a backward jump to the jump.
std::vector<std::string> inner_loop(const std::vector<Instruction>& code) {
  std::vector<std::string> best;
  size_t most = 0;
  for (size_t end = 0; end < code.size(); ++end) {
    const std::string& jump = code[end].text;
    if (jump[0] != 'j') continue;
    const unsigned long target = std::strtoul(jump.c_str() + jump.find(' '), nullptr, 16);
    if (target == 0 || target >= code[end].address) continue;
    std::vector<std::string> body;
    size_t work = 0;
    bool inner = false;
    for (size_t i = end; i-- > 0 && code[i].address >= target;) {
      body.push_back(code[i].text);
      work += contains(code[i].text, "vfmadd");
      inner = inner || (code[i].text[0] == 'j' && !contains(code[i].text, "jmp"));
    }
    if (!inner && work > most) most = work, best = body;
  }
  return best;
}

class Tiles : public testing::TestWithParam<const char*> {};

TEST_P(Tiles, KeepTheirSumsInRegisters) {
  if (std::system("objdump --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "objdump (binutils) is not installed";
  size_t tiles = 0;
  for (const auto& [name, code] : disassembled(std::string(TENON_LINKED_KERNELS "/") + GetParam() + ".elf")) {
    if (!contains(name, "kernels4tileI")) continue;
    ++tiles;
    // tile<T, rows, vectors>: four terms of each in the loop.
    const char* numbers = std::strstr(name.c_str(), "Li");
    ASSERT_NE(numbers, nullptr) << name;
    const size_t rows = std::strtoul(numbers + 2, nullptr, 10);
    const size_t vectors = std::strtoul(std::strstr(numbers + 2, "Li") + 2, nullptr, 10);
    size_t work = 0;
    for (const std::string& instruction : inner_loop(code)) {
      work += contains(instruction, "vfmadd");
      const bool vector =
          contains(instruction, "%xmm") || contains(instruction, "%ymm") || contains(instruction, "%zmm");
      const bool memory = contains(instruction, "(");
      EXPECT_FALSE(vector && (contains(instruction, "(%rsp") || contains(instruction, "(%rbp")))
          << name << " spills: " << instruction;
      EXPECT_FALSE(contains(instruction, "vfmadd") && memory && rows > 1) << name << " loads again: " << instruction;
    }
    EXPECT_EQ(work, 4 * rows * vectors) << name;
  }
  EXPECT_GT(tiles, 4u);
}
INSTANTIATE_TEST_SUITE_P(Families, Tiles, testing::Values("gemm_f32.v3", "gemm_f32.v4", "gemm_f64.v3", "gemm_f64.v4"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace tenon::kernels
