// Scalar expressions of stages: a closed set of functions over loads and loop indices, hash-consed in an arena.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/base/small_vector.h"
#include "tenon/sym/expr.h"
#include "tenon/tensor/dtype.h"

namespace tenon::loop {

/// What an expression is computed in. f16 and bf16 load to f32 and round when stored; small integers load to i64 and
/// wrap.
enum class Compute : uint8_t { boolean, i64, f32, f64 };
Compute compute_of(DType dtype);
std::string_view name(Compute compute);

enum class Fn : uint8_t {
  constant,
  index,
  size,
  load,
  accumulated,  // leaves
  cast,         // to the node's Compute: float to int truncates, any to boolean is != 0
  round_to,     // to the values a narrower dtype can hold
  add,
  sub,
  mul,
  div,
  fma,
  floor_div,
  remainder,
  fmod,
  pow,
  atan2,
  hypot,
  copysign,
  nextafter,  // arithmetic; floor_div, remainder as Python
  min,
  max,  // NaN wins
  fmin,
  fmax,  // NaN loses
  neg,
  abs,
  sign,
  floor,
  ceil,
  trunc,
  round_even,
  sqrt,
  rsqrt,
  reciprocal,
  exp,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  tanh,
  asinh,
  acosh,
  atanh,
  erf,
  erfc,
  erfinv,
  lgamma,
  digamma,
  sigmoid,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  is_nan,
  is_inf,
  logical_and,
  logical_or,
  logical_xor,
  logical_not,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  shift_left,
  shift_right,
  select,       // condition, then, else
  random_bits,  // seed, stream, position: 32 uniform bits as i64 (Philox)
};
std::string_view name(Fn fn);

using ExprId = uint32_t;
using BufferId = uint32_t;

struct ExprNode {
  Fn fn = Fn::constant;
  Compute type = Compute::f32;
  DType dtype = DType::f32;     // round_to
  SmallVector<ExprId, 4> args;  // operands; a load's indices
  double real = 0;              // constant
  int64_t integer = 0;          // constant, index (which loop), accumulated (which)
  SymInt size = 0;              // size
  BufferId buffer = 0;          // load
  ExprId guard = ~0u;           // load: memory is not touched where it is false
  ExprId otherwise = ~0u;
  bool operator==(const ExprNode&) const = default;
};

class Arena {
 public:
  ExprId add(ExprNode node);  // an equal node is the same id
  const ExprNode& operator[](ExprId id) const { return nodes_[id]; }
  size_t size() const { return nodes_.size(); }

 private:
  std::vector<ExprNode> nodes_;
  std::unordered_multimap<size_t, ExprId> by_hash_;
};

/// A handle for writing formulas. Constants take the other operand's compute type.
struct Expr {
  Arena* arena = nullptr;
  ExprId id = 0;
  double literal = 0;  // where arena is null: a number that has not met an expression yet
  bool literal_is_int = false;

  Expr() = default;
  Expr(Arena* arena, ExprId id) : arena(arena), id(id) {}
  Expr(double value) : literal(value) {}
  Expr(int value) : literal(value), literal_is_int(true) {}
  Expr(int64_t value) : literal(static_cast<double>(value)), literal_is_int(true) {}
  Compute type() const;  // an Error where it is a number alone
};

Expr constant(Arena& arena, double value, Compute type);
Expr constant(Arena& arena, int64_t value, Compute type);
Expr size_expr(Arena& arena, SymInt size);  // i64; f64 or boolean for a number that is not an integer
Expr cast(Expr x, Compute type);
Expr round_to(Expr x, DType dtype);  // what storing to dtype and loading again gives
Expr call(Fn fn, Expr a);
Expr call(Fn fn, Expr a, Expr b);
Expr call(Fn fn, Expr a, Expr b, Expr c);
Expr select(Expr condition, Expr then, Expr otherwise);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);
Expr operator!=(Expr a, Expr b);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);
Expr operator!(Expr a);
inline Expr exp(Expr x) { return call(Fn::exp, x); }
inline Expr log(Expr x) { return call(Fn::log, x); }
inline Expr log1p(Expr x) { return call(Fn::log1p, x); }
inline Expr expm1(Expr x) { return call(Fn::expm1, x); }
inline Expr sqrt(Expr x) { return call(Fn::sqrt, x); }
inline Expr rsqrt(Expr x) { return call(Fn::rsqrt, x); }
inline Expr tanh(Expr x) { return call(Fn::tanh, x); }
inline Expr erf(Expr x) { return call(Fn::erf, x); }
inline Expr sin(Expr x) { return call(Fn::sin, x); }
inline Expr cos(Expr x) { return call(Fn::cos, x); }
inline Expr abs(Expr x) { return call(Fn::abs, x); }
inline Expr floor(Expr x) { return call(Fn::floor, x); }
inline Expr sigmoid(Expr x) { return call(Fn::sigmoid, x); }
inline Expr pow(Expr x, Expr y) { return call(Fn::pow, x, y); }
inline Expr max(Expr x, Expr y) { return call(Fn::max, x, y); }
inline Expr min(Expr x, Expr y) { return call(Fn::min, x, y); }
inline Expr is_nan(Expr x) { return call(Fn::is_nan, x); }

}  // namespace tenon::loop
