#include "tenon/interp/stage.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "tenon/base/error.h"
#include "tenon/templates/parallel.h"

namespace tenon::interp {
namespace {

using loop::BufferId;
using loop::Combine;
using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

constexpr int64_t lanes = 1024;          // elements of a block, and terms of a chunk of a long reduction
constexpr int64_t short_reduction = 32;  // up to here terms are taken one after another
constexpr size_t register_bytes = lanes * 8;

/// base + sum of coefficient * loop index.
struct Linear {
  int64_t base = 0;
  SmallVector<int64_t, 8> by_loop;
};

struct Instruction {
  enum Kind : uint8_t { compute, round, index, load, gather } kind = compute;
  uint32_t out = 0, a = 0, b = 0, c = 0;  // registers
  BlockFn fn = nullptr;
  DType dtype = DType::f32;
  BufferId buffer = 0;
  Linear at;                         // load: the offset. index: the value
  SmallVector<uint32_t, 6> indices;  // gather: a register per dim
  SmallVector<int64_t, 6> sizes, strides;
  uint32_t guard = ~0u, otherwise = ~0u;  // registers
  size_t item = 8;                        // bytes of a block element
};

struct StoreInstruction {
  BufferId buffer = 0;
  DType dtype = DType::f32;
  uint32_t value = 0, where = ~0u;
  loop::Mode mode = loop::Mode::set;
  bool linear = true;
  Linear at;
  SmallVector<uint32_t, 6> indices;
  SmallVector<int64_t, 6> sizes, strides;
};

struct Reduction {
  Combine combine = Combine::sum;
  Compute type = Compute::f32;
  uint32_t value = 0, out = 0;  // registers
};

struct Filled {  // a register that holds one constant
  uint32_t reg;
  Compute type;
  double real;
  int64_t integer;
};

/// A run of consecutive points of some loops, and where the other loops stand.
struct Span {
  size_t first_loop, loop_count;  // the loops the lanes run over
  int64_t start, n;               // linear positions within them
  const int64_t* fixed;           // index of every other loop
};

}  // namespace

struct CompiledStage::Impl {
  std::vector<int64_t> extents;  // domain, then reduction
  size_t domain_rank = 0;
  int64_t domain = 1, reduce = 1;
  bool reduces = false, serial = false;
  uint32_t registers = 0;
  std::vector<Filled> constants;
  std::vector<Instruction> inner, outer;  // within the reduction; after it, or all of it
  std::vector<Reduction> reductions;
  std::vector<StoreInstruction> stores;

  void run_block(std::byte* const* buffers, std::byte* memory, int64_t lo, int64_t hi) const;
  void execute(const std::vector<Instruction>& code, std::byte* const* buffers, std::byte* memory,
               const Span& span) const;
  void store(const StoreInstruction& s, std::byte* const* buffers, std::byte* memory, const Span& span) const;
  template <class F>
  void segments(const Linear& at, const Span& span, F&& f) const;
  void offsets(std::span<const uint32_t> indices, std::span<const int64_t> sizes, std::span<const int64_t> strides,
               std::byte* memory, const uint8_t* where, int64_t n, int64_t* out) const;
  void reduce_long(std::byte* const* buffers, std::byte* memory, const int64_t* point, int64_t lane) const;
};

namespace {

/// Turns the expressions a stage uses into instructions.
class Compiler {
 public:
  Compiler(const loop::Program& program, std::span<const int64_t> extents)
      : program_(program), extents_(extents), loops_(extents.size()) {}

  uint32_t registers = 0;
  std::vector<Filled> constants;
  std::vector<std::pair<ExprId, uint32_t>> seen;  // few: a linear search is enough

  std::optional<Linear> linear(ExprId id) const {
    const ExprNode& n = program_.arena[id];
    if (n.type != Compute::i64) return std::nullopt;
    Linear out;
    out.by_loop.resize(loops_, 0);
    switch (n.fn) {
      case Fn::constant: out.base = n.integer; return out;
      case Fn::size:
        expect(n.size.is_int(), "a stage with symbolic sizes cannot run");
        out.base = n.size.as_int();
        return out;
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
    const ExprNode& n = program_.arena[id];
    Instruction ins;
    ins.item = block_item(n.type);
    switch (n.fn) {
      case Fn::accumulated: return reductions[static_cast<size_t>(n.integer)].out;
      case Fn::size:
      case Fn::constant: {
        int64_t integer = n.fn == Fn::size ? n.size.as_int() : n.integer;
        uint32_t reg = registers++;
        constants.push_back({reg, n.type, n.real, integer});
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
        Compute operand = program_.arena[n.args[0]].type;
        ins.fn = block_function(n.fn, operand, n.type);
      }
    }
    ins.out = registers++;
    seen.emplace_back(id, ins.out);
    code.push_back(std::move(ins));
    return code.back().out;
  }

 private:
  const loop::Program& program_;
  std::span<const int64_t> extents_;
  size_t loops_;
};

void fill(const Filled& f, std::byte* reg, int64_t lanes) {
  switch (f.type) {
    case Compute::boolean:
      std::fill_n(reinterpret_cast<uint8_t*>(reg), lanes, static_cast<uint8_t>(f.integer != 0));
      return;
    case Compute::i64: std::fill_n(reinterpret_cast<int64_t*>(reg), lanes, f.integer); return;
    case Compute::f32: std::fill_n(reinterpret_cast<float*>(reg), lanes, static_cast<float>(f.real)); return;
    case Compute::f64: std::fill_n(reinterpret_cast<double*>(reg), lanes, f.real); return;
  }
}

// -- reductions
// ------------------------------------------------------------------------------------------------------------

template <class T>
T initial(Combine combine) {
  using Limits = std::numeric_limits<T>;
  switch (combine) {
    case Combine::sum:
    case Combine::any: return T(0);
    case Combine::product:
    case Combine::all: return T(1);
    case Combine::min:
    case Combine::argmin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Combine::max:
    case Combine::argmax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  unreachable();
}

template <class T>
T combined(Combine combine, T a, T b) {
  switch (combine) {
    case Combine::sum:
      if constexpr (std::is_same_v<T, int64_t>)
        return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      else return static_cast<T>(a + b);
    case Combine::product:
      if constexpr (std::is_same_v<T, int64_t>)
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      else return static_cast<T>(a * b);
    case Combine::any: return a || b;
    case Combine::all: return a && b;
    case Combine::min:
    case Combine::argmin: return a != a ? a : b != b || b < a ? b : a;
    case Combine::max:
    case Combine::argmax: return a != a ? a : b != b || b > a ? b : a;
  }
  unreachable();
}

// Whether the later term b takes the place of a, which came before.
template <class T>
bool displaces(Combine combine, T a, T b) {
  if (a != a) return false;
  if (b != b) return true;
  return combine == Combine::argmin ? b < a : b > a;
}

template <class T>
void accumulate_lanes(Combine combine, T* acc, const T* values, int64_t n) {  // one more term for each lane
  if (combine == Combine::sum)
    for (int64_t i = 0; i < n; ++i) acc[i] = combined(Combine::sum, acc[i], values[i]);
  else
    for (int64_t i = 0; i < n; ++i) acc[i] = combined(combine, acc[i], values[i]);
}

template <class T>
T reduce_chunk(Combine combine, const T* values, int64_t n) {
  constexpr int64_t ways = 16;
  T partial[ways];
  std::fill_n(partial, ways, initial<T>(combine));
  int64_t i = 0;
  if (combine == Combine::sum)
    for (; i + ways <= n; i += ways)
      for (int64_t j = 0; j < ways; ++j) partial[j] = combined(Combine::sum, partial[j], values[i + j]);
  else
    for (; i + ways <= n; i += ways)
      for (int64_t j = 0; j < ways; ++j) partial[j] = combined(combine, partial[j], values[i + j]);
  for (int64_t j = 0; i < n; ++i, ++j) partial[j] = combined(combine, partial[j], values[i]);
  for (int64_t width = ways / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) partial[j] = combined(combine, partial[j], partial[j + width]);
  return partial[0];
}

/// Partial results of chunks, merged pairwise as they come: level k stands for 2^k chunks.
template <class T>
struct Pairwise {
  Combine combine;
  std::vector<T> levels;
  uint64_t chunks = 0;
  void add(T value) {
    uint64_t carry = chunks++;
    while (carry & 1) {
      value = combined(combine, levels.back(), value);
      levels.pop_back();
      carry >>= 1;
    }
    levels.push_back(value);
  }
  T result() {
    if (levels.empty()) return initial<T>(combine);
    T value = levels.back();
    for (size_t i = levels.size() - 1; i-- > 0;) value = combined(combine, levels[i], value);
    return value;
  }
};

template <class F>
void with_type(Compute type, F&& f) {
  switch (type) {
    case Compute::boolean: f(uint8_t{}); return;
    case Compute::i64: f(int64_t{}); return;
    case Compute::f32: f(float{}); return;
    case Compute::f64: f(double{}); return;
  }
}

bool gives_position(Combine c) { return c == Combine::argmin || c == Combine::argmax; }

}  // namespace

CompiledStage::CompiledStage(const loop::Program& program, const loop::Stage& stage) : impl_(std::make_unique<Impl>()) {
  Impl& s = *impl_;
  for (SymInt e : stage.domain) s.extents.push_back(e.as_int());
  s.domain_rank = s.extents.size();
  for (SymInt e : stage.reduce) s.extents.push_back(e.as_int());
  for (size_t i = 0; i < s.extents.size(); ++i) (i < s.domain_rank ? s.domain : s.reduce) *= s.extents[i];
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

// Calls f(first lane, offset, stride, count) for runs of lanes whose offsets are equally far apart.
template <class F>
void CompiledStage::Impl::segments(const Linear& at, const Span& span, F&& f) const {
  int64_t offset = at.base;
  for (size_t i = 0; i < extents.size(); ++i)
    if (i < span.first_loop || i >= span.first_loop + span.loop_count) offset += at.by_loop[i] * span.fixed[i];
  size_t last = span.first_loop + span.loop_count;
  if (span.loop_count == 0) {
    f(0, offset, 0, span.n);
    return;
  }
  // Loops that lie densely behind each other, seen from this access, are one.
  size_t inner = last - 1;
  int64_t run = extents[inner];
  while (inner > span.first_loop && at.by_loop[inner - 1] == at.by_loop[last - 1] * run) run *= extents[--inner];
  int64_t stride = at.by_loop[last - 1];
  if (inner == span.first_loop) {
    f(0, offset + span.start * stride, stride, span.n);
    return;
  }
  int64_t row = span.start / run, within = span.start % run, lane = 0;
  SmallVector<int64_t, 8> position(inner - span.first_loop, 0);
  for (size_t k = position.size(), rest = static_cast<size_t>(row); k-- > 0;) {
    auto extent = static_cast<size_t>(extents[span.first_loop + k]);
    position[k] = static_cast<int64_t>(rest % extent);
    rest /= extent;
  }
  while (lane < span.n) {
    int64_t base = offset;
    for (size_t k = 0; k < position.size(); ++k) base += position[k] * at.by_loop[span.first_loop + k];
    int64_t count = std::min(run - within, span.n - lane);
    f(lane, base + within * stride, stride, count);
    lane += count;
    within = 0;
    for (size_t k = position.size(); k-- > 0;) {
      if (++position[k] < extents[span.first_loop + k]) break;
      position[k] = 0;
    }
  }
}

void CompiledStage::Impl::offsets(std::span<const uint32_t> indices, std::span<const int64_t> sizes,
                                  std::span<const int64_t> strides, std::byte* memory, const uint8_t* where, int64_t n,
                                  int64_t* out) const {
  std::fill_n(out, n, 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    auto* index = reinterpret_cast<const int64_t*>(memory + indices[d] * register_bytes);
    for (int64_t i = 0; i < n; ++i) {
      if (where && !where[i]) continue;
      require(index[i] >= 0 && index[i] < sizes[d], "index ", index[i], " is out of range for dimension ", d,
              " of size ", sizes[d]);
      out[i] += index[i] * strides[d];
    }
  }
}

void CompiledStage::Impl::execute(const std::vector<Instruction>& code, std::byte* const* buffers, std::byte* memory,
                                  const Span& span) const {
  auto reg = [&](uint32_t r) { return memory + r * register_bytes; };
  auto n = static_cast<size_t>(span.n);
  for (const Instruction& ins : code) {
    switch (ins.kind) {
      case Instruction::compute: ins.fn(reg(ins.out), reg(ins.a), reg(ins.b), reg(ins.c), n); break;
      case Instruction::round: round_block(ins.dtype, reg(ins.a), reg(ins.out), n); break;
      case Instruction::index: {
        auto* out = reinterpret_cast<int64_t*>(reg(ins.out));
        segments(ins.at, span, [&](int64_t lane, int64_t value, int64_t step, int64_t count) {
          for (int64_t i = 0; i < count; ++i) out[lane + i] = value + i * step;
        });
        break;
      }
      case Instruction::load: {
        const std::byte* base = buffers[ins.buffer];
        auto size = static_cast<int64_t>(item_size(ins.dtype));
        std::byte* out = reg(ins.out);
        segments(ins.at, span, [&](int64_t lane, int64_t offset, int64_t stride, int64_t count) {
          load_block(ins.dtype, base + offset * size, stride, out + static_cast<size_t>(lane) * ins.item,
                     static_cast<size_t>(count));
        });
        break;
      }
      case Instruction::gather: {
        auto* at = reinterpret_cast<int64_t*>(reg(registers - 1));
        const uint8_t* where = ins.guard == ~0u ? nullptr : reinterpret_cast<const uint8_t*>(reg(ins.guard));
        offsets(ins.indices, ins.sizes, ins.strides, memory, where, span.n, at);
        if (!where) {
          gather_block(ins.dtype, buffers[ins.buffer], at, reg(ins.out), n);
          break;
        }
        // Lanes whose guard fails take the other value; memory is not touched for them.
        auto size = static_cast<int64_t>(item_size(ins.dtype));
        std::memcpy(reg(ins.out), reg(ins.otherwise), n * ins.item);
        for (size_t i = 0; i < n; ++i) {
          if (!where[i]) continue;
          size_t j = i + 1;  // a run of neighbours is loaded at once
          while (j < n && where[j] && at[j] == at[j - 1] + 1) ++j;
          load_block(ins.dtype, buffers[ins.buffer] + at[i] * size, 1, reg(ins.out) + i * ins.item, j - i);
          i = j - 1;
        }
        break;
      }
    }
  }
}

void CompiledStage::Impl::store(const StoreInstruction& s, std::byte* const* buffers, std::byte* memory,
                                const Span& span) const {
  std::byte* value = memory + s.value * register_bytes;
  if (s.linear) {
    auto size = static_cast<int64_t>(item_size(s.dtype));
    size_t item = block_item(loop::compute_of(s.dtype));
    segments(s.at, span, [&](int64_t lane, int64_t offset, int64_t stride, int64_t count) {
      store_block(s.dtype, value + static_cast<size_t>(lane) * item, buffers[s.buffer] + offset * size, stride,
                  static_cast<size_t>(count));
    });
    return;
  }
  auto* at = reinterpret_cast<int64_t*>(memory + (registers - 1) * register_bytes);
  const uint8_t* where = s.where == ~0u ? nullptr : reinterpret_cast<const uint8_t*>(memory + s.where * register_bytes);
  offsets(s.indices, s.sizes, s.strides, memory, where, span.n, at);
  scatter_block(s.dtype, value, buffers[s.buffer], at, s.mode, where, static_cast<size_t>(span.n));
}

// All terms of one point of the domain; the results go to its lane.
void CompiledStage::Impl::reduce_long(std::byte* const* buffers, std::byte* memory, const int64_t* point,
                                      int64_t lane) const {
  struct Running {
    Pairwise<float> f32;
    Pairwise<double> f64;
    Pairwise<int64_t> i64;
    Pairwise<uint8_t> boolean;
    int64_t position = -1;
  };
  std::vector<Running> running(reductions.size());
  auto pairwise = [](Running & r, auto type) -> auto& {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, float>) return r.f32;
    else if constexpr (std::is_same_v<T, double>) return r.f64;
    else if constexpr (std::is_same_v<T, int64_t>) return r.i64;
    else return r.boolean;
  };
  for (int64_t start = 0; start < reduce; start += lanes) {
    int64_t n = std::min(lanes, reduce - start);
    execute(inner, buffers, memory, {domain_rank, extents.size() - domain_rank, start, n, point});
    for (size_t k = 0; k < reductions.size(); ++k) {
      const Reduction& r = reductions[k];
      with_type(r.type, [&](auto type) {
        using T = decltype(type);
        auto* values = reinterpret_cast<const T*>(memory + r.value * register_bytes);
        auto& so_far = pairwise(running[k], type);
        so_far.combine = r.combine;
        if (!gives_position(r.combine)) {
          so_far.add(reduce_chunk(r.combine, values, n));
          return;
        }
        for (int64_t i = 0; i < n; ++i) {
          if (running[k].position >= 0 && !displaces(r.combine, so_far.levels[0], values[i])) continue;
          so_far.levels.assign(1, values[i]);
          running[k].position = start + i;
        }
      });
    }
  }
  for (size_t k = 0; k < reductions.size(); ++k) {
    const Reduction& r = reductions[k];
    std::byte* out = memory + r.out * register_bytes;
    if (gives_position(r.combine)) reinterpret_cast<int64_t*>(out)[lane] = std::max<int64_t>(running[k].position, 0);
    else
      with_type(r.type, [&](auto type) {
        auto& so_far = pairwise(running[k], type);
        so_far.combine = r.combine;
        reinterpret_cast<decltype(type)*>(out)[lane] = so_far.result();
      });
  }
}

void CompiledStage::Impl::run_block(std::byte* const* buffers, std::byte* memory, int64_t lo, int64_t hi) const {
  std::vector<int64_t> point(extents.size(), 0);
  Span span{0, domain_rank, lo, hi - lo, point.data()};
  auto reg = [&](uint32_t r) { return memory + r * register_bytes; };
  if (reduces && reduce <= short_reduction) {
    for (int64_t term = 0; term < reduce; ++term) {
      for (size_t k = extents.size(), rest = static_cast<size_t>(term); k-- > domain_rank;) {
        point[k] = static_cast<int64_t>(rest % static_cast<size_t>(extents[k]));
        rest /= static_cast<size_t>(extents[k]);
      }
      execute(inner, buffers, memory, span);
      for (const Reduction& r : reductions)
        with_type(r.type, [&](auto type) {
          using T = decltype(type);
          auto* values = reinterpret_cast<const T*>(reg(r.value));
          bool position = gives_position(r.combine);
          auto* acc = reinterpret_cast<T*>(reg(position ? r.out + 1 : r.out));
          if (term == 0) {
            std::copy_n(values, span.n, acc);
            if (position) std::fill_n(reinterpret_cast<int64_t*>(reg(r.out)), span.n, int64_t{0});
          } else if (position) {
            auto* at = reinterpret_cast<int64_t*>(reg(r.out));
            for (int64_t i = 0; i < span.n; ++i)
              if (displaces(r.combine, acc[i], values[i])) {
                acc[i] = values[i];
                at[i] = term;
              }
          } else accumulate_lanes(r.combine, acc, values, span.n);
        });
    }
    if (reduce == 0)
      for (const Reduction& r : reductions)
        with_type(r.type, [&](auto type) {
          using T = decltype(type);
          if (gives_position(r.combine)) std::fill_n(reinterpret_cast<int64_t*>(reg(r.out)), span.n, int64_t{0});
          else std::fill_n(reinterpret_cast<T*>(reg(r.out)), span.n, initial<T>(r.combine));
        });
  } else if (reduces) {
    for (int64_t lane = 0; lane < span.n; ++lane) {
      for (size_t k = domain_rank, rest = static_cast<size_t>(lo + lane); k-- > 0;) {
        point[k] = static_cast<int64_t>(rest % static_cast<size_t>(extents[k]));
        rest /= static_cast<size_t>(extents[k]);
      }
      reduce_long(buffers, memory, point.data(), lane);
    }
  }
  execute(outer, buffers, memory, span);
  for (const StoreInstruction& s : stores) store(s, buffers, memory, span);
}

void CompiledStage::run(std::byte* const* buffers) const {
  const Impl& s = *impl_;
  if (s.domain == 0) return;
  int64_t work_per_point = s.reduces ? std::max<int64_t>(s.reduce, 1) : 1;
  // Long reductions are split between threads point by point, everything else by whole blocks.
  int64_t block =
      s.reduces && s.reduce > short_reduction ? std::clamp<int64_t>(16384 / work_per_point, 1, lanes) : lanes;
  int64_t blocks = (s.domain + block - 1) / block;
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, block * work_per_point));
  auto body = [&](int64_t lo, int64_t hi) {
    thread_local std::vector<std::byte> scratch;
    size_t needed = s.registers * register_bytes + 64;
    std::vector<std::byte> own;
    std::vector<std::byte>& storage = needed <= (4u << 20) ? scratch : own;
    if (storage.size() < needed) storage.resize(needed);
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    std::byte* memory = storage.data() + (64 - address % 64) % 64;
    int64_t widest = std::min(lanes, std::max(s.domain, s.reduce));  // a small tensor pays for no more than it has
    for (const Filled& f : s.constants) fill(f, memory + f.reg * register_bytes, widest);
    for (int64_t b = lo; b < hi; ++b) s.run_block(buffers, memory, b * block, std::min(s.domain, (b + 1) * block));
  };
  if (s.serial || blocks <= grain) body(0, blocks);
  else templates::parallel_for(blocks, grain, body);
}

}  // namespace tenon::interp
