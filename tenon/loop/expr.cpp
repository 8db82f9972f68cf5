#include "tenon/loop/expr.h"

#include <bit>

#include "tenon/base/error.h"
#include "tenon/base/saturate.h"

namespace tenon::loop {

Compute compute_of(DType dtype) {
  if (dtype == DType::boolean) return Compute::boolean;
  if (dtype == DType::f64) return Compute::f64;
  if (is_floating(dtype)) return Compute::f32;
  if (is_complex(dtype)) fail_unsupported("complex tensors are not supported yet");
  return Compute::i64;
}

std::string_view name(Compute compute) {
  switch (compute) {
    case Compute::boolean: return "bool";
    case Compute::i64: return "i64";
    case Compute::f32: return "f32";
    case Compute::f64: return "f64";
  }
  unreachable();
}

std::string_view name(Fn fn) {
  static constexpr std::string_view names[] = {
      "constant", "index",      "size",     "load",        "accumulated", "cast",        "round_to",    "add",
      "sub",      "mul",        "div",      "fma",         "floor_div",   "remainder",   "fmod",        "pow",
      "atan2",    "hypot",      "copysign", "nextafter",   "min",         "max",         "fmin",        "fmax",
      "neg",      "abs",        "sign",     "floor",       "ceil",        "trunc",       "round_even",  "sqrt",
      "rsqrt",    "reciprocal", "exp",      "exp2",        "expm1",       "log",         "log2",        "log10",
      "log1p",    "sin",        "cos",      "tan",         "asin",        "acos",        "atan",        "sinh",
      "cosh",     "tanh",       "asinh",    "acosh",       "atanh",       "erf",         "erfc",        "erfinv",
      "lgamma",   "digamma",    "sigmoid",  "eq",          "ne",          "lt",          "le",          "gt",
      "ge",       "is_nan",     "is_inf",   "logical_and", "logical_or",  "logical_xor", "logical_not", "bit_and",
      "bit_or",   "bit_xor",    "bit_not",  "shift_left",  "shift_right", "select",      "random_bits"};
  static_assert(std::size(names) == static_cast<size_t>(Fn::random_bits) + 1);
  return names[static_cast<size_t>(fn)];
}

Compute Expr::type() const {
  require(arena != nullptr, "a formula was given no operand where it needs one");
  return (*arena)[id].type;
}

ExprId Arena::add(ExprNode node) {
  size_t hash = static_cast<size_t>(node.fn) * 31 + static_cast<size_t>(node.type);
  for (ExprId arg : node.args) hash = hash * 1000003 + arg;
  hash = hash * 1000003 + std::bit_cast<uint64_t>(node.real);
  hash = hash * 1000003 + static_cast<uint64_t>(node.integer);
  hash = hash * 1000003 + node.buffer + node.guard * 7 + node.otherwise * 13;
  auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const ExprNode& old = nodes_[it->second];
    if (old == node && std::bit_cast<uint64_t>(old.real) == std::bit_cast<uint64_t>(node.real)) return it->second;
  }
  nodes_.push_back(std::move(node));
  auto id = static_cast<ExprId>(nodes_.size() - 1);
  by_hash_.emplace(hash, id);
  return id;
}

Expr constant(Arena& arena, double value, Compute type) {
  ExprNode node{.fn = Fn::constant, .type = type};
  if (type == Compute::i64 || type == Compute::boolean)
    node.integer = type == Compute::boolean ? value != 0 : saturated(value);
  else node.real = value;
  return {&arena, arena.add(node)};
}
Expr constant(Arena& arena, int64_t value, Compute type) {
  ExprNode node{.fn = Fn::constant, .type = type};
  if (type == Compute::i64) node.integer = value;
  else if (type == Compute::boolean) node.integer = value != 0;
  else node.real = static_cast<double>(value);
  return {&arena, arena.add(node)};
}

Expr size_expr(Arena& arena, SymInt size) {
  if (size.is_int()) return constant(arena, size.as_int(), Compute::i64);
  Compute type = size.is_boolean_typed() ? Compute::boolean : size.is_integer_typed() ? Compute::i64 : Compute::f64;
  return {&arena, arena.add({.fn = Fn::size, .type = type, .size = size})};
}

namespace {

Expr settled(Expr x, Arena& arena, Compute type) {
  if (x.arena) return x;
  // A fractional literal beside an integer expression makes the result f32, as a Python float would.
  if ((type == Compute::i64 || type == Compute::boolean) && !x.literal_is_int)
    return constant(arena, x.literal, Compute::f32);
  return constant(arena, x.literal, type);
}

void meet(Expr& a, Expr& b) {
  expect(a.arena || b.arena, "two literals in a formula");
  Arena& arena = a.arena ? *a.arena : *b.arena;
  Compute type = a.arena ? a.type() : b.type();
  a = settled(a, arena, type);
  b = settled(b, arena, type);
  Compute wider = std::max(a.type(), b.type());
  a = cast(a, wider);
  b = cast(b, wider);
}

bool gives_boolean(Fn fn) {
  switch (fn) {
    case Fn::eq:
    case Fn::ne:
    case Fn::lt:
    case Fn::le:
    case Fn::gt:
    case Fn::ge:
    case Fn::is_nan:
    case Fn::is_inf:
    case Fn::logical_and:
    case Fn::logical_or:
    case Fn::logical_xor:
    case Fn::logical_not: return true;
    default: return false;
  }
}

bool is_constant(Expr x, int64_t value) {
  const ExprNode& n = (*x.arena)[x.id];
  return n.fn == Fn::constant && n.type == Compute::i64 && n.integer == value;
}

}  // namespace

Expr cast(Expr x, Compute type) {
  expect(x.arena != nullptr, "cast of a literal");
  const ExprNode& node = (*x.arena)[x.id];
  if (node.type == type) return x;
  if (node.fn == Fn::constant) {
    bool from_int = node.type == Compute::i64 || node.type == Compute::boolean;
    return from_int ? constant(*x.arena, node.integer, type) : constant(*x.arena, node.real, type);
  }
  return {x.arena, x.arena->add({.fn = Fn::cast, .type = type, .args = {x.id}})};
}

Expr round_to(Expr x, DType dtype) {
  Compute type = compute_of(dtype);
  x = cast(x, type);
  bool exact = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64 || dtype == DType::boolean;
  if (exact) return x;
  return {x.arena, x.arena->add({.fn = Fn::round_to, .type = type, .dtype = dtype, .args = {x.id}})};
}

Expr call(Fn fn, Expr a) {
  expect(a.arena != nullptr, "function of a literal");
  return {a.arena, a.arena->add({.fn = fn, .type = gives_boolean(fn) ? Compute::boolean : a.type(), .args = {a.id}})};
}

Expr call(Fn fn, Expr a, Expr b) {
  meet(a, b);
  if (a.type() == Compute::i64) {  // index arithmetic: keep it small
    if (fn == Fn::add && is_constant(a, 0)) return b;
    if ((fn == Fn::add || fn == Fn::sub) && is_constant(b, 0)) return a;
    if (fn == Fn::mul && is_constant(a, 1)) return b;
    if (fn == Fn::mul && is_constant(b, 1)) return a;
    if (fn == Fn::mul && (is_constant(a, 0) || is_constant(b, 0))) return constant(*a.arena, int64_t{0}, Compute::i64);
  }
  return {a.arena,
          a.arena->add({.fn = fn, .type = gives_boolean(fn) ? Compute::boolean : a.type(), .args = {a.id, b.id}})};
}

Expr call(Fn fn, Expr a, Expr b, Expr c) {
  if (fn == Fn::select) return select(a, b, c);
  meet(a, b);
  meet(a, c);
  meet(b, c);
  return {a.arena, a.arena->add({.fn = fn, .type = a.type(), .args = {a.id, b.id, c.id}})};
}

Expr select(Expr condition, Expr then, Expr otherwise) {
  if (!then.arena && !otherwise.arena) then = settled(then, *condition.arena, Compute::f32);
  meet(then, otherwise);
  condition = cast(condition, Compute::boolean);
  return {then.arena,
          then.arena->add({.fn = Fn::select, .type = then.type(), .args = {condition.id, then.id, otherwise.id}})};
}

Expr operator+(Expr a, Expr b) { return call(Fn::add, a, b); }
Expr operator-(Expr a, Expr b) { return call(Fn::sub, a, b); }
Expr operator*(Expr a, Expr b) { return call(Fn::mul, a, b); }
Expr operator/(Expr a, Expr b) { return call(Fn::div, a, b); }
Expr operator-(Expr a) { return call(Fn::neg, a); }
Expr operator<(Expr a, Expr b) { return call(Fn::lt, a, b); }
Expr operator<=(Expr a, Expr b) { return call(Fn::le, a, b); }
Expr operator>(Expr a, Expr b) { return call(Fn::gt, a, b); }
Expr operator>=(Expr a, Expr b) { return call(Fn::ge, a, b); }
Expr operator==(Expr a, Expr b) { return call(Fn::eq, a, b); }
Expr operator!=(Expr a, Expr b) { return call(Fn::ne, a, b); }
Expr operator&&(Expr a, Expr b) { return call(Fn::logical_and, cast(a, Compute::boolean), cast(b, Compute::boolean)); }
Expr operator||(Expr a, Expr b) { return call(Fn::logical_or, cast(a, Compute::boolean), cast(b, Compute::boolean)); }
Expr operator!(Expr a) { return call(Fn::logical_not, cast(a, Compute::boolean)); }

}  // namespace tenon::loop
