// What a lanes loop carried, brought together: copy j meets copy j + w for w = ways / 2, ..., 1.
#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

void Emitter::reduce(uint32_t loop) {
  const Loop& l = kernel_->loops[loop];
  int copies = shape_.copies;
  for (size_t k = 0; k < l.carried.size(); ++k) {
    const Carry& c = l.carried[k];
    if (c.combine == Combine::position) continue;
    if (c.combine == Combine::argmin || c.combine == Combine::argmax) {
      if (node(c.result) || node(l.carried[k + 1].result)) reduce_positions(c, l.carried[k + 1], loop);
      continue;
    }
    if (!node(c.result)) continue;
    const Node& n = *node(c.argument);
    if (type(c.argument) == Type::b1) {
      reduce_mask(c, n, copies);
      continue;
    }
    int each = n.count / copies, bytes = bytes_of_value(c.argument), width = width_of(type(c.argument));
    auto read = [&](int unit, int scratch) {
      if (!n.spilled) return reg(n.registers[static_cast<size_t>(unit)], bytes);
      vmovups(reg(scratch, bytes), slot(n, unit));
      return reg(scratch, bytes);
    };
    auto write = [&](int unit, const Xmm& from) {
      if (n.spilled) vmovups(slot(n, unit), from);
      else vmovaps(reg(n.registers[static_cast<size_t>(unit)], bytes), from);
    };
    // Whole registers first: the units of a copy are consecutive lanes, so all of them are one row of registers.
    for (int half = copies * each / 2; half; half /= 2)
      for (int u = 0; u < half; ++u) {
        Xmm a = read(u, 0), b = read(u + half, 1);
        combine_vectors(c.combine, type(c.argument), reg(0, bytes), a, b);
        write(u, reg(0, bytes));
      }
    Xmm all = read(0, 0);
    if (all.getIdx() != 0) vmovaps(reg(0, bytes), all);
    for (int size = bytes; size > width; size /= 2) {
      int half = size / 2;
      Xmm low = reg(0, half < 16 ? 16 : half), high = reg(1, half < 16 ? 16 : half);
      if (size == 64) vextractf64x4(high, zmm0, 1);
      else if (size == 32) vextractf128(high, ymm0, 1);
      else if (size == 16) vpshufd(high, xmm0, 0x4E);
      else vpshufd(high, xmm0, 0x55);
      combine_vectors(c.combine, type(c.argument), low, low, high);
    }
    if (is_float(type(c.result))) {
      Xmm to = target(c.result, 0, vector_bytes());
      if (width == 4) vbroadcastss(to, xmm0);
      else broadcast_f64(to, xmm0);
      put(c.result, 0, to, vector_bytes());
    } else {
      if (width == 4) vmovd(eax, xmm0);
      else vmovq(rax, xmm0);
      put_general(c.result, rax);
    }
  }
}

// Scratch 2 and 3 are free; a and b may be scratch 0 and 1, and `to` scratch 0.
void Emitter::combine_vectors(Combine how, Type type, const Xmm& to, const Xmm& a, const Xmm& b) {
  int bytes = a.isZMM() ? 64 : a.isYMM() ? 32 : 16;
  Source from{b, {}};
  if (how == Combine::add || how == Combine::mul) {
    Op op = how == Combine::add ? Op::add : Op::mul;
    if (is_float(type)) vector_float(op, type, to, a, b);
    else vector_integer(op, type, to, a, from, bytes);
    return;
  }
  Op op = how == Combine::min ? Op::min : Op::max;
  if (!is_float(type)) {
    vector_integer(op, type, to, a, from, bytes);
    return;
  }
  // b where it is better, else a; and b where it is NaN.
  bool single = type == Type::f32;
  vector_float(op, type, reg(2, bytes), b, a);
  if (v4()) {
    single ? vcmpps(k1, b, b, 3) : vcmppd(k1, b, b, 3);
    single ? vblendmps(to | k1, reg(2, bytes), b) : vblendmpd(to | k1, reg(2, bytes), b);
  } else {
    single ? vcmpps(reg(3, bytes), b, b, 3) : vcmppd(reg(3, bytes), b, b, 3);
    vblendvps(to, reg(2, bytes), b, reg(3, bytes));
  }
}

void Emitter::reduce_mask(const Carry& c, const Node& n, int copies) {
  bool all = c.combine == Combine::all;
  // Bits of every copy, one after another, in eax.
  for (int u = 0; u < copies; ++u) {
    if (v4()) {
      if (n.spilled) {
        kmovw(k1, slot(n, u));
        kmovw(ecx, k1);
      } else kmovw(ecx, Opmask(n.registers[static_cast<size_t>(u)]));
    } else {
      Xmm m = n.spilled ? reg(0, 32) : reg(n.registers[static_cast<size_t>(u)], 32);
      if (n.spilled) vmovups(m, slot(n, u));
      if (mask_width() == 4) vmovmskps(ecx, m);
      else vmovmskpd(ecx, m);
    }
    if (u == 0) mov(eax, ecx);
    else if (all) and_(eax, ecx);
    else or_(eax, ecx);
  }
  int full = (1 << shape_.lanes) - 1;
  and_(eax, full);
  if (all) {
    cmp(eax, full);
    sete(al);
  } else {
    test(eax, eax);
    setne(al);
  }
  movzx(eax, al);
  put_general(c.result, rax);
}

// Values and positions go to the stack, where pairs are compared one by one: this happens once a loop.
void Emitter::reduce_positions(const Carry& value, const Carry& position, uint32_t loop) {
  const Loop& l = kernel_->loops[loop];
  Type type = this->type(value.argument);
  int width = width_of(type);
  bool least = value.combine == Combine::argmin, wide = width == 8;
  int values = saved_at, positions = saved_at + 512;
  auto spill = [&](const Carry& c, int at) {
    const Node& n = *node(c.argument);
    int bytes = bytes_of_value(c.argument);
    for (int u = 0; u < n.count; ++u) {
      if (n.spilled) {
        vmovups(reg(0, bytes), slot(n, u));
        vmovups(ptr[rsp + (at + u * bytes)], reg(0, bytes));
      } else vmovups(ptr[rsp + (at + u * bytes)], reg(n.registers[static_cast<size_t>(u)], bytes));
    }
  };
  spill(value, values);
  spill(position, positions);
  Label halves, next, keep, take, done;
  mov(edx, l.ways / 2);
  L(halves);
  xor_(ecx, ecx);
  L(next);
  lea(esi, ptr[rcx + rdx]);
  Label compare_positions;
  if (is_float(type)) {
    if (wide) {
      vmovsd(xmm0, ptr[rsp + rcx * 8 + values]);
      vmovsd(xmm1, ptr[rsp + rsi * 8 + values]);
    } else {
      vmovss(xmm0, ptr[rsp + rcx * 4 + values]);
      vmovss(xmm1, ptr[rsp + rsi * 4 + values]);
    }
    Label number;
    wide ? vucomisd(xmm0, xmm0) : vucomiss(xmm0, xmm0);
    jnp(number);
    wide ? vucomisd(xmm1, xmm1) : vucomiss(xmm1, xmm1);
    jp(compare_positions);
    jmp(keep);
    L(number);
    wide ? vucomisd(xmm1, xmm0) : vucomiss(xmm1, xmm0);
    jp(take);  // only the other one can be NaN here
    je(compare_positions);
    if (least) jb(take);
    else ja(take);
    jmp(keep);
  } else {
    if (wide) {
      mov(rax, ptr[rsp + rsi * 8 + values]);
      cmp(rax, ptr[rsp + rcx * 8 + values]);
    } else {
      mov(eax, ptr[rsp + rsi * 4 + values]);
      cmp(eax, ptr[rsp + rcx * 4 + values]);
    }
    je(compare_positions);
    if (least) jl(take);
    else jg(take);
    jmp(keep);
  }
  L(compare_positions);
  mov(rax, ptr[rsp + rsi * 8 + positions]);
  cmp(rax, ptr[rsp + rcx * 8 + positions]);
  jge(keep);
  L(take);
  if (wide) {
    mov(rax, ptr[rsp + rsi * 8 + values]);
    mov(ptr[rsp + rcx * 8 + values], rax);
  } else {
    mov(eax, ptr[rsp + rsi * 4 + values]);
    mov(ptr[rsp + rcx * 4 + values], eax);
  }
  mov(rax, ptr[rsp + rsi * 8 + positions]);
  mov(ptr[rsp + rcx * 8 + positions], rax);
  L(keep);
  inc(ecx);
  cmp(ecx, edx);
  jb(next);
  shr(edx, 1);
  jnz(halves);
  if (node(value.result)) {
    if (is_float(type)) {
      Xmm to = target(value.result, 0, vector_bytes());
      if (wide) broadcast_f64(to, ptr[rsp + values]);
      else vbroadcastss(to, ptr[rsp + values]);
      put(value.result, 0, to, vector_bytes());
    } else {
      mov(rax, ptr[rsp + values]);
      put_general(value.result, rax);
    }
  }
  if (node(position.result)) {
    mov(rax, ptr[rsp + positions]);
    put_general(position.result, rax);
  }
}

}  // namespace tenon::compile::native
