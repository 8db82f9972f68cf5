#include "tenon/optimize/step_list.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {

using loop::BufferId;
using loop::Role;

StepList::StepList(loop::Program& program, std::vector<loop::Step>& steps, std::vector<uint32_t>& nodes,
                   std::vector<bool> outside)
    : program_(program),
      steps_(steps),
      nodes_(nodes),
      outside_(std::move(outside)),
      items_(steps.size()),
      readers_(program.buffers.size()),
      writers_(program.buffers.size()),
      first_update_(steps.size()) {
  outside_.resize(program.buffers.size(), false);
  for (size_t i = 0; i < steps_.size(); ++i) {
    enter(i);
    if (items_[i].updates) first_update_ = std::min(first_update_, i);
  }
}

void StepList::enter(size_t i) {
  Item& item = items_[i];
  auto sorted = [&](auto&& visit_all) {
    std::vector<BufferId> roots;
    visit_all([&](BufferId b) { roots.push_back(root_of(program_, b)); });
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  };
  item.reads = sorted([&](auto&& visit) { loop::for_each_read(program_, steps_[i], visit); });
  item.writes = sorted([&](auto&& visit) { loop::for_each_write(program_, steps_[i], visit); });
  for (BufferId b : item.reads) readers_[b].insert(i);
  for (BufferId b : item.writes) writers_[b].insert(i);
  item.updates = std::any_of(item.writes.begin(), item.writes.end(), [&](BufferId b) {
    return program_.buffers[b].role == Role::input || program_.buffers[b].role == Role::state;
  });
  item.fails = false;
  if (auto* stage = std::get_if<loop::Stage>(&steps_[i])) item.fails = may_fail(program_, *stage);
}

void StepList::leave(size_t i) {
  for (BufferId b : items_[i].reads) readers_[b].erase(i);
  for (BufferId b : items_[i].writes) writers_[b].erase(i);
}

bool StepList::is_private(BufferId root) const { return program_.buffers[root].role == Role::arena && !outside_[root]; }

bool StepList::overwritten(size_t reader, size_t after, size_t last) const {
  for (BufferId b : items_[reader].reads) {
    auto next = writers_[b].upper_bound(after);
    if (next != writers_[b].end() && *next <= last) return true;
  }
  return false;
}

void StepList::grow() {
  outside_.resize(program_.buffers.size(), false);
  readers_.resize(program_.buffers.size());
  writers_.resize(program_.buffers.size());
}

void StepList::replace(size_t i, loop::Step step) {
  leave(i);
  steps_[i] = std::move(step);
  enter(i);
}

void StepList::remove(size_t i) {
  leave(i);
  items_[i].alive = false;
  items_[i].reads.clear();
  items_[i].writes.clear();
}

bool StepList::remove_dead(size_t i) {
  if (!items_[i].alive || items_[i].fails) return false;
  auto unread = [&](BufferId b) {
    const std::set<size_t>& readers = readers_[b];
    return is_private(b) && (readers.empty() || (readers.size() == 1 && *readers.begin() == i));
  };
  if (auto* stage = std::get_if<loop::Stage>(&steps_[i])) {
    auto dead = [&](const loop::Store& s) { return unread(root_of(program_, s.to)); };
    auto count = static_cast<size_t>(std::count_if(stage->stores.begin(), stage->stores.end(), dead));
    if (count == 0) return false;
    if (count == stage->stores.size()) {
      remove(i);
      return true;
    }
    leave(i);
    std::erase_if(stage->stores, dead);
    drop_unused_accumulators(program_.arena, *stage);
    enter(i);
    return true;
  }
  const loop::Step& step = steps_[i];
  bool pure = !std::holds_alternative<loop::Call>(step) && !std::holds_alternative<loop::Bind>(step) &&
              !std::holds_alternative<loop::Check>(step) && !std::holds_alternative<loop::Control>(step);
  if (!pure || items_[i].writes.empty() ||
      !std::all_of(items_[i].writes.begin(), items_[i].writes.end(), [&](BufferId b) { return unread(b); }))
    return false;
  remove(i);
  return true;
}

void StepList::remove_dead() {
  for (size_t i = steps_.size(); i-- > 0;) remove_dead(i);
}

void StepList::finish() {
  size_t next = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!items_[i].alive) continue;
    if (next != i) {
      steps_[next] = std::move(steps_[i]);
      nodes_[next] = nodes_[i];
    }
    ++next;
  }
  steps_.resize(next);
  nodes_.resize(next);
}

namespace {

/// The lists of a program, numbered so that those within a list follow it, and which of them use each buffer.
class Lists {
 public:
  explicit Lists(loop::Program& program)
      : program_(program), first_(program.buffers.size(), ~size_t{0}), last_(first_.size(), 0) {
    number(program.steps);
  }

  void change(std::vector<loop::Step>& steps, std::vector<uint32_t>& nodes, const std::function<void(StepList&)>& how) {
    for (loop::Step& step : steps)
      if (auto* control = std::get_if<loop::Control>(&step))
        for (loop::Body& body : control->bodies) change(body.steps, body.nodes, how);
    auto [begin, end] = numbers_.at(&steps);
    std::vector<bool> outside(first_.size());
    for (BufferId b = 0; b < outside.size(); ++b)
      outside[b] = first_[b] != ~size_t{0} && (first_[b] < begin || last_[b] >= end);
    StepList list(program_, steps, nodes, std::move(outside));
    how(list);
    list.finish();
  }

 private:
  void number(const std::vector<loop::Step>& steps) {
    size_t mine = next_++;
    auto use = [&](BufferId b) {
      BufferId root = root_of(program_, b);
      first_[root] = std::min(first_[root], mine);
      last_[root] = std::max(last_[root], mine);
    };
    for (const loop::Step& step : steps) {
      if (auto* control = std::get_if<loop::Control>(&step)) {
        for (const loop::Body& body : control->bodies) number(body.steps);
        continue;
      }
      loop::for_each_read(program_, step, use);
      loop::for_each_write(program_, step, use);
    }
    numbers_[&steps] = {mine, next_};
  }

  loop::Program& program_;
  std::vector<size_t> first_, last_;  // by buffer
  std::unordered_map<const std::vector<loop::Step>*, std::pair<size_t, size_t>> numbers_;
  size_t next_ = 0;
};

}  // namespace

void for_each_list(loop::Program& program, const std::function<void(StepList&)>& change) {
  Lists(program).change(program.steps, program.nodes, change);
}

}  // namespace tenon::optimize
