// Reading files for ever adds nothing to the process.
#include <gtest/gtest.h>
#include <malloc.h>

#include "tenon/export/serde/load.h"
#include "tenon/rules/registry.h"
#include "tests/export/edited.h"

namespace tenon {
namespace {

size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

TEST(Growth, UnknownOperatorsGoWithTheirProgram) {
  auto open = [](int i) {
    std::string target = text("torch.ops.mine.operator_with_a_name_of_its_own_", i, ".default");
    ExportedProgram program = load_exported(edited_json(mlp(), "torch.ops.aten.gelu.default", target), registry());
    size_t unknown = 0;
    for (const Node& node : program.graph->nodes) unknown += node.op->traits.unknown;
    EXPECT_EQ(unknown, 1u);
  };
  for (int i = 0; i < 50; ++i) open(i);  // what is made once is there by now
  size_t before = heap_bytes();
  for (int i = 50; i < 1050; ++i) open(i);
  EXPECT_LT(heap_bytes(), before + 64 * 1024);  // one op each would be some 500 KB
}

TEST(Growth, FilesWithTheSameSymbolsShareThem) {
  auto open = [] {
    load_exported(edited_json(mlp(), "\"guards_code\": []", "\"guards_code\": [\"L['input'].size()[0] <= 9\"]"),
                  registry());
  };
  for (int i = 0; i < 50; ++i) open();
  size_t before = heap_bytes();
  for (int i = 0; i < 500; ++i) open();
  EXPECT_LT(heap_bytes(), before + 64 * 1024);
}

}  // namespace
}  // namespace tenon
