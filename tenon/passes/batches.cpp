#include "tenon/passes/batches.h"

#include "tenon/ops/structural.h"

namespace tenon {
namespace {

// Which vmap an entry or an exit belongs to: 1 is the outermost.
int64_t level_of(const Node& node) {
  size_t at = node.op == &batch_entry.op() ? 2 : 1;
  auto* level = at < node.args.size() ? node.args[at].get<SymInt>() : nullptr;
  require(level && level->is_int(), node.op->target, ": expected a level as argument ", at);
  return level->as_int();
}

}  // namespace

bool Batch::varies(const Arg& arg) const {
  bool found = false;
  for_each_tensor(arg, [&](const Value& v) { found = found || (v && varying.contains(v.id)); });
  if (auto* items = arg.get<Arg::Items>())
    for (const Arg& item : *items) found = found || varies(item);
  return found;
}

GraphBody Batch::sample(const GraphBody& from, std::vector<Value>& captured) const {
  GraphBody out;
  out.values = from.values;
  out.shapes = from.shapes;
  out.names = from.names;
  out.unknown_ops = from.unknown_ops;
  for (const Node* entry : entries) for_each_result(*entry, [&](Value v) { out.inputs.emplace_back(v); });
  std::unordered_set<ValueId> seen;
  for (const Node* node : nodes) {
    for_each_input(*node, [&](Value v) {
      if (!v || varying.contains(v.id) || from.info(v).type != ValueType::tensor || !seen.insert(v.id).second) return;
      captured.push_back(v);
      out.inputs.emplace_back(v);
    });
    out.nodes.push_back(*node);
  }
  for (const Node* exit : exits)
    if (varies(exit->args.at(0))) out.outputs.push_back(exit->args[0]);
  return out;
}

bool BatchReader::ends_before(const Node& node) const {
  if (!reading() || batch_.exits.empty()) return false;
  bool another = node.op == &batch_entry.op() && level_of(node) == level_of(*batch_.entries[0]);
  bool uses = false;
  for_each_input(node, [&](Value v) { uses = uses || (v && left_.contains(v.id)); });
  return another || uses;
}

bool BatchReader::takes(const Node& node) {
  if (node.op == &batch_begin.op() || node.op == &batch_end.op() || node.op == &batch_setup.op()) return true;
  bool entry = node.op == &batch_entry.op(), exit = node.op == &batch_exit.op();
  if (!reading()) {
    require(!exit, node.op->target, ": a batch ends that did not begin");
    if (!entry) return false;
  }
  if (entry && (!reading() || level_of(node) == level_of(*batch_.entries[0]))) {
    batch_.entries.push_back(&node);
    for_each_result(node, [&](Value v) { batch_.varying.insert(v.id); });
    return true;
  }
  if (exit && level_of(node) == level_of(*batch_.entries[0])) {
    batch_.exits.push_back(&node);
    for_each_result(node, [&](Value v) { left_.insert(v.id); });
    return true;
  }
  bool within = entry || exit;  // of a batch within
  for (const Arg& arg : node.args) within = within || batch_.varies(arg);
  if (!within) return false;
  batch_.nodes.push_back(&node);
  for_each_result(node, [&](Value v) { batch_.varying.insert(v.id); });
  return true;
}

Batch BatchReader::take() {
  left_.clear();
  return std::exchange(batch_, {});
}

}  // namespace tenon
