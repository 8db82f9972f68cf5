// Every program of tests/data/pt2 and its gradients, as lowered, fused and packed: the same bits, or nearly so where
// scales were folded into weights.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tenon/export/runnable.h"
#include "tenon/pipeline.h"
#include "tenon/rules/call.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.sizes() != b.sizes() || a.strides() != b.strides()) return false;
  Tensor x = contiguous_copy(a), y = contiguous_copy(b);
  return std::memcmp(x.bytes(), y.bytes(), static_cast<size_t>(x.numel().as_int()) * item_size(x.dtype())) == 0;
}

bool nearly_equal(const Tensor& a, const Tensor& b) {
  if (same_bits(a, b)) return true;
  if (a.dtype() != DType::f32 || b.dtype() != DType::f32 || a.sizes() != b.sizes()) return false;
  std::vector<float> x = values_of(contiguous_copy(a)), y = values_of(contiguous_copy(b));
  float largest = 0;
  for (float v : y) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < x.size(); ++i)
    if (!(std::abs(x[i] - y[i]) <= 2e-5f * largest)) return false;
  return true;
}

using Named = std::vector<std::pair<std::string, Tensor>>;
Named tensors_of(const RunResult& r) {
  Named out;
  for (size_t i = 0; i < r.outputs.size(); ++i)
    if (auto* t = r.outputs[i].get<Tensor>(); t && *t) out.emplace_back(text("output_", i), *t);
  for (const Named* list : {&r.buffers, &r.parameters, &r.inputs, &r.gradients})
    out.insert(out.end(), list->begin(), list->end());
  return out;
}

/// The results, or the sentence of the error.
std::pair<Named, std::string> results_of(const ExportedProgram& program, const FunctionalProgram& functional,
                                         const std::vector<CallArg>& inputs, StageName until) {
  std::vector<CallArg> own;
  for (const CallArg& a : inputs)
    own.push_back(map_tensors<Tensor>(a, [](const Tensor& t) { return t ? contiguous_copy(t) : t; }));
  own.resize(functional.convention.user_inputs.size());  // cotangents are ones
  try {
    std::unique_ptr<State> state = state_of(program, 7);
    Session session(prepare(functional, until));
    return {tensors_of(session.run(*state, own, {.absent_are_ones = true})), ""};
  } catch (const Error& e) { return {{}, e.what()}; }
}

size_t compare(const ExportedProgram& program, const FunctionalProgram& functional,
               const std::vector<CallArg>& inputs) {
  auto [plain, plain_error] = results_of(program, functional, inputs, StageName::loops);
  auto [fused, fused_error] = results_of(program, functional, inputs, StageName::fused);
  EXPECT_EQ(fused_error, plain_error);
  EXPECT_EQ(fused.size(), plain.size());
  for (size_t i = 0; i < std::min(fused.size(), plain.size()); ++i)
    EXPECT_TRUE(same_bits(fused[i].second, plain[i].second)) << plain[i].first;
  auto [packed, packed_error] = results_of(program, functional, inputs, StageName::packed);
  EXPECT_EQ(packed_error, plain_error);
  EXPECT_EQ(packed.size(), plain.size());
  for (size_t i = 0; i < std::min(packed.size(), plain.size()); ++i)
    EXPECT_TRUE(nearly_equal(packed[i].second, plain[i].second)) << plain[i].first;
  return plain.size();
}

TEST(SameBits, EveryProgramAndItsGradientsComeOutAsLowered) {
  size_t programs = 0, joints = 0, results = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TENON_TEST_DATA "/pt2")) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path().string());
    try {
      ExportedProgram program = open_program(entry.path().string());
      if (why_not_runnable(program) || !program.samples) continue;
      std::vector<CallArg> inputs = program.samples()->leaves;
      Walk walk(program, {.wrt = parse_wrt("all"), .inputs = inputs});
      results += compare(program, walk.functional(), inputs);
      ++programs;
      ExportedProgram joint = differentiate(walk);
      results += compare(joint, functionalize(joint), inputs);
      ++joints;
    } catch (const Error&) {}  // one that Tenon refuses: the sentence is tested elsewhere
  }
  EXPECT_GT(programs, 200u);
  EXPECT_GT(joints, 200u);
  EXPECT_GT(results, 1000u);
}

/// Numbers of both signs without a pattern that a wrong order would keep.
Tensor uneven(Sizes sizes) {
  Tensor out = counting(std::move(sizes));
  float* values = out.mutable_data<float>();
  for (int64_t i = 0; i < out.numel().as_int(); ++i) values[i] = std::sin(static_cast<float>(i * i % 1009));
  return out;
}

TEST(SameBits, ChannelsSplitMergedAndShuffledBetweenConvolutions) {
  const char* bodies[] = {// groups of channels change places, as ShuffleNet does it
                          R"(%g: f32[1, 2, 8, 6, 6] = aten::view(%a, [1, 2, 8, 6, 6])
%t: f32[1, 8, 2, 6, 6] = aten::transpose.int(%g, 1, 2)
%n: f32[1, 8, 2, 6, 6] = aten::clone(%t, memory_format=torch.contiguous_format)
%s: f32[1, 16, 6, 6] = aten::view(%n, [1, 16, 6, 6])
)",
                          // a half of a buffer of two by eight channels is four of the first dimension
                          R"(%g: f32[1, 2, 8, 6, 6] = aten::view(%a, [1, 2, 8, 6, 6])
%r: f32[1, 2, 8, 6, 6] = aten::flip(%g, [1])
%m: f32[1, 16, 6, 6] = aten::view(%r, [1, 16, 6, 6])
%h: f32[1, 8, 6, 6] = aten::slice.Tensor(%m, 1, 4, 12)
%s: f32[1, 16, 6, 6] = aten::cat([%h, %h], 1)
)",
                          // places become channels and back
                          R"(%u: f32[1, 64, 3, 3] = aten::pixel_unshuffle(%a, 2)
%d: f32[1, 64, 3, 3] = aten::relu(%u)
%s: f32[1, 16, 6, 6] = aten::pixel_shuffle(%d, 2)
)"};
  for (const char* body : bodies) {
    SCOPED_TRACE(body);
    ExportedProgram program =
        program_of(R"(%w: f32[16, 16, 1, 1] = input()
%v: f32[16, 16, 3, 3] = input()
%x: f32[1, 16, 6, 6] = input()
%a: f32[1, 16, 6, 6] = aten::convolution(%x, %w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
)" + std::string(body) +
                   R"(%b: f32[1, 16, 6, 6] = aten::convolution(%s, %v, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
%y: f32[1, 16, 6, 6] = aten::convolution(%b, %w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
return %y
)");
    compare(program, functionalize(program), {uneven({16, 16, 1, 1}), uneven({16, 16, 3, 3}), uneven({1, 16, 6, 6})});
  }
}

}  // namespace
}  // namespace tenon
