// Reading, combining and writing back, one lane after another: the order is the lanes'.
#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

void Emitter::update(const Instruction& i) {
  Element element = kernel_->memory[i.memory].element;
  size_t extra = (i.access == Access::strided || i.access == Access::gathered ? 2 : 1);
  ValueId value = i.args[extra], guard = i.guarded ? i.args[extra + 1] : no_value;
  // Operands in what they are computed in; booleans as 0 and 1.
  Type type = computed_in(element);
  if (i.access == Access::uniform) {
    if (is_float(type)) vmovups(ptr[rsp + area_at[0]], get(value, 0, 0, 16));
    else {
      get_general(rax, value);
      mov(ptr[rsp + area_at[0]], rax);
    }
    if (guard == no_value) mov(edx, 1);
    else {
      get_general(rdx, guard);
      and_(edx, 1);
    }
  } else {
    if (type == Type::b1) {
      if (varying(value)) {
        from_mask(value, Type::i32, 0, reg(3, shape_.lanes * 4), shape_.lanes * 4);
      } else {
        get_general(rax, value);
        vmovd(xmm3, eax);
        vpbroadcastd(reg(3, shape_.lanes * 4), xmm3);
      }
      vmovups(ptr[rsp + area_at[0]], reg(3, shape_.lanes * 4));
    } else {
      Element as = type == Type::f32   ? Element::f32
                   : type == Type::f64 ? Element::f64
                   : type == Type::i32 ? Element::i32
                                       : Element::i64;
      store_lanes_to(value, as, area(0), nullptr, nullptr);
    }
    spill_offsets(i);
    lane_mask_bits(guard);
  }
  for_each_lane([&] {
    lane_address(i);
    combine_scalar(i.combine, element);
  });
}

void Emitter::combine_scalar(Combine how, Element element) {
  Type type = computed_in(element);
  int width = type == Type::b1 ? 4 : width_of(type);
  Address value = ptr[rsp + rcx * width + area_at[0]];
  if (!is_float(type)) {
    bool wide = type == Type::i64;
    scalar_load(element, rsi, ptr[rax]);
    if (element == Element::boolean) {
      test(esi, esi);
      setne(sil);
      movzx(esi, sil);
    }
    switch (how) {
      case Combine::add: wide ? add(rsi, value) : add(esi, value); break;
      case Combine::mul: wide ? imul(rsi, value) : imul(esi, value); break;
      case Combine::min:
        wide ? cmp(value, rsi) : cmp(value, esi);
        wide ? cmovl(rsi, value) : cmovl(esi, value);
        break;
      case Combine::max:
        wide ? cmp(value, rsi) : cmp(value, esi);
        wide ? cmovg(rsi, value) : cmovg(esi, value);
        break;
      case Combine::all: and_(esi, value); break;
      case Combine::any: or_(esi, value); break;
      case Combine::argmin:
      case Combine::argmax:
      case Combine::position: unreachable();
    }
    scalar_store(bytes_of(element), ptr[rax], rsi);
    return;
  }
  bool single = type == Type::f32;
  if (element == Element::f32) vmovss(xmm0, ptr[rax]);
  else if (element == Element::f64) vmovsd(xmm0, ptr[rax]);
  else {
    scalar_load(element, rsi, ptr[rax]);
    if (element == Element::bf16) shl(esi, 16);
    vmovd(xmm0, esi);
    if (element == Element::f16) vcvtph2ps(xmm0, xmm0);
  }
  single ? vmovss(xmm1, value) : vmovsd(xmm1, value);
  switch (how) {
    case Combine::add: single ? vaddss(xmm3, xmm0, xmm1) : vaddsd(xmm3, xmm0, xmm1); break;
    case Combine::mul: single ? vmulss(xmm3, xmm0, xmm1) : vmulsd(xmm3, xmm0, xmm1); break;
    case Combine::min:
    case Combine::max: {
      bool least = how == Combine::min;
      if (single) least ? vminss(xmm3, xmm1, xmm0) : vmaxss(xmm3, xmm1, xmm0);
      else least ? vminsd(xmm3, xmm1, xmm0) : vmaxsd(xmm3, xmm1, xmm0);
      Label number;
      single ? vucomiss(xmm1, xmm1) : vucomisd(xmm1, xmm1);
      jnp(number);
      vmovaps(xmm3, xmm1);
      L(number);
      break;
    }
    case Combine::all:
    case Combine::any:
    case Combine::argmin:
    case Combine::argmax:
    case Combine::position: unreachable();
  }
  if (element == Element::f32) vmovss(ptr[rax], xmm3);
  else if (element == Element::f64) vmovsd(ptr[rax], xmm3);
  else {
    if (element == Element::f16) {
      vcvtps2ph(xmm3, xmm3, 0);
      vmovd(esi, xmm3);
    } else {
      round_bfloat(xmm1, xmm3, 16);
      vmovd(esi, xmm1);
      shr(esi, 16);
    }
    mov(ptr[rax], si);
  }
}

}  // namespace tenon::compile::native
