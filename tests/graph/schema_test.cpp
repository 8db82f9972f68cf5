#include "tenon/graph/schema.h"

#include <gtest/gtest.h>

#include "tenon/base/error.h"

namespace tenon {
namespace {

TEST(Schema, NamesDefaultsAndMarksAreRead) {
  Schema s = parse_schema("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(s.name, "aten::add.Tensor");
  EXPECT_EQ(s.space(), "aten");
  EXPECT_EQ(s.base(), "add");
  EXPECT_EQ(s.overload(), "Tensor");
  ASSERT_EQ(s.args.size(), 3u);
  EXPECT_TRUE(s.args[2].keyword_only);
  EXPECT_TRUE(s.args[2].has_default);
  EXPECT_EQ(*s.args[2].default_value.get<SymInt>(), SymInt(1));
  EXPECT_FALSE(s.writes());
  EXPECT_EQ(s.find("other"), 1);
  EXPECT_EQ(s.find("nothing"), -1);
}

TEST(Schema, AWriteAndAnAliasAreRead) {
  Schema s = parse_schema("add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  EXPECT_TRUE(s.writes());
  EXPECT_EQ(s.args[0].alias, "a");
  EXPECT_FALSE(s.args[1].writes);
}

TEST(Schema, TheCanonicalSpellingReadsBack) {
  for (const char* text :
       {"aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
        "aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
        "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        "aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)"})
    EXPECT_EQ(to_text(parse_schema(text)), text);
}

TEST(Schema, ANumberStandsForAList) {
  Schema s = parse_schema("f(int[2] stride) -> Tensor");
  CallArg arg = 3;
  EXPECT_FALSE(coerce(arg, s.args[0]));
  EXPECT_EQ(*arg.get<Sizes>(), Sizes{3});
}

TEST(Schema, AnArgumentThatDoesNotFitIsDescribed) {
  Schema s = parse_schema("f(bool flag) -> Tensor");
  CallArg arg = std::string("yes");
  EXPECT_TRUE(coerce(arg, s.args[0]));
}

TEST(Schema, ASchemaOfOursThatIsWrongIsAnInternalError) {
  EXPECT_THROW(parse_schema("add(Tensor self"), InternalError);
}

}  // namespace
}  // namespace tenon
