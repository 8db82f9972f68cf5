// Where the values of a kernel live while it runs: linear scan over the nested loops. Of emit_native.cpp.
#pragma once
#include <map>
#include <vector>

#include "tenon/compile/emit_native.h"

namespace tenon::compile::native {

enum class Bank : uint8_t { none, general, vector, mask };

constexpr int first_vector = 4;                                            // 0 to 3 are scratch
constexpr int general_registers[] = {3, 7, 8, 9, 10, 11, 12, 13, 14, 15};  // rbx, rdi, r8 to r15
constexpr int mask_registers[] = {3, 4, 5, 6};                             // 1 and 2 are scratch, 7 is the tail

/// A thing with a place: a value, the carried value of a loop with what follows it, a counter, a pointer, a broadcast.
struct Node {
  Bank bank = Bank::none;
  int count = 1;  // registers, or units of its slot
  int start = 0, end = 0;
  double weight = 0;  // uses, ten times as much for every loop around
  bool spilled = false;
  int slot = 0;  // bytes from the stack pointer
  std::vector<uint8_t> registers;
};

/// Lanes that are worked on at once, per loop: as many as a register has of the loop's widest common type.
struct LanesShape {
  int lanes = 0;   // V: 4, 8 or 16
  int copies = 1;  // ways / V
  int wide = 1;    // registers of a 64-bit value
};

struct Plan {
  std::vector<Node> nodes;
  std::vector<int> node_of;                                  // value -> node; -1: a constant, or never used
  std::vector<int> counter_of;                               // loop -> node of its counter
  std::vector<int> pointer_of;                               // memory -> node
  std::map<std::pair<uint32_t, ValueId>, int> broadcast_of;  // (lanes loop, uniform integer) -> node
  std::vector<LanesShape> shapes;                            // per loop; of a loop inside lanes, that of the lanes loop
  std::vector<uint32_t> lanes_loop_of;                       // per value: the lanes loop it is defined in, or ~0
  std::vector<std::vector<char>> coalesced;  // per loop and carry: what the body hands on is made in place
  std::map<ValueId, uint64_t> constants;
  std::map<std::pair<uint64_t, int>, int>
      held;                             // constant (bits, bytes) of lanes -> a register that nothing else wants
  std::map<uint64_t, int> held_tables;  // likewise, of sixteen 32-bit constants on AVX-512
  std::vector<char> index_used;         // per lanes loop: its variable as a value
  int frame = 0;                        // bytes of slots, after the fixed ones
};

constexpr uint32_t no_loop = ~0u;

Plan make_plan(const Kernel& kernel, Isa isa, int fixed_frame);

}  // namespace tenon::compile::native
