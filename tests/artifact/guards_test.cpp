// What rules rely on and what data must tell: checked by the interpreter and by compiled programs alike.
#include <gtest/gtest.h>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

/// A program by both ways of running it.
class Both {
 public:
  explicit Both(std::string_view graph)
      : program_(program_of(graph)),
        walk_(program_),
        state_(state_of(program_)),
        session_(walk_.executable()),
        compiled_(CompiledProgram::open(bytes(), {})),
        compiled_state_(compiled_),
        compiled_session_(compiled_) {}

  /// The first result, the same from both.
  std::vector<float> run(const std::vector<CallArg>& inputs) {
    std::vector<float> one = values_of(session_.run(*state_, inputs).outputs[0].as<Tensor>());
    EXPECT_EQ(values_of(compiled_session_.run(compiled_state_, inputs).outputs[0].as<Tensor>()), one);
    return one;
  }
  /// Both refuse with these words.
  void refuse(const std::vector<CallArg>& inputs, const std::vector<std::string>& words) {
    for (const std::string& said : {failure([&] { session_.run(*state_, inputs); }),
                                    failure([&] { compiled_session_.run(compiled_state_, inputs); })})
      for (const std::string& word : words) EXPECT_NE(said.find(word), std::string::npos) << word << " in: " << said;
  }
  /// The conditions that stand in front of everything.
  std::vector<loop::Check> guards() {
    std::vector<loop::Check> out;
    for (const loop::Step& step : walk_.executable()->program.steps) {
      auto* check = std::get_if<loop::Check>(&step);
      if (!check) break;
      out.push_back(*check);
    }
    return out;
  }

 private:
  std::vector<std::byte> bytes() {
    Compilable made = prepare_to_compile(walk_);
    return compile_program(*made.executable, *made.state, {});
  }
  static std::string failure(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) { return e.what(); }
    return "";
  }

  ExportedProgram program_;
  Walk walk_;
  std::unique_ptr<State> state_;
  Session session_;
  std::shared_ptr<const CompiledProgram> compiled_;
  CompiledState compiled_state_;
  CompiledSession compiled_session_;
};

using Floats = std::vector<float>;

Tensor flag(bool value) {
  Tensor t = Tensor::empty(DType::boolean, {});
  *t.mutable_data<uint8_t>() = value;
  return t;
}

TEST(Guards, TwoSymbolsThatBroadcastMustBeEqual) {
  Both both("%x: f32[s0] = input()\n%y: f32[s1] = input()\n%z: f32[s0] = aten::add.Tensor(%x, %y)\nreturn %z\n");
  ASSERT_EQ(both.guards().size(), 1u);
  EXPECT_NE(both.guards()[0].message.find("do not broadcast"), std::string::npos);
  EXPECT_EQ(both.run({counting({2}), counting({2})}), (Floats{0, 2}));
  both.refuse({counting({2}), counting({3})}, {"aten::add.Tensor relies on", "do not broadcast", "s0 is 2", "s1 is 3"});
}

TEST(Guards, ASymbolBesideANumberMustBeThatNumber) {
  Both both("%x: f32[s0] = input()\n%y: f32[3] = input()\n%z: f32[3] = aten::mul.Tensor(%x, %y)\nreturn %z\n");
  EXPECT_EQ(both.run({counting({3}), counting({3})}), (Floats{0, 1, 4}));
  both.refuse({counting({4}), counting({3})}, {"do not broadcast", "s0 is 4"});
}

TEST(Guards, AReshapeDividesWithoutRest) {
  Both both(
      "%x: f32[s0] = input()\n%y: f32[(s0//2), 2] = aten::view(%x, [-1, 2])\n"
      "%z: f32[(s0//2)] = aten::sum.dim_IntList(%y, [1])\nreturn %z\n");
  EXPECT_EQ(both.run({counting({4})}), (Floats{1, 5}));
  both.refuse({counting({5})}, {"aten::view relies on", "do not fit", "s0 is 5"});
}

TEST(Guards, InnerSizesOfAProductMustBeEqual) {
  Both both("%x: f32[2, s0] = input()\n%y: f32[s1, 2] = input()\n%z: f32[2, 2] = aten::mm(%x, %y)\nreturn %z\n");
  EXPECT_EQ(both.run({counting({2, 1}), counting({1, 2})}), (Floats{0, 0, 0, 1}));
  both.refuse({counting({2, 2}), counting({3, 2})}, {"the inner sizes differ", "s0 is 2", "s1 is 3"});
}

TEST(Guards, WhatIsProvedIsNoGuard) {
  Both both(
      "%x: f32[s0, 4] = input()\n%y: f32[s0, 4] = aten::add.Tensor(%x, %x)\n"
      "%z: f32[s0, 2, 2] = aten::view(%y, [s0, 2, 2])\nreturn %z\n");
  EXPECT_TRUE(both.guards().empty());
}

TEST(Guards, SizesThatDataTellAreCheckedWhereTheyAreUsed) {
  Both both(
      "%x: f32[4] = input()\n%y: f32[4] = input()\n%m: bool[4] = aten::gt.Scalar(%x, 0)\n"
      "%a: f32[u0] = aten::masked_select(%x, %m)\n%n: bool[4] = aten::gt.Scalar(%y, 0)\n"
      "%b: f32[u1] = aten::masked_select(%y, %n)\n%z: f32[u0] = aten::mul.Tensor(%a, %b)\nreturn %z\n");
  EXPECT_EQ(both.run({floats({4}, {1, -1, 2, -1}), floats({4}, {-1, 3, -1, 4})}), (Floats{3, 8}));
  both.refuse({floats({4}, {1, -1, 2, -1}), floats({4}, {-1, 3, 3, 4})}, {"do not broadcast", "u0 is 2", "u1 is 3"});
}

TEST(Guards, ATruthValueOutOfATensorIsANumber) {
  Both both(
      "%x: f32[2] = input()\n%f: bool[] = input()\n%t: bool Eq(u0, 1) = aten::item(%f)\n"
      "%y: f32[2] = aten::mul.Scalar(%x, Piecewise((2, Eq(u0, 1)), (3, True)))\nreturn %y\n");
  EXPECT_EQ(both.run({counting({2}), flag(true)}), (Floats{0, 2}));
  EXPECT_EQ(both.run({counting({2}), flag(false)}), (Floats{0, 3}));
}

TEST(Guards, ATruthValueThatWasAssertedIsChecked) {
  Both both(
      "%x: f32[2] = input()\n%f: bool[] = input()\n%t: bool True = aten::item(%f)\n"
      "%y: f32[2] = aten::neg(%x)\nreturn %y\n");
  EXPECT_EQ(both.run({counting({2}), flag(true)}), (Floats{0, -1}));
  both.refuse({counting({2}), flag(false)}, {"the program was exported under", "is 0"});
}

TEST(Guards, RowsWithoutElementsAreNotWalkedThrough) {
  Both both(
      "%x: f32[0] = input()\n%y: f32[1099511627776, 1000000, 0] = aten::view(%x, [1099511627776, 1000000, 0])\n"
      "%z: f32[1099511627776, 1000000, 0] = aten::neg(%y)\nreturn %z\n");
  EXPECT_EQ(both.run({counting({0})}), Floats{});
}

TEST(Guards, AHalfThatIsAssertedIsReadAsANumber) {
  Both both(
      "%x: f32[2] = input()\n%h: bf16[] = input()\naten::_assert_async.msg(%h, 'expected something')\n"
      "%y: f32[2] = aten::neg(%x)\nreturn %y\n");
  Tensor half = Tensor::empty(DType::bf16, {});
  *half.mutable_data<uint16_t>() = 0x3f80;
  EXPECT_EQ(both.run({counting({2}), half}), (Floats{0, -1}));
  *half.mutable_data<uint16_t>() = 0;
  both.refuse({counting({2}), half}, {"expected something"});
}

TEST(Guards, ANumberThatWasAssertedToBeAConstantIsChecked) {
  Both both(
      "%x: f32[2] = input()\n%i: i64[] = input()\n%n: int 3 = aten::item(%i)\n%y: f32[2] = aten::neg(%x)\nreturn %y\n");
  EXPECT_EQ(both.run({counting({2}), integers({}, {3})}), (Floats{0, -1}));
  both.refuse({counting({2}), integers({}, {4})}, {"the program was exported under", "== 3", "is 4"});
}

TEST(Guards, NumbersThatWereAssertedEqualAreCompared) {
  Both both(
      "%x: f32[s0] = input()\n%i: i64[] = input()\n%j: i64[] = input()\n%n: int u0 = aten::item(%i)\n"
      "%m: int u0 = aten::item(%j)\n%a: f32[u0] = aten::slice.Tensor(%x, 0, 0, u0)\nreturn %a\n");
  EXPECT_EQ(both.run({counting({4}), integers({}, {2}), integers({}, {2})}), (Floats{0, 1}));
  both.refuse({counting({4}), integers({}, {2}), integers({}, {3})}, {"== u0", "u0 is 2", "is 3"});
}

TEST(Guards, ANumberThatWasAssertedToBeASizeIsCompared) {
  Both both(
      "%x: f32[s0] = input()\n%i: i64[] = input()\n%n: int s0 = aten::item(%i)\n%y: f32[s0] = aten::neg(%x)\nreturn "
      "%y\n");
  EXPECT_EQ(both.run({counting({2}), integers({}, {2})}), (Floats{0, -1}));
  both.refuse({counting({2}), integers({}, {3})}, {"== s0", "s0 is 2", "is 3"});
}

TEST(Guards, ASizeNamedByAFileStandsForWhatTheArgumentsTell) {
  Both both(
      "%x: f32[5] = input()\n%i: i64[] = input()\n%n: int u0 = aten::item(%i)\n"
      "%a: f32[u1] = aten::slice.Tensor(%x, 0, 0, u0)\n%y: f32[u1] = aten::neg(%a)\nreturn %y\n");
  EXPECT_EQ(both.run({counting({5}), integers({}, {2})}), (Floats{0, -1}));
  EXPECT_EQ(both.run({counting({5}), integers({}, {-3})}), (Floats{0, -1}));
  EXPECT_EQ(both.run({counting({5}), integers({}, {9})}), (Floats{0, -1, -2, -3, -4}));
}

TEST(Guards, PiecesAtPlacesInATensor) {
  Both both(
      "%x: f32[5] = input()\n%i: i64[2] = input()\n"
      "[%a: f32[u0], %b: f32[u1], %c: f32[u2]] = aten::tensor_split.tensor_indices_or_sections(%x, %i)\n"
      "%y: f32[u1] = aten::neg(%b)\nreturn %y\n");
  EXPECT_EQ(both.run({counting({5}), integers({2}, {1, 3})}), (Floats{-1, -2}));
  EXPECT_EQ(both.run({counting({5}), integers({2}, {2, -1})}), (Floats{-2, -3}));
  EXPECT_EQ(both.run({counting({5}), integers({2}, {4, 2})}), Floats{});
}

TEST(Guards, AViewThatCutsASizeInParts) {
  Both both(
      "%x: f32[s0, s1] = input()\n%t: f32[s1, s0][1, s1] = aten::t(%x)\n"
      "%y: f32[(s1//2), 2, s0][2, 1, s1] = aten::view(%t, [(s1//2), 2, s0])\n"
      "%z: f32[(s1//2), s0] = aten::sum.dim_IntList(%y, [1])\nreturn %z\n");
  EXPECT_EQ(both.run({counting({2, 4})}), (Floats{1, 9, 5, 13}));
  both.refuse({counting({2, 3})}, {"do not fit", "s1 is 3"});
}

TEST(Guards, AnIndexThatIsOutOfRangeIsNamed) {
  Both rows("%w: f32[5, 2] = input()\n%i: i64[3] = input()\n%y: f32[3, 2] = aten::embedding(%w, %i)\nreturn %y\n");
  EXPECT_EQ(rows.run({counting({5, 2}), integers({3}, {0, 4, 1})}), (Floats{0, 1, 8, 9, 2, 3}));
  rows.refuse({counting({5, 2}), integers({3}, {0, 5, 9})}, {"aten::embedding", "index 5", "out of range"});
  rows.refuse({counting({5, 2}), integers({3}, {0, 4, -1})}, {"aten::embedding", "index -1", "out of range"});
  Both from_the_end(
      "%x: f32[s0] = input()\n%i: i64[2] = input()\n%y: f32[2] = aten::index.Tensor(%x, [%i])\nreturn %y\n");
  EXPECT_EQ(from_the_end.run({counting({4}), integers({2}, {-4, 3})}), (Floats{0, 3}));
  from_the_end.refuse({counting({4}), integers({2}, {-4, 4})}, {"aten::index", "index 4"});
  Both written(
      "%x: f32[4] = input()\n%i: i64[2] = input()\n%y: f32[4] = aten::index_fill.int_Scalar(%x, 0, %i, 7.0)\nreturn "
      "%y\n");
  written.refuse({counting({4}), integers({2}, {3, 6})}, {"aten::index_fill", "index 6"});
}

// As PyTorch spells them, and with the same bits.
TEST(Guards, RootsOfSizesAreNumbers) {
  Both both(R"(%x: f32[s0] = input()
%y: f32[s0] = aten::mul.Tensor(%x, OpaqueUnaryFn_sqrt(ToFloat(s0)))
%z: f32[s0] = aten::add.Tensor(%y, FloatPow(ToFloat(s0), 0.5))
return %z
)");
  EXPECT_EQ(both.run({floats({4}, {0, 1, 2, 3})}), (std::vector<float>{2, 4, 6, 8}));
  both.run({floats({3}, {0, 1, 2})});
}

}  // namespace
}  // namespace tenon::artifact
