// The scalar functions of stages in Kernel IR: each loop::Fn, for every type it is defined for.
#include "tenon/base/error.h"
#include "tenon/compile/math.h"
#include "tenon/compile/stage_values.h"

namespace tenon::compile {

using loop::Compute;
using loop::Fn;

Val StageValues::divisor(const loop::ExprNode& n, const Vals& operands) {
  const loop::ExprNode& by = program_.arena[n.args[1]];
  bool certain = by.fn == Fn::constant && by.integer != 0;
  if (is_int(operands[1].type()) && !certain) b_.fault(division_by_zero, operands[1] == 0);
  return operands[1];
}

// On booleans, and logic on anything.
Val StageValues::call_logical(const loop::ExprNode& n, const Vals& a) {
  auto truth = [&](size_t i) { return convert(a[i], Type::b1); };
  switch (n.fn) {
    case Fn::add:
    case Fn::max:
    case Fn::fmax:
    case Fn::bit_or:
    case Fn::logical_or: return truth(0) | truth(1);
    case Fn::mul:
    case Fn::min:
    case Fn::fmin:
    case Fn::bit_and:
    case Fn::logical_and: return truth(0) & truth(1);
    case Fn::ne:
    case Fn::bit_xor:
    case Fn::logical_xor: return truth(0) ^ truth(1);
    case Fn::eq: return ~(truth(0) ^ truth(1));
    case Fn::lt: return ~truth(0) & truth(1);
    case Fn::le: return ~truth(0) | truth(1);
    case Fn::gt: return truth(0) & ~truth(1);
    case Fn::ge: return truth(0) | ~truth(1);
    case Fn::bit_not:
    case Fn::logical_not: return ~truth(0);
    case Fn::sign: return truth(0);
    case Fn::is_nan:
    case Fn::is_inf: return b_.integer(Type::b1, 0);
    case Fn::shift_left:
    case Fn::shift_right: {
      Val x = convert(a[0], Type::i64), by = convert(a[1], Type::i64);
      return convert(binary(n.fn == Fn::shift_left ? Op::shift_left : Op::shift_sign, x, by), Type::b1);
    }
    default: break;
  }
  fail(name(n.fn), " is not defined for ", loop::name(Compute::boolean), " elements; convert them first");
}

Val StageValues::call(loop::ExprId, const loop::ExprNode& n) {
  Vals a;
  for (loop::ExprId arg : n.args) a.push_back(value(arg));
  if (n.fn == Fn::cast) return convert(a[0], type_of(n.type));
  if (n.fn == Fn::select) return select(a[0], a[1], a[2]);
  bool logical =
      n.fn == Fn::logical_and || n.fn == Fn::logical_or || n.fn == Fn::logical_xor || n.fn == Fn::logical_not;
  Type type = a[0].type();
  if (type == Type::b1 || logical) return call_logical(n, a);
  bool integer = is_int(type);
  switch (n.fn) {
    case Fn::add: return a[0] + a[1];
    case Fn::sub: return a[0] - a[1];
    case Fn::mul: return a[0] * a[1];
    case Fn::div: return a[0] / divisor(n, a);
    case Fn::fma: return integer ? a[0] * a[1] + a[2] : fma(a[0], a[1], a[2]);
    case Fn::floor_div: return floor_div(a[0], divisor(n, a));
    case Fn::remainder: return remainder(a[0], divisor(n, a));
    case Fn::fmod: return fmod(a[0], divisor(n, a));
    case Fn::pow: return pow(a[0], a[1]);
    case Fn::atan2: return atan2(a[0], a[1]);
    case Fn::hypot: return hypot(a[0], a[1]);
    case Fn::copysign: return copysign(a[0], a[1]);
    case Fn::nextafter: return nextafter(a[0], a[1]);
    case Fn::min: return min_nan(a[0], a[1]);
    case Fn::max: return max_nan(a[0], a[1]);
    case Fn::fmin: return min_number(a[0], a[1]);
    case Fn::fmax: return max_number(a[0], a[1]);
    case Fn::neg: return -a[0];
    case Fn::abs: return abs(a[0]);
    case Fn::sign: return sign(a[0]);
    case Fn::floor: return integer ? a[0] : floor(a[0]);
    case Fn::ceil: return integer ? a[0] : ceil(a[0]);
    case Fn::trunc: return integer ? a[0] : trunc(a[0]);
    case Fn::round_even: return integer ? a[0] : round_even(a[0]);
    case Fn::sqrt: return sqrt(a[0]);
    case Fn::rsqrt: return rsqrt(a[0]);
    case Fn::reciprocal: return reciprocal(a[0]);
    case Fn::exp: return exp(a[0]);
    case Fn::exp2: return exp2(a[0]);
    case Fn::expm1: return expm1(a[0]);
    case Fn::log: return log(a[0]);
    case Fn::log2: return log2(a[0]);
    case Fn::log10: return log10(a[0]);
    case Fn::log1p: return log1p(a[0]);
    case Fn::sin: return sin(a[0]);
    case Fn::cos: return cos(a[0]);
    case Fn::tan: return tan(a[0]);
    case Fn::asin: return asin(a[0]);
    case Fn::acos: return acos(a[0]);
    case Fn::atan: return atan(a[0]);
    case Fn::sinh: return sinh(a[0]);
    case Fn::cosh: return cosh(a[0]);
    case Fn::tanh: return tanh(a[0]);
    case Fn::asinh: return asinh(a[0]);
    case Fn::acosh: return acosh(a[0]);
    case Fn::atanh: return atanh(a[0]);
    case Fn::erf: return erf(a[0]);
    case Fn::erfc: return erfc(a[0]);
    case Fn::erfinv: return erfinv(a[0]);
    case Fn::lgamma: return lgamma(a[0]);
    case Fn::digamma: return digamma(a[0]);
    case Fn::sigmoid: return sigmoid(a[0]);
    case Fn::eq: return a[0] == a[1];
    case Fn::ne: return a[0] != a[1];
    case Fn::lt: return a[0] < a[1];
    case Fn::le: return a[0] <= a[1];
    case Fn::gt: return a[0] > a[1];
    case Fn::ge: return a[0] >= a[1];
    case Fn::is_nan: return integer ? b_.integer(Type::b1, 0) : is_nan(a[0]);
    case Fn::is_inf: return integer ? b_.integer(Type::b1, 0) : is_inf(a[0]);
    case Fn::bit_and: return a[0] & a[1];
    case Fn::bit_or: return a[0] | a[1];
    case Fn::bit_xor: return a[0] ^ a[1];
    case Fn::bit_not: return ~a[0];
    case Fn::shift_left: return binary(Op::shift_left, a[0], a[1]);
    case Fn::shift_right: return binary(Op::shift_sign, a[0], a[1]);
    case Fn::random_bits: return random_bits(a[0], a[1], a[2]);
    case Fn::constant:
    case Fn::index:
    case Fn::size:
    case Fn::load:
    case Fn::accumulated:
    case Fn::cast:
    case Fn::round_to:
    case Fn::select:
    case Fn::logical_and:
    case Fn::logical_or:
    case Fn::logical_xor:
    case Fn::logical_not: break;
  }
  unreachable();
}

}  // namespace tenon::compile
