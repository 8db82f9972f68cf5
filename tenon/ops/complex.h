// Complex numbers: their views as real ones, what they are made of, and the rules by which operators compute with
// them. An op's `complex` rule says the same in operators on real parts, so metas, gradients, stages and compiled code
// follow from those.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle view_as_real, view_as_complex, real, imag, conjugate, conjugated, angle;

/// A complex value as two real ones, and the arithmetic that formulas are written in. A real number's imaginary part is
/// the number 0.
struct Complex {
  Tensor re, im;
};
Complex operator+(const Complex& a, const Complex& b);
Complex operator-(const Complex& a, const Complex& b);
Complex operator*(const Complex& a, const Complex& b);
Complex operator/(const Complex& a, const Complex& b);
Complex operator-(const Complex& a);
Complex complex_number(double re, double im = 0);

/// The parts of a tensor, and of an argument: a tensor or a number, converted to what the operands have in common.
Complex parts_of(const Tensor& x);
Complex operand(const ArgsView& call, Slot slot);
/// One complex tensor of two real ones, which are broadcast.
Tensor joined(const Complex& z);

/// The op on real parts and again on imaginary ones: of what moves elements, and of what is linear in these arguments.
Results by_parts(Build& b, const char* among);
/// The op where it is linear in one of the arguments and in the other.
Results by_products(Build& b, const char* first, const char* second);

/// The op on a real tensor in place of its complex first argument.
Results on_real(Build& b, const Tensor& self);
/// The op's real result as a complex one.
Results as_real_part(Build& b);

/// A formula over the parts of the first argument, or of the first two.
template <Complex (*formula)(const Complex&)>
Results complex_of_one(Build& b) {
  return one(joined(formula(operand(b, size_t{0}))));
}
template <Complex (*formula)(const Complex&, const Complex&)>
Results complex_of_two(Build& b) {
  return one(joined(formula(operand(b, size_t{0}), operand(b, size_t{1}))));
}
/// The same where the result is real.
template <Tensor (*formula)(const Complex&)>
Results real_of_one(Build& b) {
  return one(formula(operand(b, size_t{0})));
}
template <Tensor (*formula)(const Complex&, const Complex&)>
Results real_of_two(Build& b) {
  return one(formula(operand(b, size_t{0}), operand(b, size_t{1})));
}

/// Which numbers are not zero.
Tensor is_nonzero(const Complex& z);
/// The op on the truth of the elements.
Results on_truth(Build& b);

}  // namespace tenon
