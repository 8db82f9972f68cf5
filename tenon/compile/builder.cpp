#include "tenon/compile/builder.h"

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::compile {

Type Val::type() const { return builder->value(id).type; }

Builder::Builder(std::string name) : scopes_(1) { kernel_.name = std::move(name); }

uint32_t Builder::buffer(std::string name, Element element, uint64_t number, bool written) {
  kernel_.memory.push_back({std::move(name), element, false, written, number, 0});
  return static_cast<uint32_t>(kernel_.memory.size() - 1);
}
uint32_t Builder::scratch(std::string name, Element element, uint64_t count) {
  uint64_t at = (kernel_.scratch_bytes() + 63) / 64 * 64;
  kernel_.memory.push_back({std::move(name), element, true, true, at, count});
  return static_cast<uint32_t>(kernel_.memory.size() - 1);
}

ValueId Builder::define(Type type, bool varying, size_t depth) {
  kernel_.values.push_back({type, varying});
  depth_of_.push_back(depth);
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

Val Builder::from_bits(Type type, Bits bits) { return emit(Op::constant, type, {}, bits); }
Val Builder::constant(Type type, double number) { return from_bits(type, bits_of(type, number)); }
Val Builder::integer(Type type, int64_t number) { return from_bits(type, bits_of_integer(type, number)); }
Val Builder::param(uint64_t which) { return emit(Op::param, Type::i64, {}, which); }
Val Builder::lo() { return emit(Op::lo, Type::i64, {}); }
Val Builder::hi() { return emit(Op::hi, Type::i64, {}); }
Val Builder::position() { return emit(Op::position, Type::i32, {}); }

Val Builder::pick(Type type, std::span<const double> sixteen, Val index) {
  expect(sixteen.size() == 16, "pick from ", sixteen.size(), " constants");
  Table table;
  table.type = type;
  for (size_t i = 0; i < 16; ++i) table.bits[i] = bits_of(type, sixteen[i]);
  auto found = std::find(kernel_.tables.begin(), kernel_.tables.end(), table);
  auto which = static_cast<uint64_t>(found - kernel_.tables.begin());
  if (found == kernel_.tables.end()) kernel_.tables.push_back(table);
  return emit(Op::pick, type, {index}, which);
}

Val Builder::typed(Val v, Type type) { return v.builder ? v : constant(type, v.literal); }

const Bits* Builder::constant_bits(Val v) const {
  auto found = constants_.find(v.id);
  return found == constants_.end() ? nullptr : &found->second;
}

// Identities that hold for every bit pattern; index arithmetic is full of them.
Val Builder::simplified(Op op, Type type, const Vals& args) {
  if (op == Op::select) {
    if (const Bits* condition = constant_bits(args[0])) return *condition ? args[1] : args[2];
    if (args[1].id == args[2].id) return args[1];
  }
  if (!is_int(type) || args.size() != 2) return {};
  const Bits *a = constant_bits(args[0]), *b = constant_bits(args[1]);
  switch (op) {
    case Op::add:
    case Op::bit_or:
    case Op::bit_xor:
      if (a && *a == 0) return args[1];
      [[fallthrough]];
    case Op::sub:
    case Op::shift_left:
    case Op::shift_right:
    case Op::shift_sign:
      if (b && *b == 0) return args[0];
      return {};
    case Op::mul:
      if ((a && *a == 1) || (b && *b == 0)) return args[1];
      if ((b && *b == 1) || (a && *a == 0)) return args[0];
      return {};
    default: return {};
  }
}

Val Builder::emit(Op op, Type type, Vals args, uint64_t bits, Element element) {
  const Val* first = nullptr;
  for (const Val& v : args)
    if (v.builder && (op != Op::select || &v != args.data())) {
      first = &v;
      break;
    }
  Type operand = first ? first->type() : type;
  for (Val& v : args) v = typed(v, operand);
  Instruction i;
  i.op = op;
  i.bits = bits;
  i.element = element;
  for (Val v : args) i.args.push_back(v.id);

  bool all_constant = !args.empty() && op != Op::pick;
  std::vector<Bits> known;
  for (Val v : args) {
    const Bits* c = constant_bits(v);
    all_constant = all_constant && c;
    if (all_constant) known.push_back(*c);
  }
  if (all_constant) return from_bits(type, evaluate(i, type, args[0].type(), known));
  if (Val same = simplified(op, type, args); same.builder) return same;

  size_t depth = op == Op::position ? lanes_depth_ : 0;
  bool varying = op == Op::position;
  Key key{op, type, bits, element, {}};
  for (ValueId v : i.args) {
    depth = std::max(depth, depth_of_[v]);
    varying = varying || kernel_.values[v].varying;
    std::get<4>(key).push_back(v);
  }
  auto [found, is_new] = scopes_[depth].known.emplace(key, no_value);
  if (is_new) {
    i.result = found->second = define(type, varying, depth);
    if (op == Op::constant) constants_[i.result] = bits;
    scopes_[depth].body.push_back(i);
  }
  return {this, found->second};
}

void Builder::address(Instruction& i, const Place& place) {
  i.memory = place.memory;
  i.args.push_back(typed(place.base, Type::i64).id);
  if (place.offset.builder) {
    i.access = Access::gathered;
    i.args.push_back(place.offset.id);
  } else if (place.over_lanes) {
    Val stride = typed(place.stride, Type::i64);
    const Bits* c = constant_bits(stride);
    i.access = c && *c == 1 ? Access::contiguous : Access::strided;
    if (i.access == Access::strided) i.args.push_back(stride.id);
  }
}

Val Builder::load(Place place) {
  Instruction i;
  i.op = Op::load;
  address(i, place);
  Type type = computed_in(kernel_.memory[place.memory].element);
  i.result = define(type, i.access != Access::uniform, scopes_.size() - 1);
  scopes_.back().body.push_back(i);
  return {this, i.result};
}
Val Builder::load(Place place, Val guard, Val otherwise) {
  Val plain = load(place);
  Instruction& i = scopes_.back().body.back();
  i.guarded = true;
  Instruction moved = i;  // the constant may be placed behind it
  scopes_.back().body.pop_back();
  moved.args.push_back(guard.id);
  moved.args.push_back(typed(otherwise, plain.type()).id);
  scopes_.back().body.push_back(moved);
  return plain;
}
void Builder::write(Op op, Combine combine, const Place& place, Val value, const Val* guard) {
  Instruction i;
  i.op = op;
  i.combine = combine;
  address(i, place);
  i.args.push_back(typed(value, computed_in(kernel_.memory[place.memory].element)).id);
  if (guard) {
    i.guarded = true;
    i.args.push_back(guard->id);
  }
  scopes_.back().body.push_back(i);
}
void Builder::store(Place place, Val value) { write(Op::store, Combine::add, place, value, nullptr); }
void Builder::store(Place place, Val value, Val guard) { write(Op::store, Combine::add, place, value, &guard); }
void Builder::update(Combine combine, Place place, Val value) { write(Op::update, combine, place, value, nullptr); }
void Builder::update(Combine combine, Place place, Val value, Val guard) {
  write(Op::update, combine, place, value, &guard);
}
void Builder::fault(int status, Val where) {
  Instruction i;
  i.op = Op::fault;
  i.bits = static_cast<uint64_t>(status);
  i.args.push_back(where.id);
  scopes_.back().body.push_back(i);
}

Vals Builder::make_loop(Loop l, std::vector<Carried> carried, const LoopBody& body) {
  bool in_lanes = l.lanes || lanes_depth_ != 0;
  scopes_.emplace_back();
  size_t depth = scopes_.size() - 1;
  if (l.lanes) lanes_depth_ = depth;
  l.index = define(Type::i64, l.lanes, depth);
  Vals arguments;
  for (const Carried& c : carried) {
    Carry carry;
    carry.init = c.init.id;
    carry.combine = c.combine;
    carry.argument = define(c.init.type(), in_lanes && !c.uniform, depth);
    l.carried.push_back(carry);
    arguments.push_back({this, carry.argument});
  }
  Vals next = body({this, l.index}, arguments);
  expect(next.size() == carried.size(), "a loop carries ", carried.size(), " values, its body hands on ", next.size());
  for (size_t k = 0; k < next.size(); ++k) l.carried[k].next = typed(next[k], carried[k].init.type()).id;
  if (l.lanes) lanes_depth_ = 0;
  l.body = std::move(scopes_.back().body);
  scopes_.pop_back();
  Vals results;
  for (size_t k = 0; k < carried.size(); ++k) {
    bool varying = kernel_.values[l.carried[k].argument].varying && !l.lanes;
    l.carried[k].result = define(carried[k].init.type(), varying, scopes_.size() - 1);
    results.push_back({this, l.carried[k].result});
  }
  Instruction i;
  i.op = Op::loop;
  i.loop = static_cast<uint32_t>(kernel_.loops.size());
  kernel_.loops.push_back(std::move(l));
  scopes_.back().body.push_back(i);
  return results;
}
Vals Builder::loop(Val lower, Val upper, std::vector<Carried> carried, const LoopBody& body) {
  Loop l;
  l.lower = typed(lower, Type::i64).id;
  l.upper = typed(upper, Type::i64).id;
  return make_loop(std::move(l), std::move(carried), body);
}
Vals Builder::loop_while(Val lower, Val upper, std::vector<Carried> carried, const LoopBody& body) {
  Loop l;
  l.lower = typed(lower, Type::i64).id;
  l.upper = typed(upper, Type::i64).id;
  l.conditional = true;
  return make_loop(std::move(l), std::move(carried), body);
}
Vals Builder::lanes(Val lower, Val upper, int ways, std::vector<Carried> carried, const LoopBody& body) {
  Loop l;
  l.lower = typed(lower, Type::i64).id;
  l.upper = typed(upper, Type::i64).id;
  l.lanes = true;
  l.ways = ways;
  return make_loop(std::move(l), std::move(carried), body);
}

namespace {

// Copies what is used into a kernel whose values and loops are numbered in the order of its text.
class Sweeper {
 public:
  explicit Sweeper(const Kernel& from) : from_(from), live_(from.values.size()), kept_(from.loops.size()) {
    used_tables_.resize(from.tables.size());
    mark(from.body);
  }
  Kernel run() {
    to_.name = from_.name;
    to_.memory = from_.memory;
    table_number_.resize(from_.tables.size());
    for (size_t i = 0; i < from_.tables.size(); ++i) {
      table_number_[i] = to_.tables.size();
      if (used_tables_[i]) to_.tables.push_back(from_.tables[i]);
    }
    number_.assign(from_.values.size(), no_value);
    to_.body = copy(from_.body);
    return std::move(to_);
  }

 private:
  static bool has_effect(const Instruction& i) { return i.op == Op::store || i.op == Op::update || i.op == Op::fault; }
  bool acts(const std::vector<Instruction>& body) const {
    return std::any_of(body.begin(), body.end(), [&](const Instruction& i) {
      return has_effect(i) || (i.op == Op::loop && acts(from_.loops[i.loop].body));
    });
  }
  void mark(const std::vector<Instruction>& body) {
    for (size_t n = body.size(); n-- > 0;) {
      const Instruction& i = body[n];
      if (i.op == Op::loop) {
        const Loop& l = from_.loops[i.loop];
        bool needed = acts(l.body);
        for (const Carry& c : l.carried) needed = needed || live_[c.result];
        if (!needed) continue;
        kept_[i.loop] = true;
        live_[l.lower] = live_[l.upper] = true;
        for (const Carry& c : l.carried) live_[c.next] = live_[c.init] = true;
        mark(l.body);
      } else if (has_effect(i) || live_[i.result]) {
        for (ValueId v : i.args) live_[v] = true;
        if (i.op == Op::pick) used_tables_[i.bits] = true;
      }
    }
  }
  ValueId define(ValueId v) {
    number_[v] = static_cast<ValueId>(to_.values.size());
    to_.values.push_back(from_.values[v]);
    return number_[v];
  }
  std::vector<Instruction> copy(const std::vector<Instruction>& body) {
    std::vector<Instruction> out;
    for (Instruction i : body) {
      if (i.op == Op::loop) {
        if (!kept_[i.loop]) continue;
        Loop l = from_.loops[i.loop];
        l.lower = number_[l.lower];
        l.upper = number_[l.upper];
        for (Carry& c : l.carried) c.init = number_[c.init];
        l.index = define(l.index);
        for (Carry& c : l.carried) c.argument = define(c.argument);
        l.body = copy(l.body);
        for (Carry& c : l.carried) c.next = number_[c.next];
        for (Carry& c : l.carried) c.result = define(c.result);
        i.loop = static_cast<uint32_t>(to_.loops.size());
        to_.loops.push_back(std::move(l));
      } else {
        if (!has_effect(i) && !live_[i.result]) continue;
        for (ValueId& v : i.args) v = number_[v];
        if (i.op == Op::pick) i.bits = table_number_[i.bits];
        if (i.result != no_value) i.result = define(i.result);
      }
      out.push_back(i);
    }
    return out;
  }

  const Kernel& from_;
  Kernel to_;
  std::vector<char> live_, kept_, used_tables_;
  std::vector<ValueId> number_;
  std::vector<size_t> table_number_;
};

Builder* common(Val a, Val b) {
  Builder* builder = a.builder ? a.builder : b.builder;
  expect(builder, "a formula of numbers alone");
  return builder;
}

}  // namespace

Kernel Builder::finish() {
  expect(scopes_.size() == 1, "kernel ", kernel_.name, " is finished inside a loop");
  kernel_.body = scopes_[0].body;
  Kernel out = Sweeper(kernel_).run();
  verify(out);
  return out;
}

Val unary(Op op, Val x) { return x.builder->emit(op, x.type(), {x}); }
Val binary(Op op, Val a, Val b) { return common(a, b)->emit(op, a.builder ? a.type() : b.type(), {a, b}); }
static Val compared(Op op, Val a, Val b) { return common(a, b)->emit(op, Type::b1, {a, b}); }
Val operator+(Val a, Val b) { return binary(Op::add, a, b); }
Val operator-(Val a, Val b) { return binary(Op::sub, a, b); }
Val operator*(Val a, Val b) { return binary(Op::mul, a, b); }
Val operator/(Val a, Val b) { return binary(Op::div, a, b); }
Val operator-(Val a) { return unary(Op::neg, a); }
Val operator&(Val a, Val b) { return binary(Op::bit_and, a, b); }
Val operator|(Val a, Val b) { return binary(Op::bit_or, a, b); }
Val operator^(Val a, Val b) { return binary(Op::bit_xor, a, b); }
Val operator~(Val a) { return unary(Op::bit_not, a); }
Val operator<<(Val a, int amount) { return binary(Op::shift_left, a, amount); }
Val operator>>(Val a, int amount) { return binary(Op::shift_right, a, amount); }
Val operator<(Val a, Val b) { return compared(Op::lt, a, b); }
Val operator<=(Val a, Val b) { return compared(Op::le, a, b); }
Val operator>(Val a, Val b) { return compared(Op::gt, a, b); }
Val operator>=(Val a, Val b) { return compared(Op::ge, a, b); }
Val operator==(Val a, Val b) { return compared(Op::eq, a, b); }
Val operator!=(Val a, Val b) { return compared(Op::ne, a, b); }
Val fma(Val a, Val b, Val c) {
  const Val& known = a.builder ? a : b.builder ? b : c;
  return known.builder->emit(Op::fma, known.type(), {a, b, c});
}
Val select(Val condition, Val then, Val otherwise) {
  Type type = then.builder ? then.type() : otherwise.builder ? otherwise.type() : Type::b1;
  expect(then.builder || otherwise.builder, "select between two plain numbers; give one a type");
  if (!then.builder) then = condition.builder->constant(type, then.literal);
  if (!otherwise.builder) otherwise = condition.builder->constant(type, otherwise.literal);
  return condition.builder->emit(Op::select, type, {condition, then, otherwise});
}
Val convert(Val x, Type type) { return x.type() == type ? x : x.builder->emit(Op::convert, type, {x}); }
Val bits_as(Val x, Type type) { return x.builder->emit(Op::bits, type, {x}); }

}  // namespace tenon::compile
