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

// Each file has a symbol, a range and expressions that no other has.
TEST(Growth, SymbolsGoWithTheirProgram) {
  auto open = [](int i) {
    std::string own = text("symbol_with_a_long_name_of_its_own_", i);
    return load_exported(
        edited_json(mlp(), "\"range_constraints\": {",
                    text("\"range_constraints\": {\"", own, "\": {\"min_val\": 2, \"max_val\": ", 100 + i, "}, \"",
                         2 + i % 7, "*", own, " + ", i, "\": {\"min_val\": 0, \"max_val\": 1000000}, ")),
        registry());
  };
  for (int i = 0; i < 50; ++i) open(i);
  size_t before = sym::interned_nodes(), bytes = heap_bytes();
  {
    ExportedProgram kept = open(50);
    EXPECT_GE(sym::interned_nodes(), before + 3);  // the symbol, its product, the sum
  }
  for (int i = 51; i < 1050; ++i) open(i);
  EXPECT_EQ(sym::interned_nodes(), before);
  EXPECT_LT(heap_bytes(), bytes + 64 * 1024);
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
