// Files that are well-formed JSON and say something that cannot be. One mistake per test.
#include <gtest/gtest.h>

#include "tenon/export/serde/load.h"
#include "tenon/export/serde/tree_spec.h"
#include "tenon/passes/check_metas.h"
#include "tenon/rules/registry.h"
#include "tests/export/edited.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

// With the real operators, whose rules are asked.
std::string rule_error(std::string_view from, std::string_view to) {
  try {
    ExportedProgram program = load_exported(edited_json(mlp(), from, to), registry());
    check_metas(program.graph.body(), program.hints);
  } catch (const Error& error) { return error.what(); }
  return "";
}

std::string target_error(std::string_view target) { return json_error("torch.ops.aten.gelu.default", target); }

std::string type_error(std::string_view type) {
  try {
    parse_tree_spec(text(R"([1, {"type": ")", type, R"(", "context": "null", "children_spec": []}])"));
  } catch (const Error& error) { return error.what(); }
  return "";
}

TEST(Malformed, an_archive_must_say_its_zip_version) {
  EXPECT_SAYS(load_error(edited(mlp(), ".data/version", "", "-")), "the entry '.data/version' is missing");
}

TEST(Malformed, a_newer_zip_version_is_refused) {
  EXPECT_SAYS(load_error(edited(mlp(), ".data/version", "", "99\n")),
              "zip format version from 1 to 10 in .data/version, found 99");
  EXPECT_SAYS(load_error(edited(mlp(), ".data/version", "", "six")), "expected a number in .data/version, found 'six'");
}

TEST(Malformed, a_dialect_that_pytorch_does_not_have_is_named) {
  EXPECT_SAYS(json_error("\"verifiers\": [\"TRAINING\"]", "\"verifiers\": [\"DREAM\"]"),
              "expected the dialect ATEN or TRAINING, found 'DREAM'");
}

TEST(Malformed, a_guard_is_a_condition_on_inputs) {
  EXPECT_SAYS(json_error("\"guards_code\": []", "\"guards_code\": [\"__import__('os').system('true')\"]"),
              "guards_code[0]: cannot read the guard");
  EXPECT_EQ(json_error("\"guards_code\": []", "\"guards_code\": [\"L['input'].size()[0] <= 9\"]"), "");
}

TEST(Malformed, the_number_of_elements_must_fit) {
  EXPECT_SAYS(
      json_error("[{\"as_int\": 9}, {\"as_int\": 7}]", "[{\"as_int\": 1099511627776}, {\"as_int\": 1099511627776}]"),
      "the number of elements of sizes [1099511627776, 1099511627776] does not fit into 64 bits");
}

TEST(Malformed, a_size_calls_functions_of_pytorch_only) {
  EXPECT_SAYS(json_error("Symbol('s31', positive=True, integer=True)", "Frobnicate(Symbol('s31'))"),
              "the function 'Frobnicate' is none that PyTorch has in its expressions");
}

TEST(Malformed, a_range_must_hold_the_size_of_the_example) {
  EXPECT_SAYS(json_error("\"min_val\": 0, \"max_val\": null", "\"min_val\": 100, \"max_val\": 200"),
              "the symbol 's31' was 4 for the example inputs, which its range [100, 200] leaves out");
}

TEST(Malformed, a_size_must_be_computable_for_the_example) {
  EXPECT_SAYS(json_error("\"linear\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": \"Symbol('s31', "
                         "positive=True, integer=True)\"",
                         "\"linear\": {\"dtype\": 7, \"sizes\": [{\"as_expr\": {\"expr_str\": "
                         "\"Mul(Integer(9223372036854775807), Symbol('s31', positive=True, integer=True))\""),
              "which cannot be computed for the example inputs");
}

TEST(Malformed, an_operator_has_a_name_of_three_parts) {
  EXPECT_SAYS(target_error("torch.ops.aten.gelu"),
              "expected an operator such as torch.ops.aten.add.Tensor, found 'torch.ops.aten.gelu'");
  EXPECT_SAYS(target_error(""), "expected an operator");
  EXPECT_SAYS(target_error("torch.ops...."), "expected an operator");
  EXPECT_SAYS(target_error("os.system"), "expected an operator");
}

TEST(Malformed, an_operators_name_is_not_too_long) {
  EXPECT_SAYS(target_error(text("torch.ops.aten.", std::string(1000, 'a'), ".default")), "at most 500 are allowed");
}

TEST(Malformed, a_tree_has_containers_and_registered_classes) {
  EXPECT_EQ(type_error("mine.Model.<locals>.Pair"), "");
  EXPECT_SAYS(type_error("os.system"), "expected the name of a container or of a registered class, found 'os.system'");
  EXPECT_SAYS(type_error("mine.Thing()"), "expected the name of a container");
}

TEST(Malformed, a_result_is_what_its_operator_gives) {
  EXPECT_SAYS(rule_error("\"linear\": {\"dtype\": 7", "\"linear\": {\"dtype\": 8"),
              "its result 'linear' is described as f64[s31, 9], but the operator gives f32[s31, 9]");
}

TEST(Malformed, arguments_must_go_together) {
  EXPECT_SAYS(rule_error("\"name\": \"weight\", \"arg\": {\"as_tensor\": {\"name\": \"p_0_weight\"}}",
                         "\"name\": \"weight\", \"arg\": {\"as_tensor\": {\"name\": \"p_2_weight\"}}"),
              "node 'linear' (torch.ops.aten.linear.default): its arguments do not go together");
}

TEST(Malformed, a_weight_without_bytes_is_zeros_as_in_pytorch) {
  ExportedProgram program = load_exported(edited(mlp(), "data/weights/weight_0", "", ""), test_ops());
  const Tensor& weight = program.find_state("0.weight")->tensor;
  EXPECT_EQ(weight.data<float>()[62], 0.0f);
}

}  // namespace
}  // namespace tenon
