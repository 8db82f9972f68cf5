// Running a compiled stage: block by block, between threads, with reductions inside.
#include <algorithm>
#include <cstring>

#include "tenon/base/parallel.h"
#include "tenon/interp/combine.h"
#include "tenon/interp/stage_code.h"
#include "tenon/interp/wrap.h"

namespace tenon::interp {

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

// Row by row of the innermost loop: the lanes of a row that no bound excludes lie next to each other.
void CompiledStage::Impl::load_bounded(const Instruction& ins, const std::byte* base, std::byte* out,
                                       const std::byte* otherwise, const Span& span) const {
  SmallVector<int64_t, 8> at(std::span(span.fixed, extents.size()));
  size_t end = span.first_loop + span.loop_count;
  for (size_t k = end, rest = static_cast<size_t>(span.start); k-- > span.first_loop;) {
    auto extent = static_cast<size_t>(extents[k]);
    at[k] = static_cast<int64_t>(rest % extent);
    rest /= extent;
  }
  bool single = span.loop_count == 0;
  size_t inner = single ? 0 : end - 1;
  auto value_at = [&](const Linear& l) {
    int64_t value = l.base;
    for (size_t k = 0; k < at.size(); ++k) value = wrap_add(value, wrap_mul(l.by_loop[k], at[k]));
    return value;
  };
  auto size = static_cast<int64_t>(item_size(ins.dtype));
  for (int64_t lane = 0; lane < span.n;) {
    int64_t count = single ? span.n : std::min(extents[inner] - at[inner], span.n - lane), from = 0, to = count;
    for (const Linear& bound : ins.bounds) {
      int64_t value = value_at(bound), step = single ? 0 : bound.by_loop[inner];
      if (step > 0 && value < 0) from = std::max(from, std::min(-(value + 1) / step, count) + 1);
      else if (step < 0) to = value < 0 ? 0 : value / -step < to ? value / -step + 1 : to;
      else if (value < 0) to = 0;
    }
    from = std::min(from, count);
    to = std::max(to, from);
    auto lanes_at = [&](int64_t i) { return static_cast<size_t>(lane + i) * ins.item; };
    std::memcpy(out + lanes_at(0), otherwise + lanes_at(0), static_cast<size_t>(from) * ins.item);
    std::memcpy(out + lanes_at(to), otherwise + lanes_at(to), static_cast<size_t>(count - to) * ins.item);
    if (from < to) {
      int64_t stride = single ? 0 : ins.at.by_loop[inner];
      load_block(ins.dtype, base + (value_at(ins.at) + from * stride) * size, stride, out + lanes_at(from),
                 static_cast<size_t>(to - from));
    }
    lane += count;
    if (single) break;
    at[inner] = 0;
    for (size_t k = inner; k-- > span.first_loop;) {
      if (++at[k] < extents[k]) break;
      at[k] = 0;
    }
  }
}

void CompiledStage::Impl::offsets(std::span<const uint32_t> indices, std::span<const int64_t> sizes,
                                  std::span<const int64_t> strides, std::byte* memory, const uint8_t* where, int64_t n,
                                  int64_t* out, bool derived) const {
  std::fill_n(out, n, 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    auto* index = reinterpret_cast<const int64_t*>(memory + indices[d] * register_bytes);
    for (int64_t i = 0; i < n; ++i) {
      if (where && !where[i]) continue;
      const bool fits = index[i] >= 0 && index[i] < sizes[d];
      require(fits || !derived, "index ", index[i], " is out of range");
      require(fits, "index ", index[i], " is out of range for dimension ", d, " of size ", sizes[d]);
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
      case Instruction::bounded_load:
        load_bounded(ins, buffers[ins.buffer], reg(ins.out), reg(ins.otherwise), span);
        break;
      case Instruction::gather: {
        auto* at = reinterpret_cast<int64_t*>(reg(registers - 1));
        const uint8_t* where = ins.guard == ~0u ? nullptr : reinterpret_cast<const uint8_t*>(reg(ins.guard));
        offsets(ins.indices, ins.sizes, ins.strides, memory, where, span.n, at, ins.derived);
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

static void fill(const Filled& f, std::byte* reg, int64_t lanes) {
  switch (f.type) {
    case Compute::boolean:
      std::fill_n(reinterpret_cast<uint8_t*>(reg), lanes, static_cast<uint8_t>(f.integer != 0));
      return;
    case Compute::i64: std::fill_n(reinterpret_cast<int64_t*>(reg), lanes, f.integer); return;
    case Compute::f32: std::fill_n(reinterpret_cast<float*>(reg), lanes, static_cast<float>(f.real)); return;
    case Compute::f64: std::fill_n(reinterpret_cast<double*>(reg), lanes, f.real); return;
  }
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
  else parallel::parallel_for(blocks, grain, body);
}

}  // namespace tenon::interp
