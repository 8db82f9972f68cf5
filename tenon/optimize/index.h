// Index arithmetic of stages: which values an index takes, and where an element of a view lies in the buffer behind it.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "tenon/loop/program.h"

namespace tenon::optimize {

/// The loops of a stage: its domain's, then its reduction's.
Sizes loops_of(const loop::Stage& stage);

/// Proven for all values of the loops: 0 <= index < size. An index that data decides is never.
bool within(const loop::Arena& arena, loop::ExprId index, SymInt size, const Sizes& loops);

/// The loop that an expression is, if it is one and nothing else.
std::optional<size_t> as_loop(const loop::Arena& arena, loop::ExprId expr);
bool is_zero(const loop::Arena& arena, loop::ExprId expr);

/// base + the sum of by_loop[k] * loop k.
struct Strided {
  SymInt base = 0;
  Sizes by_loop;
};
/// None where an index is anything else.
std::optional<Strided> strided(const loop::Arena& arena, loop::ExprId index, size_t loops);
/// The same for the distance, in elements, of `at` from where its buffer begins.
std::optional<Strided> strided(const loop::Program& program, loop::BufferId buffer, std::span<const loop::ExprId> at,
                               size_t loops);

/// Where the element `at` of a buffer lies in the buffer that it is a view of; `at` itself where it is none. None where
/// that takes more than sums and products by constants: divisions would cost every element more than the view saves.
std::optional<std::vector<loop::ExprId>> root_index(loop::Program& program, loop::BufferId buffer,
                                                    std::span<const loop::ExprId> at, const Sizes& loops);

inline loop::BufferId root_of(const loop::Program& program, loop::BufferId b) {
  return program.buffers[b].view_of == loop::no_buffer ? b : program.buffers[b].view_of;
}

}  // namespace tenon::optimize
