#include "tenon/session/state.h"

#include <gtest/gtest.h>

#include <functional>

#include "tenon/base/error.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(State, SetChangesTheContentsAndTheVersionOnly) {
  State state;
  state.add("w", floats({2}, {1, 2}));
  uint64_t before = state.version();
  state.set("w", floats({2}, {3, 4}));
  EXPECT_EQ(values_of(*state.find("w")), (std::vector<float>{3, 4}));
  EXPECT_NE(state.version(), before);
  EXPECT_EQ(state.names(), std::vector<std::string>{"w"});
}

TEST(State, SetDoesNotWriteTheTensorItWasMadeFrom) {
  Tensor original = floats({2}, {1, 2});
  State state;
  state.add("w", original);
  state.set("w", floats({2}, {3, 4}));
  EXPECT_EQ(values_of(original), (std::vector<float>{1, 2}));
}

TEST(State, TensorsThatShareStorageStillShareItAfterSet) {
  Tensor whole = floats({4}, {1, 2, 3, 4});
  TensorMeta back = whole.meta();
  back.sizes = {2};
  back.offset = 2;
  State state;
  state.add("whole", whole);
  state.add("back", whole.with_meta(back));
  state.set("back", floats({2}, {30, 40}));
  EXPECT_EQ(values_of(*state.find("whole")), (std::vector<float>{1, 2, 30, 40}));
  EXPECT_EQ(values_of(whole), (std::vector<float>{1, 2, 3, 4}));
}

TEST(State, OwnCopiesOnce) {
  State state;
  state.add("w", floats({2}, {1, 2}));
  state.own("w");
  const Storage* first = state.find("w")->storage().get();
  state.own("w");
  EXPECT_EQ(state.find("w")->storage().get(), first);
}

TEST(State, SetTakesTheSameDtypeAndSizesOnly) {
  State state;
  state.add("w", floats({2}, {1, 2}));
  EXPECT_EQ(error_of([&] { state.set("w", floats({3}, {1, 2, 3})); }), "w: expected f32[2], got f32[3]");
  EXPECT_EQ(error_of([&] { state.set("w", integers({2}, {1, 2})); }), "w: expected f32[2], got i64[2]");
  EXPECT_EQ(error_of([&] { state.set("w", Tensor()); }), "w: expected f32[2], got nothing");
  EXPECT_EQ(error_of([&] { state.set("v", floats({2}, {1, 2})); }), "the program has no state 'v'");
  EXPECT_EQ(values_of(*state.find("w")), (std::vector<float>{1, 2}));
}

TEST(State, ACopyIsApartAndDrawsTheSame) {
  State state(7);
  state.add("w", floats({2}, {1, 2}));
  state.draw();
  std::unique_ptr<State> copy = state.copy();
  copy->set("w", floats({2}, {3, 4}));
  EXPECT_EQ(values_of(*state.find("w")), (std::vector<float>{1, 2}));
  EXPECT_EQ(copy->seed(), 7u);
  EXPECT_EQ(copy->draw(), state.draw());
}

}  // namespace
}  // namespace tenon
