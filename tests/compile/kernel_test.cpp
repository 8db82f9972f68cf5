// Kernel IR: text, verifier, builder, interpreter.
#include "tenon/compile/kernel.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/compile/math.h"
#include "tests/compile/run.h"
#include "tests/compile/samples.h"

namespace tenon::compile {
namespace {

void golden(const Kernel& kernel) {
  std::string path = std::string(TENON_GOLDEN) + "/" + kernel.name + ".txt", text = to_text(kernel);
  if (std::getenv("TENON_GOLDEN_UPDATE")) write_file_atomically(path, text);
  EXPECT_EQ(text, read_file(path));
  EXPECT_EQ(to_text(parse_kernel(text)), text);
}

TEST(KernelText, of_a_pointwise_chain) { golden(pointwise_chain()); }
TEST(KernelText, of_a_row_reduction) { golden(row_sum()); }
TEST(KernelText, of_a_gather) { golden(gather_rows()); }
TEST(KernelText, of_a_scatter) { golden(scatter_add()); }
TEST(KernelText, of_a_softmax_row) { golden(softmax_rows()); }

std::string parse_error(std::string_view text) {
  try {
    parse_kernel(text);
  } catch (const Error& e) { return e.what(); }
  return "";
}
std::string verify_error(std::string_view text) {
  try {
    verify(parse_kernel(text));
  } catch (const InternalError& e) { return e.what(); }
  return "";
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(KernelText, that_is_wrong_names_its_line) {
  EXPECT_TRUE(contains(parse_error("kernel k\n%0: i64 = nonsense\nend\n"), "line 2: there is no 'nonsense'"))
      << parse_error("kernel k\n%0: i64 = nonsense\nend\n");
  EXPECT_TRUE(contains(parse_error("kernel k\n%0: i64 = neg %1\nend\n"), "line 2: there is no value '%1' yet"));
  EXPECT_TRUE(contains(parse_error("kernel k\n%0: i64 = lo\n"), "close every loop and the kernel"));
  EXPECT_TRUE(contains(parse_error("kernel k\n%0: i64 = constant 99999999999999999999\nend\n"), "expected an integer"));
  EXPECT_TRUE(contains(parse_error("kernel k\n%0: i64 = lo\n%0: i64 = hi\nend\n"), "%0 is defined twice"));
  EXPECT_TRUE(contains(parse_error("kernel k\n%0: i64 = lo\nfor %1 = %0 to %0 carry %2: i64 = %0 {\n}\nend\n"),
                       "expected 1 values after 'next', got 0"));
}

const std::string head =
    "kernel k\nmemory x: f32 = buffer 0\nmemory y: f32 = buffer 1 written\n%0: i64 = lo\n%1: i64 = hi\n%2: f32 = "
    "constant 1\n";

TEST(Verifier, wants_operands_of_one_type) {
  EXPECT_TRUE(contains(verify_error(head + "%3: f32 = add %2, %0\nend\n"), "expected f32, got i64"));
  EXPECT_TRUE(contains(verify_error(head + "%3: f32 = rem %2, %2\nend\n"), "rem is not defined for f32"));
  EXPECT_TRUE(contains(verify_error(head + "%3: f32 = add %2\nend\n"), "add takes 2 operands, got 1"));
}
TEST(Verifier, knows_uniform_from_varying) {
  EXPECT_TRUE(contains(verify_error(head + "%3: varying f32 = neg %2\nend\n"), "marked varying"));
  EXPECT_TRUE(contains(verify_error(head + "lanes %3 = %0 to %1 ways 16 {\n%4: f32 = load x[%0 + lane]\n}\nend\n"),
                       "marked uniform"));
  EXPECT_TRUE(
      contains(verify_error(head + "lanes %3 = %0 to %1 ways 16 {\nstore y[%3], %2\n}\nend\n"), "must be uniform"));
}
TEST(Verifier, lets_no_value_out_of_its_loop) {
  EXPECT_TRUE(contains(verify_error(head + "for %3 = %0 to %1 {\n%4: f32 = load x[%3]\n}\nstore y[%0], %4\nend\n"),
                       "not defined there"));
}
TEST(Verifier, allows_one_lanes_loop_on_a_path) {
  EXPECT_TRUE(contains(verify_error(head + "lanes %3 = %0 to %1 ways 16 {\nlanes %4 = %0 to %1 ways 16 {\n}\n}\nend\n"),
                       "a lanes loop inside a lanes loop"));
  EXPECT_TRUE(contains(verify_error(head + "%3: varying i32 = position\nend\n"), "position outside a lanes loop"));
  EXPECT_TRUE(contains(verify_error(head + "lanes %3 = %0 to %1 ways 24 {\n}\nend\n"), "expected 16, 32 or 64"));
}
TEST(Verifier, protects_memory_that_is_only_read) {
  EXPECT_TRUE(contains(verify_error(head + "store x[%0], %2\nend\n"), "not marked as written"));
}
TEST(Verifier, wants_updates_of_lanes_in_order) {
  std::string text =
      head + "lanes %3 = %0 to %1 ways 16 {\nfor %4 = %0 to %1 {\nupdate add y[%0 + lane], %2\n}\n}\nend\n";
  EXPECT_TRUE(contains(verify_error(text), "update")) << verify_error(text);
}
TEST(Verifier, wants_conditional_loops_pure) {
  std::string text = head +
                     "%3: b1 = constant true\nfor %4 = %0 to %1 while carry %5: b1 = %3 {\nstore y[%0], %2\nnext %5\n} "
                     "gives %6: b1\nend\n";
  EXPECT_TRUE(contains(verify_error(text), "whose body must be pure")) << verify_error(text);
}

TEST(Builder, moves_what_is_invariant_out_of_loops) {
  Builder b("k");
  uint32_t y = b.buffer("y", Element::f32, 0, true);
  Val p = convert(b.param(0), Type::f32);
  b.lanes(b.lo(), b.hi(), 16, {}, [&](Val, const Vals&) -> Vals {
    b.store({y, 0, true}, p * 2.0 + 1.0);
    return {};
  });
  Kernel k = b.finish();
  ASSERT_EQ(k.loops.size(), 1u);
  EXPECT_EQ(k.loops[0].body.size(), 1u);  // the store alone
}
TEST(Builder, folds_constants_and_writes_equal_things_once) {
  Builder b("k");
  Val one = b.constant(Type::f32, 1);
  EXPECT_EQ((one + 1.0).id, b.constant(Type::f32, 2).id);
  Val x = convert(b.param(0), Type::f32);
  EXPECT_EQ((x + one).id, (x + one).id);
  Val i = b.param(1);
  EXPECT_EQ((i * 1 + 0).id, i.id);
  EXPECT_NE((x + b.constant(Type::f32, 0)).id, x.id);  // -0 + 0 is not -0
}
TEST(Builder, drops_what_nothing_uses) {
  Builder b("k");
  uint32_t x = b.buffer("x", Element::f32, 0);
  b.lanes(b.lo(), b.hi(), 16, {{b.constant(Type::f32, 0), Combine::add}}, [&](Val, const Vals& s) -> Vals {
    return {s[0] + exp(b.load({x, 0, true}))};
  });
  Kernel k = b.finish();
  EXPECT_TRUE(k.body.empty());
  EXPECT_TRUE(k.values.empty());
}

Bits folded(Op op, Type type, std::vector<Val> args) {
  Builder& b = *args[0].builder;
  Val v = b.emit(op, type, args);
  std::vector<Bits> none;
  // What a kernel of nothing but the store of it gives.
  uint32_t y = b.buffer("y",
                        type == Type::b1    ? Element::boolean
                        : type == Type::i32 ? Element::i32
                        : type == Type::i64 ? Element::i64
                        : type == Type::f32 ? Element::f32
                                            : Element::f64,
                        0, true);
  b.store({y, 0}, v);
  Kernel k = b.finish();
  uint64_t out = 0;
  std::vector<Span> buffers = {{&out, 8}};
  interpret(k, buffers, {}, {}, 0, 0);
  return out;
}
TEST(Interpreter, divides_integers_without_traps) {
  for (Type t : {Type::i32, Type::i64}) {
    int64_t lowest = t == Type::i32 ? INT32_MIN : INT64_MIN;
    auto of = [&](Op op, int64_t a, int64_t c) {
      Builder b("k");
      return integer_of(t, folded(op, t, {b.integer(t, a), b.integer(t, c)}));
    };
    EXPECT_EQ(of(Op::div, 7, -2), -3);
    EXPECT_EQ(of(Op::rem, -7, 2), -1);
    EXPECT_EQ(of(Op::div, 7, 0), 0);
    EXPECT_EQ(of(Op::rem, 7, 0), 0);
    EXPECT_EQ(of(Op::div, lowest, -1), lowest);
    EXPECT_EQ(of(Op::rem, lowest, -1), 0);
    EXPECT_EQ(of(Op::shift_left, 1, 64), 0);
    EXPECT_EQ(of(Op::shift_sign, -5, 99), -1);
    EXPECT_EQ(of(Op::shift_right, -1, t == Type::i32 ? 31 : 63), 1);
  }
}
TEST(Interpreter, converts_what_does_not_fit_to_the_lowest_integer) {
  auto of = [&](Type to, double x) {
    Builder b("k");
    return integer_of(to, folded(Op::convert, to, {b.constant(Type::f64, x)}));
  };
  EXPECT_EQ(of(Type::i32, 2147483648.0), INT32_MIN);
  EXPECT_EQ(of(Type::i32, -2147483648.9), INT32_MIN);
  EXPECT_EQ(of(Type::i32, 2147483647.9), INT32_MAX);
  EXPECT_EQ(of(Type::i64, std::numeric_limits<double>::quiet_NaN()), INT64_MIN);
  EXPECT_EQ(of(Type::i64, -1.9), -1);
}
TEST(Interpreter, refuses_a_load_outside_its_buffer) {
  Kernel k = parse_kernel(
      "kernel k\nmemory x: f32 = buffer 0\nmemory y: f32 = buffer 1 written\n%0: i64 = lo\n"
      "%1: f32 = load x[%0]\nstore y[%0], %1\nend\n");
  std::vector<float> x(3), y(3);
  std::vector<Span> buffers = {span_of(x), span_of(y)};
  EXPECT_EQ(interpret(k, buffers, {}, {}, 2, 3), 0);
  EXPECT_THROW(interpret(k, buffers, {}, {}, 3, 4), InternalError);
  EXPECT_THROW(interpret(k, buffers, {}, {}, -1, 0), InternalError);
}

TEST(Samples, compute_what_they_say) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6}, table = {0, 1, 10, 11, 20, 21}, y(6);
  std::vector<int64_t> params = {3};
  ASSERT_EQ(run(row_sum(), {span_of(x), span_of(y)}, {3}, 0, 2), 0);
  EXPECT_EQ(y[0], 6);
  EXPECT_EQ(y[1], 15);
  std::vector<int64_t> index = {2, 0, 1};
  ASSERT_EQ(run(gather_rows(), {span_of(table), span_of(index), span_of(y)}, {3, 2}, 0, 3), 0);
  EXPECT_EQ(y, (std::vector<float>{20, 21, 0, 1, 10, 11}));
  index[1] = 3;
  y.assign(6, -1);
  EXPECT_EQ(run(gather_rows(), {span_of(table), span_of(index), span_of(y)}, {3, 2}, 0, 3), 1);
  EXPECT_EQ(y, (std::vector<float>{20, 21, 0, 0, 10, 11}));
  std::vector<float> sums(3);
  std::vector<int64_t> at = {0, 2, 2, 0, -1, 1};
  EXPECT_EQ(run(scatter_add(), {span_of(x), span_of(at), span_of(sums)}, {3}, 0, 6), 1);
  EXPECT_EQ(sums, (std::vector<float>{5, 6, 5}));
  std::vector<float> p(6);
  ASSERT_EQ(run(softmax_rows(), {span_of(x), span_of(p)}, {3}, 0, 2), 0);
  EXPECT_NEAR(p[0], 0.0900305732, 1e-7);
  EXPECT_NEAR(p[5], 0.6652409558, 1e-7);
}

}  // namespace
}  // namespace tenon::compile
