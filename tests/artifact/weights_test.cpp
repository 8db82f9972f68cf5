// Weights kept in half precision: what is rounded, what it saves, and that results are those of the rounded weights.
#include <gtest/gtest.h>

#include <bit>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

constexpr std::string_view two_layers = R"(%p_a: f32[40, 33] = input()
%p_c: f32[40] = input()
%p_b: f32[33, 40] = input()
%x: f32[S, 33] = input()
%h: f32[S, 40] = aten::linear(%x, %p_a, %p_c)
%r: f32[S, 40] = aten::relu(%h)
%y: f32[S, 33] = aten::linear(%r, %p_b)
return %y
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Tensor uneven(const Sizes& sizes, float scale) {
  Tensor t = counting(sizes);
  for (int64_t i = 0; i < t.numel().as_int(); ++i)
    t.mutable_data<float>()[i] = scale * static_cast<float>((i * 7919) % 1009 - 504);
  return t;
}

/// To the nearest number with so many bits behind the first one; the values here are far from the ends of the formats.
Tensor rounded(const Tensor& t, int bits) {
  Tensor out = contiguous_copy(t);
  for (int64_t i = 0; i < out.numel().as_int(); ++i) {
    float& x = out.mutable_data<float>()[i];
    const uint32_t raw = std::bit_cast<uint32_t>(x), drop = static_cast<uint32_t>(23 - bits);
    const uint32_t half = (1u << (drop - 1)) - 1 + (raw >> drop & 1);
    x = std::bit_cast<float>((raw + half) >> drop << drop);
  }
  return out;
}

struct Made {
  std::shared_ptr<const CompiledProgram> program;
  size_t bytes = 0;
};

Made made(std::string_view graph, const std::vector<std::pair<std::string, Tensor>>& weights,
          std::optional<DType> kept_as, bool updatable = false) {
  ExportedProgram program = program_of(graph);
  for (const auto& [name, value] : weights)
    for (auto& entry : program.state)
      if (entry.name == name) entry.tensor = value;
  WalkOptions options;
  options.packing.weights = kept_as;
  Walk walk(program, options);
  Compilable ready = prepare_to_compile(walk);
  std::vector<std::byte> bytes = compile_program(*ready.executable, *ready.state, {.updatable = updatable});
  return {CompiledProgram::open(bytes, {}), bytes.size()};
}

std::vector<float> run(const Made& made, const std::vector<CallArg>& inputs) {
  CompiledState state(made.program);
  return values_of(CompiledSession(made.program).run(state, inputs).outputs[0].as<Tensor>());
}

struct HalfCase {
  DType dtype;
  int bits;
};
const HalfCase half_cases[] = {{DType::f16, 10}, {DType::bf16, 7}};

TEST(HalfWeights, ResultsAreThoseOfTheRoundedWeights) {
  const Tensor a = uneven({40, 33}, 0.011f), b = uneven({33, 40}, 0.007f), c = uneven({40}, 0.013f);
  for (const HalfCase& half : half_cases)
    for (const char* rows : {"1", "5", "70"}) {
      const std::string graph = with(std::string(two_layers), "S", rows);
      const std::vector<CallArg> x = {uneven({std::stoi(rows), 33}, 0.1f)};
      const Made kept = made(graph, {{"a", a}, {"b", b}, {"c", c}}, half.dtype);
      const Made plain = made(graph, {{"a", rounded(a, half.bits)}, {"b", rounded(b, half.bits)}, {"c", c}}, {});
      EXPECT_EQ(run(kept, x), run(plain, x)) << half.bits << " " << rows;
      EXPECT_NE(run(kept, x), run(made(graph, {{"a", a}, {"b", b}, {"c", c}}, {}), x));
    }
}

TEST(HalfWeights, AreHalfTheBytes) {
  const std::string graph = with(with(with(std::string(two_layers), "S", "1"), "40", "640"), "33", "512");
  const std::vector<std::pair<std::string, Tensor>> weights = {{"a", uneven({640, 512}, 1)},
                                                               {"b", uneven({512, 640}, 1)}};
  const size_t wide = made(graph, weights, {}).bytes, half = made(graph, weights, DType::bf16).bytes;
  EXPECT_LT(half + 2 * 640 * 512 * 2 - 600'000, wide);  // less the code that multiplies with halves
}

TEST(HalfWeights, ThoseThatAreSetLaterAreRoundedToo) {
  const std::string graph = with(std::string(two_layers), "S", "3");
  const Tensor a = uneven({40, 33}, 0.011f), b = uneven({33, 40}, 0.007f), x = uneven({3, 33}, 0.1f);
  const Made kept = made(graph, {}, DType::bf16, true);
  CompiledState state(kept.program);
  state.set("a", a);
  state.set("b", b);
  EXPECT_EQ(values_of(CompiledSession(kept.program).run(state, {x}).outputs[0].as<Tensor>()),
            run(made(graph, {{"a", rounded(a, 7)}, {"b", rounded(b, 7)}}, {}), {x}));
  EXPECT_EQ(values_of(state.get("a")), values_of(a));
}

TEST(HalfWeights, AVocabularyIsLookedUpInThem) {
  constexpr std::string_view graph = R"(%p_w: f32[50, 24] = input()
%i: i64[4] = input()
%e: f32[4, 24] = aten::embedding(%p_w, %i)
%y: f32[4, 50] = aten::linear(%e, %p_w)
return %e
return %y
)";
  const Tensor w = uneven({50, 24}, 0.011f);
  for (const HalfCase& half : half_cases)
    for (int64_t first : {0, 4, 9, 13, 16, 49}) {
      const std::vector<CallArg> i = {integers({4}, {first, 49, 31, 7})};
      EXPECT_EQ(run(made(graph, {{"w", w}}, half.dtype), i), run(made(graph, {{"w", rounded(w, half.bits)}}, {}), i));
    }
}

TEST(HalfWeights, ANumberBeyondTheirRangeIsRefused) {
  const std::string graph = with(std::string(two_layers), "S", "3");
  Tensor a = uneven({40, 33}, 1);
  a.mutable_data<float>()[100] = 65519;
  EXPECT_NO_THROW(made(graph, {{"a", a}}, DType::f16));
  a.mutable_data<float>()[100] = -65520;
  try {
    made(graph, {{"a", a}}, DType::f16);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "weights in f16: 'p_a' has a number that is too large for it; expected bf16 or f32");
  }
  EXPECT_NO_THROW(made(graph, {{"a", a}}, DType::bf16));
}

}  // namespace
}  // namespace tenon::artifact
