// Which operators of gradients have no gradient themselves.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// PyTorch's answer for those that are left.
const std::map<std::string, const char*> known = {
    {"aten::multi_margin_loss_backward", "derivative for aten::multi_margin_loss_backward is not implemented"},
    {"aten::multilabel_margin_loss_backward",
     "derivative for aten::multilabel_margin_loss_backward is not implemented"},
    {"aten::_segment_reduce_backward", "derivative for aten::_segment_reduce_backward is not implemented"},
};

TEST(SecondRules, OperatorsOfGradientsHaveGradientsThemselves) {
  std::set<std::string> without;
  for (const Op* op : registry().all()) {
    bool of_gradients = op->schema.base().find("backward") != std::string_view::npos;
    if (!of_gradients || !op->def || op->schema.writes() || op->functional) continue;
    if (op->def->vjp.empty() && !op->def->for_grad && !op->def->decompose) {
      std::string name(op->name());
      without.insert(name.substr(0, name.find(".default")));
    }
  }
  std::set<std::string> expected;
  for (const auto& [name, answer] : known) expected.insert(name);
  EXPECT_EQ(without, expected);
}

}  // namespace
}  // namespace tenon
