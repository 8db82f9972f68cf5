#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/base/text.h"
#include "tenon/compile/kernel.h"

namespace tenon::compile {
namespace {

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), visible_(kernel.values.size(), false), seen_(visible_) {}

  void run() {
    for (const Memory& m : kernel_.memory) {
      expect(!m.name.empty(), "memory of kernel ", kernel_.name, " without a name");
      auto size = static_cast<uint64_t>(bytes_of(m.element));
      expect(!m.scratch || m.number % size == 0, "scratch ", m.name, " starts at byte ", m.number,
             ", no multiple of its element's ", size);
    }
    for (const Table& t : kernel_.tables) expect(t.type != Type::b1, "table of b1; a table holds integers or floats");
    body(kernel_.body);
    for (size_t v = 0; v < seen_.size(); ++v) expect(seen_[v], "value ", v, " of ", kernel_.name, " has no definition");
  }

 private:
  const Value& value(ValueId v) const { return kernel_.values[v]; }
  bool varying(ValueId v) const { return value(v).varying; }

  void define(ValueId v, std::vector<ValueId>& scope) {
    expect(v < visible_.size(), "definition of value ", v, " beyond the ", visible_.size(), " there are");
    expect(!seen_[v], "value ", v, " is defined twice");
    seen_[v] = visible_[v] = true;
    scope.push_back(v);
  }
  void use(ValueId v, std::string_view who) const {
    expect(v < visible_.size() && visible_[v], who, " uses value ", v, ", which is not defined there");
  }
  void typed(ValueId v, Type type, std::string_view who) const {
    expect(value(v).type == type, who, ": expected ", name(type), ", got ", name(value(v).type), " in value ", v);
  }
  void uniform(ValueId v, std::string_view who) const { expect(!varying(v), who, ": value ", v, " must be uniform"); }

  void body(const std::vector<Instruction>& instructions) {
    std::vector<ValueId> scope;
    for (const Instruction& i : instructions) {
      for (ValueId v : i.args) use(v, name(i.op));
      if (i.op == Op::loop) loop(i, false, false, scope);
      else instruction(i, false, false, scope);
    }
    leave(scope);
  }
  void leave(const std::vector<ValueId>& scope) {
    for (ValueId v : scope) visible_[v] = false;
  }

  void operands(const Instruction& i, size_t count) const {
    expect(i.args.size() == count, name(i.op), " takes ", count, " operands, got ", i.args.size());
  }
  // Every operand and the result of one type out of a set.
  void same(const Instruction& i, size_t count, bool ints, bool floats, bool b1 = false) const {
    operands(i, count);
    Type type = value(i.result).type;
    for (ValueId v : i.args) typed(v, type, name(i.op));
    expect((ints && is_int(type)) || (floats && is_float(type)) || (b1 && type == Type::b1), name(i.op),
           " is not defined for ", name(type));
  }

  void instruction(const Instruction& i, bool in_lanes, bool pure, std::vector<ValueId>& scope) {
    std::string_view who = name(i.op);
    if (i.op == Op::load || i.op == Op::store || i.op == Op::update) {
      expect(!pure, who, " in a conditional loop, whose body must be pure");
      memory(i, in_lanes);
      if (i.op == Op::load) define(i.result, scope);
      return;
    }
    if (i.op == Op::fault) {
      expect(!pure, "fault in a conditional loop, whose body must be pure");
      operands(i, 1);
      typed(i.args[0], Type::b1, who);
      expect(i.bits > 0 && i.bits < 1u << 31, "fault: status bits ", i.bits, " do not fit an int");
      return;
    }
    expect(i.result < kernel_.values.size(), who, " without a result");
    const Value& result = value(i.result);
    bool expected = std::any_of(i.args.begin(), i.args.end(), [&](ValueId v) { return varying(v); });
    switch (i.op) {
      case Op::constant: operands(i, 0); break;
      case Op::param:
      case Op::lo:
      case Op::hi:
        operands(i, 0);
        typed(i.result, Type::i64, who);
        break;
      case Op::position:
        operands(i, 0);
        typed(i.result, Type::i32, who);
        expect(in_lanes, "position outside a lanes loop");
        expected = true;
        break;
      case Op::add:
      case Op::sub:
      case Op::mul:
      case Op::div:
      case Op::min:
      case Op::max: same(i, 2, true, true); break;
      case Op::rem:
      case Op::shift_left:
      case Op::shift_right:
      case Op::shift_sign: same(i, 2, true, false); break;
      case Op::scale: same(i, 2, false, true); break;
      case Op::bit_and:
      case Op::bit_or:
      case Op::bit_xor: same(i, 2, true, false, true); break;
      case Op::fma: same(i, 3, false, true); break;
      case Op::neg:
      case Op::abs: same(i, 1, true, true); break;
      case Op::sqrt:
      case Op::floor:
      case Op::ceil:
      case Op::trunc:
      case Op::round_even: same(i, 1, false, true); break;
      case Op::bit_not: same(i, 1, true, false, true); break;
      case Op::mul_low32:
        same(i, 2, true, false);
        typed(i.result, Type::i64, who);
        break;
      case Op::bits: {
        operands(i, 1);
        Type from = value(i.args[0]).type;
        expect(width_of(from) == width_of(result.type) && is_float(from) != is_float(result.type) && from != Type::b1 &&
                   result.type != Type::b1,
               "bits: ", name(from), " has not the width of ", name(result.type), ", or is of its kind");
        break;
      }
      case Op::eq:
      case Op::ne:
      case Op::lt:
      case Op::le:
      case Op::gt:
      case Op::ge:
      case Op::ult:
        operands(i, 2);
        typed(i.result, Type::b1, who);
        typed(i.args[1], value(i.args[0]).type, who);
        expect(value(i.args[0]).type != Type::b1 && (i.op != Op::ult || is_int(value(i.args[0]).type)), who,
               " is not defined for ", name(value(i.args[0]).type));
        break;
      case Op::select:
        operands(i, 3);
        typed(i.args[0], Type::b1, who);
        typed(i.args[1], result.type, who);
        typed(i.args[2], result.type, who);
        break;
      case Op::convert:
        operands(i, 1);
        expect(value(i.args[0]).type != result.type, "convert from ", name(result.type), " to itself");
        break;
      case Op::round_to:
        same(i, 1, false, true);
        typed(i.result, Type::f32, who);
        expect(i.element == Element::f16 || i.element == Element::bf16, "round_to ", name(i.element));
        break;
      case Op::pick:
        operands(i, 1);
        typed(i.args[0], Type::i32, who);
        expect(i.bits < kernel_.tables.size(), "pick from table ", i.bits, " of ", kernel_.tables.size());
        typed(i.result, kernel_.tables[i.bits].type, who);
        break;
      case Op::load:
      case Op::store:
      case Op::update:
      case Op::fault:
      case Op::loop: unreachable();
    }
    expect(result.varying == expected, who, ": value ", i.result, " is marked ", result.varying ? "varying" : "uniform",
           ", its operands say otherwise");
    define(i.result, scope);
  }

  void memory(const Instruction& i, bool in_lanes) {
    std::string_view who = name(i.op);
    expect(i.memory < kernel_.memory.size(), who, " of memory ", i.memory, " of ", kernel_.memory.size());
    const Memory& m = kernel_.memory[i.memory];
    bool loads = i.op == Op::load, lanes = i.access != Access::uniform;
    size_t at = i.access == Access::strided || i.access == Access::gathered ? 2 : 1;
    operands(i, at + (loads ? 2u * i.guarded : 1u + i.guarded));
    expect(!lanes || in_lanes, who, " over lanes outside a lanes loop");
    typed(i.args[0], Type::i64, who);
    uniform(i.args[0], who);
    if (i.access == Access::strided) {
      typed(i.args[1], Type::i64, who);
      uniform(i.args[1], who);
    }
    if (i.access == Access::gathered)
      expect(varying(i.args[1]) && is_int(value(i.args[1]).type), who, ": the offset must be a varying integer");
    Type type = computed_in(m.element);
    ValueId guard = i.guarded ? i.args[loads ? at : at + 1] : no_value;
    ValueId other = loads ? (i.guarded ? i.args[at + 1] : no_value) : i.args[at];
    if (guard != no_value) typed(guard, Type::b1, who);
    if (other != no_value) typed(other, type, who);
    if (!lanes) {
      if (guard != no_value) uniform(guard, who);
      if (other != no_value) uniform(other, who);
    }
    if (loads) {
      typed(i.result, type, who);
      expect(varying(i.result) == lanes, "load: value ", i.result, " is marked ",
             varying(i.result) ? "varying" : "uniform", ", its place says otherwise");
    } else {
      expect(m.written, who, " to ", m.name, ", which is not marked as written");
      // Lanes and the iterations of an inner loop have no order between them that every machine keeps.
      expect(i.op != Op::update || !nested_, "update in a loop inside lanes");
      if (i.op == Op::update) combinable(i.combine, type);
    }
  }
  void combinable(Combine how, Type type) const {
    bool logical = how == Combine::all || how == Combine::any;
    expect(how <= Combine::any && logical == (type == Type::b1), name(how), " is not defined for ", name(type));
  }

  void loop(const Instruction& i, bool in_lanes, bool pure, std::vector<ValueId>& outer) {
    expect(i.loop < kernel_.loops.size(), "loop ", i.loop, " of ", kernel_.loops.size());
    const Loop& l = kernel_.loops[i.loop];
    for (ValueId v : {l.lower, l.upper}) {
      use(v, "loop");
      typed(v, Type::i64, "loop");
      uniform(v, "loop");
    }
    expect(!l.lanes || !in_lanes, "a lanes loop inside a lanes loop");
    expect(!l.lanes || (!pure && !l.conditional), "a lanes loop cannot be conditional, nor within such a one");
    expect(!l.lanes || l.ways == 16 || l.ways == 32 || l.ways == 64, "ways ", l.ways, "; expected 16, 32 or 64");
    expect(!l.conditional || (!l.carried.empty() && value(l.carried[0].argument).type == Type::b1),
           "a conditional loop must carry its condition first");
    std::vector<ValueId> inner;
    for (const Carry& c : l.carried) use(c.init, "loop");
    typed(l.index, Type::i64, "loop");
    expect(varying(l.index) == l.lanes, "the index of a loop is varying exactly in a lanes loop");
    define(l.index, inner);
    for (const Carry& c : l.carried) define(c.argument, inner);
    bool now_pure = pure || l.conditional, outer_nested = nested_;
    nested_ = in_lanes;
    std::vector<ValueId> scope;
    for (const Instruction& n : l.body) {
      for (ValueId v : n.args) use(v, name(n.op));
      if (n.op == Op::loop) loop(n, in_lanes || l.lanes, now_pure, scope);
      else instruction(n, in_lanes || l.lanes, now_pure, scope);
    }
    for (size_t k = 0; k < l.carried.size(); ++k) {
      const Carry& c = l.carried[k];
      use(c.next, "next");
      Type type = value(c.argument).type;
      for (ValueId v : {c.init, c.next, c.result}) typed(v, type, "carry");
      if (l.lanes) {
        uniform(c.init, "carry into lanes");
        uniform(c.result, "result of lanes");
        expect(varying(c.argument), "what a lanes loop carries must be varying");
        bool positions =
            k > 0 && (l.carried[k - 1].combine == Combine::argmin || l.carried[k - 1].combine == Combine::argmax);
        expect(positions == (c.combine == Combine::position), "argmin and argmax are followed by their position");
        if (c.combine == Combine::argmin || c.combine == Combine::argmax)
          expect(type != Type::b1 && k + 1 < l.carried.size(), name(c.combine), " needs a number and a position");
        else if (positions) typed(c.argument, Type::i64, "position");
        else combinable(c.combine, type);
      } else {
        expect(varying(c.argument) == varying(c.result), "a carried value and its result are both varying or neither");
        expect(!varying(c.argument) || in_lanes, "a varying value is carried outside lanes");
        if (!varying(c.argument)) {
          uniform(c.init, "carry");
          uniform(c.next, "carry");
        }
      }
    }
    if (l.conditional && !varying(l.carried[0].argument))
      for (const Carry& c : l.carried)
        expect(!varying(c.argument), "a loop with a uniform condition carries uniform values only");
    nested_ = outer_nested;
    leave(scope);
    leave(inner);
    for (const Carry& c : l.carried) define(c.result, outer);
  }

  const Kernel& kernel_;
  std::vector<char> visible_, seen_;
  bool nested_ = false;  // in a loop inside a lanes loop
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace tenon::compile
