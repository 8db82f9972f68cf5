#include "tenon/passes/batches.h"

#include <unordered_map>

#include "tenon/ops/structural.h"

namespace tenon {
bool BatchReader::is_entry(const Op& op) const {
  if (what_ == Of::samples) return &op == &batch_entry.op();
  return &op == &dual_entry.op() || &op == &dual_entry_aten.op();
}
bool BatchReader::is_exit(const Op& op) const {
  if (what_ == Of::samples) return &op == &batch_exit.op();
  return &op == &dual_exit.op() || &op == &dual_exit_aten.op();
}
bool BatchReader::is_mark(const Op& op) const {
  if (what_ == Of::samples) return &op == &batch_begin.op() || &op == &batch_end.op() || &op == &batch_setup.op();
  return &op == &level_begin.op() || &op == &level_end.op() || &op == &dual_begin.op() || &op == &dual_end.op();
}

// Which vmap an entry or an exit belongs to: 1 is the outermost.
int64_t BatchReader::level_of(const Node& node) const {
  if (what_ == Of::directions) return 0;
  size_t at = is_entry(*node.op) ? 2 : 1;
  auto* level = at < node.args.size() ? node.args[at].get<SymInt>() : nullptr;
  require(level && level->is_int(), node.op->target, ": expected a level as argument ", at);
  return level->as_int();
}

bool Batch::varies(const Arg& arg) const {
  bool found = false;
  for_each_tensor(arg, [&](const Value& v) { found = found || (v && varying.contains(v.id)); });
  if (auto* items = arg.get<Arg::Items>())
    for (const Arg& item : *items) found = found || varies(item);
  if (auto* mapping = arg.get<Arg::Mapping>())
    for (const Arg& item : mapping->values) found = found || varies(item);
  return found;
}

namespace {

/// A part of a graph as a graph of its own: only the values it speaks of, so that many small parts cost no more than
/// one large.
class Part {
 public:
  Part(const GraphBody& from, GraphBody& out) : from_(from), out_(out) {}

  Value local(Value v) {
    auto [at, fresh] = known_.try_emplace(v.id);
    if (fresh) at->second = add_value(out_, from_.info(v));
    return at->second;
  }
  Arg local(const Arg& arg) {
    if (auto* items = arg.get<Arg::Items>()) {
      Arg::Items out;
      for (const Arg& item : *items) out.push_back(local(item));
      return out;
    }
    if (auto* mapping = arg.get<Arg::Mapping>()) {
      Arg::Mapping out{mapping->keys, {}};
      for (const Arg& item : mapping->values) out.values.push_back(local(item));
      return out;
    }
    return map_tensors<Value>(arg, [&](const Value& v) { return v ? local(v) : v; });
  }

 private:
  const GraphBody& from_;
  GraphBody& out_;
  std::unordered_map<ValueId, Value> known_;
};

template <class Visit>
void for_each_within(const Arg& arg, Visit&& visit) {
  for_each_tensor(arg, [&](const Value& v) {
    if (v) visit(v);
  });
  if (auto* items = arg.get<Arg::Items>())
    for (const Arg& item : *items) for_each_within(item, visit);
  if (auto* mapping = arg.get<Arg::Mapping>())
    for (const Arg& item : mapping->values) for_each_within(item, visit);
}

}  // namespace

GraphBody Batch::sample(const GraphBody& from, std::vector<Value>& captured) const {
  GraphBody out;
  out.shapes = from.shapes;
  out.unknown_ops = from.unknown_ops;
  Part part(from, out);
  for (const Node* entry : entries) for_each_result(*entry, [&](Value v) { out.inputs.emplace_back(part.local(v)); });
  std::unordered_set<ValueId> seen;
  for (const Node* node : nodes) {
    for (const Arg& arg : node->args)
      for_each_within(arg, [&](Value v) {
        if (varying.contains(v.id) || from.info(v).type != ValueType::tensor || !seen.insert(v.id).second) return;
        captured.push_back(v);
        out.inputs.emplace_back(part.local(v));
      });
    Node copy = *node;
    for (Arg& arg : copy.args) arg = part.local(arg);
    for (Arg& result : copy.results) result = part.local(result);
    add_node(out, std::move(copy));
  }
  for (const Node* exit : exits)
    if (varies(exit->args.at(0))) out.outputs.push_back(part.local(exit->args[0]));
  return out;
}

bool BatchReader::ends_before(const Node& node) const {
  if (!reading() || batch_.exits.empty() || node.op == &unwrapped_for_grad.op()) return false;
  bool another = is_entry(*node.op) && level_of(node) == level_of(*batch_.entries[0]);
  bool uses = false;
  for_each_input(node, [&](Value v) { uses = uses || (v && left_.contains(v.id)); });
  return another || uses;
}

bool BatchReader::takes(const Node& node) {
  if (is_mark(*node.op)) return true;
  bool entry = is_entry(*node.op), exit = is_exit(*node.op);
  if (entry || exit || node.op == &unwrapped_for_grad.op())
    require(node.args.size() == node.op->schema.args.size(), node.op->target, ": expected ",
            node.op->schema.args.size(), " arguments, got ", node.args.size());
  if (reading() && what_ == Of::directions && node.op == &unwrapped_for_grad.op()) {
    exit = batch_.varies(node.args.at(0));
    bool given = false;
    for_each_input(node, [&](Value v) { given = given || left_.contains(v.id); });
    if (given) {
      batch_.passed.push_back(&node);
      for_each_result(node, [&](Value v) { left_.insert(v.id); });
      return true;
    }
  }
  if (!reading()) {
    require(!exit, node.op->target, ": what it ends did not begin");
    if (!entry) return false;
  }
  if (entry && (!reading() || level_of(node) == level_of(*batch_.entries[0]))) {
    if (batch_.varies(node.args.at(0)))
      fail_unsupported(text(node.op->target, " within another one is not supported yet"));
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
