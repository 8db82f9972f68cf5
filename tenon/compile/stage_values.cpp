#include "tenon/compile/stage_values.h"

#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/compile/math.h"

namespace tenon::compile {

using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

Type type_of(Compute compute) {
  switch (compute) {
    case Compute::boolean: return Type::b1;
    case Compute::i64: return Type::i64;
    case Compute::f32: return Type::f32;
    case Compute::f64: return Type::f64;
  }
  unreachable();
}

Element element_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return Element::boolean;
    case DType::u8: return Element::u8;
    case DType::i8: return Element::i8;
    case DType::i16: return Element::i16;
    case DType::u16: return Element::u16;
    case DType::i32:
    case DType::u32: return Element::i32;
    case DType::i64:
    case DType::u64: return Element::i64;
    case DType::f16: return Element::f16;
    case DType::bf16: return Element::bf16;
    case DType::f32: return Element::f32;
    case DType::f64: return Element::f64;
    case DType::c32:
    case DType::c64:
    case DType::c128:
    case DType::f8_e4m3fn:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f8_e8m0fnu: break;
  }
  fail_unsupported(text("kernels cannot compute with tensors of ", dtype, "; convert them first"));
}

Val StageValues::param(SymInt value, Param::Kind kind) {
  Param p{value, kind};
  auto found = std::find(out_.params.begin(), out_.params.end(), p);
  auto which = static_cast<uint64_t>(found - out_.params.begin());
  if (found == out_.params.end()) out_.params.push_back(p);
  return b_.param(which);
}

Val StageValues::size(SymInt value) {
  if (value.is_int() && (!options_.numbers_are_params || value.as_int() == 0 || value.as_int() == 1))
    return b_.integer(Type::i64, value.as_int());
  return param(value, Param::Kind::integer);
}

uint32_t StageValues::memory(loop::BufferId buffer, bool written) {
  const loop::Buffer& described = program_.buffers[buffer];
  auto row = memory_.rows.find(described.view_of == loop::no_buffer ? buffer : described.view_of);
  if (row != memory_.rows.end()) return row->second;
  auto found = memory_.ids.find(buffer);
  if (found != memory_.ids.end()) return found->second;
  written = written || std::find(memory_.written.begin(), memory_.written.end(), buffer) != memory_.written.end();
  uint32_t id = b_.buffer(text("b", out_.buffers.size()), element_of(described.dtype), out_.buffers.size(), written);
  out_.buffers.push_back(buffer);
  return memory_.ids[buffer] = id;
}

void StageValues::enter(const LoopGroup& group, Val index, bool is_lane, bool varies) {
  for (size_t i = group.first; i < group.last; ++i) index_[i] = {{}, true, false, false};
  index_[group.last] = {index, true, is_lane, varies};
}
void StageValues::leave(const LoopGroup& group) {
  for (size_t i = group.first; i <= group.last; ++i) index_[i] = {};
}

// Quotients of integers below 2^53 are exact in f64 once truncated.
void StageValues::enter_lanes(std::span<const LoopGroup> groups, Val position) {
  in_lanes_ = true;
  if (groups.empty()) return;
  if (groups.size() == 1) return enter(groups[0], position, true, true);
  Val rest = convert(position, Type::f64);
  for (size_t g = groups.size(); g-- > 1;) {
    Val extent = convert(size(groups[g].extent), Type::f64);
    Val quotient = trunc(rest / extent);
    enter(groups[g], convert(rest - quotient * extent, Type::i64), false, true);
    rest = quotient;
  }
  enter(groups[0], convert(rest, Type::i64), false, true);
}
void StageValues::leave_lanes(std::span<const LoopGroup> groups) {
  for (const LoopGroup& g : groups) leave(g);
  in_lanes_ = false;
}

Place StageValues::place(uint32_t memory, const Linear& at, bool always_over_lanes) {
  Place out;
  out.memory = memory;
  out.base = size(at.base);
  Val offset, stride;
  for (size_t i = 0; i < index_.size(); ++i) {
    if (at.by_loop[i] == SymInt(0) || loops_.extents[i] == SymInt(1) || !index_[i].index.builder) continue;
    if (index_[i].is_lane) stride = size(at.by_loop[i]);
    else if (index_[i].varies) {
      Val part = index_[i].index * size(at.by_loop[i]);
      offset = offset.builder ? offset + part : part;
    } else out.base = out.base + index_[i].index * size(at.by_loop[i]);
  }
  if (offset.builder) {
    expect(!stride.builder, "lanes within lanes");
    out.offset = offset;
  } else if (stride.builder || (always_over_lanes && in_lanes_)) {
    out.over_lanes = true;
    out.stride = stride.builder ? stride : b_.integer(Type::i64, 0);
  }
  return out;
}

/// Certainly one of so many places: the index of a loop that has as many iterations, or a number whose bounds are
/// known.
bool StageValues::is_place(ExprId at, SymInt places) const {
  const ExprNode& n = program_.arena[at];
  if (n.fn == Fn::index && loops_.extents[static_cast<size_t>(n.integer)] == places) return true;
  if (!places.is_int()) return false;
  const std::optional<Bounds> bounds = bounds_of(at);
  return bounds && bounds->least >= 0 && bounds->most < places.as_int();
}

std::optional<StageValues::Bounds> StageValues::bounds_of(ExprId id) const {
  auto known = bounds_.find(id);
  return known != bounds_.end() ? known->second : bounds_[id] = found_bounds(id);
}

std::optional<StageValues::Bounds> StageValues::found_bounds(ExprId id) const {
  constexpr int64_t large = int64_t{1} << 30;
  const ExprNode& n = program_.arena[id];
  auto number = [](SymInt e) -> std::optional<Bounds> {
    if (!e.is_int() || e.as_int() > large || e.as_int() < -large) return std::nullopt;
    return Bounds{e.as_int(), e.as_int()};
  };
  if (n.type != Compute::i64) return std::nullopt;
  if (n.fn == Fn::constant) return number(n.integer);
  if (n.fn == Fn::size) return number(n.size);
  if (n.fn == Fn::index) {
    auto extent = number(loops_.extents[static_cast<size_t>(n.integer)]);
    return extent ? std::optional(Bounds{0, std::max<int64_t>(extent->most - 1, 0)}) : std::nullopt;
  }
  if (n.args.size() != 2) return std::nullopt;
  if (n.fn != Fn::add && n.fn != Fn::sub && n.fn != Fn::mul && n.fn != Fn::min && n.fn != Fn::max) return std::nullopt;
  const std::optional<Bounds> a = bounds_of(n.args[0]), b = a ? bounds_of(n.args[1]) : std::nullopt;
  if (!b) return std::nullopt;
  Bounds out{};
  switch (n.fn) {
    case Fn::add: out = {a->least + b->least, a->most + b->most}; break;
    case Fn::sub: out = {a->least - b->most, a->most - b->least}; break;
    case Fn::min: out = {std::min(a->least, b->least), std::min(a->most, b->most)}; break;
    case Fn::max: out = {std::max(a->least, b->least), std::max(a->most, b->most)}; break;
    default: {
      const auto [least, most] =
          std::minmax({a->least * b->least, a->least * b->most, a->most * b->least, a->most * b->most});
      out = {least, most};
    }
  }
  if (out.least < -large || out.most > large) return std::nullopt;
  return out;
}

Place StageValues::computed_place(uint32_t memory, const loop::Buffer& buffer, std::span<const ExprId> at,
                                  const Val* wanted, Val& inside, bool always_over_lanes) {
  Place out;
  out.memory = memory;
  Val base = b_.integer(Type::i64, 0), offset;
  Linear whole, lane;  // of all dimensions, and of those that vary over lanes
  whole.by_loop.resize(index_.size(), SymInt(0));
  lane.by_loop = whole.by_loop;
  bool linear = true, lane_is_linear = true;
  for (size_t d = 0; d < at.size(); ++d) {
    Val index = value(at[d]);
    if (!is_place(at[d], buffer.sizes[d])) {
      Val fits = b_.emit(Op::ult, Type::b1, {index, size(buffer.sizes[d])});
      inside = inside.builder ? inside & fits : fits;
    }
    Val part = index * size(buffer.strides[d]);
    const bool in_lanes = varies(part);
    if (in_lanes) offset = offset.builder ? offset + part : part;
    else base = base + part;
    auto form = linear || (in_lanes && lane_is_linear) ? linear_form(program_, at[d], index_.size()) : std::nullopt;
    auto add = [&](Linear& to) {
      to.base += form->base * buffer.strides[d];
      for (size_t i = 0; i < index_.size(); ++i) to.by_loop[i] += form->by_loop[i] * buffer.strides[d];
    };
    linear = linear && form.has_value();
    if (linear) add(whole);
    if (!in_lanes) continue;
    lane_is_linear = lane_is_linear && form.has_value();
    if (lane_is_linear) add(lane);
  }
  if (!inside.builder) inside = b_.integer(Type::b1, 1);
  else b_.fault(index_out_of_range, wanted ? *wanted & ~inside : ~inside);
  if (linear) return place(memory, whole, always_over_lanes);
  if (offset.builder && lane_is_linear) {  // one dimension is walked by lanes, the others are computed once for all
    Place walked = place(memory, lane, always_over_lanes);
    walked.base = walked.base + base;
    return walked;
  }
  out.base = base;
  if (offset.builder) out.offset = offset;
  else if (in_lanes_ && always_over_lanes) {
    out.over_lanes = true;
    out.stride = b_.integer(Type::i64, 0);
  }
  return out;
}

Val StageValues::from_memory(Val loaded, DType dtype) {
  if (loaded.type() == Type::i32) loaded = convert(loaded, Type::i64);
  return dtype == DType::u32 ? loaded & b_.integer(Type::i64, 0xffffffff) : loaded;
}
Val StageValues::to_memory(Val value, DType dtype) {
  Type type = computed_in(element_of(dtype));
  return type == Type::i32 ? convert(value, type) : value;
}

Val StageValues::load(ExprId id, const ExprNode& n) {
  const loop::Buffer& buffer = program_.buffers[n.buffer];
  uint32_t from = memory(n.buffer);
  if (auto linear = loops_.loads.find(id); linear != loops_.loads.end())
    return from_memory(b_.load(place(from, linear->second.at, false)), buffer.dtype);
  Type stored = computed_in(element_of(buffer.dtype));
  Val none = stored == Type::b1 ? b_.integer(Type::b1, 0) : b_.constant(stored, 0), wanted, inside;
  if (n.guard != ~0u) wanted = value(n.guard);
  bool lanes = n.guard != ~0u && varies(wanted);
  Place at = computed_place(from, buffer, n.args, wanted.builder ? &wanted : nullptr, inside, lanes);
  bool certain = !wanted.builder;
  for (size_t d = 0; certain && d < n.args.size(); ++d) certain = is_place(n.args[d], buffer.sizes[d]);
  if (certain) return from_memory(b_.load(at), buffer.dtype);
  Val guard = wanted.builder ? wanted & inside : inside;
  bool uniform = !at.offset.builder && !at.over_lanes;
  if (uniform && varies(guard)) {
    at.over_lanes = true;
    at.stride = b_.integer(Type::i64, 0);
  }
  Val loaded = from_memory(b_.load(at, guard, none), buffer.dtype);
  return wanted.builder ? select(wanted, loaded, value(n.otherwise)) : loaded;
}

void StageValues::load_early(ExprId id, std::set<ExprId>& seen) {
  if (known_.count(id) || !seen.insert(id).second) return;
  const ExprNode& n = program_.arena[id];
  if (auto linear = loops_.loads.find(id); linear != loops_.loads.end()) {
    for (size_t i = 0; i < index_.size(); ++i)
      if (linear->second.at.by_loop[i] != SymInt(0) && loops_.extents[i] != SymInt(1) && !index_[i].entered) return;
    auto root = [&](loop::BufferId b) {
      return program_.buffers[b].view_of == loop::no_buffer ? b : program_.buffers[b].view_of;
    };
    if (std::none_of(written_.begin(), written_.end(), [&](loop::BufferId w) { return root(w) == root(n.buffer); }))
      value(id);
    return;
  }
  for (ExprId a : n.args) load_early(a, seen);
  if (n.guard != ~0u) load_early(n.guard, seen);
  if (n.otherwise != ~0u) load_early(n.otherwise, seen);
}

Val StageValues::rounded(Val x, DType dtype) {
  auto masked = [&](int64_t mask) { return x & b_.integer(Type::i64, mask); };
  auto narrow = [&](int bits) {
    Val amount = b_.integer(Type::i64, 64 - bits);
    return binary(Op::shift_sign, binary(Op::shift_left, x, amount), amount);
  };
  switch (dtype) {
    case DType::u8: return masked(0xff);
    case DType::u16: return masked(0xffff);
    case DType::u32: return masked(0xffffffff);
    case DType::i8: return narrow(8);
    case DType::i16: return narrow(16);
    case DType::i32: return narrow(32);
    case DType::f16: return round_to(x, Element::f16);
    case DType::bf16: return round_to(x, Element::bf16);
    default: element_of(dtype); return x;
  }
}

Val StageValues::value(ExprId id) {
  auto found = known_.find(id);
  if (found != known_.end()) return found->second;
  const ExprNode& n = program_.arena[id];
  auto made = [&]() -> Val {
    switch (n.fn) {
      case Fn::constant:
        if (n.type == Compute::boolean) return b_.integer(Type::b1, n.integer != 0);
        return n.type == Compute::i64 ? b_.integer(Type::i64, n.integer) : b_.constant(type_of(n.type), n.real);
      case Fn::size:
        if (n.type == Compute::f64) return bits_as(param(n.size, Param::Kind::real), Type::f64);
        if (n.type == Compute::boolean) return convert(param(n.size, Param::Kind::condition), Type::b1);
        return size(n.size);
      case Fn::index: {
        auto i = static_cast<size_t>(n.integer);
        if (loops_.extents[i] == SymInt(1)) return b_.integer(Type::i64, 0);
        expect(index_[i].entered, "the index of loop ", i, " outside of it");
        return index_[i].index;
      }
      case Fn::accumulated: return accumulated_.at(n.integer);
      case Fn::load: return load(id, n);
      case Fn::round_to: return rounded(value(n.args[0]), n.dtype);
      default: return call(id, n);
    }
  }();
  known_[id] = made;
  return made;
}

void StageValues::store(const loop::Store& s, const std::optional<LinearAccess>& access) {
  const loop::Buffer& buffer = program_.buffers[s.to];
  uint32_t to = memory(s.to, true);
  Val stored = to_memory(value(s.value), buffer.dtype), wanted, guard;
  Place at;
  if (access) at = place(to, access->at, true);
  else {
    if (s.where != ~0u) wanted = value(s.where);
    Val inside;
    at = computed_place(to, buffer, s.at, wanted.builder ? &wanted : nullptr, inside, true);
    guard = wanted.builder ? wanted & inside : inside;
  }
  if (s.mode == loop::Mode::set) {
    if (guard.builder) b_.store(at, stored, guard);
    else b_.store(at, stored);
    return;
  }
  bool boolean = stored.type() == Type::b1, least = s.mode == loop::Mode::min || s.mode == loop::Mode::mul;
  if (buffer.dtype == DType::u32 && (s.mode == loop::Mode::min || s.mode == loop::Mode::max))
    fail_unsupported("kernels cannot take the minimum or maximum in place in tensors of u32; convert them to i64");
  Combine how = boolean                     ? (least ? Combine::all : Combine::any)
                : s.mode == loop::Mode::add ? Combine::add
                : s.mode == loop::Mode::mul ? Combine::mul
                : s.mode == loop::Mode::min ? Combine::min
                                            : Combine::max;
  if (guard.builder) b_.update(how, at, stored, guard);
  else b_.update(how, at, stored);
}

}  // namespace tenon::compile
