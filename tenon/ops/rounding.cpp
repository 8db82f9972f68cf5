#include "tenon/ops/rounding.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle floor, ceil, trunc, round;

static Handle round_decimals;

namespace {

using loop::Expr;

// Of a scaled number: 10^decimals or its inverse, whichever is exact.
Expr round_at(Expr x, int64_t decimals) {
  if (decimals == 0) return call(loop::Fn::round_even, x);
  double ten = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return decimals < 0 ? call(loop::Fn::round_even, x / ten) * ten : call(loop::Fn::round_even, x * ten) / ten;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.FEp127;
    case DType::f64: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();
  }
}

// The next f16 or bf16 after x, both held in f32: a step of between half a place and one, rounded.
Expr next_narrow(Expr x, Expr toward, DType dtype) {
  bool half = dtype == DType::f16;
  double smallest = half ? 0x1p-24 : 0x1p-133;
  Expr largest = loop::constant(*x.arena, largest_finite(dtype), x.type());
  Expr step = max(loop::abs(x) * (half ? 0x1.01p-11 : 0x1.01p-8), 0.75 * smallest);
  Expr next = round_to(select(toward > x, x + step, x - step), dtype);
  next = select(call(loop::Fn::is_inf, x), call(loop::Fn::copysign, largest, x), next);
  return select(loop::is_nan(x) || loop::is_nan(toward), x + toward, select(x == toward, toward, next));
}

}  // namespace

void register_rounding(Registry& ops) {
  ops.add(floor, {
                     .schema = "floor(Tensor self) -> Tensor",
                     .kind = OpKind::pointwise,
                     .meta = numeric_meta,
                     .scalar = [](Expr self) { return call(loop::Fn::floor, self); },
                     .vjp = {{"self", zero_gradient}},
                 });
  ops.add(ceil, {
                    .schema = "ceil(Tensor self) -> Tensor",
                    .kind = OpKind::pointwise,
                    .meta = numeric_meta,
                    .scalar = [](Expr self) { return call(loop::Fn::ceil, self); },
                    .vjp = {{"self", zero_gradient}},
                });
  ops.add(trunc, {
                     .schema = "trunc(Tensor self) -> Tensor",
                     .kind = OpKind::pointwise,
                     .meta = numeric_meta,
                     .scalar = [](Expr self) { return call(loop::Fn::trunc, self); },
                     .vjp = {{"self", zero_gradient}},
                 });
  ops.alias(trunc, {"fix"});
  ops.add(round, {
                     .schema = "round(Tensor self) -> Tensor",
                     .kind = OpKind::pointwise,
                     .meta = numeric_meta,
                     .scalar = [](Expr self) { return call(loop::Fn::round_even, self); },
                     .vjp = {{"self", zero_gradient}},
                 });
  ops.add(round_decimals, {
                              .schema = "round.decimals(Tensor self, *, int decimals) -> Tensor",
                              .kind = OpKind::pointwise,
                              .meta = floating_meta,
                              .scalar = [](const Scalars& x) { return round_at(x["self"], x.constant("decimals")); },
                              .vjp = {{"self", zero_gradient}},
                          });
  ops.add({
      .schema = "special_round(Tensor self, *, int decimals=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return round_decimals(b["self"], kw("decimals", b.arg("decimals"))); },
  });
  ops.add({
      .schema = "frac(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self - call(loop::Fn::trunc, self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
  });
  ops.add({
      .schema = "nextafter(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) -> Expr {
        DType dtype = common_dtype(x);
        if (dtype == DType::f32 || dtype == DType::f64) return call(loop::Fn::nextafter, x["self"], x["other"]);
        return next_narrow(x["self"], x["other"], dtype);
      },
      .vjp = {{"self", [](Vjp& v) { return where(eq(v["self"], v["other"]), 0.0, v.grad()); }},
              {"other", zero_gradient}},
  });
  ops.add({
      .schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& s) -> Expr {
        DType dtype = s.meta("self").dtype;
        Expr x = s["self"];
        if (!is_floating(dtype)) return x;
        double largest = largest_finite(dtype);
        auto value = [&](const char* arg, double otherwise) { return s.given(arg) ? s.number(arg) : otherwise; };
        Expr finite = loop::select(x == INFINITY, value("posinf", largest),
                                   loop::select(x == -INFINITY, value("neginf", -largest), x));
        return loop::select(loop::is_nan(x), value("nan", 0), finite);
      },
      .vjp = {{"self", [](Vjp& v) { return where(isfinite(v["self"]), v.grad(), 0.0); }}},
      .complex = [](Build& b) { return by_parts(b, "self"); },
  });
}

}  // namespace tenon
