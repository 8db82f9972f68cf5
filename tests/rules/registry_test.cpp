#include "tenon/rules/registry.h"

#include <gtest/gtest.h>

#include "tenon/rules/infer.h"

namespace tenon {
namespace {

TEST(Registry, AnOperatorIsFoundByEverySpelling) {
  const Op* add = registry().find("aten::add.Tensor");
  ASSERT_TRUE(add);
  EXPECT_EQ(registry().find("torch.ops.aten.add.Tensor"), add);
  EXPECT_EQ(registry().find("aten.add.Tensor"), add);
  EXPECT_EQ(registry().find("torch.ops.aten.relu.default"), registry().find("aten::relu"));
}

TEST(Registry, InPlaceAndOutFormsFollowFromTheFunctionalOne) {
  const Op* add = registry().find("aten::add.Tensor");
  const Op* in_place = registry().find("aten::add_.Tensor");
  ASSERT_TRUE(in_place);
  EXPECT_EQ(in_place->functional, add);
  EXPECT_TRUE(in_place->writes());
  EXPECT_EQ(&registry().in_place_form(*add), in_place);
  const Op* out = registry().find("aten::add.out");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->functional, add);
}

TEST(Registry, ADerivedFormIsMadeOnce) {
  EXPECT_EQ(registry().find("aten::sin_"), registry().find("torch.ops.aten.sin_.default"));
}

TEST(Registry, WhatIsNotThereIsNull) {
  for (const char* name :
       {"aten::frobnicate", "aten::add.Frob", "", "aten::", "::", "aten::__", "aten::_", "mine::add.Tensor"})
    EXPECT_EQ(registry().find(name), nullptr) << name;
}

TEST(Registry, DerivedFormsAreNotListed) {
  registry().find("aten::cos_");
  for (const Op* op : registry().all()) EXPECT_EQ(op->functional, nullptr) << op->name();
}

TEST(Registry, EveryOperatorCanBeExecutedDecomposedOrIsStructural) {
  for (const Op* op : registry().all()) {
    const OpDef& def = *op->def;
    bool rule = def.scalar || def.lower || def.view || def.decompose || def.symbolic || def.host || def.asserts;
    EXPECT_TRUE(rule || op->kind == OpKind::structural || op->traits.measures != Measure::none) << op->name();
  }
}

TEST(Registry, EveryGradientIsOfAnArgumentThatIsThere) {
  for (const Op* op : registry().all())
    for (const GradFormula& formula : op->def->vjp)
      for (const std::string& name : split(formula.of, ','))
        if (!trim(name).empty()) { EXPECT_GE(op->schema.find(trim(name)), 0) << op->name() << " " << name; }
}

}  // namespace
}  // namespace tenon
