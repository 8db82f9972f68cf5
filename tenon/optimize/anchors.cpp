#include "tenon/optimize/anchors.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/optimize/index.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {

using loop::BufferId;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;
using loop::Role;

std::optional<Anchor> anchor_of(const loop::Step& step) {
  if (auto* g = std::get_if<loop::Gemm>(&step)) return Anchor{&g->out, &g->b, &g->epilogue, 2, g->packed, g->beta != 0};
  if (auto* c = std::get_if<loop::Convolution>(&step); c && c->part == loop::ConvPart::forward)
    return Anchor{&c->y, &c->w, &c->epilogue, 1, c->packed, false};
  return std::nullopt;
}

std::optional<std::vector<std::optional<size_t>>> dimensions_of(const loop::Program& program,
                                                                const loop::Operand& operand) {
  const loop::Buffer& b = program.buffers[operand.buffer];
  if (!(operand.offset == SymInt(0))) return std::nullopt;
  std::vector<std::optional<size_t>> out(operand.sizes.size());
  size_t found = 0;
  for (size_t j = 0; j < operand.sizes.size(); ++j) {
    if (operand.sizes[j] == SymInt(1)) continue;
    for (size_t d = 0; d < b.sizes.size() && !out[j]; ++d)
      if (b.sizes[d] == operand.sizes[j] && b.strides[d] == operand.strides[j]) out[j] = d;
    if (!out[j]) return std::nullopt;
    ++found;
  }
  auto counts = std::count_if(b.sizes.begin(), b.sizes.end(), [](SymInt e) { return !(e == SymInt(1)); });
  if (static_cast<size_t>(counts) != found) return std::nullopt;
  return out;
}

namespace {

/// The loops that an index of a dimension of this size is made of, row-major: every element once.
std::optional<std::vector<size_t>> walked_by(const loop::Arena& arena, ExprId index, SymInt size, const Sizes& loops) {
  auto f = strided(arena, index, loops.size());
  if (!f || !(f->base == SymInt(0))) return std::nullopt;
  std::vector<size_t> left, out;
  for (size_t k = 0; k < loops.size(); ++k)
    if (!(f->by_loop[k] == SymInt(0)) && !(loops[k] == SymInt(1))) left.push_back(k);
  SymInt step = 1;
  while (!left.empty()) {
    auto next = std::find_if(left.begin(), left.end(), [&](size_t k) { return f->by_loop[k] == step; });
    if (next == left.end()) return std::nullopt;
    out.insert(out.begin(), *next);
    step = step * loops[*next];
    left.erase(next);
  }
  if (!(step == size)) return std::nullopt;
  return out;
}

}  // namespace

std::optional<ResultRead> result_read(loop::Program& program, StepList& list, size_t anchor) {
  auto a = anchor_of(list[anchor]);
  if (!a || a->adds_to_result) return std::nullopt;
  BufferId y = a->out->buffer;
  DType dtype = program.buffers[y].dtype;
  if (program.buffers[y].view_of != loop::no_buffer || !list.is_private(y) || list.writers(y).size() != 1 ||
      list.readers(y).size() != 1 || (dtype != DType::f32 && dtype != DType::f64))
    return std::nullopt;
  ResultRead out;
  out.anchor = anchor;
  out.reader = *list.readers(y).begin();
  const loop::Stage* stage = list.stage(out.reader);
  auto dims = dimensions_of(program, *a->out);
  if (!stage || !dims || out.reader < anchor || !(*dims)[a->channel]) return std::nullopt;
  size_t loads = 0;
  for_each_node(program.arena, expressions_of(*stage), [&](ExprId id) {
    if (program.arena[id].fn != Fn::load || root_of(program, program.arena[id].buffer) != y) return;
    ++loads;
    out.load = id;
  });
  const ExprNode load = program.arena[out.load];
  const Sizes loops = loops_of(*stage);
  if (loads != 1 || load.guard != ~0u || program.buffers[load.buffer].dtype != dtype) return std::nullopt;
  auto at = root_index(program, load.buffer, load.args, loops);
  if (!at) return std::nullopt;
  std::vector<bool> taken(loops.size(), false);
  for (size_t j = 0; j < dims->size(); ++j) {
    out.loops.emplace_back();
    if (!(*dims)[j]) continue;
    auto walked = walked_by(program.arena, (*at)[*(*dims)[j]], a->out->sizes[j], loops);
    if (!walked) return std::nullopt;
    for (size_t k : *walked) {
      if (taken[k]) return std::nullopt;
      taken[k] = true;
    }
    out.loops.back() = std::move(*walked);
  }
  out.channels = a->channel;
  return out;
}

bool is_epilogue(loop::Program& program, StepList& list, size_t step) {
  const loop::Stage* stage = list.stage(step);
  if (!stage || !stage->accumulators.empty() || stage->stores.size() != 1) return false;
  std::optional<ResultRead> read;
  for (BufferId b : list.reads(step))
    if (!read && list.writers(b).size() == 1 && *list.writers(b).begin() < step)
      read = result_read(program, list, *list.writers(b).begin());
  if (!read || read->reader != step) return false;
  // Whether a node is made of the result, once each; what else it is made of must be fixed, but for one residual.
  const loop::Arena& arena = program.arena;
  std::unordered_map<ExprId, bool> of_result, changing;  // changing: made of what is not fixed
  ExprId value = stage->stores[0].value;
  bool possible = true;
  for_each_node(arena, std::span(&value, 1), [&](ExprId id) {
    const ExprNode& n = arena[id];
    size_t made = 0;
    bool changes = n.fn == Fn::load && !is_fixed(program, n.buffer);
    for (ExprId arg : n.args) {
      made += of_result.at(arg);
      changes = changes || changing.at(arg);
    }
    of_result[id] = id == read->load || made > 0;
    changing[id] = changes;
    if (n.fn == Fn::load && n.guard != ~0u) possible = false;
    if (made == 0) return;
    switch (n.fn) {
      case Fn::cast:
      case Fn::neg: break;
      case Fn::add:
      case Fn::sub: possible = possible && made == 1; break;
      case Fn::mul:
      case Fn::div: possible = possible && made == 1 && !changing.at(n.args[of_result.at(n.args[0]) ? 1 : 0]); break;
      case Fn::max: {
        const ExprNode& other = arena[n.args[of_result.at(n.args[0]) ? 1 : 0]];
        possible = possible && made == 1 && id == value && other.fn == Fn::constant && other.real == 0;
        break;
      }
      default: possible = false;
    }
  });
  size_t residuals = 0;
  for (BufferId b : list.reads(step)) residuals += !is_fixed(program, b) && list.writers(b).count(read->anchor) == 0;
  return possible && residuals <= 1;
}

bool is_fixed(const loop::Program& program, BufferId buffer) {
  auto numbers = [](const Sizes& sizes) {
    return std::all_of(sizes.begin(), sizes.end(), [](SymInt e) { return e.is_int(); });
  };
  const loop::Buffer& b = program.buffers[buffer];
  const loop::Buffer& root = program.buffers[root_of(program, buffer)];
  bool given = root.role == Role::derived || (root.role == Role::state && !program.inputs[root.slot].written);
  return given && numbers(b.sizes) && numbers(b.strides) && b.offset.is_int();
}

BufferId add_derived(loop::Program& program, std::string name, DType dtype, const Sizes& sizes) {
  program.buffers.push_back({.dtype = dtype,
                             .sizes = sizes,
                             .strides = contiguous_strides(sizes),
                             .role = Role::derived,
                             .name = std::move(name)});
  return static_cast<BufferId>(program.buffers.size() - 1);
}

void settle_derived(loop::Program& program) {
  std::vector<bool> read(program.buffers.size(), false);
  for (const loop::Step& step : program.steps)
    loop::for_each_read(program, step, [&](BufferId b) { read[root_of(program, b)] = true; });
  for (BufferId b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].role == Role::derived && !read[root_of(program, b)]) program.buffers[b].role = Role::arena;

  for (const loop::Output& out : program.outputs)
    if (out.buffer != loop::no_buffer) read[root_of(program, out.buffer)] = true;
  std::vector<loop::Step> wanted;
  for (; !program.on_state.empty(); program.on_state.pop_back()) {
    bool is_read = false;
    loop::for_each_write(program, program.on_state.back(),
                         [&](BufferId b) { is_read = is_read || read[root_of(program, b)]; });
    if (!is_read) continue;
    loop::for_each_read(program, program.on_state.back(), [&](BufferId b) { read[root_of(program, b)] = true; });
    wanted.push_back(std::move(program.on_state.back()));
  }
  program.on_state.assign(std::make_move_iterator(wanted.rbegin()), std::make_move_iterator(wanted.rend()));
}

}  // namespace tenon::optimize
