#include "tenon/interp/eager.h"

#include <gtest/gtest.h>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

class Eager : public testing::Test {
 protected:
  Eager() { interp::install(); }
};

TEST_F(Eager, PointwiseOpsBroadcast) {
  Tensor x = counting({2, 3}), y = counting({3});
  EXPECT_EQ(values_of(x + y), (std::vector<float>{0, 2, 4, 3, 5, 7}));
  EXPECT_EQ(values_of(x * 2.0), (std::vector<float>{0, 2, 4, 6, 8, 10}));
}

TEST_F(Eager, ViewsShareStorageAndWritesGoThroughThem) {
  Tensor x = counting({2, 3});
  Tensor column = select(x, 1, 1);
  const Op& add_ = *registry().find("aten::add_.Tensor");
  call_op(add_, {column, 10, 1});
  EXPECT_EQ(values_of(x), (std::vector<float>{0, 11, 2, 3, 14, 5}));
}

TEST_F(Eager, AFormThatWritesWhatItsTwinWritesTooGivesOneResult) {
  Tensor x = floats({3}, {-1, 2, -3}), noise = floats({3}, {0, 0, 0});
  const Op& rrelu = *registry().find("aten::rrelu_with_noise_");
  CallResults results = interp::execute(rrelu, {x, noise, 0.5, 0.5, true, CallArg()});
  EXPECT_EQ(results.size(), 1u);
  EXPECT_EQ(values_of(noise), (std::vector<float>{0.5, 1, 0.5}));
  EXPECT_EQ(values_of(x), (std::vector<float>{-0.5, 2, -1.5}));
}

TEST_F(Eager, SumsOfAnyLengthAreRight) {
  for (int64_t n : {0, 1, 31, 32, 33, 1000, 1024, 1025, 5000}) {
    Tensor x = counting({3, n});
    Tensor s = sum(x, Sizes{1}, false);
    for (int64_t row = 0; row < 3; ++row) {
      double expected = 0;
      for (int64_t i = 0; i < n; ++i) expected += static_cast<double>(row * n + i);
      EXPECT_NEAR(values_of(s)[static_cast<size_t>(row)], expected, expected * 1e-6) << n;
    }
    Tensor t = sum(transpose(x, 0, 1), Sizes{0}, false);
    EXPECT_EQ(values_of(t), values_of(s)) << n;
  }
}

TEST_F(Eager, MatricesMultiply) {
  Tensor a = counting({2, 3}), b = counting({3, 2});
  EXPECT_EQ(values_of(mm(a, b)), (std::vector<float>{10, 13, 28, 40}));
  EXPECT_EQ(values_of(linear(a, transpose(b, 0, 1), counting({2}))), (std::vector<float>{10, 14, 28, 41}));
}

TEST_F(Eager, WrongArgumentsAreNamed) {
  try {
    mm(counting({2, 3}), counting({2, 3}));
    FAIL();
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "aten::mm: the inner sizes differ: f32[2, 3] and f32[2, 3]"); }
}

}  // namespace
}  // namespace tenon
