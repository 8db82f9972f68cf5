#include "tenon/train/mode.h"

#include <gtest/gtest.h>

#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

std::string nodes_of(const ExportedProgram& program) { return to_text(program.graph.body()); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

constexpr const char* normalized = R"(%p_norm.weight: f32[3] = input()
%b_norm.running_mean: f32[3] = input()
%b_norm.running_var: f32[3] = input()
%b_norm.num_batches_tracked: i64[] = input()
%b_calls: i64[] = input()
%x: f32[4, 3] = input()
%count: i64[] = aten::add_.Tensor(%b_norm.num_batches_tracked, 1)
%calls: i64[] = aten::add_.Tensor(%b_calls, 1)
%y: f32[4, 3] = aten::batch_norm(%x, %p_norm.weight, None, %b_norm.running_mean, %b_norm.running_var, True, 0.1, 1e-05, False)
%z: f32[4, 3] = aten::dropout(%y, 0.5, True)
return %z
)";

TEST(Mode, EvaluationClearsFlagsAndDropsTheCountOfBatchesAlone) {
  ExportedProgram eval = in_mode(program_of(normalized), Mode::eval);
  std::string text = nodes_of(eval);
  EXPECT_TRUE(contains(text, "False, 0.1, 1e-05")) << text;
  EXPECT_TRUE(contains(text, "aten::dropout(%y, 0.5, False)")) << text;
  EXPECT_FALSE(contains(text, "aten::add_.Tensor(%b_norm.num_batches_tracked")) << text;
  EXPECT_TRUE(contains(text, "aten::add_.Tensor(%b_calls, 1")) << text;
}

TEST(Mode, TrainingAfterEvaluationIsTheProgramThatWas) {
  ExportedProgram program = program_of(normalized);
  ExportedProgram back = in_mode(in_mode(program, Mode::eval), Mode::train);
  std::string text = nodes_of(back);
  EXPECT_TRUE(contains(text, "True, 0.1, 1e-05")) << text;
  EXPECT_TRUE(contains(text, "aten::add_.Tensor(%b_norm.num_batches_tracked, 1")) << text;
  EXPECT_EQ(back.graph->nodes.size(), program.graph->nodes.size());
}

TEST(Mode, ACountThatTheProgramReadsStays) {
  std::string text = normalized;
  text.replace(text.find("return %z"), 9,
               "%n: i64[] = aten::mul.Tensor(%b_norm.num_batches_tracked, 2)\nreturn %z, %n");
  EXPECT_TRUE(
      contains(nodes_of(in_mode(program_of(text), Mode::eval)), "aten::add_.Tensor(%b_norm.num_batches_tracked, 1"));
}

TEST(Mode, NormalizationWithoutRunningStatisticsTrainsInBothModes) {
  ExportedProgram program = program_of(
      "%x: f32[4, 3] = input()\n"
      "%y: f32[4, 3] = aten::batch_norm(%x, None, None, None, None, True, 0.1, 1e-05, False)\n"
      "return %y\n");
  EXPECT_TRUE(contains(nodes_of(in_mode(program, Mode::eval)), "None, True, 0.1"));
}

TEST(Mode, TheOriginalStaysAsItWas) {
  ExportedProgram program = program_of(normalized);
  std::string before = nodes_of(program);
  in_mode(program, Mode::eval);
  EXPECT_EQ(nodes_of(program), before);
}

}  // namespace
}  // namespace tenon
