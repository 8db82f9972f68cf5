#include "tenon/plan/lifetimes.h"

#include <algorithm>

namespace tenon::plan {

namespace {
// By one that tells its sizes: a function of elements is given memory for as many as its arguments have.
bool made_by_call(const loop::Step& step, loop::BufferId buffer) {
  bool found = false;
  if (auto* call = std::get_if<loop::Call>(&step); call && !call->op->def->host.per_element)
    for (const loop::StepArg& result : call->results)
      for_each_tensor(result, [&](const loop::BufferRef& b) { found = found || b.id == buffer; });
  if (auto* control = std::get_if<loop::Control>(&step))
    for (const loop::Body& body : control->bodies)
      for (const loop::Step& inner : body.steps) found = found || made_by_call(inner, buffer);
  return found;
}
}  // namespace

std::vector<Life> lifetimes(const loop::Program& program, const std::vector<uint32_t>& number) {
  std::vector<Life> lives(program.buffers.size());
  auto root = [&](loop::BufferId b) {
    return program.buffers[b].view_of == loop::no_buffer ? b : program.buffers[b].view_of;
  };
  auto walk = [&](const std::vector<loop::Step>& steps, bool on_state) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      uint32_t now = on_state ? i : number[i];
      auto use = [&](loop::BufferId b) -> Life& {
        Life& life = lives[root(b)];
        life.first = life.used() ? std::min(life.first, now) : now;
        life.last = std::max(life.last, now);
        life.on_state = life.on_state || on_state;
        return life;
      };
      loop::for_each_write(program, steps[i], [&](loop::BufferId b) {
        bool known = lives[root(b)].used();
        Life& life = use(b);
        if (!known) life.by_call = made_by_call(steps[i], b);
      });
      loop::for_each_read(program, steps[i], use);
    }
  };
  walk(program.on_state, true);
  walk(program.steps, false);
  return lives;
}

}  // namespace tenon::plan
