// The evaluator of expressions: every operation, and what has no value.
#include "tenon/package/expr.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/verify.h"
#include "tenon/package/tables.h"

extern "C" {
union tn_value {
  int64_t i;
  double d;
};
const char* tn_evaluate(const struct tn_tables* tables, uint32_t expr, const union tn_value* symbols,
                        union tn_value* value);
}

namespace tenon::package {
namespace {

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

/// The value, or why there is none.
std::variant<int64_t, double, std::string> evaluate(const Expr& expr) {
  tenon_expr entry{{0, static_cast<uint32_t>(expr.words().size())}, static_cast<uint32_t>(expr.type()), 0};
  tn_tables tables{};
  tables.words = expr.words().data();
  tables.exprs = &entry;
  tn_value value;
  if (const char* wrong = tn_evaluate(&tables, 0, nullptr, &value)) return std::string(wrong);
  if (expr.type() == TENON_REAL) return value.d;
  return value.i;
}
int64_t integer(const Expr& expr) { return std::get<int64_t>(evaluate(expr)); }
int64_t integer(tenon_opcode opcode, int64_t a, int64_t b) { return integer(Expr::apply(opcode, {a, b})); }
double real(const Expr& expr) { return std::get<double>(evaluate(expr)); }
std::string wrong(tenon_opcode opcode, int64_t a, int64_t b) {
  return std::get<std::string>(evaluate(Expr::apply(opcode, {a, b})));
}

TEST(Expr, integers) {
  EXPECT_EQ(integer(Expr(3) + 4 * Expr(5) - 1), 22);
  EXPECT_EQ(integer(Expr(most)), most);
  EXPECT_EQ(integer(Expr(least)), least);
  for (int64_t b : {-3, 3})
    for (int64_t a : {-7, -6, 0, 6, 7}) {
      EXPECT_EQ(integer(floor_div(a, b)),
                static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      EXPECT_EQ(integer(ceil_div(a, b)),
                static_cast<int64_t>(std::ceil(static_cast<double>(a) / static_cast<double>(b))));
      EXPECT_EQ(integer(floor_div(a, b)) * b + integer(mod(a, b)), a);
    }
  EXPECT_EQ(integer(mod(least, -1)), 0);
  EXPECT_EQ(integer(min(2, -5)), -5);
  EXPECT_EQ(integer(max(2, -5)), 2);
  EXPECT_EQ(integer(TENON_OP_POW, -3, 3), -27);
  EXPECT_EQ(integer(TENON_OP_POW, 5, 0), 1);
  EXPECT_EQ(integer(TENON_OP_POW, 3037000499, 2), 9223372030926249001);
  EXPECT_EQ(integer(TENON_OP_AND, 12, 10), 8);
  EXPECT_EQ(integer(TENON_OP_OR, 12, 10), 14);
  EXPECT_EQ(integer(TENON_OP_SHL, -3, 4), -48);
  EXPECT_EQ(integer(TENON_OP_SHR, -48, 4), -3);
  EXPECT_EQ(integer(Expr::apply(TENON_OP_NEG, {7})), -7);
  EXPECT_EQ(integer(Expr::apply(TENON_OP_NOT, {7})), 0);
  EXPECT_EQ(integer(select(less(1, 2), 10, 20)), 10);
  EXPECT_EQ(integer(select(equal(1, 2), 10, 20)), 20);
  EXPECT_EQ(integer(TENON_OP_NE, 1, 2) + integer(less_equal(2, 2)), 2);
}

TEST(Expr, what_leaves_64_bits_has_no_value) {
  EXPECT_EQ(wrong(TENON_OP_ADD, most, 1), "an integer beyond 64 bits");
  EXPECT_EQ(wrong(TENON_OP_SUB, least, 1), "an integer beyond 64 bits");
  EXPECT_EQ(wrong(TENON_OP_MUL, most, 2), "an integer beyond 64 bits");
  EXPECT_EQ(wrong(TENON_OP_FLOOR_DIV, least, -1), "an integer beyond 64 bits");
  EXPECT_EQ(wrong(TENON_OP_POW, 10, 19), "an integer beyond 64 bits");
  EXPECT_EQ(wrong(TENON_OP_SHL, 1LL << 40, 30), "an integer beyond 64 bits");
  EXPECT_EQ(wrong(TENON_OP_FLOOR_DIV, 1, 0), "a division by zero");
  EXPECT_EQ(wrong(TENON_OP_CEIL_DIV, 1, 0), "a division by zero");
  EXPECT_EQ(wrong(TENON_OP_MOD, 1, 0), "a division by zero");
  EXPECT_EQ(wrong(TENON_OP_POW, 2, -1), "a negative exponent");
  EXPECT_EQ(wrong(TENON_OP_SHR, 1, 64), "a shift by more bits than there are");
  EXPECT_TRUE(std::holds_alternative<std::string>(evaluate(Expr::apply(TENON_OP_NEG, {least}))));
}

TEST(Expr, reals) {
  Expr half = Expr::real(0.5), three = to_real(3);
  EXPECT_EQ(real(half + three), 3.5);
  EXPECT_EQ(real(half - three), -2.5);
  EXPECT_EQ(real(half * three), 1.5);
  EXPECT_EQ(real(Expr::apply(TENON_OP_REAL_DIV, {half, three})), 0.5 / 3);
  EXPECT_EQ(real(Expr::apply(TENON_OP_REAL_SQRT, {to_real(2)})), std::sqrt(2.0));
  EXPECT_EQ(real(min(half, three)), 0.5);
  EXPECT_EQ(real(max(half, three)), 3);
  EXPECT_EQ(integer(less(half, three)) + integer(less_equal(three, three)) + integer(equal(half, half)), 3);
}

TEST(Expr, reals_become_integers_in_four_ways) {
  for (double value :
       {-2.5, -1.5, -0.5, -0.2, 0.0, 0.5, 1.5, 2.5, 2.7, 4503599627370495.5, 1e15, -9223372036854775808.0}) {
    EXPECT_EQ(integer(Expr::apply(TENON_OP_TRUNC, {Expr::real(value)})), static_cast<int64_t>(std::trunc(value)));
    EXPECT_EQ(integer(Expr::apply(TENON_OP_FLOOR, {Expr::real(value)})), static_cast<int64_t>(std::floor(value)));
    EXPECT_EQ(integer(Expr::apply(TENON_OP_CEIL, {Expr::real(value)})), static_cast<int64_t>(std::ceil(value)));
    EXPECT_EQ(integer(Expr::apply(TENON_OP_ROUND, {Expr::real(value)})), static_cast<int64_t>(std::nearbyint(value)))
        << value;
  }
  for (double value : {9.3e18, -1e19, std::nan(""), HUGE_VAL})
    EXPECT_EQ(std::get<std::string>(evaluate(Expr::apply(TENON_OP_ROUND, {Expr::real(value)}))),
              "a number beyond 64-bit integers");
}

}  // namespace
}  // namespace tenon::package
