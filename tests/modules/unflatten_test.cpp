// Programs as the modules they were exported from.
#include "tenon/modules/unflatten.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tenon/export/serde/save.h"
#include "tenon/export/signature_views.h"
#include "tenon/interp/eager.h"
#include "tenon/tensor/ones.h"
#include "tests/text_program.h"

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

TEST(Signature, AValueIsRenamedWhereverItIsSpokenOf) {
  ExportedProgram program = open_program(release("h_mutated_input"));
  std::string input = program.signature.inputs[0].name;
  rename_value(program, input, "given");
  EXPECT_EQ(program.signature.inputs[0].name, "given");
  EXPECT_EQ(program.graph->info(program.graph->inputs[0].as<Value>()).name, "given");
  verify(program);
  EXPECT_THROW(rename_value(program, "given", "given"), Error);
  EXPECT_THROW(rename_value(program, input, "again"), Error);
}

// PyTorch preserves no signature with a symbolic number, and unflattens none.
TEST(Signature, OfAModuleMayTakeSymbolicNumbers) {
  ExportedProgram program = program_of(R"(%x: f32[s0, 6] = input()
%n: int s0 = aten::sym_size.int(%x, 0)
%y: f32[s0, 6] = aten::reshape(%x, [%n, 6])
%z: f32[s0, 6] = aten::mul.Tensor(%y, 2)
%r: f32[s0] = aten::sum.dim_IntList(%z, [1])
return %r
)");
  GraphBody& graph = program.graph.body();
  for (Node& node : graph.nodes) {
    bool inner = node.op->schema.base() == "reshape" || node.op->schema.base() == "mul";
    node.origin.metadata.edit().emplace_back("nn_module_stack", inner ? "L__self__,,M;L__self__b,b,B" : "L__self__,,M");
  }
  ModuleCallSignature signature;
  signature.inputs = {graph.inputs[0], Arg(graph.nodes[0].results[0])};
  signature.outputs = {graph.nodes[2].results[0]};
  Tree arguments{"builtins.tuple", "", {}, std::vector<Tree>(2)};
  signature.in = {"builtins.tuple", "", {}, {arguments, Tree{"builtins.dict", "", {}, {}}}};
  program.module_calls.push_back({"b", signature});
  verify(program);

  std::string path = testing::TempDir() + "numbers.pt2";
  save_exported(program, path);
  Unflattened modules(open_program(path));
  EXPECT_TRUE(modules.module("b").kept);
  ASSERT_EQ(modules.module("b").takes.size(), 2u);
  std::vector<CallArg> results = modules.call_module("b", {counting({4, 6}), CallArg(4)});
  EXPECT_EQ(results[0].as<Tensor>().sizes(), (Sizes{4, 6}));
  EXPECT_EQ(values_of(results[0].as<Tensor>())[5], 10);
  modules.replace("b", [](const std::vector<CallArg>& in) {
    EXPECT_EQ(in[1], CallArg(SymInt(5)));
    return std::vector<CallArg>{in[0]};
  });
  EXPECT_EQ(values_of(modules.call({counting({5, 6})})[0].as<Tensor>())[0], 15);
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
