// What make_images says about a family that is more than code and constants.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace {

struct Outcome {
  int status;
  std::string said;
};

Outcome make_images(const std::string& family) {
  std::string folder = TENON_REFUSED;
  std::string command = TENON_MAKE_IMAGES " " + folder + "/refused.cpp " + family + " v3 " + folder + "/refused_" +
                        family + ".v3.elf 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  return {WEXITSTATUS(pclose(pipe)), said};
}

void expect_refused(const std::string& family, const std::string& sentence) {
  Outcome outcome = make_images(family);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.said.substr(0, outcome.said.find('\n')), "kernels: family " + family + " for v3 " + sentence);
}

TEST(KernelImages, a_variable_is_refused) {
  expect_refused("counter",
                 "has 8 bytes of .bss; expected code and constants alone: no variables, no statics, no tables of "
                 "pointers");
}
TEST(KernelImages, a_table_of_pointers_is_refused) {
  expect_refused("pointers",
                 "has 24 bytes of .data.rel.ro; expected code and constants alone: no variables, no statics, no "
                 "tables of pointers");
}
TEST(KernelImages, an_undefined_function_is_refused_by_name) {
  expect_refused("undefined", "refers to lgamma, which it does not define; kernels call no library");
}
TEST(KernelImages, an_address_in_the_code_is_refused) {
  EXPECT_NE(make_images("relocation").said.find("has a relocation of type 1 at "), std::string::npos)
      << make_images("relocation").said;
}
TEST(KernelImages, an_entry_without_endbr64_is_refused) {
  expect_refused("entry", "has entered, which does not start with endbr64; compile it with -fcf-protection=full");
}
TEST(KernelImages, a_family_without_functions_is_refused) {
  expect_refused("nothing", "has no function; define one with TENON_KERNEL or TENON_HOST_FUNCTION");
}

}  // namespace
