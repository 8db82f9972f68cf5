#include "tenon/trace/retrace.h"

#include <optional>

#include "tenon/ops/conversion.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/sym/evaluate.h"

namespace tenon {
namespace {

/// The dimensions of a dense tensor from the outermost in memory to the innermost, those of size 1 left out.
std::optional<std::vector<size_t>> memory_order(const TensorMeta& meta) {
  std::vector<size_t> order;
  SymInt expected = 1;
  std::vector<bool> taken(meta.rank());
  for (size_t d = 0; d < meta.rank(); ++d) taken[d] = meta.sizes[d] == SymInt(1);
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t d = meta.rank(); d-- > 0 && !progress;) {
      if (taken[d] || !(meta.strides[d] == expected)) continue;
      taken[d] = progress = true;
      expected = expected * meta.sizes[d];
      order.insert(order.begin(), d);
    }
  }
  for (bool t : taken)
    if (!t) return std::nullopt;
  return order;
}

/// The same elements, laid out in the order of memory that was promised.
Tensor laid_out(const Tensor& t, const std::vector<size_t>& order) {
  Sizes outer, back(t.rank(), SymInt(0));
  std::vector<bool> named(t.rank());
  for (size_t d : order) named[d] = true;
  for (size_t d = 0; d < t.rank(); ++d)
    if (!named[d]) outer.push_back(static_cast<int64_t>(d));
  for (size_t d : order) outer.push_back(static_cast<int64_t>(d));
  for (size_t i = 0; i < outer.size(); ++i) back[static_cast<size_t>(outer[i].as_int())] = static_cast<int64_t>(i);
  return permute(clone(permute(t, outer), MemoryFormat::contiguous), back);
}

void substitute(Arg& arg, const std::vector<sym::Replacement>& same) {
  if (auto* number = arg.get<SymInt>()) arg = sym::substitute(*number, same);
  else if (auto* sizes = arg.get<Sizes>())
    for (SymInt& size : *sizes) size = sym::substitute(size, same);
  else if (auto* items = arg.get<Arg::Items>())
    for (Arg& item : *items) substitute(item, same);
  else if (auto* mapping = arg.get<Arg::Mapping>())
    for (Arg& item : mapping->values) substitute(item, same);
}

/// A result of the node in the old graph, and what was made of it in the new one.
struct Redone {
  Value old, made;
};

std::vector<Redone> pair_up(const Node& node, const CallResults& results, Tracer& tracer) {
  std::vector<Redone> out;
  for (size_t i = 0; i < node.results.size(); ++i) {
    std::vector<Value> made;
    for_each_tensor(results[i], [&](const Tensor& t) { made.push_back(tracer.value(t)); });
    size_t next = 0;
    for_each_tensor(node.results[i], [&](const Value& v) {
      if (v && next < made.size()) out.push_back({v, made[next++]});
    });
  }
  return out;
}

/// Sizes that only a run can tell were traced anew; they go by the names that the node's results gave them.
void keep_symbols(const std::vector<Redone>& results, const Replay& replay, Tracer& tracer, NodeId first) {
  const sym::Ranges& old = replay.from().shapes.ranges;
  std::vector<sym::Replacement> same;
  for (const Redone& r : results) {
    const Sizes &made = tracer.graph().info(r.made).meta.sizes, &promised = replay.from().info(r.old).meta.sizes;
    for (size_t d = 0; d < std::min(made.size(), promised.size()); ++d)
      if (made[d].is_symbol() && !(made[d] == promised[d]) && !old.find(made[d]))
        same.emplace_back(made[d], promised[d]);
  }
  if (same.empty()) return;
  GraphBody& graph = tracer.graph();
  for (ValueInfo& info : graph.values) {
    if (info.producer == no_id || info.producer < first) continue;
    for (Sizes* list : {&info.meta.sizes, &info.meta.strides})
      for (SymInt& e : *list) e = sym::substitute(e, same);
    info.meta.offset = sym::substitute(info.meta.offset, same);
    info.expr = sym::substitute(info.expr, same);
  }
  for (size_t i = first; i < graph.nodes.size(); ++i)
    for (Arg& arg : graph.nodes[i].args) substitute(arg, same);
}

}  // namespace

void retrace(const Node& node, Replay& replay, Tracer& tracer, Dispatcher& dispatcher) {
  CallArgs args;
  for (const Arg& a : node.args) args.push_back(tracer.call_arg(replay.moved(a)));
  GradMode grad(node.grad_enabled);
  tracer.metadata = node.origin.metadata;
  auto first = static_cast<NodeId>(tracer.graph().nodes.size());  // of the nodes made for it
  tracer.phase = node.phase;
  CallResults results = dispatcher.call(*node.op, std::move(args));
  tracer.metadata = {};
  expect(results.size() == node.results.size(), node.op->name(), " gave ", results.size(),
         " results where its node has ", node.results.size());
  std::vector<Redone> redone = pair_up(node, results, tracer);
  keep_symbols(redone, replay, tracer, first);
  for (auto [old, made] : redone) {
    replay.map[old.id] = made;
    // What follows was traced with the strides of the node's own results: they are promised on, and kept where they
    // matter.
    const TensorMeta& promised = replay.from().info(old).meta;
    const ValueInfo& info = tracer.graph().info(made);
    if (info.producer < first || info.producer == no_id || info.meta.sizes != promised.sizes) continue;
    auto wanted = memory_order(promised), got = memory_order(info.meta);
    if (wanted && got && *wanted != *got) {
      DispatchScope scope(&dispatcher);
      replay.map[old.id] = made = tracer.value(laid_out(tracer.tensor(made), *wanted));
    }
    tracer.graph().info(made).meta.strides = promised.strides;
  }
}

}  // namespace tenon
