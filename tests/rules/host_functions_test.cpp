// Which operators are computed by host functions: a new one is seen in review. What stages can do is not one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "kernels/library.h"
#include "tenon/base/file.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

TEST(HostFunctions, are_those_of_the_list) {
  std::string path = TENON_HOST_FUNCTIONS, listed;
  for (const Op* op : registry().all())
    if (op->def && op->def->host) listed += text(op->name(), " ", op->def->host.name, "\n");
  if (std::getenv("TENON_GOLDEN_UPDATE")) write_file_atomically(path, listed);
  EXPECT_EQ(listed, read_file(path)) << "run with TENON_GOLDEN_UPDATE=1 and read the difference before you keep it";
}

TEST(HostFunctions, of_the_registry_are_in_the_kernel_library_and_the_other_way_round) {
  std::set<std::string> named, there;
  for (const Op* op : registry().all())
    if (op->def && op->def->host && !op->def->host.function) named.insert(op->def->host.name);
  for (const kernels::Image& image : kernels::images())
    for (const kernels::Symbol& symbol : image.symbols)
      if (symbol.kind == kernels::Kind::host_function) there.insert(std::string(symbol.name));
  EXPECT_EQ(named, there);
}

}  // namespace
}  // namespace tenon
