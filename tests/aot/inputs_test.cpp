// Inputs that share memory, and inputs that a program lays another way: what the convention says of them.
#include <gtest/gtest.h>

#include <functional>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

RunResult run(const ExportedProgram& program, const std::vector<CallArg>& inputs) {
  Walk walk(program, {.inputs = inputs});
  std::unique_ptr<State> state = state_of(program);
  return Session(walk.executable()).run(*state, inputs);
}

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) { return e.what(); }
  return "";
}

/// The same bytes from element `offset` on, seen as another tensor.
Tensor over(const Tensor& t, DType dtype, Sizes sizes, int64_t offset) {
  TensorMeta meta = make_meta(dtype, std::move(sizes));
  meta.offset = offset;
  return Tensor(std::move(meta), t.storage());
}

TEST(Inputs, OneThatIsTurnedInPlaceIsAResultToo) {
  ExportedProgram program = program_of(
      "%x: f32[2, 3] = input()\n%t: f32[3, 2][1, 3] = aten::t_(%x)\n%y: f32[3, 2] = aten::neg(%t)\nreturn %y\n");
  FunctionalProgram functional = functionalize(program);
  ASSERT_EQ(functional.convention.outputs.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<output::Viewed>(functional.convention.outputs[0]));
  RunResult result = run(program, {counting({2, 3})});
  EXPECT_EQ(values_of(result.outputs[0].as<Tensor>()), (Floats{0, -3, -1, -4, -2, -5}));
  ASSERT_EQ(result.inputs.size(), 1u);
  EXPECT_EQ(result.inputs[0].first, "x");
  EXPECT_EQ(result.inputs[0].second.sizes(), (Sizes{3, 2}));
  EXPECT_EQ(values_of(result.inputs[0].second), (Floats{0, 3, 1, 4, 2, 5}));
}

TEST(Inputs, OneThatIsTurnedAndWrittenIsWrittenWhereItLay) {
  ExportedProgram program = program_of(
      "%x: f32[2, 3] = input()\n%t: f32[3, 2][1, 3] = aten::t_(%x)\n%row: f32[2][3] = aten::select.int(%x, 0, 0)\n"
      "%w: f32[2][3] = aten::mul_.Scalar(%row, 2)\n%y: f32[3, 2] = aten::neg(%x)\nreturn %y\n");
  Tensor x = counting({2, 3});
  RunResult result = run(program, {x});
  EXPECT_EQ(values_of(x), (Floats{0, 1, 2, 6, 4, 5}));
  EXPECT_EQ(values_of(result.outputs[0].as<Tensor>()), (Floats{0, -6, -1, -4, -2, -5}));
  ASSERT_EQ(result.inputs.size(), 1u);
  EXPECT_EQ(values_of(result.inputs[0].second), (Floats{0, 6, 1, 4, 2, 5}));
}

TEST(Inputs, OneThatIsTurnedIsNotReadAsItWas) {
  ExportedProgram program = program_of(
      "%x: f32[2, 4] = input()\n%t: f32[4, 2][1, 4] = aten::t_(%x)\n%y: f32[2, 4] = aten::neg(%x)\nreturn %y\n");
  try {
    functionalize(program);
    ADD_FAILURE() << "is not refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string_view(error.what()).find("a view in place has given other sizes"), std::string_view::npos);
  }
}

TEST(Inputs, OneThatIsTurnedIsNotSplitAsItWas) {
  std::string said = failure([] {
    functionalize(
        program_of("%x: f32[2, 4] = input()\n%t: f32[4, 2][1, 4] = aten::t_(%x)\n"
                   "[%a: f32[2, 3], %b: f32[2, 1]] = aten::unsafe_split.Tensor(%x, 3, -1)\nreturn %a\n"));
  });
  EXPECT_NE(said.find("a view in place has given other sizes"), std::string::npos) << said;
}

TEST(Inputs, StateThatIsTurnedInPlaceIsRefused) {
  std::string said = failure([] {
    functionalize(program_of("%b_m: f32[2, 3] = input()\n%t: f32[3, 2][1, 3] = aten::t_(%b_m)\nreturn %t\n"));
  });
  EXPECT_NE(said.find("changes the sizes or strides of buffer m in place"), std::string::npos) << said;
}

TEST(Inputs, AJointProgramOfOneThatIsTurnedInPlaceCannotBeWritten) {
  ExportedProgram program =
      program_of("%x: f32[2, 3] = input()\n%t: f32[3, 2][1, 3] = aten::t_(%x)\n%y: f32[] = aten::sum(%t)\nreturn %y\n");
  std::string said = failure([&] { differentiate(program, 0, parse_wrt("inputs")); });
  EXPECT_NE(said.find("changes the sizes or strides of user input 0 x in place"), std::string::npos) << said;
}

constexpr char writes_one[] =
    "%x: f32[2] = input()\n%y: i32[2] = input()\n%w: f32[2] = aten::mul_.Scalar(%x, 2)\n"
    "%z: f32[2] = aten::mul.Tensor(%w, %y)\nreturn %z\n";

TEST(Inputs, WrittenMemoryUnderTwoDtypesIsRefused) {
  Tensor x = floats({2}, {1, 2});
  std::string said = failure([&] { run(program_of(writes_one), {x, over(x, DType::i32, {2}, 0)}); });
  EXPECT_NE(said.find("the inputs x and y see the same memory as two dtypes and the program writes to it"),
            std::string::npos)
      << said;
  EXPECT_EQ(values_of(x), (Floats{1, 2}));
}

TEST(Inputs, MemoryUnderTwoDtypesThatIsOnlyReadIsFine) {
  Tensor x = floats({2}, {0, 0});
  RunResult result =
      run(program_of("%x: f32[2] = input()\n%y: i32[2] = input()\n%z: f32[2] = aten::add.Tensor(%x, %y)\nreturn %z\n"),
          {x, over(x, DType::i32, {2}, 0)});
  EXPECT_EQ(values_of(result.outputs[0].as<Tensor>()), (Floats{0, 0}));
}

constexpr char doubles_one[] =
    "%x: f32[3] = input()\n%y: f32[3] = input()\n%w: f32[3] = aten::mul_.Scalar(%x, 2)\n"
    "%z: f32[3] = aten::mul.Tensor(%w, %y)\nreturn %z\n";

TEST(Inputs, ThoseThatOverlapSeeWhatIsWritten) {
  Tensor all = floats({4}, {1, 2, 3, 4});
  Tensor x = over(all, DType::f32, {3}, 0), y = over(all, DType::f32, {3}, 1);
  RunResult result = run(program_of(doubles_one), {x, y});
  EXPECT_EQ(values_of(result.outputs[0].as<Tensor>()), (Floats{8, 24, 24}));
  EXPECT_EQ(values_of(all), (Floats{2, 4, 6, 4}));
}

}  // namespace
}  // namespace tenon
