#include "tenon/ops/clamp.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle clamp, clamp_min, clamp_max;

static Handle clamp_tensor;

namespace {

using loop::Expr;

bool boolean(Expr x) { return x.type() == loop::Compute::boolean; }
Expr larger_of(Expr a, Expr b) { return boolean(a) ? a || b : max(a, b); }
Expr smaller_of(Expr a, Expr b) { return boolean(a) ? a && b : min(a, b); }

Metas clamp_meta(MetaCall& m) {
  m.require(m.given("min") || m.given("max"), "expected a min or a max, got neither");
  return pointwise_meta(m);
}

Expr clamped(const Scalars& x) {
  Expr y = x["self"];
  if (x.given("min")) y = larger_of(y, x["min"]);
  if (x.given("max")) y = smaller_of(y, x["max"]);
  return y;
}

// Between two tensors of bounds: an input on a bound shares its gradient with it, unless the bounds leave no room.
Grads gradients_between(const Tensor& g, const Tensor& x, const Tensor& low, const Tensor& high) {
  Tensor half = g / 2.0, room = lt(low, high), ordered = le(low, high);
  Tensor on_low = logical_and(eq(x, low), room), on_high = logical_and(eq(x, high), room);
  return {where(logical_or(lt(x, low), gt(x, high)), 0.0, where(logical_or(on_low, on_high), half, g)),
          where(on_low, half, where(logical_and(lt(x, low), ordered), g, 0.0)),
          where(on_high, half, where(logical_or(logical_and(gt(x, high), ordered), lt(high, low)), g, 0.0))};
}

}  // namespace

void register_clamp(Registry& ops) {
  ops.add(clamp, {
                     .schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
                     .kind = OpKind::pointwise,
                     .meta = clamp_meta,
                     .scalar = clamped,
                     .vjp = {{"self",
                              [](Vjp& v) {  // the bounds themselves are outside
                                Tensor x = v["self"], inside;
                                if (v.given("min")) inside = gt(x, v.arg("min"));
                                if (v.given("max")) {
                                  Tensor below = lt(x, v.arg("max"));
                                  inside = inside ? Tensor(logical_and(inside, below)) : below;
                                }
                                return where(inside, v.grad(), 0.0);
                              }}},
                 });
  ops.add(clamp_tensor, {
                            .schema = "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
                            .kind = OpKind::pointwise,
                            .meta = clamp_meta,
                            .scalar = clamped,
                            .vjp = {{"self, min, max",
                                     [](Vjp& v) -> Grads {
                                       if (v.given("min") && v.given("max"))
                                         return gradients_between(v.grad(), v["self"], v["min"], v["max"]);
                                       if (v.given("min")) return tied_gradients(v.grad(), v["self"], v["min"], true);
                                       Grads of = tied_gradients(v.grad(), v["self"], v["max"], false);
                                       return {of[0], none, of[1]};
                                     }}},
                        });
  ops.alias(clamp, {"clip"});
  ops.alias(clamp_tensor, {"clip.Tensor"});
  ops.add(clamp_min, {
                         .schema = "clamp_min(Tensor self, Scalar min) -> Tensor",
                         .kind = OpKind::pointwise,
                         .scalar = larger_of,
                         .vjp = {{"self", [](Vjp& v) { return where(gt(v["self"], v.arg("min")), v.grad(), 0.0); }}},
                     });
  ops.add(clamp_max, {
                         .schema = "clamp_max(Tensor self, Scalar max) -> Tensor",
                         .kind = OpKind::pointwise,
                         .scalar = smaller_of,
                         .vjp = {{"self", [](Vjp& v) { return where(lt(v["self"], v.arg("max")), v.grad(), 0.0); }}},
                     });
  ops.add({
      .schema = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = larger_of,
      .vjp = {{"self, min", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["min"], true); }}},
  });
  ops.add({
      .schema = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = smaller_of,
      .vjp = {{"self, max", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["max"], false); }}},
  });
}

}  // namespace tenon
