// Functions of complex numbers, for real ones: a real tensor is its own conjugate.
#include <cmath>

#include "tenon/ops/creation.h"
#include "tenon/rules/registry.h"

namespace tenon {

using loop::Expr;

void register_complex(Registry& ops) {
  for (const char* schema : {"real(Tensor(a) self) -> Tensor(a)", "conj(Tensor(a) self) -> Tensor(a)",
                             "resolve_conj(Tensor(a) self) -> Tensor(a)", "resolve_neg(Tensor(a) self) -> Tensor(a)",
                             "conj_physical(Tensor self) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .traits = {.may_alias = true},
        .decompose = [](Build& b) -> Results {
          Tensor x = b["self"];
          b.supports(!is_complex(x.dtype()), "complex tensors are not supported yet, got ", x.meta());
          return one(x);
        },
    });
  ops.add({
      .schema = "isreal(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return ones_like(b["self"], kw("dtype", DType::boolean)); },
  });
  ops.add({
      .schema = "angle(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar =
          [](Expr self) { return loop::select(loop::is_nan(self), self, loop::select(self < 0.0, M_PI, self * 0.0)); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
      .promote = Promote::int_to_float,
  });
}

}  // namespace tenon
