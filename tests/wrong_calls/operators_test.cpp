// Operators with arguments that do not fit: each call gives a result, or an Error that blames the caller.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/wrong_calls/operator_calls.h"

#ifdef __clang__
#if __has_feature(address_sanitizer)
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }  // NOLINT: its own name
#endif
#endif

namespace {

using tenon::Tensor;
using tenon_test::Arguments;

Tensor filled(std::vector<std::int64_t> sizes, tenon::DType dtype) { return tenon::ones(sizes, dtype); }

enum class Must : std::uint8_t { fail, end };

// All operators with what `make` gives; `must` says whether all have to fail that need a tensor.
template <class F>
void try_all(F&& make, Must must = Must::end) {
  for (const tenon_test::OperatorCall& op : tenon_test::operator_calls()) {
    Arguments arguments = make();
    try {
      op.call(arguments);
      EXPECT_FALSE(must == Must::fail && op.needs_tensor) << op.signature << " takes none for a tensor";
    } catch (const tenon::Error& e) {
      EXPECT_NE(e.kind(), tenon::ErrorKind::internal) << op.signature << ": " << e.what();
      EXPECT_NE(e.kind(), tenon::ErrorKind::file) << op.signature << ": " << e.what();
      EXPECT_GT(std::string(e.what()).size(), 20u) << op.signature << ": " << e.what();
    } catch (const std::exception& e) { ADD_FAILURE() << op.signature << ": not an Error: " << e.what(); }
  }
}

Arguments of(Tensor a, Tensor b = {}, Tensor c = {}) {
  if (!b) b = a;
  if (!c) c = b;
  return {.tensors = {a, b, c}, .list = {a, b}};
}
Arguments usual() { return of(filled({2, 3}, tenon::f32)); }

TEST(WrongOperatorCalls, AreThereForAllOfThem) { EXPECT_GT(tenon_test::operator_calls().size(), 1000u); }
TEST(WrongOperatorCalls, WithoutTensors) {
  try_all([] { return Arguments{.tensors = {Tensor()}, .list = {Tensor(), Tensor()}}; }, Must::fail);
}
TEST(WrongOperatorCalls, WithTheFirstTensorAlone) {
  try_all([] { return Arguments{.tensors = {filled({2, 3}, tenon::f32), Tensor()}, .list = {}}; });
}
TEST(WrongOperatorCalls, WithNumbersForTensors) {
  try_all([] { return of(filled({}, tenon::f32)); });
}
TEST(WrongOperatorCalls, WithNoElements) {
  try_all([] { return of(filled({0}, tenon::f32)); });
  try_all([] { return of(filled({2, 0, 3, 0}, tenon::f32)); });
}
TEST(WrongOperatorCalls, WithEveryRank) {
  for (std::vector<std::int64_t> sizes :
       {std::vector<std::int64_t>{3}, {2, 3}, {2, 3, 4}, {1, 2, 3, 4}, {1, 2, 2, 3, 3}, {1, 1, 1, 1, 1, 2}})
    try_all([&] { return of(filled(sizes, tenon::f32)); });
}
TEST(WrongOperatorCalls, WithEveryDtype) {
  for (int number = 0; number <= static_cast<int>(tenon::DType::f8_e8m0fnu); ++number)
    try_all([&] {
      Arguments out = usual();
      Tensor t = Tensor();
      try {
        t = filled({2, 3}, static_cast<tenon::DType>(number));
      } catch (const tenon::Error&) { t = filled({2, 3}, tenon::boolean); }
      return of(t);
    });
}
TEST(WrongOperatorCalls, WithTensorsThatDoNotFitTogether) {
  try_all([] { return of(filled({2, 3}, tenon::f32), filled({5}, tenon::i64), filled({7, 1}, tenon::boolean)); });
  try_all([] { return of(filled({1, 2, 4, 4}, tenon::f32), filled({3, 3}, tenon::f64), filled({9}, tenon::f32)); });
  try_all([] { return of(filled({4}, tenon::i64), filled({1, 2, 3}, tenon::f16), filled({}, tenon::f32)); });
  try_all([] { return of(filled({2, 3, 4}, tenon::f32), filled({2, 3, 4, 5}, tenon::f32), filled({2}, tenon::f32)); });
}
TEST(WrongOperatorCalls, WithListsOfOtherLengths) {
  for (std::size_t length : {0, 1, 3, 7})
    try_all([&] {
      Arguments out = of(filled({1, 2, 4, 4}, tenon::f32));
      out.integers.assign(length, 1);
      out.reals.assign(length, 1);
      out.list.assign(length, filled({2, 3}, tenon::f32));
      return out;
    });
}
TEST(WrongOperatorCalls, WithNumbersOutOfRange) {
  using limits = std::numeric_limits<std::int64_t>;
  for (std::int64_t number :
       {std::int64_t{-1}, std::int64_t{-7}, std::int64_t{0}, std::int64_t{1} << 45, limits::max(), limits::min()})
    for (Tensor t : {filled({2, 3}, tenon::f32), filled({1, 2, 4, 4}, tenon::f32), filled({2, 2}, tenon::i64)})
      try_all([&] {
        Arguments out = of(t.clone());
        out.integer = number;
        out.integers = {number, number};
        return out;
      });
}
TEST(WrongOperatorCalls, WithRealsThatAreNone) {
  for (double number : {-1.0, 0.0, std::nan(""), HUGE_VAL, -HUGE_VAL})
    try_all([&] {
      Arguments out = usual();
      out.real = number;
      out.reals = {number, number};
      return out;
    });
}
TEST(WrongOperatorCalls, WithUnknownNames) {
  for (std::string text : {"", "nobody", "\xff\x1b[31m", "ij,jk->ik->"})
    try_all([&] {
      Arguments out = usual();
      out.text = text;
      out.dtype = static_cast<tenon::DType>(200);
      return out;
    });
}
TEST(WrongOperatorCalls, OnTensorsThatWantGradients) {
  try_all([] { return of(filled({2, 3}, tenon::f32).requires_grad_()); });
  try_all([] {
    return of(filled({1, 2, 4, 4}, tenon::f32).requires_grad_(), filled({3}, tenon::f32).requires_grad_());
  });
}

}  // namespace
