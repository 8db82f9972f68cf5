// What nodes claim of each other: files that are well-formed, and say of a value what the operators do not give.
#include <gtest/gtest.h>

#include "tenon/base/file.h"
#include "tenon/export/serde/load.h"
#include "tenon/passes/check_metas.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tests/hostile/program_text.h"
#include "tests/hostile/sample_values.h"
#include "tests/hostile/whole_way.h"

namespace tenon {
namespace {

TensorMeta f32(Sizes sizes) { return make_meta(DType::f32, std::move(sizes)); }
const SymInt s0 = SymInt::symbol("s0", {.positive = true});
const std::string s0_text = "Symbol('s0', positive=True, integer=True)";

std::string as_number(std::string_view name) { return text(R"({"as_sym_int": {"as_name": ")", name, "\"}}"); }

/// A program over x: f32[s0, 3] with s0 = 4 for the example inputs.
ProgramText start() {
  ProgramText p;
  p.range("s0", 2, 10);
  p.user_input("x", f32({s0, 3}));
  return p;
}

std::string refusal(const ProgramText& p) {
  try {
    ExportedProgram program = read_program(p.program_json(), "m.pt2", registry());
    verify(program);
    check_metas(program.graph.body(), program.hints);
  } catch (const Error& error) { return error.what(); }
  return "";
}

#define EXPECT_SAYS(message, part) EXPECT_NE((message).find(part), std::string::npos) << "says: " << (message)

TEST(Claims, strides_are_not_negative) {
  ProgramText p;
  TensorMeta backwards = f32({4, 3});
  backwards.strides[0] = SymInt(-3);
  p.user_input("x", backwards);
  p.user_output("x");
  EXPECT_SAYS(refusal(p), "a stride is negative: -3");
}

TEST(Claims, a_gradient_of_a_pad_has_the_sizes_of_what_was_padded) {
  ProgramText p;
  p.user_input("g", f32({1, 4, 6}));
  p.user_input("x", f32({1, 2, 4, 3}));
  p.tensor("y", f32({1, 2, 4, 3}));
  p.node("torch.ops.aten.replication_pad2d_backward.default",
         {{"grad_output", as_tensor("g")}, {"self", as_tensor("x")}, {"padding", R"({"as_ints": [1, 2, 0, 0]})"}},
         {as_tensor("y")});
  p.user_output("y");
  EXPECT_SAYS(refusal(p), "grad_output");
}

TEST(Claims, dims_of_a_reduction_are_numbers) {
  ProgramText p = start();
  p.number("n", as_expr(s0_text, 4));
  p.node("torch.ops.aten.sym_size.int", {{"self", as_tensor("x")}, {"dim", R"({"as_int": 0})"}}, {as_number("n")});
  p.tensor("y", f32({s0}));
  p.node("torch.ops.aten.amax.default",
         {{"self", as_tensor("x")},
          {"dim", R"({"as_sym_ints": [{"as_name": "n"}]})"},
          {"keepdim", R"({"as_bool": false})"}},
         {as_tensor("y")});
  p.user_output("y");
  EXPECT_SAYS(refusal(p), "dim");
}

TEST(Claims, where_a_schema_says_int_there_is_a_number) {
  ProgramText p = start();
  p.number("n", as_expr(s0_text, 4));
  p.node("torch.ops.aten.sym_size.int", {{"self", as_tensor("x")}, {"dim", R"({"as_int": 0})"}}, {as_number("n")});
  p.tensor("y", f32({s0, 6}));
  p.node("torch.ops.aten.repeat_interleave.self_int",
         {{"self", as_tensor("x")}, {"repeats", R"({"as_int": 2})"}, {"dim", as_number("n")}}, {as_tensor("y")});
  p.user_output("y");
  EXPECT_SAYS(refusal(p), "argument dim: expected int? that is known before the program runs, got s0");
}

TEST(Claims, a_truth_value_is_no_dimension) {
  ProgramText p = start();
  p.bools = R"("b": {"as_bool": false})";
  p.node("torch.sym_not", {{"", R"({"as_bool": true})"}}, {R"({"as_sym_bool": {"as_name": "b"}})"});
  p.tensor("y", make_meta(DType::c64, {s0, 3}));
  p.node("torch.ops.aten.fft_fft.default", {{"self", as_tensor("x")}, {"dim", R"({"as_sym_bool": {"as_name": "b"}})"}},
         {as_tensor("y")});
  p.user_output("y");
  EXPECT_SAYS(refusal(p), "argument dim: expected int, got False");
}

TEST(Claims, a_state_of_random_numbers_is_two_integers) {
  ProgramText p = start();
  p.tensor("y", make_meta(DType::i64, {7}));
  p.node("torch.ops.tenon.random_permutation.default",
         {{"state", as_tensor("x")},
          {"stream", R"({"as_int": 0})"},
          {"n", R"({"as_int": 7})"},
          {"dtype", R"({"as_scalar_type": 5})"}},
         {as_tensor("y")});
  p.user_output("y");
  EXPECT_SAYS(refusal(p), "state: expected i64[2], got f32[s0, 3]");
}

// What is not supported is described by the file alone, so no gradient rule may rely on it.
TEST(Claims, calls_that_are_not_supported_are_not_differentiated) {
  ProgramText p;
  p.user_input("x", make_meta(DType::c64, {3}));
  p.tensor("y", f32({}));
  p.node("torch.ops.aten._adaptive_avg_pool3d_backward.default",
         {{"grad_output", as_tensor("x")}, {"self", as_tensor("x")}}, {as_tensor("y")});
  p.user_output("y");
  Journey journey = go_the_whole_way(p.program_json());
  EXPECT_TRUE(journey.functional);
  EXPECT_FALSE(journey.joint);
}

TEST(Claims, numbers_are_not_computed_from_tensors) {
  ProgramText p = start();
  p.tensor("m", f32({2}));
  p.node("torch.sym_min", {{"", as_tensor("x")}, {"", R"({"as_int": 1})"}}, {as_tensor("m")});
  p.user_output("m");
  EXPECT_SAYS(refusal(p), "node torch.sym_min: expected numbers, got %x");
}

TEST(Claims, an_operator_on_numbers_gives_a_number) {
  ProgramText p = start();
  p.tensor("m", f32({2}));
  p.node("torch.sym_min", {{"", R"({"as_int": 2})"}, {"", R"({"as_int": 1})"}}, {as_tensor("m")});
  p.user_output("m");
  EXPECT_SAYS(refusal(p), "torch.sym_min: expected a number as its result, found %m");
}

ProgramText with_size(std::string_view expr, int64_t dim) {
  ProgramText p = start();
  p.number("n", expr);
  p.node("torch.ops.aten.sym_size.int", {{"self", as_tensor("x")}, {"dim", text(R"({"as_int": )", dim, "}")}},
         {as_number("n")});
  p.tensor("r", f32({s0, 3}));
  p.node("torch.ops.aten.relu.default", {{"self", as_tensor("x")}}, {as_tensor("r")});
  p.user_output("r");
  return p;
}

TEST(Claims, the_size_of_a_tensor_is_the_one_recorded) {
  EXPECT_EQ(refusal(with_size(as_expr(s0_text, 4), 0)), "");
  EXPECT_EQ(refusal(with_size(R"({"as_int": 3})", 1)), "");
  EXPECT_SAYS(refusal(with_size(R"({"as_int": 7})", 1)), "is described as 7, but the operator gives 3");
  EXPECT_SAYS(refusal(with_size(as_expr(text("Add(", s0_text, ", Integer(1))"), 5), 0)),
              "is described as s0 + 1, but the operator gives s0");
  EXPECT_SAYS(refusal(with_size(R"({"as_int": 3})", 5)), "its arguments do not go together");
}

TEST(Claims, what_is_computed_from_sizes_is_computed_again) {
  auto doubled = [](std::string_view expr) {
    ProgramText p = with_size(as_expr(s0_text, 4), 0);
    p.number("d", expr);
    p.node("_operator.mul", {{"", as_number("n")}, {"", R"({"as_int": 2})"}}, {as_number("d")});
    return p;
  };
  EXPECT_EQ(refusal(doubled(as_expr(text("Mul(Integer(2), ", s0_text, ")"), 8))), "");
  EXPECT_SAYS(refusal(doubled(as_expr(text("Mul(Integer(3), ", s0_text, ")"), 12))),
              "is described as 3*s0, but the operator gives 2*s0");
  EXPECT_SAYS(refusal(doubled(R"({"as_int": 9})")), "is described as 9");
}

TEST(Claims, symbolic_sizes_are_compared_too) {
  ProgramText p = start();
  p.tensor("r", f32({s0 + 1, 3}));
  p.node("torch.ops.aten.relu.default", {{"self", as_tensor("x")}}, {as_tensor("r")});
  p.user_output("r");
  EXPECT_SAYS(refusal(p), "is described as f32[s0 + 1, 3], but the operator gives f32[s0, 3]");
}

TEST(Claims, a_result_that_is_left_out_is_no_tensor) {
  auto backward = [](const std::vector<std::string>& results) {
    ProgramText p;
    p.user_input("g", f32({1, 1, 2, 2}));
    p.user_input("i", f32({1, 1, 4, 4}));
    p.user_input("w", f32({1, 1, 3, 3}));
    p.tensor("gw", f32({1, 1, 3, 3}));
    if (results[0] != R"({"as_none": true})") p.tensor("gi", f32({1, 1, 4, 4}));
    p.node("torch.ops.aten.convolution_backward.default",
           {{"grad_output", as_tensor("g")},
            {"input", as_tensor("i")},
            {"weight", as_tensor("w")},
            {"bias_sizes", R"({"as_none": true})"},
            {"stride", R"({"as_ints": [1, 1]})"},
            {"padding", R"({"as_ints": [0, 0]})"},
            {"dilation", R"({"as_ints": [1, 1]})"},
            {"transposed", R"({"as_bool": false})"},
            {"output_padding", R"({"as_ints": [0, 0]})"},
            {"groups", R"({"as_int": 1})"},
            {"output_mask", R"({"as_bools": [false, true, false]})"}},
           results);
    p.user_output("gw");
    return p;
  };
  EXPECT_EQ(refusal(backward({R"({"as_none": true})", as_tensor("gw"), R"({"as_none": true})"})), "");
  EXPECT_SAYS(refusal(backward({as_tensor("gi"), as_tensor("gw"), R"({"as_none": true})"})),
              "its result 'gi' is described as f32[1, 1, 4, 4], but the operator gives None");
}

TEST(Claims, a_tensor_is_no_number_though_nobody_reads_it) {
  ProgramText p = start();
  p.tensor("r", f32({s0, 3}));
  p.node("torch.ops.aten.relu.default", {{"self", as_tensor("x")}}, {as_tensor("r")});
  p.node("torch.ops.aten.abs.default", {{"self", as_tensor("x")}}, {R"({"as_int": 3})"});
  p.user_output("r");
  EXPECT_SAYS(refusal(p), "a result is described as a number, but the operator gives a tensor");
}

/// A region around relu, whose node says it gives `said`.
ProgramText region(const TensorMeta& said, bool autocast, const TensorMeta& inner = f32({s0, 3})) {
  GraphText body;
  body.tensor("x", f32({s0, 3}));
  body.input(as_tensor("x"));
  body.tensor("r", inner);
  body.node("torch.ops.aten.relu.default", {{"self", as_tensor("x")}}, {as_tensor("r")});
  body.output(as_tensor("r"));
  ProgramText p = start();
  p.tensor("y", said);
  std::string graph = text(R"({"as_graph": {"name": "g", "graph": )", body.json(), "}}");
  std::vector<std::pair<std::string, std::string>> args = {
      {"", R"({"as_bool": false})"}, {"", graph}, {"", as_tensor("x")}};
  if (autocast)
    args = {{"", R"({"as_string": "cpu"})"},
            {"", R"({"as_scalar_type": 13})"},
            {"", R"({"as_bool": true})"},
            {"", R"({"as_bool": true})"},
            {"", graph},
            {"", as_tensor("x")}};
  p.node(autocast ? "torch.ops.higher_order.wrap_with_autocast" : "torch.ops.higher_order.wrap_with_set_grad_enabled",
         args, {as_tensor("y")});
  p.user_output("y");
  return p;
}

TEST(Claims, results_of_regions_are_what_their_graphs_give) {
  for (bool autocast : {false, true}) {
    EXPECT_EQ(refusal(region(f32({s0, 3}), autocast)), "");
    EXPECT_SAYS(refusal(region(f32({s0, 4}), autocast)),
                "its result 'y' is described as f32[s0, 4], but its graph gives f32[s0, 3]");
    EXPECT_SAYS(refusal(region(make_meta(DType::f64, {s0, 3}), autocast)), "but its graph gives f32[s0, 3]");
  }
}

TEST(Claims, shapes_are_checked_within_autocast) {
  EXPECT_EQ(refusal(region(make_meta(DType::bf16, {s0, 3}), true, make_meta(DType::bf16, {s0, 3}))), "");
  EXPECT_SAYS(refusal(region(f32({s0, 4}), true, f32({s0, 4}))),
              "is described as f32[s0, 4], but the operator gives f32[s0, 3]");
}

TEST(Claims, gradients_of_pools_have_the_dimensions_of_images) {
  auto pool = [](std::string_view target, Sizes self, Sizes grad) {
    ProgramText p;
    p.user_input("x", f32(self));
    p.user_input("g", f32(grad));
    p.user_input("i", make_meta(DType::i64, grad));
    p.tensor("r", f32(self));
    std::vector<std::pair<std::string, std::string>> args = {
        {"grad_output", as_tensor("g")}, {"self", as_tensor("x")}, {"indices", as_tensor("i")}};
    if (target.find("with_indices") != target.npos)
      args.insert(args.begin() + 2, {{"kernel_size", R"({"as_ints": [2, 2]})"},
                                     {"stride", R"({"as_ints": [2, 2]})"},
                                     {"padding", R"({"as_ints": [0, 0]})"},
                                     {"dilation", R"({"as_ints": [1, 1]})"},
                                     {"ceil_mode", R"({"as_bool": false})"}});
    p.node(target, args, {as_tensor("r")});
    p.user_output("r");
    return p;
  };
  for (std::string_view target : {"torch.ops.aten.adaptive_max_pool2d_backward.default",
                                  "torch.ops.aten.max_pool2d_with_indices_backward.default"}) {
    EXPECT_EQ(refusal(pool(target, {2, 3, 4, 4}, {2, 3, 2, 2})), "");
    EXPECT_SAYS(refusal(pool(target, {4}, {4})), "expected an input of 3 or 4 dimensions");
    EXPECT_SAYS(refusal(pool(target, {2, 3, 4, 4}, {2})), "grad_output: expected the dimensions of the input");
    EXPECT_SAYS(refusal(pool(target, {2, 3, 4, 4}, {5, 3, 2, 2})), "grad_output: expected the dimensions of the input");
  }
  EXPECT_SAYS(refusal(pool("torch.ops.aten.adaptive_max_pool3d_backward.default", {4, 4}, {4, 4})),
              "expected an input of 4 or 5 dimensions");
}

TEST(Claims, names_hold_nothing_that_a_terminal_acts_on) {
  ProgramText p = start();
  p.tensor("r\x1b[31m", f32({s0, 3}));
  p.node("torch.ops.aten.relu.default", {{"self", as_tensor("x")}}, {as_tensor("r\x1b[31m")});
  p.user_output("r\x1b[31m");
  EXPECT_SAYS(refusal(p), "the name 'r\\x1b[31m' holds characters that cannot be shown");
}

TEST(Claims, an_empty_view_far_behind_its_storage_is_read_by_nobody) {
  ProgramText p;
  p.user_input("x", f32({4}));
  TensorMeta far = f32({0});
  far.offset = int64_t{1} << 44;
  p.tensor("far", far);
  p.node("torch.ops.aten.as_strided.default",
         {{"self", as_tensor("x")},
          {"size", R"({"as_ints": [0]})"},
          {"stride", R"({"as_ints": [1]})"},
          {"storage_offset", R"({"as_int": 17592186044416})"}},
         {as_tensor("far")});
  p.node("torch.ops.aten._assert_async.msg", {{"self", as_tensor("far")}, {"assert_msg", R"({"as_string": "no"})"}},
         {});
  p.user_output("far");
  EXPECT_FALSE(go_the_whole_way(p.program_json()).ran);
}

TEST(Claims, pieces_are_not_of_negative_size) {
  for (auto [op, argument] :
       {std::pair{"split.Tensor", std::pair{"split_size", R"({"as_int": -1})"}},
        std::pair{"split_copy.Tensor", std::pair{"split_size", R"({"as_int": -1})"}},
        std::pair{"split_with_sizes.default", std::pair{"split_sizes", R"({"as_ints": [4, -1]})"}}}) {
    ProgramText p;
    p.user_input("x", f32({3, 2}));
    p.tensor("a", f32({3, 2}));
    p.node(text("torch.ops.aten.", op), {{"self", as_tensor("x")}, {argument.first, argument.second}},
           {R"({"as_tensors": [{"name": "a"}]})"});
    p.user_output("a");
    EXPECT_SAYS(refusal(p), "expected pieces of a size of at least 0, got -1");
  }
}

// Not walked row by row, by code either.
TEST(Claims, many_rows_of_nothing_take_no_time) {
  ProgramText p;
  TensorMeta rows = f32({int64_t{1} << 40, 0}), both = rows;
  rows.strides = {0, 1};  // two loops: they are not one
  both.strides = {1, 1};
  p.user_input("x", f32({1, 0}));
  p.tensor("rows", rows);
  p.node("torch.ops.aten.expand.default", {{"self", as_tensor("x")}, {"size", R"({"as_ints": [1099511627776, 0]})"}},
         {as_tensor("rows")});
  p.tensor("y", both);
  p.node("torch.ops.aten.exp.default", {{"self", as_tensor("rows")}}, {as_tensor("y")});
  p.user_output("y");
  EXPECT_TRUE(go_the_whole_way(p.program_json(), Ways::all).ran);
}

// The rows of a loop's result go by a symbol that is no longer any input's.
TEST(Claims, rows_of_a_result_that_nobody_tells_are_not_written) {
  std::string json = read_file(TENON_FUZZ_FOLDER "/seeds/program/n_map_over_rows.json");
  size_t size_of_x = json.find("Symbol('s77'");
  ASSERT_NE(size_of_x, json.npos);
  json.replace(size_of_x, 12, "Symbol('s78'");
  ExportedProgram program = read_program(json, "m.pt2", registry());
  provide_state(program);
  verify(program);
  check_metas(program.graph.body(), program.hints);
  try {
    run_program(program, sample_arguments(program));
    ADD_FAILURE() << "it ran";
  } catch (const Error& error) { EXPECT_SAYS(std::string(error.what()), "no input and no data tell how much that is"); }
}

}  // namespace
}  // namespace tenon
