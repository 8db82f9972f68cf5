// The C text of kernels, compiled by the system's compiler, against the interpreter.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tenon/base/text.h"
#include "tenon/compile/emit_c.h"
#include "tests/compile/c_library.h"
#include "tests/compile/random_kernel.h"
#include "tests/compile/run.h"

namespace tenon::compile {
namespace {

TEST(CText, does_what_the_interpreter_does) {
  if (!has_c_compiler()) GTEST_SKIP() << "there is no C compiler here";
  Folder folder;
  constexpr uint32_t files = 5, per_file = 100;
  for (uint32_t f = 0; f < files; ++f) {
    std::vector<RandomKernel> made;
    std::vector<Kernel> kernels;
    for (uint32_t i = 0; i < per_file; ++i) {
      made.push_back(random_kernel(f * per_file + i + 20000));
      kernels.push_back(made.back().kernel);
    }
    void* library = build_c(folder, text("kernels", f), emit_c(kernels),
                            f == 0 ? "" : "-O1");  // optimising all would take a minute
    ASSERT_NE(library, nullptr) << "file " << f;
    for (const RandomKernel& r : made) {
      auto function = reinterpret_cast<KernelFunction>(dlsym(library, r.kernel.name.c_str()));
      ASSERT_NE(function, nullptr) << r.kernel.name;
      Outcome wanted = interpreted(r.kernel, r.buffers, r.params, r.lo, r.hi);
      EXPECT_EQ(difference(r.kernel, wanted, called(function, r.kernel, r.buffers, r.params, r.lo, r.hi)), "")
          << r.kernel.name;
    }
    dlclose(library);
  }
}

TEST(CText, is_the_same_every_time_and_includes_nothing) {
  RandomKernel r = random_kernel(3);
  std::string once = emit_c(std::span(&r.kernel, 1)), again = emit_c(std::span(&r.kernel, 1));
  EXPECT_EQ(once, again);
  EXPECT_EQ(once.find("#include"), std::string::npos);
}

}  // namespace
}  // namespace tenon::compile
