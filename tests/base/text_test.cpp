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

TEST(Error, RequireNamesTheUsersFaultAndExpectOurs) {
  EXPECT_THROW(require(false, "x is ", 3), Error);
  try {
    expect(false, "node ", 3);
  } catch (const InternalError& e) { EXPECT_NE(std::string(e.what()).find("text_test.cpp:"), std::string::npos); }
}

}  // namespace
}  // namespace tenon
