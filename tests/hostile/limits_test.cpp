// The limits of SECURITY.md, each from both sides: the last that is read, and the first that is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tenon/base/file.h"
#include "tenon/export/serde/load.h"
#include "tenon/io/json.h"
#include "tenon/io/pickle.h"
#include "tenon/io/zip.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tenon/sym/parse.h"
#include "tests/hostile/program_text.h"

namespace tenon {
namespace {

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& error) { return error.what(); }
  return "";
}

std::string repeated(std::string_view s, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += s;
  return out;
}

#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << "says: " << (message)

std::string nested_json(size_t depth) { return repeated("[", depth) + repeated("]", depth); }

TEST(Limits, json_is_nested_200_levels_deep) {
  EXPECT_EQ(refusal([] { JsonDocument(nested_json(200), "j"); }), "");
  EXPECT_SAYS(refusal([] { JsonDocument(nested_json(201), "j"); }), "nested deeper than 200 levels");
}

TEST(Limits, one_budget_counts_the_values_of_all_documents) {
  Budget budget("m.pt2", 0, {.values = 10'240});
  std::string list = "[" + repeated("1,", 5'000) + "1]";
  JsonLimits limits{.budget = &budget};
  EXPECT_EQ(refusal([&] { JsonDocument(list, "j", limits); }), "");
  EXPECT_EQ(refusal([&] { JsonDocument(list, "j", limits); }), "");
  EXPECT_SAYS(refusal([&] { JsonDocument(list, "j", limits); }), "reading JSON takes more values than");
}

TEST(Limits, one_budget_counts_the_bytes_of_an_archive_and_of_one_within) {
  std::string inner = archive_of({{"a", std::string(60'000, 'x')}}, true);
  std::string outer = archive_of({{"inner", inner}, {"b", std::string(60'000, 'y')}}, true);
  auto read = [&](uint64_t bytes) {
    return refusal([&] {
      Budget budget("m.pt2", 0, {.bytes = bytes});
      ZipLimits limits{.budget = &budget};
      ZipArchive a(std::as_bytes(std::span(outer)), "outer", limits);
      a.bytes(*a.find("b"));
      ZipArchive b(a.bytes(*a.find("inner")), "inner", limits);
      b.bytes(*b.find("a"));
    });
  };
  EXPECT_EQ(read(125'000), "");
  EXPECT_SAYS(read(110'000), "reading deflated entries takes more bytes than");
}

TEST(Limits, marks_and_copies_of_a_pickle_are_counted) {
  auto pickle = [](size_t nones) { return "\x80\x02(" + repeated("N", nones) + "t."; };
  auto read = [&](size_t nones, uint64_t values) {
    return refusal([&] {
      Budget budget("m.pt2", 0, {.values = values});
      std::string bytes = pickle(nones);
      PickleDocument(std::as_bytes(std::span(bytes)), "p", {.budget = &budget});
    });
  };
  EXPECT_EQ(read(4'000, 4'096), "");
  EXPECT_SAYS(read(4'200, 4'096), "reading a pickle takes more values than");
}

/// The first of a series that is refused, found by halving; each before it is read.
template <class F>
size_t first_refused(size_t read, size_t refused, std::string_view words, F&& act) {
  EXPECT_EQ(refusal([&] { act(read); }), "");
  while (refused - read > 1) {
    size_t middle = read + (refused - read) / 2;
    (refusal([&] { act(middle); }).empty() ? read : refused) = middle;
  }
  EXPECT_SAYS(refusal([&] { act(refused); }), words);
  return refused;
}

TEST(Limits, an_expression_has_10000_parts) {
  auto sum = [](size_t symbols) { return "Add(" + repeated("Symbol('s0'), ", symbols) + "Integer(1))"; };
  size_t two = first_refused(100, 20'000, "more than 10000 parts", [&](size_t n) { sym::parse(sum(n)); });
  auto nested = [](size_t symbols) { return "Max(Integer(1), s0 + " + repeated("s0 + ", symbols) + "1)"; };
  size_t one = first_refused(100, 20'000, "more than 10000 parts", [&](size_t n) { sym::parse(nested(n)); });
  EXPECT_GE(two, 3'000u);  // a symbol, its name and the call of it are parts, too
  EXPECT_LE(two, 10'000u);
  EXPECT_GE(one, 3'000u);
  EXPECT_LE(one, 10'000u);
}

TEST(Limits, an_expression_is_read_200_levels_deep) {
  auto deep = [](size_t levels) { sym::parse(repeated("(", levels) + "s0" + repeated(")", levels)); };
  size_t refused = first_refused(100, 300, "nested deeper than 200 levels", deep);
  EXPECT_GE(refused, 199u);
  EXPECT_LE(refused, 201u);
}

TEST(Limits, an_expression_is_computed_1000_levels_deep) {
  auto deep = [](size_t levels) {
    SymInt e = SymInt::symbol("s0");
    for (size_t i = 0; i < levels; ++i) e = sym::mod(e, SymInt::symbol(i % 2 == 0 ? "s1" : "s2"));
  };
  size_t refused = first_refused(900, 1'100, "nested deeper than the 1000 levels allowed", deep);
  EXPECT_GE(refused, 998u);
  EXPECT_LE(refused, 1'001u);
}

TEST(Limits, are_the_numbers_of_the_document) {
  EXPECT_EQ(
      BudgetLimits(),
      (BudgetLimits{
          .bytes = 256 << 20, .bytes_per_byte = 16, .values = 16 << 20, .weight = 4 << 20, .weight_per_byte = 1}));
  EXPECT_EQ(JsonLimits().depth, 200u);
  EXPECT_EQ(PickleLimits().depth, 200u);
  EXPECT_EQ(ZipLimits().entries, size_t{1} << 20);
  EXPECT_EQ(ZipLimits().ratio, 1'100u);
}

TEST(Limits, an_archive_has_so_many_entries) {
  std::string three = archive_of({{"a", ""}, {"b", ""}, {"c", ""}}, false);
  auto open = [&](size_t most) { ZipArchive(std::as_bytes(std::span(three)), "z", ZipLimits{.entries = most}); };
  EXPECT_EQ(refusal([&] { open(3); }), "");
  EXPECT_SAYS(refusal([&] { open(2); }), "above the limit of 2");
}

TEST(Limits, an_entry_inflates_1100_fold) {
  std::string packed = archive_of({{"a", std::string(1'000'000, '\0')}}, true);
  auto read = [&](uint64_t ratio) {
    ZipArchive archive(std::as_bytes(std::span(packed)), "z", ZipLimits{.ratio = ratio});
    archive.bytes(*archive.find("a"));
  };
  EXPECT_EQ(refusal([&] { read(ZipLimits().ratio); }), "");
  EXPECT_SAYS(refusal([&] { read(900); }), "more than deflate can");
}

TEST(Limits, an_operator_has_a_name_of_500_characters) {
  auto read = [](size_t length) {
    ProgramText p;
    p.user_input("x", make_meta(DType::f32, {2}));
    p.tensor("y", make_meta(DType::f32, {2}));
    std::string before = "torch.ops.mine.", after = ".default";
    std::string target = before + std::string(length - before.size() - after.size(), 'a') + after;
    p.node(target, {{"a", as_tensor("x")}}, {as_tensor("y")});
    p.user_output("y");
    read_program(p.program_json(), "m", registry());
  };
  EXPECT_EQ(refusal([&] { read(500); }), "");
  EXPECT_SAYS(refusal([&] { read(501); }), "an operator's name has 501 characters; at most 500 are allowed");
}

TEST(Limits, zeros_take_512_mebibytes_in_place_of_weights) {
  auto read = [](int64_t elements) {
    ProgramText p;
    TensorMeta meta = make_meta(DType::f32, {elements});
    p.tensor("w", meta);
    p.input(as_tensor("w"));
    p.input_specs = R"({"parameter": {"arg": {"name": "w"}, "parameter_name": "w"}})";
    p.user_output("w");
    std::string path = text(testing::TempDir(), "tenon_zeros_", ::getpid(), ".pt2");
    write_file_atomically(
        path, p.archive({{"data/weights/w", ""},
                         {"data/weights/model_weights_config.json",
                          text(R"({"config": {"w": {"path_name": "w", "is_param": true, "use_pickle": false, )",
                               R"("tensor_meta": )", meta_json(meta), "}}}")}}));
    load_exported(path, registry());
    ::unlink(path.c_str());
  };
  EXPECT_EQ(refusal([&] { read(int64_t{128} << 20); }), "");
  EXPECT_SAYS(refusal([&] { read((int64_t{128} << 20) + 1); }), "zeros in its place would take more than 512 MiB");
}

ProgramText sized(std::string_view expression, size_t times) {
  ProgramText p;
  p.range("s0", 2, 10);
  TensorMeta meta = make_meta(DType::f32, {3});
  for (size_t i = 0; i < times; ++i) {
    p.user_input(text("x", i), meta);
    p.tensors.replace(p.tensors.rfind(R"({"as_int": 3})"), 13, as_expr(expression, 4));
  }
  p.user_output("x0");
  return p;
}

// Abs(Abs(...)) doubles with each level.
std::string towers(size_t levels) {
  return repeated("Abs(Add(Integer(1), ", levels) + "Symbol('s0', integer=True)" + repeated("))", levels);
}

TEST(Limits, all_expressions_of_a_file_together_weigh_4_million_nodes) {
  std::string json = sized(towers(12), 3).program_json();
  EXPECT_EQ(refusal([&] { read_program(json, "m", registry()); }), "");
  json = sized(towers(12), 3'000).program_json();
  EXPECT_SAYS(refusal([&] { read_program(json, "m", registry()); }),
              "reading symbolic expressions takes more nodes than");
}

TEST(Limits, one_expression_weighs_200000_nodes) {
  EXPECT_EQ(refusal([&] { sym::parse(towers(12)); }), "");
  EXPECT_SAYS(refusal([&] { sym::parse(towers(40)); }), "more than the 200000 allowed");
}

ProgramText named(size_t length) {
  ProgramText p;
  p.user_input(std::string(length, 'x'), make_meta(DType::f32, {2}));
  p.user_output(std::string(length, 'x'));
  return p;
}

TEST(Limits, a_name_has_2000_characters) {
  EXPECT_EQ(refusal([] { read_program(named(2'000).program_json(), "m", registry()); }), "");
  EXPECT_SAYS(refusal([] { read_program(named(2'001).program_json(), "m", registry()); }),
              "a name has 2001 characters; at most 2000 are allowed");
}

TEST(Limits, a_tensor_has_64_dimensions) {
  auto ranked = [](size_t rank) {
    ProgramText p;
    p.user_input("x", make_meta(DType::f32, Sizes(rank, SymInt(1))));
    p.user_output("x");
    return p.program_json();
  };
  EXPECT_EQ(refusal([&] { read_program(ranked(64), "m", registry()); }), "");
  EXPECT_SAYS(refusal([&] { read_program(ranked(65), "m", registry()); }), "has 65 dimensions; at most 64 are allowed");
}

TEST(Limits, a_message_has_1000_characters) {
  ProgramText p;
  TensorMeta meta;
  for (int i = 0; i < 64; ++i) {
    meta.sizes.push_back(1'000'000'007);
    meta.strides.push_back(1'000'000'007);
  }
  p.user_input("x", meta);
  p.user_output("x");
  std::string message = refusal([&] { read_program(p.program_json(), "m", registry()); });
  EXPECT_NE(message, "");
  EXPECT_LE(message.size(), longest_message);
}

// A megabyte that asks for more than its share in each way there is.
TEST(Limits, a_small_file_does_not_make_a_large_one) {
  std::string path = text(testing::TempDir(), "tenon_limits_", ::getpid(), ".pt2");
  std::string deep = R"({"a": [)" + repeated("[],", 40'000'000) + "[]]}";
  write_file_atomically(path, archive_of({{"m/archive_format", "pt2"},
                                          {"m/archive_version", "0"},
                                          {"m/.data/version", "6"},
                                          {"m/models/model.json", deep}},
                                         true));
  EXPECT_LT(read_file(path).size(), 1'000'000u);
  EXPECT_SAYS(refusal([&] { open_program(path); }), "than a file of its size may take");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace tenon
