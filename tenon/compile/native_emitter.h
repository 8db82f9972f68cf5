// Turns planned kernels into instructions. Split by subject: native_emitter.cpp (frame and loops), native_operands.cpp,
// native_uniform.cpp, native_varying.cpp, native_mask.cpp, native_convert.cpp, native_memory.cpp, native_update.cpp,
// native_reduce.cpp.
//
// Uniform integers live in general registers, uniform floats in vector registers with every lane equal, varying values
// in vector registers (64-bit ones in two where the loop has as many lanes as 32-bit values fit), varying booleans in
// mask registers or, on AVX2, as lanes of ones. One rule keeps registers shared between a result and its operands safe:
// a sequence writes its destination by its last instruction only. Vector registers 0 to 3, masks 1 and 2, and rax, rcx,
// rdx, rsi are scratch.
#pragma once
#include <xbyak/xbyak.h>

#include <functional>
#include <map>
#include <optional>

#include "tenon/base/error.h"
#include "tenon/compile/emit_native.h"
#include "tenon/compile/native_plan.h"

namespace tenon::compile::native {

using Xbyak::Address;
using Xbyak::Label;
using Xbyak::Operand;
using Xbyak::Opmask;
using Xbyak::Reg64;
using Xbyak::Xmm;

/// An operand that may stay in memory.
struct Source {
  Xmm reg;
  std::optional<Address> memory;
  const Operand& operand() const { return memory ? static_cast<const Operand&>(*memory) : reg; }
};

/// Memory for the code, not executable: it is copied out.
class PlainAllocator : public Xbyak::Allocator {
 public:
  uint8_t* alloc(size_t size) override;
  void free(uint8_t* p) override;
  bool useProtect() const override { return false; }
};

struct AllocatorHolder {
  PlainAllocator allocator;
};

class Emitter : private AllocatorHolder, public Xbyak::CodeGenerator {
 public:
  using Type = compile::Type;  // Xbyak has one of its own
  explicit Emitter(Isa isa);
  NativeCode run(std::span<const Kernel> kernels);

 private:
  // Fixed places on the stack, from the stack pointer on.
  static constexpr int area_at[4] = {0, 128, 256, 384};  // one value of every lane each
  static constexpr int tail_at = 512, status_at = 576, args_at = 584, saved_at = 640;

  void kernel(const Kernel& kernel);
  void body(const std::vector<Instruction>& instructions);
  void instruction(const Instruction& i);
  void counted(uint32_t loop);
  void lanes(uint32_t loop);
  void lanes_block(uint32_t loop, int copy, bool tail);
  void make_tail_mask();
  void fault(const Instruction& i);

  // Values. native_operands.cpp
  const Value& value(ValueId v) const { return kernel_->values[v]; }
  Type type(ValueId v) const { return kernel_->values[v].type; }
  bool varying(ValueId v) const { return kernel_->values[v].varying; }
  bool is_constant(ValueId v) const { return plan_.constants.count(v) != 0; }
  const Node* node(ValueId v) const {
    int n = plan_.node_of[v];
    return n < 0 ? nullptr : &plan_.nodes[static_cast<size_t>(n)];
  }
  int vector_bytes() const { return isa_ == Isa::v4 ? 64 : 32; }
  bool v4() const { return isa_ == Isa::v4; }
  int parts(ValueId v) const { return varying(v) && width_of(type(v)) == 8 ? shape_.wide : 1; }
  /// Bytes of a register that holds the value: full where it is uniform or 64 bits wide.
  int bytes_of_value(ValueId v) const {
    return varying(v) && width_of(type(v)) != 8 && type(v) != Type::b1 ? shape_.lanes * 4 : vector_bytes();
  }
  Xmm reg(int index, int bytes) const {
    return bytes == 64 ? Xmm(Operand::ZMM, index) : bytes == 32 ? Xmm(Operand::YMM, index) : Xmm(Operand::XMM, index);
  }
  static Xbyak::Ymm as_ymm(const Xmm& x) { return Xbyak::Ymm(x.getIdx()); }
  static Xbyak::Zmm as_zmm(const Xmm& x) { return Xbyak::Zmm(x.getIdx()); }
  template <class F>
  static void with_wide(const Xmm& to, F&& f) {  // Xbyak's overloads for ymm and zmm are by type
    auto same = [&](auto wide) {
      if (to.getOpmaskIdx()) wide.setOpmaskIdx(to.getOpmaskIdx());
      if (to.hasZero()) wide.setZero();
      f(wide);
    };
    if (to.isZMM()) same(Xbyak::Zmm(to.getIdx()));
    else same(Xbyak::Ymm(to.getIdx()));
  }
  void broadcast_f64(const Xmm& to, const Operand& from) {
    with_wide(to, [&](const auto& wide) { vbroadcastsd(wide, from); });
  }
  Address slot(const Node& n, int k) { return ptr[rsp + (n.slot + k * (n.bank == Bank::vector ? vector_bytes() : 8))]; }
  int unit(ValueId v, int part) const;  // which register of its node: a carried value has copies
  Xmm get(ValueId v, int part, int scratch, int bytes);
  Source source(ValueId v, int part, int scratch, int bytes, bool may_broadcast = true);
  void put(ValueId v, int part, const Xmm& from, int bytes);
  void put_all_ways(const Node& n, int k, const Xmm& from);
  Xmm target(ValueId v, int part, int bytes);  // scratch 3 where it has no register
  void move_to(const Node& to, int first, ValueId from);

  // Integers and booleans in general registers.
  void get_general(const Reg64& to, ValueId v);
  void get_general(const Reg64& to, const Node& n);
  void put_general(ValueId v, const Reg64& from);
  void put_general(const Node& n, const Reg64& from);
  Reg64 general(ValueId v, const Reg64& scratch);
  Reg64 general(const Node& n, const Reg64& scratch);

  // Masks of lanes. On AVX-512 a mask register; on AVX2 a vector with lanes of mask_width() bytes.
  int mask_width() const { return shape_.wide == 1 ? 8 : 4; }
  Opmask get_mask(ValueId v, int scratch);
  void put_mask(ValueId v, const Opmask& from);
  Xmm get_mask_lanes(ValueId v, int scratch);
  Xmm mask_part(const Xmm& mask, int width, int part, int scratch);  // for values of that width
  Opmask mask_part(const Opmask& mask, int width, int part, int scratch);
  void merge_masks(const Xmm& low, const Xmm& high, int width, const Xmm& to);
  void general_from_mask(const Reg64& to, ValueId v, bool with_tail);  // one bit a lane
  bool any_lane_jump(ValueId v, Label& none);

  // Constants behind the code.
  Label& pool(uint64_t bits, int width);
  Label& pool_bytes(const std::vector<uint8_t>& bytes);
  Label& pool_table(const Table& table);
  Label& iota(int width);
  Source constant(uint64_t bits, int width, int scratch, int bytes, bool may_broadcast);
  void write_pool();

  void uniform(const Instruction& i);  // native_uniform.cpp
  void uniform_float(const Instruction& i);
  void divide(int width, bool remainder);    // rax by rsi, to rax
  void varying_value(const Instruction& i);  // native_varying.cpp
  void vector_float(Op op, Type type, const Xmm& to, const Xmm& a, const Operand& b);
  void vector_integer(Op op, Type type, const Xmm& to, const Xmm& a, const Source& b, int bytes);
  void vector_fma(Type type, ValueId result, int part, int bytes, const SmallVector<ValueId, 6>& args);
  void vector_unary(const Instruction& i, const Xmm& to, const Xmm& a, int bytes);
  void vector_scale(Type type, const Xmm& to, const Xmm& x, const Xmm& n, int bytes);
  void compare(const Instruction& i);
  void logic(const Instruction& i);
  void choose(const Instruction& i);
  void pick_lanes(const Instruction& i);
  void lanewise_divide(const Instruction& i);
  void bitwise(Op op, int width, const Xmm& to, const Xmm& a, const Operand& b);
  void round_bfloat(const Xmm& to, const Xmm& x, int bytes);  // bits in the upper half; scratch 1 and 2
  void convert_lanes(const Instruction& i);                   // native_convert.cpp
  void from_mask(ValueId v, Type to, int part, const Xmm& target, int bytes);
  void convert_by_lane(const Instruction& i);
  Xmm half(ValueId v, int part, int scratch);
  void join_halves(ValueId v, const Xmm& low, const Xmm& high);

  // Memory. native_memory.cpp
  void uniform_load(const Instruction& i);
  void uniform_store(const Instruction& i);
  void lanes_load(const Instruction& i);
  void lanes_store(const Instruction& i);
  void update(const Instruction& i);
  struct Where {
    Reg64 pointer, index;
    bool indexed;
    int scale, offset;
  };
  Where lanes_address(const Instruction& i);  // of a uniform or contiguous access; uses rcx, rsi
  Address at(const Where& w, int more_bytes);
  void lane_address(const Instruction& i);  // to rax, of the lane in rcx; uses rsi
  using Places = std::function<Address(int more_bytes)>;
  void load_lanes_from(ValueId v, Element element, const Places& at, const Opmask* mask, const Xmm* mask_lanes);
  void store_lanes_to(ValueId v, Element element, const Places& at, const Opmask* mask, const Xmm* mask_lanes);
  Places area(int which);
  void gather(const Instruction& i, ValueId guard);
  void spill_offsets(const Instruction& i);
  void lane_mask_bits(ValueId guard);                     // to edx
  void for_each_lane(const std::function<void()>& lane);  // bits in edx, lane in rcx
  void choose_loaded(const Instruction& i, ValueId guard, ValueId otherwise);
  void scalar_load(Element element, const Reg64& to, const Address& from);
  void scalar_store(int bytes, const Address& to, const Reg64& from);
  void combine_scalar(Combine how, Element element);  // at rax with the lane of area 0

  // Reductions. native_reduce.cpp
  void reduce(uint32_t loop);
  void reduce_mask(const Carry& c, const Node& n, int copies);
  void reduce_positions(const Carry& value, const Carry& position, uint32_t loop);
  void combine_vectors(Combine how, Type type, const Xmm& to, const Xmm& a, const Xmm& b);

  Isa isa_;
  const Kernel* kernel_ = nullptr;
  Plan plan_;
  LanesShape shape_;  // of the lanes loop that is open
  uint32_t lanes_loop_ = no_loop;
  int copy_ = 0;  // which of its copies is being written
  bool tail_ = false;
  std::map<std::pair<uint64_t, int>, Label> constants_;
  std::map<std::vector<uint8_t>, Label> blobs_;
};

}  // namespace tenon::compile::native
