#include "tenon/artifact/derive.h"

#include <algorithm>
#include <map>

#include "runtime/open_tables.h"
#include "tenon/artifact/in_process.h"
#include "tenon/artifact/runtime_tensor.h"

namespace tenon::artifact {

using loop::BufferId;
using loop::Role;

namespace {

/// The steps of on_state as a program of its own: state comes in, what is derived goes out.
struct Deriving {
  loop::Program program;
  std::vector<size_t> inputs;     // of the original program
  std::vector<BufferId> derived;  // by output
};

Deriving deriving(const loop::Program& whole) {
  Deriving out;
  out.program.arena = whole.arena;
  out.program.buffers = whole.buffers;
  out.program.steps = whole.on_state;
  out.program.nodes.assign(whole.on_state.size(), 0);
  out.program.origins = {"on state"};
  std::vector<bool> used(whole.buffers.size());
  auto root = [&](BufferId b) { return whole.buffers[b].view_of == loop::no_buffer ? b : whole.buffers[b].view_of; };
  for (const loop::Step& step : whole.on_state) {
    auto use = [&](BufferId b) { used[root(b)] = true; };
    loop::for_each_read(whole, step, use);
    loop::for_each_write(whole, step, use);
  }
  std::vector<size_t> slot(whole.buffers.size());
  for (BufferId b = 0; b < whole.buffers.size(); ++b) {
    loop::Buffer& buffer = out.program.buffers[b];
    if (!used[b]) continue;
    if (buffer.role == Role::state) {
      slot[b] = out.inputs.size();
      loop::Input input;
      input.name = whole.inputs[buffer.slot].name;
      input.meta.dtype = buffer.dtype;
      input.meta.sizes = buffer.sizes;
      input.meta.strides = buffer.strides;
      input.buffer = b;
      out.inputs.push_back(buffer.slot);
      out.program.inputs.push_back(std::move(input));
      buffer.role = Role::input;
    } else if (buffer.role == Role::derived) {
      slot[b] = out.derived.size();
      out.derived.push_back(b);
      out.program.outputs.push_back({.buffer = b});
      buffer.role = Role::output;
    }
    buffer.slot = slot[b];
  }
  for (loop::Buffer& buffer : out.program.buffers)
    if (buffer.view_of != loop::no_buffer) {
      buffer.role = out.program.buffers[buffer.view_of].role;
      buffer.slot = slot[buffer.view_of];
    }
  return out;
}

/// Of weights that were rounded to half precision: a number beyond its range would be an infinity in results.
void require_in_range(const loop::Program& program, const Deriving& steps, const std::vector<tenon_tensor>& derived) {
  for (const loop::Step& step : program.on_state) {
    auto* pack = std::get_if<loop::Pack>(&step);
    if (!pack) continue;
    const loop::Buffer& from = program.buffers[pack->from.buffer];
    const auto place = std::find(steps.derived.begin(), steps.derived.end(), pack->to);
    const DType dtype = program.buffers[pack->to].dtype;
    if (place == steps.derived.end() || from.dtype != DType::f32 || !is_half(dtype)) continue;
    const tenon_tensor& packed = derived[static_cast<size_t>(place - steps.derived.begin())];
    size_t count = 1;
    for (int d = 0; d < packed.rank; ++d) count *= static_cast<size_t>(packed.sizes[d]);
    const uint16_t infinity = dtype == DType::f16 ? 0x7c00 : 0x7f80;
    const std::span numbers(static_cast<const uint16_t*>(packed.data), count);
    require(std::none_of(numbers.begin(), numbers.end(), [&](uint16_t x) { return (x & 0x7fff) == infinity; }),
            "weights in ", dtype, ": ",
            tenon::quoted(program.buffers[from.view_of == loop::no_buffer ? pack->from.buffer : from.view_of].name),
            " has a number that is too large for it; expected ", dtype == DType::f16 ? "bf16 or f32" : "f32");
  }
}

}  // namespace

void derive(const loop::Program& program, const std::function<Tensor(size_t)>& state,
            std::span<const plan::WeightItem> items, std::span<std::byte> weights) {
  if (program.on_state.empty()) return;
  Deriving steps = deriving(program);
  Execution execution = best_execution();
  InProcess opened = open_in_process(
      plan::make_tables(steps.program, {}, {.interpreted = execution == Execution::interpreted}), {}, execution);
  std::vector<Tensor> held;
  std::vector<tenon_tensor> in, out;
  for (size_t i = 0; i < steps.inputs.size(); ++i) {
    const TensorMeta& wanted = steps.program.inputs[i].meta;
    Tensor given = state(steps.inputs[i]);
    if (given.strides() != wanted.strides && given.numel() != SymInt(0)) {
      Tensor own = Tensor::empty(wanted);
      copy_elements(given, own);
      given = own;
    }
    held.push_back(given);
    in.push_back(as_runtime(given));
  }
  std::map<BufferId, const plan::WeightItem*> places;
  for (const plan::WeightItem& item : items) places.emplace(item.buffer, &item);
  std::vector<std::unique_ptr<Storage>> scratch;
  for (BufferId b : steps.derived) {
    const loop::Buffer& buffer = program.buffers[b];
    TensorMeta meta;
    meta.dtype = buffer.dtype;
    meta.sizes = buffer.sizes;
    meta.strides = buffer.strides;
    tenon_tensor t = as_runtime(meta);
    if (auto found = places.find(b); found != places.end()) t.data = weights.data() + found->second->offset;
    else t.data = scratch.emplace_back(std::make_unique<Storage>(reach_bytes(meta)))->mutable_data();
    out.push_back(t);
  }
  tenon_state* runtime_state = nullptr;
  tenon_session* session = nullptr;
  tenon_status status = tenon_state_create(opened.program, &runtime_state);
  if (status == TENON_OK) status = tenon_session_create(opened.program, &session);
  if (status == TENON_OK)
    status = tenon_session_run(session, runtime_state, in.data(), in.size(), out.data(), out.size());
  std::string message = status == TENON_OK ? "" : tenon_last_error();
  tenon_session_destroy(session);
  tenon_state_destroy(runtime_state);
  tenon_program_close(opened.program);
  require(status == TENON_OK, message);
  require_in_range(program, steps, out);
}

}  // namespace tenon::artifact
