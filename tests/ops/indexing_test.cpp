#include "tenon/ops/indexing.h"

#include <gtest/gtest.h>

#include "tenon/interp/eager.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/embedding.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

class Indexing : public testing::Test {
 protected:
  Indexing() { interp::install(); }
};

Tensor counting(Sizes sizes) { return view(arange(0, count(sizes), kw("dtype", DType::f32)), sizes); }
Tensor places(std::initializer_list<int64_t> list) {
  Tensor t = Tensor::empty(DType::i64, {static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), t.mutable_data<int64_t>());
  return t;
}
Tensor mask(std::initializer_list<bool> list) {
  Tensor t = Tensor::empty(DType::boolean, {static_cast<int64_t>(list.size())});
  std::copy(list.begin(), list.end(), t.mutable_data<bool>());
  return t;
}
std::vector<float> values(const Tensor& t) {
  Tensor c = contiguous_copy(t);
  return std::vector<float>(c.data<float>(), c.data<float>() + c.numel().as_int());
}
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

TEST_F(Indexing, IndicesThatAreApartPutTheirDimsInFront) {
  Tensor x = counting({2, 3, 4});
  std::vector<Tensor> indices = {places({0, 1}), none, places({3, -1})};
  Tensor y = index_tensor(x, indices);
  EXPECT_EQ(y.sizes(), (Sizes{2, 3}));
  EXPECT_EQ(values(y), (std::vector<float>{3, 7, 11, 15, 19, 23}));
}

TEST_F(Indexing, AMaskPicksRows) {
  Tensor y = index_tensor(counting({3, 2}), std::vector<Tensor>{mask({true, false, true})});
  EXPECT_EQ(values(y), (std::vector<float>{0, 1, 4, 5}));
}

TEST_F(Indexing, WritingByAMaskGivesEachRowItsValue) {
  Tensor y = index_put(counting({3, 2}), std::vector<Tensor>{mask({true, false, true})}, counting({2, 2}));
  EXPECT_EQ(values(y), (std::vector<float>{0, 1, 2, 3, 2, 3}));
}

TEST_F(Indexing, AccumulatedWritesAddUpWhereIndicesRepeat) {
  Tensor y = index_put(zeros({3}, counting({1})), std::vector<Tensor>{places({1, 1, 2})}, counting({3}), true);
  EXPECT_EQ(values(y), (std::vector<float>{0, 1, 2}));
}

TEST_F(Indexing, AnIndexOutOfRangeIsAnErrorThatNamesItAndTheSize) {
  std::string message = error_of([] { index_tensor(counting({3}), std::vector<Tensor>{places({5})}); });
  EXPECT_NE(message.find("5"), std::string::npos) << message;
  EXPECT_NE(message.find("size 3"), std::string::npos) << message;
  EXPECT_NE(error_of([] { gather(counting({3}), 0, places({-1})); }), "no error");
  EXPECT_NE(error_of([] { embedding(counting({3, 2}), places({3})); }), "no error");
  EXPECT_NE(error_of([] { scatter_value(counting({3}), 0, places({3}), 1.0); }), "no error");
}

TEST_F(Indexing, AMaskInAProgramGivesANewSymbol) {
  GraphBody graph;
  Tracer tracer(graph);
  SymInt n = SymInt::symbol("s0", {.positive = true});
  Tensor x = tracer.tensor(add_input(graph, "x", make_meta(DType::f32, {n, 4})));
  Tensor m = tracer.tensor(add_input(graph, "m", make_meta(DType::boolean, {n})));
  DispatchScope scope(&tracer);
  Tensor y = index_tensor(x, std::vector<Tensor>{m});
  EXPECT_TRUE(y.sizes()[0].is_symbol());
  EXPECT_NE(y.sizes()[0], n);
  EXPECT_EQ(y.sizes()[1], SymInt(4));
}

}  // namespace
}  // namespace tenon
