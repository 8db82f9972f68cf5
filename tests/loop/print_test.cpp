#include <gtest/gtest.h>

#include "tests/loop/small_program.h"

namespace tenon::loop {
namespace {

TEST(Print, AProgramIsBuffersStepsAndResults) {
  SmallProgram s;
  EXPECT_EQ(to_text(s.program),
            "input x: f32[2, 3][3, 1]\n"
            "state w: f32[3][1]\n"
            "arena sum: f32[2, 3][3, 1]\n"
            "output out: f32[2, 2][2, 1]\n"
            "for [2, 3]:\n"
            "  sum[i0, i1] = (x[i0, i1] + w[i1])\n"
            "out[1, 2, 2][0, 2, 1] = gemm(sum[1, 2, 3][0, 3, 1], x[1, 3, 2][0, 1, 3], alpha 1.0, beta 0.0)\n"
            "return out\n");
}

TEST(Print, AReductionAndAStoreThatAddsSaySo) {
  SmallProgram s;
  Stage& stage = std::get<Stage>(s.program.steps[0]);
  stage.domain = {2};
  stage.reduce = {3};
  ExprId i = s.index(0), j = s.index(1);
  stage.accumulators.push_back({.combine = Combine::max, .value = s.load(s.x, {i, j})});
  ExprId result = s.program.arena.add({.fn = Fn::accumulated, .integer = 0});
  ExprId zero = constant(s.program.arena, int64_t{0}, Compute::i64).id;
  stage.stores = {{.to = s.sum, .at = {i, zero}, .value = result, .mode = Mode::add}};
  std::string made = to_text(s.program);
  EXPECT_NE(made.find("for [2] reduce [3]:\n  acc0: f32 = max x[i0, i1]\n  sum[i0, 0] += acc0\n"), std::string::npos)
      << made;
}

TEST(Print, ACallABindAndACheckAreOneLineEach) {
  SmallProgram s;
  SymInt u0 = SymInt::symbol("u0", {.nonnegative = true});
  s.program.steps = {Call{.name = "aten::nonzero", .args = {BufferRef{s.x}, 2}, .results = {BufferRef{s.out}}},
                     Bind{.symbol = u0, .from = s.out, .dim = 0},
                     Check{.condition = sym::le(u0, 4), .message = "at most four"}};
  std::string made = to_text(s.program);
  EXPECT_NE(made.find("out = call aten::nonzero(x, 2)\nbind u0 = size 0 of out\n"), std::string::npos) << made;
  EXPECT_NE(made.find("u0 <= 4"), std::string::npos) << made;
  EXPECT_NE(made.find("at most four"), std::string::npos) << made;
}

TEST(Print, BodiesOfControlStepsStandFurtherIn) {
  SmallProgram s;
  SymInt u0 = SymInt::symbol("u0"), u1 = SymInt::symbol("u1");
  Bind bind{.symbol = u1, .from = s.sum, .dim = -1};
  Control choice{.kind = Control::Kind::choose, .value = u0, .bodies = {}};
  choice.bodies = {{{s.program.steps[0]}, {0}}, {{bind}, {0}}};
  Control counted{.kind = Control::Kind::counted, .value = 3, .symbol = u0, .bodies = {{{choice}, {0}}}};
  Control repeat{.kind = Control::Kind::repeat, .value = u1, .bodies = {{{bind}, {0}}, {{counted}, {0}}}};
  s.program.steps = {repeat};
  std::string made = to_text(s.program);
  EXPECT_NE(made.find("repeat:\n"
                      "  bind u1 = sum[]\n"
                      "while u1:\n"
                      "  for u0 below 3:\n"
                      "    choose u0\n"
                      "    case 0:\n"
                      "      for [2, 3]:\n"
                      "        sum[i0, i1] = (x[i0, i1] + w[i1])\n"
                      "    case 1:\n"
                      "      bind u1 = sum[]\n"
                      "    end\n"
                      "  end\n"
                      "end\n"),
            std::string::npos)
      << made;
}

}  // namespace
}  // namespace tenon::loop
