#include "tenon/interp/program_runner.h"

#include <algorithm>
#include <cstring>

#include "tenon/interp/arena.h"
#include "tenon/interp/bind_symbols.h"
#include "tenon/interp/eager.h"
#include "tenon/interp/host.h"
#include "tenon/interp/segments.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/tensor/lent.h"

namespace tenon::interp {

using loop::BufferId;
using loop::no_buffer;
using loop::Role;

namespace {

/// The bytes that a buffer reaches over; 0 where it has no elements.
int64_t reach_bytes(const loop::Buffer& b) {
  int64_t last = 0;
  for (const Sizes* list : {&b.sizes, &b.strides})
    for (SymInt e : *list)
      if (!e.is_int())
        fail(b.name, ": its ", list == &b.sizes ? "sizes" : "strides", " are ", *list,
             ", and no input and no data tell how much that is");
  for (size_t d = 0; d < b.sizes.size(); ++d) {
    if (b.sizes[d].as_int() == 0) return 0;
    if (b.sizes[d].as_int() < 0 || b.strides[d].as_int() < 0)
      fail(b.name, ": expected sizes and strides of at least 0, got sizes ", b.sizes, " and strides ", b.strides);
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
  if (auto offset = value_of(b.offset, symbols)) b.offset = *offset;
  for (SymInt size : b.sizes) require(size.as_int() >= 0, b.name, ": a tensor would have a negative size, ", b.sizes);
  return true;
}

/// Whether every symbol of these is among those.
bool all_in(std::span<const SymInt> list, const Symbols& symbols) {
  for (SymInt e : list)
    if (!e.is_int())
      for (SymInt s : sym::symbols_of(e))
        if (!symbols.contains(s.name())) return false;
  return true;
}
bool any_in(SymInt e, const Symbols& symbols) {
  if (e.is_int()) return false;
  for (SymInt s : sym::symbols_of(e))
    if (symbols.contains(s.name())) return true;
  return false;
}

bool is_resolved(const loop::Buffer& b) {
  auto number = [](SymInt e) { return e.is_int(); };
  return std::all_of(b.sizes.begin(), b.sizes.end(), number) && std::all_of(b.strides.begin(), b.strides.end(), number);
}

TensorMeta meta_of(const loop::Buffer& b) {
  TensorMeta meta;
  meta.dtype = b.dtype;
  meta.sizes = b.sizes;
  meta.strides = b.strides;
  return meta;
}

}  // namespace

ProgramRunner::ProgramRunner(const loop::Program& program)
    : program_(program), segments_(std::make_unique<Segments>(cut(program))) {}

ProgramRunner::~ProgramRunner() = default;

Prepared& ProgramRunner::prepare(Segment& segment, const sym::Bindings& symbols) {
  for (auto it = segment.prepared.begin(); it != segment.prepared.end(); ++it) {
    bool same = true;
    for (size_t i = 0; same && i < segment.depends.size(); ++i)
      same = symbols.find(segment.depends[i]) == it->symbols[i];
    if (!same) continue;
    if (it != segment.prepared.begin()) segment.prepared.splice(segment.prepared.begin(), segment.prepared, it);
    return segment.prepared.front();
  }
  Prepared p;
  Symbols depends;
  for (SymInt symbol : segment.depends) {
    p.symbols.push_back(symbols.find(symbol));
    depends.insert(symbol.name());
  }
  for (BufferId b : segment.uses) {
    loop::Buffer buffer = program_.buffers[b];
    bool lasts = all_in(buffer.sizes, depends) && all_in(buffer.strides, depends);
    if (!lasts || !resolve(buffer, symbols)) buffer = program_.buffers[b];
    else if (buffer.role == Role::output && buffer.view_of == no_buffer) p.outputs.push_back(b);
    segments_->buffers[b] = buffer;
    p.buffers.emplace(b, std::move(buffer));
  }
  std::unordered_set<BufferId> told;
  for (size_t i = 0; i < segment.calls.size(); ++i)
    for (size_t r = 0; r < segment.told[i].size(); ++r)
      if (segment.told[i][r]) told.insert(segment.calls[i]->results[r].id);
  for (BufferId b : segment.views) {
    const loop::Buffer& buffer = p.buffers.at(b);
    if (!is_resolved(buffer)) continue;
    SymInt offset = program_.buffers[b].offset;
    if (!any_in(offset, segments_->changing)) {
      auto value = value_of(offset, symbols);
      if (!value) continue;
      offset = sym::checked_mul(*value, static_cast<int64_t>(item_size(buffer.dtype)));
    } else {
      offset = offset * static_cast<int64_t>(item_size(buffer.dtype));
    }
    if (told.contains(buffer.view_of)) p.views_of_told[buffer.view_of].push_back(p.views.size());
    p.views.push_back({b, buffer.view_of, offset, reach_bytes(buffer)});
  }
  Resolved resolved{program_, segments_->buffers, symbols};
  std::vector<Lifetime> lifetimes;
  for (size_t i = 0; i < segment.born.size(); ++i) {
    p.extents.push_back(reach_bytes(p.buffers.at(segment.born[i])));
    lifetimes.push_back({static_cast<size_t>(p.extents[i]), segment.first[i], segment.last[i]});
  }
  for (size_t i = 0; i < segment.steps.size(); ++i) {
    const loop::Step& step = segment.steps[i];
    p.stages.emplace_back();
    p.anchors.emplace_back();
    p.failures.emplace_back();
    if (auto* stage = std::get_if<loop::Stage>(&step)) p.stages.back().emplace(resolved, *stage);
    else if (!std::holds_alternative<loop::Call>(step) && !std::holds_alternative<loop::Bind>(step) &&
             !std::holds_alternative<loop::Check>(step) && !std::holds_alternative<loop::Control>(step)) {
      try {
        p.anchors.back().emplace(resolved, step);
        for (size_t bytes : p.anchors.back()->temporaries()) lifetimes.push_back({bytes, i, i});
      } catch (const Error& e) {
        p.failures.back() = e.what();  // said when its turn comes: checks before it go first
      }
    }
  }
  p.offsets = plan_arena(lifetimes, p.bytes);
  size_t next = segment.born.size();
  for (const std::optional<PreparedAnchor>& anchor : p.anchors) {
    size_t count = anchor ? anchor->temporaries().size() : 0;
    p.temporaries.emplace_back(p.offsets.begin() + static_cast<ptrdiff_t>(next),
                               p.offsets.begin() + static_cast<ptrdiff_t>(next + count));
    next += count;
  }
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

CallArg evaluated_argument(const CallArg& arg, const sym::Bindings& symbols) {
  if (auto* e = arg.get<SymInt>()) return evaluated(*e, symbols);
  if (auto* sizes = arg.get<Sizes>()) {
    Sizes out;
    for (SymInt e : *sizes) out.push_back(e.is_int() ? e : SymInt(sym::evaluate(e, symbols)));
    return out;
  }
  return arg;
}

/// An operator's own messages begin with its name already.
[[noreturn]] void fail_in(const std::string& origin, const std::string& what) {
  size_t equals = origin.rfind(" = ");
  std::string op = equals == origin.npos ? origin : origin.substr(equals + 3);
  bool node = origin.find("::") != origin.npos;  // not the arguments, nor the results
  fail(node ? "node " : "", starts_with(what, op) ? origin.substr(0, origin.size() - op.size()) : origin + ": ", what);
}

/// ", but s0 is 3, s1 is 4"
std::string numbers_in(SymInt condition, const sym::Bindings& symbols) {
  std::string out;
  for (SymInt s : sym::symbols_of(condition))
    if (auto value = symbols.find(s)) out += text(out.empty() ? ", but " : ", ", s, " is ", *value);
  return out;
}

void require_check(bool holds, const loop::Check& check, const sym::Bindings& symbols) {
  if (holds) return;
  fail("an assertion of the program failed: ",
       check.message.empty() ? text(check.condition) : quoted(check.message, 300),
       numbers_in(check.condition, symbols));
}

double number_in(const loop::Buffer& b, std::byte* place) { return scalar_value(borrowed(b, place)); }
int64_t integer_in(const loop::Buffer& b, std::byte* place) { return scalar_integer(borrowed(b, place)); }

}  // namespace

/// One run: where every buffer lies, and what the symbols are.
class ProgramRunner::Run {
 public:
  Run(const loop::Program& program, const Symbols& changing, std::span<const CallArg> inputs, const Options& options)
      : symbols(bind_symbols(program.inputs, program.ranges, inputs)),
        program_(program),
        changing_(changing),
        inputs_(inputs),
        options_(options),
        places_(program.buffers.size(), nullptr),
        extent_(program.buffers.size(), 0),
        held_(program.buffers.size()),
        placed_(program.inputs.size()) {}

  sym::Bindings symbols;

  /// What a run of a body before left is no longer there.
  void forget(const Block& block) {
    for (const auto* list : {&block.views, &block.called})
      for (BufferId b : *list) places_[b] = nullptr;
  }

  void place(Segment& segment, const Prepared& p, bool outermost) {
    if (outermost) place_inputs(segment, p);
    if (!segment.memory || segment.memory->size() < p.bytes) segment.memory = std::make_shared<Storage>(p.bytes);
    std::byte* base = segment.memory->mutable_data();
    for (size_t i = 0; i < segment.born.size(); ++i) {
      places_[segment.born[i]] = base + p.offsets[i];
      extent_[segment.born[i]] = p.extents[i];
    }
    for (BufferId b : p.outputs)
      if (outermost && !places_[b]) {
        const loop::Buffer& buffer = p.buffers.at(b);
        put(b, Tensor(meta_of(buffer), std::make_shared<Storage>(static_cast<size_t>(reach_bytes(buffer)))), true);
      }
    for (const Prepared::View& view : p.views) place_view(view, p);
  }

  void step(const Segment& segment, const Prepared& p, size_t i) {
    const loop::Step& step = segment.steps[i];
    if (p.stages[i]) p.stages[i]->run(places_.data());
    else if (p.anchors[i]) anchor(*p.anchors[i], segment.memory->mutable_data(), p.temporaries[i]);
    else if (!p.failures[i].empty()) fail(p.failures[i]);
    else if (auto* call = std::get_if<loop::Call>(&step)) this->call(*call, *segment.calls[i], segment.told[i], p);
    else if (auto* bind = std::get_if<loop::Bind>(&step)) this->bind(*bind, p);
    else check(std::get<loop::Check>(step), p);
  }

  std::vector<CallArg> finish() {
    for (auto& [own, callers] : write_back_) copy_elements(own, callers);
    std::vector<CallArg> outputs;
    for (const loop::Output& o : program_.outputs) {
      if (o.updates != ~size_t{0}) outputs.push_back(inputs_[o.updates]);
      else if (o.buffer != no_buffer) outputs.emplace_back(held_[o.buffer]);
      else outputs.push_back(evaluated(o.number, symbols));
    }
    return outputs;
  }

 private:
  void anchor(const PreparedAnchor& anchor, std::byte* memory, const std::vector<size_t>& offsets) {
    SmallVector<std::byte*, 4> temporaries;
    for (size_t offset : offsets) temporaries.push_back(memory + offset);
    anchor.run(places_.data(), temporaries.data());
  }

  void put(BufferId b, Tensor t, bool written) {
    extent_[b] = static_cast<int64_t>(t.storage()->size()) -
                 t.meta().offset.as_int() * static_cast<int64_t>(item_size(t.dtype()));
    places_[b] = written ? t.mutable_bytes() : const_cast<std::byte*>(t.bytes());
    held_[b] = std::move(t);
  }

  // The caller's memory is used as it is where it lies as the program expects; else it is laid out anew.
  void place_inputs(const Segment& segment, const Prepared& p) {
    for (size_t i : segment.inputs) {
      const loop::Input& input = program_.inputs[i];
      if (placed_[i]) continue;
      const loop::Buffer& b = p.buffers.at(input.buffer);
      auto* given = inputs_[i].get<Tensor>();
      bool absent = !given || !*given;
      if (absent) require(options_.absent_are_ones, "input ", input.name, ": expected a tensor, ", input.meta);
      if (!is_resolved(b)) continue;  // its size is known later
      placed_[i] = true;
      if (absent) {
        put(input.buffer, laid_out(full(b.sizes, 1.0, kw("dtype", b.dtype)), b), false);
      } else if (given->strides() == b.strides || count(b.sizes) == SymInt(0)) {
        put(input.buffer, *given, input.written);
      } else {
        Tensor own = laid_out(*given, b);
        if (input.written) write_back_.emplace_back(own, *given);
        put(input.buffer, own, true);
      }
    }
  }

  // A view lies within its base, or elsewhere in the caller's storage; anything else would be another tensor's memory.
  void place_view(const Prepared::View& v, const Prepared& p) {
    if (places_[v.buffer]) return;
    if (!places_[v.root]) {  // a call of this segment makes it, or nobody does
      require(v.bytes == 0 || p.views_of_told.contains(v.root), program_.buffers[v.root].name, ": its sizes are ",
              program_.buffers[v.root].sizes, ", and no input and no data tell how much that is");
      return;
    }
    int64_t offset = v.offset.is_int() ? v.offset.as_int() : sym::evaluate(v.offset, symbols);
    int64_t before = held_[v.root] ? held_[v.root].bytes() - held_[v.root].storage()->data() : 0;
    const loop::Buffer& buffer = p.buffers.at(v.buffer);
    require(v.bytes == 0 || (offset >= -before && sym::checked_add(offset, v.bytes) <= extent_[v.root]), buffer.name,
            ": a view of ", buffer.sizes, " with strides ", buffer.strides, " from byte ", offset,
            " reaches beyond its base");
    places_[v.buffer] = places_[v.root] + (v.bytes == 0 ? 0 : offset);
  }

  Tensor tensor(loop::BufferRef b, const Prepared& p) const {
    if (!b) return {};
    loop::Buffer buffer = p.buffers.at(b.id);
    resolve(buffer, symbols);
    if (held_[b.id] && held_[b.id].sizes() == buffer.sizes) return held_[b.id];
    return borrowed(buffer, places_[b.id]);
  }

  void call(const loop::Call& c, const plan::HostCall& host, const std::vector<bool>& told, const Prepared& p) {
    if (has_symbols(host)) require_meta(c, p);
    std::vector<Tensor> inputs, results;
    std::vector<DType> dtypes;
    std::vector<int64_t> params;
    for (loop::BufferRef b : host.inputs) inputs.push_back(tensor(b, p));
    for (loop::BufferRef b : host.results) {
      results.push_back(told[results.size()] ? Tensor() : writable(b, p));
      dtypes.push_back(program_.buffers[b.id].dtype);
    }
    for (const loop::Param& param : host.params) params.push_back(loop::evaluate(param, symbols));
    HostOperands operands{.name = c.name,
                          .function = host_function_of(*c.op),
                          .inputs = inputs,
                          .results = results,
                          .dtypes = dtypes,
                          .params = params,
                          .errors = host.errors,
                          .allocate = [&](size_t i, const Sizes& sizes) { return tell(c, host.results[i], sizes); }};
    if (host.extent) {
      const std::optional<int64_t> extent = value_of(*host.extent, symbols);
      for (size_t i = 0; i < told.size(); ++i)
        require(extent && !told[i], c.name, ": its result is ", program_.buffers[host.results[i].id].sizes,
                ", and no input and no data tell how much that is");
      operands.extent = *extent;
      operands.grain = host.grain.as_int();
    }
    call_host(operands);
    for (size_t i = 0; i < told.size(); ++i)
      if (told[i])
        if (auto views = p.views_of_told.find(host.results[i].id); views != p.views_of_told.end())
          for (size_t view : views->second) place_view(p.views[view], p);
  }

  Tensor writable(loop::BufferRef b, const Prepared& p) const {
    if (held_[b.id]) return held_[b.id];
    loop::Buffer buffer = p.buffers.at(b.id);
    resolve(buffer, symbols);
    auto bytes = static_cast<size_t>(reach_bytes(buffer));
    return Tensor(meta_of(buffer), lent_storage(std::span(places_[b.id], bytes), nullptr));
  }
  bool has_symbols(const plan::HostCall& host) const {
    for (loop::BufferRef b : host.inputs)
      if (b && !is_resolved(program_.buffers[b.id])) return true;
    return false;
  }
  // What the rule demands of sizes that were not known when the program was made.
  void require_meta(const loop::Call& c, const Prepared& p) const {
    if (!c.op->def->meta) return;
    CallArgs args;
    for (const loop::StepArg& arg : c.args)
      args.push_back(evaluated_argument(
          map_tensors<Tensor>(arg, [&](const loop::BufferRef& b) { return tensor(b, p); }), symbols));
    sym::ShapeEnv own;
    ShapesScope scope(&own);
    infer(*c.op, args);
  }

  // Memory for a result whose sizes the call tells.
  Tensor tell(const loop::Call& c, loop::BufferRef b, const Sizes& sizes) {
    loop::Buffer buffer = program_.buffers[b.id];
    require(sizes.size() == buffer.sizes.size(), c.name, ": the data ask for a result of sizes ", sizes,
            ", but the program has ", buffer.sizes);
    sym::Bindings now;  // of the symbols that it has
    for (const Sizes* list : {&buffer.sizes, &buffer.strides})
      for (SymInt e : *list)
        for (SymInt symbol : sym::symbols_of(e))
          if (auto known = symbols.find(symbol); known && known->is_int()) now.set(symbol, known->as_int());
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!buffer.sizes[d].is_symbol()) continue;
      if (!changing_.contains(buffer.sizes[d].name()))
        if (auto known = now.find(buffer.sizes[d]))
          require(*known == sizes[d], buffer.sizes[d], " is ", *known, " by what was told before, the data say ",
                  sizes[d]);
      now.set(buffer.sizes[d], sizes[d].as_int());
    }
    resolve(buffer, now);
    require(sizes == buffer.sizes, c.name, ": the data ask for a result of sizes ", sizes, ", but the program has ",
            buffer.sizes);
    put(b.id, Tensor(meta_of(buffer), std::make_shared<Storage>(static_cast<size_t>(reach_bytes(buffer)))), true);
    return held_[b.id];
  }

  void bind(const loop::Bind& bind, const Prepared& p) {
    const loop::Buffer& b = p.buffers.at(bind.from);
    if (bind.dim < 0 && is_floating(b.dtype)) {
      symbols.set_real(bind.symbol, number_in(b, places_[bind.from]));
      return;
    }
    int64_t value = bind.dim < 0 ? integer_in(b, places_[bind.from])
                                 : held_[bind.from].sizes()[static_cast<size_t>(bind.dim)].as_int();
    if (auto known = symbols.find(bind.symbol); known && !changing_.contains(bind.symbol.name()))
      require(*known == SymInt(value), bind.symbol, " is ", *known, " by what was told before, the data say ", value);
    symbols.set(bind.symbol, value);
  }

  void check(const loop::Check& check, const Prepared& p) const {
    bool holds = check.tensor == no_buffer ? sym::evaluate_bool(check.condition, symbols)
                                           : number_in(p.buffers.at(check.tensor), places_[check.tensor]) != 0;
    require_check(holds, check, symbols);
  }

  const loop::Program& program_;
  const Symbols& changing_;
  std::span<const CallArg> inputs_;
  const Options& options_;
  std::vector<std::byte*> places_;                     // of each buffer; null where there is none yet
  std::vector<int64_t> extent_;                        // bytes that lie behind a root's place
  std::vector<Tensor> held_;                           // inputs, results of calls and outputs, by buffer
  std::vector<bool> placed_;                           // inputs
  std::vector<std::pair<Tensor, Tensor>> write_back_;  // what was laid out anew and written, and the caller's own
};

std::vector<CallArg> ProgramRunner::run(std::span<const CallArg> inputs, const Options& options) {
  expect(inputs.size() == program_.inputs.size(), "a program of ", program_.inputs.size(), " inputs was given ",
         inputs.size());
  install();
  DispatchScope eager(nullptr);
  Run run(program_, segments_->changing, inputs, options);
  check_guards(run);
  run_block(segments_->main, run, options);
  return run.finish();
}

// Conditions on the inputs stand in front; preparing the steps behind them relies on them.
void ProgramRunner::check_guards(const Run& run) const {
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    auto* check = std::get_if<loop::Check>(&program_.steps[i]);
    if (!check || check->tensor != no_buffer) return;
    for (SymInt s : sym::symbols_of(check->condition))
      if (!run.symbols.find(s)) return;
    try {
      require_check(sym::evaluate_bool(check->condition, run.symbols), *check, run.symbols);
    } catch (const Error& e) { fail_in(program_.origins[program_.nodes[i]], e.what()); }
  }
}

void ProgramRunner::run_block(Block& block, Run& run, const Options& options) {
  bool outermost = &block == &segments_->main;
  if (!outermost) run.forget(block);
  for (Segment& segment : block.segments) {
    bool on_state = outermost && &segment == &block.segments.front();
    Prepared& p = prepare(segment, run.symbols);
    std::unique_lock<std::mutex> deriving;
    if (on_state && options.derived) {
      deriving = std::unique_lock(options.derived->mutex);
      segment.memory = options.derived->memory;
    }
    run.place(segment, p, outermost);
    if (deriving) {
      options.derived->memory = segment.memory;
      if (options.derived->version == options.state_version) continue;
    }
    for (size_t i = 0; i < segment.steps.size(); ++i) {
      try {
        if (auto* control = std::get_if<loop::Control>(&segment.steps[i]))
          run_control(*control, segment.control[i], run, options);
        else run.step(segment, p, i);
      } catch (const Error& e) {
        if (on_state) throw;
        fail_in(program_.origins[segment.origins[i]], e.what());
      }
    }
    if (deriving) options.derived->version = options.state_version;
  }
}

void ProgramRunner::run_control(const loop::Control& control, std::vector<Block>& bodies, Run& run,
                                const Options& options) {
  auto value = [&] { return sym::evaluate(control.value, run.symbols); };
  switch (control.kind) {
    case loop::Control::Kind::choose: {
      int64_t which = value();
      expect(which >= 0 && static_cast<size_t>(which) < bodies.size(), "a choice of body ", which, " of ",
             bodies.size());
      return run_block(bodies[static_cast<size_t>(which)], run, options);
    }
    case loop::Control::Kind::repeat:
      for (;;) {
        run_block(bodies[0], run, options);
        if (value() == 0) return;
        run_block(bodies[1], run, options);
      }
    case loop::Control::Kind::counted: {
      int64_t count = value();
      for (int64_t i = 0; i < count; ++i) {
        run.symbols.set(control.symbol, i);
        run_block(bodies[0], run, options);
      }
      return;
    }
  }
  unreachable();
}

}  // namespace tenon::interp
