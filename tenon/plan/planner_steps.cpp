// Steps: generated kernels, calls of the kernel library and of host functions, binds, checks and control flow.
#include <algorithm>
#include <utility>

#include "tenon/base/error.h"
#include "tenon/optimize/anchors.h"
#include "tenon/plan/chunks.h"
#include "tenon/plan/host.h"
#include "tenon/plan/planner.h"
#include "tenon/tensor/dtype.h"

namespace tenon::plan {

using loop::BufferId;
using loop::no_buffer;
using package::Expr;
using package::Id;
using package::Tables;

void Planner::on_state() {
  if (!options_.updatable) return;
  body_ = Tables::on_state;
  for (now_ = 0; now_ < program_.on_state.size(); ++now_) {
    Made made;
    made.origin = "on state";
    made.step = &program_.on_state[now_];
    Unit unit;
    unit.steps = {now_};
    make(made, unit, program_.on_state);
    execute({&made});
  }
  body_ = Tables::main;
  segment_.reset();
}

Planner::Made Planner::make(const Unit& unit, const std::vector<loop::Step>& steps,
                            const std::vector<uint32_t>& nodes) {
  Made out;
  out.origin = program_.origins.empty() ? "" : program_.origins[nodes[unit.origin]];
  out.step = &steps[unit.steps[0]];
  make(out, unit, steps);
  return out;
}

void Planner::make(Made& out, const Unit& unit, const std::vector<loop::Step>& steps) {
  auto is = [&]<class... T>(std::variant<T...>*) { return (std::holds_alternative<T>(*out.step) || ...); };
  if (auto* stage = std::get_if<loop::Stage>(out.step)) {
    if (unit.steps.size() == 1) out.stage = compile::make_kernel(program_, *stage);
    else {
      compile::RowStages stages{{}, unit.rows, unit.locals};
      for (size_t s : unit.steps) stages.stages.push_back(&std::get<loop::Stage>(steps[s]));
      out.stage = compile::make_kernel(program_, stages);
    }
    bool empty = true;
    for (size_t s : unit.steps) {
      const auto& each = std::get<loop::Stage>(steps[s]);
      for (const IndexGuard& guard : index_guards(program_, each)) out.guards.push_back(guard);
      out.points = out.points + points_of(each);
      empty = empty && std::find(each.domain.begin(), each.domain.end(), SymInt(0)) != each.domain.end();
    }
    if (empty) out.stage->extent = 0;  // 2^40 rows without elements are not walked through
    out.calls = kept(out.stage->kernel)->name;
  } else if (unit.epilogue) {
    out.anchor = library_calls(program_, *out.step);
    out.stage = compile::make_kernel(program_, *unit.epilogue);
    for (const LibraryCall& call : out.anchor->calls) out.calls += call.function + " ";
    out.calls += kept(out.stage->kernel)->name;
    const BufferId result = optimize::anchor_of(*out.step)->out->buffer;
    if (std::find(unit.locals.begin(), unit.locals.end(), result) != unit.locals.end() &&
        unit.epilogue->in_place != no_buffer) {
      out.result = result;
      out.in_place = unit.epilogue->in_place;
    }
  } else if (!is(static_cast<std::variant<loop::Call, loop::Bind, loop::Check, loop::Control>*>(nullptr))) {
    out.anchor = library_calls(program_, *out.step);
    for (const LibraryCall& call : out.anchor->calls) out.calls += call.function + " ";
  }
}

void Planner::execute(const std::vector<const Made*>& batch) {
  const Made& first = *batch[0];
  if (first.anchor) return anchors(body_, batch);
  if (first.stage) {
    Touched touched;
    package::KernelSpec spec = generated(body_, batch, touched);
    describe(touched, name_of(batch));
    return t().kernel(body_, spec, {.name = name_of(batch), .bytes = expr(touched.bytes)});
  }
  if (auto* call = std::get_if<loop::Call>(first.step)) host(body_, *call, first.origin);
  else if (auto* bind = std::get_if<loop::Bind>(first.step)) this->bind(body_, *bind);
  else if (auto* check = std::get_if<loop::Check>(first.step)) this->check(body_, *check);
  else if (auto* control = std::get_if<loop::Control>(first.step)) this->control(body_, *first.step, *control);
}

std::string Planner::name_of(const std::vector<const Made*>& batch) {
  return batch.size() == 1 ? batch[0]->origin : text(batch[0]->origin, " and ", batch.size() - 1, " like it");
}

void Planner::conditions(Id body, SymInt holds, std::string_view message) {
  if (holds == SymInt::boolean(true)) return;
  require(holds != SymInt::boolean(false), message);
  t().check(body, expr(holds), message);
}

SymInt Planner::points_of(const loop::Stage& stage) {
  SymInt points = 1;
  for (const Sizes* sizes : {&stage.domain, &stage.reduce})
    for (SymInt size : *sizes) points = points * size;
  return points;
}

package::KernelSpec Planner::generated(Id body, const std::vector<const Made*>& batch, Touched& touched) {
  package::KernelSpec spec;
  const compile::Kernel* kernel = kept(batch[0]->stage->kernel);
  for (const Made* m : batch) {
    const compile::StageKernel& made = *m->stage;
    for (SymInt c : made.conditions) conditions(body, c, text(m->origin, ": sizes that do not belong together"));
    package::Instance instance;
    if (options_.interpreted) instance.params.emplace_back(reinterpret_cast<int64_t>(kernel));
    for (size_t k = 0; k < made.buffers.size(); ++k) {
      bool written = is_written(made.kernel, k);
      instance.args.push_back(written ? package::written(buffer(made.buffers[k])) : buffer(made.buffers[k]));
      touched.add(made.buffers[k], written, bytes_of(made.buffers[k]));
    }
    for (const loop::Param& p : made.params) instance.params.push_back(symbols_.param(p));
    for (const IndexGuard& guard : m->guards)  // what stays within the kernel cannot be looked at
      if (std::find(made.buffers.begin(), made.buffers.end(), guard.indices) != made.buffers.end())
        spec.guards.push_back({buffer(guard.indices), expr(guard.lo), expr(guard.hi), m->origin});
    instance.extent = expr(made.extent);
    SymInt each = sym::max(sym::floor_div(m->points, sym::max(made.extent, 1)), 1);
    instance.grain = expr(made.serial ? sym::max(made.extent, 1) : fair_grain(made.extent, each, points_per_chunk));
    spec.instances.push_back(std::move(instance));
  }
  spec.function = t().function(options_.interpreted ? interpret_function : kernel->name);
  if (uint64_t bytes = kernel->scratch_bytes()) spec.scratch = Expr(static_cast<int64_t>(bytes));
  touched.function += touched.function.empty() ? kernel->name : " and " + kernel->name;
  return spec;
}

void Planner::describe(const Touched& touched, const std::string& origin) {
  if (!options_.described) return;
  std::vector<std::string> read, written;
  for (const auto& [b, is_written] : touched.buffers)
    (is_written ? written : read).push_back(b == no_buffer ? "a temporary" : program_.buffers[b].name);
  out_.steps.push_back(text(join(written, ", "), " = ", touched.function, "(", join(read, ", "), ")  # ", origin));
}

bool Planner::is_written(const compile::Kernel& kernel, size_t number) {
  for (const compile::Memory& m : kernel.memory)
    if (!m.scratch && m.number == number && m.written) return true;
  return false;
}

SymInt Planner::bytes_of(BufferId b) const {
  const loop::Buffer& buffer = program_.buffers[b];
  return count(buffer.sizes) * SymInt(static_cast<int64_t>(item_size(buffer.dtype)));
}

/// The kernel, or an equal one made before.
compile::Kernel* Planner::kept(const compile::Kernel& kernel) {
  std::string written = to_text(kernel);
  auto [found, is_new] = kernel_ids_.try_emplace(written, out_.kernels.size());
  if (is_new) {
    out_.kernels.push_back(std::make_unique<compile::Kernel>(kernel));
    out_.kernels.back()->name = text("stage_", found->second);
  }
  return out_.kernels[found->second].get();
}

void Planner::anchors(Id body, const std::vector<const Made*>& batch) {
  std::vector<std::vector<Id>> temporaries;
  for (const Made* m : batch) {
    for (const Condition& c : m->anchor->conditions) conditions(body, c.holds, c.message);
    temporaries.emplace_back();
    for (SymInt bytes : m->anchor->temporaries) {
      package::BufferSpec spec{.name = "temporary", .dtype = TENON_U8, .sizes = {expr(bytes)}};
      spec.first = spec.last = now_;
      temporaries.back().push_back(t().arena(spec, segment()));
    }
    if (m->in_place != no_buffer && !depends_on_data(program_.buffers[m->in_place]))
      ids_[m->result] = buffer(m->in_place);
  }
  const size_t calls = batch[0]->anchor->calls.size();
  for (size_t k = 0; k < calls; ++k) {
    package::KernelSpec spec;
    Touched touched;
    std::optional<SymInt> work;
    SymInt scratch = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      const LibraryCall& call = batch[i]->anchor->calls[k];
      package::Instance instance;
      for (const LibraryArg& arg : call.args) {
        Id id = arg.buffer == no_buffer ? temporaries[i].at(arg.temporary) : buffer(arg.buffer);
        instance.args.push_back(arg.written ? package::written(id) : id);
        touched.add(arg.buffer, arg.written, arg.buffer == no_buffer ? SymInt(0) : bytes_of(arg.buffer));
      }
      for (const loop::Param& p : call.params) instance.params.push_back(symbols_.param(p));
      instance.extent = expr(call.extent);
      instance.grain = expr(call.grain);
      scratch = sym::max(scratch, call.scratch);
      spec.instances.push_back(std::move(instance));
      // The last of the calls does the arithmetic; those before it lay out what it reads.
      if (auto own = flops(*batch[i]->step); own && k + 1 == calls) work = work ? *work + *own : *own;
    }
    touched.function = batch[0]->anchor->calls[k].function;
    spec.function = library(touched.function);
    if (scratch != SymInt(0)) spec.scratch = expr(scratch);
    std::optional<package::KernelSpec> epilogue;
    if (batch[0]->stage && k + 1 == calls) epilogue = generated(body, batch, touched);
    describe(touched, name_of(batch));
    const package::StepNote note{.name = text(name_of(batch), ": ", touched.function),
                                 .flops = work ? std::optional(expr(*work)) : std::nullopt,
                                 .bytes = expr(touched.bytes)};
    if (epilogue) t().fused(body, spec, *epilogue, note);
    else t().kernel(body, spec, note);
  }
}

std::optional<SymInt> Planner::flops(const loop::Step& s) const {
  if (auto* g = std::get_if<loop::Gemm>(&s)) return count(g->out.sizes) * g->a.sizes[2] * SymInt(2);
  if (auto* c = std::get_if<loop::Convolution>(&s)) {
    const Sizes& through = (c->transposed ? c->x : c->y).sizes;
    return sym::floor_div(count(through) * count(c->w.sizes) * SymInt(2), sym::max(c->w.sizes[0], 1));
  }
  return std::nullopt;
}

Id Planner::library(std::string_view function) {
  if (std::find(out_.called.begin(), out_.called.end(), function) == out_.called.end())
    out_.called.emplace_back(function);
  return t().function(function);
}

void Planner::host(Id body, const loop::Call& call, const std::string& origin) {
  HostCall made = host_call(program_, call);
  package::CallSpec spec;
  spec.function = made.given ? t().function(made.function, true) : library(made.function);
  SymInt traffic = 0;
  for (loop::BufferRef b : made.inputs) {
    spec.inputs.push_back(b ? buffer(b.id) : package::none);
    if (b) traffic = traffic + bytes_of(b.id);
  }
  for (loop::BufferRef b : made.results) spec.results.push_back(buffer(b.id));
  Touched touched;
  touched.function = made.function;
  for (loop::BufferRef b : made.inputs)
    if (b) touched.add(b.id, false, 0);
  for (loop::BufferRef b : made.results) touched.add(b.id, true, 0);
  describe(touched, origin);
  for (const loop::Param& p : made.params) spec.params.push_back(symbols_.param(p));
  spec.errors = std::move(made.errors);
  if (made.extent) {
    spec.extent = expr(*made.extent);
    spec.grain = expr(made.grain);
  }
  t().call(body, spec, {.name = origin, .bytes = expr(traffic)});
}

void Planner::bind(Id body, const loop::Bind& bind) {
  const loop::Buffer& from = program_.buffers[bind.from];
  bool known = is_bound(bind.symbol);
  tenon_type type = bind.dim < 0 && is_floating(from.dtype) ? TENON_REAL : TENON_INTEGER;
  Id symbol = known ? symbols_.fresh(bind.symbol.name(), type) : declared(bind.symbol);
  if (bind.dim < 0) t().bind_element(body, symbol, buffer(bind.from), 0);
  else t().bind_size(body, symbol, buffer(bind.from), static_cast<uint32_t>(bind.dim));
  if (!known) return bound(body, bind.symbol);
  t().check(body, package::equal(Expr::symbol(symbol), expr(bind.symbol)),
            text(bind.symbol.name(), " is {} by what was told before, the data say {}"),
            {expr(bind.symbol), Expr::symbol(symbol)});
}

void Planner::check(Id body, const loop::Check& check) {
  std::string message = "an assertion of the program failed: " +
                        (check.message.empty() ? text(check.condition) : quoted(check.message, 300));
  if (check.tensor == no_buffer) {
    for (char& c : message) c = c == '{' ? '(' : c == '}' ? ')' : c;  // braces stand for values
    std::vector<Expr> values;
    for (SymInt s : sym::symbols_of(check.condition)) {
      if (is_real(s)) continue;
      message += text(values.empty() ? ", but " : ", ", s, " is {}");
      values.push_back(expr(s));
    }
    t().check(body, expr(check.condition), message, values);
    return;
  }
  bool real = is_floating(program_.buffers[check.tensor].dtype);
  Id value = symbols_.fresh("asserted", real ? TENON_REAL : TENON_INTEGER);
  t().bind_element(body, value, buffer(check.tensor), 0);
  Expr zero = real ? Expr::apply(TENON_OP_REAL_EQ, {Expr::symbol(value, TENON_REAL), Expr::real(0)})
                   : package::equal(Expr::symbol(value), 0);
  t().check(body, Expr::apply(TENON_OP_NOT, {zero}), message);
}

// What bodies share with the rest, or with each other, gets its memory before them.
void Planner::control(Id body, const loop::Step& step, const loop::Control& c) {
  auto touch = [&](BufferId b) {
    BufferId root = program_.buffers[b].view_of == no_buffer ? b : program_.buffers[b].view_of;
    const loop::Buffer& described = program_.buffers[root];
    for (SymInt e : described.sizes)
      for (SymInt s : sym::symbols_of(e))
        if (!is_bound(s)) return;
    buffer(root);
  };
  loop::for_each_read(program_, step, touch);
  loop::for_each_write(program_, step, touch);
  switch (c.kind) {
    case loop::Control::Kind::choose: {
      std::vector<Id> bodies;
      for (const loop::Body& b : c.bodies) bodies.push_back(nested(b));
      t().choose(body, expr(c.value), bodies);
      break;
    }
    case loop::Control::Kind::repeat: {
      Id condition = nested(c.bodies[0]);
      Expr value = expr(c.value);
      t().repeat_while(body, condition, value, nested(c.bodies[1]));
      break;
    }
    case loop::Control::Kind::counted: {
      Id symbol = declared(c.symbol);
      unbound_.erase(c.symbol.name());
      untold_.erase(c.symbol.name());
      Expr value = expr(c.value);
      t().counted(body, symbol, value, nested(c.bodies[0]));
      break;
    }
  }
}

Id Planner::nested(const loop::Body& from) {
  Id outer = std::exchange(body_, t().body());
  auto segment = std::exchange(segment_, std::nullopt);
  auto before = std::exchange(bound_here_, {});
  for (const Unit& unit : make_units(program_, from.steps)) {
    Made made = make(unit, from.steps, from.nodes);
    execute({&made});
  }
  segment_ = segment;
  unbound_.insert(bound_here_.begin(), bound_here_.end());  // what a body binds is known within it alone
  bound_here_ = std::move(before);
  return std::exchange(body_, outer);
}

// Names of state that no step reads are still known; what they held is not kept.
void Planner::drop_unused_state() {
  for (size_t i : states_) {
    const loop::Input& in = program_.inputs[i];
    if (ids_[in.buffer] != package::none) continue;
    if (options_.updatable) buffer(in.buffer);
    else t().frozen_state(in.name, TENON_STATE_PARAMETER);
  }
}

}  // namespace tenon::plan
