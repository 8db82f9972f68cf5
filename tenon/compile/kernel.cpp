#include "tenon/compile/kernel.h"

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::compile {

std::string_view name(Type type) {
  switch (type) {
    case Type::b1: return "b1";
    case Type::i32: return "i32";
    case Type::i64: return "i64";
    case Type::f32: return "f32";
    case Type::f64: return "f64";
  }
  unreachable();
}

std::string_view name(Element element) {
  switch (element) {
    case Element::boolean: return "bool";
    case Element::i8: return "i8";
    case Element::u8: return "u8";
    case Element::i16: return "i16";
    case Element::u16: return "u16";
    case Element::i32: return "i32";
    case Element::i64: return "i64";
    case Element::f16: return "f16";
    case Element::bf16: return "bf16";
    case Element::f32: return "f32";
    case Element::f64: return "f64";
  }
  unreachable();
}

int bytes_of(Element element) {
  switch (element) {
    case Element::boolean:
    case Element::i8:
    case Element::u8: return 1;
    case Element::i16:
    case Element::u16:
    case Element::f16:
    case Element::bf16: return 2;
    case Element::i32:
    case Element::f32: return 4;
    case Element::i64:
    case Element::f64: return 8;
  }
  unreachable();
}

Type computed_in(Element element) {
  switch (element) {
    case Element::boolean: return Type::b1;
    case Element::i8:
    case Element::u8:
    case Element::i16:
    case Element::u16:
    case Element::i32: return Type::i32;
    case Element::i64: return Type::i64;
    case Element::f16:
    case Element::bf16:
    case Element::f32: return Type::f32;
    case Element::f64: return Type::f64;
  }
  unreachable();
}

std::string_view name(Op op) {
  switch (op) {
    case Op::constant: return "constant";
    case Op::param: return "param";
    case Op::lo: return "lo";
    case Op::hi: return "hi";
    case Op::position: return "position";
    case Op::add: return "add";
    case Op::sub: return "sub";
    case Op::mul: return "mul";
    case Op::div: return "div";
    case Op::rem: return "rem";
    case Op::min: return "min";
    case Op::max: return "max";
    case Op::fma: return "fma";
    case Op::neg: return "neg";
    case Op::abs: return "abs";
    case Op::sqrt: return "sqrt";
    case Op::floor: return "floor";
    case Op::ceil: return "ceil";
    case Op::trunc: return "trunc";
    case Op::round_even: return "round_even";
    case Op::scale: return "scale";
    case Op::mul_low32: return "mul_low32";
    case Op::bit_and: return "bit_and";
    case Op::bit_or: return "bit_or";
    case Op::bit_xor: return "bit_xor";
    case Op::bit_not: return "bit_not";
    case Op::shift_left: return "shift_left";
    case Op::shift_right: return "shift_right";
    case Op::shift_sign: return "shift_sign";
    case Op::bits: return "bits";
    case Op::eq: return "eq";
    case Op::ne: return "ne";
    case Op::lt: return "lt";
    case Op::le: return "le";
    case Op::gt: return "gt";
    case Op::ge: return "ge";
    case Op::ult: return "ult";
    case Op::select: return "select";
    case Op::convert: return "convert";
    case Op::round_to: return "round_to";
    case Op::pick: return "pick";
    case Op::load: return "load";
    case Op::store: return "store";
    case Op::update: return "update";
    case Op::fault: return "fault";
    case Op::loop: return "loop";
  }
  unreachable();
}

std::string_view name(Combine combine) {
  switch (combine) {
    case Combine::add: return "add";
    case Combine::mul: return "mul";
    case Combine::min: return "min";
    case Combine::max: return "max";
    case Combine::all: return "all";
    case Combine::any: return "any";
    case Combine::argmin: return "argmin";
    case Combine::argmax: return "argmax";
    case Combine::position: return "position";
  }
  unreachable();
}

uint64_t Kernel::scratch_bytes() const {
  uint64_t bytes = 0;
  for (const Memory& m : memory)
    if (m.scratch) bytes = std::max(bytes, m.number + m.count * static_cast<uint64_t>(bytes_of(m.element)));
  return bytes;
}

}  // namespace tenon::compile
