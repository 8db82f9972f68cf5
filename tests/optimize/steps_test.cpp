// How many steps programs are compiled to: the bars that tell a regression of speed without a clock.
#include <gtest/gtest.h>

#include "tenon/base/text.h"
#include "tenon/pipeline.h"
#include "tenon/plan/make_tables.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

/// What is called at every run, in words.
std::vector<std::string> steps_of(std::string_view graph) {
  auto executable = prepare(functionalize(program_of(graph)));
  return plan::make_tables(executable->program, executable->convention, {.described = true}).steps;
}
size_t count_of(std::string_view graph) { return steps_of(graph).size(); }

TEST(Steps, LayerNormWithTheResidualBeforeItIsOneKernel) {
  EXPECT_EQ(count_of(R"(%x: f32[128, 768] = input()
%r: f32[128, 768] = input()
%w: f32[768] = input()
%b: f32[768] = input()
%s: f32[128, 768] = aten::add.Tensor(%x, %r)
%y: f32[128, 768] = aten::layer_norm(%s, [768], %w, %b)
return %y
)"),
            1u);
}

TEST(Steps, RootMeanSquareNormIsOneKernel) {
  EXPECT_EQ(count_of(R"(%x: f32[128, 512] = input()
%w: f32[512] = input()
%y: f32[128, 512] = aten::rms_norm(%x, [512], %w, 1e-05)
return %y
)"),
            1u);
}

TEST(Steps, SoftmaxItsLogarithmAndTheGradientOfEachAreOneKernel) {
  for (std::string op : {"_softmax", "_log_softmax"}) {
    EXPECT_EQ(count_of("%x: f32[64, 1000] = input()\n%y: f32[64, 1000] = aten::" + op + "(%x, 1, False)\nreturn %y\n"),
              1u)
        << op;
    EXPECT_EQ(count_of("%g: f32[64, 1000] = input()\n%x: f32[64, 1000] = input()\n%y: f32[64, 1000] = aten::" + op +
                       "_backward_data(%g, %x, 1, f32)\nreturn %y\n"),
              1u)
        << op;
  }
}

TEST(Steps, AMaskedSoftmaxOverHeadsIsOneKernel) {
  EXPECT_EQ(count_of(R"(%x: f32[2, 12, 128, 128] = input()
%m: f32[2, 1, 128, 128] = input()
%s: f32[2, 12, 128, 128] = aten::mul.Scalar(%x, 0.125)
%a: f32[2, 12, 128, 128] = aten::add.Tensor(%s, %m)
%y: f32[2, 12, 128, 128] = aten::_softmax(%a, 3, False)
return %y
)"),
            1u);
}

TEST(Steps, RowsOfSizesThatOnlyTheRunTellsAreOneKernelToo) {
  EXPECT_EQ(count_of(R"(%x: f32[s0, s1] = input()
%y: f32[s0, s1] = aten::_softmax(%x, 1, False)
return %y
)"),
            1u);
}

TEST(Steps, SmallStagesShareACall) {
  EXPECT_EQ(count_of(R"(%x: f32[10] = input()
%y: f32[10] = input()
%m: f32[] = aten::mean(%x)
%a: f32[10] = aten::sub.Tensor(%x, %m)
%n: f32[] = aten::mean(%y)
%b: f32[10] = aten::sub.Tensor(%y, %n)
return %a
return %b
)"),
            1u);
}

TEST(Steps, FewLongRowsKeepTheirThreads) {
  EXPECT_GT(count_of(R"(%x: f32[2, 1000000] = input()
%y: f32[2, 1000000] = aten::_softmax(%x, 1, False)
return %y
)"),
            1u);
}

TEST(Steps, APerceptronOfThreeLayersIsThreeSteps) {
  EXPECT_EQ(count_of(R"(%p_a: f32[256, 64] = input()
%p_b: f32[256] = input()
%p_c: f32[256, 256] = input()
%p_d: f32[256] = input()
%p_e: f32[10, 256] = input()
%p_f: f32[10] = input()
%x: f32[1, 64] = input()
%h: f32[1, 256] = aten::linear(%x, %p_a, %p_b)
%i: f32[1, 256] = aten::relu(%h)
%j: f32[1, 256] = aten::linear(%i, %p_c, %p_d)
%k: f32[1, 256] = aten::relu(%j)
%y: f32[1, 10] = aten::linear(%k, %p_e, %p_f)
return %y
)"),
            3u);
}

TEST(Steps, ProductsOfTheSameInputAreOneStep) {
  std::vector<std::string> steps = steps_of(R"(%p_q: f32[64, 64] = input()
%p_k: f32[64, 64] = input()
%p_v: f32[128, 64] = input()
%x: f32[100, 64] = input()
%q: f32[100, 64] = aten::linear(%x, %p_q)
%k: f32[100, 64] = aten::linear(%x, %p_k)
%v: f32[100, 128] = aten::linear(%x, %p_v)
return %q
return %k
return %v
)");
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_NE(steps[0].find("and 2 like it"), std::string::npos) << steps[0];
}

TEST(Steps, AProductOfAProductIsAStepOfItsOwn) {
  EXPECT_EQ(count_of(R"(%p_a: f32[64, 64] = input()
%p_b: f32[64, 64] = input()
%x: f32[100, 64] = input()
%y: f32[100, 64] = aten::linear(%x, %p_a)
%z: f32[100, 64] = aten::linear(%y, %p_b)
return %z
)"),
            2u);
}

constexpr std::string_view bert_layer = R"(%p_qw: f32[256, 256] = input()
%p_qb: f32[256] = input()
%p_kw: f32[256, 256] = input()
%p_kb: f32[256] = input()
%p_vw: f32[256, 256] = input()
%p_vb: f32[256] = input()
%p_ow: f32[256, 256] = input()
%p_ob: f32[256] = input()
%p_n1: f32[256] = input()
%p_n2: f32[256] = input()
%p_uw: f32[1024, 256] = input()
%p_ub: f32[1024] = input()
%p_dw: f32[256, 1024] = input()
%p_db: f32[256] = input()
%p_n3: f32[256] = input()
%p_n4: f32[256] = input()
%x: f32[1, 128, 256] = input()
%q: f32[1, 128, 256] = aten::linear(%x, %p_qw, %p_qb)
%k: f32[1, 128, 256] = aten::linear(%x, %p_kw, %p_kb)
%v: f32[1, 128, 256] = aten::linear(%x, %p_vw, %p_vb)
%q1: f32[1, 128, 8, 32] = aten::view(%q, [1, 128, 8, 32])
%k1: f32[1, 128, 8, 32] = aten::view(%k, [1, 128, 8, 32])
%v1: f32[1, 128, 8, 32] = aten::view(%v, [1, 128, 8, 32])
%q2: f32[1, 8, 128, 32] = aten::transpose.int(%q1, 1, 2)
%k2: f32[1, 8, 128, 32] = aten::transpose.int(%k1, 1, 2)
%v2: f32[1, 8, 128, 32] = aten::transpose.int(%v1, 1, 2)
%a: f32[1, 8, 128, 32][32768, 32, 256, 1] = aten::scaled_dot_product_attention(%q2, %k2, %v2)
%a1: f32[1, 128, 8, 32] = aten::transpose.int(%a, 1, 2)
%a2: f32[1, 128, 256] = aten::reshape(%a1, [1, 128, 256])
%o: f32[1, 128, 256] = aten::linear(%a2, %p_ow, %p_ob)
%r: f32[1, 128, 256] = aten::add.Tensor(%o, %x)
%n: f32[1, 128, 256] = aten::layer_norm(%r, [256], %p_n1, %p_n2)
%u: f32[1, 128, 1024] = aten::linear(%n, %p_uw, %p_ub)
%g: f32[1, 128, 1024] = aten::gelu(%u)
%d: f32[1, 128, 256] = aten::linear(%g, %p_dw, %p_db)
%s: f32[1, 128, 256] = aten::add.Tensor(%d, %n)
%y: f32[1, 128, 256] = aten::layer_norm(%s, [256], %p_n3, %p_n4)
return %y
)";

/// The same for a batch of sequences.
std::string with_batch(std::string_view graph, const std::string& batch) {
  std::string out(graph);
  const std::string from = "[1, ", to = "[" + batch + ", ";
  for (size_t at = 0; (at = out.find(from, at)) != std::string::npos; at += to.size()) out.replace(at, from.size(), to);
  return out;
}

// Without the copy of heads that this text asks for, which exported programs do not have, it would be seven.
TEST(Steps, ALayerOfBertIsEightSteps) {
  std::vector<std::string> steps = steps_of(bert_layer);
  EXPECT_LE(steps.size(), 8u) << join(steps, "\n");
}

TEST(Steps, ALayerOfBertHasNoMoreStepsForABatchOfSequences) {
  std::vector<std::string> steps = steps_of(with_batch(bert_layer, "8"));
  EXPECT_LE(steps.size(), 8u) << join(steps, "\n");
}

/// The text of a network of images of 14 x 14 places.
class Network {
 public:
  Network(int channels) : inputs_("%x: " + image(channels) + " = input()\n") {}
  static std::string image(int channels, int places = 14) {
    const std::string p = std::to_string(places);
    return text("f32[1, ", channels, ", ", p, ", ", p, "]");
  }
  /// A convolution and, where asked for, the batch norm behind it in evaluation.
  void convolution(const std::string& name, const std::string& from, int in, int out, int taps, int groups = 1,
                   int places = 14, bool norm = true) {
    const std::string to = image(out, places), c = norm ? name + "c" : name;
    inputs_ += text("%p_", name, "w: f32[", out, ", ", in / groups, ", ", taps, ", ", taps, "] = input()\n");
    lines_ += text("%", c, ": ", to, " = aten::convolution(%", from, ", %p_", name, "w, None, [1, 1], [", taps / 2,
                   ", ", taps / 2, "], [1, 1], False, [0, 0], ", groups, ")\n");
    if (!norm) return;
    for (std::string part : {"p_g", "p_b", "b_m", "b_v"})
      inputs_ += text("%", part, "_", name, ": f32[", out, "] = input()\n");
    lines_ += text("%", name, ": ", to, " = aten::batch_norm(%", c, ", %p_g_", name, ", %p_b_", name, ", %b_m_", name,
                   ", %b_v_", name, ", False, 0.1, 1e-05, True)\n");
  }
  void call(const std::string& name, const std::string& meta, const std::string& call) {
    lines_ += "%" + name + ": " + meta + " = aten::" + call + "\n";
  }
  std::string returning(const std::string& name) const { return inputs_ + lines_ + "return %" + name + "\n"; }

 private:
  std::string inputs_, lines_;
};
size_t convolutions_in(const loop::Program& program) {
  return static_cast<size_t>(std::count_if(program.steps.begin(), program.steps.end(), [](const loop::Step& step) {
    return std::holds_alternative<loop::Convolution>(step);
  }));
}

TEST(Steps, AResidualBlockIsItsConvolutions) {
  Network n(32);
  n.convolution("a", "x", 32, 32, 3);
  n.call("r", Network::image(32), "relu(%a)");
  n.convolution("b", "r", 32, 32, 3);
  n.call("s", Network::image(32), "add.Tensor(%b, %x)");
  n.call("y", Network::image(32), "relu(%s)");
  const loop::Program p = prepare(functionalize(program_of(n.returning("y"))))->program;
  EXPECT_EQ(p.steps.size(), 2u) << to_text(p);
  EXPECT_EQ(convolutions_in(p), 2u);
}

TEST(Steps, AnInvertedBottleneckIsItsConvolutions) {
  Network n(16);
  n.convolution("a", "x", 16, 64, 1);
  n.call("r", Network::image(64), "relu(%a)");
  n.convolution("b", "r", 64, 64, 3, 64);
  n.call("q", Network::image(64), "relu(%b)");
  n.convolution("c", "q", 64, 16, 1);
  n.call("y", Network::image(16), "add.Tensor(%c, %x)");
  const loop::Program p = prepare(functionalize(program_of(n.returning("y"))))->program;
  EXPECT_EQ(p.steps.size(), 3u) << to_text(p);
  EXPECT_EQ(convolutions_in(p), 3u);
}

TEST(Steps, SqueezeAndExciteIsAMeanTwoProductsAndAFactor) {
  Network n(64);
  n.convolution("b", "x", 64, 64, 3, 64);
  n.call("r", Network::image(64), "relu(%b)");
  n.call("m", Network::image(64, 1), "mean.dim(%r, [2, 3], True)");
  n.convolution("d", "m", 64, 16, 1, 1, 1, false);
  n.call("e", Network::image(16, 1), "relu(%d)");
  n.convolution("f", "e", 16, 64, 1, 1, 1, false);
  n.call("h", Network::image(64, 1), "hardsigmoid(%f)");
  n.call("g", Network::image(64), "mul.Tensor(%h, %r)");
  n.convolution("y", "g", 64, 24, 1);
  const loop::Program p = prepare(functionalize(program_of(n.returning("y"))))->program;
  EXPECT_EQ(convolutions_in(p), 4u);
  EXPECT_LE(p.steps.size(), 7u) << to_text(p);
}

// Mean and deviation, each in two stages; what is kept of them; elements; running statistics.
TEST(Steps, BatchNormInTrainingReadsItsInputThreeTimes) {
  const loop::Program p = prepare(functionalize(program_of(R"(%p_g: f32[16] = input()
%p_b: f32[16] = input()
%m: f32[16] = input()
%v: f32[16] = input()
%x: f32[64, 16, 28, 28] = input()
%y: f32[64, 16, 28, 28], %a: f32[16], %i: f32[16], %n: f32[16], %w: f32[16] = aten::_native_batch_norm_legit_functional(%x, %p_g, %p_b, %m, %v, True, 0.1, 1e-05)
return %y
return %n
return %w
)")))
                              ->program;
  size_t readers = 0, wide = 0;
  for (const loop::Step& step : p.steps) {
    bool reads = false;
    loop::for_each_read(p, step, [&](loop::BufferId b) { reads = reads || p.buffers[b].name == "x"; });
    readers += reads;
    const auto* stage = std::get_if<loop::Stage>(&step);
    if (reads && stage && stage->accumulators.empty()) {
      loop::Program elements = p;
      elements.steps = {step};
      elements.nodes.resize(1);
      wide += to_text(elements).find("f64(x") != std::string::npos;
    }
  }
  EXPECT_EQ(readers, 3u) << to_text(p);
  EXPECT_EQ(wide, 0u) << "elements are computed in f64";
}

TEST(Steps, TheGradientOfAWeightIsStoredAsItsReaderReadsIt) {
  auto executable = prepare(functionalize(program_of(R"(%w: f32[64, 32] = input()
%x: f32[16, 32] = input()
%g: f32[16, 64] = input()
%t: f32[32, 16] = aten::t(%x)
%d: f32[32, 64] = aten::mm(%t, %g)
%e: f32[64, 32] = aten::t(%d)
%y: f32[64, 32] = aten::sub.Tensor(%w, %e)
%z: f32[64, 32] = aten::mul.Tensor(%y, %e)
return %z
)")));
  size_t turned = 0;
  for (const loop::Step& step : executable->program.steps)
    if (auto* gemm = std::get_if<loop::Gemm>(&step)) turned += gemm->out.strides[1] == SymInt(1);
  EXPECT_EQ(turned, 1u);
}

}  // namespace
}  // namespace tenon
