// Interpreter, machine code and C must agree bit for bit on kernels made at random.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/compile/random_kernel.h"
#include "tests/compile/run.h"

namespace tenon::compile {
namespace {

uint32_t from_environment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
}

TEST(RandomKernels, text_is_read_back_as_the_same_kernel) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::string text = to_text(random_kernel(seed).kernel);
    Kernel again = parse_kernel(text);
    verify(again);
    ASSERT_EQ(to_text(again), text) << seed;
  }
}

TEST(RandomKernels, machine_code_does_what_the_interpreter_does) {
  uint32_t first = from_environment("TENON_SEED", 0), count = from_environment("TENON_COUNT", 10000);
  if (isas().empty()) GTEST_SKIP() << "this machine has neither x86-64-v3 nor v4";
  for (Isa isa : {Isa::v3, Isa::v4})
    if (!machine_has(isa)) std::printf("left out: this machine has no %s\n", std::string(name(isa)).c_str());
  int failures = 0;
  for (uint32_t seed = first; seed < first + count && failures < 5; ++seed) {
    RandomKernel r = random_kernel(seed);
    if (std::getenv("TENON_SHOW")) std::printf("%s\n", to_text(r.kernel).c_str());
    Outcome wanted = interpreted(r.kernel, r.buffers, r.params, r.lo, r.hi);
    for (Isa isa : isas()) {
      MappedCode code(emit_native(std::span(&r.kernel, 1), isa));
      std::string wrong =
          difference(r.kernel, wanted, called(code.function(), r.kernel, r.buffers, r.params, r.lo, r.hi));
      if (!wrong.empty()) ++failures;
      EXPECT_EQ(wrong, "") << "seed " << seed << " on " << name(isa);
    }
  }
}

}  // namespace
}  // namespace tenon::compile
