#include "tenon/ops/logical.h"

#include "tenon/ops/complex.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle logical_not, logical_and, logical_or, logical_xor, bitwise_not, bitwise_and, bitwise_or, bitwise_xor;

static Handle bitwise_and_scalar, bitwise_or_scalar, bitwise_xor_scalar;

namespace {

using loop::Expr;

// One of the operands is a tensor; the other may be a number.
std::string described_tensor(const ArgsView& m) { return describe(m.arg(m.is_tensor("self") ? "self" : "other")); }

Metas bitwise_meta(MetaCall& m) {
  m.require(!is_floating(common_dtype(m)), "expected integers or booleans, got ", described_tensor(m));
  return pointwise_meta(m);
}

Metas shift_meta(MetaCall& m) {
  m.require(is_integral(common_dtype(m)), "expected integers, got ", described_tensor(m));
  return pointwise_meta(m);
}

Expr truth(Expr x) { return cast(x, loop::Compute::boolean); }

}  // namespace

#define TENON_BITWISE(handle, fn, name)                                                               \
  ops.add(handle, {.schema = #handle ".Tensor(Tensor self, Tensor other) -> Tensor",                  \
                   .kind = OpKind::pointwise,                                                         \
                   .meta = bitwise_meta,                                                              \
                   .scalar = [](Expr self, Expr other) { return call(loop::Fn::fn, self, other); }}); \
  ops.overload(handle, handle##_scalar, #handle ".Scalar(Tensor self, Scalar other) -> Tensor");      \
  ops.overload(handle, {#handle ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor"});              \
  ops.alias(handle, {"__" name "__.Tensor"});                                                         \
  ops.alias(handle##_scalar, {"__" name "__.Scalar"});                                                \
  ops.in_place(handle, "__i" name "__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");          \
  ops.in_place(handle##_scalar, "__i" name "__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)")

void register_logical(Registry& ops) {
  ops.add(logical_not, {
                           .schema = "logical_not(Tensor self) -> Tensor",
                           .kind = OpKind::pointwise,
                           .scalar = [](Expr self) { return !self; },
                           .promote = Promote::to_boolean,
                           .complex = on_truth,
                       });
  ops.add(logical_and, {
                           .schema = "logical_and(Tensor self, Tensor other) -> Tensor",
                           .kind = OpKind::pointwise,
                           .scalar = [](Expr self, Expr other) { return self && other; },
                           .promote = Promote::to_boolean,
                           .complex =
                               [](Build& b) {
                                 return logical_and(is_nonzero(parts_of(b["self"])), is_nonzero(parts_of(b["other"])));
                               },
                       });
  ops.add(logical_or, {
                          .schema = "logical_or(Tensor self, Tensor other) -> Tensor",
                          .kind = OpKind::pointwise,
                          .scalar = [](Expr self, Expr other) { return self || other; },
                          .promote = Promote::to_boolean,
                          .complex =
                              [](Build& b) {
                                return logical_or(is_nonzero(parts_of(b["self"])), is_nonzero(parts_of(b["other"])));
                              },
                      });
  ops.add(
      logical_xor,
      {
          .schema = "logical_xor(Tensor self, Tensor other) -> Tensor",
          .kind = OpKind::pointwise,
          .scalar = [](Expr self, Expr other) { return call(loop::Fn::logical_xor, truth(self), truth(other)); },
          .promote = Promote::to_boolean,
          .complex =
              [](Build& b) { return logical_xor(is_nonzero(parts_of(b["self"])), is_nonzero(parts_of(b["other"]))); },
      });
  ops.add(bitwise_not, {
                           .schema = "bitwise_not(Tensor self) -> Tensor",
                           .kind = OpKind::pointwise,
                           .meta = bitwise_meta,
                           .scalar = [](Expr self) -> Expr {
                             return self.type() == loop::Compute::boolean ? !self : call(loop::Fn::bit_not, self);
                           },
                       });
  TENON_BITWISE(bitwise_and, bit_and, "and");
  TENON_BITWISE(bitwise_or, bit_or, "or");
  TENON_BITWISE(bitwise_xor, bit_xor, "xor");

  Handle left_shift, right_shift;
  ops.add(left_shift, {
                          .schema = "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor",
                          .kind = OpKind::pointwise,
                          .meta = shift_meta,
                          .scalar = [](Expr self, Expr other) { return call(loop::Fn::shift_left, self, other); },
                      });
  ops.overload(left_shift, {"bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                            "bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                            "__lshift__.Tensor(Tensor self, Tensor other) -> Tensor",
                            "__lshift__.Scalar(Tensor self, Scalar other) -> Tensor"});
  ops.add(right_shift, {
                           .schema = "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor",
                           .kind = OpKind::pointwise,
                           .meta = shift_meta,
                           .scalar = [](Expr self, Expr other) { return call(loop::Fn::shift_right, self, other); },
                       });
  ops.overload(right_shift, {"bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor",
                             "bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
                             "__rshift__.Tensor(Tensor self, Tensor other) -> Tensor",
                             "__rshift__.Scalar(Tensor self, Scalar other) -> Tensor"});
}

#undef TENON_BITWISE

}  // namespace tenon
