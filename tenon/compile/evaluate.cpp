#include "tenon/compile/evaluate.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tenon/base/error.h"

namespace tenon::compile {
namespace {

template <class T>
T get(Bits bits) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  else return static_cast<T>(bits);
}
template <class T>
Bits put(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
  else if constexpr (std::is_same_v<T, bool>) return value;
  else return static_cast<std::make_unsigned_t<T>>(value);
}

template <class F>
decltype(auto) with_type(Type type, F&& f) {
  switch (type) {
    case Type::b1: return f(bool{});
    case Type::i32: return f(int32_t{});
    case Type::i64: return f(int64_t{});
    case Type::f32: return f(float{});
    case Type::f64: return f(double{});
  }
  unreachable();
}

template <class T>
Bits arithmetic(Op op, T a, T b) {
  using U = std::make_unsigned_t<T>;
  auto ua = static_cast<U>(a), ub = static_cast<U>(b);
  constexpr auto width = std::numeric_limits<U>::digits;
  switch (op) {
    case Op::add: return put(static_cast<T>(ua + ub));
    case Op::sub: return put(static_cast<T>(ua - ub));
    case Op::mul: return put(static_cast<T>(ua * ub));
    case Op::div: return put(b == 0 ? T(0) : b == -1 ? static_cast<T>(U(0) - ua) : static_cast<T>(a / b));
    case Op::rem: return put(b == 0 || b == -1 ? T(0) : static_cast<T>(a % b));
    case Op::min: return put(a < b ? a : b);
    case Op::max: return put(a > b ? a : b);
    case Op::bit_and: return put(static_cast<T>(ua & ub));
    case Op::bit_or: return put(static_cast<T>(ua | ub));
    case Op::bit_xor: return put(static_cast<T>(ua ^ ub));
    case Op::shift_left: return put(ub < width ? static_cast<T>(ua << ub) : T(0));
    case Op::shift_right: return put(ub < width ? static_cast<T>(ua >> ub) : T(0));
    case Op::shift_sign: return put(static_cast<T>(a >> (ub < width ? ub : width - 1)));
    case Op::ult: return ua < ub;
    default: unreachable();
  }
}
Bits arithmetic(Op op, float a, float b) {
  switch (op) {
    case Op::add: return put(a + b);
    case Op::sub: return put(a - b);
    case Op::mul: return put(a * b);
    case Op::div: return put(a / b);
    case Op::min: return put(a < b ? a : b);
    case Op::max: return put(a > b ? a : b);
    default: unreachable();
  }
}
Bits arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::add: return put(a + b);
    case Op::sub: return put(a - b);
    case Op::mul: return put(a * b);
    case Op::div: return put(a / b);
    case Op::min: return put(a < b ? a : b);
    case Op::max: return put(a > b ? a : b);
    default: unreachable();
  }
}
Bits arithmetic(Op op, bool a, bool b) {
  switch (op) {
    case Op::bit_and: return a && b;
    case Op::bit_or: return a || b;
    case Op::bit_xor: return a != b;
    default: unreachable();
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::eq: return a == b;
    case Op::ne: return a != b;
    case Op::lt: return a < b;
    case Op::le: return a <= b;
    case Op::gt: return a > b;
    case Op::ge: return a >= b;
    default: unreachable();
  }
}

// Two factors, each a power of two that exists, so that only the last product rounds.
template <class T>
T scaled(T x, T n) {
  constexpr T limit = std::is_same_v<T, float> ? T(252) : T(2044);
  int whole = n != n ? 0 : static_cast<int>(n < -limit ? -limit : n > limit ? limit : n);
  int half = whole >> 1;
  return x * std::ldexp(T(1), half) * std::ldexp(T(1), whole - half);
}

template <class T>
Bits unary(Op op, T a) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case Op::neg: return put(-a);
      case Op::abs: return put(std::fabs(a));
      case Op::sqrt: return put(std::sqrt(a));
      case Op::floor: return put(std::floor(a));
      case Op::ceil: return put(std::ceil(a));
      case Op::trunc: return put(std::trunc(a));
      case Op::round_even: return put(std::nearbyint(a));
      default: unreachable();
    }
  } else if constexpr (std::is_same_v<T, bool>) {
    if (op == Op::bit_not) return !a;
    unreachable();
  } else {
    auto u = static_cast<std::make_unsigned_t<T>>(a);
    switch (op) {
      case Op::neg: return put(static_cast<T>(-u));
      case Op::abs: return put(static_cast<T>(a < 0 ? -u : u));
      case Op::bit_not: return put(static_cast<T>(~u));
      default: unreachable();
    }
  }
}

template <class To, class From>
Bits converted(From x) {
  if constexpr (std::is_same_v<To, bool>) return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr From limit = sizeof(To) == 4 ? From(2147483648.0) : From(9223372036854775808.0);
    // -2147483648.5 still truncates into range; no float lies between, and doubles are compared beyond one more.
    bool fits = x < limit && (sizeof(To) == 4 && sizeof(From) == 8 ? x > -limit - 1 : x >= -limit);
    return put(fits ? static_cast<To>(x) : std::numeric_limits<To>::min());
  } else return put(static_cast<To>(x));
}

float half_to_float(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, rest = h & 0x7fff;
  if (rest >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ff) << 13);
  float magnitude =
      rest < 0x400 ? static_cast<float>(rest) * 0x1p-24f : std::bit_cast<float>((rest << 13) + 0x38000000u);
  return sign ? -magnitude : magnitude;
}
uint16_t float_to_half(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  if (bits >= 0x477ff000) return sign | 0x7c00;
  if (bits < 0x38800000)  // a multiple of 2^-24, which the sum with 1/2 rounds to
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + 0.5f) - 0x3f000000));
  return static_cast<uint16_t>(sign | ((bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13));
}
uint16_t float_to_bfloat(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float bfloat_to_float(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

}  // namespace

Bits bits_of(Type type, double number) {
  return with_type(type, [&](auto t) -> Bits { return put(static_cast<decltype(t)>(number)); });
}
Bits bits_of_integer(Type type, int64_t number) {
  return with_type(type, [&](auto t) -> Bits { return put(static_cast<decltype(t)>(number)); });
}
double number_of(Type type, Bits bits) {
  return with_type(type, [&](auto t) { return static_cast<double>(get<decltype(t)>(bits)); });
}
int64_t integer_of(Type type, Bits bits) {
  return type == Type::i32 ? static_cast<int32_t>(bits) : static_cast<int64_t>(bits);
}

Bits evaluate(const Instruction& instruction, Type result, Type operand, std::span<const Bits> args) {
  Op op = instruction.op;
  switch (op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::rem:
    case Op::min:
    case Op::max:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::shift_left:
    case Op::shift_right:
    case Op::shift_sign:
    case Op::ult:
      return with_type(operand, [&](auto t) -> Bits {
        return arithmetic(op, get<decltype(t)>(args[0]), get<decltype(t)>(args[1]));
      });
    case Op::fma:
      if (result == Type::f32) return put(std::fma(get<float>(args[0]), get<float>(args[1]), get<float>(args[2])));
      return put(std::fma(get<double>(args[0]), get<double>(args[1]), get<double>(args[2])));
    case Op::neg:
    case Op::abs:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::bit_not: return with_type(operand, [&](auto t) -> Bits { return unary(op, get<decltype(t)>(args[0])); });
    case Op::scale:
      if (result == Type::f32) return put(scaled(get<float>(args[0]), get<float>(args[1])));
      return put(scaled(get<double>(args[0]), get<double>(args[1])));
    case Op::mul_low32: return (args[0] & 0xffffffff) * (args[1] & 0xffffffff);
    case Op::bits: return args[0];
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      return with_type(
          operand, [&](auto t) -> Bits { return compare(op, get<decltype(t)>(args[0]), get<decltype(t)>(args[1])); });
    case Op::select: return args[0] ? args[1] : args[2];
    case Op::convert:
      return with_type(operand, [&](auto from) {
        return with_type(result,
                         [&](auto to) -> Bits { return converted<decltype(to)>(get<decltype(from)>(args[0])); });
      });
    case Op::round_to:
      if (instruction.element == Element::f16) return put(half_to_float(float_to_half(get<float>(args[0]))));
      return put(bfloat_to_float(float_to_bfloat(get<float>(args[0]))));
    case Op::constant:
    case Op::param:
    case Op::lo:
    case Op::hi:
    case Op::position:
    case Op::pick:
    case Op::load:
    case Op::store:
    case Op::update:
    case Op::fault:
    case Op::loop: break;
  }
  unreachable();
}

bool displaces(Combine how, Type type, Bits a, int64_t at_a, Bits b, int64_t at_b) {
  return with_type(type, [&](auto t) {
    auto x = get<decltype(t)>(a), y = get<decltype(t)>(b);
    if (x != x || y != y) return x != x && y != y ? at_b < at_a : y != y;
    if (x == y) return at_b < at_a;
    return how == Combine::argmin ? y < x : y > x;
  });
}

Bits combine(Combine how, Type type, Bits a, Bits b) {
  Bits args[] = {a, b};
  Instruction instruction;
  switch (how) {
    case Combine::add: instruction.op = Op::add; return evaluate(instruction, type, type, args);
    case Combine::mul: instruction.op = Op::mul; return evaluate(instruction, type, type, args);
    case Combine::all: return a && b;
    case Combine::any: return a || b;
    case Combine::min:
    case Combine::max:
      return with_type(type, [&](auto t) {
        auto x = get<decltype(t)>(a), y = get<decltype(t)>(b);
        if (y != y) return b;
        return (how == Combine::min ? y < x : y > x) ? b : a;
      });
    case Combine::argmin:
    case Combine::argmax:
    case Combine::position: break;
  }
  unreachable();
}

template <class S>
static S read(const void* from) {
  S s;
  std::memcpy(&s, from, sizeof s);
  return s;
}
Bits load_element(Element element, const void* from) {
  switch (element) {
    case Element::boolean: return read<uint8_t>(from) != 0;
    case Element::i8: return put<int32_t>(read<int8_t>(from));
    case Element::u8: return put<int32_t>(read<uint8_t>(from));
    case Element::i16: return put<int32_t>(read<int16_t>(from));
    case Element::u16: return put<int32_t>(read<uint16_t>(from));
    case Element::i32:
    case Element::f32: return read<uint32_t>(from);
    case Element::i64:
    case Element::f64: return read<uint64_t>(from);
    case Element::f16: return put(half_to_float(read<uint16_t>(from)));
    case Element::bf16: return put(bfloat_to_float(read<uint16_t>(from)));
  }
  unreachable();
}
void store_element(Element element, Bits value, void* to) {
  if (element == Element::f16) value = float_to_half(get<float>(value));
  if (element == Element::bf16) value = float_to_bfloat(get<float>(value));
  std::memcpy(to, &value, static_cast<size_t>(bytes_of(element)));
}

}  // namespace tenon::compile
