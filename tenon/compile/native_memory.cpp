// Loads and stores. What no instruction does at once (strides, scatters, gathers of narrow elements, narrow elements
// under a mask on AVX2) goes lane by lane through an area of the stack, touching only lanes whose bit is set.
#include <bit>

#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

static size_t after_place(const Instruction& i) {
  return i.access == Access::strided || i.access == Access::gathered ? 2 : 1;
}

Emitter::Where Emitter::lanes_address(const Instruction& i) {
  int size = bytes_of(kernel_->memory[i.memory].element);
  Where w{rcx, rsi, true, size, 0};
  w.pointer = general(plan_.nodes[static_cast<size_t>(plan_.pointer_of[i.memory])], rcx);
  bool over_lanes = i.access == Access::contiguous;
  if (over_lanes) w.offset = copy_ * shape_.lanes * size;
  auto constant = plan_.constants.find(i.args[0]);
  if (constant != plan_.constants.end() && std::abs(static_cast<int64_t>(constant->second)) < (1 << 24)) {
    w.offset += static_cast<int>(constant->second) * size;
    if (over_lanes) w.index = general(plan_.nodes[static_cast<size_t>(plan_.counter_of[lanes_loop_])], rsi);
    else w.indexed = false;
    return w;
  }
  if (!over_lanes) {
    w.index = general(i.args[0], rsi);
    return w;
  }
  const Node& counter = plan_.nodes[static_cast<size_t>(plan_.counter_of[lanes_loop_])];
  get_general(rsi, i.args[0]);
  if (counter.spilled) add(rsi, ptr[rsp + counter.slot]);
  else add(rsi, Reg64(counter.registers[0]));
  return w;
}
Address Emitter::at(const Where& w, int more_bytes) {
  int offset = w.offset + more_bytes;
  return w.indexed ? ptr[w.pointer + w.index * w.scale + offset] : ptr[w.pointer + offset];
}
Emitter::Places Emitter::area(int which) {
  return [this, which](int more) { return ptr[rsp + (area_at[which] + more)]; };
}

void Emitter::lane_address(const Instruction& i) {
  int size = bytes_of(kernel_->memory[i.memory].element);
  const Node* counter =
      lanes_loop_ == no_loop ? nullptr : &plan_.nodes[static_cast<size_t>(plan_.counter_of[lanes_loop_])];
  switch (i.access) {
    case Access::uniform: xor_(eax, eax); break;
    case Access::contiguous:
    case Access::strided:
      get_general(rax, *counter);
      lea(rax, ptr[rax + rcx + copy_ * shape_.lanes]);
      if (i.access == Access::strided) imul(rax, general(i.args[1], rsi));
      break;
    case Access::gathered:
      if (type(i.args[1]) == Type::i32) movsxd(rax, dword[rsp + rcx * 4 + area_at[1]]);
      else mov(rax, ptr[rsp + rcx * 8 + area_at[1]]);
      break;
  }
  add(rax, general(i.args[0], rsi));
  if (size > 1) shl(rax, std::countr_zero(static_cast<unsigned>(size)));
  add(rax, general(plan_.nodes[static_cast<size_t>(plan_.pointer_of[i.memory])], rsi));
}

void Emitter::spill_offsets(const Instruction& i) {
  if (i.access != Access::gathered) return;
  ValueId v = i.args[1];
  int bytes = bytes_of_value(v);
  for (int p = 0; p < parts(v); ++p) vmovups(ptr[rsp + (area_at[1] + p * bytes)], get(v, p, 0, bytes));
}

void Emitter::lane_mask_bits(ValueId guard) {
  if (guard != no_value) {
    if (varying(guard)) {
      general_from_mask(rdx, guard, true);
      return;
    }
    get_general(rdx, guard);
    neg(edx);
    if (lanes_loop_ == no_loop) {
      and_(edx, 1);
      return;
    }
  } else mov(edx, -1);
  if (tail_ && v4()) {
    kmovw(eax, k7);
    and_(edx, eax);
  } else if (tail_) {
    vmovups(ymm0, ptr[rsp + tail_at]);
    if (mask_width() == 4) vmovmskps(eax, ymm0);
    else vmovmskpd(eax, ymm0);
    and_(edx, eax);
  } else and_(edx, (1 << shape_.lanes) - 1);
}

void Emitter::for_each_lane(const std::function<void()>& lane) {
  Label top, end;
  L(top);
  test(edx, edx);
  jz(end, T_NEAR);
  tzcnt(ecx, edx);
  blsr(edx, edx);
  lane();
  jmp(top, T_NEAR);
  L(end);
}

void Emitter::scalar_load(Element element, const Reg64& to, const Address& from) {
  // The size of the access is the instruction's, not the address's.
  switch (element) {
    case Element::boolean:
    case Element::u8: movzx(to.cvt32(), byte[from.getRegExp()]); return;
    case Element::i8: movsx(to.cvt32(), byte[from.getRegExp()]); return;
    case Element::i16: movsx(to.cvt32(), word[from.getRegExp()]); return;
    case Element::u16:
    case Element::f16:
    case Element::bf16: movzx(to.cvt32(), word[from.getRegExp()]); return;
    case Element::i32:
    case Element::f32: mov(to.cvt32(), from); return;
    case Element::i64:
    case Element::f64: mov(to, from); return;
  }
}
void Emitter::scalar_store(int bytes, const Address& to, const Reg64& from) {
  switch (bytes) {
    case 1: mov(to, from.cvt8()); return;
    case 2: mov(to, from.cvt16()); return;
    case 4: mov(to, from.cvt32()); return;
    case 8: mov(to, from); return;
  }
  unreachable();
}

// --- uniform

void Emitter::uniform_load(const Instruction& i) {
  Element element = kernel_->memory[i.memory].element;
  Type result = type(i.result);
  Label no, end;
  if (i.guarded) {
    get_general(rax, i.args[1]);
    test(eax, eax);
    jz(no, T_NEAR);
  }
  Where w = lanes_address(i);
  int bytes = vector_bytes();
  if (is_float(result)) {
    Xmm to = reg(3, bytes);
    if (element == Element::f32) vbroadcastss(to, at(w, 0));
    else if (element == Element::f64) broadcast_f64(to, at(w, 0));
    else {
      scalar_load(element, rax, at(w, 0));
      if (element == Element::bf16) shl(eax, 16);
      vmovd(xmm3, eax);
      if (element == Element::f16) vcvtph2ps(xmm3, xmm3);
      vbroadcastss(to, xmm3);
    }
  } else {
    scalar_load(element, rax, at(w, 0));
    if (element == Element::boolean) {
      test(eax, eax);
      setne(al);
      movzx(eax, al);
    }
  }
  if (i.guarded) {
    jmp(end, T_NEAR);
    L(no);
    if (is_float(result)) vmovaps(reg(3, bytes), get(i.args[2], 0, 0, bytes));
    else get_general(rax, i.args[2]);
    L(end);
  }
  if (is_float(result)) put(i.result, 0, reg(3, bytes), bytes);
  else put_general(i.result, rax);
}

void Emitter::uniform_store(const Instruction& i) {
  Element element = kernel_->memory[i.memory].element;
  Label end;
  if (i.guarded) {
    get_general(rax, i.args[2]);
    test(eax, eax);
    jz(end, T_NEAR);
  }
  ValueId v = i.args[1];
  if (is_float(type(v))) {
    Xmm x = get(v, 0, 0, 16);
    if (element == Element::f16) {
      vcvtps2ph(xmm1, x, 0);
      vmovd(eax, xmm1);
    } else if (element == Element::bf16) {
      round_bfloat(xmm1, x, 16);
      vmovd(eax, xmm1);
      shr(eax, 16);
    } else if (element == Element::f32) vmovd(eax, x);
    else vmovq(rax, x);
  } else get_general(rax, v);
  Where w = lanes_address(i);
  scalar_store(bytes_of(element), at(w, 0), rax);
  L(end);
}

// --- over lanes

void Emitter::load_lanes_from(ValueId v, Element element, const Places& at, const Opmask* mask, const Xmm* mask_lanes) {
  int bytes = shape_.lanes * 4;
  auto masked = [&](const Xmm& to, int width, int part) {
    return mask ? Xmm(to) | mask_part(*mask, width, part, 2) | T_z : Xmm(to);
  };
  switch (element) {
    case Element::f32:
    case Element::i32: {
      Xmm to = target(v, 0, bytes);
      if (mask_lanes) vmaskmovps(to, reg(mask_part(*mask_lanes, 4, 0, 2).getIdx(), bytes), at(0));
      else vmovups(masked(to, 4, 0), at(0));
      put(v, 0, to, bytes);
      return;
    }
    case Element::f64:
    case Element::i64:
      for (int p = 0; p < shape_.wide; ++p) {
        Xmm to = target(v, p, vector_bytes());
        if (mask_lanes) vmaskmovpd(to, mask_part(*mask_lanes, 8, p, 2), at(p * vector_bytes()));
        else vmovupd(masked(to, 8, p), at(p * vector_bytes()));
        put(v, p, to, vector_bytes());
      }
      return;
    case Element::boolean: {
      Xmm t = reg(0, bytes), z = reg(1, bytes);
      vpmovzxbd(masked(t, 4, 0), at(0));
      if (v4()) {
        vptestmd(k1, t, t);
        put_mask(v, k1);
        return;
      }
      vxorps(z, z, z);
      vpcmpgtd(reg(2, bytes), t, z);
      merge_masks(reg(2, 32), reg(2, 32), 4, ymm0);
      put(v, 0, ymm0, 32);
      return;
    }
    case Element::i8:
    case Element::u8:
    case Element::i16:
    case Element::u16:
    case Element::f16:
    case Element::bf16: break;
  }
  Xmm to = reg(0, bytes), made = masked(to, 4, 0);
  if (element == Element::i8) vpmovsxbd(made, at(0));
  else if (element == Element::u8) vpmovzxbd(made, at(0));
  else if (element == Element::i16) vpmovsxwd(made, at(0));
  else if (element == Element::f16) vcvtph2ps(made, at(0));
  else vpmovzxwd(made, at(0));
  if (element == Element::bf16) vpslld(to, to, 16);
  put(v, 0, to, bytes);
}

void Emitter::store_lanes_to(ValueId v, Element element, const Places& at, const Opmask* mask, const Xmm* mask_lanes) {
  int bytes = shape_.lanes * 4;
  auto masked = [&](Address to, int width, int part) { return mask ? to | mask_part(*mask, width, part, 2) : to; };
  Xmm narrow = reg(1, bytes);
  switch (element) {
    case Element::f32:
    case Element::i32: {
      Xmm x = get(v, 0, 0, bytes);
      if (mask_lanes) vmaskmovps(at(0), reg(mask_part(*mask_lanes, 4, 0, 2).getIdx(), bytes), x);
      else vmovups(masked(at(0), 4, 0), x);
      return;
    }
    case Element::f64:
    case Element::i64:
      for (int p = 0; p < shape_.wide; ++p) {
        Xmm x = get(v, p, 0, vector_bytes());
        if (mask_lanes) vmaskmovpd(at(p * vector_bytes()), mask_part(*mask_lanes, 8, p, 2), x);
        else vmovupd(masked(at(p * vector_bytes()), 8, p), x);
      }
      return;
    case Element::f16: {
      Xmm x = get(v, 0, 0, bytes);
      vcvtps2ph(masked(at(0), 4, 0), x, 0);
      return;
    }
    case Element::bf16: {
      Xmm x = get(v, 0, 0, bytes);
      if (mask && mask->getIdx() == 1) kmovw(k2, *mask);  // rounding needs k1
      round_bfloat(narrow, x, bytes);
      if (mask && mask->getIdx() == 1) kmovw(k1, k2);
      vpsrld(narrow, narrow, 16);
      break;
    }
    case Element::boolean:
      if (varying(v)) {
        if (v4()) {
          Opmask value = get_mask(v, 2);
          vbroadcastss(narrow | value | T_z, ptr[rip + pool(1, 4)]);
        } else {
          Xmm value = mask_part(get_mask_lanes(v, 0), 4, 0, 2);
          vandps(narrow, reg(value.getIdx(), bytes), ptr[rip + pool(1, 4)]);
        }
      } else {
        get_general(rax, v);
        vmovd(reg(1, 16), eax);
        vpbroadcastd(narrow, reg(1, 16));
      }
      break;
    case Element::i8:
    case Element::u8:
    case Element::i16:
    case Element::u16: narrow = get(v, 0, 0, bytes); break;
  }
  bool byte = bytes_of(element) == 1;
  if (v4()) {
    byte ? vpmovdb(masked(at(0), 4, 0), narrow) : vpmovdw(masked(at(0), 4, 0), narrow);
    return;
  }
  vandps(reg(1, bytes), narrow, ptr[rip + pool(byte ? 0xff : 0xffff, 4)]);
  if (bytes == 32) {
    vextractf128(xmm2, ymm1, 1);
    vpackusdw(xmm1, xmm1, xmm2);
  } else vpackusdw(xmm1, xmm1, xmm1);
  if (byte) vpackuswb(xmm1, xmm1, xmm1);
  int stored = shape_.lanes * bytes_of(element);
  if (stored == 16) vmovups(at(0), xmm1);
  else if (stored == 8) vmovq(at(0), xmm1);
  else vmovd(at(0), xmm1);
}

void Emitter::lanes_load(const Instruction& i) {
  Element element = kernel_->memory[i.memory].element;
  size_t extra = after_place(i);
  ValueId guard = i.guarded ? i.args[extra] : no_value;
  bool masked = tail_ || i.guarded,
       direct = i.access == Access::contiguous && (v4() || !masked || bytes_of(element) >= 4);
  if (direct) {
    Opmask mask = k7;
    Xmm mask_lanes = ymm3;
    if (v4() && i.guarded) {
      mask = get_mask(guard, 1);
      if (tail_) {
        kandw(k1, mask, k7);
        mask = k1;
      }
    } else if (masked && !v4()) {
      if (i.guarded) vmovaps(ymm3, get_mask_lanes(guard, 3));
      if (tail_ && i.guarded) vandps(ymm3, ymm3, ptr[rsp + tail_at]);
      else if (tail_) vmovups(ymm3, ptr[rsp + tail_at]);
    }
    Where w = lanes_address(i);
    // A spilled result of several registers is written through scratch 3, where the mask is.
    if (!v4() && masked && node(i.result)->spilled) {
      for (int p = 0; p < (bytes_of(element) == 8 ? shape_.wide : 1); ++p) {
        int width = bytes_of(element), bytes = width == 8 ? 32 : shape_.lanes * 4;
        Xmm lanes_of = reg(mask_part(mask_lanes, width, p, 2).getIdx(), bytes);
        width == 8 ? vmaskmovpd(reg(0, bytes), lanes_of, at(w, p * 32)) : vmaskmovps(reg(0, bytes), lanes_of, at(w, 0));
        put(i.result, p, reg(0, bytes), bytes);
      }
    } else
      load_lanes_from(
          i.result, element, [&](int more) { return at(w, more); }, v4() && masked ? &mask : nullptr,
          !v4() && masked ? &mask_lanes : nullptr);
  } else if (i.access == Access::gathered && bytes_of(element) >= 4) {
    gather(i, guard);
  } else {
    spill_offsets(i);
    lane_mask_bits(guard);
    int size = bytes_of(element);
    for_each_lane([&] {
      lane_address(i);
      if (size < 4) scalar_load(size == 1 ? Element::u8 : Element::u16, rsi, ptr[rax]);
      else scalar_load(size == 4 ? Element::i32 : Element::i64, rsi, ptr[rax]);
      scalar_store(size, ptr[rsp + rcx * size + area_at[0]], rsi);
    });
    load_lanes_from(i.result, element, area(0), nullptr, nullptr);
  }
  if (i.guarded) choose_loaded(i, guard, i.args[extra + 1]);
}

// 32 and 64-bit elements by gather instructions, which leave lanes alone whose mask is not set and use the mask up.
void Emitter::gather(const Instruction& i, ValueId guard) {
  int width = bytes_of(kernel_->memory[i.memory].element), full = vector_bytes();
  ValueId offset = i.args[1];
  bool wide_offset = type(offset) == Type::i64;
  if (v4()) {
    if (guard == no_value) kxnorw(k1, k1, k1);
    else if (Opmask mask = get_mask(guard, 1); mask.getIdx() != 1) kmovw(k1, mask);
    if (tail_) kandw(k1, k1, k7);
    kshiftrw(k2, k1, 8);
  } else {
    if (guard == no_value) vpcmpeqd(ymm3, ymm3, ymm3);
    else if (Xmm mask = get_mask_lanes(guard, 3); mask.getIdx() != 3) vmovaps(ymm3, reg(mask.getIdx(), 32));
    if (tail_) vandps(ymm3, ymm3, ptr[rsp + tail_at]);
  }
  get_general(rsi, i.args[0]);
  shl(rsi, width == 8 ? 3 : 2);
  add(rsi, general(plan_.nodes[static_cast<size_t>(plan_.pointer_of[i.memory])], rcx));
  auto zero = [&](const Xmm& x) { vxorps(x, x, x); };
  if (width == 4 && !wide_offset) {
    int bytes = shape_.lanes * 4;
    Xmm at = get(offset, 0, 1, bytes), to = reg(0, bytes);
    zero(to);
    if (v4()) vgatherdps(to | k1, ptr[rsi + at * 4]);
    else vgatherdps(to, ptr[rsi + at * 4], reg(mask_part(ymm3, 4, 0, 2).getIdx(), bytes));
    put(i.result, 0, to, bytes);
  } else if (width == 8) {
    for (int p = 0; p < shape_.wide; ++p) {
      Xmm at = wide_offset ? get(offset, p, 1, full) : half(offset, p, 1), to = reg(0, full);
      zero(to);
      if (v4())
        wide_offset ? vgatherqpd(to | (p ? k2 : k1), ptr[rsi + at * 8])
                    : vgatherdpd(to | (p ? k2 : k1), ptr[rsi + at * 8]);
      else {
        Xmm mask = mask_part(ymm3, 8, p, 2);
        wide_offset ? vgatherqpd(to, ptr[rsi + at * 8], mask) : vgatherdpd(to, ptr[rsi + at * 8], mask);
      }
      put(i.result, p, to, full);
    }
  } else {
    // The upper half first: on AVX2 its mask lies where the lower half's result will.
    for (int p = shape_.wide - 1; p >= 0; --p) {
      Xmm at = get(offset, p, 1, full), to = reg(p ? 2 : 0, full / 2);
      if (v4()) {
        zero(to);
        vgatherqps(to | (p ? k2 : k1), ptr[rsi + at * 4]);
        continue;
      }
      Xmm mask = xmm3;
      if (p) {
        vextractf128(xmm0, ymm3, 1);
        mask = xmm0;
      } else if (shape_.wide == 1) mask = mask_part(ymm3, 4, 0, 2);
      zero(to);
      vgatherqps(to, ptr[rsi + at * 4], mask);
    }
    join_halves(i.result, reg(0, full / 2), reg(2, full / 2));
  }
}

void Emitter::choose_loaded(const Instruction& i, ValueId guard, ValueId otherwise) {
  Instruction pick;
  pick.op = Op::select;
  pick.result = i.result;
  pick.args = {guard, i.result, otherwise};
  choose(pick);
}

void Emitter::lanes_store(const Instruction& i) {
  Element element = kernel_->memory[i.memory].element;
  size_t extra = after_place(i);
  ValueId value = i.args[extra], guard = i.guarded ? i.args[extra + 1] : no_value;
  bool masked = tail_ || i.guarded,
       direct = i.access == Access::contiguous && (v4() || !masked || bytes_of(element) >= 4);
  if (direct) {
    Opmask mask = k7;
    Xmm mask_lanes = ymm3;
    if (v4() && i.guarded) {
      mask = get_mask(guard, 1);
      if (tail_) {
        kandw(k1, mask, k7);
        mask = k1;
      }
    } else if (masked && !v4()) {
      if (i.guarded) vmovaps(ymm3, get_mask_lanes(guard, 3));
      if (tail_ && i.guarded) vandps(ymm3, ymm3, ptr[rsp + tail_at]);
      else if (tail_) vmovups(ymm3, ptr[rsp + tail_at]);
    }
    Where w = lanes_address(i);
    store_lanes_to(
        value, element, [&](int more) { return at(w, more); }, v4() && masked ? &mask : nullptr,
        !v4() && masked ? &mask_lanes : nullptr);
    return;
  }
  store_lanes_to(value, element, area(0), nullptr, nullptr);
  spill_offsets(i);
  lane_mask_bits(guard);
  int size = bytes_of(element);
  for_each_lane([&] {
    lane_address(i);
    if (size < 4) scalar_load(size == 1 ? Element::u8 : Element::u16, rsi, ptr[rsp + rcx * size + area_at[0]]);
    else scalar_load(size == 4 ? Element::i32 : Element::i64, rsi, ptr[rsp + rcx * size + area_at[0]]);
    scalar_store(size, ptr[rax], rsi);
  });
}

}  // namespace tenon::compile::native
