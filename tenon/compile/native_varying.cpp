// Operations on vectors of lanes.
#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

void Emitter::varying_value(const Instruction& i) {
  Type result = type(i.result);
  int bytes = bytes_of_value(i.result);
  auto binary = [&](auto&& op) {
    for (int p = 0; p < parts(i.result); ++p) {
      Xmm a = get(i.args[0], p, 0, bytes);
      Source b = source(i.args[1], p, 1, bytes);
      Xmm to = target(i.result, p, bytes);
      op(to, a, b);
      put(i.result, p, to, bytes);
    }
  };
  switch (i.op) {
    case Op::position: {
      const Loop& l = kernel_->loops[lanes_loop_];
      get_general(rax, plan_.nodes[static_cast<size_t>(plan_.counter_of[lanes_loop_])]);
      get_general(rcx, l.lower);
      sub(rax, rcx);
      if (copy_) add(rax, copy_ * shape_.lanes);
      if (v4()) vpbroadcastd(reg(0, bytes), eax);
      else {
        vmovd(xmm0, eax);
        vpbroadcastd(reg(0, bytes), xmm0);
      }
      Xmm to = target(i.result, 0, bytes);
      vpaddd(to, reg(0, bytes), ptr[rip + iota(4)]);
      put(i.result, 0, to, bytes);
      return;
    }
    case Op::div:
    case Op::rem:
      if (is_int(result)) {
        lanewise_divide(i);
        return;
      }
      [[fallthrough]];
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::min:
    case Op::max:
      if (is_float(result))
        binary([&](const Xmm& to, const Xmm& a, const Source& b) { vector_float(i.op, result, to, a, b.operand()); });
      else binary([&](const Xmm& to, const Xmm& a, const Source& b) { vector_integer(i.op, result, to, a, b, bytes); });
      return;
    case Op::shift_left:
    case Op::shift_right:
    case Op::shift_sign:
    case Op::mul_low32:
      binary([&](const Xmm& to, const Xmm& a, const Source& b) { vector_integer(i.op, result, to, a, b, bytes); });
      return;
    case Op::fma:
      for (int p = 0; p < parts(i.result); ++p) vector_fma(result, i.result, p, bytes, i.args);
      return;
    case Op::neg:
    case Op::abs:
    case Op::sqrt:
    case Op::floor:
    case Op::ceil:
    case Op::trunc:
    case Op::round_even:
    case Op::round_to:
      for (int p = 0; p < parts(i.result); ++p) {
        Xmm a = get(i.args[0], p, 0, bytes);
        Xmm to = target(i.result, p, bytes);
        vector_unary(i, to, a, bytes);
        put(i.result, p, to, bytes);
      }
      return;
    case Op::scale:
      for (int p = 0; p < parts(i.result); ++p) {
        Xmm x = get(i.args[0], p, 0, bytes), n = get(i.args[1], p, 1, bytes);
        Xmm to = target(i.result, p, bytes);
        vector_scale(result, to, x, n, bytes);
        put(i.result, p, to, bytes);
      }
      return;
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
    case Op::bit_not:
      if (result == Type::b1) logic(i);
      else if (i.op == Op::bit_not) {
        for (int p = 0; p < parts(i.result); ++p) {
          Xmm a = get(i.args[0], p, 0, bytes), to = target(i.result, p, bytes);
          bitwise(Op::bit_xor, width_of(result), to, a,
                  constant(width_of(result) == 4 ? 0xffffffff : ~0ull, width_of(result), 1, bytes, true).operand());
          put(i.result, p, to, bytes);
        }
      } else
        binary(
            [&](const Xmm& to, const Xmm& a, const Source& b) { bitwise(i.op, width_of(result), to, a, b.operand()); });
      return;
    case Op::bits:
      for (int p = 0; p < parts(i.result); ++p) put(i.result, p, get(i.args[0], p, 0, bytes), bytes);
      return;
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
    case Op::ult: compare(i); return;
    case Op::select: choose(i); return;
    case Op::convert: convert_lanes(i); return;
    case Op::pick: pick_lanes(i); return;
    case Op::constant:
    case Op::param:
    case Op::lo:
    case Op::hi:
    case Op::load:
    case Op::store:
    case Op::update:
    case Op::fault:
    case Op::loop: break;
  }
  unreachable();
}

void Emitter::vector_float(Op op, Type type, const Xmm& to, const Xmm& a, const Operand& b) {
  bool single = type == Type::f32;
  switch (op) {
    case Op::add: single ? vaddps(to, a, b) : vaddpd(to, a, b); return;
    case Op::sub: single ? vsubps(to, a, b) : vsubpd(to, a, b); return;
    case Op::mul: single ? vmulps(to, a, b) : vmulpd(to, a, b); return;
    case Op::div: single ? vdivps(to, a, b) : vdivpd(to, a, b); return;
    case Op::min: single ? vminps(to, a, b) : vminpd(to, a, b); return;
    case Op::max: single ? vmaxps(to, a, b) : vmaxpd(to, a, b); return;
    default: unreachable();
  }
}

void Emitter::bitwise(Op op, int width, const Xmm& to, const Xmm& a, const Operand& b) {
  bool narrow = width == 4;
  switch (op) {
    case Op::bit_and: narrow ? vandps(to, a, b) : vandpd(to, a, b); return;
    case Op::bit_or: narrow ? vorps(to, a, b) : vorpd(to, a, b); return;
    case Op::bit_xor: narrow ? vxorps(to, a, b) : vxorpd(to, a, b); return;
    default: unreachable();
  }
}

void Emitter::vector_integer(Op op, Type type, const Xmm& to, const Xmm& a, const Source& from, int bytes) {
  bool narrow = type == Type::i32;
  const Operand& b = from.operand();
  Xmm t2 = reg(2, bytes), t3 = reg(3, bytes);
  auto in_register = [&]() -> Xmm {
    if (!from.memory) return from.reg;
    vmovups(reg(1, bytes), *from.memory);
    return reg(1, bytes);
  };
  switch (op) {
    case Op::add: narrow ? vpaddd(to, a, b) : vpaddq(to, a, b); return;
    case Op::sub: narrow ? vpsubd(to, a, b) : vpsubq(to, a, b); return;
    case Op::mul: {
      if (narrow) {
        vpmulld(to, a, b);
        return;
      }
      if (v4()) {
        vpmullq(to, a, b);
        return;
      }
      Xmm y = in_register();
      vpsrlq(t2, a, 32);
      vpmuludq(t2, t2, y);
      vpsrlq(t3, y, 32);
      vpmuludq(t3, t3, a);
      vpaddq(t2, t2, t3);
      vpsllq(t2, t2, 32);
      vpmuludq(t3, a, y);
      vpaddq(to, t2, t3);
      return;
    }
    case Op::mul_low32: vpmuludq(to, a, b); return;
    case Op::min:
    case Op::max: {
      bool least = op == Op::min;
      if (narrow) least ? vpminsd(to, a, b) : vpmaxsd(to, a, b);
      else if (v4()) least ? vpminsq(to, a, b) : vpmaxsq(to, a, b);
      else {
        Xmm y = in_register();
        vpcmpgtq(t2, a, y);
        if (least) vblendvpd(to, a, y, t2);
        else vblendvpd(to, y, a, t2);
      }
      return;
    }
    case Op::shift_left: narrow ? vpsllvd(to, a, b) : vpsllvq(to, a, b); return;
    case Op::shift_right: narrow ? vpsrlvd(to, a, b) : vpsrlvq(to, a, b); return;
    case Op::shift_sign:
      if (narrow) vpsravd(to, a, b);
      else if (v4()) vpsravq(to, a, b);
      else {
        vxorps(t2, t2, t2);
        vpcmpgtq(t2, t2, a);  // ones where negative: shifted flipped, and flipped back
        vxorps(t3, a, t2);
        vpsrlvq(t3, t3, b);
        vxorps(to, t3, t2);
      }
      return;
    default: unreachable();
  }
}

// a * b + c, in the form in which the register that is overwritten is the one it should be.
void Emitter::vector_fma(Type type, ValueId result, int part, int bytes, const SmallVector<ValueId, 6>& args) {
  bool single = type == Type::f32;
  ValueId va = args[0], vb = args[1];
  if (is_constant(va)) std::swap(va, vb);
  Xmm to = target(result, part, bytes);
  Xmm a = get(va, part, 0, bytes);
  Source b = source(vb, part, 1, bytes), c = source(args[2], part, 2, bytes);
  auto is = [&](const Source& s) { return !s.memory && s.reg.getIdx() == to.getIdx(); };
  auto loaded = [&](const Source& s, ValueId v, int scratch) {
    return s.memory ? get(v, part, scratch, bytes) : s.reg;
  };
  if (a.getIdx() == to.getIdx() || (!is(b) && !is(c))) {
    if (b.memory && !c.memory) {  // a * [b] + c
      if (a.getIdx() != to.getIdx()) vmovaps(to, a);
      single ? vfmadd132ps(to, c.reg, b.operand()) : vfmadd132pd(to, c.reg, b.operand());
    } else {
      Xmm y = loaded(b, vb, 1);
      if (a.getIdx() != to.getIdx()) vmovaps(to, a);
      single ? vfmadd213ps(to, y, c.operand()) : vfmadd213pd(to, y, c.operand());
    }
  } else if (is(c)) {
    if (is(b)) {  // a * x + x
      single ? vfmadd213ps(to, a, to) : vfmadd213pd(to, a, to);
    } else single ? vfmadd231ps(to, a, b.operand()) : vfmadd231pd(to, a, b.operand());
  } else single ? vfmadd213ps(to, a, c.operand()) : vfmadd213pd(to, a, c.operand());
  put(result, part, to, bytes);
}

void Emitter::vector_unary(const Instruction& i, const Xmm& to, const Xmm& a, int bytes) {
  Type type = this->type(i.result);
  bool narrow = width_of(type) == 4;
  uint64_t sign = narrow ? 0x80000000u : 0x8000000000000000ull;
  auto rounded = [&](uint8_t how) {
    if (v4()) narrow ? vrndscaleps(to, a, how) : vrndscalepd(to, a, how);
    else narrow ? vroundps(to, a, how) : vroundpd(to, a, how);
  };
  switch (i.op) {
    case Op::neg:
      if (is_float(type))
        bitwise(Op::bit_xor, width_of(type), to, a, constant(sign, width_of(type), 1, bytes, true).operand());
      else {
        vxorps(reg(1, bytes), reg(1, bytes), reg(1, bytes));
        narrow ? vpsubd(to, reg(1, bytes), a) : vpsubq(to, reg(1, bytes), a);
      }
      return;
    case Op::abs:
      if (is_float(type))
        bitwise(Op::bit_and, width_of(type), to, a, constant(sign - 1, width_of(type), 1, bytes, true).operand());
      else if (narrow) vpabsd(to, a);
      else if (v4()) vpabsq(to, a);
      else {
        Xmm t = reg(1, bytes), u = reg(2, bytes);
        vxorps(t, t, t);
        vpcmpgtq(t, t, a);
        vxorps(u, a, t);
        vpsubq(to, u, t);
      }
      return;
    case Op::sqrt: narrow ? vsqrtps(to, a) : vsqrtpd(to, a); return;
    case Op::round_even: rounded(8); return;
    case Op::floor: rounded(9); return;
    case Op::ceil: rounded(10); return;
    case Op::trunc: rounded(11); return;
    case Op::round_to:
      if (i.element == Element::f16) {
        Xmm packed = reg(1, bytes == 16 ? 16 : bytes / 2);
        vcvtps2ph(packed, a, 0);
        vcvtph2ps(to, packed);
      } else {
        round_bfloat(reg(1, bytes), a, bytes);
        bitwise(Op::bit_and, 4, to, reg(1, bytes), constant(0xffff0000, 4, 2, bytes, true).operand());
      }
      return;
    default: unreachable();
  }
}

// Adds half a unit of the upper half, ties to even; NaN stays NaN. `to` is scratch 1.
void Emitter::round_bfloat(const Xmm& to, const Xmm& x, int bytes) {
  Xmm t = reg(2, bytes);
  vpsrld(to, x, 16);
  bitwise(Op::bit_and, 4, to, to, constant(1, 4, 2, bytes, true).operand());
  vpaddd(to, to, constant(0x7fff, 4, 2, bytes, true).operand());
  vpaddd(to, to, x);
  bitwise(Op::bit_or, 4, t, x, constant(0x400000, 4, 2, bytes, true).operand());
  if (v4()) {
    vcmpps(k1, x, x, 3);
    vblendmps(to | k1, to, t);
  } else {
    // Scratch 0 may hold x itself; it is needed only for the comparison, which comes last.
    vcmpps(reg(0, bytes), x, x, 3);
    vblendvps(to, to, t, reg(0, bytes));
  }
}

void Emitter::vector_scale(Type type, const Xmm& to, const Xmm& x, const Xmm& n, int bytes) {
  if (v4()) {
    type == Type::f32 ? vscalefps(to, x, n) : vscalefpd(to, x, n);
    return;
  }
  Xmm whole = reg(1, bytes), part = reg(2, bytes);
  if (type == Type::f32) {
    vcvttps2dq(whole, n);
    vpsrad(part, whole, 1);
    vpsubd(whole, whole, part);
    for (const Xmm& t : {whole, part}) {
      vpaddd(t, t, constant(127, 4, 3, bytes, true).operand());
      vpslld(t, t, 23);
    }
    vmulps(part, x, part);
    vmulps(to, part, whole);
  } else {
    Xmm whole_half = reg(1, 16), part_half = reg(2, 16);
    vcvttpd2dq(whole_half, n);
    vpsrad(part_half, whole_half, 1);
    vpsubd(whole_half, whole_half, part_half);
    vpmovsxdq(whole, whole_half);
    vpmovsxdq(part, part_half);
    for (const Xmm& t : {whole, part}) {
      vpaddq(t, t, constant(1023, 8, 3, bytes, true).operand());
      vpsllq(t, t, 52);
    }
    vmulpd(part, x, part);
    vmulpd(to, part, whole);
  }
}

void Emitter::pick_lanes(const Instruction& i) {
  const Table& table = kernel_->tables[i.bits];
  Label& at = pool_table(table);
  int width = width_of(table.type), full = vector_bytes();
  if (width == 4) {
    Xmm index = get(i.args[0], 0, 0, shape_.lanes * 4), to = target(i.result, 0, full);
    if (auto held = plan_.held_tables.find(i.bits); held != plan_.held_tables.end())
      vpermps(as_zmm(to), as_zmm(index), Xbyak::Zmm(held->second));
    else if (v4()) vpermps(as_zmm(to), as_zmm(index), ptr[rip + at]);
    else {
      Xbyak::Ymm wide = as_ymm(index);
      vpermps(ymm1, wide, ptr[rip + at]);
      vpermps(ymm2, wide, ptr[rip + at + 32]);
      vpslld(ymm0, wide, 28);
      vblendvps(to, ymm1, ymm2, ymm0);
    }
    put(i.result, 0, to, full);
    return;
  }
  for (int p = 0; p < parts(i.result); ++p) {
    Xmm index = half(i.args[0], p, 0), to = target(i.result, p, full);
    if (v4()) {
      vpmovzxdq(zmm0, index);
      vmovups(zmm1, ptr[rip + at]);
      vpermi2pd(zmm0, zmm1, ptr[rip + at + 64]);
      put(i.result, p, zmm0, 64);
    } else {
      vandps(xmm0, index, ptr[rip + pool(15, 4)]);
      vpcmpeqd(ymm1, ymm1, ymm1);
      lea(rax, ptr[rip + at]);
      vgatherdpd(ymm2, ptr[rax + xmm0 * 8], ymm1);
      put(i.result, p, ymm2, 32);
    }
    (void)to;
  }
}

// There is no vector division of integers: one lane after another, through memory.
void Emitter::lanewise_divide(const Instruction& i) {
  int width = width_of(type(i.result)), bytes = bytes_of_value(i.result);
  for (int p = 0; p < parts(i.result); ++p)
    for (int k = 0; k < 2; ++k)
      vmovups(ptr[rsp + (area_at[k] + p * bytes)], get(i.args[static_cast<size_t>(k)], p, 0, bytes));
  Label top;
  xor_(ecx, ecx);
  L(top);
  if (width == 8) {
    mov(rax, ptr[rsp + rcx * 8 + area_at[0]]);
    mov(rsi, ptr[rsp + rcx * 8 + area_at[1]]);
  } else {
    mov(eax, ptr[rsp + rcx * 4 + area_at[0]]);
    mov(esi, ptr[rsp + rcx * 4 + area_at[1]]);
  }
  divide(width, i.op == Op::rem);
  if (width == 8) mov(ptr[rsp + rcx * 8 + area_at[2]], rax);
  else mov(ptr[rsp + rcx * 4 + area_at[2]], eax);
  inc(ecx);
  cmp(ecx, shape_.lanes);
  jb(top);
  for (int p = 0; p < parts(i.result); ++p) {
    vmovups(reg(0, bytes), ptr[rsp + (area_at[2] + p * bytes)]);
    put(i.result, p, reg(0, bytes), bytes);
  }
}

}  // namespace tenon::compile::native
