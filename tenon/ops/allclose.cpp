// Whole tensors compared: one truth for all elements.
#include "tenon/ops/comparison.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

Results truth(Build& b, const Handle& reduction) {
  Tensor x = b["self"];
  b.require(x.dtype() == DType::boolean, "expected a bool tensor, got ", x.meta());
  return reduction(x);
}

}  // namespace

void register_allclose(Registry& ops) {
  ops.add({
      .schema = "allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
                "equal_nan=False) -> bool",
      .kernel = [](ArgsView& call) -> CallResults {
        Tensor close = isclose(call["self"], call["other"], call.arg("rtol"), call.arg("atol"), call.arg("equal_nan"));
        return {CallArg(scalar_integer(all(close)) != 0)};
      },
  });
  ops.add({
      .schema = "_is_all_true(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return truth(b, all); },
  });
  ops.add({
      .schema = "_is_any_true(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return truth(b, any); },
  });
}

}  // namespace tenon
