// From a stage's expressions to instructions: what is linear in the loops becomes strides, the rest registers.
#include <algorithm>

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
  std::vector<std::pair<ExprId, uint32_t>> seen;  // few: a linear search is enough

  std::optional<Linear> linear(ExprId id) const {
    const ExprNode& n = program_.program.arena[id];
    if (n.type != Compute::i64) return std::nullopt;
    Linear out;
    out.by_loop.resize(loops_, 0);
    switch (n.fn) {
      case Fn::constant: out.base = n.integer; return out;
      case Fn::size: out.base = program_.value(n.size); return out;
      case Fn::index: out.by_loop[static_cast<size_t>(n.integer)] = 1; return out;
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
                              std::span<const int64_t> extents) const {
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
      out.base += index->base * stride;
      for (size_t i = 0; i < loops_; ++i) out.by_loop[i] += index->by_loop[i] * stride;
    }
    return out;
  }

  uint32_t compile(ExprId id, std::vector<Instruction>& code, const std::vector<Reduction>& reductions) {
    for (auto& [known, reg] : seen)
      if (known == id) return reg;
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
        seen.emplace_back(id, reg);
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
        } else {
          ins.kind = Instruction::gather;
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
    seen.emplace_back(id, ins.out);
    code.push_back(std::move(ins));
    return code.back().out;
  }

 private:
  const Resolved& program_;
  std::span<const int64_t> extents_;
  size_t loops_;
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
  if (s.reduces)  // what was computed per term is not there after the reduction; constants are
    std::erase_if(compiler.seen, [&](auto& entry) {
      return std::none_of(compiler.constants.begin(), compiler.constants.end(),
                          [&](const Filled& f) { return f.reg == entry.second; });
    });
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
