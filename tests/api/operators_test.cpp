#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cmath>

extern const std::size_t count_of_operators;  // calls.cpp, made by the build, compiles a call of each

namespace {

using tenon::Tensor;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const tenon::Error& e) {
    EXPECT_EQ(e.kind(), tenon::ErrorKind::call);
    return e.what();
  }
  return "no error";
}

std::vector<float> numbers(const Tensor& t) { return t.vector<float>(); }

TEST(Operators, AreThereUnderTheirNames) { EXPECT_GT(count_of_operators, 1000u); }

TEST(Operators, MeetThoseOfTheStandardLibraryWithoutQuarrel) {
  using namespace tenon;  // NOLINT: that this is well is what is tested
  using namespace std;    // NOLINT
  Tensor x = tensor({0.0f, 1.0f});
  EXPECT_EQ(exp(0.0), 1.0);
  EXPECT_EQ(exp(x).span<float>()[0], 1.0f);
  EXPECT_EQ(max(2, 3), 3);
  EXPECT_EQ(max(x).item<float>(), 1.0f);
  EXPECT_EQ(abs(-2), 2);
  EXPECT_EQ(numbers(abs(-x)), (vector<float>{0, 1}));
  EXPECT_EQ(numbers(min(x, x)), (vector<float>{0, 1}));
}

TEST(Operators, AreFunctionsAndMethods) {
  Tensor x = tenon::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(tenon::sum(x).item<float>(), 10.0f);
  EXPECT_EQ(numbers(x.sum(1)), (std::vector<float>{3, 7}));
  EXPECT_EQ(numbers(x.sum({0, 1}, true)), (std::vector<float>{10}));
  EXPECT_EQ(numbers(x.transpose(0, 1).contiguous()), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(numbers(x.view({4})), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(numbers(x.matmul(x)), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(numbers(tenon::cat({x, x}, 1)[0]), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(x.item_size(), 4u);
  EXPECT_EQ(x.size(-1), 2);
  EXPECT_EQ(x.to(tenon::i64).dtype(), tenon::i64);
  EXPECT_EQ(x[1][0].item<float>(), 3.0f);
  EXPECT_EQ(x[1][0].item().real(), 3.0);
  EXPECT_TRUE(tenon::equal(x, x.clone()));
  auto [values, indices] = x.max(1);
  EXPECT_EQ(numbers(values), (std::vector<float>{2, 4}));
  EXPECT_EQ(indices.vector<int64_t>(), (std::vector<int64_t>{1, 1}));
  std::vector<Tensor> rows = x.split(1);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(numbers(rows[1]), (std::vector<float>{3, 4}));
  Tensor image = tenon::ones({1, 1, 3, 3}), kernel = tenon::ones({1, 1, 2, 2});
  EXPECT_EQ(tenon::conv2d(image, kernel, {}, 1, {1, 0}).sizes()[2], 4);
  EXPECT_EQ(tenon::conv2d(image, kernel, {}, 1, "same").sizes()[2], 3);
}

TEST(Operators, StdTakesADimensionForOneAndATruthForTheCorrection) {
  Tensor x = tenon::tensor({{1.0f, 3.0f}, {3.0f, 7.0f}});
  EXPECT_EQ(tenon::std(x, 1).dim(), 1);
  EXPECT_EQ(tenon::std(x, true).dim(), 0);
  EXPECT_FLOAT_EQ(tenon::std(x, 1, 0).span<float>()[0], 1.0f);
}

TEST(Operators, OfCppComputeElementByElement) {
  Tensor x = tenon::tensor({1.0f, 2.0f, 4.0f}), y = tenon::tensor({2.0f, 2.0f, 2.0f});
  EXPECT_EQ(numbers(x + y), (std::vector<float>{3, 4, 6}));
  EXPECT_EQ(numbers(1 - x), (std::vector<float>{0, -1, -3}));
  EXPECT_EQ(numbers(2 * x / y), (std::vector<float>{1, 2, 4}));
  EXPECT_EQ(numbers(4.0 / x), (std::vector<float>{4, 2, 1}));
  EXPECT_EQ(numbers(-x), (std::vector<float>{-1, -2, -4}));
  EXPECT_EQ((x < y).vector<bool>(), (std::vector<bool>{true, false, false}));
  EXPECT_EQ((x == y).vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ((3 > x).vector<bool>(), (std::vector<bool>{true, true, false}));
  EXPECT_EQ((~(x < y) & (x < 4)).vector<bool>(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ((tenon::tensor({7, 8}) % 4).vector<int32_t>(), (std::vector<int32_t>{3, 0}));
}

TEST(Operators, ThatEndInAnUnderscoreWriteTheTensorAndItsViews) {
  Tensor x = tenon::zeros({2, 3});
  Tensor row = x[1];
  row += 2;
  row.mul_(3);
  EXPECT_EQ(numbers(x), (std::vector<float>{0, 0, 0, 6, 6, 6}));
  x.copy_(tenon::tensor({1.0f, 2.0f, 3.0f}));
  EXPECT_EQ(numbers(row), (std::vector<float>{1, 2, 3}));
  tenon::fill_(x, 5);
  EXPECT_EQ(row.sum().item<float>(), 15.0f);
  Tensor self = x.relu_();
  EXPECT_EQ(self.raw_data(), x.raw_data());
}

TEST(Operators, DrawFromASeedThatCanBeSet) {
  tenon::manual_seed(7);
  Tensor a = tenon::randn({100}), b = tenon::rand({100});
  tenon::manual_seed(7);
  EXPECT_EQ(numbers(tenon::randn({100})), numbers(a));
  EXPECT_EQ(numbers(tenon::rand({100})), numbers(b));
  EXPECT_NE(numbers(tenon::rand({100})), numbers(b));
}

TEST(Operators, AWrongCallNamesOperatorAndArgument) {
  Tensor x = tenon::zeros({2, 3});
  EXPECT_NE(error_of([&] { tenon::matmul(x, x); }).find("aten::m"), std::string::npos);
  EXPECT_EQ(error_of([&] { tenon::exp(Tensor()); }), "aten::exp: argument self: expected Tensor, got None");
  EXPECT_NE(error_of([&] { tenon::cat({x, Tensor()}); }).find("a list with None in it"), std::string::npos);
  EXPECT_NE(error_of([&] { x.view({5}); }).find("aten::view"), std::string::npos);
  EXPECT_NE(error_of([&] { x[2]; }).find("aten::select"), std::string::npos);
  EXPECT_NE(error_of([&] { x.item(); }), "no error");
}

}  // namespace
