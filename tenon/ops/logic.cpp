#include "tenon/ops/logic.h"

#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle logical_not, logical_and, logical_or, logical_xor, bitwise_not, bitwise_and, bitwise_or, bitwise_xor, isclose;

static Handle bitwise_and_scalar, bitwise_or_scalar, bitwise_xor_scalar;

namespace {

using loop::Expr;

Metas bits_meta(MetaCall& m) {
  DType dtype = common_dtype(m);
  m.require(!is_floating(dtype), "expected integers or booleans, got ", describe(m.arg(m.is_tensor(0) ? 0 : 1)));
  return pointwise_meta(m);
}

Metas shift_meta(MetaCall& m) {
  DType dtype = common_dtype(m);
  m.require(is_integral(dtype), "expected integers, got ", describe(m.arg(m.is_tensor(0) ? 0 : 1)));
  return pointwise_meta(m);
}

Expr truth(Expr x) { return cast(x, loop::Compute::boolean); }

}  // namespace

void register_logic(Registry& ops) {
  ops.add(logical_not, {
      .schema = "logical_not(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return !self; },
      .promote = Promote::to_boolean,
  });
  ops.add(logical_and, {
      .schema = "logical_and(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return self && other; },
      .promote = Promote::to_boolean,
  });
  ops.add(logical_or, {
      .schema = "logical_or(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return self || other; },
      .promote = Promote::to_boolean,
  });
  ops.add(logical_xor, {
      .schema = "logical_xor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return call(loop::Fn::logical_xor, truth(self), truth(other)); },
      .promote = Promote::to_boolean,
  });
  ops.add(bitwise_not, {
      .schema = "bitwise_not(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = bits_meta,
      .scalar = [](Expr self) -> Expr { return self.type() == loop::Compute::boolean ? !self : call(loop::Fn::bit_not, self); },
  });

#define TENON_BITWISE(handle, fn, dunder)                                                                                \
  ops.add(handle, {.schema = #handle ".Tensor(Tensor self, Tensor other) -> Tensor",                                     \
                   .kind = OpKind::pointwise,                                                                              \
                   .meta = bits_meta,                                                                                    \
                   .scalar = [](const Scalars& x) { return call(loop::Fn::fn, x[0], x[1]); }});                          \
  ops.add(handle##_scalar, {.schema = #handle ".Scalar(Tensor self, Scalar other) -> Tensor",                            \
                            .kind = OpKind::pointwise,                                                                     \
                            .meta = bits_meta,                                                                           \
                            .scalar = [](const Scalars& x) { return call(loop::Fn::fn, x[0], x[1]); }});                 \
  ops.add({.schema = #handle ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor",                                      \
           .kind = OpKind::pointwise,                                                                                      \
           .meta = bits_meta,                                                                                            \
           .scalar = [](const Scalars& x) { return call(loop::Fn::fn, x[0], x[1]); }});                                  \
  ops.alias(handle, {dunder ".Tensor"});                                                                                 \
  ops.alias(handle##_scalar, {dunder ".Scalar"})
  TENON_BITWISE(bitwise_and, bit_and, "__and__");
  TENON_BITWISE(bitwise_or, bit_or, "__or__");
  TENON_BITWISE(bitwise_xor, bit_xor, "__xor__");
  ops.in_place(bitwise_and, "__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  ops.in_place(bitwise_and_scalar, "__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)");
  ops.in_place(bitwise_or, "__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  ops.in_place(bitwise_or_scalar, "__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)");
  ops.in_place(bitwise_xor, "__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  ops.in_place(bitwise_xor_scalar, "__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)");
#undef TENON_BITWISE

#define TENON_SHIFT(name, fn, dunder)                                                                                                        \
  for (const char* schema : {name ".Tensor(Tensor self, Tensor other) -> Tensor", name ".Tensor_Scalar(Tensor self, Scalar other) -> Tensor", \
                             name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor",                                                     \
                             dunder ".Tensor(Tensor self, Tensor other) -> Tensor", dunder ".Scalar(Tensor self, Scalar other) -> Tensor"})  \
  ops.add({.schema = schema,                                                                                                                 \
           .kind = OpKind::pointwise,                                                                                                          \
           .meta = shift_meta,                                                                                                               \
           .scalar = [](const Scalars& x) { return call(loop::Fn::fn, x[0], x[1]); }})
  TENON_SHIFT("bitwise_left_shift", shift_left, "__lshift__");
  TENON_SHIFT("bitwise_right_shift", shift_right, "__rshift__");
#undef TENON_SHIFT

  ops.add(isclose, {
      .schema = "isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("self").dtype == m.meta("other").dtype, "expected tensors of one dtype, got ", m.meta("self"), " and ", m.meta("other"));
        m.require(m.number("rtol") >= 0 && m.number("atol") >= 0, "rtol and atol: expected numbers that are not negative, got ", m.number("rtol"), " and ", m.number("atol"));
        return pointwise_meta(m);
      },
      .scalar = [](const Scalars& x) {
        Expr close = x["self"] == x["other"];
        if (x.flag("equal_nan")) close = close || (loop::is_nan(x["self"]) && loop::is_nan(x["other"]));
        loop::Compute type = x["self"].type() == loop::Compute::f64 ? loop::Compute::f64 : loop::Compute::f32;   // integers too
        Expr a = cast(x["self"], type), b = cast(x["other"], type), error = loop::abs(a - b);
        Expr finite = !(call(loop::Fn::is_inf, error) || loop::is_nan(error));
        return close || (finite && error <= x.number("atol") + loop::abs(x.number("rtol") * b));
      },
      .promote = Promote::to_boolean,
  });
}

}  // namespace tenon
