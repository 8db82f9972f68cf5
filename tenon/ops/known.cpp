#include "tenon/ops/known.h"

namespace tenon {
namespace {
thread_local const sym::ShapeEnv* current = nullptr;
}

ShapesScope::ShapesScope(const sym::ShapeEnv* shapes) : previous_(current) { current = shapes; }
ShapesScope::~ShapesScope() { current = previous_; }

std::optional<bool> known(sym::Expr condition) {
  if (condition.is(sym::Kind::boolean)) return condition.boolean_value();
  return current ? current->decide(condition) : sym::decide(condition);
}

SymInt smaller(SymInt a, SymInt b) {
  if (a.is_int() && b.is_int()) return std::min(a.as_int(), b.as_int());
  if (surely(sym::le(a, b))) return a;
  if (surely(sym::le(b, a))) return b;
  return sym::min(a, b);
}

SymInt larger(SymInt a, SymInt b) {
  if (a.is_int() && b.is_int()) return std::max(a.as_int(), b.as_int());
  if (surely(sym::le(a, b))) return b;
  if (surely(sym::le(b, a))) return a;
  return sym::max(a, b);
}

}  // namespace tenon
