// From a stage's expressions to instructions: what is linear in the loops becomes strides, the rest registers.
#include <algorithm>
#include <unordered_map>

#include "tenon/base/error.h"
#include "tenon/interp/stage_code.h"

namespace tenon::interp {
namespace {

using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

/// Turns the expressions a stage uses into instructions.
class Compiler {
 public:
  Compiler(const Resolved& program, std::span<const int64_t> extents)
      : program_(program), extents_(extents), loops_(extents.size()) {}

  uint32_t registers = 0;
  std::vector<Filled> constants;

  // What was computed per term is not there after a reduction; constants are.
  void finish_terms() { computed_.clear(); }

  std::optional<Linear> linear(ExprId id) {
    const ExprNode& n = program_.program.arena[id];
    if (n.type != Compute::i64) return std::nullopt;
    Linear out;
    out.by_loop.resize(loops_, 0);
    switch (n.fn) {
      case Fn::constant: out.base = n.integer; return out;
      case Fn::size: out.base = program_.value(n.size); return out;
      case Fn::index: out.by_loop[static_cast<size_t>(n.integer)] = 1; return out;
      case Fn::add:
      case Fn::sub:
      case Fn::mul: break;
      default: return std::nullopt;
    }
    if (auto known = linear_.find(id); known != linear_.end()) return known->second;
    return linear_[id] = combined(n);
  }

  // Of a sum, a difference or a product.
  std::optional<Linear> combined(const ExprNode& n) {
    switch (n.fn) {
      case Fn::add:
      case Fn::sub: {
        auto a = linear(n.args[0]), b = linear(n.args[1]);
        if (!a || !b) return std::nullopt;
        auto combine = n.fn == Fn::add ? sym::checked_add : sym::checked_sub;
        a->base = combine(a->base, b->base);
        for (size_t i = 0; i < loops_; ++i) a->by_loop[i] = combine(a->by_loop[i], b->by_loop[i]);
        return a;
      }
      case Fn::mul: {
        auto a = linear(n.args[0]), b = linear(n.args[1]);
        if (!a || !b) return std::nullopt;
        auto is_constant = [&](const Linear& l) {
          return std::all_of(l.by_loop.begin(), l.by_loop.end(), [](int64_t c) { return c == 0; });
        };
        if (!is_constant(*a)) std::swap(a, b);
        if (!is_constant(*a)) return std::nullopt;
        for (size_t i = 0; i < loops_; ++i) b->by_loop[i] = sym::checked_mul(b->by_loop[i], a->base);
        b->base = sym::checked_mul(b->base, a->base);
        return b;
      }
      default: return std::nullopt;
    }
  }

  // The linear offset of an access, where every index is linear. It is checked here, once, for all that the loops will
  // reach: operands whose sizes do not belong together are an Error and never touch memory they should not.
  std::optional<Linear> place(std::span<const ExprId> at, const loop::Buffer& buffer,
                              std::span<const int64_t> extents) {
    Linear out;
    out.by_loop.resize(loops_, 0);
    bool runs = std::none_of(extents.begin(), extents.end(), [](int64_t e) { return e == 0; });
    for (size_t d = 0; d < at.size(); ++d) {
      auto index = linear(at[d]);
      if (!index) return std::nullopt;
      int64_t least = index->base, most = index->base;
      for (size_t i = 0; i < loops_; ++i) {
        int64_t& end = index->by_loop[i] < 0 ? least : most;
        end = sym::checked_add(end, sym::checked_mul(index->by_loop[i], extents[i] - 1));
      }
      require(!runs || (least >= 0 && most < buffer.sizes[d].as_int()), "sizes that do not belong together: dimension ",
              d, " of ", buffer.name, ", ", buffer.dtype, buffer.sizes, ", would be read or written at ",
              least < 0 ? least : most);
      int64_t stride = buffer.strides[d].as_int();
      out.base = sym::checked_add(out.base, sym::checked_mul(index->base, stride));
      for (size_t i = 0; i < loops_; ++i)
        out.by_loop[i] = sym::checked_add(out.by_loop[i], sym::checked_mul(index->by_loop[i], stride));
    }
    return out;
  }

  // A load whose indices are linear and whose guard asks nothing but that linear values are not below 0: windows that
  // reach over the edge of an image. What it can reach is seen here; false where its guard does not keep it inside.
  bool place_bounded(const ExprNode& load, const loop::Buffer& buffer, Instruction& ins) {
    std::vector<Linear> bounds;
    if (!collect_bounds(load.guard, bounds)) return false;
    Linear at;
    at.by_loop.resize(loops_, 0);
    for (size_t d = 0; d < load.args.size(); ++d) {
      auto index = linear(load.args[d]);
      if (!index) return false;
      int64_t last = buffer.sizes[d].as_int() - 1, stride = buffer.strides[d].as_int();
      Linear room;  // last - index
      room.base = sym::checked_sub(last, index->base);
      for (int64_t step : index->by_loop) room.by_loop.push_back(sym::checked_sub(0, step));
      if (!is_kept_above_0(*index, bounds) || !is_kept_above_0(room, bounds)) return false;
      at.base = sym::checked_add(at.base, sym::checked_mul(index->base, stride));
      for (size_t i = 0; i < loops_; ++i)
        at.by_loop[i] = sym::checked_add(at.by_loop[i], sym::checked_mul(index->by_loop[i], stride));
    }
    ins.at = std::move(at);
    ins.bounds = std::move(bounds);
    return true;
  }

  bool collect_bounds(ExprId guard, std::vector<Linear>& out) {
    const ExprNode& n = program_.program.arena[guard];
    auto less = [&](ExprId a, ExprId b, int64_t apart) {  // a + apart <= b
      auto low = linear(a), high = linear(b);
      if (!low || !high) return false;
      high->base = sym::checked_sub(sym::checked_sub(high->base, low->base), apart);
      for (size_t i = 0; i < loops_; ++i) high->by_loop[i] = sym::checked_sub(high->by_loop[i], low->by_loop[i]);
      out.push_back(std::move(*high));
      return true;
    };
    switch (n.fn) {
      case Fn::constant: return n.integer != 0;
      case Fn::logical_and: return collect_bounds(n.args[0], out) && collect_bounds(n.args[1], out);
      case Fn::lt: return less(n.args[0], n.args[1], 1);
      case Fn::le: return less(n.args[0], n.args[1], 0);
      case Fn::gt: return less(n.args[1], n.args[0], 1);
      case Fn::ge: return less(n.args[1], n.args[0], 0);
      default: return false;
    }
  }

  // By the extents of the loops, or by a bound that lies at or below it.
  bool is_kept_above_0(const Linear& value, const std::vector<Linear>& bounds) const {
    int64_t least = value.base;
    for (size_t i = 0; i < loops_; ++i)
      if (value.by_loop[i] < 0)
        least = sym::checked_add(least, sym::checked_mul(value.by_loop[i], std::max<int64_t>(extents_[i] - 1, 0)));
    return least >= 0 || std::any_of(bounds.begin(), bounds.end(), [&](const Linear& bound) {
             return bound.by_loop == value.by_loop && bound.base <= value.base;
           });
  }

  uint32_t compile(ExprId id, std::vector<Instruction>& code, const std::vector<Reduction>& reductions) {
    for (const auto* known : {&filled_, &computed_})
      if (auto found = known->find(id); found != known->end()) return found->second;
    const ExprNode& n = program_.program.arena[id];
    Instruction ins;
    ins.item = block_item(n.type);
    switch (n.fn) {
      case Fn::accumulated: return reductions[static_cast<size_t>(n.integer)].out;
      case Fn::size:
      case Fn::constant: {
        uint32_t reg = registers++;
        Filled constant{reg, n.type, n.real, n.integer};
        if (n.fn == Fn::size && n.type == Compute::f64) constant.real = sym::evaluate_real(n.size, program_.symbols);
        else if (n.fn == Fn::size && n.type == Compute::boolean)
          constant.integer = sym::evaluate_bool(n.size, program_.symbols);
        else if (n.fn == Fn::size) constant.integer = program_.value(n.size);
        constants.push_back(constant);
        filled_.emplace(id, reg);
        return reg;
      }
      case Fn::index:
        ins.kind = Instruction::index;
        ins.at = *linear(id);
        break;
      case Fn::load: {
        const loop::Buffer& buffer = program_.buffers[n.buffer];
        ins.dtype = buffer.dtype;
        ins.buffer = n.buffer;
        auto at = n.guard == ~0u ? place(n.args, buffer, extents_) : std::nullopt;
        if (at) {
          ins.kind = Instruction::load;
          ins.at = *at;
        } else if (n.guard != ~0u && place_bounded(n, buffer, ins)) {
          ins.kind = Instruction::bounded_load;
          ins.otherwise = compile(n.otherwise, code, reductions);
        } else {
          ins.kind = Instruction::gather;
          ins.derived = buffer.role == loop::Role::derived;
          for (ExprId index : n.args) ins.indices.push_back(compile(index, code, reductions));
          for (size_t d = 0; d < n.args.size(); ++d) {
            ins.sizes.push_back(buffer.sizes[d].as_int());
            ins.strides.push_back(buffer.strides[d].as_int());
          }
          if (n.guard != ~0u) {
            ins.guard = compile(n.guard, code, reductions);
            ins.otherwise = compile(n.otherwise, code, reductions);
          }
        }
        break;
      }
      case Fn::round_to:
        ins.kind = Instruction::round;
        ins.dtype = n.dtype;
        ins.a = compile(n.args[0], code, reductions);
        break;
      default: {
        uint32_t* slots[] = {&ins.a, &ins.b, &ins.c};
        for (size_t i = 0; i < n.args.size(); ++i) *slots[i] = compile(n.args[i], code, reductions);
        Compute operand = program_.program.arena[n.args[0]].type;
        ins.fn = block_function(n.fn, operand, n.type);
      }
    }
    ins.out = registers++;
    computed_.emplace(id, ins.out);
    code.push_back(std::move(ins));
    return code.back().out;
  }

 private:
  const Resolved& program_;
  std::span<const int64_t> extents_;
  size_t loops_;
  std::unordered_map<ExprId, std::optional<Linear>> linear_;
  std::unordered_map<ExprId, uint32_t> filled_, computed_;  // registers of constants, and of what instructions compute
};

}  // namespace

CompiledStage::CompiledStage(const Resolved& program, const loop::Stage& stage) : impl_(std::make_unique<Impl>()) {
  Impl& s = *impl_;
  for (SymInt e : stage.domain) s.extents.push_back(program.value(e));
  s.domain_rank = s.extents.size();
  for (SymInt e : stage.reduce) s.extents.push_back(program.value(e));
  for (size_t i = 0; i < s.extents.size(); ++i) {
    require(s.extents[i] >= 0, "a tensor would have a negative size, ", s.extents[i]);
    int64_t& total = i < s.domain_rank ? s.domain : s.reduce;
    total = sym::checked_mul(total, s.extents[i]);
  }
  s.reduces = !stage.accumulators.empty();
  Compiler compiler(program, s.extents);
  for (const loop::Accumulator& a : stage.accumulators) {
    Reduction r{a.combine, a.type};
    r.value = compiler.compile(a.value, s.inner, {});
    s.reductions.push_back(r);
  }
  for (Reduction& r : s.reductions) {  // two registers: the result, and the value that argmin and argmax compare
    r.out = compiler.registers;
    compiler.registers += 2;
  }
  if (s.reduces) compiler.finish_terms();
  for (const loop::Store& store : stage.stores) {
    StoreInstruction out;
    const loop::Buffer& buffer = program.buffers[store.to];
    out.buffer = store.to;
    out.dtype = buffer.dtype;
    out.mode = store.mode;
    out.value = compiler.compile(store.value, s.outer, s.reductions);
    auto at = store.where == ~0u && store.mode == loop::Mode::set ? compiler.place(store.at, buffer, s.extents)
                                                                  : std::nullopt;
    out.linear = at.has_value();
    if (at) out.at = *at;
    else {
      s.serial = true;  // places may coincide: contributions are taken in index order
      for (ExprId index : store.at) out.indices.push_back(compiler.compile(index, s.outer, s.reductions));
      for (size_t d = 0; d < store.at.size(); ++d) {
        out.sizes.push_back(buffer.sizes[d].as_int());
        out.strides.push_back(buffer.strides[d].as_int());
      }
      if (store.where != ~0u) out.where = compiler.compile(store.where, s.outer, s.reductions);
    }
    s.stores.push_back(std::move(out));
  }
  s.registers = compiler.registers + 1;  // the last one holds offsets
  s.constants = std::move(compiler.constants);
}

CompiledStage::~CompiledStage() = default;
CompiledStage::CompiledStage(CompiledStage&&) noexcept = default;

}  // namespace tenon::interp
