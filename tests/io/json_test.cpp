#include "tenon/io/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/io/message.h"

namespace tenon {
namespace {

JsonDocument parse(std::string_view text, const JsonLimits& limits = {}) {
  return JsonDocument(text, "m.json", limits);
}
std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  return message_of([&] { parse(text, limits); });
}

TEST(JsonReader, ReadsEveryKind) {
  JsonDocument document =
      parse(R"({"n": null, "b": true, "i": -7, "d": 0.1, "s": "h\u00e9\n", "a": [1, [2]], "o": {}})");
  Json root = document.root();
  EXPECT_TRUE(root.at("n").is_null());
  EXPECT_TRUE(root.at("b").as_bool());
  EXPECT_EQ(root.at("i").as_int(), -7);
  EXPECT_EQ(root.at("d").as_double(), 0.1);
  EXPECT_EQ(root.at("i").as_double(), -7.0);
  EXPECT_EQ(root.at("s").as_string(), "h\xC3\xA9\n");
  EXPECT_EQ(root.at("a").size(), 2u);
  EXPECT_EQ(root.at("a")[1][0].as_int(), 2);
  EXPECT_EQ(root.at("o").size(), 0u);
}

TEST(JsonReader, MembersComeInFileOrder) {
  JsonDocument document = parse(R"({"b": 1, "a": 2, "c": 3})");
  std::string keys;
  for (auto [key, value] : document.root().members()) keys += text(key, value.as_int(), ' ');
  EXPECT_EQ(keys, "b1 a2 c3 ");
}

TEST(JsonReader, FindsEveryMemberOfALargeObject) {
  std::string source = "{";
  for (int i = 0; i < 1000; ++i) source += text(i ? "," : "", "\"k", (i * 7919) % 1000, "\":", (i * 7919) % 1000);
  JsonDocument document = parse(source + "}");
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(document.root().at(text('k', i)).as_int(), i);
  EXPECT_FALSE(document.root().find("k1000"));
  EXPECT_EQ(document.root().members().size(), 1000u);
}

TEST(JsonReader, AbsentAndNullDiffer) {
  JsonDocument document = parse(R"({"a": null})");
  EXPECT_TRUE(document.root().find("a"));
  EXPECT_FALSE(document.root().given("a"));
  EXPECT_FALSE(document.root().find("b"));
}

TEST(JsonReader, ErrorsNamePathExpectedAndFound) {
  JsonDocument document = parse(R"({"graph": {"nodes": [1, {"inputs": [{"arg": "x"}]}]}, "p.q": [null]})");
  Json arg = document.root().at("graph").at("nodes")[1].at("inputs")[0].at("arg");
  EXPECT_EQ(message_of([&] { arg.as_int(); }),
            "m.json: graph.nodes[1].inputs[0].arg: expected an integer, found the string 'x'");
  EXPECT_EQ(message_of([&] { document.root().at("p.q")[0].as_string(); }),
            "m.json: ['p.q'][0]: expected a string, found null");
  EXPECT_EQ(message_of([&] { document.root().at("x"); }), "m.json: expected a member 'x', found none");
  EXPECT_EQ(message_of([&] { document.root().at("graph").at("nodes")[2]; }),
            "m.json: graph.nodes: expected more than 2 items, found 2");
}

TEST(JsonReader, TheLargestIntegersAreReadAndLargerOnesAreNotIntegers) {
  JsonDocument document = parse("[9223372036854775807, -9223372036854775808, 9223372036854775808, 1e3]");
  EXPECT_EQ(document.root()[0].as_int(), INT64_MAX);
  EXPECT_EQ(document.root()[1].as_int(), INT64_MIN);
  EXPECT_EQ(message_of([&] { document.root()[2].as_int(); }),
            "m.json: [2]: expected an integer, found an integer beyond 64 bits, 9.223372036854776e+18");
  EXPECT_EQ(document.root()[2].as_double(), 9223372036854775808.0);
  EXPECT_FALSE(document.root()[3].is_int());
}

TEST(JsonReader, NumbersReadToTheLastBit) {
  JsonDocument document = parse("[2.2250738585072011e-308, 1.7976931348623157e308, 0.30000000000000004, 5e-324]");
  EXPECT_EQ(document.root()[0].as_double(), 2.2250738585072011e-308);
  EXPECT_EQ(document.root()[1].as_double(), 1.7976931348623157e308);
  EXPECT_EQ(document.root()[2].as_double(), 0.1 + 0.2);
  EXPECT_EQ(document.root()[3].as_double(), 5e-324);
}

TEST(JsonReader, NumbersTooSmallAreZeroAndTooLargeAreRefused) {
  JsonDocument document = parse(text("[1e-999, -1E-999, 0e300, 0.", std::string(500, '0'), "1]"));
  for (size_t i : {0, 1, 2, 3}) EXPECT_EQ(document.root()[i].as_double(), 0.0);
  EXPECT_TRUE(std::signbit(document.root()[1].as_double()));
  for (const std::string& large :
       {std::string("1e999"), "1" + std::string(400, '0'), std::string("1e99999999999999999999999"),
        std::string("1.8e308"), std::string("-1.8e308")})
    EXPECT_NE(refusal(large), "") << large;
}

TEST(JsonReader, RefusesDuplicateKeys) {
  EXPECT_NE(refusal(R"({"a": 1, "b": 2, "a": 3})").find("the key 'a' occurs twice"), std::string::npos);
  std::string source = "{";
  for (int i = 0; i < 100; ++i) source += text("\"k", i, "\": 0, ");
  EXPECT_NE(refusal(source + R"("k50": 1})").find("the key 'k50' occurs twice"), std::string::npos);
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (std::string_view bad : {"",
                               " ",
                               "{",
                               "[1,]",
                               "[1 2]",
                               "NaN",
                               "[Infinity]",
                               "-Infinity",
                               "01",
                               "+1",
                               "1.",
                               "nul",
                               "'a'",
                               "{\"a\" 1}",
                               "{a: 1}",
                               "\"a",
                               "\"\x80\"",
                               "\"\xC0\xAF\"",
                               "\"\xED\xA0\x80\"",
                               "\"\\ud800\"",
                               "\"\\x\"",
                               "1 2",
                               "[1e999]",
                               "\"a\nb\"",
                               "/**/1"})
    EXPECT_NE(refusal(bad).find("m.json: not valid JSON at line "), std::string::npos) << bad;
}

TEST(JsonReader, ACharacterCutByTheEndIsRefused) {
  for (std::string_view cut : {"\"\xE4", "\"\xF0", "\"\xF0\x9F\x98", "\"\xC3"})
    EXPECT_NE(refusal(cut).find("not valid JSON"), std::string::npos);
}

TEST(JsonReader, RefusesANulCharacterAfterTheValue) {
  EXPECT_NE(refusal(std::string_view("{}\0{}", 5)).find("unexpected character '\\x00'"), std::string::npos);
}

TEST(JsonReader, ErrorsNameLineAndColumn) {
  EXPECT_NE(refusal("{\n  \"a\": ?}").find("line 2, column 8"), std::string::npos) << refusal("{\n  \"a\": ?}");
}

TEST(JsonReader, DepthIsLimited) {
  EXPECT_EQ(refusal(std::string(200, '[') + std::string(200, ']')), "");
  EXPECT_NE(refusal(std::string(201, '[') + std::string(201, ']')).find("nested deeper than 200"), std::string::npos);
  EXPECT_NE(refusal(std::string(1'000'000, '[')).find("nested deeper than 200"), std::string::npos);
}

TEST(JsonReader, TheNumberOfValuesIsLimited) {
  EXPECT_EQ(refusal("[1, 2, []]", {.values = 7}), "");
  EXPECT_NE(refusal("[[], [], [], [], [], [], [], []]", {.values = 7}).find("more than 7 values"), std::string::npos);
}

TEST(JsonReader, ADocumentMayMove) {
  JsonDocument first = parse("[\"a long enough string that is not kept in place\"]");
  Json item = first.root()[0];
  JsonDocument second = std::move(first);
  EXPECT_EQ(item.as_string(), "a long enough string that is not kept in place");
}

TEST(JsonWriter, WritesAsPythonDoes) {
  JsonWriter w;
  w.begin_object();
  w.field("a", int64_t{1});
  w.field("f", 1e-5);
  w.field("t", true);
  w.field("s", "\"\\\n\x7f\x01 h\xC3\xA9 \xF0\x9F\x98\x80");
  w.key("l");
  w.begin_array();
  w.real(2.0);
  w.null();
  w.begin_array();
  w.end_array();
  w.begin_object();
  w.end_object();
  w.end_array();
  w.end_object();
  EXPECT_EQ(
      w.take(),
      R"({"a": 1, "f": 1e-05, "t": true, "s": "\"\\\n\u007f\u0001 h\u00e9 \ud83d\ude00", "l": [2.0, null, [], {}]})");
}

TEST(JsonWriter, RefusesWhatJsonCannotHold) {
  JsonWriter w;
  EXPECT_THROW(w.real(1.0 / 0.0), Error);
  std::string out;
  EXPECT_THROW(append_json_string(out, "\xC3"), Error);
  EXPECT_THROW(append_json_string(out, "\xED\xA0\x80"), Error);
}

TEST(JsonWriter, MisuseIsOurError) {
  JsonWriter w;
  w.begin_object();
  EXPECT_THROW(w.integer(1), InternalError);
  EXPECT_THROW(w.end_array(), InternalError);
  EXPECT_THROW(w.take(), InternalError);
}

}  // namespace
}  // namespace tenon
