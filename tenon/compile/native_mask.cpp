// Comparisons, booleans and choices between lanes.
#include "tenon/compile/native_emitter.h"

namespace tenon::compile::native {

void Emitter::compare(const Instruction& i) {
  Type operand = type(i.args[0]);
  int width = width_of(operand), bytes = width == 8 ? vector_bytes() : shape_.lanes * 4;
  int count = width == 8 ? shape_.wide : 1;
  uint8_t predicate = 0;
  switch (i.op) {
    case Op::eq: predicate = 0; break;
    case Op::ne: predicate = 4; break;
    case Op::lt: predicate = is_float(operand) ? 17 : 1; break;
    case Op::le: predicate = is_float(operand) ? 18 : 2; break;
    case Op::gt: predicate = is_float(operand) ? 30 : 6; break;
    case Op::ge: predicate = is_float(operand) ? 29 : 5; break;
    case Op::ult: predicate = 1; break;
    default: unreachable();
  }
  if (v4()) {
    const Node& n = *node(i.result);
    Opmask to = n.spilled ? k1 : Opmask(n.registers[static_cast<size_t>(unit(i.result, 0))]);
    for (int p = 0; p < count; ++p) {
      Xmm a = get(i.args[0], p, 0, bytes);
      Source b = source(i.args[1], p, 1, bytes);
      Opmask made = count == 1 ? to : p == 0 ? k1 : k2;
      if (is_float(operand))
        width == 4 ? vcmpps(made, a, b.operand(), predicate) : vcmppd(made, a, b.operand(), predicate);
      else if (i.op == Op::ult) width == 4 ? vpcmpud(made, a, b.operand(), 1) : vpcmpuq(made, a, b.operand(), 1);
      else width == 4 ? vpcmpd(made, a, b.operand(), predicate) : vpcmpq(made, a, b.operand(), predicate);
    }
    if (count == 2) kunpckbw(to, k2, k1);
    put_mask(i.result, to);
    return;
  }
  for (int p = 0; p < count; ++p) {
    Xmm made = reg(p == 0 ? 2 : 3, bytes);
    Xmm a = get(i.args[0], p, 0, bytes);
    if (is_float(operand)) {
      Source b = source(i.args[1], p, 1, bytes);
      width == 4 ? vcmpps(made, a, b.operand(), predicate) : vcmppd(made, a, b.operand(), predicate);
      continue;
    }
    Xmm b = get(i.args[1], p, 1, bytes);
    Op op = i.op;
    if (op == Op::ult) {
      uint64_t sign = width == 4 ? 0x80000000u : 0x8000000000000000ull;
      vxorps(reg(0, bytes), a, constant(sign, width, 0, bytes, true).operand());
      vxorps(reg(1, bytes), b, constant(sign, width, 1, bytes, true).operand());
      a = reg(0, bytes);
      b = reg(1, bytes);
      op = Op::lt;
    }
    bool flip = op == Op::ne || op == Op::le || op == Op::ge;
    if (op == Op::eq || op == Op::ne) width == 4 ? vpcmpeqd(made, a, b) : vpcmpeqq(made, a, b);
    else if (op == Op::gt || op == Op::le) width == 4 ? vpcmpgtd(made, a, b) : vpcmpgtq(made, a, b);
    else width == 4 ? vpcmpgtd(made, b, a) : vpcmpgtq(made, b, a);
    if (flip) {
      vpcmpeqd(reg(0, bytes), reg(0, bytes), reg(0, bytes));
      vxorps(made, made, reg(0, bytes));
    }
  }
  merge_masks(reg(2, 32), reg(3, 32), width, ymm0);
  put(i.result, 0, ymm0, 32);
}

void Emitter::logic(const Instruction& i) {
  if (v4()) {
    const Node& n = *node(i.result);
    Opmask to = n.spilled ? k1 : Opmask(n.registers[static_cast<size_t>(unit(i.result, 0))]);
    Opmask a = get_mask(i.args[0], 1);
    if (i.op == Op::bit_not) knotw(to, a);
    else {
      Opmask b = get_mask(i.args[1], 2);
      if (i.op == Op::bit_and) kandw(to, a, b);
      else if (i.op == Op::bit_or) korw(to, a, b);
      else kxorw(to, a, b);
    }
    put_mask(i.result, to);
    return;
  }
  Xmm a = get_mask_lanes(i.args[0], 0), to = target(i.result, 0, 32);
  if (i.op == Op::bit_not) {
    vpcmpeqd(ymm1, ymm1, ymm1);
    vxorps(to, a, ymm1);
  } else bitwise(i.op, 4, to, a, get_mask_lanes(i.args[1], 1));
  put(i.result, 0, to, 32);
}

void Emitter::choose(const Instruction& i) {
  Type result = type(i.result);
  if (result == Type::b1) {
    if (v4()) {
      Opmask condition = get_mask(i.args[0], 1);
      Opmask then = get_mask(i.args[1], 2);
      kandw(k2, condition, then);
      if (condition.getIdx() != 1) kmovw(k1, condition);
      // The other operand may need a scratch mask too: rax carries this one over.
      if (!varying(i.args[2]) || node(i.args[2])->spilled) {
        kmovw(ecx, k1);
        Opmask other = get_mask(i.args[2], 1);
        kmovw(edx, other);
        andn(edx, ecx, edx);
        kmovw(k1, edx);
      } else kandnw(k1, k1, get_mask(i.args[2], 1));
      korw(k1, k1, k2);
      put_mask(i.result, k1);
    } else {
      Xmm condition = get_mask_lanes(i.args[0], 0), then = get_mask_lanes(i.args[1], 1),
          other = get_mask_lanes(i.args[2], 2);
      Xmm to = target(i.result, 0, 32);
      vblendvps(to, other, then, condition);
      put(i.result, 0, to, 32);
    }
    return;
  }
  int bytes = bytes_of_value(i.result), width = width_of(result);
  for (int p = 0; p < parts(i.result); ++p) {
    Xmm to = target(i.result, p, bytes);
    Xmm other = get(i.args[2], p, 0, bytes);
    if (v4()) {
      Source then = source(i.args[1], p, 1, bytes);
      Opmask mask = mask_part(get_mask(i.args[0], 1), width, p, 2);
      width == 4 ? vblendmps(to | mask, other, then.operand()) : vblendmpd(to | mask, other, then.operand());
    } else {
      Xmm then = get(i.args[1], p, 1, bytes);
      Xmm mask = mask_part(get_mask_lanes(i.args[0], 2), width, p, 3);
      vblendvps(to, other, then, reg(mask.getIdx(), bytes));
    }
    put(i.result, p, to, bytes);
  }
}

}  // namespace tenon::compile::native
