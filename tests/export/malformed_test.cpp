// Files that say something that cannot be: one mistake per test, and the sentence the user gets. What the command line
// makes of bad files, verb by verb, is in tests/errors.
#include <gtest/gtest.h>

#include "tenon/base/file.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/tree_spec.h"
#include "tenon/io/zip.h"
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

TEST(Malformed, a_newer_major_version_is_refused_with_both_numbers) {
  EXPECT_SAYS(json_error("\"major\": 8, \"minor\": 20", "\"major\": 9, \"minor\": 1"),
              "expected a schema version from 5 to 8, found 9.1; the file comes from a newer PyTorch");
}

TEST(Malformed, a_newer_minor_version_with_unknown_fields_loads) {
  EXPECT_EQ(json_error("\"major\": 8, \"minor\": 20}", "\"major\": 8, \"minor\": 99}, \"news\": {\"a\": [1]}"), "");
}

TEST(Malformed, a_value_that_nobody_defines_is_named) {
  EXPECT_SAYS(json_error("\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"linear\"}}",
                         "\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"ghost\"}}"),
              "graph_module.graph.nodes[1].inputs[0].arg: uses the value 'ghost', which this graph does not define");
}

TEST(Malformed, a_value_used_before_its_definition_is_named) {
  EXPECT_SAYS(json_error("\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"linear\"}}",
                         "\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"sigmoid\"}}"),
              "uses the value 'sigmoid' before it is defined");
}

TEST(Malformed, a_value_defined_twice_is_named) {
  EXPECT_SAYS(json_error("\"outputs\": [{\"as_tensor\": {\"name\": \"gelu\"}}]",
                         "\"outputs\": [{\"as_tensor\": {\"name\": \"linear\"}}]"),
              "the value 'linear' is defined twice");
}

TEST(Malformed, a_value_without_description_is_named) {
  EXPECT_SAYS(json_error("\"sigmoid\": {\"dtype\"", "\"sigmoyd\": {\"dtype\""),
              "the value 'sigmoid' has no entry in tensor_values");
}

TEST(Malformed, a_description_without_value_is_named) {
  EXPECT_SAYS(json_error("\"tensor_values\": {",
                         "\"tensor_values\": {\"spare\": {\"dtype\": 7, \"sizes\": [], \"requires_grad\": false, "
                         "\"device\": {\"type\": \"cpu\", \"index\": null}, \"strides\": [], "
                         "\"storage_offset\": {\"as_int\": 0}, \"layout\": 7}, "),
              "describes 'spare', which no input and no node of this graph defines");
}

TEST(Malformed, an_argument_the_schema_lacks_is_named_with_the_schema) {
  std::string message = json_error("\"name\": \"weight\", \"arg\"", "\"name\": \"wait\", \"arg\"");
  EXPECT_SAYS(message, "node 'linear' (torch.ops.aten.linear.default) has no argument 'wait'");
  EXPECT_SAYS(message, "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor");
}

TEST(Malformed, an_argument_of_the_wrong_type_is_named) {
  EXPECT_SAYS(json_error("\"name\": \"weight\", \"arg\": {\"as_tensor\": {\"name\": \"p_0_weight\"}}",
                         "\"name\": \"weight\", \"arg\": {\"as_string\": \"heavy\"}"),
              "node 'linear' (torch.ops.aten.linear.default): argument 'weight': expected Tensor, got");
}

TEST(Malformed, a_missing_argument_is_named) {
  EXPECT_SAYS(json_error("{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"linear\"}}, \"kind\": 1}", ""),
              "node 'gelu' (torch.ops.aten.gelu.default): the argument 'self' (Tensor) is missing");
}

TEST(Malformed, an_argument_given_twice_is_named) {
  EXPECT_SAYS(json_error("\"name\": \"bias\", \"arg\"", "\"name\": \"weight\", \"arg\""),
              "argument 'weight' is given twice");
}

TEST(Malformed, a_wrong_number_of_results_is_told) {
  EXPECT_SAYS(json_error("\"outputs\": [{\"as_tensor\": {\"name\": \"gelu\"}}]", "\"outputs\": []"),
              "node 'gelu' (torch.ops.aten.gelu.default): expected 1 results as its schema has, found 0");
}

TEST(Malformed, a_union_with_two_keys_is_refused) {
  EXPECT_SAYS(json_error("{\"as_tensor\": {\"name\": \"p_0_weight\"}}",
                         "{\"as_tensor\": {\"name\": \"p_0_weight\"}, \"as_int\": 1}"),
              "expected an object with one key");
}

TEST(Malformed, an_unknown_dtype_is_told) {
  EXPECT_SAYS(json_error("\"linear\": {\"dtype\": 7", "\"linear\": {\"dtype\": 20"), "expected the number of a dtype");
}

TEST(Malformed, a_negative_size_is_told) {
  EXPECT_SAYS(json_error("{\"as_int\": 9}", "{\"as_int\": -9}"), "a size is negative: -9");
}

TEST(Malformed, sizes_strides_and_offsets_are_whole_numbers) {
  EXPECT_SAYS(json_error("{\"as_int\": 9}", "{\"as_float\": 9}"), "expected a whole number, got 9.0");
  EXPECT_SAYS(json_error("\"storage_offset\": {\"as_int\": 0}", "\"storage_offset\": {\"as_bool\": false}"),
              "expected a whole number, got False");
}

TEST(Malformed, placeholder_and_payload_must_agree) {
  EXPECT_SAYS(json_error("\"p_0_weight\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 9}",
                         "\"p_0_weight\": {\"dtype\": 7, \"sizes\": [{\"as_int\": 8}"),
              "the input 'p_0_weight' is described as f32[8, 7], but '0.weight' is stored as f32[9, 7]");
  EXPECT_SAYS(json_error("\"p_0_weight\": {\"dtype\": 7", "\"p_0_weight\": {\"dtype\": 8"),
              "is described as f64[9, 7]");
}

TEST(Malformed, a_symbol_that_is_a_size_needs_no_range) {
  EXPECT_EQ(json_error("\"s31\": {\"min_val\": 0, \"max_val\": null}", ""), "");
}

TEST(Malformed, an_empty_range_is_named) {
  EXPECT_SAYS(json_error("\"min_val\": 0, \"max_val\": null", "\"min_val\": 7, \"max_val\": 3"),
              "the range of 's31' is empty: from 7 to 3");
}

TEST(Malformed, an_expression_is_parsed_and_never_run) {
  EXPECT_SAYS(json_error("Symbol('s31', positive=True, integer=True)", "__import__('os').system('true')"),
              "models/model.json");
}

TEST(Malformed, what_a_preserved_signature_speaks_of_is_in_the_graph) {
  std::string in =
      "{\"fqn\": \"0\", \"signature\": {\"inputs\": [{\"as_tensor\": {\"name\": \"NAME\"}}], \"outputs\": [], "
      "\"in_spec\": \"[1, {\\\"type\\\": null, \\\"context\\\": null, \\\"children_spec\\\": []}]\", "
      "\"out_spec\": \"[1, {\\\"type\\\": null, \\\"context\\\": null, \\\"children_spec\\\": []}]\", "
      "\"forward_arg_names\": null}}";
  auto of = [&](std::string_view name) {
    std::string entry = in;
    return json_error("{\"fqn\": \"0\", \"signature\": null}", entry.replace(entry.find("NAME"), 4, name));
  };
  EXPECT_EQ(of("input"), "");
  EXPECT_SAYS(of("elsewhere"), "'elsewhere'");
}

TEST(Malformed, the_tree_of_inputs_must_match_the_signature) {
  EXPECT_SAYS(
      json_error("\\\"children_spec\\\": [{\\\"type\\\": null, \\\"context\\\": null, \\\"children_spec\\\": []}]",
                 "\\\"children_spec\\\": []"),
      "in_spec arranges 0 inputs, but the program has 1");
}

TEST(Malformed, the_tree_of_outputs_must_match_the_signature) {
  EXPECT_SAYS(json_error("\"out_spec\": \"[1, {\\\"type\\\": null, \\\"context\\\": null,",
                         "\"out_spec\": \"[1, {\\\"type\\\": \\\"builtins.tuple\\\", \\\"context\\\": \\\"null\\\","),
              "out_spec arranges 0 outputs, but the program has 1");
}

TEST(Malformed, a_parameter_that_is_not_stored_is_named) {
  EXPECT_SAYS(json_error("\"parameter_name\": \"0.weight\"", "\"parameter_name\": \"0.wait\""),
              "the input 'p_0_weight' is '0.wait', which the weights do not hold");
}

TEST(Malformed, signature_and_graph_must_speak_of_the_same_inputs) {
  EXPECT_SAYS(
      json_error("{\"parameter\": {\"arg\": {\"name\": \"p_0_weight\"}, \"parameter_name\": \"0.weight\"}}, ", ""),
      "the graph has 6 inputs, the signature 5");
}

TEST(Malformed, an_operator_without_a_block_is_read_as_unknown) {
  ExportedProgram program =
      load_exported(edited_json(mlp(), "torch.ops.aten.gelu.default", "torch.ops.mylib.gelu.default"), test_ops());
  EXPECT_TRUE(program.graph->nodes[1].op->traits.unknown);
  EXPECT_EQ(program.graph->nodes[1].op->target, "torch.ops.mylib.gelu.default");
}

TEST(Malformed, a_file_that_is_no_archive_is_told) {
  std::string path = scratch_path("text.pt2");
  write_file_atomically(path, "this is no archive");
  EXPECT_SAYS(load_error(path), "expected a .pt2 file written by torch.export.save");
}

TEST(Malformed, a_schema_older_than_that_of_pytorch_2_4_is_refused) {
  std::string path = scratch_path("old.pt2");
  ZipWriter writer(path, ZipStyle::plain);
  writer.add("serialized_exported_program.json", "{\"schema_version\": {\"major\": 3, \"minor\": 2}}");
  writer.add("version", "3.2");
  writer.commit();
  EXPECT_SAYS(load_error(path), "export the model again with PyTorch 2.4 or later");
}

TEST(Malformed, entries_of_two_root_folders_are_refused) {
  std::string path = scratch_path("roots.pt2");
  ZipWriter writer(path);
  writer.add("a/archive_format", "pt2");
  writer.add("b/archive_version", "0");
  writer.commit();
  EXPECT_SAYS(load_error(path), "expected all entries in the folder 'a/', found 'b/archive_version'");
}

TEST(Malformed, big_endian_files_are_refused) {
  EXPECT_SAYS(load_error(edited(mlp(), "byteorder", "little", "big")), "expected a file of a little-endian machine");
}

TEST(Malformed, a_missing_payload_is_named) {
  EXPECT_SAYS(load_error(edited(mlp(), "data/weights/weight_0", "", "-")),
              "the entry 'data/weights/weight_0' is missing");
}

TEST(Malformed, pickled_weights_are_carried_and_never_read) {
  ExportedProgram program = load_exported(
      edited(mlp(), "data/weights/model_weights_config.json", "\"use_pickle\": false", "\"use_pickle\": true"),
      test_ops());
  ASSERT_EQ(program.opaque.size(), 1u);
  EXPECT_EQ(program.opaque[0].name, "0.weight");
}

TEST(Malformed, a_tensor_larger_than_its_payload_is_refused) {
  std::string message =
      load_error(edited(mlp(), "data/weights/model_weights_config.json", "{\"as_int\": 9}", "{\"as_int\": 9000}"));
  EXPECT_SAYS(message, "'0.weight' in data/weights/weight_0");
}

TEST(Malformed, sizes_that_overflow_are_refused) {
  EXPECT_NE(load_error(edited(mlp(), "data/weights/model_weights_config.json", "{\"as_int\": 9}",
                              "{\"as_int\": 4611686018427387904}")),
            "");
}

TEST(Malformed, an_empty_payload_of_absurd_size_is_refused) {
  std::string file =
      edited(mlp(), "data/weights/model_weights_config.json", "{\"as_int\": 9}", "{\"as_int\": 900000000000}");
  EXPECT_SAYS(load_error(edited(file, "data/weights/weight_0", "", "")), "the payload is empty");
}

TEST(Malformed, damaged_weights_are_found_when_they_are_checked_and_not_before) {
  std::string bytes = read_file(mlp());
  ZipArchive archive(std::as_bytes(std::span(bytes)), "mlp");
  const ZipEntry* entry = archive.find("a_mlp_dynamic/data/weights/weight_0");
  ASSERT_NE(entry, nullptr);
  bytes[entry->data + 5] ^= 1;
  std::string path = scratch_path("damaged.pt2");
  write_file_atomically(path, bytes);
  ExportedProgram program = load_exported(path, test_ops());
  EXPECT_THROW(program.check_payloads(), Error);
}

}  // namespace
}  // namespace tenon
