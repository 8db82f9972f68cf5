// Programs that can be shown and converted, and not all of them run: tests/interop/export_special.py makes them.
#include <gtest/gtest.h>

#include "tenon/base/file.h"
#include "tenon/export/print.h"
#include "tenon/export/runnable.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tests/export/edited.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

std::string special(const std::string& name) { return data_path(text("pt2/special/", name, ".pt2")); }

ExportedProgram converted(const ExportedProgram& program) {
  std::string copy = scratch_path("special.pt2");
  save_exported(program, copy);
  return load_exported(copy, test_ops());
}

std::string why_not(const ExportedProgram& program) { return why_not_runnable(program).value_or(""); }

TEST(Special, each_is_written_as_it_was_read) {
  for (const char* name :
       {"complex_numbers", "custom_object", "custom_operator", "effect_tokens", "on_cuda", "on_cuda_flat"}) {
    SCOPED_TRACE(name);
    ExportedProgram program = load_exported(special(name), test_ops());
    ExportedProgram copy = converted(program);
    EXPECT_EQ(to_json(copy), to_json(program));
    EXPECT_EQ(to_text(copy), to_text(program));
  }
}

TEST(Special, a_custom_object_is_an_input_whose_bytes_are_carried) {
  ExportedProgram program = load_exported(special("custom_object"), test_ops());
  ASSERT_EQ(program.opaque.size(), 1u);
  EXPECT_EQ(program.opaque[0].name, "scale");
  ExportedProgram copy = converted(program);
  ASSERT_EQ(copy.opaque.size(), 1u);
  EXPECT_EQ(copy.opaque[0].file, "custom_obj_0");
  EXPECT_TRUE(std::equal(copy.opaque[0].bytes.begin(), copy.opaque[0].bytes.end(), program.opaque[0].bytes.begin(),
                         program.opaque[0].bytes.end()));
  EXPECT_SAYS(why_not(program), "'scale' is stored as a pickle of a custom class");
}

TEST(Special, a_custom_object_of_an_older_file_gets_the_form_of_newer_ones) {
  ExportedProgram old = load_exported(special("custom_object_2_6"), test_ops());
  ASSERT_EQ(old.opaque.size(), 1u);
  EXPECT_EQ(old.opaque[0].name, "scale");
  EXPECT_EQ(old.signature.inputs.at(1).kind, InputKind::custom_object);
  std::string_view bytes(reinterpret_cast<const char*>(old.opaque[0].bytes.data()), old.opaque[0].bytes.size());
  EXPECT_NE(bytes.find("__torch__.torch.classes.tenon_test\nScale\n"), bytes.npos);
  ExportedProgram copy = converted(old);
  ASSERT_EQ(copy.opaque.size(), 1u);
  EXPECT_EQ(copy.opaque[0].file, "custom_obj_0");
  EXPECT_SAYS(why_not(copy), "'scale' is stored as a pickle of a custom class");
}

TEST(Special, writing_a_pickle_is_said) {
  std::string said;
  save_exported(load_exported(special("custom_object"), test_ops()), scratch_path("warned.pt2"),
                [&](const std::string& warning) { said = warning; });
  EXPECT_SAYS(said, "'scale'");
  EXPECT_SAYS(said, "PyTorch will execute");
}

TEST(Special, what_cannot_run_says_why) {
  EXPECT_EQ(why_not(load_exported(special("complex_numbers"), test_ops())), "");
  EXPECT_SAYS(why_not(load_exported(special("on_cuda"), test_ops())), "give --device cpu");
  EXPECT_EQ(why_not(load_exported(mlp(), test_ops())), "");
  EXPECT_SAYS(why_not(load_exported(edited_json(mlp(), "\"layout\": 7", "\"layout\": 1"), test_ops())),
              "only dense tensors are supported yet");
}

TEST(Special, moving_a_program_moves_values_state_samples_and_arguments) {
  for (const char* name : {"on_cuda", "on_cuda_flat"}) {
    SCOPED_TRACE(name);
    ExportedProgram program = load_exported(special(name), test_ops());
    EXPECT_EQ(text(program.state.at(0).tensor.meta().device), "cuda:0");
    move_to_cpu(program);
    EXPECT_EQ(why_not(program), "");
    EXPECT_EQ(program.state.at(0).tensor.meta().device, Device());
    EXPECT_EQ(program.samples()->leaves.at(0).get<Tensor>()->meta().device, Device());
    EXPECT_EQ(to_json(program).find("cuda"), std::string::npos);
  }
}

TEST(Special, one_of_several_models_is_chosen_by_name) {
  EXPECT_EQ(load_exported(special("several_models"), test_ops(), {.model = "first"}).state.size(), 2u);
  EXPECT_EQ(load_exported(special("several_models"), test_ops(), {.model = "second"}).state.at(0).name, "0.weight");
  EXPECT_SAYS(load_error(special("several_models")), "choose one with --model NAME");
}

TEST(Special, a_compiled_package_is_told) {
  EXPECT_SAYS(load_error(special("aotinductor")), "a package compiled by AOTInductor, which only PyTorch can run");
}

TEST(Special, tokens_are_inputs_and_outputs_of_their_own_kind) {
  ExportedProgram program = load_exported(special("effect_tokens"), test_ops());
  EXPECT_EQ(program.signature.inputs.at(0).kind, InputKind::token);
  EXPECT_EQ(program.signature.outputs.at(0).kind, OutputKind::token);
  EXPECT_EQ(why_not(program), "");  // they only say what comes after what
}

}  // namespace
}  // namespace tenon
