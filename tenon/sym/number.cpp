#include "tenon/sym/number.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"

namespace tenon::sym {

void fail_overflow(const char* operation, int64_t a, int64_t b) {
  fail("integer overflow: ", a, " ", operation, " ", b, " does not fit into 64 bits");
}
void fail_zero_division(const char* operation, int64_t a) { fail("division by zero: ", a, " ", operation, " 0"); }

int64_t checked_pow(int64_t a, int64_t b) {
  require(b >= 0, "expected an exponent of 0 or more, got ", b);
  if (a == 0) return b == 0;
  if (a == 1) return 1;
  if (a == -1) return b % 2 == 0 ? 1 : -1;
  int64_t out = 1;
  while (b-- > 0) out = checked_mul(out, a);  // |a| >= 2: at most 63 rounds before overflow
  return out;
}

int64_t checked_shift_left(int64_t a, int64_t b) {
  require(b >= 0, "cannot shift by ", b, ", a negative count");
  if (a == 0) return 0;
  if (b > 62) fail_overflow("<<", a, b);
  return checked_mul(a, int64_t{1} << b);
}

namespace {

int64_t shift_right(int64_t a, int64_t b) {
  require(b >= 0, "cannot shift by ", b, ", a negative count");
  return a >> std::min<int64_t>(b, 63);
}

int64_t integer_in(Number x) {
  if (x.type == Number::Type::boolean || x.is_integer()) return x.n;
  if (x.is_real() && x.r == std::floor(x.r) && std::abs(x.r) < 9.2e18) return static_cast<int64_t>(x.r);
  fail("expected an integer, got ", x.as_double());
}

Number to_integer(double value, const char* how) {
  require(std::isfinite(value) && value >= -0x1p63 && value < 0x1p63, "cannot ", how, " ", value,
          " to a 64-bit integer");
  return Number::of(static_cast<int64_t>(value));
}

Number negated(Number x) { return Number::of(-1) * x; }

Number round_half_even(Number x) { return x.is_integer() ? x : to_integer(std::nearbyint(x.as_double()), "round"); }

Number floor_of(Number x) {
  if (x.is_real()) return to_integer(std::floor(x.r), "round");
  return Number::of(checked_floordiv(x.n, x.d));
}

Number ceil_of(Number x) { return x.is_real() ? to_integer(std::ceil(x.r), "round") : negated(floor_of(negated(x))); }

Number trunc_of(Number x) {
  if (x.is_real()) return to_integer(std::trunc(x.r), "truncate");
  return Number::of(x.n / x.d);
}

Number float_division(Number a, Number b) {
  require(b.as_double() != 0, "division by zero: ", a.as_double(), " / 0");
  return Number::real(a.as_double() / b.as_double());
}

Number round_to_digits(Number x, Number digits) {
  double scale = std::pow(10.0, digits.as_double());
  return Number::real(std::nearbyint(x.as_double() * scale) / scale);
}

Number power(Number a, Number b) {
  if (a.is_real() || b.is_real() || b.d != 1) return Number::real(std::pow(a.as_double(), b.as_double()));
  if (b.n >= 0) return Number::fraction(checked_pow(a.n, b.n), checked_pow(a.d, b.n));
  require(a.n != 0, "division by zero: 0 to the power ", b.n);
  int64_t e = checked_sub(0, b.n);
  return Number::fraction(checked_pow(a.d, e), checked_pow(a.n, e));
}

bool non_overlapping_and_dense(std::span<const Number> sizes_and_strides) {
  size_t rank = sizes_and_strides.size() / 2;
  auto sizes = sizes_and_strides.first(rank), strides = sizes_and_strides.subspan(rank);
  if (rank == 1) return strides[0].is_exact(1) || sizes[0].n < 2;
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a].n < strides[b].n; });
  int64_t expected = 1;
  for (size_t i : order) {
    if (sizes[i].n < 2) continue;
    if (strides[i].n != expected) return false;
    expected = checked_mul(expected, sizes[i].n);
  }
  return true;
}

struct KnownCall {
  std::string_view name;
  double (*function)(double);
};
const KnownCall known_calls[] = {
    {"sqrt", std::sqrt}, {"cos", std::cos},   {"cosh", std::cosh}, {"sin", std::sin},     {"sinh", std::sinh},
    {"tan", std::tan},   {"tanh", std::tanh}, {"asin", std::asin}, {"acos", std::acos},   {"atan", std::atan},
    {"exp", std::exp},   {"log", std::log},   {"log2", std::log2}, {"asinh", std::asinh}, {"abs", std::fabs},
};

const KnownCall* find_known_call(std::string_view name) {
  constexpr std::string_view prefix = "OpaqueUnaryFn_";
  if (!starts_with(name, prefix)) return nullptr;
  for (const KnownCall& k : known_calls)
    if (k.name == name.substr(prefix.size())) return &k;
  return nullptr;
}

}  // namespace

bool is_known_call(std::string_view name) { return find_known_call(name) != nullptr; }

Number Number::fraction(int64_t n, int64_t d) {
  if (d == 0) fail_zero_division("/", n);
  if (d < 0) n = checked_sub(0, n), d = checked_sub(0, d);
  if (d != 1) {
    auto magnitude = [](int64_t x) { return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x); };
    auto g = static_cast<int64_t>(std::gcd(magnitude(n), magnitude(d)));
    n /= g, d /= g;
  }
  return {.n = n, .d = d};
}

std::optional<Number> try_add(Number a, Number b) {
  if (a.is_real() || b.is_real()) return Number::real(a.as_double() + b.as_double());
  int64_t n, m, d;
  if (__builtin_mul_overflow(a.n, b.d, &n) || __builtin_mul_overflow(b.n, a.d, &m) ||
      __builtin_add_overflow(n, m, &n) || __builtin_mul_overflow(a.d, b.d, &d))
    return std::nullopt;
  return Number::fraction(n, d);
}

std::optional<Number> try_negate(Number a) {
  if (a.is_real()) return Number::real(-a.r);
  if (a.n == std::numeric_limits<int64_t>::min()) return std::nullopt;
  return Number{.n = -a.n, .d = a.d};
}

Number operator+(Number a, Number b) {
  if (a.is_real() || b.is_real()) return Number::real(a.as_double() + b.as_double());
  if (a.d == 1 && b.d == 1) return Number::of(checked_add(a.n, b.n));
  return Number::fraction(checked_add(checked_mul(a.n, b.d), checked_mul(b.n, a.d)), checked_mul(a.d, b.d));
}

Number operator*(Number a, Number b) {
  if (a.is_real() || b.is_real()) return Number::real(a.as_double() * b.as_double());
  if (a.d == 1 && b.d == 1) return Number::of(checked_mul(a.n, b.n));
  Number x = Number::fraction(a.n, b.d), y = Number::fraction(b.n, a.d);  // cancel first: fewer overflows
  return Number::fraction(checked_mul(x.n, y.n), checked_mul(x.d, y.d));
}

Number operator-(Number a, Number b) {
  if (a.is_integer() && b.is_integer()) return Number::of(checked_sub(a.n, b.n));
  return a + negated(b);
}

int compare_numbers(Number a, Number b) {
  if (!a.is_real() && !b.is_real()) {
    __int128_t x = static_cast<__int128_t>(a.n) * b.d, y = static_cast<__int128_t>(b.n) * a.d;
    return x < y ? -1 : x > y;
  }
  double x = a.as_double(), y = b.as_double();
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y;
}

std::optional<Number> number_of(const Expr& e) {
  switch (e.kind()) {
    case Kind::integer: return Number::of(e.as_int());
    case Kind::rational: return Number{.n = e.args()[0].as_int(), .d = e.args()[1].as_int()};
    case Kind::real: return Number::real(e.node()->real);
    case Kind::boolean: return Number::boolean(e.boolean_value());
    default: return std::nullopt;
  }
}

Expr expr_of(Number n) {
  if (n.type == Number::Type::real) return Expr::real(n.r);
  if (n.type == Number::Type::boolean) return Expr::boolean(n.n != 0);
  return n.d == 1 ? Expr(n.n) : intern(Kind::rational, {Expr(n.n), Expr(n.d)});
}

Number apply(Kind kind, std::string_view name, std::span<const Number> args) {
  auto integer = [&](size_t i) { return integer_in(args[i]); };
  auto compared = [&] { return compare_numbers(args[0], args[1]); };
  auto pick = [&](int wanted) {
    Number best = args[0];
    for (Number x : args.subspan(1))
      if (compare_numbers(x, best) == wanted) best = x;
    return best;
  };
  switch (kind) {
    case Kind::add: {
      Number out;
      for (Number x : args) out = out + x;
      return out;
    }
    case Kind::mul: {
      Number out = Number::of(1);
      for (Number x : args) out = out * x;
      return out;
    }
    case Kind::pow: return power(args[0], args[1]);
    case Kind::max: return pick(1);
    case Kind::min: return pick(-1);
    case Kind::mod:
    case Kind::floor_div: {
      bool whole = !args[0].is_real() && args[0].d == 1 && !args[1].is_real() && args[1].d == 1;
      if (whole)
        return Number::of(kind == Kind::mod ? checked_mod(args[0].n, args[1].n)
                                            : checked_floordiv(args[0].n, args[1].n));
      double a = args[0].as_double(), b = args[1].as_double();
      require(b != 0, "division by zero: ", a, kind == Kind::mod ? " % " : " // ", b);
      double quotient = std::floor(a / b);
      if (kind == Kind::floor_div) return Number::real(quotient);
      double rest = std::fmod(a, b);
      return Number::real(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
    }
    case Kind::true_div:
    case Kind::float_true_div: return float_division(args[0], args[1]);
    case Kind::float_pow: {
      double base = args[0].as_double(), exponent = args[1].as_double();
      return Number::real(exponent == 0.5 && base >= 0 ? std::sqrt(base) : std::pow(base, exponent));
    }
    case Kind::to_float: return Number::real(args[0].as_double());
    case Kind::trunc: return trunc_of(args[0]);
    case Kind::trunc_float: return Number::real(std::trunc(args[0].as_double()));
    case Kind::ceil: return ceil_of(args[0]);
    case Kind::floor: return floor_of(args[0]);
    case Kind::round: return round_half_even(args[0]);
    case Kind::round_decimal: return round_to_digits(args[0], args[1]);
    case Kind::bit_and: return Number::of(integer(0) & integer(1));
    case Kind::bit_or: return Number::of(integer(0) | integer(1));
    case Kind::lshift: return Number::of(checked_shift_left(integer(0), integer(1)));
    case Kind::rshift: return Number::of(shift_right(integer(0), integer(1)));
    case Kind::eq: return Number::boolean(compared() == 0);
    case Kind::ne: return Number::boolean(compared() != 0);
    case Kind::lt: return Number::boolean(compared() == -1);
    case Kind::le: return Number::boolean(compared() == -1 || compared() == 0);
    case Kind::gt: return Number::boolean(compared() == 1);
    case Kind::ge: return Number::boolean(compared() == 1 || compared() == 0);
    case Kind::logical_and: {
      for (Number x : args)
        if (!x.truth()) return Number::boolean(false);
      return Number::boolean(true);
    }
    case Kind::logical_or: {
      for (Number x : args)
        if (x.truth()) return Number::boolean(true);
      return Number::boolean(false);
    }
    case Kind::logical_not: return Number::boolean(!args[0].truth());
    case Kind::piecewise: {
      for (size_t i = 0; i + 1 < args.size(); i += 2)
        if (args[i + 1].truth()) return args[i];
      fail("no condition of a Piecewise expression holds");
    }
    case Kind::unknown_call: {
      if (const KnownCall* known = find_known_call(name); known && args.size() == 1)
        return Number::real(known->function(args[0].as_double()));
      if (name == "IsNonOverlappingAndDenseIndicator" && !args.empty() && args.size() % 2 == 0)
        return Number::of(non_overlapping_and_dense(args));
      fail("cannot compute ", quoted(name), ": no function of this name is known");
    }
    case Kind::integer:
    case Kind::rational:
    case Kind::real:
    case Kind::boolean:
    case Kind::symbol: break;
  }
  unreachable();
}

}  // namespace tenon::sym
