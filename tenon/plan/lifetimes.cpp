#include "tenon/plan/lifetimes.h"

namespace tenon::plan {

std::vector<Life> lifetimes(const loop::Program& program) {
  std::vector<Life> lives(program.buffers.size());
  auto root = [&](loop::BufferId b) {
    return program.buffers[b].view_of == loop::no_buffer ? b : program.buffers[b].view_of;
  };
  auto walk = [&](const std::vector<loop::Step>& steps, bool on_state) {
    for (uint32_t i = 0; i < steps.size(); ++i) {
      auto use = [&](loop::BufferId b) -> Life& {
        Life& life = lives[root(b)];
        if (!life.used()) life.first = i;
        life.last = i;
        life.on_state = life.on_state || on_state;
        return life;
      };
      loop::for_each_write(program, steps[i], [&](loop::BufferId b) {
        bool known = lives[root(b)].used();
        Life& life = use(b);
        if (!known) life.by_call = std::holds_alternative<loop::Call>(steps[i]);
      });
      loop::for_each_read(program, steps[i], use);
    }
  };
  walk(program.on_state, true);
  walk(program.steps, false);
  return lives;
}

}  // namespace tenon::plan
