// Operators over lists of tensors: what they give for each tensor, and what their in-place forms write.
#include <gtest/gtest.h>

#include <cstring>

#include "tenon/interp/eager.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

Tensor numbers(std::vector<float> values) {
  Tensor out = full(Sizes{static_cast<int64_t>(values.size())}, 0.0);
  std::memcpy(out.mutable_bytes(), values.data(), values.size() * sizeof(float));
  return out;
}
std::vector<float> values(const Tensor& t) {
  Tensor dense = clone(t);
  std::vector<float> out(static_cast<size_t>(dense.numel().as_int()));
  std::memcpy(out.data(), dense.mutable_bytes(), out.size() * sizeof(float));
  return out;
}

// Arguments that every one of them takes: lists of two, numbers and tensors between 0 and 1.
CallArg argument(const SchemaArg& slot) {
  bool number = slot.type.kind == TypeKind::scalar || slot.type.kind == TypeKind::floating;
  if (slot.has_default && !number) return slot.default_value;
  if (slot.type.kind == TypeKind::tensor) {
    if (slot.type.list) return std::vector<Tensor>{numbers({0.25f, 0.5f}), numbers({0.75f, 0.125f})};
    return slot.name == "scalars" ? numbers({0.5f, 0.25f}) : Tensor(full(Sizes{}, 0.5));
  }
  return slot.type.list ? CallArg(std::vector<double>{0.5, 0.25}) : CallArg(0.5);
}

CallArgs arguments(const Op& op) {
  CallArgs out;
  for (const SchemaArg& slot : op.schema.args) out.push_back(argument(slot));
  return out;
}

TEST(Foreach, in_place_forms_write_what_the_others_give) {
  interp::install();
  size_t compared = 0;
  for (const Op* op : registry().all()) {
    if (!op->schema.name.starts_with("aten::_foreach_") || op->schema.writes() || op->schema.base() == "_foreach_mm")
      continue;
    SCOPED_TRACE(op->name());
    std::vector<Tensor> given = call_op(*op, arguments(*op)).list();
    ASSERT_EQ(given.size(), 2u);
    std::string name = text(op->schema.space(), "::", op->schema.base(), "_",
                            op->schema.overload() == "default" ? "" : text(".", op->schema.overload()));
    const Op* writing = registry().find(name);
    if (!writing) continue;
    CallArgs args = arguments(*writing);
    std::vector<Tensor> self = *args[0].get<std::vector<Tensor>>();
    call_op(*writing, args);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(values(self[i]), values(given[i]));
    ++compared;
  }
  EXPECT_GE(compared, 70u);
}

TEST(Foreach, each_element_goes_with_its_own) {
  interp::install();
  std::vector<Tensor> a = {numbers({1, 2}), numbers({3, 4, 5})}, b = {numbers({10, 20}), numbers({30, 40, 50})};
  auto call = [](const char* name, CallArgs args) { return call_op(*registry().find(name), std::move(args)).list(); };
  std::vector<Tensor> sums = call("aten::_foreach_add.List", {a, b, 2.0});
  EXPECT_EQ(values(sums[0]), values(add(a[0], mul(b[0], 2.0))));
  EXPECT_EQ(values(sums[1]), (std::vector<float>{63, 84, 105}));
  EXPECT_EQ(values(call("aten::_foreach_mul.ScalarList", {a, std::vector<double>{2, 3}})[1]),
            (std::vector<float>{9, 12, 15}));
  EXPECT_EQ(values(call("aten::_foreach_addcdiv.ScalarList", {a, b, a, std::vector<double>{0.1, 0.5}})[1]),
            values(add(a[1], mul(div(b[1], a[1]), 0.5))));
  EXPECT_EQ(values(call("aten::_foreach_pow.ScalarAndTensor", {2.0, a})[0]), (std::vector<float>{2, 4}));
  EXPECT_EQ(values(call("aten::_foreach_minimum.Scalar", {a, 3.5})[1]), (std::vector<float>{3, 3.5, 3.5}));
  EXPECT_EQ(values(call("aten::_foreach_norm.Scalar", {a, 2.0, {}})[0]), values(linalg_vector_norm(a[0], 2.0)));
  EXPECT_EQ(values(call("aten::_foreach_max", {a})[1]), (std::vector<float>{5}));
}

TEST(Foreach, lists_of_different_lengths_are_refused) {
  interp::install();
  std::vector<Tensor> a = {numbers({1}), numbers({2})}, b = {numbers({1})};
  EXPECT_THROW(call_op(*registry().find("aten::_foreach_mul.List"), {a, b}), Error);
}

}  // namespace
}  // namespace tenon
