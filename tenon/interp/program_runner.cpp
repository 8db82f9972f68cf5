#include "tenon/interp/program_runner.h"

#include <algorithm>
#include <cstring>

#include "tenon/interp/anchors.h"
#include "tenon/interp/arena.h"
#include "tenon/interp/bind_symbols.h"
#include "tenon/interp/eager.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"

namespace tenon::interp {

using loop::BufferId;
using loop::no_buffer;
using loop::Role;

/// Steps between two places where data tells a size.
struct ProgramRunner::Segment {
  std::span<const loop::Step> steps;
  const uint32_t* origins = nullptr;  // of each step; null in on_state
  std::vector<BufferId> born;         // arena buffers first written here whose size is known by then
  std::vector<size_t> first, last;    // of each of those: the steps of its life, within this segment
  std::list<Prepared> prepared;       // the most recent first
  std::unique_ptr<Storage> memory;    // of its arena buffers
};

/// A segment made ready for one combination of sizes.
struct ProgramRunner::Prepared {
  std::vector<std::pair<sym::Expr, sym::Expr>> symbols;
  std::vector<loop::Buffer> buffers;  // with numbers for sizes, as far as they are known
  std::vector<std::optional<CompiledStage>> stages;
  std::vector<std::optional<loop::Step>> anchors;
  std::vector<size_t> offsets;  // of `born`, in the segment's memory
  size_t bytes = 0;
};

namespace {

BufferId root_of(const loop::Program& program, BufferId b) {
  return program.buffers[b].view_of == no_buffer ? b : program.buffers[b].view_of;
}

/// The bytes that a buffer reaches over; 0 where it has no elements.
int64_t reach_bytes(const loop::Buffer& b) {
  int64_t last = 0;
  for (size_t d = 0; d < b.sizes.size(); ++d) {
    if (b.sizes[d].as_int() == 0) return 0;
    last = sym::checked_add(last, sym::checked_mul(b.sizes[d].as_int() - 1, b.strides[d].as_int()));
  }
  return sym::checked_mul(sym::checked_add(last, 1), static_cast<int64_t>(item_size(b.dtype)));
}

std::optional<int64_t> value_of(SymInt e, const sym::Bindings& symbols) {
  if (e.is_int()) return e.as_int();
  for (SymInt s : sym::symbols_of(e))
    if (!symbols.find(s)) return std::nullopt;
  return sym::evaluate(e, symbols);
}

bool resolve(loop::Buffer& b, const sym::Bindings& symbols) {
  for (Sizes* list : {&b.sizes, &b.strides})
    for (SymInt& e : *list) {
      auto value = value_of(e, symbols);
      if (!value) return false;
      e = *value;
    }
  auto offset = value_of(b.offset, symbols);
  if (offset) b.offset = *offset;
  for (SymInt size : b.sizes) require(size.as_int() >= 0, b.name, ": a tensor would have a negative size, ", b.sizes);
  return offset.has_value();
}

bool is_resolved(const loop::Buffer& b) {
  auto number = [](SymInt e) { return e.is_int(); };
  return std::all_of(b.sizes.begin(), b.sizes.end(), number) &&
         std::all_of(b.strides.begin(), b.strides.end(), number) && b.offset.is_int();
}

TensorMeta meta_of(const loop::Buffer& b) {
  TensorMeta meta;
  meta.dtype = b.dtype;
  meta.sizes = b.sizes;
  meta.strides = b.strides;
  return meta;
}

}  // namespace

/// The state of one run.
struct ProgramRunner::Running {
  std::span<const CallArg> inputs;
  sym::Bindings symbols;
  std::vector<std::byte*> places;  // of each buffer; null where there is none yet
  std::vector<int64_t> extent;     // bytes that lie behind a root's place
  std::vector<Tensor> held;        // inputs laid out anew, results of calls, outputs; by root buffer
};

ProgramRunner::ProgramRunner(const loop::Program& program) : program_(program) {
  auto add = [&](std::span<const loop::Step> steps, const uint32_t* origins) {
    Segment s;
    s.steps = steps;
    s.origins = origins;
    segments_.push_back(std::move(s));
  };
  add(program.on_state, nullptr);
  size_t begin = 0;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    bool ends = std::holds_alternative<loop::Bind>(program.steps[i]) &&
                (i + 1 == program.steps.size() || !std::holds_alternative<loop::Bind>(program.steps[i + 1]));
    if (!ends) continue;
    add(std::span(program.steps).subspan(begin, i + 1 - begin), program.nodes.data() + begin);
    begin = i + 1;
  }
  add(std::span(program.steps).subspan(begin), program.nodes.data() + begin);

  // Where each root is first written and last used, by segment and step.
  struct Life {
    size_t segment = ~size_t{0}, first = 0, last_segment = 0, last = 0;
    bool by_call = false;
  };
  std::vector<Life> lives(program.buffers.size());
  for (size_t s = 0; s < segments_.size(); ++s)
    for (size_t i = 0; i < segments_[s].steps.size(); ++i) {
      auto use = [&](BufferId b) {
        Life& life = lives[root_of(program, b)];
        life.last_segment = s;
        life.last = i;
      };
      const loop::Step& step = segments_[s].steps[i];
      loop::for_each_read(program, step, use);
      loop::for_each_write(program, step, [&](BufferId b) {
        Life& life = lives[root_of(program, b)];
        if (life.segment == ~size_t{0}) {
          life.segment = s;
          life.first = i;
          life.by_call = std::holds_alternative<loop::Call>(step);
        }
        use(b);
      });
    }
  for (BufferId b = 0; b < program.buffers.size(); ++b) {
    const Life& life = lives[b];
    const loop::Buffer& buffer = program.buffers[b];
    bool ours = buffer.role == Role::arena || buffer.role == Role::derived;
    if (!ours || buffer.view_of != no_buffer || life.segment == ~size_t{0} || life.by_call) continue;
    Segment& segment = segments_[life.segment];
    bool stays = life.last_segment != life.segment || buffer.role == Role::derived;
    segment.born.push_back(b);
    segment.first.push_back(life.first);
    segment.last.push_back(stays ? segment.steps.size() : life.last);
  }
}

ProgramRunner::~ProgramRunner() = default;

ProgramRunner::Prepared& ProgramRunner::prepare(Segment& segment, const Running& run) {
  for (auto it = segment.prepared.begin(); it != segment.prepared.end(); ++it)
    if (it->symbols == run.symbols.values()) {
      if (it != segment.prepared.begin()) segment.prepared.splice(segment.prepared.begin(), segment.prepared, it);
      return segment.prepared.front();
    }
  Prepared p;
  p.symbols = run.symbols.values();
  p.buffers = program_.buffers;
  for (loop::Buffer& b : p.buffers)
    if (!resolve(b, run.symbols)) b.sizes = program_.buffers[static_cast<size_t>(&b - p.buffers.data())].sizes;
  Resolved resolved{program_, p.buffers, run.symbols};
  for (size_t i = 0; i < segment.steps.size(); ++i) {
    const loop::Step& step = segment.steps[i];
    p.stages.emplace_back();
    p.anchors.emplace_back();
    if (auto* stage = std::get_if<loop::Stage>(&step)) p.stages.back().emplace(resolved, *stage);
    else if (!std::holds_alternative<loop::Call>(step) && !std::holds_alternative<loop::Bind>(step) &&
             !std::holds_alternative<loop::Check>(step))
      p.anchors.back() = resolve_anchor(step, resolved);
  }
  std::vector<Lifetime> lifetimes;
  for (size_t i = 0; i < segment.born.size(); ++i)
    lifetimes.push_back(
        {static_cast<size_t>(reach_bytes(p.buffers[segment.born[i]])), segment.first[i], segment.last[i]});
  p.offsets = plan_arena(lifetimes, p.bytes);
  constexpr size_t most = 16;
  segment.prepared.push_front(std::move(p));
  if (segment.prepared.size() > most) segment.prepared.pop_back();
  return segment.prepared.front();
}

namespace {

/// A tensor over memory that somebody else keeps.
Tensor borrowed(const loop::Buffer& b, std::byte* place) {
  auto bytes = static_cast<size_t>(reach_bytes(b));
  return Tensor(meta_of(b), std::make_shared<Storage>(std::span<const std::byte>(place, bytes), nullptr));
}

/// The same elements with these strides, in memory of its own.
Tensor laid_out(const Tensor& t, const loop::Buffer& b) {
  TensorMeta meta = meta_of(b);
  Tensor out(meta, std::make_shared<Storage>(static_cast<size_t>(reach_bytes(b))));
  copy_elements(t, out);
  return out;
}

CallArg evaluated(SymInt e, const sym::Bindings& symbols) {
  if (e.is_int()) return e;
  if (e.is_boolean_typed()) return sym::evaluate_bool(e, symbols);
  if (e.kind() == sym::Kind::real || !e.is_integer_typed()) return sym::evaluate_real(e, symbols);
  return sym::evaluate(e, symbols);
}

CallArg evaluated(const CallArg& arg, const sym::Bindings& symbols) {
  if (auto* e = arg.get<SymInt>()) return evaluated(*e, symbols);
  if (auto* sizes = arg.get<Sizes>()) {
    Sizes out;
    for (SymInt e : *sizes) out.push_back(e.is_int() ? e : SymInt(sym::evaluate(e, symbols)));
    return out;
  }
  return arg;
}

double number_in(const loop::Buffer& b, std::byte* place) { return scalar_value(borrowed(b, place)); }
int64_t integer_in(const loop::Buffer& b, std::byte* place) { return scalar_integer(borrowed(b, place)); }

}  // namespace

std::vector<CallArg> ProgramRunner::run(std::span<const CallArg> inputs, const Options& options) {
  expect(inputs.size() == program_.inputs.size(), "a program of ", program_.inputs.size(), " inputs was given ",
         inputs.size());
  install();
  DispatchScope eager(nullptr);
  Running run;
  run.inputs = inputs;
  run.symbols = bind_symbols(program_.inputs, program_.ranges, inputs);
  run.places.assign(program_.buffers.size(), nullptr);
  run.extent.assign(program_.buffers.size(), 0);
  run.held.resize(program_.buffers.size());
  std::vector<bool> placed(program_.inputs.size());
  std::vector<std::pair<Tensor, Tensor>> write_back;  // what was laid out anew, and the caller's

  auto place = [&](BufferId b, Tensor t, bool written) {
    run.extent[b] = static_cast<int64_t>(t.storage()->size()) -
                    t.meta().offset.as_int() * static_cast<int64_t>(item_size(t.dtype()));
    run.places[b] = written ? t.mutable_bytes() : const_cast<std::byte*>(t.bytes());
    run.held[b] = std::move(t);
  };
  auto place_inputs = [&](const Prepared& p) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const loop::Input& input = program_.inputs[i];
      if (placed[i] || input.buffer == no_buffer) continue;
      const loop::Buffer& b = p.buffers[input.buffer];
      auto* given = inputs[i].get<Tensor>();
      bool absent = !given || !*given;
      if (absent) require(options.absent_are_ones, "input ", input.name, ": expected a tensor, ", input.meta);
      if (!is_resolved(b)) continue;
      placed[i] = true;
      if (absent) {
        place(input.buffer, full(b.sizes, 1.0, kw("dtype", b.dtype)), false);
        run.held[input.buffer] = laid_out(run.held[input.buffer], b);
        place(input.buffer, run.held[input.buffer], false);
      } else if (given->strides() == b.strides || count(b.sizes) == SymInt(0)) {
        place(input.buffer, *given, input.written);
      } else {
        Tensor own = laid_out(*given, b);
        if (input.written) write_back.emplace_back(own, *given);
        place(input.buffer, own, true);
      }
    }
  };
  auto place_segment = [&](Segment& segment, const Prepared& p) {
    if (!segment.memory || segment.memory->size() < p.bytes) segment.memory = std::make_unique<Storage>(p.bytes);
    std::byte* base = segment.memory->mutable_data();
    for (size_t i = 0; i < segment.born.size(); ++i) {
      run.places[segment.born[i]] = base + p.offsets[i];
      run.extent[segment.born[i]] = reach_bytes(p.buffers[segment.born[i]]);
    }
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      const loop::Buffer& buffer = p.buffers[b];
      if (buffer.role != Role::output || buffer.view_of != no_buffer || run.places[b] || !is_resolved(buffer)) continue;
      Tensor out(meta_of(buffer), std::make_shared<Storage>(static_cast<size_t>(reach_bytes(buffer))));
      place(static_cast<BufferId>(b), out, true);
    }
  };
  // A view lies within its base, or behind it in the caller's storage; anything else would be another tensor's memory.
  auto place_views = [&](const Prepared& p) {
    for (size_t b = 0; b < p.buffers.size(); ++b) {
      const loop::Buffer& buffer = p.buffers[b];
      if (buffer.view_of == no_buffer || run.places[b] || !run.places[buffer.view_of] || !is_resolved(buffer)) continue;
      int64_t offset = sym::checked_mul(buffer.offset.as_int(), static_cast<int64_t>(item_size(buffer.dtype)));
      int64_t bytes = reach_bytes(buffer);
      int64_t before = 0;
      if (run.held[buffer.view_of])
        before = run.held[buffer.view_of].bytes() - run.held[buffer.view_of].storage()->data();
      require(bytes == 0 || (offset >= -before && sym::checked_add(offset, bytes) <= run.extent[buffer.view_of]),
              buffer.name, ": a view of ", buffer.sizes, " with strides ", buffer.strides, " from ", buffer.offset,
              " reaches beyond its base");
      run.places[b] = run.places[buffer.view_of] + (bytes == 0 ? 0 : offset);
    }
  };

  auto call = [&](const loop::Call& c, const Prepared& p) {
    CallArgs args;
    for (const loop::StepArg& arg : c.args)
      args.push_back(evaluated(map_tensors<Tensor>(arg,
                                                   [&](const loop::BufferRef& b) -> Tensor {
                                                     if (!b) return {};
                                                     loop::Buffer buffer = p.buffers[b.id];
                                                     resolve(buffer, run.symbols);
                                                     if (run.held[b.id] && run.held[b.id].sizes() == buffer.sizes)
                                                       return run.held[b.id];
                                                     return borrowed(buffer, run.places[b.id]);
                                                   }),
                               run.symbols));
    ArgsView view(*c.op, args);
    CallResults results = c.op->def->kernel(view);
    expect(results.size() == c.results.size(), c.name, " gave ", results.size(), " results where ", c.results.size(),
           " are expected");
    for (size_t i = 0; i < results.size(); ++i) {
      std::vector<Tensor> made;
      if (results[i].is_number()) {
        BufferId id = c.results[i].get<loop::BufferRef>()->id;
        Tensor t = Tensor::empty(program_.buffers[id].dtype, {});
        if (auto* d = results[i].get<double>()) *t.mutable_data<double>() = *d;
        else if (auto* b = results[i].get<bool>()) *t.mutable_data<bool>() = *b;
        else *t.mutable_data<int64_t>() = results[i].get<SymInt>()->as_int();
        made.push_back(t);
      } else {
        for_each_tensor(results[i], [&](const Tensor& t) { made.push_back(t); });
      }
      size_t next = 0;
      for_each_tensor(c.results[i], [&](const loop::BufferRef& b) {
        if (!b) return;
        expect(next < made.size(), c.name, " gave fewer tensors than its node has results");
        Tensor t = made[next++];
        loop::Buffer buffer = program_.buffers[b.id];
        expect(t.dtype() == buffer.dtype && t.rank() == buffer.sizes.size(), c.name, " gave ", t.meta(), " for ",
               buffer.name);
        sym::Bindings told = run.symbols;  // sizes that this very call tells
        for (size_t d = 0; d < t.rank(); ++d)
          if (buffer.sizes[d].is_symbol() && !told.find(buffer.sizes[d]))
            told.set(buffer.sizes[d], t.sizes()[d].as_int());
        resolve(buffer, told);
        expect(t.sizes() == buffer.sizes, c.name, " gave ", t.meta(), " for ", buffer.name, buffer.sizes);
        place(b.id, t.strides() == buffer.strides || t.numel() == SymInt(0) ? t : laid_out(t, buffer), true);
      });
    }
  };

  for (size_t s = 0; s < segments_.size(); ++s) {
    Segment& segment = segments_[s];
    Prepared& p = prepare(segment, run);
    place_inputs(p);
    place_segment(segment, p);
    place_views(p);
    if (s == 0 && !options.state_changed) continue;
    for (size_t i = 0; i < segment.steps.size(); ++i) {
      const loop::Step& step = segment.steps[i];
      try {
        if (p.stages[i]) p.stages[i]->run(run.places.data());
        else if (p.anchors[i]) run_anchor(p.buffers, *p.anchors[i], run.places.data());
        else if (auto* c = std::get_if<loop::Call>(&step)) {
          call(*c, p);
          place_views(p);
        } else if (auto* bind = std::get_if<loop::Bind>(&step)) {
          const loop::Buffer& b = program_.buffers[bind->from];
          if (bind->dim >= 0)
            run.symbols.set(bind->symbol, run.held[bind->from].sizes()[static_cast<size_t>(bind->dim)].as_int());
          else if (is_floating(b.dtype))
            run.symbols.set_real(bind->symbol, number_in(p.buffers[bind->from], run.places[bind->from]));
          else run.symbols.set(bind->symbol, integer_in(p.buffers[bind->from], run.places[bind->from]));
        } else if (auto* check = std::get_if<loop::Check>(&step)) {
          bool holds = check->tensor == no_buffer ? sym::evaluate_bool(check->condition, run.symbols)
                                                  : number_in(p.buffers[check->tensor], run.places[check->tensor]) != 0;
          require(holds, "an assertion of the program failed",
                  check->message.empty() ? text(": ", check->condition) : text(": ", quoted(check->message, 300)));
        }
      } catch (const Error& e) {
        if (!segment.origins) throw;
        const std::string& origin = program_.origins[segment.origins[i]];
        size_t name = origin.rfind(" = ");
        std::string op = name == origin.npos ? origin : origin.substr(name + 3), what = e.what();
        fail("node ", starts_with(what, op) ? origin.substr(0, origin.size() - op.size()) : origin + ": ", what);
      }
    }
  }
  for (auto& [own, callers] : write_back) copy_elements(own, callers);

  std::vector<CallArg> outputs;
  for (const loop::Output& o : program_.outputs) {
    if (o.updates != ~size_t{0}) outputs.push_back(inputs[o.updates]);
    else if (o.buffer != no_buffer) outputs.emplace_back(run.held[o.buffer]);
    else outputs.push_back(evaluated(o.number, run.symbols));
  }
  return outputs;
}

}  // namespace tenon::interp
