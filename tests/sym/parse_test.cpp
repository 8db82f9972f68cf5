#include "tenon/sym/parse.h"

#include <gtest/gtest.h>

#include <string>

#include "tenon/base/error.h"
#include "tenon/sym/print.h"

namespace tenon::sym {
namespace {

const Expr s0 = Expr::symbol("s0", {.positive = true}), u0 = Expr::symbol("u0");

std::string message_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

TEST(Parse, BothSpellingsMeanTheSame) {
  EXPECT_EQ(parse("2*s0 + 1"), s0 * 2 + 1);
  EXPECT_EQ(parse("Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))"), s0 * 2 + 1);
  EXPECT_EQ(parse("-u0 <= 0"), le(-u0, 0));
  EXPECT_EQ(parse("(s0//2)"), floor_div(s0, 2));
  EXPECT_EQ(parse("Eq(s0, 4)"), parse("Equality(Symbol('s0', integer=True, positive=True), Integer(4))"));
  EXPECT_EQ(parse("s0 - 3*u0**2 % 5"), s0 - mod(u0 * u0 * 3, 5));
  EXPECT_EQ(parse("Piecewise((u0, u0 > 4), (1, True))"),
            parse("Piecewise(ExprCondPair(Symbol('u0', integer=True), StrictGreaterThan(Symbol('u0', integer=True), "
                  "Integer(4))), "
                  "ExprCondPair(Integer(1), true))"));
}

TEST(Parse, WhatPyTorchRewritesIsRewritten) {
  EXPECT_EQ(parse("CeilDiv(u0, 4)"), floor_div(u0 + 3, 4));
  EXPECT_EQ(parse("ModularIndexing(u0, 2, 3)"), mod(floor_div(u0, 2), 3));
  EXPECT_EQ(parse("Identity(u0)"), u0);
  EXPECT_EQ(parse("Where(u0 > 1, u0, 2)"), where(gt(u0, 1), u0, 2));
}

TEST(Parse, AnUnknownFunctionIsCarriedAlong) {
  Expr e = parse("IsNonOverlappingAndDenseIndicator(s0, u0, u0, 1)");
  EXPECT_TRUE(e.is(Kind::unknown_call));
  EXPECT_EQ(to_infix(e), "IsNonOverlappingAndDenseIndicator(s0, u0, u0, 1)");
}

TEST(Parse, BareNamesTakeTheTraitsOfKnownSymbols) {
  Expr s78 = Expr::symbol("s78");  // an int input: not positive
  EXPECT_FALSE(parse("s78 + 1") == s78 + 1);
  EXPECT_EQ(parse("s78 + 1", std::span(&s78, 1)), s78 + 1);
}

TEST(Parse, IntegersAtTheEdgeOfTheRange) {
  EXPECT_EQ(parse("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_EQ(parse("Integer(-9223372036854775808)").as_int(), INT64_MIN);
  EXPECT_EQ(parse("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_THROW(parse("9223372036854775808"), Error);
}

TEST(Parse, ErrorsQuoteTheTextAndThePlace) {
  EXPECT_EQ(message_of("2*s0 + )"),
            "cannot read the expression '2*s0 + )': at character 8: expected a number, a name or '(', got ')'");
  EXPECT_EQ(message_of("FloorDiv(s0)"),
            "cannot read the expression 'FloorDiv(s0)': expected 2 arguments for FloorDiv, got 1");
  EXPECT_NE(message_of("s0 // 0").find("division by zero"), std::string::npos);
  EXPECT_NE(message_of("").find("at its end"), std::string::npos);
  for (const char* bad : {"s0 s1", "Symbol(s0)", "Symbol('s0'", "1..2", "s0 = 3", "__import__('os')", "Symbol('')",
                          "lambda: 1", "s0 & not (s0)", "and + 1", "[1]"})
    EXPECT_NE(message_of(bad), "no error") << bad;
}

TEST(Parse, AProductTooLargeToMultiplyOutReadsBackEqual) {
  std::string text = "(a + b)*(a + b)*(c + d)*(c + d)";
  for (int i = 0; i < 8; i++) text += "*(x" + std::to_string(i) + " + 1)";
  Expr e = parse(text);
  EXPECT_EQ(parse(to_srepr(e)), e);
  EXPECT_EQ(parse(to_infix(e)), e);
}

TEST(Parse, DepthAndSizeAreBounded) {
  EXPECT_THROW(parse(std::string(100'000, '(')), Error);
  EXPECT_THROW(parse(std::string(100'000, '-') + "1"), Error);
  EXPECT_EQ(parse(std::string(100, '(') + "1" + std::string(100, ')')), Expr(1));
  std::string many = "u0";
  for (int i = 0; i < 20'000; i++) many += " + u0";
  EXPECT_THROW(parse(many), Error);
  std::string powers = "u0";
  for (int i = 0; i < 199; i++) powers += "**2";
  EXPECT_THROW(parse(powers), Error);  // the exponent leaves 64 bits
}

TEST(Guard, SourcesBecomeSymbolsNamedByTheirText) {
  Expr g = parse_guard("2*L['x'].size()[0] + 1 <= 4*L['args'][0]['a (b'].size()[1]");
  Expr x = Expr::symbol("L['x'].size()[0]"), a = Expr::symbol("L['args'][0]['a (b'].size()[1]");
  EXPECT_EQ(g, le(x * 2 + 1, a * 4));
}

TEST(Guard, PythonOperatorsAndFunctionsAreRead) {
  Expr x = Expr::symbol("L['x']"), y = Expr::symbol("L['y']");
  EXPECT_EQ(parse_guard("L['x'] // 2 == (-3) and not L['y'] % 4 != 0"),
            logical_and(eq(floor_div(x, 2), -3), eq(mod(y, 4), 0)));
  EXPECT_EQ(parse_guard("2 <= L['x'] < 10"), logical_and(le(2, x), lt(x, 10)));
  EXPECT_EQ(parse_guard("torch.sym_max(1, L['x']) == max(L['y'], 2)"), eq(max(Expr(1), x), max(y, 2)));
  EXPECT_EQ(parse_guard("math.trunc(L['x'] / 2) > 1"), gt(trunc(true_div(x, 2)), 1));
  EXPECT_EQ(parse_guard("L['x'] & 3"), bit_and(x, 3));
  EXPECT_EQ(parse_guard("(L['x'] > 1) & (L['y'] > 1)"), logical_and(gt(x, 1), gt(y, 1)));
  EXPECT_EQ(parse_guard("L['x'] if L['y'] > 1 else 3"), where(gt(y, 1), x, 3));
  EXPECT_EQ(parse_guard("True + True"), 2);  // a condition counts 1 where it holds
  EXPECT_EQ(parse_guard("(L['x'] > 1) + L['y']"), where(gt(x, 1), 1, 0) + y);
  EXPECT_EQ(parse_guard("max(True, L['x'] * (2 > 1)) < True"), lt(max(Expr(1), x), 1));
}

TEST(Guard, AnythingButAnInputIsAnError) {
  EXPECT_THROW(parse_guard("__import__('os').system('true')"), Error);
  EXPECT_THROW(parse_guard("L[__import__('os').system('true')]"), Error);
  EXPECT_THROW(parse_guard("L['x'].__class__('y')"), Error);
  EXPECT_THROW(parse_guard("L['x'].size(0)"), Error);
}

TEST(Guard, UnmatchedBracketsAreErrors) {
  EXPECT_THROW(parse_guard("L['x'"), Error);
  EXPECT_THROW(parse_guard("L['x')]"), Error);
  EXPECT_THROW(parse_guard("L['x'].size()[0] <"), Error);
}

}  // namespace
}  // namespace tenon::sym
