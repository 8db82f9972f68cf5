// What follows for an op from its kind alone: metas of pointwise and view ops, their promotion and broadcasting, the
// stage of a pointwise formula.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// PyTorch's result_type over the named arguments: tensors with dimensions come before 0-d tensors, those
/// before numbers; a lower category counts only where its kind (bool, int, float) is higher.
DType common_dtype(const ArgsView& call, const char* among = nullptr);
bool is_among(std::string_view name, const char* names);  // "self, other"; no names: always
Sizes broadcast(const Sizes& a, const Sizes& b, const ArgsView& call);
Sizes broadcast_sizes(const ArgsView& call);  // of all tensor arguments
/// Strides PyTorch gives a pointwise result: those of its operands where they agree, else dense in the operands' order.
Sizes pointwise_strides(const Sizes& sizes, std::span<const TensorMeta* const> operands);

/// What a pointwise op's result is by its promotion and broadcasting, for rules that only add a requirement.
Metas pointwise_meta(const ArgsView& call);
/// The same for ops that take floating point tensors only, and for those that take anything but boolean ones.
Metas floating_meta(MetaCall& m);
Metas numeric_meta(MetaCall& m);

/// The op's rule, or what follows from its kind. Composites without a rule are not answered here: none.
std::optional<Metas> infer(const Op& op, std::span<const CallArg> args);
/// How a call is carried out. Everything that executes, lowers, differentiates or checks a call asks here.
enum class Implementation : uint8_t {
  view,       // the index maps of `view`
  stages,     // the stages of `lower` or of the formula
  host,       // the host function
  composite,  // what `decompose` makes of it
  assertion,  // what `asserts` demands
  number,     // a number about a tensor, from its meta
  none,       // control flow, regions, unknown operators
};
Implementation implementation_of(const Op& op, std::span<const CallArg> args);

/// A complex tensor or number, or a complex dtype that is asked for.
bool meets_complex(std::span<const CallArg> args);
/// What a call stands for in other operators: complex numbers are computed with in their real parts, composites as
/// what they are made of. None where the call stands for itself.
DecomposeRule meaning_of(const Op& op, std::span<const CallArg> args);

/// A tensor or a number: what a pointwise formula computes with.
bool is_operand(const SchemaArg& slot);
/// Writes the op's stages, by its rule or by its formula.
void lower_op(Lower& lower);

}  // namespace tenon
