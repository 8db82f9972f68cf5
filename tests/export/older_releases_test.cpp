// Files of PyTorch 2.4 to 2.8, and what has become of them when they are read.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "tenon/base/file.h"
#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/export/serde/upgrade.h"
#include "tenon/io/zip.h"
#include "tests/export/edited.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

std::string older(const std::string& release, const std::string& name) {
  return data_path(text("pt2/torch-", release, "/", name, ".pt2"));
}

ExportedProgram load(const std::string& file) { return load_exported(file, test_ops()); }

// A program of the given schema whose JSON has been upgraded.
JsonDocument upgraded(std::string_view version, std::string_view rest) {
  static Budget budget("program", 1 << 20);
  return serde::read_program_json(text("{\"schema_version\": ", version, rest, "}"), "program", true, budget);
}

const Node* find_node(const GraphBody& graph, std::string_view target) {
  for (const Node& node : graph.nodes)
    if (node.op->target == target) return &node;
  return nullptr;
}

TEST(OlderReleases, say_which_schema_they_were_written_in) {
  std::map<std::string, std::pair<int64_t, int64_t>> schemas = {
      {"2.4", {5, 3}}, {"2.5", {7, 3}}, {"2.6", {8, 2}}, {"2.7", {8, 7}}, {"2.8", {8, 8}}};
  for (const auto& [release, schema] : schemas) {
    ExportedProgram program = load(older(release, "a_mlp_dynamic"));
    EXPECT_EQ(std::pair(program.schema_major, program.schema_minor), schema) << release;
  }
}

TEST(OlderReleases, keep_their_dialect_and_the_release_that_wrote_them) {
  EXPECT_EQ(load(older("2.4", "a_mlp")).dialect, "ATEN");
  EXPECT_EQ(load(older("2.4", "a_mlp")).torch_version, "<=2.4");
  EXPECT_EQ(load(older("2.5", "a_mlp")).dialect, "ATEN");
  EXPECT_EQ(load(older("2.6", "a_mlp")).dialect, "TRAINING");
  EXPECT_EQ(load(older("2.6", "a_mlp")).torch_version.substr(0, 3), "2.6");
}

TEST(OlderReleases, have_the_weights_of_the_newest) {
  ExportedProgram newest = load(older("2.15", "b_digits_train"));
  for (const char* release : {"2.4", "2.5", "2.6", "2.7", "2.8"}) {
    ExportedProgram program = load(older(release, "b_digits_train"));
    program.check_payloads();
    ASSERT_EQ(program.state.size(), newest.state.size()) << release;
    for (const NamedTensor& expected : newest.state) {
      const NamedTensor* found = program.find_state(expected.name);
      ASSERT_TRUE(found) << release << " " << expected.name;
      EXPECT_EQ(found->is_parameter, expected.is_parameter) << release << " " << expected.name;
      EXPECT_EQ(found->tensor.meta(), expected.tensor.meta()) << release << " " << expected.name;
      Tensor a = contiguous_copy(found->tensor), b = contiguous_copy(expected.tensor);
      EXPECT_EQ(std::memcmp(a.bytes(), b.bytes(), b.storage()->size()), 0) << release << " " << expected.name;
    }
  }
}

TEST(OlderReleases, inputs_require_gradients_where_their_parameters_do) {
  ExportedProgram program = load(older("2.4", "a_mlp"));
  size_t parameters = 0;
  for (const InputSpec& spec : program.signature.inputs) {
    bool parameter = spec.kind == InputKind::parameter;
    EXPECT_EQ(program.graph->info(*spec.arg.get<Value>()).meta.requires_grad, parameter) << spec.name;
    parameters += parameter;
  }
  EXPECT_EQ(parameters, 6u);
}

TEST(OlderReleases, tensors_that_shared_a_storage_share_it) {
  ExportedProgram program = load(older("2.6", "i_buffers_sharing_storage"));
  EXPECT_EQ(program.find_state("left")->tensor.storage(), program.find_state("right")->tensor.storage());
}

TEST(OlderReleases, open_ends_of_ranges_are_open) {
  for (const char* release : {"2.4", "2.5", "2.6"}) {
    ExportedProgram program = load(older(release, "a_mlp_dynamic"));
    ASSERT_FALSE(program.ranges.empty()) << release;
    EXPECT_FALSE(program.ranges[0].second.has_hi()) << release;
  }
}

TEST(OlderReleases, infinities_are_read_as_python_writes_them) {
  for (const char* release : {"2.4", "2.5", "2.6"}) {
    ExportedProgram program = load(older(release, "m_infinities"));
    const Node* clamp = find_node(program.graph.body(), "torch.ops.aten.clamp.default");
    ASSERT_TRUE(clamp) << release;
    EXPECT_EQ(*clamp->args[1].get<double>(), -INFINITY) << release;
  }
}

TEST(OlderReleases, regions_have_the_name_and_the_results_of_today) {
  for (const char* release : {"2.4", "2.5", "2.6", "2.7", "2.8"}) {
    ExportedProgram program = load(older(release, "l_no_grad_region"));
    const Node* region = find_node(program.graph.body(), "torch.ops.higher_order.wrap_with_set_grad_enabled");
    ASSERT_TRUE(region) << release;
    for (const Arg& result : region->results) EXPECT_TRUE(result.is<Value>()) << release;
    EXPECT_GE(region->origin.hop_single_return, 0) << release;
  }
}

TEST(OlderReleases, a_tuple_of_one_tensor_is_told_from_a_tensor) {
  ExportedProgram program = load(older("2.6", "m_condition"));
  const Node* cond = find_node(program.graph.body(), "torch.ops.higher_order.cond");
  ASSERT_TRUE(cond);
  EXPECT_EQ(cond->results.size(), 1u);
  EXPECT_TRUE(cond->results[0].is<Value>());
  EXPECT_EQ(cond->origin.hop_single_return, 0);
}

TEST(OlderReleases, strides_that_no_range_speaks_of_are_those_of_the_example) {
  ExportedProgram program = load(older("2.5", "h_strided_input_written"));
  for (const ValueInfo& info : program.graph->values)
    for (SymInt stride : info.meta.strides) EXPECT_TRUE(stride.is_int()) << info.name;
}

TEST(OlderReleases, retired_operators_become_their_successors) {
  ExportedProgram program = load(older("2.8", "m_retired_operators"));
  size_t factors = 0, complete = 0, cholesky = 0;
  for (const Node& node : program.graph->nodes) {
    EXPECT_NE(node.op->target, "torch.ops.aten.qr.default");
    EXPECT_NE(node.op->target, "torch.ops.aten.cholesky.default");
    cholesky += node.op->target == "torch.ops.aten.linalg_cholesky.default";
    if (node.op->target != "torch.ops.aten.linalg_qr.default") continue;
    ++factors;
    for (const Arg& arg : node.args) complete += arg == Arg(std::string("complete"));
  }
  EXPECT_EQ(factors, 2u);
  EXPECT_EQ(complete, 1u);
  EXPECT_EQ(cholesky, 2u);
}

TEST(OlderReleases, files_the_user_stored_are_kept) {
  std::string path = scratch_path("extra.pt2"), source = older("2.6", "a_mlp"), bytes = read_file(source);
  ZipArchive archive(std::as_bytes(std::span(bytes)), source);
  ZipWriter writer(path, ZipStyle::plain);
  for (const ZipEntry& entry : archive.entries()) writer.add(entry.name, archive.content(entry));
  writer.add("extra_files/notes/a.txt", "hello");
  writer.commit();
  ExportedProgram program = load(path);
  ASSERT_EQ(program.extra_files.size(), 1u);
  EXPECT_EQ(program.extra_files[0], std::pair(std::string("notes/a.txt"), std::string("hello")));
}

TEST(OlderReleases, written_files_are_of_the_newest_schema_and_show_the_same) {
  for (const char* release : {"2.4", "2.5", "2.6", "2.7", "2.8"})
    for (const char* name :
         {"a_mlp_dynamic", "l_nested_regions", "i_statistics", "m_condition", "m_retired_operators"}) {
      SCOPED_TRACE(text(release, " ", name));
      ExportedProgram program = load(older(release, name));
      std::string copy = scratch_path("converted.pt2");
      save_exported(program, copy);
      ExportedProgram again = load(copy);
      EXPECT_EQ(std::pair(again.schema_major, again.schema_minor), std::pair(int64_t{8}, int64_t{20}));
      EXPECT_EQ(to_text(again), to_text(program));
      EXPECT_EQ(to_json(again), to_json(program));
      again.check_payloads();
    }
}

TEST(Upgrade, a_dialect_becomes_a_list_of_verifiers) {
  JsonDocument program = upgraded("{\"major\": 5, \"minor\": 3}", ", \"dialect\": \"ATEN\"");
  ASSERT_EQ(program.root().at("verifiers").size(), 1u);
  EXPECT_EQ(program.root().at("verifiers")[0].as_string(), "ATEN");
}

TEST(Upgrade, none_becomes_true_where_it_stands_for_an_argument_and_nowhere_else) {
  JsonDocument program =
      upgraded("{\"major\": 7, \"minor\": 3}", ", \"a\": [{\"as_none\": []}], \"b\": {\"as_none\": {\"dtype\": 7}}");
  EXPECT_TRUE(program.root().at("a")[0].at("as_none").as_bool());
  EXPECT_TRUE(program.root().at("b").at("as_none").is_object());
}

TEST(Upgrade, newer_programs_are_left_alone) {
  JsonDocument program = upgraded("{\"major\": 8, \"minor\": 20}", ", \"dialect\": \"ATEN\", \"a\": {\"as_none\": []}");
  EXPECT_FALSE(program.root().find("verifiers"));
  EXPECT_TRUE(program.root().at("a").at("as_none").is_array());
}

TEST(Upgrade, named_arguments_of_higher_order_operators_are_keywords) {
  JsonDocument program = upgraded("{\"major\": 8, \"minor\": 2}", R"(, "graph_module": {"graph": {"nodes": [
      {"target": "torch.ops.higher_order.auto_functionalized", "outputs": [],
       "inputs": [{"name": "", "arg": {"as_operator": "a"}}, {"name": "x", "arg": {"as_none": true}}]}]}})");
  Json inputs = program.root().at("graph_module").at("graph").at("nodes")[0].at("inputs");
  EXPECT_EQ(inputs[0].at("kind").as_int(), 1);
  EXPECT_EQ(inputs[1].at("kind").as_int(), 2);
}

TEST(Upgrade, gradients_of_distances_are_called_grad_output) {
  JsonDocument program = upgraded("{\"major\": 8, \"minor\": 17}", R"(, "graph_module": {"graph": {"nodes": [
      {"target": "torch.ops.aten._cdist_backward.default", "inputs": [{"name": "grad", "arg": {"as_none": true}}]}]}})");
  EXPECT_EQ(program.root().at("graph_module").at("graph").at("nodes")[0].at("inputs")[0].at("name").as_string(),
            "grad_output");
}

TEST(Upgrade, schemas_that_no_release_since_2_4_wrote_are_refused) {
  EXPECT_THROW(upgraded("{\"major\": 4, \"minor\": 1}", ""), Error);
  EXPECT_THROW(upgraded("{\"major\": 9, \"minor\": 1}", ""), Error);
}

TEST(BadOlderFile, a_part_that_is_missing_is_named) {
  std::string file = older("2.6", "a_mlp");
  EXPECT_SAYS(load_error(edited(file, "serialized_state_dict.pt", "", "-")),
              "the entry 'serialized_state_dict.pt' is missing");
  EXPECT_SAYS(load_error(edited(file, "version", "", "-")), "the entry 'version' is missing");
}

TEST(BadOlderFile, weights_that_are_no_archive_are_refused) {
  EXPECT_SAYS(load_error(edited(older("2.4", "a_mlp"), "serialized_state_dict.pt", "", "junk")),
              "serialized_state_dict.pt");
}

TEST(BadOlderFile, the_old_ending_of_weights_is_read) {
  std::string path = scratch_path("ending.pt2"), source = older("2.4", "a_mlp"), bytes = read_file(source);
  ZipArchive archive(std::as_bytes(std::span(bytes)), source);
  ZipWriter writer(path, ZipStyle::plain);
  for (const ZipEntry& entry : archive.entries()) {
    std::string name(entry.name);
    if (name == "serialized_state_dict.pt") name = "serialized_state_dict.json";
    writer.add(name, archive.content(entry));
  }
  writer.commit();
  EXPECT_EQ(load(path).state.size(), 6u);
}

}  // namespace
}  // namespace tenon
