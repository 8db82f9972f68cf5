// Where operands come from and results go to, and the constants behind the code.
#include <algorithm>
#include <cstring>

#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

int Emitter::unit(ValueId v, int part) const {
  if (!varying(v)) return 0;
  const Node& n = *node(v);
  int each = parts(v);
  return n.count > each ? copy_ * each + part : part;
}

Xmm Emitter::get(ValueId v, int part, int scratch, int bytes) {
  Source s = source(v, part, scratch, bytes, false);
  if (!s.memory) return s.reg;
  Xmm to = reg(scratch, bytes);
  vmovups(to, *s.memory);
  return to;
}

Source Emitter::source(ValueId v, int part, int scratch, int bytes, bool may_broadcast) {
  if (auto found = plan_.constants.find(v); found != plan_.constants.end())
    return constant(found->second, width_of(type(v)), scratch, bytes, may_broadcast);
  if (!varying(v) && is_int(type(v))) {
    if (auto found = plan_.broadcast_of.find({lanes_loop_, v});
        lanes_loop_ != no_loop && found != plan_.broadcast_of.end()) {
      const Node& n = plan_.nodes[static_cast<size_t>(found->second)];
      if (n.spilled) return {reg(scratch, bytes), slot(n, 0)};
      return {reg(n.registers[0], bytes), {}};
    }
    get_general(rax, v);
    Xmm to = reg(scratch, bytes);
    bool wide = type(v) == Type::i64;
    if (v4()) wide ? vpbroadcastq(to, rax) : vpbroadcastd(to, eax);
    else {
      vmovq(reg(scratch, 16), rax);
      wide ? vpbroadcastq(to, reg(scratch, 16)) : vpbroadcastd(to, reg(scratch, 16));
    }
    return {to, {}};
  }
  const Node& n = *node(v);
  int k = unit(v, part);
  if (n.spilled) return {reg(scratch, bytes), slot(n, k)};
  return {reg(n.registers[static_cast<size_t>(k)], bytes), {}};
}

Xmm Emitter::target(ValueId v, int part, int bytes) {
  const Node& n = *node(v);
  return n.spilled ? reg(3, bytes) : reg(n.registers[static_cast<size_t>(unit(v, part))], bytes);
}

void Emitter::put(ValueId v, int part, const Xmm& from, int bytes) {
  const Node& n = *node(v);
  int k = unit(v, part);
  if (n.spilled) vmovups(slot(n, k), reg(from.getIdx(), bytes));
  else if (from.getIdx() != n.registers[static_cast<size_t>(k)])
    vmovaps(reg(n.registers[static_cast<size_t>(k)], bytes), reg(from.getIdx(), bytes));
}

void Emitter::move_to(const Node& to, int first, ValueId from) {
  switch (to.bank) {
    case Bank::none: unreachable();
    case Bank::general:
      get_general(rax, from);
      put_general(to, rax);
      return;
    case Bank::mask: {
      Opmask mask = get_mask(from, 1);
      if (to.spilled) kmovw(slot(to, first), mask);
      else kmovw(Opmask(to.registers[static_cast<size_t>(first)]), mask);
      return;
    }
    case Bank::vector: break;
  }
  int each = width_of(type(from)) == 8 ? std::min(to.count, shape_.wide) : 1;
  for (int p = 0; p < each; ++p) {
    Xmm value = type(from) == Type::b1 ? get_mask_lanes(from, 0) : get(from, p, 0, vector_bytes());
    if (to.spilled) vmovups(slot(to, first + p), value);
    else vmovaps(reg(to.registers[static_cast<size_t>(first + p)], vector_bytes()), value);
  }
}

// --- general registers

void Emitter::get_general(const Reg64& to, const Node& n) {
  if (n.spilled) mov(to, slot(n, 0));
  else mov(to, Reg64(n.registers[0]));
}
void Emitter::get_general(const Reg64& to, ValueId v) {
  auto found = plan_.constants.find(v);
  if (found == plan_.constants.end()) {
    get_general(to, *node(v));
    return;
  }
  int64_t number = type(v) == Type::i64 ? static_cast<int64_t>(found->second) : static_cast<int32_t>(found->second);
  if (number == 0) xor_(to.cvt32(), to.cvt32());
  else mov(to, number);
}
void Emitter::put_general(const Node& n, const Reg64& from) {
  if (n.spilled) mov(slot(n, 0), from);
  else if (n.registers[0] != from.getIdx()) mov(Reg64(n.registers[0]), from);
}
void Emitter::put_general(ValueId v, const Reg64& from) { put_general(*node(v), from); }
Reg64 Emitter::general(const Node& n, const Reg64& scratch) {
  if (!n.spilled) return Reg64(n.registers[0]);
  mov(scratch, slot(n, 0));
  return scratch;
}
Reg64 Emitter::general(ValueId v, const Reg64& scratch) {
  if (is_constant(v)) {
    get_general(scratch, v);
    return scratch;
  }
  return general(*node(v), scratch);
}

// --- masks

Opmask Emitter::get_mask(ValueId v, int scratch) {
  Opmask to(scratch);
  if (!varying(v)) {
    get_general(rax, v);
    neg(eax);
    kmovw(to, eax);
    return to;
  }
  const Node& n = *node(v);
  int k = unit(v, 0);
  if (!n.spilled) return Opmask(n.registers[static_cast<size_t>(k)]);
  kmovw(to, slot(n, k));
  return to;
}
void Emitter::put_mask(ValueId v, const Opmask& from) {
  const Node& n = *node(v);
  int k = unit(v, 0);
  if (n.spilled) kmovw(slot(n, k), from);
  else if (n.registers[static_cast<size_t>(k)] != from.getIdx())
    kmovw(Opmask(n.registers[static_cast<size_t>(k)]), from);
}

Xmm Emitter::get_mask_lanes(ValueId v, int scratch) {
  if (varying(v)) return get(v, 0, scratch, 32);
  get_general(rax, v);
  neg(rax);
  vmovq(reg(scratch, 16), rax);
  vpbroadcastq(reg(scratch, 32), reg(scratch, 16));
  return reg(scratch, 32);
}

Opmask Emitter::mask_part(const Opmask& mask, int width, int part, int scratch) {
  if (width != 8 || part == 0) return mask;
  kshiftrw(Opmask(scratch), mask, 8);
  return Opmask(scratch);
}
Xmm Emitter::mask_part(const Xmm& mask, int width, int part, int scratch) {
  int from = mask.getIdx();
  if (width == mask_width()) return reg(from, 32);
  if (width == 8) {
    if (part == 0) vpmovsxdq(reg(scratch, 32), reg(from, 16));
    else {
      vextractf128(reg(scratch, 16), Xbyak::Ymm(from), 1);
      vpmovsxdq(reg(scratch, 32), reg(scratch, 16));
    }
    return reg(scratch, 32);
  }
  expect(scratch != from, "a mask narrowed in place");
  vextractf128(reg(scratch, 16), Xbyak::Ymm(from), 1);
  vshufps(reg(scratch, 16), reg(from, 16), reg(scratch, 16), 0x88);
  return reg(scratch, 16);
}
void Emitter::merge_masks(const Xmm& low, const Xmm& high, int width, const Xmm& to) {
  int l = low.getIdx(), h = high.getIdx(), t = to.getIdx();
  if (width == mask_width()) {
    if (l != t) vmovaps(reg(t, 32), reg(l, 32));
  } else if (width == 8) {
    vshufps(reg(l, 32), reg(l, 32), reg(h, 32), 0x88);
    vpermq(Xbyak::Ymm(t), reg(l, 32), 0xD8);
  } else vpmovsxdq(reg(t, 32), reg(l, 16));
}

void Emitter::general_from_mask(const Reg64& to, ValueId v, bool with_tail) {
  if (v4()) {
    Opmask mask = get_mask(v, 1);
    if (with_tail && tail_) {
      kandw(k1, mask, k7);
      mask = k1;
    }
    kmovw(to.cvt32(), mask);
    if (shape_.lanes < 16) and_(to.cvt32(), (1 << shape_.lanes) - 1);
    return;
  }
  Xmm mask = get_mask_lanes(v, 0);
  if (with_tail && tail_) {
    vandps(ymm0, mask, ptr[rsp + tail_at]);
    mask = ymm0;
  }
  if (mask_width() == 4) vmovmskps(to.cvt32(), reg(mask.getIdx(), 32));
  else vmovmskpd(to.cvt32(), reg(mask.getIdx(), 32));
}

// --- constants

Label& Emitter::pool(uint64_t bits, int width) { return constants_[{bits, width}]; }
Label& Emitter::pool_bytes(const std::vector<uint8_t>& bytes) { return blobs_[bytes]; }
Label& Emitter::pool_table(const Table& table) {
  auto width = static_cast<size_t>(width_of(table.type));
  std::vector<uint8_t> bytes(16 * width);
  for (size_t i = 0; i < 16; ++i) std::memcpy(&bytes[i * width], &table.bits[i], width);
  return pool_bytes(bytes);
}
Label& Emitter::iota(int width) {
  auto w = static_cast<size_t>(width);
  std::vector<uint8_t> bytes(16 * w);
  for (size_t i = 0; i < 16; ++i) bytes[i * w] = static_cast<uint8_t>(i);
  return pool_bytes(bytes);
}

Source Emitter::constant(uint64_t bits, int width, int scratch, int bytes, bool may_broadcast) {
  if (width == 1) width = 4;
  if (auto held = plan_.held.find({bits, width}); held != plan_.held.end()) return {reg(held->second, bytes), {}};
  Label& label = pool(bits, width);
  if (v4() && may_broadcast) return {reg(scratch, bytes), ptr_b[rip + label]};
  if (!v4()) return {reg(scratch, bytes), ptr[rip + label]};
  Xmm to = reg(scratch, bytes);
  if (width == 4) vbroadcastss(to, ptr[rip + label]);
  else if (bytes == 16) vmovddup(to, ptr[rip + label]);
  else broadcast_f64(to, ptr[rip + label]);
  return {to, {}};
}

void Emitter::write_pool() {
  align(64);
  for (auto& [bytes, label] : blobs_) {
    align(64);
    L(label);
    for (uint8_t b : bytes) db(b);
  }
  align(64);
  for (int width : {8, 4})
    for (auto& [key, label] : constants_) {
      if (key.second != width) continue;
      L(label);
      int copies = v4() ? 1 : 32 / width;
      for (int c = 0; c < copies; ++c) db(key.first, static_cast<size_t>(width));
    }
}

}  // namespace tenon::compile::native
