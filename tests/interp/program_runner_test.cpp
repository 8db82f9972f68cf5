#include "tenon/interp/program_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon::interp {
namespace {

struct Running {
  std::shared_ptr<const Executable> executable;
  ProgramRunner runner;
  explicit Running(std::string_view graph)
      : executable(prepare(functionalize(program_of(graph)))), runner(executable->program) {}
  std::vector<CallArg> run(std::vector<CallArg> inputs, bool absent_are_ones = false) {
    return runner.run(inputs, {.absent_are_ones = absent_are_ones});
  }
  Tensor one(std::vector<CallArg> inputs) { return *run(std::move(inputs))[0].get<Tensor>(); }
};

constexpr char row_sums[] = R"(%x: f32[s0, s1] = input()
%d: f32[s0, s1] = aten::mul.Tensor(%x, 2)
%e: f32[s0, s1] = aten::add.Tensor(%d, %x)
%y: f32[s0] = aten::sum.dim_IntList(%e, [1])
return %y
)";

void expect_row_sums(Running& r, int64_t rows, int64_t columns) {
  Tensor y = r.one({counting({rows, columns})});
  ASSERT_EQ(y.sizes(), Sizes{rows});
  for (int64_t i = 0; i < rows; ++i) {
    double expected = 0;
    for (int64_t j = 0; j < columns; ++j) expected += 3.0 * static_cast<double>(i * columns + j);
    EXPECT_EQ(values_of(y)[static_cast<size_t>(i)], static_cast<float>(expected)) << rows << " x " << columns;
  }
}

TEST(ProgramRunner, SizesChangeFromRunToRun) {
  Running r(row_sums);
  for (auto [rows, columns] : {std::pair{2, 3}, {5, 1}, {1, 7}, {2, 3}, {0, 4}, {3, 0}, {4, 4}})
    expect_row_sums(r, rows, columns);
}

TEST(ProgramRunner, MoreSizesThanAreKeptComeOutRightAgain) {
  Running r(row_sums);
  for (int round = 0; round < 2; ++round)
    for (int64_t n = 1; n <= 40; ++n) expect_row_sums(r, n, 3);
}

TEST(ProgramRunner, LargerSizesAfterSmallerOnesGetMemoryEnough) {
  Running r(row_sums);
  expect_row_sums(r, 1, 1);
  expect_row_sums(r, 60, 50);
  expect_row_sums(r, 2, 2);
}

// Counted out by hand beside every window that reaches over an edge: rows shorter and longer than a block, and batches
// whose blocks begin in the middle of a row.
TEST(ProgramRunner, WindowsOverTheEdgeOfAnImageTakeWhatLiesInside) {
  Running pool(R"(%x: f32[s0, s1, s2] = input()
%y: f32[s0, (s1 + 1)//2, (s2 + 1)//2] = aten::max_pool2d(%x, [3, 3], [2, 2], [1, 1])
return %y
)");
  for (auto [n, h, w] : {std::tuple{1, 1, 1}, {2, 5, 4}, {3, 7, 300}, {1, 2, 2001}, {40, 9, 9}}) {
    Tensor y = pool.one({counting({n, h, w})});
    ASSERT_EQ(y.sizes(), (Sizes{n, (h + 1) / 2, (w + 1) / 2}));
    std::vector<float> got = values_of(y);
    size_t next = 0;
    for (int b = 0; b < n; ++b)
      for (int i = 0; i < h; i += 2)
        for (int j = 0; j < w; j += 2) {  // counting: the greatest is the last one inside
          int last_row = std::min(i + 1, h - 1), last_column = std::min(j + 1, w - 1);
          ASSERT_EQ(got[next++], static_cast<float>((b * h + last_row) * w + last_column)) << n << " " << h << " " << w;
        }
  }
}

TEST(ProgramRunner, ASizeThatDataTellsIsBoundAnewInEveryRun) {
  Running r(
      "%x: f32[4] = input()\n%i: i64[u0, 1][1, u0] = aten::nonzero(%x)\n%y: i64[u0, 1][1, u0] = aten::neg(%i)\nreturn "
      "%y\n");
  for (auto x :
       {floats({4}, {1, 0, 1, 0}), floats({4}, {1, 1, 1, 1}), floats({4}, {0, 0, 0, 0}), floats({4}, {0, 0, 0, 1})}) {
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < 4; ++i)
      if (x.data<float>()[i] != 0) expected.push_back(-i);
    Tensor y = contiguous_copy(r.one({x}));
    ASSERT_EQ(y.sizes(), (Sizes{static_cast<int64_t>(expected.size()), 1}));
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y.data<int64_t>()[i], expected[i]);
  }
}

TEST(ProgramRunner, AnAbsentTensorIsOnesWhereThatIsAskedFor) {
  Running r("%x: f32[s0] = input()\n%t: f32[s0] = input()\n%y: f32[s0] = aten::mul.Tensor(%x, %t)\nreturn %y\n");
  EXPECT_EQ(values_of(*r.run({counting({3}), CallArg()}, true)[0].get<Tensor>()), (std::vector<float>{0, 1, 2}));
  EXPECT_THROW(r.run({counting({3}), CallArg()}), Error);
}

TEST(ProgramRunner, AnAbsentTensorOfASizeThatDataTellsIsOnesToo) {
  Running r(
      "%x: f32[4] = input()\n%t: i64[u0, 1][1, u0] = input()\n%i: i64[u0, 1][1, u0] = aten::nonzero(%x)\n"
      "%y: i64[u0, 1][1, u0] = aten::add.Tensor(%i, %t)\nreturn %y\n");
  Tensor y = contiguous_copy(*r.run({floats({4}, {0, 1, 0, 1}), CallArg()}, true)[0].get<Tensor>());
  ASSERT_EQ(y.sizes(), (Sizes{2, 1}));
  EXPECT_EQ(y.data<int64_t>()[0], 2);
  EXPECT_EQ(y.data<int64_t>()[1], 4);
}

TEST(ProgramRunner, AnInputMayLieInAnyStrides) {
  Running r("%x: f32[2, 3] = input()\n%v: f32[6] = aten::view(%x, [6])\n%y: f32[6] = aten::neg(%v)\nreturn %y\n");
  Tensor columns = counting({3, 2});
  TensorMeta meta = columns.meta();
  meta.sizes = {2, 3};
  meta.strides = {1, 2};
  EXPECT_EQ(values_of(r.one({columns.with_meta(meta)})), (std::vector<float>{0, -2, -4, -1, -3, -5}));
}

TEST(ProgramRunner, AnInputMayBeginWithinItsStorage) {
  Running r("%x: f32[2] = input()\n%y: f32[2] = aten::neg(%x)\nreturn %y\n");
  Tensor whole = counting({5});
  TensorMeta meta = whole.meta();
  meta.sizes = {2};
  meta.offset = 3;
  EXPECT_EQ(values_of(r.one({whole.with_meta(meta)})), (std::vector<float>{-3, -4}));
}

TEST(ProgramRunner, ManyTemporariesInOneArenaKeepTheirContents) {
  std::string graph = "%x: f32[8] = input()\n";
  for (int i = 0; i < 20; ++i)
    graph += text("%a", i, ": f32[8] = aten::add.Tensor(%", i == 0 ? std::string("x") : text("a", i - 1), ", 1)\n");
  std::string total = "%a19";
  for (int i = 0; i < 19; ++i) {  // each of them is read again at the end
    graph += text("%t", i, ": f32[8] = aten::add.Tensor(", total, ", %a", i, ")\n");
    total = text("%t", i);
  }
  Running r(graph + "return " + total + "\n");
  std::vector<float> y = values_of(r.one({counting({8})}));
  for (size_t k = 0; k < 8; ++k) EXPECT_EQ(y[k], 20.0f * static_cast<float>(k) + 210.0f);
}

TEST(ProgramRunner, AFailedCheckNamesItsMessage) {
  Running r("%x: bool[] = input()\naten::_assert_async.msg(%x, 'it must hold')\nreturn %x\n");
  Tensor no = Tensor::empty(DType::boolean, {});
  *no.mutable_data<bool>() = false;
  try {
    r.run({no});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("an assertion of the program failed: 'it must hold'"), std::string::npos)
        << e.what();
  }
}

TEST(ProgramRunner, ANumberAmongTheResultsIsComputedFromSizes) {
  Running r("%x: f32[s0] = input()\n%y: f32[s0] = aten::exp(%x)\nreturn %y\nreturn 2*s0\n");
  EXPECT_EQ(*r.run({counting({5})})[1].get<SymInt>(), SymInt(10));
}

}  // namespace
}  // namespace tenon::interp
