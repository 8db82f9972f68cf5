// Whole tensors compared: one truth for all elements.
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
      .host = {"allclose",
               {"the sizes of the tensors do not go together", "expected tensors of one dtype of real numbers",
                "rtol and atol: expected numbers that are not negative, got {real} and {real}"}},
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
