// Gradient operators come in files like any other: operands whose dimensions do not belong together are refused in a
// sentence, before anything is indexed by them.
#include <gtest/gtest.h>

#include <cstring>

#include "tenon/interp/eager.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

struct Call {
  const char* op;
  std::vector<Given> args;
};

Tensor zeros_of(DType dtype, const Sizes& sizes) {
  Tensor t = Tensor::empty(dtype, sizes);
  std::memset(t.mutable_data<char>(), 0, static_cast<size_t>(t.numel().as_int()) * item_size(dtype));
  return t;
}
Tensor reals(Sizes sizes) { return zeros_of(DType::f32, sizes); }
Tensor indices(Sizes sizes) { return zeros_of(DType::i64, sizes); }

std::vector<Call> gradients() {
  std::vector<bool> three = {true, true, true}, two = {true, true};
  Sizes twos = {2, 2}, ones = {1, 1}, zeros = {0, 0};
  return {
      {"aten::max_pool2d_with_indices_backward",
       {reals({1, 2, 2, 2}), reals({1, 2, 4, 4}), twos, twos, zeros, ones, false, indices({1, 2, 2, 2})}},
      {"aten::max_pool3d_with_indices_backward",
       {reals({1, 2, 2, 2, 2}), reals({1, 2, 4, 4, 4}), Sizes{2, 2, 2}, Sizes{2, 2, 2}, Sizes{0, 0, 0}, Sizes{1, 1, 1},
        false, indices({1, 2, 2, 2, 2})}},
      {"aten::adaptive_max_pool2d_backward", {reals({1, 2, 2, 2}), reals({1, 2, 4, 4}), indices({1, 2, 2, 2})}},
      {"aten::adaptive_max_pool3d_backward",
       {reals({1, 2, 2, 2, 2}), reals({1, 2, 4, 4, 4}), indices({1, 2, 2, 2, 2})}},
      {"aten::_adaptive_avg_pool2d_backward", {reals({1, 2, 2, 2}), reals({1, 2, 4, 4})}},
      {"aten::_adaptive_avg_pool3d_backward", {reals({1, 2, 2, 2, 2}), reals({1, 2, 4, 4, 4})}},
      {"aten::avg_pool2d_backward",
       {reals({1, 2, 2, 2}), reals({1, 2, 4, 4}), twos, twos, zeros, false, true, CallArg()}},
      {"aten::avg_pool3d_backward",
       {reals({1, 2, 2, 2, 2}), reals({1, 2, 4, 4, 4}), Sizes{2, 2, 2}, Sizes{2, 2, 2}, Sizes{0, 0, 0}, false, true,
        CallArg()}},
      {"aten::fractional_max_pool2d_backward",
       {reals({1, 2, 2, 2}), reals({1, 2, 4, 4}), twos, twos, indices({1, 2, 2, 2})}},
      {"aten::fractional_max_pool3d_backward",
       {reals({1, 2, 2, 2, 2}), reals({1, 2, 4, 4, 4}), Sizes{2, 2, 2}, Sizes{2, 2, 2}, indices({1, 2, 2, 2, 2})}},
      {"aten::upsample_nearest2d_backward", {reals({1, 2, 4, 4}), Sizes{4, 4}, Sizes{1, 2, 2, 2}}},
      {"aten::_upsample_bicubic2d_aa_backward", {reals({1, 2, 4, 4}), Sizes{4, 4}, Sizes{1, 2, 2, 2}, false}},
      {"aten::grid_sampler_2d_backward",
       {reals({1, 2, 3, 3}), reals({1, 2, 4, 4}), reals({1, 3, 3, 2}), 0, 0, false, two}},
      {"aten::grid_sampler_3d_backward",
       {reals({1, 2, 3, 3, 3}), reals({1, 2, 4, 4, 4}), reals({1, 3, 3, 3, 3}), 0, 0, false, two}},
      {"aten::convolution_backward",
       {reals({1, 4, 4, 4}), reals({1, 2, 4, 4}), reals({4, 2, 1, 1}), Sizes{4}, ones, zeros, ones, false, zeros, 1,
        three}},
      {"aten::native_batch_norm_backward",
       {reals({2, 3, 4}), reals({2, 3, 4}), reals({3}), none, none, reals({3}), reals({3}), true, 1e-5, three}},
      {"aten::native_layer_norm_backward",
       {reals({2, 3, 4}), reals({2, 3, 4}), Sizes{4}, reals({2, 3, 1}), reals({2, 3, 1}), reals({4}), reals({4}),
        three}},
      {"aten::native_group_norm_backward",
       {reals({2, 4, 3}), reals({2, 4, 3}), reals({2, 2}), reals({2, 2}), reals({4}), 2, 4, 3, 2, three}},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
       {reals({1, 2, 3, 4}), reals({1, 2, 3, 4}), reals({1, 2, 3, 4}), reals({1, 2, 3, 4}), reals({1, 2, 3, 4}),
        reals({1, 2, 3}), 0.0, false}},
      {"aten::nll_loss_backward", {reals({}), reals({2, 3}), indices({2}), reals({3}), 1, -100, reals({})}},
      {"aten::nll_loss2d_backward",
       {reals({2, 4, 5}), reals({2, 3, 4, 5}), indices({2, 4, 5}), reals({3}), 0, -100, reals({})}},
      {"aten::mse_loss_backward", {reals({2, 3}), reals({2, 3}), reals({2, 3}), 0}},
      {"aten::smooth_l1_loss_backward", {reals({2, 3}), reals({2, 3}), reals({2, 3}), 0, 1.0}},
      {"aten::huber_loss_backward", {reals({2, 3}), reals({2, 3}), reals({2, 3}), 0, 1.0}},
      {"aten::binary_cross_entropy_backward", {reals({2, 3}), reals({2, 3}), reals({2, 3}), reals({2, 3}), 0}},
      {"aten::multi_margin_loss_backward", {reals({2}), reals({2, 3}), indices({2}), 1, 1, reals({3}), 0}},
      {"aten::multilabel_margin_loss_backward", {reals({2}), reals({2, 3}), indices({2, 3}), 0, reals({2, 3})}},
  };
}

class GradientRanks : public testing::TestWithParam<size_t> {
 protected:
  GradientRanks() { interp::install(); }
};

TEST_P(GradientRanks, OperandsThatBelongTogetherAreTaken) {
  Call call = gradients()[GetParam()];
  const Op& op = *registry().find(call.op);
  EXPECT_NO_THROW(call_op(op, tenon::bind(op, call.args)));
}

// Elementwise losses take one number for all elements.
bool takes_one_number(std::string_view op) {
  for (const char* name : {"mse_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "nll_loss2d"})
    if (op.find(name) != op.npos) return true;
  return false;
}

TEST_P(GradientRanks, AnOperandOfAnotherRankIsRefusedInASentence) {
  Call call = gradients()[GetParam()];
  const Op& op = *registry().find(call.op);
  CallArgs good = tenon::bind(op, call.args);
  for (size_t at = 0; at < good.size(); ++at) {
    auto* operand = good[at].get<Tensor>();
    if (!operand || !*operand) continue;
    for (size_t rank = takes_one_number(call.op) ? 1 : 0; rank <= 6; ++rank) {
      if (rank == operand->rank()) continue;
      CallArgs args = good;
      args[at] = zeros_of(operand->dtype(), Sizes(rank, SymInt(7)));
      MetaCall metas(op, args);
      std::string message = "no error";
      try {
        op.def->meta(metas);
      } catch (const Error& e) { message = e.what(); }
      EXPECT_EQ(message.rfind(op.name(), 0), 0u) << op.schema.args[at].name << " of rank " << rank << ": " << message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GradientRanks, testing::Range<size_t>(0, gradients().size()), [](const auto& info) {
  std::string name = gradients()[info.param].op;
  return name.substr(name.find("::") + 2);
});

}  // namespace
}  // namespace tenon
