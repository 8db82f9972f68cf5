#include "tenon/ops/dropout.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/random.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle native_dropout, dropout;

static Handle native_dropout_backward;

namespace {

void check_probability(const ArgsView& b, double p) {
  b.require(p >= 0 && p <= 1, "p: expected a number between 0 and 1, got ", p);
}

// 1 with probability `keep`, else 0: for each element, or for each channel.
Tensor mask(const Tensor& x, bool channels, double keep) {
  if (!channels) return to(lt(uniform_like(x), keep), x.dtype());
  Sizes sizes(x.rank(), SymInt(1));
  sizes[0] = x.size(0);
  sizes[1] = x.size(1);
  return to(lt(draw(random_uniform, sizes, is_floating(x.dtype()) ? x.dtype() : DType::f32), keep), x.dtype());
}

Results dropped(Build& b, bool channels, bool self_normalizing) {
  Tensor x = b["input"];
  double p = b.number("p");
  check_probability(b, p);
  if (p == 0 || !b.flag("train") || x.numel() == SymInt(0)) return one(x);
  if (p == 1) return mul(x, zeros_like(x));
  if (channels) b.require(x.rank() >= 2, "expected a tensor with at least two dimensions, got ", x.meta());
  Tensor kept = mask(x, channels, 1 - p);
  if (!self_normalizing) return mul(x, kept / (1 - p));
  constexpr double alpha = 1.7580993408473766;  // -selu(-infinity)
  double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  return add(x * (kept * a), (kept - 1.0) * (alpha * a) + alpha * a * p);
}

}  // namespace

void register_dropout(Registry& ops) {
  ops.add(native_dropout,
          {
              .schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
              .kind = OpKind::composite,
              .traits = {.random = true},
              .decompose = [](Build& b) -> Results {
                Tensor x = b["input"];
                double p = b.number("p");
                check_probability(b, p);
                b.require(is_differentiable(x.dtype()), "expected a floating point tensor, got ", x.meta());
                bool train = !b.given("train") || b.flag("train");
                if (x.numel() == SymInt(0) || !train)
                  return {{CallArg(Tensor(clone(x))), CallArg(Tensor(ones_like(x, kw("dtype", DType::boolean))))}};
                Tensor mask = lt(uniform_like(x), 1 - p);
                return {{CallArg(mul(x, mask) * (p == 1 ? 0 : 1 / (1 - p))), CallArg(mask)}};
              },
              .vjp = {{"input",
                       [](Vjp& v) {
                         bool train = !v.given("train") || v.flag("train");
                         double p = v.number("p");
                         return native_dropout_backward(v.grad(), v.out(1), !train ? 1 : p == 1 ? 0 : 1 / (1 - p));
                       }}},
          });
  ops.add(
      native_dropout_backward,
      {
          .schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
          .kind = OpKind::pointwise,
          .scalar =
              [](const Scalars& x) {
                return x["grad_output"] * cast(x["mask"], x["grad_output"].type()) * x.number("scale");
              },
          .vjp = {{"grad_output", [](Vjp& v) { return native_dropout_backward(v.grad(), v["mask"], v.arg("scale")); }}},
          .promote = Promote::int_to_float,
          .promotes = "grad_output",
      });
  ops.add(dropout, {
                       .schema = "dropout(Tensor input, float p, bool train) -> Tensor",
                       .kind = OpKind::composite,
                       .traits = {.random = true, .may_alias = true},
                       .decompose = [](Build& b) -> Results {
                         check_probability(b, b.number("p"));
                         if (b.number("p") == 0 || !b.flag("train") || b["input"].numel() == SymInt(0))
                           return one(b["input"]);
                         return one(native_dropout(b["input"], b.arg("p"), true)[0]);
                       },
                   });
  ops.add({
      .schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) { return dropped(b, true, false); },
  });
  ops.add({
      .schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) { return dropped(b, false, true); },
  });
  ops.add({
      .schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true, .may_alias = true},
      .decompose = [](Build& b) { return dropped(b, true, true); },
  });
}

}  // namespace tenon
