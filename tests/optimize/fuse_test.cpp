// What fuse makes of stages. Texts of whole programs are in tests/golden/fused.txt.
#include "tenon/optimize/fuse.h"

#include <gtest/gtest.h>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program fused(std::string_view graph) { return prepare(functionalize(program_of(graph)), StageName::fused)->program; }

TEST(Fuse, AChainOfPointwiseOperatorsIsOneStage) {
  Program p = fused(
      "%x: f32[4] = input()\n%a: f32[4] = aten::exp(%x)\n%b: f32[4] = aten::neg(%a)\n%y: f32[4] = "
      "aten::add.Tensor(%b, %x)\nreturn %y\n");
  EXPECT_EQ(p.steps.size(), 1u);
}

}  // namespace
}  // namespace tenon
