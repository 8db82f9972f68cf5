#include "tenon/ops/item.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/masking.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle item;

namespace {

void require_one_element(const ArgsView& call) {
  SymInt n = count(call.meta("self").sizes);
  call.require(!n.is_int() || n.as_int() == 1, "expected a tensor of one element, got ", call.meta("self"));
}

CallResults read_number(ArgsView& call) {
  require_one_element(call);
  Tensor x = contiguous_copy(call["self"]);
  TensorMeta scalar = make_meta(x.dtype(), {});
  x = x.with_meta(scalar);
  if (x.dtype() == DType::boolean) return {CallArg(scalar_integer(x) != 0)};
  if (is_floating(x.dtype())) return {CallArg(scalar_value(x))};
  return {CallArg(scalar_integer(x))};
}

Metas number_meta(MetaCall& m) {
  require_one_element(m);
  return {BasicArg<TensorMeta>(is_floating(m.meta("self").dtype) ? data_dependent_real() : data_dependent_size())};
}

}  // namespace

void register_item(Registry& ops) {
  ops.add({
      .schema = "_local_scalar_dense(Tensor self) -> Scalar",
      .meta = number_meta,
      .kernel = read_number,
  });
  ops.add(item, {
                    .schema = "item(Tensor self) -> Scalar",
                    .meta = number_meta,
                    .kernel = read_number,
                });
  ops.add({
      .schema = "equal(Tensor self, Tensor other) -> bool",
      .kernel = [](ArgsView& call) -> CallResults {
        if (call.meta("self").sizes != call.meta("other").sizes) return {CallArg(false)};
        Tensor same = eq(call["self"], call["other"]);
        return {CallArg(static_cast<int64_t>(nonzero_positions(same).size()) == same.numel().as_int())};
      },
  });
}

}  // namespace tenon
