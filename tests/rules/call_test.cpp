#include "tenon/rules/call.h"

#include <gtest/gtest.h>

#include <limits>

#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// What `number` is for a rule that asks for an integer.
int64_t as_integer(double number) {
  CallArgs args = {Tensor::empty(DType::f32, {2}), number, {}, {}};
  return ArgsView(*registry().find("aten::repeat_interleave.self_int"), args).integer("repeats").as_int();
}

TEST(Calls, ANumberThatNoIntegerHoldsIsRefusedWhereOneIsAskedFor) {
  EXPECT_EQ(as_integer(3.0), 3);
  EXPECT_EQ(as_integer(-0x1p63), std::numeric_limits<int64_t>::min());
  for (double d : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0x1p63, -1e300})
    EXPECT_THROW(as_integer(d), Error) << d;
}

}  // namespace
}  // namespace tenon
