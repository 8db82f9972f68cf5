// The operators of docs/adding_an_op.md do what the page says.
#include <gtest/gtest.h>

#include "tenon/interp/eager.h"
#include "tenon/rules/registry.h"

namespace tenon {

void register_examples(Registry& ops);

namespace {

class Docs : public testing::Test {
 protected:
  Registry ops;
  Docs() {
    registry();
    register_examples(ops);
    interp::install();
  }
  const Op& op(const char* name) { return *ops.find(name); }
  std::vector<float> run(const char* name, CallArgs args) {
    Tensor t = contiguous_copy(*interp::execute(op(name), std::move(args))[0].get<Tensor>());
    return std::vector<float>(t.data<float>(), t.data<float>() + t.numel().as_int());
  }
  static Tensor floats(Sizes sizes) {
    Tensor t = Tensor::empty(DType::f32, std::move(sizes));
    for (int64_t i = 0; i < t.numel().as_int(); ++i) t.mutable_data<float>()[i] = static_cast<float>(i + 1);
    return t;
  }
};

TEST_F(Docs, APointwiseBlockComputes) { EXPECT_EQ(run("docs::cube", {floats({3})}), (std::vector<float>{1, 8, 27})); }

TEST_F(Docs, ItsInPlaceFormIsDerived) {
  Tensor x = floats({3});
  interp::execute(op("docs::cube_"), {x});
  EXPECT_EQ(x.data<float>()[2], 27);
}

TEST_F(Docs, AnOverloadSharesTheBlock) {
  EXPECT_EQ(run("docs::blend.Tensor", {floats({2}), floats({2}), 0.5}), (std::vector<float>{1, 2}));
  EXPECT_EQ(run("docs::blend.Scalar", {floats({2}), 3, 0.5}), (std::vector<float>{2, 2.5}));
}

TEST_F(Docs, AReductionChecksAndSums) {
  EXPECT_EQ(run("docs::row_sum", {floats({2, 2})}), (std::vector<float>{3, 7}));
  EXPECT_THROW(run("docs::row_sum", {floats({2})}), Error);
}

TEST_F(Docs, AHostFunctionAndItsStagesAgree) {
  EXPECT_EQ(run("docs::first_half", {floats({5}), true}), (std::vector<float>{1, 2}));
  EXPECT_EQ(run("docs::first_half", {floats({5}), false}), (std::vector<float>{1, 2}));
}

TEST_F(Docs, AnAssertionIsChecked) {
  EXPECT_NO_THROW(interp::execute(op("docs::at_most"), {3, 4}));
  EXPECT_THROW(interp::execute(op("docs::at_most"), {5, 4}), Error);
}

}  // namespace
}  // namespace tenon
