#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {

std::optional<ResultBlocks> result_blocks(const loop::Program& program, const loop::Step& anchor) {
  if (auto* g = std::get_if<loop::Gemm>(&anchor)) return blocks_of(program, *g);
  if (auto* c = std::get_if<loop::Convolution>(&anchor)) return blocks_of(program, *c);
  return std::nullopt;
}

LibraryCalls library_calls(const loop::Program& program, const loop::Step& anchor) {
  return std::visit(
      [&](const auto& step) -> LibraryCalls {
        using Step = std::decay_t<decltype(step)>;
        if constexpr (std::is_same_v<Step, loop::Stage> || std::is_same_v<Step, loop::Call> ||
                      std::is_same_v<Step, loop::Bind> || std::is_same_v<Step, loop::Check> ||
                      std::is_same_v<Step, loop::Control>)
          unreachable();
        else return calls_of(program, step);
      },
      anchor);
}

}  // namespace tenon::plan
