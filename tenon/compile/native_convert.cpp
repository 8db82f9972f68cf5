// Conversions between types of lanes.
#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

/// The lanes of a 32-bit value that belong to one register of a 64-bit one, as half a register.
Xmm Emitter::half(ValueId v, int part, int scratch) {
  int bytes = vector_bytes() / 2;
  if (shape_.wide == 1 || !varying(v)) return get(v, 0, scratch, bytes);
  Xmm whole = get(v, 0, scratch, vector_bytes());
  if (part == 0) return reg(whole.getIdx(), bytes);
  if (v4()) vextractf64x4(reg(scratch, 32), as_zmm(whole), 1);
  else vextractf128(reg(scratch, 16), as_ymm(whole), 1);
  return reg(scratch, bytes);
}

/// A 32-bit value from its halves; low may be scratch 0, high scratch 1.
void Emitter::join_halves(ValueId v, const Xmm& low, const Xmm& high) {
  if (shape_.wide == 1) {
    put(v, 0, low, vector_bytes() / 2);
    return;
  }
  Xmm to = target(v, 0, vector_bytes());
  if (v4()) vinsertf64x4(as_zmm(to), as_zmm(low), reg(high.getIdx(), 32), 1);
  else vinsertf128(as_ymm(to), as_ymm(low), reg(high.getIdx(), 16), 1);
  put(v, 0, to, vector_bytes());
}

/// 0 or 1 of the given type, from a boolean.
void Emitter::from_mask(ValueId v, Type to, int part, const Xmm& target, int bytes) {
  int width = width_of(to);
  uint64_t one = to == Type::f32 ? 0x3f800000 : to == Type::f64 ? 0x3ff0000000000000 : 1;
  if (v4()) {
    Opmask mask = mask_part(get_mask(v, 1), width, part, 2);
    if (width == 4) vbroadcastss(target | mask | T_z, ptr[rip + pool(one, 4)]);
    else broadcast_f64(target | mask | T_z, ptr[rip + pool(one, 8)]);
  } else {
    Xmm mask = mask_part(get_mask_lanes(v, 0), width, part, 1);
    vandps(target, reg(mask.getIdx(), bytes), ptr[rip + pool(one, width)]);
  }
}

void Emitter::convert_lanes(const Instruction& i) {
  ValueId x = i.args[0];
  Type from = type(x), to = type(i.result);
  int bytes = bytes_of_value(i.result), full = vector_bytes();
  bool from_wide = width_of(from) == 8, to_wide = width_of(to) == 8;
  if (from == Type::b1) {
    for (int p = 0; p < parts(i.result); ++p) {
      Xmm made = target(i.result, p, bytes);
      from_mask(x, to, p, made, bytes);
      put(i.result, p, made, bytes);
    }
    return;
  }
  if (to == Type::b1) {
    int count = from_wide ? shape_.wide : 1, operand = from_wide ? full : shape_.lanes * 4;
    for (int p = 0; p < count; ++p) {
      Xmm a = get(x, p, 0, operand);
      if (v4()) {
        Opmask made = p == 0 ? k1 : k2;
        vxorps(reg(1, operand), reg(1, operand), reg(1, operand));
        if (from == Type::f32) vcmpps(made, a, reg(1, operand), 4);
        else if (from == Type::f64) vcmppd(made, a, reg(1, operand), 4);
        else if (from == Type::i32) vpcmpd(made, a, reg(1, operand), 4);
        else vpcmpq(made, a, reg(1, operand), 4);
        continue;
      }
      Xmm made = reg(p == 0 ? 2 : 3, operand);
      vxorps(reg(1, operand), reg(1, operand), reg(1, operand));
      if (from == Type::f32) vcmpps(made, a, reg(1, operand), 4);
      else if (from == Type::f64) vcmppd(made, a, reg(1, operand), 4);
      else {
        from == Type::i32 ? vpcmpeqd(made, a, reg(1, operand)) : vpcmpeqq(made, a, reg(1, operand));
        vpcmpeqd(reg(1, operand), reg(1, operand), reg(1, operand));
        vxorps(made, made, reg(1, operand));
      }
    }
    if (v4()) {
      if (count == 2) kunpckbw(k1, k2, k1);
      put_mask(i.result, k1);
    } else {
      merge_masks(reg(2, 32), reg(3, 32), width_of(from), ymm0);
      put(i.result, 0, ymm0, 32);
    }
    return;
  }
  bool needs_dq = (from == Type::i64 && is_float(to)) || (is_float(from) && to == Type::i64);
  if (needs_dq && !v4()) {
    convert_by_lane(i);
    return;
  }
  if (!from_wide && !to_wide) {
    Xmm a = get(x, 0, 0, bytes), made = target(i.result, 0, bytes);
    if (from == Type::i32) vcvtdq2ps(made, a);
    else vcvttps2dq(made, a);
    put(i.result, 0, made, bytes);
    return;
  }
  if (from_wide && to_wide) {
    for (int p = 0; p < parts(i.result); ++p) {
      Xmm a = get(x, p, 0, full), made = target(i.result, p, full);
      if (from == Type::i64) vcvtqq2pd(made, a);
      else vcvttpd2qq(made, a);
      put(i.result, p, made, full);
    }
    return;
  }
  if (to_wide) {
    for (int p = 0; p < parts(i.result); ++p) {
      Xmm a = half(x, p, 0), made = target(i.result, p, full);
      if (from == Type::i32) to == Type::i64 ? vpmovsxdq(made, a) : vcvtdq2pd(made, a);
      else if (to == Type::f64) vcvtps2pd(made, a);
      else vcvttps2qq(made, a);
      put(i.result, p, made, full);
    }
    return;
  }
  // 64 bits to 32: each register gives half of one.
  for (int p = 0; p < shape_.wide; ++p) {
    Xmm made = reg(p, full / 2), a = get(x, p, 2, full);
    if (from == Type::i64 && to == Type::i32) {
      if (v4()) vpmovqd(made, a);
      else {
        vextractf128(xmm3, as_ymm(a), 1);
        vshufps(made, reg(a.getIdx(), 16), reg(3, 16), 0x88);
      }
    } else if (from == Type::i64) vcvtqq2ps(made, a);
    else if (to == Type::f32) vcvtpd2ps(made, a);
    else vcvttpd2dq(made, a);
  }
  join_halves(i.result, reg(0, full / 2), reg(1, full / 2));
}

// AVX2 has no conversion between 64-bit integers and floats.
void Emitter::convert_by_lane(const Instruction& i) {
  ValueId x = i.args[0];
  Type from = type(x), to = type(i.result);
  int from_bytes = width_of(from) == 8 ? vector_bytes() : shape_.lanes * 4, to_bytes = bytes_of_value(i.result);
  for (int p = 0; p < (width_of(from) == 8 ? shape_.wide : 1); ++p)
    vmovups(ptr[rsp + (area_at[0] + p * from_bytes)], get(x, p, 0, from_bytes));
  Label top;
  xor_(ecx, ecx);
  L(top);
  if (from == Type::i64) {
    vxorps(xmm0, xmm0, xmm0);
    if (to == Type::f32) {
      vcvtsi2ss(xmm0, xmm0, qword[rsp + rcx * 8 + area_at[0]]);
      vmovss(ptr[rsp + rcx * 4 + area_at[1]], xmm0);
    } else {
      vcvtsi2sd(xmm0, xmm0, qword[rsp + rcx * 8 + area_at[0]]);
      vmovsd(ptr[rsp + rcx * 8 + area_at[1]], xmm0);
    }
  } else {
    if (from == Type::f32) vcvttss2si(rax, dword[rsp + rcx * 4 + area_at[0]]);
    else vcvttsd2si(rax, qword[rsp + rcx * 8 + area_at[0]]);
    mov(ptr[rsp + rcx * 8 + area_at[1]], rax);
  }
  inc(ecx);
  cmp(ecx, shape_.lanes);
  jb(top);
  for (int p = 0; p < parts(i.result); ++p) {
    vmovups(reg(0, to_bytes), ptr[rsp + (area_at[1] + p * to_bytes)]);
    put(i.result, p, reg(0, to_bytes), to_bytes);
  }
}

}  // namespace tenon::compile::native
