#include <gtest/gtest.h>

#include "tenon/ops/attention.h"
#include "tenon/ops/convolution.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/pooling.h"
#include "tenon/ops/shape.h"
#include "tenon/rules/registry.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

// Results of ops on tensors whose sizes are symbols.
class SymbolicSizes : public testing::Test {
 protected:
  Tensor input(Sizes sizes) { return tracer.tensor(add_input(graph, "x", make_meta(DType::f32, std::move(sizes)))); }
  Results call(const char* name, std::vector<Given> args) {
    const Op& op = *registry().find(name);
    return call_op(op, tenon::bind(op, args));
  }
  GraphBody graph;
  Tracer tracer{graph};
  DispatchScope scope{&tracer};
  SymInt n = SymInt::symbol("s0", {.positive = true}), h = SymInt::symbol("s1", {.positive = true});
};

TEST_F(SymbolicSizes, AConvolutionKeepsTheBatchAndHalvesTheImage) {
  Tensor y = call("aten::conv2d", {input({n, 3, h, 32}), input({8, 3, 3, 3}), none, Sizes{2, 2}, Sizes{1, 1}});
  EXPECT_EQ(y.sizes(), (Sizes{n, 8, sym::floor_div(h - 1, 2) + 1, 16}));
}

TEST_F(SymbolicSizes, PaddingSameKeepsTheSize) {
  Tensor y = call("aten::conv2d.padding", {input({n, 3, h, h}), input({8, 3, 4, 3}), none, Sizes{1, 1}, "same"});
  EXPECT_EQ(y.sizes(), (Sizes{n, 8, h, h}));
}

TEST_F(SymbolicSizes, PoolsAndJoinsFollowTheirInputs) {
  Tensor x = input({n, 4, 8, 8});
  EXPECT_EQ(Tensor(call("aten::max_pool2d", {x, Sizes{2, 2}})).sizes(), (Sizes{n, 4, 4, 4}));
  EXPECT_EQ(Tensor(adaptive_avg_pool2d(x, Sizes{1, 1})).sizes(), (Sizes{n, 4, 1, 1}));
  EXPECT_EQ(Tensor(cat(std::vector<Tensor>{x, x}, 0)).sizes(), (Sizes{n * 2, 4, 8, 8}));
  EXPECT_EQ(Tensor(flatten(x, 1)).sizes(), (Sizes{n, 256}));
}

TEST_F(SymbolicSizes, ADimensionOfUnknownSizeIsCutIntoAsManyChunksAsAskedFor) {
  std::vector<Tensor> parts = call("aten::chunk", {input({n * 2, 3}), 2}).list();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].sizes(), (Sizes{n, 3}));
  EXPECT_EQ(parts[1].sizes(), (Sizes{n, 3}));
}

TEST_F(SymbolicSizes, AttentionUsesTheFastOpWherePyTorchTakesIt) {
  auto ops_of = [&](Tensor q, Tensor k, Tensor v) {
    const Op& op = *registry().find("aten::scaled_dot_product_attention");
    std::vector<Given> given = {q, k, v};
    CallArgs args = tenon::bind(op, given);
    size_t before = graph.nodes.size();
    Build build(op, args);
    op.def->decompose(build);
    std::string names;
    for (size_t i = before; i < graph.nodes.size(); ++i) names += graph.nodes[i].op->name() + " ";
    return names;
  };
  Tensor q = input({n, 2, h, 8}), wide = input({n, 2, h, 6});
  EXPECT_EQ(ops_of(q, q, q), "aten::_scaled_dot_product_flash_attention_for_cpu ");
  EXPECT_NE(ops_of(q, q, wide).find("aten::_safe_softmax"), std::string::npos);
}

}  // namespace
}  // namespace tenon
