#include <gtest/gtest.h>

#include "tenon/rules/registry.h"

namespace tenon {
namespace {

SymInt size(const char* name) { return SymInt::symbol(name, {.positive = true}); }

TEST(NumberOps, WhatAnOpComputesIsWrittenWithThatOp) {
  size_t written = 0;
  for (const Op* op : registry().all()) {
    if (op->kind != OpKind::symbolic) continue;
    for (bool real : {false, true}) {
      std::vector<SymInt> operands = {size("s0"), size("s1"), size("s2")};
      if (real)
        for (SymInt& x : operands) x = sym::true_div(x, 3);
      SymInt e = op->def->symbolic(operands);
      if (!op->notation.kinds.has(e.kind())) continue;
      EXPECT_EQ(registry().computing(e), op) << op->name();
      ++written;
    }
  }
  EXPECT_GT(written, 24u);
}

TEST(NumberOps, ASquareRootIsNotWrittenAsAPower) {
  SymInt x = sym::to_float(size("s0"));
  EXPECT_EQ(registry().computing(sym::float_pow(x, SymInt::real(0.5)))->schema.args.size(), 1u);
  EXPECT_EQ(registry().computing(sym::float_pow(x, SymInt::real(1.5)))->schema.args.size(), 2u);
}

TEST(NumberOps, RoundingIsFoundAsFilesSpellIt) { EXPECT_NE(registry().find("builtins.round"), nullptr); }

}  // namespace
}  // namespace tenon
