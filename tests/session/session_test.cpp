#include "tenon/session/session.h"

#include <gtest/gtest.h>

#include "tenon/pipeline.h"
#include "tenon/sym/parse.h"
#include "tenon/trace/trace.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

// The buffer counts up by the sum of x, and the result is the parameter times x.
constexpr char counting_program[] = R"(%p_w: f32[3] = input()
%b_n: f32[] = input()
%x: f32[3] = input()
%s: f32[] = aten::sum(%x)
%n: f32[] = aten::add_.Tensor(%b_n, %s)
%y: f32[3] = aten::mul.Tensor(%x, %p_w)
return %y
)";

struct Ready {
  ExportedProgram program;
  std::unique_ptr<State> state;
  Session session;
  explicit Ready(std::string_view graph, uint64_t seed = 0)
      : program(program_of(graph)), state(state_of(program, seed)), session(prepare(functionalize(program))) {}
  RunResult run(std::vector<CallArg> inputs, RunOptions options = {}) { return session.run(*state, inputs, options); }
  std::string error(std::vector<CallArg> inputs) {
    try {
      run(std::move(inputs));
    } catch (const Error& e) { return e.what(); }
    return "";
  }
};

Tensor tensor(const CallArg& arg) { return *arg.get<Tensor>(); }

TEST(Session, StateIsUpdatedInPlace) {
  Ready r(counting_program);
  r.state->set("w", floats({3}, {1, 10, 100}));
  r.state->set("n", floats({}, {5}));
  const void* place = r.state->find("n")->bytes();
  RunResult first = r.run({floats({3}, {1, 2, 3})});
  EXPECT_EQ(values_of(tensor(first.outputs[0])), (std::vector<float>{1, 20, 300}));
  EXPECT_EQ(values_of(*r.state->find("n")), std::vector<float>{11});
  r.run({floats({3}, {1, 1, 1})});
  EXPECT_EQ(values_of(*r.state->find("n")), std::vector<float>{14});
  EXPECT_EQ(r.state->find("n")->bytes(), place);
  ASSERT_EQ(first.buffers.size(), 1u);
  EXPECT_EQ(first.buffers[0].first, "n");
}

TEST(Session, ARunIsNoPartOfWhatItsCallerIsTracing) {
  Ready r(counting_program);
  r.state->set("w", floats({3}, {1, 10, 100}));
  GraphBody traced;
  Tracer tracer(traced);
  DispatchScope scope(&tracer);
  RunResult result = r.run({floats({3}, {1, 2, 3})});
  EXPECT_EQ(values_of(tensor(result.outputs[0])), (std::vector<float>{1, 20, 300}));
  EXPECT_TRUE(traced.nodes.empty());
}

TEST(Session, TheProgramsOwnStateIsNotWritten) {
  Ready r(counting_program);
  Tensor kept = contiguous_copy(r.program.state[1].tensor);
  r.run({floats({3}, {1, 2, 3})});
  EXPECT_EQ(values_of(r.program.state[1].tensor), values_of(kept));
}

TEST(Session, AResultIsTheCallersAndStaysAsItWas) {
  Ready r(counting_program);
  r.state->set("w", floats({3}, {1, 1, 1}));
  Tensor first = tensor(r.run({floats({3}, {1, 2, 3})}).outputs[0]);
  r.run({floats({3}, {7, 8, 9})});
  EXPECT_EQ(values_of(first), (std::vector<float>{1, 2, 3}));
}

TEST(Session, AnInputThatIsWrittenIsTheCallersOwn) {
  Ready r(
      "%x: f32[2] = input()\n%y: f32[2] = aten::mul_.Tensor(%x, 2)\n%z: f32[2] = aten::add.Tensor(%x, 1)\nreturn %z\n");
  Tensor x = floats({2}, {1, 2});
  RunResult result = r.run({x});
  EXPECT_EQ(values_of(x), (std::vector<float>{2, 4}));
  EXPECT_EQ(values_of(tensor(result.outputs[0])), (std::vector<float>{3, 5}));
  ASSERT_EQ(result.inputs.size(), 1u);
  EXPECT_EQ(result.inputs[0].first, "x");
}

TEST(Session, AStridedInputIsWrittenWhereItLies) {
  Ready r("%x: f32[2] = input()\n%y: f32[2] = aten::mul_.Tensor(%x, 2)\nreturn %y\n");
  Tensor whole = floats({4}, {1, 2, 3, 4});
  TensorMeta every_other = whole.meta();
  every_other.sizes = {2};
  every_other.strides = {2};
  r.run({whole.with_meta(every_other)});
  EXPECT_EQ(values_of(whole), (std::vector<float>{2, 2, 6, 4}));
}

TEST(Session, AWrongInputIsNamedAndNothingIsWritten) {
  Ready r(counting_program);
  r.state->set("n", floats({}, {5}));
  EXPECT_NE(r.error({floats({2}, {1, 2})}).find("x"), std::string::npos);
  EXPECT_NE(r.error({integers({3}, {1, 2, 3})}).find("x"), std::string::npos);
  EXPECT_NE(r.error({CallArg()}).find("input x: expected a tensor"), std::string::npos);
  EXPECT_EQ(r.error({}), "expected 1 inputs (x), got 0");
  EXPECT_EQ(values_of(*r.state->find("n")), std::vector<float>{5});
}

TEST(Session, AFailedAssertionLeavesStateAsItWas) {
  Ready r(R"(%b_n: f32[] = input()
%x: f32[] = input()
%n: f32[] = aten::add_.Tensor(%b_n, 1)
%ok: bool[] = aten::gt.Scalar(%x, 0)
aten::_assert_async.msg(%ok, 'x must be positive')
return %x
)");
  r.state->set("n", floats({}, {5}));
  EXPECT_NE(r.error({floats({}, {-1})}).find("x must be positive"), std::string::npos);
  EXPECT_EQ(values_of(*r.state->find("n")), std::vector<float>{5});
  EXPECT_EQ(r.error({floats({}, {1})}), "");
  EXPECT_EQ(values_of(*r.state->find("n")), std::vector<float>{6});
}

TEST(Session, AGuardOnTheCallersArgumentsIsCheckedBeforeAnything) {
  ExportedProgram program = program_of(
      "%b_n: f32[] = input()\n%x: f32[s0] = input()\n%s: f32[] = aten::sum(%x)\n"
      "%n: f32[] = aten::add_.Tensor(%b_n, %s)\n%y: f32[s0] = aten::neg(%x)\nreturn %y\n");
  FunctionalProgram functional = functionalize(program);
  functional.convention.guards.push_back({sym::ne(SymInt::symbol("s0"), 3), "x.size()[0] is s0", "x.size()[0] != 3"});
  Session session(prepare(functional));
  std::unique_ptr<State> state = state_of(program);
  state->set("n", floats({}, {5}));
  try {
    session.run(*state, {floats({3}, {1, 2, 3})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("under x.size()[0] != 3, where x.size()[0] is s0', but s0 is 3"),
              std::string::npos)
        << e.what();
  }
  EXPECT_EQ(values_of(*state->find("n")), std::vector<float>{5});
}

TEST(Session, StateOfAnotherProgramIsRefused) {
  Ready r(counting_program);
  State other;
  try {
    r.session.run(other, {floats({3}, {1, 2, 3})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the state has no w"), std::string::npos) << e.what();
  }
}

constexpr char drawing_program[] = R"(%x: f32[64] = input()
%r: f32[64] = aten::rand_like(%x)
return %r
)";

TEST(Session, RandomNumbersAdvanceWithEveryRunAndComeAgainFromTheSeed) {
  Ready r(drawing_program, 5), again(drawing_program, 5), other(drawing_program, 6);
  Tensor x = counting({64});
  auto first = values_of(tensor(r.run({x}).outputs[0])), second = values_of(tensor(r.run({x}).outputs[0]));
  EXPECT_NE(first, second);
  EXPECT_EQ(values_of(tensor(again.run({x}).outputs[0])), first);
  EXPECT_EQ(values_of(tensor(again.run({x}).outputs[0])), second);
  EXPECT_NE(values_of(tensor(other.run({x}).outputs[0])), first);
}

TEST(Session, NothingIsNormalizedWithoutElementsAndNoStatisticsAreWritten) {
  Ready r(R"(%b_mean: f32[3] = input()
%b_var: f32[3] = input()
%x: f32[0, 3, 4] = input()
%y: f32[0, 3, 4] = aten::batch_norm(%x, None, None, %b_mean, %b_var, True, 0.1, 1e-05, True)
return %y
)");
  RunResult result = r.run({counting({0, 3, 4})});
  EXPECT_EQ(tensor(result.outputs[0]).sizes(), (Sizes{0, 3, 4}));
  EXPECT_TRUE(result.buffers.empty());
}

// As many blocks as may be needed are counted where the sizes of the weights are not known; those beyond do nothing.
TEST(Session, GradientsOfWeightsOfAnySizesAreThoseOfTheirSizes) {
  auto gradient = [](std::string_view k) {
    ExportedProgram program = program_of(text("%x: f32[1, 3, 6, 6, 6] = input()\n%w: f32[3, 3, ", k, ", ", k, ", ", k,
                                              "] = input()\n%y: f32[1, 3, 7 - ", k, ", 7 - ", k, ", 7 - ", k,
                                              "] = aten::conv3d(%x, %w)\nreturn %y\n"));
    RunResult result = run_program(differentiate(program, 0, parse_wrt("all")),
                                   {counting({1, 3, 6, 6, 6}), counting({3, 3, 3, 3, 3}), counting({1, 3, 4, 4, 4})});
    return values_of(result.gradients.back().second);
  };
  EXPECT_EQ(gradient("s0"), gradient("3"));
}

TEST(Session, ATensorOfAnySizeIsResizedToNoMoreThanItHolds) {
  Ready r(
      "%x: f32[s0, s1] = input()\n%y: f32[s0, s1] = aten::clone(%x)\n%z: f32[2, 2] = aten::resize_(%y, [2, 2])\n"
      "%v: f32[2, 2] = aten::neg(%z)\nreturn %v\n");
  EXPECT_EQ(values_of(tensor(r.run({counting({2, 3})}).outputs[0])), (std::vector<float>{0, -1, -2, -3}));
  EXPECT_EQ(values_of(tensor(r.run({counting({4, 1})}).outputs[0])), (std::vector<float>{0, -1, -2, -3}));
  EXPECT_NE(r.error({counting({1, 3})}).find("what the further ones hold is undefined"), std::string::npos);
}

TEST(Session, ASizeThatIsOneByTheRangesOfItsSymbolsIsRepeated) {
  ExportedProgram program = program_of(R"(%x: f32[s0, 2] = input()
%row: f32[1, 2] = input()
%part: f32[1 - Max(0, 1 - s0), 2] = aten::slice.Tensor(%row, 0, Max(0, 1 - s0))
%y: f32[s0, 2] = aten::add.Tensor(%x, %part)
return %y
)");
  program.graph.body().shapes.constrain(sym::parse("s0"), {1, 64});
  RunResult result = run_program(program, {counting({3, 2}), floats({1, 2}, {10, 20})});
  EXPECT_EQ(values_of(tensor(result.outputs[0])), (std::vector<float>{10, 21, 12, 23, 14, 25}));
}

TEST(Session, LengthsOfSegmentsMayHaveAnySizesThatFit) {
  Ready r(R"(%x: f32[s0, s1] = input()
%n: i64[s2, s3] = input()
%y: f32[s2, s3] = aten::segment_reduce(%x, 'sum', lengths=%n, axis=1)
return %y
)");
  EXPECT_EQ(values_of(tensor(r.run({counting({2, 3}), integers({2, 2}, {1, 2, 3, 0})}).outputs[0])),
            (std::vector<float>{0, 3, 12, 0}));
  EXPECT_THROW(r.run({counting({2, 3}), integers({1, 2}, {1, 2})}), Error);
}

TEST(Session, SizesMayChangeFromRunToRun) {
  Ready r("%x: f32[s0, 2] = input()\n%y: f32[s0] = aten::sum.dim_IntList(%x, [1])\nreturn %y\n");
  for (int64_t n : {3, 1, 5, 3}) {
    Tensor y = tensor(r.run({counting({n, 2})}).outputs[0]);
    ASSERT_EQ(y.sizes(), Sizes{n});
    EXPECT_EQ(values_of(y).back(), static_cast<float>(4 * n - 3));
  }
}

}  // namespace
}  // namespace tenon
