// What each pure operation means, on the bits of scalars: the interpreter and the builder's folding share it.
#pragma once
#include "tenon/compile/kernel.h"

namespace tenon::compile {

/// The bits of a value: b1 0 or 1, 32-bit types in the low half with zeros above.
using Bits = uint64_t;
Bits bits_of(Type type, double number);
Bits bits_of_integer(Type type, int64_t number);
double number_of(Type type, Bits bits);
int64_t integer_of(Type type, Bits bits);

/// An operation without memory, loops or place: add to round_to.
Bits evaluate(const Instruction& instruction, Type result, Type operand, std::span<const Bits> args);
Bits combine(Combine how, Type type, Bits a, Bits b);
/// argmin, argmax: whether b at its position takes the place of a at its own.
bool displaces(Combine how, Type type, Bits a, int64_t at_a, Bits b, int64_t at_b);

/// To and from memory.
Bits load_element(Element element, const void* from);
void store_element(Element element, Bits value, void* to);

}  // namespace tenon::compile
