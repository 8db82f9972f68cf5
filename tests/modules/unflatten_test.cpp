// Programs as the modules they were exported from.
#include "tenon/modules/unflatten.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tenon/export/signature_views.h"
#include "tenon/interp/eager.h"
#include "tenon/tensor/ones.h"

namespace tenon {
namespace {

std::string release(const std::string& name) { return text(TENON_TEST_DATA, "/pt2/torch-2.15/", name, ".pt2"); }

std::vector<CallArg> samples_of(const ExportedProgram& program) { return program.samples()->leaves; }

bool same_bits(const CallArg& a, const CallArg& b) {
  Tensor x = contiguous_copy(a.as<Tensor>()), y = contiguous_copy(b.as<Tensor>());
  return x.sizes() == y.sizes() && x.storage()->size() == y.storage()->size() &&
         std::memcmp(x.storage()->data(), y.storage()->data(), x.storage()->size()) == 0;
}

class Unflattening : public ::testing::TestWithParam<std::string> {};

TEST_P(Unflattening, GivesTheNumbersOfTheWholeProgram) {
  interp::install();
  ExportedProgram program = open_program(release(GetParam()));
  std::vector<CallArg> inputs = samples_of(program);
  RunResult whole = run_program(program, inputs, {.until = StageName::loops});
  Unflattened modules(program);
  std::vector<CallArg> results = modules.call(inputs);
  ASSERT_EQ(results.size(), whole.outputs.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].is<Tensor>()) {
      Tensor x = contiguous_copy(results[i].as<Tensor>()), y = contiguous_copy(whole.outputs[i].as<Tensor>());
      ASSERT_EQ(x.sizes(), y.sizes());
      if (x.dtype() != DType::f32) continue;
      for (int64_t k = 0; k < x.numel().as_int(); ++k)
        EXPECT_NEAR(x.data<float>()[k], y.data<float>()[k], 1e-5) << GetParam() << " result " << i;
    }
  for (const auto& [name, value] : whole.buffers) EXPECT_EQ(modules.get(name).sizes(), value.sizes()) << name;
}

INSTANTIATE_TEST_SUITE_P(Programs, Unflattening,
                         ::testing::Values("a_mlp", "a_mlp_tied", "a_mlp_dynamic", "b_digits_eval", "b_digits_train",
                                           "b_odd_cnn_eval", "b_conv1d_groupnorm", "i_statistics", "l_no_grad_region"),
                         [](const auto& info) { return info.param; });

TEST(Unflatten, SubmodulesAreCalledByThemselves) {
  ExportedProgram program = open_program(release("a_mlp"));
  Unflattened modules(program);
  std::vector<std::string> paths = modules.modules();
  ASSERT_EQ(paths, (std::vector<std::string>{"", "0", "1", "2", "3", "4"}));
  EXPECT_EQ(modules.module("0").class_name, "torch.nn.modules.linear.Linear");
  EXPECT_EQ(modules.module("0").state, (std::vector<std::string>{"0.weight", "0.bias"}));
  std::vector<CallArg> value = samples_of(program);
  for (const char* path : {"0", "1", "2", "3", "4"}) value = modules.call_module(path, value);
  std::vector<CallArg> whole = modules.call(samples_of(program));
  EXPECT_TRUE(same_bits(value[0], whole[0]));
}

TEST(Unflatten, AReplacedSubmoduleIsCalledInPlace) {
  ExportedProgram program = open_program(release("a_mlp"));
  Unflattened modules(program);
  int calls = 0;
  modules.replace("4", [&](const std::vector<CallArg>& inputs) -> std::vector<CallArg> {
    ++calls;
    EXPECT_EQ(inputs.size(), 1u);
    return {CallArg(ones_tensor(DType::f32, {5, 3}))};
  });
  std::vector<CallArg> results = modules.call(samples_of(program));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(same_bits(results[0], CallArg(ones_tensor(DType::f32, {5, 3}))));
  modules.restore("4");
  EXPECT_FALSE(same_bits(modules.call(samples_of(program))[0], CallArg(ones_tensor(DType::f32, {5, 3}))));
}

TEST(Unflatten, AModuleThatIsNotThereIsNamed) {
  ExportedProgram program = open_program(release("a_mlp"));
  Unflattened modules(program);
  try {
    modules.replace("7", [](const std::vector<CallArg>& x) { return x; });
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the program has no module '7'"), std::string::npos) << e.what();
  }
}

TEST(Unflatten, JointProgramsHaveModulesToo) {
  ExportedProgram program = open_program(release("a_mlp_loss"));
  ExportedProgram joint = differentiate(program, 0, {});
  Unflattened modules(joint);
  std::vector<CallArg> inputs = samples_of(joint);
  RunResult whole = run_program(joint, inputs);
  std::vector<CallArg> results = modules.call(inputs);
  ASSERT_EQ(results.size(), whole.outputs.size() + whole.gradients.size());
  SignatureViews views = views_of(modules.program());
  ASSERT_TRUE(views.backward_signature);
  EXPECT_EQ(views.backward_signature->gradients_to_parameters.size(), whole.gradients.size());
}

TEST(Signature, ItsViewsAreThoseOfPyTorch) {
  ExportedProgram program = open_program(release("b_digits_train"));
  SignatureViews training = views_of(program);
  EXPECT_EQ(training.parameters.front(), "features.0.weight");
  EXPECT_EQ(training.inputs_to_parameters.front(),
            std::pair(std::string("p_features_0_weight"), std::string("features.0.weight")));
  EXPECT_EQ(training.user_inputs.size(), 1u);
  EXPECT_TRUE(training.buffers_to_mutate.empty());
  EXPECT_FALSE(training.backward_signature);
  EXPECT_FALSE(training.assertion_dep_token);
}

TEST(Samples, AreTakenWhereTheyFitAndRefusedWithASentenceWhereNot) {
  ExportedProgram program = open_program(release("a_mlp"));
  SampleInputs given = *program.samples();
  set_samples(program, given);
  EXPECT_TRUE(same_bits(program.samples()->leaves[0], given.leaves[0]));
  SampleInputs wrong = given;
  wrong.leaves[0] = CallArg(ones_tensor(DType::f32, {5, 7}));
  try {
    set_samples(program, wrong);
    FAIL();
  } catch (const Error& e) { EXPECT_STREQ(e.what(), "sample input 'input': expected f32[5, 6], got f32[5, 7]"); }
  SampleInputs other = given;
  other.tree.children.pop_back();
  EXPECT_THROW(set_samples(program, other), Error);
}

}  // namespace
}  // namespace tenon
