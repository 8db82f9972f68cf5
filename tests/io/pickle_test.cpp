#include "tenon/io/pickle.h"

#include <gtest/gtest.h>

#include "tests/io/message.h"

namespace tenon {
namespace {

using namespace std::string_literals;

PickleDocument parse(std::string_view bytes, const PickleLimits& limits = {}) {
  return PickleDocument(std::as_bytes(std::span(bytes)), "data.pkl", limits);
}
std::string refusal(std::string_view bytes, const PickleLimits& limits = {}) {
  return message_of([&] { parse(bytes, limits); });
}

// Shows a value as a Python expression would.
std::string show(PickleValue v) {
  std::string out;
  auto items = [&](std::string_view open, std::string_view close) {
    out += open;
    for (size_t i = 0; i < v.size(); ++i) {
      if (i) out += ", ";
      if (v.has_pairs()) out += show(v.pair(i).key) + ": " + show(v.pair(i).value);
      else out += show(v[i]);
    }
    out += close;
  };
  switch (v.kind()) {
    case PickleKind::none: return "None";
    case PickleKind::boolean: return v.as_bool() ? "True" : "False";
    case PickleKind::integer: return text(v.as_int());
    case PickleKind::real: return text(v.as_real());
    case PickleKind::string: return quoted(v.as_string());
    case PickleKind::bytes: return "b" + quoted(v.as_bytes());
    case PickleKind::tuple: items("(", ")"); return out;
    case PickleKind::list: items("[", "]"); return out;
    case PickleKind::dict:
    case PickleKind::set: items("{", "}"); return out;
    case PickleKind::global: return text(v.module(), ".", v.name());
    case PickleKind::persistent: return "<" + show(v.id()) + ">";
    case PickleKind::call:
    case PickleKind::object: break;
  }
  out = show(v.callee()) + (v.is(PickleKind::object) ? ".new" : "") + show(v.args());
  if (v.size()) items("{", "}");
  if (v.state()) out += "|" + show(*v.state());
  return out;
}
std::string shown(std::string_view bytes) { return show(parse(bytes).root()); }

TEST(PickleReader, ReadsScalars) {
  EXPECT_EQ(
      shown(
          "\x80\2(NK\x07M\x01\x02J\xff\xff\xff\xff\x8a\x05\0\0\0\0\x01\x8a\0G?\xf8\0\0\0\0\0\0\x88\x89X\2\0\0\0hit."s),
      "(None, 7, 513, -1, 4294967296, 0, 1.5, True, False, 'hi')");
}

TEST(PickleReader, ReadsContainersAndSharesByMemo) {
  EXPECT_EQ(shown("\x80\2]q\0(K\1K\2\x86q\1h\1}(K\3]ueK\4a."s), "[(1, 2), (1, 2), {3: []}, 4]");
}

TEST(PickleReader, ReadsProtocol4) {
  EXPECT_EQ(shown("\x80\4\x95\x10\0\0\0\0\0\0\0\x8c\1m\x94\x8c\1n\x94\x93\x94)R\x94\x8f(K\1K\2\x90(K\3\x91\x87."s + ""),
            "(m.n(), {1, 2}, {3})");
}

TEST(PickleReader, CallsAreInert) {
  EXPECT_EQ(shown("\x80\2"
                  "cos\nsystem\nX\4\0\0\0true\x85R."s),
            "os.system('true')");
}

TEST(PickleReader, ObjectsKeepItemsAndState) {
  EXPECT_EQ(shown("\x80\2"
                  "ccollections\nOrderedDict\n)R(K\1K\2u}X\1\0\0\0mNsb."s),
            "collections.OrderedDict(){1: 2}|{'m': None}");
  EXPECT_EQ(shown("\x80\2"
                  "cm\nC\nK\1\x85\x81(K\5K\6e."s),
            "m.C.new(1){5, 6}");
}

TEST(PickleReader, ReadsPersistentIds) {
  EXPECT_EQ(shown("\x80\2(X\7\0\0\0storagectorch\nFloatStorage\ntQ."s), "<('storage', torch.FloatStorage)>");
}

TEST(PickleReader, NamesAnOpcodeItDoesNotRead) {
  EXPECT_NE(refusal("\x80\2I1\n."s).find("the opcode INT (73)"), std::string::npos);
  EXPECT_NE(refusal("\x80\4(\x92."s).find("the opcode NEWOBJ_EX"), std::string::npos);
  EXPECT_NE(refusal("\x80\2\xff."s).find("the opcode unknown (255)"), std::string::npos);
}

TEST(PickleReader, RefusesIntegersBeyond64Bits) {
  EXPECT_NE(refusal("\x80\2\x8a\x09\0\0\0\0\0\0\0\x80\0."s).find("does not fit 64 bits"), std::string::npos);
  EXPECT_EQ(shown("\x80\2\x8a\x08\0\0\0\0\0\0\0\x80."s), text(INT64_MIN));
}

TEST(PickleReader, RefusesAListThatContainsItself) {
  EXPECT_NE(refusal("\x80\2]q\0h\0a."s).find("it contains itself"), std::string::npos);
  EXPECT_NE(refusal("\x80\2]q\0h\0\x85\x85"
                    "a."s)
                .find("it contains itself"),
            std::string::npos);
  EXPECT_NE(refusal("\x80\2"
                    "cm\nC\n)\x81q\0h\0b."s)
                .find("it contains itself"),
            std::string::npos);
}

TEST(PickleReader, RefusesATreeThatSharingMakesEnormous) {
  std::string bytes = "\x80\2()q\0"s;
  for (int i = 0; i < 60; ++i) bytes += "h\0h\0\x86q\0"s;
  EXPECT_NE(refusal(bytes + "t.").find("shared values make it larger"), std::string::npos) << refusal(bytes + "t.");
}

TEST(PickleReader, DepthIsLimited) {
  auto nested = [](size_t depth) { return "\x80\2)"s + std::string(depth, '\x85') + "."; };
  EXPECT_EQ(refusal(nested(199)), "");
  EXPECT_NE(refusal(nested(200)).find("nested deeper than 200"), std::string::npos);
  EXPECT_NE(refusal(nested(1'000'000)).find("nested deeper than 200"), std::string::npos);
}

TEST(PickleReader, TheNumberOfValuesIsLimited) {
  EXPECT_NE(refusal("\x80\2(" + std::string(200, ']') + "t.", {.values = 100}).find("more than 100 values"),
            std::string::npos);
  EXPECT_NE(refusal("\x80\2Nr\xff\xff\xff\x7f."s).find("memo number 2147483647 is above"), std::string::npos);
}

TEST(PickleReader, RefusesMisuseOfTheStack) {
  for (const std::string& bad : {"\x80\2."s,
                                 "\x80\2NN."s,
                                 "\x80\2(."s,
                                 "\x80\2t."s,
                                 "\x80\2a."s,
                                 "\x80\2Na."s,
                                 "\x80\2NNa."s,
                                 "\x80\2(Na."s,
                                 "\x80\2h\0."s,
                                 "\x80\2NNR."s,
                                 "\x80\2"
                                 "cm\nn\nNR."s,
                                 "\x80\2]Nb."s,
                                 "\x80\2}(Nu."s,
                                 "\x80\2}NNsN\x85."s + "x",
                                 "\x80\2q\0."s,
                                 "\x80\2N(q\0."s,
                                 "\x80\4NN\x93."s,
                                 "\x80\2"
                                 "cm\nn."s,
                                 "\x80\1N."s,
                                 "\x80\6N."s,
                                 "N."s,
                                 ""s,
                                 "\x80\2N.N"s,
                                 "\x80\2X\xff\xff\xff\xff."s,
                                 "\x80\4\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s,
                                 "\x80\4\x95\xff\0\0\0\0\0\0\0N."s,
                                 "\x80\2]K\1aK\2K\3s."s})
    EXPECT_NE(refusal(bad).find("not a pickle that can be read"), std::string::npos) << quoted(bad);
}

TEST(PickleReader, EveryTruncationIsRefused) {
  std::string good = "\x80\2(cm\nn\nX\2\0\0\0hiJ\1\0\0\0G?\xf8\0\0\0\0\0\0\x8a\2\1\1](K\1e}(K\1Nut."s;
  EXPECT_EQ(refusal(good), "");
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(refusal(good.substr(0, size)), "") << size;
}

TEST(PickleReader, AccessorsSayWhatWasExpectedAndFound) {
  PickleDocument document = parse("\x80\2X\1\0\0\0x\x85."s);
  EXPECT_EQ(message_of([&] { document.root()[0].as_int(); }), "data.pkl: expected an integer, found the string 'x'");
  EXPECT_EQ(message_of([&] { document.root()[1]; }), "data.pkl: expected more than 1 items, found a tuple of 1");
  EXPECT_EQ(message_of([&] { document.root().pair(0); }), "data.pkl: expected a dict, found a tuple of 1");
  EXPECT_EQ(message_of([&] { document.root().callee(); }), "data.pkl: expected a call or object, found a tuple of 1");
}

TEST(PickleWriter, WhatIsWrittenIsRead) {
  PickleWriter w;
  w.begin_tuple();
  w.none();
  for (int64_t v : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{65536}, int64_t{-1}, INT64_MIN, INT64_MAX})
    w.integer(v);
  w.real(-0.1);
  w.boolean(true);
  w.begin_list();
  w.string("h\xC3\xA9");
  w.end_list();
  w.begin_dict();
  w.string("k");
  w.begin_tuple();
  w.end_tuple();
  w.end_dict();
  w.end_tuple();
  EXPECT_EQ(shown(w.take()),
            "(None, 0, 255, 256, 65536, -1, -9223372036854775808, 9223372036854775807, -0.1, True, ['h\xC3\xA9'], "
            "{'k': ()})");
}

TEST(PickleWriter, TensorsAreCallsOverStorages) {
  int64_t sizes[] = {2, 3}, strides[] = {3, 1};
  PickleWriter w;
  w.begin_list();
  w.tensor({.storage = "FloatStorage", .key = "0", .count = 6, .sizes = sizes, .strides = strides});
  w.tensor(
      {.dtype = "uint16", .key = "1", .count = 12, .offset = 1, .sizes = {}, .strides = {}, .requires_grad = true});
  w.end_list();
  EXPECT_EQ(
      shown(w.take()),
      "[torch._utils._rebuild_tensor_v2(<('storage', torch.FloatStorage, '0', 'cpu', 6)>, 0, (2, 3), (3, 1), False, "
      "collections.OrderedDict()), torch._utils._rebuild_tensor_v3(<('storage', torch.storage.UntypedStorage, '1', "
      "'cpu', "
      "12)>, 1, (), (), True, collections.OrderedDict(), torch.uint16)]");
}

TEST(PickleWriter, ObjectsAreOfTheirClass) {
  PickleWriter w;
  w.begin_list();
  w.begin_object("m", "Point");
  w.integer(1);
  w.none();
  w.end_object();
  w.begin_object_with_fields("m", "Sample");
  w.string("x");
  w.integer(2);
  w.end_object_with_fields();
  w.begin_default_dict("builtins", "list");
  w.string("k");
  w.begin_deque(3);
  w.integer(5);
  w.end_list();
  w.end_dict();
  w.begin_default_dict("", "");
  w.end_dict();
  w.begin_deque(std::nullopt);
  w.end_list();
  w.end_list();
  EXPECT_EQ(shown(w.take()),
            "[m.Point.new(1, None), m.Sample.new()|{'x': 2}, "
            "collections.defaultdict(builtins.list){'k': collections.deque((), 3){5}}, "
            "collections.defaultdict(None), collections.deque()]");
}

TEST(PickleWriter, AClassCannotSmuggleInAnotherLine) {
  PickleWriter w;
  EXPECT_THROW(w.begin_object("os", "system\nX"), Error);
}

TEST(PickleWriter, MisuseIsOurError) {
  PickleWriter w;
  EXPECT_THROW(w.take(), InternalError);
  w.begin_dict();
  w.none();
  EXPECT_THROW(w.end_dict(), InternalError);
  EXPECT_THROW(w.end_list(), InternalError);
}

}  // namespace
}  // namespace tenon
