// Operations on uniform values: integers in rax and back, floats as vectors of equal lanes.
#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

void Emitter::uniform(const Instruction& i) {
  Type result = type(i.result), operand = i.args.empty() ? result : type(i.args[0]);
  bool wide = operand == Type::i64;
  auto binary = [&](auto&& op) {
    get_general(rax, i.args[0]);
    get_general(rcx, i.args[1]);
    op();
    put_general(i.result, rax);
  };
  auto compared = [&](auto&& set) {
    if (is_float(operand)) return false;
    get_general(rax, i.args[0]);
    get_general(rcx, i.args[1]);
    if (wide) cmp(rax, rcx);
    else cmp(eax, ecx);
    set();
    movzx(eax, al);
    put_general(i.result, rax);
    return true;
  };
  auto shifted = [&](auto&& shift32, auto&& shift64, bool sign) {
    binary([&] {
      Label in, end;
      if (wide) cmp(rcx, 64);
      else cmp(ecx, 32);
      jb(in);
      if (!sign) xor_(eax, eax);
      else if (wide) sar(rax, 63);
      else sar(eax, 31);
      jmp(end);
      L(in);
      if (wide) shift64();
      else shift32();
      L(end);
    });
  };
  switch (i.op) {
    case Op::param:
      mov(rax, ptr[rsp + args_at]);
      mov(rax, ptr[rax + 8]);
      mov(rax, ptr[rax + static_cast<int>(i.bits * 8)]);
      put_general(i.result, rax);
      return;
    case Op::eq:
      if (compared([&] { sete(al); })) return;
      break;
    case Op::ne:
      if (compared([&] { setne(al); })) return;
      break;
    case Op::lt:
      if (compared([&] { setl(al); })) return;
      break;
    case Op::le:
      if (compared([&] { setle(al); })) return;
      break;
    case Op::gt:
      if (compared([&] { setg(al); })) return;
      break;
    case Op::ge:
      if (compared([&] { setge(al); })) return;
      break;
    case Op::ult: compared([&] { setb(al); }); return;
    default: break;
  }
  if (is_float(result) || (is_float(operand) && i.op != Op::select)) {
    uniform_float(i);
    return;
  }
  switch (i.op) {
    case Op::add: binary([&] { add(rax, rcx); }); return;
    case Op::sub: binary([&] { sub(rax, rcx); }); return;
    case Op::mul: binary([&] { imul(rax, rcx); }); return;
    case Op::div:
    case Op::rem:
      get_general(rax, i.args[0]);
      get_general(rsi, i.args[1]);
      divide(wide ? 8 : 4, i.op == Op::rem);
      put_general(i.result, rax);
      return;
    case Op::min:
    case Op::max:
      binary([&] {
        if (wide) cmp(rax, rcx);
        else cmp(eax, ecx);
        if (i.op == Op::min) cmovge(rax, rcx);
        else cmovle(rax, rcx);
      });
      return;
    case Op::neg:
      get_general(rax, i.args[0]);
      neg(rax);
      put_general(i.result, rax);
      return;
    case Op::abs:
      get_general(rax, i.args[0]);
      if (!wide) movsxd(rax, eax);
      mov(rcx, rax);
      neg(rcx);
      cmovns(rax, rcx);
      put_general(i.result, rax);
      return;
    case Op::mul_low32:
      binary([&] {
        mov(eax, eax);
        mov(ecx, ecx);
        imul(rax, rcx);
      });
      return;
    case Op::bit_and: binary([&] { and_(rax, rcx); }); return;
    case Op::bit_or: binary([&] { or_(rax, rcx); }); return;
    case Op::bit_xor: binary([&] { xor_(rax, rcx); }); return;
    case Op::bit_not:
      get_general(rax, i.args[0]);
      if (result == Type::b1) xor_(eax, 1);
      else not_(rax);
      put_general(i.result, rax);
      return;
    case Op::shift_left: shifted([&] { shl(eax, cl); }, [&] { shl(rax, cl); }, false); return;
    case Op::shift_right: shifted([&] { shr(eax, cl); }, [&] { shr(rax, cl); }, false); return;
    case Op::shift_sign: shifted([&] { sar(eax, cl); }, [&] { sar(rax, cl); }, true); return;
    case Op::select:
      get_general(rcx, i.args[1]);
      get_general(rdx, i.args[2]);
      get_general(rax, i.args[0]);
      test(eax, eax);
      mov(rax, rcx);
      cmovz(rax, rdx);
      put_general(i.result, rax);
      return;
    case Op::convert:
      get_general(rax, i.args[0]);
      if (result == Type::b1) {
        if (wide) test(rax, rax);
        else test(eax, eax);
        setne(al);
        movzx(eax, al);
      } else if (operand == Type::i32 && result == Type::i64) movsxd(rax, eax);
      put_general(i.result, rax);
      return;
    case Op::pick:
      get_general(rax, i.args[0]);
      and_(eax, 15);
      lea(rcx, ptr[rip + pool_table(kernel_->tables[i.bits])]);
      if (result == Type::i64) mov(rax, ptr[rcx + rax * 8]);
      else mov(eax, ptr[rcx + rax * 4]);
      put_general(i.result, rax);
      return;
    default: break;
  }
  unreachable();
}

// x / 0 is 0, and -1 negates: the one quotient that does not exist would trap.
void Emitter::divide(int width, bool remainder) {
  Label zero, minus, end;
  bool wide = width == 8;
  if (wide) test(rsi, rsi);
  else test(esi, esi);
  jz(zero);
  if (wide) cmp(rsi, -1);
  else cmp(esi, -1);
  je(minus);
  if (wide) {
    cqo();
    idiv(rsi);
  } else {
    cdq();
    idiv(esi);
  }
  if (remainder) mov(rax, rdx);
  jmp(end);
  L(minus);
  if (!remainder) {
    neg(rax);
    jmp(end);
  }
  L(zero);
  xor_(eax, eax);
  L(end);
}

// Lanes are all equal: the instructions of varying values, on full registers.
void Emitter::uniform_float(const Instruction& i) {
  Type result = type(i.result), operand = type(i.args[0]);
  int bytes = vector_bytes();
  auto broadcast = [&](const Xmm& to, const Xmm& from) {
    if (width_of(result) == 4) vbroadcastss(to, reg(from.getIdx(), 16));
    else broadcast_f64(to, reg(from.getIdx(), 16));
  };
  switch (i.op) {
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge: {
      uint8_t predicate = i.op == Op::eq   ? 0
                          : i.op == Op::ne ? 4
                          : i.op == Op::lt ? 17
                          : i.op == Op::le ? 18
                          : i.op == Op::gt ? 30
                                           : 29;
      Xmm a = get(i.args[0], 0, 0, 16), b = get(i.args[1], 0, 1, 16);
      if (v4()) {
        if (operand == Type::f32) vcmpps(k1, a, b, predicate);
        else vcmppd(k1, a, b, predicate);
        kmovw(eax, k1);
      } else {
        if (operand == Type::f32) vcmpps(xmm0, a, b, predicate);
        else vcmppd(xmm0, a, b, predicate);
        vmovd(eax, xmm0);
      }
      and_(eax, 1);
      put_general(i.result, rax);
      return;
    }
    case Op::convert: {
      if (is_float(operand) && is_float(result)) {
        Xmm x = get(i.args[0], 0, 0, 16);
        if (result == Type::f64) vcvtps2pd(xmm0, x);
        else vcvtpd2ps(xmm0, x);
        Xmm to = target(i.result, 0, bytes);
        broadcast(to, xmm0);
        put(i.result, 0, to, bytes);
      } else if (is_float(result)) {
        get_general(rax, i.args[0]);
        vxorps(xmm0, xmm0, xmm0);
        bool wide = operand == Type::i64;
        if (operand == Type::b1) movzx(eax, al);
        if (result == Type::f32) wide ? vcvtsi2ss(xmm0, xmm0, rax) : vcvtsi2ss(xmm0, xmm0, eax);
        else wide ? vcvtsi2sd(xmm0, xmm0, rax) : vcvtsi2sd(xmm0, xmm0, eax);
        Xmm to = target(i.result, 0, bytes);
        broadcast(to, xmm0);
        put(i.result, 0, to, bytes);
      } else if (result == Type::b1) {
        Xmm x = get(i.args[0], 0, 0, 16);
        vxorps(xmm1, xmm1, xmm1);
        if (v4()) {
          if (operand == Type::f32) vcmpps(k1, x, xmm1, 4);
          else vcmppd(k1, x, xmm1, 4);
          kmovw(eax, k1);
        } else {
          if (operand == Type::f32) vcmpps(xmm0, x, xmm1, 4);
          else vcmppd(xmm0, x, xmm1, 4);
          vmovd(eax, xmm0);
        }
        and_(eax, 1);
        put_general(i.result, rax);
      } else {
        Xmm x = get(i.args[0], 0, 0, 16);
        bool wide = result == Type::i64;
        if (operand == Type::f32) wide ? vcvttss2si(rax, x) : vcvttss2si(eax, x);
        else wide ? vcvttsd2si(rax, x) : vcvttsd2si(eax, x);
        put_general(i.result, rax);
      }
      return;
    }
    case Op::bits: {
      if (is_float(operand)) {
        Xmm x = get(i.args[0], 0, 0, 16);
        if (operand == Type::f32) vmovd(eax, x);
        else vmovq(rax, x);
        put_general(i.result, rax);
      } else {
        get_general(rax, i.args[0]);
        vmovq(xmm0, rax);
        Xmm to = target(i.result, 0, bytes);
        broadcast(to, xmm0);
        put(i.result, 0, to, bytes);
      }
      return;
    }
    case Op::select: {
      get_general(rax, i.args[0]);
      Xmm a = get(i.args[1], 0, 0, bytes), b = get(i.args[2], 0, 1, bytes);
      Label no, end;
      test(eax, eax);
      jz(no);
      vmovaps(reg(2, bytes), a);
      jmp(end);
      L(no);
      vmovaps(reg(2, bytes), b);
      L(end);
      put(i.result, 0, reg(2, bytes), bytes);
      return;
    }
    case Op::pick: {
      get_general(rax, i.args[0]);
      and_(eax, 15);
      lea(rcx, ptr[rip + pool_table(kernel_->tables[i.bits])]);
      Xmm to = target(i.result, 0, bytes);
      if (result == Type::f32) vbroadcastss(to, ptr[rcx + rax * 4]);
      else broadcast_f64(to, ptr[rcx + rax * 8]);
      put(i.result, 0, to, bytes);
      return;
    }
    default: varying_value(i); return;
  }
}

}  // namespace tenon::compile::native
