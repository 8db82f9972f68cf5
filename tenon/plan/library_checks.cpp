#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {
namespace {

/// The offset of the last element; negative where there is none.
SymInt reach(const Sizes& sizes, const Sizes& strides) {
  SymInt last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
  return last;
}

}  // namespace

void Checks::holds(SymInt condition, const std::string& message) {
  if (condition.is(sym::Kind::boolean)) require(condition.boolean_value(), message);
  else calls_.conditions.push_back({condition, message});
}

void Checks::same(SymInt a, SymInt b, std::string_view what) {
  if (a == b) return;
  holds(sym::eq(a, b), text("sizes that do not belong together: ", what, " is ", a, " and ", b));
}

void Checks::same(const loop::Operand& operand, const Sizes& sizes, std::string_view what) {
  if (operand.sizes == sizes) return;
  SymInt equal = SymInt::boolean(operand.sizes.size() == sizes.size());
  for (size_t i = 0; i < sizes.size() && i < operand.sizes.size(); ++i)
    equal = sym::logical_and(equal, sym::eq(operand.sizes[i], sizes[i]));
  holds(equal, text("sizes that do not belong together: expected ", what, " of ", sizes, ", got ", operand.sizes));
}

void Checks::operand(const loop::Operand& operand, DType dtype, std::string_view what) {
  const loop::Buffer& b = program_.buffers[operand.buffer];
  require(b.dtype == dtype, "dtypes that do not belong together: expected ", what, " of ", dtype, ", got ", b.dtype);
  if (operand.sizes == b.sizes && operand.strides == b.strides && operand.offset == SymInt(0)) return;
  SymInt last = operand.offset + reach(operand.sizes, operand.strides), end = reach(b.sizes, b.strides);
  SymInt inside = sym::logical_and(sym::ge(operand.offset, 0), sym::le(last, end));
  SymInt empty = SymInt::boolean(false);
  for (SymInt size : operand.sizes) empty = sym::logical_or(empty, sym::eq(size, 0));
  holds(sym::logical_or(empty, inside),
        text("sizes that do not belong together: ", what, " ", operand.sizes, " is read from ", b.dtype, b.sizes));
}

std::string_view Checks::suffix(const loop::Operand& operand) const {
  switch (dtype(operand)) {
    case DType::f32: return "_f32";
    case DType::f64: return "_f64";
    case DType::i64: return "_i64";
    default: fail_internal(Check(false).at, text("an anchor over ", dtype(operand)));
  }
}

std::string_view Checks::float_suffix(const loop::Operand& operand) const {
  require(dtype(operand) != DType::i64, "this operation needs floating point tensors, got i64");
  return suffix(operand);
}

}  // namespace tenon::plan
