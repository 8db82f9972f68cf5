#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {

LibraryCalls library_calls(const loop::Program& program, const loop::Step& anchor) {
  return std::visit(
      [&](const auto& step) -> LibraryCalls {
        using Step = std::decay_t<decltype(step)>;
        if constexpr (requires { calls_of(program, step); }) return calls_of(program, step);
        else if constexpr (std::is_same_v<Step, loop::Stage> || std::is_same_v<Step, loop::Call> ||
                           std::is_same_v<Step, loop::Bind> || std::is_same_v<Step, loop::Check>)
          unreachable();
        else fail_unsupported("attention cannot be compiled yet; run the .pt2 file instead");
      },
      anchor);
}

bool in_library(const loop::Step& anchor) {
  return std::visit(
      [](const auto& step) {
        return requires(const loop::Program& p) { calls_of(p, step); };
      },
      anchor);
}

}  // namespace tenon::plan
