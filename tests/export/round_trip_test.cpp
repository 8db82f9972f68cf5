#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "tenon/base/file.h"
#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/export/serde/tree_spec.h"
#include "tenon/io/zip.h"
#include "tests/export/edited.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

std::vector<std::string> programs_of(const std::string& release) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("pt2/" + release)))
    if (entry.path().extension() == ".pt2") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::map<std::string, std::string> entries_of(const std::string& file) {
  std::string bytes = read_file(file);
  ZipArchive archive(std::as_bytes(std::span(bytes)), file);
  std::map<std::string, std::string> out;
  for (const ZipEntry& entry : archive.entries())
    out.emplace(entry.name.substr(entry.name.find('/') + 1), archive.content(entry));
  return out;
}

TEST(RoundTrip, an_unchanged_program_is_written_as_pytorch_wrote_it) {
  std::vector<std::string> files = programs_of("torch-2.15");
  ASSERT_GT(files.size(), 30u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    std::string copy = scratch_path("copy.pt2");
    save_exported(load_exported(file, test_ops()), copy);
    auto before = entries_of(file), after = entries_of(copy);
    ASSERT_EQ(before.size(), after.size());
    for (const auto& [name, content] : before) {
      if (name == ".data/serialization_id" || name == "data/sample_inputs/model.pt") continue;
      EXPECT_EQ(after[name], content) << name;
    }
  }
}

TEST(RoundTrip, sample_inputs_keep_values_sharing_and_strides) {
  ExportedProgram first = load_exported(data_path("pt2/torch-2.15/h_shared_inputs.pt2"), test_ops());
  std::string copy = scratch_path("samples.pt2");
  save_exported(first, copy);
  auto before = first.samples(), after = load_exported(copy, test_ops()).samples();
  ASSERT_TRUE(before && after);
  ASSERT_EQ(before->leaves.size(), after->leaves.size());
  EXPECT_EQ(before->tree, after->tree);
  for (size_t i = 0; i < before->leaves.size(); ++i) {
    const Tensor &a = *before->leaves[i].get<Tensor>(), &b = *after->leaves[i].get<Tensor>();
    EXPECT_EQ(a.meta(), b.meta());
    Tensor x = contiguous_copy(a), y = contiguous_copy(b);
    EXPECT_EQ(std::memcmp(x.bytes(), y.bytes(), x.storage()->size()), 0);
    for (size_t j = 0; j < i; ++j)
      EXPECT_EQ(a.storage() == before->leaves[j].get<Tensor>()->storage(),
                b.storage() == after->leaves[j].get<Tensor>()->storage());
  }
}

TEST(RoundTrip, tensors_that_share_a_payload_share_storage) {
  ExportedProgram program = load_exported(data_path("pt2/torch-2.15/i_buffers_sharing_storage.pt2"), test_ops());
  size_t shared = 0;
  for (size_t i = 0; i < program.state.size(); ++i)
    for (size_t j = 0; j < i; ++j) shared += program.state[i].tensor.storage() == program.state[j].tensor.storage();
  EXPECT_GT(shared, 0u);
}

TEST(RoundTrip, unreadable_samples_do_not_refuse_the_program_and_are_left_out_with_a_warning) {
  std::string file = edited(data_path("pt2/torch-2.15/a_mlp.pt2"), "data/sample_inputs/model.pt", "", "no archive");
  ExportedProgram program = load_exported(file, test_ops());
  EXPECT_THROW(program.samples(), Error);
  std::string copy = scratch_path("no_samples.pt2"), warning;
  save_exported(program, copy, [&](const std::string& said) { warning = said; });
  EXPECT_NE(warning.find("the sample inputs are left out"), std::string::npos);
  EXPECT_FALSE(load_exported(copy, test_ops()).samples());
}

TEST(RoundTrip, a_file_that_cannot_be_written_leaves_nothing_behind) {
  ExportedProgram program = load_exported(data_path("pt2/torch-2.15/a_mlp.pt2"), test_ops());
  EXPECT_THROW(save_exported(program, scratch_path("missing_folder/x.pt2")), Error);
}

TEST(TreeSpec, reads_and_writes_what_pytorch_writes) {
  for (
      const char* spec : {
          R"([1, {"type": null, "context": null, "children_spec": []}])",
          R"([1, {"type": "builtins.dict", "context": "[\"a\", 3]", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}])",
          R"([1, {"type": "collections.deque", "context": "5", "children_spec": []}])",
          R"([1, {"type": "collections.namedtuple", "context": "my.Point", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])",
          R"([1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", "default_factory_name": "list", "dict_context": ["k"]}, "children_spec": [{"type": null, "context": null, "children_spec": []}]}])",
      })
    EXPECT_EQ(to_tree_spec(parse_tree_spec(spec)), spec);
}

TEST(TreeSpec, keys_are_kept_as_python_writes_them) {
  Tree tree = parse_tree_spec(
      R"([1, {"type": "builtins.dict", "context": "[\"a\", 3]", "children_spec": [{"type": null, "context": null, "children_spec": []}, {"type": null, "context": null, "children_spec": []}]}])");
  EXPECT_EQ(tree.keys, (std::vector<std::string>{"'a'", "3"}));
}

TEST(TreeSpec, a_tree_made_here_gets_its_context_from_its_keys) {
  Tree tree{.type = "builtins.dict", .keys = {"'a'"}, .children = {Tree{}}};
  EXPECT_EQ(
      to_tree_spec(tree),
      R"([1, {"type": "builtins.dict", "context": "[\"a\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])");
}

TEST(TreeSpec, a_dict_with_too_few_keys_is_refused) {
  EXPECT_THROW(
      parse_tree_spec(
          R"([1, {"type": "builtins.dict", "context": "[]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])"),
      Error);
}

TEST(Print, shows_what_pytorch_prints) {
  size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("golden"))) {
    if (entry.path().extension() != ".txt") continue;
    std::string stem = entry.path().stem().string();
    SCOPED_TRACE(stem);
    std::string file = data_path(stem == "traced" ? "golden/traced.pt2" : text("pt2/torch-2.15/", stem, ".pt2"));
    EXPECT_EQ(to_text(load_exported(file, test_ops())), read_file(entry.path().string()));
    ++compared;
  }
  EXPECT_GE(compared, 9u);
}

}  // namespace
}  // namespace tenon
