#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {

// Whether the sizes say that no result has an element, however many rows of nothing there are.
static bool gives_nothing(const loop::Program& program, const loop::Step& anchor) {
  bool nothing = true;
  loop::for_each_write(program, anchor, [&](loop::BufferId b) {
    const Sizes& sizes = program.buffers[b].sizes;
    nothing = nothing && std::find(sizes.begin(), sizes.end(), SymInt(0)) != sizes.end();
  });
  return nothing;
}

std::optional<ResultBlocks> result_blocks(const loop::Program& program, const loop::Step& anchor) {
  if (auto* g = std::get_if<loop::Gemm>(&anchor)) return blocks_of(program, *g);
  if (auto* c = std::get_if<loop::Convolution>(&anchor)) return blocks_of(program, *c);
  return std::nullopt;
}

LibraryCalls library_calls(const loop::Program& program, const loop::Step& anchor) {
  LibraryCalls made = std::visit(
      [&](const auto& step) -> LibraryCalls {
        using Step = std::decay_t<decltype(step)>;
        if constexpr (std::is_same_v<Step, loop::Stage> || std::is_same_v<Step, loop::Call> ||
                      std::is_same_v<Step, loop::Bind> || std::is_same_v<Step, loop::Check> ||
                      std::is_same_v<Step, loop::Control>)
          unreachable();
        else return calls_of(program, step);
      },
      anchor);
  if (gives_nothing(program, anchor))
    for (LibraryCall& call : made.calls) call.extent = 0;
  return made;
}

}  // namespace tenon::plan
