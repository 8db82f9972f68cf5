#include "tenon/plan/index_guards.h"

#include <algorithm>
#include <optional>

#include "tenon/optimize/rewrite.h"

namespace tenon::plan {
namespace {

using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

class Finding {
 public:
  Finding(const loop::Program& program, std::vector<IndexGuard>& found) : program_(program), found_(found) {}

  void index(ExprId at, SymInt size) {
    const ExprNode& n = node(at);
    if (std::optional<loop::BufferId> elements = elements_of(at)) add({*elements, 0, size});
    else if (n.fn == Fn::select) selected(n, size);
  }

 private:
  const ExprNode& node(ExprId id) const { return program_.arena[id]; }

  // The buffer whose elements, all of them, an index is.
  std::optional<loop::BufferId> elements_of(ExprId id) const {
    const ExprNode& n = node(id);
    if (n.fn != Fn::load || n.guard != ~0u || n.type != loop::Compute::i64) return std::nullopt;
    const Sizes& sizes = program_.buffers[n.buffer].sizes;
    for (size_t d = 0; d < n.args.size(); ++d)
      if (node(n.args[d]).fn != Fn::index && !(sizes[d] == SymInt(1))) return std::nullopt;
    return n.buffer;
  }

  std::optional<SymInt> number(ExprId id) const {
    const ExprNode& n = node(id);
    if (n.fn == Fn::size) return n.size;
    if (n.fn == Fn::constant && n.type == loop::Compute::i64) return SymInt(n.integer);
    return std::nullopt;
  }

  // index < 0 ? index + size : index, or 0 <= index < bound ? where its row lies : index.
  void selected(const ExprNode& n, SymInt size) {
    std::optional<loop::BufferId> elements = elements_of(n.args[2]);
    if (!elements) return;
    const ExprNode &condition = node(n.args[0]), &then = node(n.args[1]);
    auto compares = [&](const ExprNode& c, Fn fn) { return c.fn == fn && c.args[0] == n.args[2]; };
    auto is_zero = [&](ExprId id) { return number(id) == SymInt(0); };
    if (compares(condition, Fn::lt) && is_zero(condition.args[1]) && then.fn == Fn::add && then.args[0] == n.args[2] &&
        number(then.args[1]) == size) {
      add({*elements, -size, size});
    } else if (condition.fn == Fn::logical_and && compares(node(condition.args[0]), Fn::ge) &&
               is_zero(node(condition.args[0]).args[1]) && compares(node(condition.args[1]), Fn::lt)) {
      if (std::optional<SymInt> bound = number(node(condition.args[1]).args[1])) add({*elements, 0, *bound});
    }
  }

  void add(IndexGuard guard) {
    if (std::find(found_.begin(), found_.end(), guard) == found_.end()) found_.push_back(guard);
  }

  const loop::Program& program_;
  std::vector<IndexGuard>& found_;
};

}  // namespace

std::vector<IndexGuard> index_guards(const loop::Program& program, const loop::Stage& stage) {
  std::vector<IndexGuard> out;
  Finding finding(program, out);
  auto places = [&](std::span<const ExprId> at, loop::BufferId buffer) {
    for (size_t d = 0; d < at.size(); ++d) finding.index(at[d], program.buffers[buffer].sizes[d]);
  };
  optimize::for_each_node(program.arena, optimize::expressions_of(stage), [&](ExprId id) {
    const ExprNode& n = program.arena[id];
    if (n.fn == Fn::load && n.guard == ~0u) places(n.args, n.buffer);
  });
  for (const loop::Store& s : stage.stores)
    if (s.where == ~0u) places(s.at, s.to);
  return out;
}

}  // namespace tenon::plan
