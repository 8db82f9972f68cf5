#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <unordered_map>

namespace {

using tenon::Tensor;
using tenon::Value;

struct Pair {
  Tensor logits;
  std::vector<int64_t> sizes;
};

std::string error_of(const auto& f) {
  try {
    f();
  } catch (const tenon::Error& e) { return e.what(); }
  return "no error";
}

TEST(Value, HoldsWhatCppValuesHold) {
  Value v = std::tuple(tenon::scalar(1.0f), std::vector<int>{1, 2}, std::map<std::string, double>{{"a", 0.5}}, nullptr,
                       "text");
  EXPECT_EQ(v.size(), 5u);
  EXPECT_EQ(v[1][1].as<int>(), 2);
  EXPECT_EQ(v[2]["a"].as<double>(), 0.5);
  EXPECT_TRUE(v[3].is_none());
  EXPECT_EQ(v[4].as<std::string>(), "text");
}

TEST(Value, ComesBackAsTuplesMapsAndStructs) {
  Value v = std::tuple(tenon::scalar(1.0f), std::vector<int>{1, 2});
  auto [tensor, numbers] = v.as<Tensor, std::vector<int64_t>>();
  EXPECT_EQ(tensor.item<float>(), 1.0f);
  EXPECT_EQ(numbers, (std::vector<int64_t>{1, 2}));
  Pair pair = v.as<Pair>();
  EXPECT_EQ(pair.sizes.size(), 2u);
  EXPECT_EQ(Value(pair)[0].as<Tensor>().item<float>(), 1.0f);
  Value none;
  EXPECT_FALSE(none.as<std::optional<int>>().has_value());
  Value table = std::map<std::string, int>{{"x", 3}};
  EXPECT_EQ((table.as<std::map<std::string, int>>()["x"]), 3);
}

struct Cached {
  Tensor logits;
  std::optional<Tensor> mask;
  std::optional<std::vector<Tensor>> cache;
  Value rest;
};

TEST(Value, AStructMayHaveOptionalFieldsAndValues) {
  Value v = Cached{tenon::scalar(1.0f), std::nullopt, std::vector{tenon::scalar(2.0f)}, 3};
  ASSERT_EQ(v.size(), 4u);
  EXPECT_TRUE(v[1].is_none());
  EXPECT_EQ(v[2][0].as<Tensor>().item<float>(), 2.0f);
  Cached back = v.as<Cached>();
  EXPECT_FALSE(back.mask.has_value());
  EXPECT_EQ(back.cache->size(), 1u);
  EXPECT_EQ(back.rest.as<int>(), 3);
}

TEST(Value, TellsListsFromTuples) {
  EXPECT_EQ(Value(std::vector<int>{1}).kind(), Value::Kind::list);
  EXPECT_EQ(Value(std::array<int, 2>{1, 2}).kind(), Value::Kind::list);
  EXPECT_EQ(Value(std::tuple(1, 2)).kind(), Value::Kind::tuple);
  EXPECT_EQ(Value(std::pair(1, 2)).kind(), Value::Kind::tuple);
  EXPECT_EQ(Value(Pair{}).kind(), Value::Kind::tuple);
  EXPECT_EQ(describe(Value::tuple({1, 2})), "a tuple of 2");
}

TEST(Value, UnorderedMapsAreDictionariesInTheOrderOfTheirKeys) {
  Value v = std::unordered_map<std::string, int>{{"b", 2}, {"a", 1}};
  EXPECT_EQ(v.keys(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(v["b"].as<int>(), 2);
}

TEST(Value, AWrongKindNamesItsPath) {
  Value v = std::tuple(tenon::zeros({2, 3}), std::vector<std::string>{"a", "b"});
  EXPECT_EQ(error_of([&] { v.as<Tensor, std::vector<int>>(); }),
            "result[1][0]: expected an integer, got the string 'a'");
  EXPECT_EQ(error_of([&] { Tensor t = v; }), "result: expected a tensor, got a tuple of 2");
  EXPECT_EQ(error_of([&] { v.as<Tensor, Tensor, Tensor>(); }), "result: expected 3 values, got a tuple of 2");
  EXPECT_EQ(error_of([&] { v[0].as<double>(); }), "result: expected a number, got f32[2, 3]");
  EXPECT_EQ(error_of([&] { v[2]; }), "[2]: a tuple of 2 has no such entry");
}

}  // namespace
