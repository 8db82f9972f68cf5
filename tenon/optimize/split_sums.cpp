#include "tenon/optimize/split_sums.h"

#include <algorithm>

#include "tenon/optimize/index.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::Combine;
using loop::Compute;
using loop::ExprId;
using loop::Fn;
using loop::Stage;

constexpr int64_t long_terms = 2048;  // of a reduction that one kernel does well whatever lies side by side
constexpr int64_t few_results = 64;   // fewer do not keep threads busy
constexpr int64_t worth_sharing = 1 << 16;
constexpr int64_t most_inner = 4096, least_inner = 32, wanted_parts = 8;
constexpr int64_t worth_own_rows = 1 << 15;  // of elements of an image

/// Sizes that only the run tells count as 8: a batch, mostly.
int64_t estimated(std::span<const SymInt> sizes) {
  int64_t n = 1;
  for (SymInt e : sizes) n = std::min<int64_t>(int64_t{1} << 40, n * (e.is_int() ? e.as_int() : 8));
  return n;
}

DType dtype_of(Compute type) {
  return type == Compute::f32 ? DType::f32 : type == Compute::f64 ? DType::f64 : DType::i64;
}

class Sums {
 public:
  explicit Sums(loop::Program& program) : program_(program) {}

  void run(std::vector<loop::Step>& steps, std::vector<uint32_t>& nodes) {
    std::vector<loop::Step> out;
    std::vector<uint32_t> out_nodes;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (auto* control = std::get_if<loop::Control>(&steps[i]))
        for (loop::Body& body : control->bodies) run(body.steps, body.nodes);
      if (auto* stage = std::get_if<Stage>(&steps[i]))
        if (size_t outer = loops_to_keep(*stage)) {
          out.emplace_back(parts(*stage, outer));
          out_nodes.push_back(nodes[i]);
        }
      out.push_back(std::move(steps[i]));
      out_nodes.push_back(nodes[i]);
    }
    steps = std::move(out);
    nodes = std::move(out_nodes);
  }

 private:
  /// How many loops of the reduction the first stage keeps as its own; 0: the stage stays as it is.
  size_t loops_to_keep(const Stage& stage) const {
    for (const loop::Accumulator& a : stage.accumulators) {
      const bool meets = a.combine == Combine::sum || a.combine == Combine::product || a.combine == Combine::min ||
                         a.combine == Combine::max;
      if (!meets || (a.type != Compute::f32 && a.type != Compute::f64 && a.type != Compute::i64)) return 0;
    }
    if (stage.accumulators.empty() || may_fail(program_, stage)) return 0;
    const std::span<const SymInt> reduce(stage.reduce.begin(), stage.reduce.size());
    const int64_t terms = estimated(reduce), points = estimated({stage.domain.begin(), stage.domain.size()});
    if (terms <= long_terms && (points >= few_results || terms * points < worth_sharing)) {
      const bool own_rows = terms * points >= worth_own_rows && reduce.size() > 1 &&
                            estimated(reduce.first(1)) >= wanted_parts && rows_lie_apart(stage);
      return own_rows ? 1 : 0;
    }
    for (size_t outer = 1; outer < reduce.size(); ++outer) {
      const auto inner = reduce.subspan(outer);
      if (!std::all_of(inner.begin(), inner.end(), [](SymInt e) { return e.is_int(); })) continue;
      if (estimated(inner) > most_inner || estimated(reduce.first(outer)) < wanted_parts) continue;
      return estimated(inner) < least_inner ? 0 : outer;
    }
    return 0;
  }

  /// The reduction's outermost loop walks over rows of an image whose channels lie side by side. Threads have rows of
  /// their own in the steps before it; results shared by channels would be read from the other's cache.
  bool rows_lie_apart(const Stage& stage) const {
    const size_t rank = stage.domain.size(), loops = rank + stage.reduce.size();
    std::vector<ExprId> values;
    for (const loop::Accumulator& a : stage.accumulators) values.push_back(a.value);
    bool apart = false;
    for_each_node(program_.arena, values, [&](ExprId id) {
      const loop::ExprNode& node = program_.arena[id];
      if (node.fn != Fn::load) return;
      const auto at = strided(program_, node.buffer, node.args, loops);
      if (!at) return;
      const Sizes& by = at->by_loop;
      const bool contiguous = std::any_of(by.begin(), by.begin() + static_cast<ptrdiff_t>(rank),
                                          [](SymInt step) { return step == SymInt(1); });
      apart =
          apart || (contiguous && std::all_of(by.begin() + static_cast<ptrdiff_t>(rank) + 1, by.end(), [&](SymInt e) {
                      return e.is_int() && by[rank].is_int() && e.as_int() < by[rank].as_int();
                    }));
    });
    return apart;
  }

  /// The first stage; the second one stands where the whole stood.
  Stage parts(Stage& whole, size_t outer) {
    const size_t rank = whole.domain.size(), loops = rank + whole.reduce.size();
    std::vector<ExprId> now;  // the first stage's loops: those it keeps, the domain's, the rest
    for (size_t k = 0; k < loops; ++k) now.push_back(index(k < rank ? k + outer : k < rank + outer ? k - rank : k));
    Stage first;
    for (size_t j = 0; j < outer; ++j) first.domain.push_back(whole.reduce[j]);
    for (SymInt e : whole.domain) first.domain.push_back(e);
    for (size_t j = outer; j < whole.reduce.size(); ++j) first.reduce.push_back(whole.reduce[j]);
    const Sizes rest(std::span<const SymInt>(whole.reduce.begin(), outer));
    for (size_t k = 0; k < whole.accumulators.size(); ++k) {
      loop::Accumulator& a = whole.accumulators[k];
      const BufferId to = add_buffer(dtype_of(a.type), first.domain);
      first.accumulators.push_back({a.combine, with_loops(program_.arena, a.value, now), a.type});
      loop::Store store{.to = to};
      for (size_t d = 0; d < first.domain.size(); ++d) store.at.push_back(index(d));
      store.value = program_.arena.add({.fn = Fn::accumulated, .type = a.type, .integer = static_cast<int64_t>(k)});
      first.stores.push_back(std::move(store));
      loop::ExprNode load{.fn = Fn::load, .type = a.type, .buffer = to};
      for (size_t j = 0; j < outer; ++j) load.args.push_back(index(rank + j));
      for (size_t d = 0; d < rank; ++d) load.args.push_back(index(d));
      a.value = program_.arena.add(std::move(load));
    }
    whole.reduce = rest;
    return first;
  }

  ExprId index(size_t k) {
    return program_.arena.add({.fn = Fn::index, .type = Compute::i64, .integer = static_cast<int64_t>(k)});
  }
  BufferId add_buffer(DType dtype, const Sizes& sizes) {
    const size_t number = program_.buffers.size();
    program_.buffers.push_back({.dtype = dtype,
                                .sizes = sizes,
                                .strides = contiguous_strides(sizes),
                                .role = loop::Role::arena,
                                .name = "part" + std::to_string(number)});
    return static_cast<BufferId>(number);
  }

  loop::Program& program_;
};

}  // namespace

loop::Program split_sums(loop::Program program) {
  Sums(program).run(program.steps, program.nodes);
  return program;
}

}  // namespace tenon::optimize
