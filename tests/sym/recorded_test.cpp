// Expressions written by PyTorch, read back. The file is made by record_expressions.py.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <fstream>

#include "tenon/base/error.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"
#include "tenon/sym/range.h"

namespace tenon::sym {
namespace {

struct Recorded {
  std::string infix, srepr;
  std::vector<std::string> values;  // "s0=3 u0=-2 is 7"
};

const std::vector<Recorded>& recorded() {
  static const std::vector<Recorded> all = [] {
    std::vector<Recorded> out;
    std::ifstream file(TENON_TEST_DATA "/sym/expressions.txt");
    std::string line;
    while (std::getline(file, line)) {
      if (starts_with(line, "infix ")) out.push_back({.infix = line.substr(6)});
      else if (starts_with(line, "srepr ")) out.back().srepr = line.substr(6);
      else if (starts_with(line, "at ")) out.back().values.push_back(line.substr(3));
    }
    return out;
  }();
  return all;
}

double read_number(std::string_view s) {
  if (s == "True") return 1;
  if (s == "False") return 0;
  double out = NAN;
  std::from_chars(s.data(), s.data() + s.size(), out);
  return out;
}

struct At {
  Bindings bindings;
  Ranges ranges;  // a little around each value
  double value = 0;
};

At read_at(const std::string& line, std::span<const Expr> symbols) {
  At at;
  auto words = split(line, ' ');
  at.value = read_number(words.back());
  for (const std::string& word : words) {
    size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    double value = read_number(std::string_view(word).substr(equals + 1));
    for (Expr s : symbols) {
      if (s.name() != word.substr(0, equals)) continue;
      if (s.is_integer_typed()) at.bindings.set(s, static_cast<int64_t>(value));
      else at.bindings.set_real(s, value);
      at.ranges.set(s, {static_cast<int64_t>(std::floor(value)) - 1, static_cast<int64_t>(std::ceil(value)) + 2});
    }
  }
  return at;
}

TEST(Recorded, ThereAreSeveralHundred) { EXPECT_GT(recorded().size(), 400u); }

TEST(Recorded, ValuesAreThoseOfPyTorch) {
  for (const Recorded& r : recorded()) {
    Expr e = parse(r.srepr);
    for (const std::string& line : r.values) {
      At at = read_at(line, symbols_of(e));
      EXPECT_NEAR(evaluate_real(e, at.bindings), at.value, 1e-9 * std::max(1.0, std::abs(at.value)))
          << r.infix << " at " << line << "\nread as " << to_infix(e);
    }
  }
}

TEST(Recorded, BothSpellingsReadTheSame) {
  for (const Recorded& r : recorded()) {
    Expr e = parse(r.srepr);
    EXPECT_EQ(parse(r.infix, symbols_of(e)), e)
        << r.infix << "\nread as " << to_infix(parse(r.infix, symbols_of(e))) << "\nand as  " << to_infix(e);
  }
}

TEST(Recorded, WhatIsWrittenReadsBackEqual) {
  for (const Recorded& r : recorded()) {
    Expr e = parse(r.srepr);
    EXPECT_EQ(parse(to_srepr(e)), e) << to_srepr(e);
    EXPECT_EQ(parse(to_infix(e), symbols_of(e)), e) << to_infix(e);
  }
}

TEST(Recorded, EveryValueLiesInItsRange) {
  for (const Recorded& r : recorded()) {
    Expr e = parse(r.srepr);
    for (const std::string& line : r.values) {
      At at = read_at(line, symbols_of(e));
      Range range = range_of(e, at.ranges);
      EXPECT_LE(static_cast<double>(range.lo), at.value) << to_infix(e) << " at " << line;
      EXPECT_GE(static_cast<double>(range.hi), at.value) << to_infix(e) << " at " << line;
      if (auto known = decide(e, at.ranges)) { EXPECT_EQ(*known, at.value != 0) << to_infix(e) << " at " << line; }
    }
  }
}

TEST(Recorded, SubstitutingValuesFoldsToThem) {
  for (const Recorded& r : recorded()) {
    Expr e = parse(r.srepr);
    for (const std::string& line : r.values) {
      At at = read_at(line, symbols_of(e));
      Expr folded = substitute(e, at.bindings.values());
      ASSERT_TRUE(symbols_of(folded).empty()) << to_infix(folded);
      EXPECT_NEAR(evaluate_real(folded, {}), at.value, 1e-9 * std::max(1.0, std::abs(at.value)))
          << to_infix(e) << " at " << line;
    }
  }
}

}  // namespace
}  // namespace tenon::sym
