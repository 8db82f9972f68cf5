#include "tenon/ops/item.h"

#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle item;

namespace {

void require_one_element(const ArgsView& call) {
  SymInt n = count(call.meta("self").sizes);
  call.require(!n.is_int() || n.as_int() == 1, "expected a tensor of one element, got ", call.meta("self"));
}

constexpr const char* one_element = "expected a tensor of one element, got {}";

Metas number_meta(MetaCall& m) {
  require_one_element(m);
  return {BasicArg<TensorMeta>(is_floating(m.meta("self").dtype) ? data_dependent_real() : data_dependent_size())};
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
