// Kernel IR: scalar SSA inside nested counted loops, one of which (on any path) may be marked as lanes. Vectors, masks
// and register pairs exist only in emitters. docs/codegen.md describes the text form and what each operation means.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/small_vector.h"

namespace tenon::compile {

/// What values are computed in.
enum class Type : uint8_t { b1, i32, i64, f32, f64 };
std::string_view name(Type type);
inline bool is_float(Type t) { return t == Type::f32 || t == Type::f64; }
inline bool is_int(Type t) { return t == Type::i32 || t == Type::i64; }
inline int width_of(Type t) { return t == Type::b1 ? 1 : t == Type::i32 || t == Type::f32 ? 4 : 8; }

/// What lies in memory. Narrow integers load to i32 and wrap when stored; f16 and bf16 load to f32 and round to nearest
/// even when stored, denormals included.
enum class Element : uint8_t { boolean, i8, u8, i16, u16, i32, i64, f16, bf16, f32, f64 };
std::string_view name(Element element);
int bytes_of(Element element);
Type computed_in(Element element);

enum class Op : uint8_t {
  constant,  // bits
  param,     // bits: which of the kernel's 64-bit parameters
  lo,
  hi,        // the range the call works on
  position,  // i32: iterations of the lanes loop before this one
  add,
  sub,
  mul,
  div,  // integers: towards zero; x / 0 is 0, the lowest / -1 wraps
  rem,  // integers: x - x / y * y; x rem 0 is 0
  min,  // a < b ? a : b, so b where either is NaN
  max,  // a > b ? a : b
  fma,  // one rounding
  neg,
  abs,
  sqrt,
  floor,
  ceil,
  trunc,
  round_even,
  scale,      // x * 2^n, n a whole number of x's type within the exponents of twice the range; one rounding
  mul_low32,  // i64: the product of the low halves as unsigned numbers
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  shift_left,   // amounts are unsigned; beyond the width they give 0
  shift_right,  // zeros come in
  shift_sign,   // the sign comes in
  bits,         // the same bits as the float or integer of that width
  eq,
  ne,
  lt,
  le,
  gt,
  ge,   // floats: false where either is NaN, but ne
  ult,  // integers as unsigned numbers
  select,
  convert,   // float to integer truncates; what does not fit, and NaN, gives the lowest; to b1: != 0
  round_to,  // f32 to the values that f16 or bf16 has
  pick,      // one of sixteen constants: kernel.tables[bits], by the low four bits of an i32
  load,
  store,
  update,  // memory = combine(memory, value), lane after lane
  fault,   // sets status bits where its operand holds
  loop,    // kernel.loops[loop]
};
constexpr int op_count = static_cast<int>(Op::loop) + 1;
std::string_view name(Op op);

/// Where a load or store goes, in elements of its memory: base (uniform i64), and over lanes base + i, base + i *
/// stride (uniform i64) or base + offset (varying, i32 or i64), where i is the variable of the lanes loop.
enum class Access : uint8_t { uniform, contiguous, strided, gathered };

/// How the partial results of lanes meet, and what an update does. min, max: NaN wins, the earlier of equals stays.
/// argmin, argmax: that carry and the next one, its position, go together; of equals the lower position stays.
enum class Combine : uint8_t { add, mul, min, max, all, any, argmin, argmax, position };
std::string_view name(Combine combine);

using ValueId = uint32_t;
constexpr ValueId no_value = ~0u;

struct Value {
  Type type = Type::f32;
  bool varying = false;
  bool operator==(const Value&) const = default;
};

/// Operands of memory operations, in this order: base, [stride or offset], then for a load [guard, otherwise], for a
/// store and an update value, [guard]. Where the guard is false memory is not touched.
struct Instruction {
  Op op = Op::constant;
  ValueId result = no_value;
  SmallVector<ValueId, 6> args;
  uint64_t bits = 0;                // constant, param, fault (status bits), pick (which table)
  Element element = Element::f32;   // round_to
  Access access = Access::uniform;  // load, store, update
  Combine combine = Combine::add;   // update
  bool guarded = false;             // load, store, update
  uint32_t memory = 0, loop = 0;
};

struct Carry {
  ValueId init = no_value;         // before the loop
  ValueId argument = no_value;     // in the body
  ValueId next = no_value;         // what the body hands on
  ValueId result = no_value;       // after the loop
  Combine combine = Combine::add;  // lanes
};

/// for (index = lower; index < upper; ++index) body. A lanes loop keeps `ways` copies of every carried value: iteration
/// i uses copy (i - lower) mod ways, and afterwards copy j meets copy j + w for w = ways / 2, ..., 1. So the order of a
/// reduction is part of the kernel, not of the machine. Its iterations may run at once: none may load what another
/// stores. A conditional loop's first carry is a b1; an iteration is done only while it is true. Its body is pure.
struct Loop {
  ValueId index = no_value;  // i64; varying in a lanes loop
  ValueId lower = no_value, upper = no_value;
  bool lanes = false, conditional = false;
  int ways = 16;  // 16, 32 or 64
  std::vector<Carry> carried;
  std::vector<Instruction> body;
};

/// A buffer of the call, or bytes of the thread's scratch memory from an offset on.
struct Memory {
  std::string name;
  Element element = Element::f32;
  bool scratch = false, written = false;
  uint64_t number = 0;  // which buffer, or the offset in bytes
  uint64_t count = 0;   // scratch: elements
  bool operator==(const Memory&) const = default;
};

struct Table {
  Type type = Type::f32;
  uint64_t bits[16] = {};
  bool operator==(const Table&) const = default;
};

struct Kernel {
  std::string name;
  std::vector<Memory> memory;
  std::vector<Table> tables;
  std::vector<Value> values;
  std::vector<Loop> loops;
  std::vector<Instruction> body;

  uint64_t scratch_bytes() const;
};

std::string to_text(const Kernel& kernel);
/// Reads what to_text writes. Throws Error with the line.
Kernel parse_kernel(std::string_view text);
/// Types, dominance, uniform and varying, nesting of loops, operands. Throws InternalError.
void verify(const Kernel& kernel);

}  // namespace tenon::compile
