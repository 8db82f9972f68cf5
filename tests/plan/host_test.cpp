#include "tenon/plan/host.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tenon/rules/registry.h"

namespace tenon::plan {
namespace {

using loop::BufferRef;
using loop::StepArg;

loop::Call call_of(const char* op, std::vector<StepArg> args, std::vector<StepArg> results) {
  const Op* found = registry().find(op);
  return {found, found->name(), std::move(args), std::move(results)};
}
std::vector<int64_t> numbers(const HostCall& call, const sym::Bindings& symbols = {}) {
  std::vector<int64_t> out;
  for (const loop::Param& p : call.params) out.push_back(loop::evaluate(p, symbols));
  return out;
}
int64_t bits(double x) {
  int64_t out = 0;
  std::memcpy(&out, &x, sizeof x);
  return out;
}

TEST(HostCall, tensors_are_inputs_in_the_order_of_the_schema_absent_ones_too) {
  HostCall c = host_call({}, call_of("aten::bincount", {BufferRef{3}, StepArg(), SymInt(5)}, {BufferRef{4}}));
  EXPECT_EQ(c.function, "bincount");
  EXPECT_EQ(c.inputs, (std::vector<BufferRef>{{3}, {}}));
  EXPECT_EQ(c.results, (std::vector<BufferRef>{{4}}));
  EXPECT_EQ(numbers(c), (std::vector<int64_t>{5}));
  EXPECT_FALSE(c.extent.has_value());
}

TEST(HostCall, lists_of_tensors_are_inputs_one_by_one) {
  HostCall c = host_call(
      {}, call_of("aten::index.Tensor", {BufferRef{1}, std::vector<BufferRef>{{}, {2}, {3}}}, {BufferRef{4}}));
  EXPECT_EQ(c.inputs, (std::vector<BufferRef>{{1}, {}, {2}, {3}}));
}

TEST(HostCall, numbers_are_words_and_what_may_be_absent_says_so) {
  SymInt s = SymInt::symbol("s0");
  HostCall c = host_call({}, call_of("aten::repeat_interleave.Tensor", {BufferRef{1}, s * 2}, {BufferRef{2}}));
  EXPECT_EQ(numbers(c, {{s, 4}}), (std::vector<int64_t>{1, 8}));
  c = host_call({}, call_of("aten::repeat_interleave.Tensor", {BufferRef{1}, StepArg()}, {BufferRef{2}}));
  EXPECT_EQ(numbers(c), (std::vector<int64_t>{0}));
  c = host_call({}, call_of("aten::_histogramdd_bin_edges",
                            {BufferRef{1}, Sizes{3, 4}, std::vector<double>{0, 1, 0.5, 2}, StepArg(), false},
                            {std::vector<BufferRef>{{2}, {3}}}));
  EXPECT_EQ(numbers(c), (std::vector<int64_t>{2, 3, 4, 1, 4, 0, bits(1), bits(0.5), bits(2), 0}));
  EXPECT_EQ(c.results.size(), 2u);
}

TEST(HostCall, a_string_is_its_length_and_its_bytes) {
  HostCall c = host_call({}, call_of("aten::_linalg_check_errors", {BufferRef{1}, "linalg.inv_ex", true}, {}));
  std::vector<int64_t> words = numbers(c);
  ASSERT_EQ(words.size(), 4u);
  EXPECT_EQ(words[0], 13);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(&words[1]), 13), "linalg.inv_ex");
  EXPECT_EQ(words[3], 1);
}

TEST(HostCall, sentences_name_the_operator_and_its_arguments) {
  HostCall c = host_call({}, call_of("aten::_linalg_check_errors", {BufferRef{1}, "linalg.inv_ex", true}, {}));
  int64_t given[] = {3, 7};
  EXPECT_EQ(filled_in(c.errors.at(0), given),
            "aten::_linalg_check_errors: 'linalg.inv_ex' failed for matrix 3 of the batch with error 7");
  given[0] = bits(0.25);
  EXPECT_EQ(filled_in("got {real} and {}", given), "got 0.25 and 7");
}

TEST(HostCall, a_function_of_elements_runs_in_chunks) {
  loop::Program program;
  SymInt s = SymInt::symbol("s0");
  program.buffers = {{DType::f32, {s, 3}, {}}, {DType::f32, {s, 3}, {}}};
  HostCall c = host_call(program, call_of("aten::special_airy_ai", {BufferRef{0}}, {BufferRef{1}}));
  EXPECT_EQ(c.extent, s * 3);
  EXPECT_EQ(c.grain, SymInt(elements_per_chunk));
}

}  // namespace
}  // namespace tenon::plan
