#include "tenon/compile/native_emitter.h"

#include <xbyak/xbyak_util.h>

#include <algorithm>
#include <cstdlib>

namespace tenon::compile {

std::string_view name(Isa isa) { return isa == Isa::v3 ? "x86-64-v3" : "x86-64-v4"; }

bool machine_has(Isa isa) {
  using Xbyak::util::Cpu;
  static const Cpu cpu;  // asks the operating system too: it must save the registers
  bool v3 =
      cpu.has(Cpu::tAVX2) && cpu.has(Cpu::tFMA) && cpu.has(Cpu::tBMI1) && cpu.has(Cpu::tBMI2) && cpu.has(Cpu::tF16C);
  if (isa == Isa::v3) return v3;
  return v3 && cpu.has(Cpu::tAVX512F) && cpu.has(Cpu::tAVX512BW) && cpu.has(Cpu::tAVX512DQ) && cpu.has(Cpu::tAVX512VL);
}

NativeCode emit_native(std::span<const Kernel> kernels, Isa isa) { return native::Emitter(isa).run(kernels); }

namespace native {

uint8_t* PlainAllocator::alloc(size_t size) {
  return static_cast<uint8_t*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096));
}
void PlainAllocator::free(uint8_t* p) { std::free(p); }

Emitter::Emitter(Isa isa) : CodeGenerator(16384, Xbyak::AutoGrow, &allocator), isa_(isa) { setDefaultJmpNEAR(true); }

// Where a loop hands one carried value on as another, a copy in between makes the order of moves unimportant.
static void separate_carries(Kernel& k) {
  for (Loop& l : k.loops)
    for (size_t n = 0; n < l.carried.size(); ++n) {
      ValueId next = l.carried[n].next;
      bool other = false;
      for (size_t m = 0; m < l.carried.size(); ++m) other = other || (m != n && l.carried[m].argument == next);
      if (!other) continue;
      Instruction copy;
      copy.op = is_float(k.values[next].type) ? Op::max : Op::bit_or;  // x of x and x, whatever its bits
      copy.args = {next, next};
      copy.result = static_cast<ValueId>(k.values.size());
      Value like = k.values[next];
      k.values.push_back(like);
      l.carried[n].next = copy.result;
      l.body.push_back(copy);
    }
}

NativeCode Emitter::run(std::span<const Kernel> kernels) {
  NativeCode out;
  for (Kernel k : kernels) {
    separate_carries(k);
    align(16);
    size_t at = getSize();
    kernel(k);
    out.kernels.push_back({k.name, at, getSize() - at});
  }
  align(64);
  out.constants_at = getSize();
  write_pool();
  align(64);
  ready();
  out.bytes.assign(getCode(), getCode() + getSize());
  return out;
}

void Emitter::kernel(const Kernel& k) {
  kernel_ = &k;
  size_t carried = 0;
  bool positions = false;
  for (const Loop& l : k.loops) {
    carried = std::max(carried, l.carried.size());
    for (const Carry& c : l.carried) positions = positions || c.combine == Combine::position;
  }
  int fixed = saved_at + static_cast<int>(carried) * 128;
  if (positions) fixed = std::max(fixed, saved_at + 1024);
  plan_ = make_plan(k, isa_, fixed);
  lanes_loop_ = no_loop;
  shape_ = {vector_bytes() / 4, 1, 2};
  copy_ = 0;
  tail_ = false;

  endbr64();
  push(rbp);
  mov(rbp, rsp);
  for (const Reg64& r : {rbx, r12, r13, r14, r15}) push(r);
  sub(rsp, (plan_.frame + 63) / 64 * 64 + 64);
  and_(rsp, -64);
  mov(ptr[rsp + args_at], rdi);
  mov(dword[rsp + status_at], 0);
  mov(rcx, rdi);
  mov(ptr[rsp + area_at[0]], rsi);  // lo and hi, until their instructions ask
  mov(ptr[rsp + area_at[0] + 8], rdx);
  // lo and hi come first, before anything uses the areas.
  for (const Instruction& i : k.body)
    if ((i.op == Op::lo || i.op == Op::hi) && node(i.result)) {
      mov(rax, ptr[rsp + area_at[0] + (i.op == Op::hi ? 8 : 0)]);
      put_general(i.result, rax);
    }
  for (size_t m = 0; m < k.memory.size(); ++m) {
    if (plan_.pointer_of[m] < 0) continue;
    const Memory& memory = k.memory[m];
    if (memory.scratch) {
      mov(rax, ptr[rcx + 16]);
      add(rax, static_cast<uint32_t>(memory.number));
    } else {
      mov(rax, ptr[rcx]);
      mov(rax, ptr[rax + static_cast<int>(memory.number * 8)]);
    }
    put_general(plan_.nodes[static_cast<size_t>(plan_.pointer_of[m])], rax);
  }
  for (const auto& [constant, r] : plan_.held) {
    Xmm to = reg(r, vector_bytes());
    Label& label = pool(constant.first, constant.second);
    if (!v4()) vmovups(to, ptr[rip + label]);
    else if (constant.second == 4) vbroadcastss(to, ptr[rip + label]);
    else broadcast_f64(to, ptr[rip + label]);
  }
  for (const auto& [table, r] : plan_.held_tables) vmovups(reg(r, 64), ptr[rip + pool_table(k.tables[table])]);
  body(k.body);
  mov(eax, ptr[rsp + status_at]);
  vzeroupper();
  lea(rsp, ptr[rbp - 40]);
  for (const Reg64& r : {r15, r14, r13, r12, rbx}) pop(r);
  pop(rbp);
  ret();
}

void Emitter::body(const std::vector<Instruction>& instructions) {
  for (const Instruction& i : instructions) {
    if (i.op == Op::loop) {
      if (kernel_->loops[i.loop].lanes) lanes(i.loop);
      else counted(i.loop);
    } else instruction(i);
  }
}

void Emitter::instruction(const Instruction& i) {
  switch (i.op) {
    case Op::constant:
    case Op::lo:
    case Op::hi: return;
    case Op::store: i.access == Access::uniform ? uniform_store(i) : lanes_store(i); return;
    case Op::update: update(i); return;
    case Op::fault: fault(i); return;
    default: break;
  }
  if (!node(i.result)) return;
  if (i.op == Op::load) i.access == Access::uniform ? uniform_load(i) : lanes_load(i);
  else if (varying(i.result)) varying_value(i);
  else uniform(i);
}

void Emitter::fault(const Instruction& i) {
  Label none;
  any_lane_jump(i.args[0], none);
  or_(dword[rsp + status_at], static_cast<uint32_t>(i.bits));
  L(none);
}

// Jumps where no lane of a boolean holds. False where it is known to hold.
bool Emitter::any_lane_jump(ValueId v, Label& none) {
  if (!varying(v)) {
    get_general(rax, v);
    test(eax, eax);
    jz(none, T_NEAR);
    return true;
  }
  general_from_mask(rax, v, true);
  test(eax, eax);
  jz(none, T_NEAR);
  return true;
}

// --- loops

void Emitter::counted(uint32_t loop) {
  const Loop& l = kernel_->loops[loop];
  const Node& counter = plan_.nodes[static_cast<size_t>(plan_.counter_of[loop])];
  for (const Carry& c : l.carried) move_to(*node(c.argument), 0, c.init);
  get_general(rax, l.lower);
  put_general(counter, rax);
  Label top, end;
  L(top);
  Reg64 at = general(counter, rax);
  get_general(rcx, l.upper);
  cmp(at, rcx);
  jge(end, T_NEAR);
  if (l.conditional) any_lane_jump(l.carried[0].argument, end);
  body(l.body);
  bool masked = l.conditional && varying(l.carried[0].argument);
  for (size_t k = l.carried.size(); k-- > 0;) {  // the condition last: the others are chosen by it
    const Carry& c = l.carried[k];
    if (plan_.coalesced[loop][k] || c.next == c.argument) continue;
    const Node& to = *node(c.argument);
    if (!masked || !varying(c.argument)) {
      move_to(to, 0, c.next);
      continue;
    }
    if (type(c.argument) == Type::b1) {
      if (v4()) {
        Opmask active = get_mask(l.carried[0].argument, 1), next = get_mask(c.next, 2);
        if (k == 0) {
          kandw(k1, active, next);
        } else {
          kandw(k2, next, active);
          Opmask old = to.spilled ? k0 : Opmask(to.registers[0]);
          if (to.spilled) kmovw(k0, slot(to, 0));
          kandnw(k1, active, old);
          korw(k1, k1, k2);
        }
        if (to.spilled) kmovw(slot(to, 0), k1);
        else kmovw(Opmask(to.registers[0]), k1);
      } else {
        Xmm active = get_mask_lanes(l.carried[0].argument, 0), next = get_mask_lanes(c.next, 1);
        Xmm old = to.spilled ? reg(2, 32) : reg(to.registers[0], 32);
        if (to.spilled) vmovups(old, slot(to, 0));
        if (k == 0) vandps(reg(3, 32), active, next);
        else vblendvps(reg(3, 32), old, next, active);
        if (to.spilled) vmovups(slot(to, 0), reg(3, 32));
        else vmovaps(old, reg(3, 32));
      }
      continue;
    }
    int bytes = bytes_of_value(c.argument), width = width_of(type(c.argument));
    for (int p = 0; p < parts(c.argument); ++p) {
      Xmm next = get(c.next, p, 0, bytes), old = get(c.argument, p, 1, bytes);
      if (v4()) {
        Opmask mask = mask_part(get_mask(l.carried[0].argument, 1), width, p, 2);
        if (width == 4) vblendmps(reg(3, bytes) | mask, old, next);
        else vblendmpd(reg(3, bytes) | mask, old, next);
      } else {
        Xmm mask = mask_part(get_mask_lanes(l.carried[0].argument, 2), width, p, 3);
        vblendvps(reg(3, bytes), old, next, mask);
      }
      put(c.argument, p, reg(3, bytes), bytes);
    }
  }
  if (counter.spilled) add(qword[rsp + counter.slot], 1);
  else add(Reg64(counter.registers[0]), 1);
  jmp(top, T_NEAR);
  L(end);
}

void Emitter::lanes(uint32_t loop) {
  const Loop& l = kernel_->loops[loop];
  lanes_loop_ = loop;
  shape_ = plan_.shapes[loop];
  const Node& counter = plan_.nodes[static_cast<size_t>(plan_.counter_of[loop])];
  for (const auto& [key, n] : plan_.broadcast_of) {
    if (key.first != loop) continue;
    const Node& to = plan_.nodes[static_cast<size_t>(n)];
    Xmm made = to.spilled ? reg(0, vector_bytes()) : reg(to.registers[0], vector_bytes());
    get_general(rax, key.second);
    bool wide = type(key.second) == Type::i64;
    if (v4()) wide ? vpbroadcastq(made, rax) : vpbroadcastd(made, eax);
    else {
      vmovq(reg(0, 16), rax);
      wide ? vpbroadcastq(made, reg(0, 16)) : vpbroadcastd(made, reg(0, 16));
    }
    if (to.spilled) vmovups(slot(to, 0), made);
  }
  for (const Carry& c : l.carried) {
    int each = plan_.nodes[static_cast<size_t>(plan_.node_of[c.argument])].count / shape_.copies;
    for (int copy = 0; copy < shape_.copies; ++copy) move_to(*node(c.argument), copy * each, c.init);
  }
  get_general(rax, l.lower);
  put_general(counter, rax);

  size_t length = l.body.size();
  for (const Instruction& i : l.body)
    if (i.op == Op::loop) length += 2 * kernel_->loops[i.loop].body.size();
  int unrolled = l.carried.empty() && length > 48 ? 1 : shape_.copies;
  int step = unrolled * shape_.lanes;
  auto advance = [&](int by) {
    if (counter.spilled) add(qword[rsp + counter.slot], by);
    else add(Reg64(counter.registers[0]), by);
  };
  Label top, rest, end;
  // At least a whole step is left: upper - counter >= step.
  auto left = [&] {
    get_general(rax, l.upper);
    if (counter.spilled) sub(rax, ptr[rsp + counter.slot]);
    else sub(rax, Reg64(counter.registers[0]));
  };
  left();
  cmp(rax, step);
  jl(rest, T_NEAR);
  align(16);
  L(top);
  for (int copy = 0; copy < unrolled; ++copy) lanes_block(loop, copy, false);
  advance(step);
  left();
  cmp(rax, step);
  jge(top, T_NEAR);
  L(rest);
  if (l.carried.empty()) {
    Label again;
    L(again);
    left();
    test(rax, rax);
    jle(end, T_NEAR);
    make_tail_mask();
    lanes_block(loop, 0, true);
    advance(shape_.lanes);
    jmp(again, T_NEAR);
  } else {
    for (int copy = 0; copy < shape_.copies; ++copy) {
      left();
      if (copy) sub(rax, copy * shape_.lanes);
      test(rax, rax);
      jle(end, T_NEAR);
      make_tail_mask();
      lanes_block(loop, copy, true);
    }
  }
  L(end);
  copy_ = 0;
  tail_ = false;
  reduce(loop);
  lanes_loop_ = no_loop;
}

// From the number of lanes left, in rax.
void Emitter::make_tail_mask() {
  if (v4()) {
    mov(ecx, 64);
    cmp(rax, rcx);
    cmovg(rax, rcx);
    mov(edx, -1);
    bzhi(edx, edx, eax);
    if (shape_.lanes < 16) and_(edx, (1 << shape_.lanes) - 1);
    kmovw(k7, edx);
    return;
  }
  mov(ecx, 64);
  cmp(rax, rcx);
  cmovg(rax, rcx);
  vmovq(xmm0, rax);
  if (mask_width() == 4) {
    vpbroadcastd(ymm0, xmm0);
    vpcmpgtd(ymm0, ymm0, ptr[rip + iota(4)]);
  } else {
    vpbroadcastq(ymm0, xmm0);
    vpcmpgtq(ymm0, ymm0, ptr[rip + iota(8)]);
  }
  vmovups(ptr[rsp + tail_at], ymm0);
}

void Emitter::lanes_block(uint32_t loop, int copy, bool tail) {
  const Loop& l = kernel_->loops[loop];
  copy_ = copy;
  tail_ = tail;
  const Node& counter = plan_.nodes[static_cast<size_t>(plan_.counter_of[loop])];
  if (plan_.index_used[loop]) {
    get_general(rax, counter);
    if (copy) add(rax, copy * shape_.lanes);
    for (int p = 0; p < parts(l.index); ++p) {
      Xmm made = target(l.index, p, vector_bytes());
      if (v4()) vpbroadcastq(reg(0, 64), rax);
      else {
        vmovq(xmm0, rax);
        vpbroadcastq(ymm0, xmm0);
      }
      vpaddq(made, reg(0, vector_bytes()), ptr[rip + iota(8) + p * vector_bytes()]);
      put(l.index, p, made, vector_bytes());
    }
  }
  auto keep = [&](bool restore) {
    for (size_t k = 0; k < l.carried.size(); ++k) {
      if (!plan_.coalesced[loop][k]) continue;
      const Carry& c = l.carried[k];
      int at = saved_at + static_cast<int>(k) * 128;
      if (type(c.argument) == Type::b1 && v4()) {
        Opmask now = get_mask(c.argument, 1);
        if (!restore) kmovw(ptr[rsp + at], now);
        else {
          kandw(k1, now, k7);
          kmovw(k2, ptr[rsp + at]);
          kandnw(k2, k7, k2);
          korw(k1, k1, k2);
          put_mask(c.argument, k1);
        }
        continue;
      }
      int bytes = bytes_of_value(c.argument),
          width = type(c.argument) == Type::b1 ? mask_width() : width_of(type(c.argument));
      for (int p = 0; p < parts(c.argument); ++p) {
        Xmm now = get(c.argument, p, 0, bytes);
        Address saved = ptr[rsp + (at + p * vector_bytes())];
        if (!restore) {
          vmovups(saved, now);
          continue;
        }
        vmovups(reg(1, bytes), saved);
        if (v4()) {
          Opmask mask = mask_part(k7, width, p, 2);
          if (width == 4) vblendmps(reg(1, bytes) | mask, reg(1, bytes), now);
          else vblendmpd(reg(1, bytes) | mask, reg(1, bytes), now);
        } else {
          vmovups(ymm2, ptr[rsp + tail_at]);
          Xmm mask = type(c.argument) == Type::b1 ? Xmm(ymm2) : mask_part(ymm2, width, p, 3);
          vblendvps(reg(1, bytes), reg(1, bytes), now, mask);
        }
        put(c.argument, p, reg(1, bytes), bytes);
      }
    }
  };
  if (tail) keep(false);
  body(l.body);
  if (tail) keep(true);
  for (size_t k = 0; k < l.carried.size(); ++k) {
    const Carry& c = l.carried[k];
    if (plan_.coalesced[loop][k] || c.next == c.argument) continue;
    const Node& to = *node(c.argument);
    int each = to.count / shape_.copies;
    if (!tail) {
      move_to(to, copy * each, c.next);
      continue;
    }
    if (type(c.argument) == Type::b1 && v4()) {
      Opmask next = get_mask(c.next, 1);
      kandw(k1, next, k7);
      kandnw(k2, k7, get_mask(c.argument, 2));
      korw(k1, k1, k2);
      put_mask(c.argument, k1);
      continue;
    }
    int bytes = bytes_of_value(c.argument);
    int width = type(c.argument) == Type::b1 ? mask_width() : width_of(type(c.argument));
    for (int p = 0; p < each; ++p) {
      Xmm next = type(c.argument) == Type::b1 ? get_mask_lanes(c.next, 0) : get(c.next, p, 0, bytes);
      Xmm old = get(c.argument, p, 1, bytes);
      if (v4()) {
        Opmask mask = mask_part(k7, width, p, 2);
        if (width == 4) vblendmps(reg(3, bytes) | mask, old, next);
        else vblendmpd(reg(3, bytes) | mask, old, next);
      } else {
        vmovups(ymm2, ptr[rsp + tail_at]);
        Xmm mask = type(c.argument) == Type::b1 ? Xmm(ymm2) : mask_part(ymm2, width, p, 3);
        vblendvps(reg(3, bytes), old, next, mask);
      }
      put(c.argument, p, reg(3, bytes), bytes);
    }
  }
}

}  // namespace native
}  // namespace tenon::compile
