#include "tests/compile/random_kernel.h"

#include <cstring>
#include <limits>
#include <random>

#include "tenon/base/text.h"
#include "tenon/compile/math.h"

namespace tenon::compile {
namespace {

constexpr int64_t elements = 640;  // of every buffer
constexpr int64_t most_lanes = 150;

constexpr Element all_elements[] = {Element::boolean, Element::i8,  Element::u8,  Element::i16,
                                    Element::u16,     Element::i32, Element::i64, Element::f16,
                                    Element::bf16,    Element::f32, Element::f64};
constexpr Type all_types[] = {Type::b1, Type::i32, Type::i64, Type::f32, Type::f64};

class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed), b_(text("random_", seed)) {}

  RandomKernel run() {
    RandomKernel out;
    uint64_t number = 0;
    auto add = [&](bool written) {
      Element e = all_elements[below(11)];
      if (chance(3)) e = chance(2) ? Element::f32 : Element::f64;
      uint32_t m = b_.buffer(text(written ? "out" : "in", number), e, number, written);
      ++number;
      elements_.push_back(e);
      out.buffers.push_back(memory(e));
      (written ? outputs_ : inputs_).push_back(m);
    };
    for (int i = 0; i < 3; ++i) add(false);
    for (int i = 0; i < 4; ++i) add(true);
    for (int i = 0; i < 3; ++i) out.params.push_back(below(50) - 5);
    out.lo = below(3);
    out.hi = out.lo + below(most_lanes - 20);
    wide_only_ = chance(4);
    Val lo = b_.lo(), hi = b_.hi();
    keep(b_.param(below(3)));
    keep(lo);
    for (int i = below(3); i > 0; --i) step(0);
    if (chance(8)) {
      for (int i = below(12); i > 0; --i) step(0);
    } else if (chance(2)) {
      b_.loop(0, b_.integer(Type::i64, below(4)), {}, [&](Val row, const Vals&) -> Vals {
        auto saved = values_;
        keep(row);
        for (int i = below(3); i > 0; --i) step(0);
        lanes(lo, hi);
        if (chance(3)) lanes(lo, hi);
        values_ = saved;
        return {};
      });
    } else {
      lanes(lo, hi);
      if (chance(3)) lanes(lo, hi);
    }
    for (int i = 0; i < 3; ++i) step(0);
    while (!outputs_.empty()) {
      uint32_t m = take_output();
      b_.store({m, b_.integer(Type::i64, below(elements))}, value(computed_in(elements_[m]), false));
    }
    out.kernel = b_.finish();
    return out;
  }

 private:
  int below(int64_t n) { return n <= 0 ? 0 : static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool chance(int one_in) { return below(one_in) == 0; }

  std::vector<std::byte> memory(Element e) {
    auto size = static_cast<size_t>(bytes_of(e));
    std::vector<std::byte> out(static_cast<size_t>(elements) * size);
    for (size_t i = 0; i < out.size(); i += size) {
      Bits bits = constant_bits(computed_in(e));
      store_element(e, bits, &out[i]);
      if (chance(10) && e != Element::boolean) {
        uint64_t any = random_();
        std::memcpy(&out[i], &any, size);
      }
    }
    return out;
  }
  Bits constant_bits(Type type) {
    using F = std::numeric_limits<float>;
    static const double special[] = {
        0, -0.0, 1, -1, 0.5, 3, F::infinity(), -F::infinity(), F::quiet_NaN(), 1e-40, F::max(), 1e300, 100.5};
    switch (type) {
      case Type::b1: return random_() & 1;
      case Type::i32:
      case Type::i64:
        return chance(4) ? (type == Type::i32 ? random_() & 0xffffffff : random_())
                         : bits_of_integer(type, below(40) - 15);
      case Type::f32:
      case Type::f64:
        if (chance(4)) return bits_of(type, special[below(13)]);
        return bits_of(type, (static_cast<double>(below(200000)) - 100000) / 7000);
    }
    return 0;
  }

  void keep(Val v) { values_[static_cast<size_t>(v.type())].push_back(v); }
  Val value(Type type, bool varying_allowed = true) {
    auto& known = values_[static_cast<size_t>(type)];
    for (int tries = 0; tries < 4 && !known.empty(); ++tries) {
      // Later values more often: chains instead of bushes.
      size_t n = known.size();
      Val v = known[n - 1 - static_cast<size_t>(below(static_cast<int64_t>(chance(2) ? std::min<size_t>(n, 4) : n)))];
      if (varying_allowed || !b_.value(v.id).varying) return v;
    }
    return b_.from_bits(type, constant_bits(type));
  }
  Val varying(Type type) {
    for (int tries = 0; tries < 6; ++tries) {
      Val v = value(type);
      if (b_.value(v.id).varying) return v;
    }
    Val p = b_.position();
    return type == Type::b1 ? (p & 3) != 1 : convert(p, type);
  }
  Type number_type() {
    if (wide_only_) return chance(2) ? Type::f64 : Type::i64;
    return all_types[1 + below(4)];
  }
  Type float_type() { return wide_only_ || chance(3) ? Type::f64 : Type::f32; }
  Type int_type() { return wide_only_ || chance(2) ? Type::i64 : Type::i32; }

  uint32_t take_output() {
    uint32_t m = outputs_.back();
    outputs_.pop_back();
    return m;
  }

  // depth: 0 outside lanes, 1 in them, more in loops inside.
  Place place(uint32_t m, int depth, bool stores) {
    Place p;
    p.memory = m;
    int kind = depth == 0 ? 0 : below(stores && depth > 1 ? 2 : stores ? 4 : 5);
    switch (kind) {
      case 0:
        if (depth == 0 || !stores) {
          p.base = b_.integer(Type::i64, below(elements));
          break;
        }
        [[fallthrough]];
      case 1:
        p.base = chance(2) ? b_.integer(Type::i64, below(elements - most_lanes)) : (b_.param(0) & 31) + 2;
        p.over_lanes = true;
        break;
      case 2:
        p.over_lanes = true;
        if (chance(3)) {
          p.base = static_cast<int>(elements - 1);
          p.stride = b_.integer(Type::i64, -1 - below(3));
        } else {
          p.base = below(100);
          p.stride = b_.integer(Type::i64, 2 + below(2));
          if (chance(3)) p.stride = (b_.param(1) & 1) + 1;
        }
        break;
      default: {
        Val offset = varying(int_type()) & 511;
        p.base = below(100);
        p.offset = offset;
        break;
      }
    }
    return p;
  }

  void load(int depth) {
    uint32_t m = inputs_[static_cast<size_t>(below(static_cast<int64_t>(inputs_.size())))];
    Type type = computed_in(elements_[m]);
    if (depth > 0 && chance(5)) {  // out of range where the guard is false
      Val offset = varying(Type::i64);
      Val inside = b_.emit(Op::ult, Type::b1, {offset, b_.integer(Type::i64, elements)});
      b_.fault(4, ~inside);
      Place p;
      p.memory = m;
      p.offset = offset;
      keep(b_.load(p, inside, value(type)));
      return;
    }
    Place p = place(m, depth, false);
    bool lanes = p.over_lanes || p.offset.builder;
    if (chance(3)) keep(b_.load(p, value(Type::b1, lanes), value(type, lanes)));
    else keep(b_.load(p));
  }

  void store(int depth) {
    if (outputs_.empty()) return;
    uint32_t m = take_output();
    Type type = computed_in(elements_[m]);
    Place p = place(m, depth, true);
    bool lanes = p.over_lanes || p.offset.builder;
    Val v = value(type, lanes);
    bool guarded = chance(3), updates = depth < 2 && chance(3);
    if (updates) {
      Combine how = type == Type::b1 ? (chance(2) ? Combine::all : Combine::any) : static_cast<Combine>(below(4));
      if (guarded) b_.update(how, p, v, value(Type::b1, lanes));
      else b_.update(how, p, v);
    } else if (guarded) b_.store(p, v, value(Type::b1, lanes));
    else b_.store(p, v);
  }

  Val scaled(Type t) {
    Val x = value(t);
    x = select((abs(x) < 1e6) & (abs(x) > 1e-6), x, 1.5);
    Val n = convert(convert(binary(Op::min, binary(Op::max, value(t), -200.0), 200.0), Type::i32), t);
    return binary(Op::scale, x, select((n < 250.0) & (n > -250.0), n, 3.0));
  }

  void function() {
    static Val (*const unary_functions[])(Val) = {exp,  exp2,       expm1,     sigmoid, tanh,   sinh,   cosh,   erf,
                                                  log,  log2,       log10,     log1p,   asinh,  acosh,  atanh,  sin,
                                                  cos,  tan,        asin,      acos,    atan,   rsqrt,  gelu,   silu,
                                                  sign, reciprocal, gelu_tanh, erfc,    erfinv, lgamma, digamma};
    static Val (*const binary_functions[])(Val, Val) = {pow,       atan2,    hypot,   fmod,    remainder,  floor_div,
                                                        nextafter, copysign, min_nan, max_nan, min_number, max_number};
    Type t = float_type();
    if (chance(8)) {
      keep(random_bits(value(Type::i64), value(Type::i64), value(Type::i64)));
    } else if (chance(4)) {
      int which = below(12);
      if (which < 6 && which != 1 && which != 2 && chance(3)) t = int_type();
      keep(binary_functions[which](value(t), value(t)));
    } else keep(unary_functions[below(31)](value(t)));
  }

  void step(int depth) {
    switch (below(22)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        Type t = number_type();
        static const Op ops[] = {Op::add, Op::sub, Op::mul, Op::min, Op::max, Op::div};
        keep(binary(ops[below(6)], value(t), value(t)));
        return;
      }
      case 4: {
        Type t = int_type();
        static const Op ops[] = {Op::bit_and,     Op::bit_or,     Op::bit_xor, Op::shift_left,
                                 Op::shift_right, Op::shift_sign, Op::rem};
        keep(binary(ops[below(7)], value(t), value(t)));
        return;
      }
      case 5: {
        static const Op ops[] = {Op::bit_and, Op::bit_or, Op::bit_xor};
        keep(chance(4) ? ~value(Type::b1) : binary(ops[below(3)], value(Type::b1), value(Type::b1)));
        return;
      }
      case 6:
      case 7: {
        Type t = number_type();
        static const Op ops[] = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
        keep(b_.emit(ops[below(6)], Type::b1, {value(t), value(t)}));
        if (chance(6)) {
          t = int_type();
          keep(b_.emit(Op::ult, Type::b1, {value(t), value(t)}));
        }
        return;
      }
      case 8:
      case 9: {
        Type t = chance(4) ? Type::b1 : number_type();
        keep(select(value(Type::b1), value(t), value(t)));
        return;
      }
      case 10:
      case 11: {
        Type from = all_types[below(5)], to = wide_only_ && chance(2) ? number_type() : all_types[below(5)];
        if (from != to) keep(convert(value(from), to));
        return;
      }
      case 12: {
        Type t = float_type();
        keep(fma(value(t), value(t), value(t)));
        return;
      }
      case 13: {
        Type t = float_type();
        static const Op ops[] = {Op::neg, Op::abs, Op::sqrt, Op::floor, Op::ceil, Op::trunc, Op::round_even};
        keep(unary(ops[below(7)], value(t)));
        if (chance(3)) keep(unary(chance(2) ? Op::neg : Op::abs, value(int_type())));
        return;
      }
      case 14: {
        if (chance(3)) keep(scaled(float_type()));
        else if (chance(3)) keep(round_to(value(Type::f32), chance(2) ? Element::f16 : Element::bf16));
        else if (chance(2)) keep(b_.emit(Op::mul_low32, Type::i64, {value(Type::i64), value(Type::i64)}));
        else {
          Type t = number_type();
          keep(bits_as(value(t), t == Type::f32   ? Type::i32
                                 : t == Type::f64 ? Type::i64
                                 : t == Type::i32 ? Type::f32
                                                  : Type::f64));
        }
        return;
      }
      case 15: {
        Type t = number_type();
        double table[16];
        for (double& x : table) x = below(1000) - 300;
        keep(b_.pick(t, table, value(Type::i32)));
        return;
      }
      case 16:
      case 17: load(depth); return;
      case 18:
        if (chance(2)) store(depth);
        return;
      case 19:
        if (chance(2)) function();
        return;
      case 20:
        if (chance(4)) b_.fault(1 << below(8), value(Type::b1));
        return;
      case 21:
        if (depth < 3 && depth > 0 && chance(2)) inner(depth);
        return;
    }
  }

  void inner(int depth) {
    auto saved = values_;
    bool conditional = chance(3);
    std::vector<Carried> carried;
    if (conditional) carried.push_back({value(Type::b1)});
    for (int i = below(3); i > 0; --i) carried.push_back({value(all_types[below(5)])});
    auto body = [&](Val i, const Vals& s) -> Vals {
      keep(i);
      for (Val v : s) keep(v);
      Vals next;
      if (conditional) {
        for (int k = 2 + below(6); k > 0; --k) pure_step();
        for (Val v : s) next.push_back(value(v.type()));
        return next;
      }
      for (int k = 2 + below(8); k > 0; --k) step(depth + 1);
      for (Val v : s) next.push_back(value(v.type()));
      return next;
    };
    Val upper = chance(3) ? b_.param(2) & 7 : b_.integer(Type::i64, below(5));
    Vals results = conditional ? b_.loop_while(0, upper, carried, body) : b_.loop(0, upper, carried, body);
    values_ = saved;
    for (Val v : results) keep(v);
  }
  void pure_step() {
    Type t = number_type();
    switch (below(4)) {
      case 0: keep(value(t) + value(t)); return;
      case 1: keep(value(t) < value(t)); return;
      case 2: keep(select(value(Type::b1), value(t), value(t))); return;
      case 3: keep(value(Type::b1) & value(Type::b1)); return;
    }
  }

  void lanes(Val lo, Val hi) {
    auto saved = values_;
    static const int ways[] = {16, 16, 32, 64};
    std::vector<Carried> carried;
    std::vector<bool> by_position;
    if (chance(2))
      for (int i = 1 + below(3); i > 0; --i) {
        Type t = all_types[below(5)];
        if (wide_only_ && t != Type::b1) t = number_type();
        Val init = value(t, false);
        if (t == Type::b1) carried.push_back({init, chance(2) ? Combine::all : Combine::any});
        else if (chance(4)) {
          carried.push_back({init, chance(2) ? Combine::argmin : Combine::argmax});
          carried.push_back({b_.integer(Type::i64, 0), Combine::position});
          by_position.push_back(true);
          by_position.push_back(false);
          continue;
        } else carried.push_back({init, static_cast<Combine>(below(4))});
        by_position.push_back(false);
      }
    Vals results = b_.lanes(lo, hi, ways[below(4)], carried, [&](Val index, const Vals& s) -> Vals {
      if (chance(2)) keep(index);
      if (chance(3)) keep(b_.position());
      load(1);
      for (Val v : s)
        if (chance(2)) keep(v);
      for (int i = 4 + below(25); i > 0; --i) step(1);
      Vals next;
      for (size_t k = 0; k < s.size(); ++k) {
        Type t = s[k].type();
        if (by_position[k]) {
          Val x = value(t);
          Val better = carried[k].combine == Combine::argmin ? x < s[k] : x > s[k];
          next.push_back(select(better, x, s[k]));
          next.push_back(select(better, index, s[k + 1]));
          ++k;
        } else if (t == Type::b1 || chance(4)) next.push_back(value(t));
        else next.push_back(chance(2) ? s[k] + value(t) : max_nan(s[k], value(t)));
      }
      if (chance(2)) store(1);
      return next;
    });
    values_ = saved;
    for (Val v : results) keep(v);
  }

  std::mt19937_64 random_;
  Builder b_;
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<Element> elements_;
  std::array<std::vector<Val>, 5> values_;
  bool wide_only_ = false;
};

}  // namespace

RandomKernel random_kernel(uint32_t seed) { return Maker(seed).run(); }

}  // namespace tenon::compile
