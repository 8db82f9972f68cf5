// Writes kernels. Pure operations are folded where their operands are constants, found again where they were written
// before, and placed in the outermost loop whose values they use: what is uniform or invariant leaves the loops by
// itself.
#pragma once
#include <functional>
#include <map>
#include <tuple>

#include "tenon/compile/evaluate.h"
#include "tenon/compile/kernel.h"

namespace tenon::compile {

class Builder;

/// A value in a formula. A plain number takes the type of the value it meets.
struct Val {
  Builder* builder = nullptr;
  ValueId id = no_value;
  double literal = 0;  // where builder is null

  Val() = default;
  Val(Builder* builder, ValueId id) : builder(builder), id(id) {}
  Val(double number) : literal(number) {}
  Val(int number) : literal(number) {}
  Type type() const;
};
using Vals = std::vector<Val>;

/// A place in memory: which, and an index. `over_lanes` adds the lanes variable, times `stride` where there is one.
struct Place {
  uint32_t memory = 0;
  Val base = 0;  // i64, uniform
  bool over_lanes = false;
  Val stride = 1;  // i64, uniform
  Val offset;      // i32 or i64, varying: gathered
};

struct Carried {
  Val init;
  Combine combine = Combine::add;  // lanes
  bool uniform = false;            // a plain loop within lanes whose carried value is the same in every lane
};

using LoopBody = std::function<Vals(Val index, const Vals& carried)>;

class Builder {
 public:
  explicit Builder(std::string name);

  uint32_t buffer(std::string name, Element element, uint64_t number, bool written = false);
  uint32_t scratch(std::string name, Element element, uint64_t count);

  Val constant(Type type, double number);
  Val integer(Type type, int64_t number);
  Val from_bits(Type type, Bits bits);
  Val param(uint64_t which);
  Val lo();
  Val hi();
  Val position();

  /// A pure operation; literals among the operands take the type of the first value.
  Val emit(Op op, Type type, Vals args, uint64_t bits = 0, Element element = Element::f32);
  Val pick(Type type, std::span<const double> sixteen, Val index);

  Val load(Place place);
  Val load(Place place, Val guard, Val otherwise);
  void store(Place place, Val value);
  void store(Place place, Val value, Val guard);
  void update(Combine combine, Place place, Val value);
  void update(Combine combine, Place place, Val value, Val guard);
  void fault(int status, Val where);

  Vals loop(Val lower, Val upper, std::vector<Carried> carried, const LoopBody& body);
  /// The first carried value is the condition.
  Vals loop_while(Val lower, Val upper, std::vector<Carried> carried, const LoopBody& body);
  Vals lanes(Val lower, Val upper, int ways, std::vector<Carried> carried, const LoopBody& body);

  /// The kernel without what nothing uses, verified.
  Kernel finish();

  const Value& value(ValueId v) const { return kernel_.values[v]; }
  const Bits* constant_bits(Val v) const;  // null: no constant

 private:
  using Key = std::tuple<Op, Type, uint64_t, Element, std::vector<ValueId>>;
  struct Scope {
    std::vector<Instruction> body;
    std::map<Key, ValueId> known;
  };

  Val typed(Val v, Type type);
  Val simplified(Op op, Type type, const Vals& args);
  ValueId define(Type type, bool varying, size_t depth);
  void address(Instruction& i, const Place& place);
  void write(Op op, Combine combine, const Place& place, Val value, const Val* guard);
  Vals make_loop(Loop loop, std::vector<Carried> carried, const LoopBody& body);

  Kernel kernel_;
  std::vector<Scope> scopes_;
  std::vector<size_t> depth_of_;  // of each value: the scope it is defined in
  std::map<ValueId, Bits> constants_;
  size_t lanes_depth_ = 0;  // the scope of the lanes loop, 0 outside
};

Val operator+(Val a, Val b);
Val operator-(Val a, Val b);
Val operator*(Val a, Val b);
Val operator/(Val a, Val b);
Val operator-(Val a);
Val operator&(Val a, Val b);
Val operator|(Val a, Val b);
Val operator^(Val a, Val b);
Val operator~(Val a);
Val operator<<(Val a, int amount);
Val operator>>(Val a, int amount);  // zeros come in
Val operator<(Val a, Val b);
Val operator<=(Val a, Val b);
Val operator>(Val a, Val b);
Val operator>=(Val a, Val b);
Val operator==(Val a, Val b);
Val operator!=(Val a, Val b);
Val fma(Val a, Val b, Val c);
Val select(Val condition, Val then, Val otherwise);
Val convert(Val x, Type type);
Val bits_as(Val x, Type type);
Val unary(Op op, Val x);
Val binary(Op op, Val a, Val b);
inline Val abs(Val x) { return unary(Op::abs, x); }
inline Val sqrt(Val x) { return unary(Op::sqrt, x); }
inline Val floor(Val x) { return unary(Op::floor, x); }
inline Val ceil(Val x) { return unary(Op::ceil, x); }
inline Val trunc(Val x) { return unary(Op::trunc, x); }
inline Val round_even(Val x) { return unary(Op::round_even, x); }

}  // namespace tenon::compile
