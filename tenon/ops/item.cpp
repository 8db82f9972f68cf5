#include "tenon/ops/item.h"

#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle item;

namespace {

void require_one_element(const ArgsView& call) {
  relies_on_equal(call, count(call.meta("self").sizes), 1, "expected a tensor of one element, got ", call.meta("self"));
}

constexpr const char* one_element = "expected a tensor of one element, got {}";

Metas number_meta(MetaCall& m) {
  require_one_element(m);
  DType dtype = m.meta("self").dtype;
  if (is_floating(dtype)) return {BasicArg<TensorMeta>(data_dependent_real())};
  sym::ShapeEnv* shapes = growing_shapes();
  require(shapes != nullptr, "a number that only a run can tell was asked for outside of a program");
  sym::Range range = dtype == DType::boolean ? sym::Range{0, 1} : sym::Range{};
  SymInt number = shapes->fresh_unbacked(range);
  shapes->constrain(number, range);  // files list it
  return {BasicArg<TensorMeta>(dtype == DType::boolean ? sym::eq(number, 1) : number)};
}

}  // namespace

void register_item(Registry& ops) {
  ops.add({
      .schema = "_local_scalar_dense(Tensor self) -> Scalar",
      .meta = number_meta,
      .host = {"item", {one_element}},
  });
  ops.add(item, {
                    .schema = "item(Tensor self) -> Scalar",
                    .meta = number_meta,
                    .host = {"item", {one_element}},
                });
  ops.add({
      .schema = "equal(Tensor self, Tensor other) -> bool",
      .host = {"equal"},
  });
}

}  // namespace tenon
