#include "tenon/base/text.h"

#include <gtest/gtest.h>

#include "tenon/base/error.h"

namespace tenon {
namespace {

TEST(Text, NumbersReadAsPythonWritesThem) {
  EXPECT_EQ(text(1e-05), "1e-05");
  EXPECT_EQ(text(2.0), "2.0");
  EXPECT_EQ(text(-0.0), "-0.0");
  EXPECT_EQ(text(0.1), "0.1");
  EXPECT_EQ(text(1e16), "1e+16");
  EXPECT_EQ(text(123456789.5), "123456789.5");
}

TEST(Text, PartsAreJoined) { EXPECT_EQ(text("a", 1, ' ', true, std::vector<int>{1, 2}), "a1 true[1, 2]"); }

TEST(Text, TextFromAFileIsMadeSafeToShow) {
  EXPECT_EQ(quoted("plain"), "'plain'");
  EXPECT_EQ(quoted(std::string_view("a\0\x1b\xff", 4)), "'a\\x00\\x1b\\xff'");
  EXPECT_EQ(quoted("h\xc3\xa9"), "'h\xc3\xa9'");
}

TEST(Text, WhatATerminalActsOnIsEscaped) {
  EXPECT_EQ(quoted("a\x1b[31m"), "'a\\x1b[31m'");
  EXPECT_EQ(quoted("\x7f"), "'\\x7f'");
  EXPECT_EQ(quoted("\xc2\x9b"
                   "31m"),
            "'\\u009b31m'");  // C1: CSI
  EXPECT_EQ(quoted("\xe2\x80\xae"
                   "txt"),
            "'\\u202etxt'");  // turns the direction
  EXPECT_EQ(quoted("\xe2\x81\xa6"), "'\\u2066'");
  EXPECT_EQ(quoted("\xe2\x80\xa8"), "'\\u2028'");
  EXPECT_EQ(quoted("\xf3\xa0\x80\x81"), "'\\U000e0001'");
  EXPECT_EQ(quoted("\xc0\x9b"), "'\\xc0\\x9b'");           // overlong
  EXPECT_EQ(quoted("\xed\xa0\x80"), "'\\xed\\xa0\\x80'");  // half of a pair
  EXPECT_TRUE(is_printable("h\xc3\xa9 \xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_printable("a\nb"));
}

TEST(Text, PrintableKeepsLinesWhereThereAreMany) {
  EXPECT_EQ(printable("a\tb\nc\rd\xff", Lines::many), "a\tb\nc\\x0dd\\xff");
  EXPECT_EQ(printable("a\tb\nc", Lines::one), "a\\x09b\\x0ac");
  EXPECT_EQ(printable("plain \xc3\xa9", Lines::one), "plain \xc3\xa9");
}

TEST(Error, ALongMessageKeepsItsBeginningAndItsEnd) {
  EXPECT_EQ(std::string(Error(std::string(longest_message, 'x')).what()).size(), longest_message);
  std::string message = Error("begin " + std::string(5'000'000, 'x') + " end").what();
  EXPECT_LE(message.size(), longest_message);
  EXPECT_TRUE(starts_with(message, "begin xxx"));
  EXPECT_TRUE(ends_with(message, "xxx end"));
  EXPECT_NE(message.find("x [...] x"), message.npos);
  std::string wide = "a";  // cut between characters only
  for (int i = 0; i < 1000; ++i) wide += "\xe2\x82\xac";
  EXPECT_TRUE(is_printable(Error(wide).what()));
}

TEST(Error, RequireNamesTheUsersFaultAndExpectOurs) {
  EXPECT_THROW(require(false, "x is ", 3), Error);
  try {
    expect(false, "node ", 3);
  } catch (const InternalError& e) { EXPECT_NE(std::string(e.what()).find("text_test.cpp:"), std::string::npos); }
}

}  // namespace
}  // namespace tenon
