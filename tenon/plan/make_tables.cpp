#include "tenon/plan/make_tables.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tenon/base/error.h"
#include "tenon/compile/make_kernel.h"
#include "tenon/plan/host.h"
#include "tenon/plan/library.h"
#include "tenon/plan/lifetimes.h"
#include "tenon/plan/symbols.h"
#include "tenon/plan/units.h"
#include "tenon/tensor/dtype.h"

namespace tenon::plan {

using loop::BufferId;
using loop::no_buffer;
using loop::Role;
using package::Expr;
using package::Id;
using package::Tables;

std::string output_name(const OutputMeaning& meaning, const CallingConvention& convention) {
  if (auto* u = std::get_if<output::User>(&meaning)) return text("output_", u->leaf);
  if (auto* g = std::get_if<output::Gradient>(&meaning)) return "grad." + public_name(convention.inputs[g->input]);
  if (auto* v = std::get_if<output::Viewed>(&meaning)) return "input." + public_name(convention.inputs[v->input]);
  return to_text(meaning, convention);
}

namespace {

constexpr uint64_t align(uint64_t bytes) { return (bytes + TENON_ALIGNMENT - 1) / TENON_ALIGNMENT * TENON_ALIGNMENT; }

tenon_dtype dtype_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return TENON_BOOL;
    case DType::u8: return TENON_U8;
    case DType::i8: return TENON_I8;
    case DType::i16: return TENON_I16;
    case DType::i32: return TENON_I32;
    case DType::i64: return TENON_I64;
    case DType::u16: return TENON_U16;
    case DType::u32: return TENON_U32;
    case DType::u64: return TENON_U64;
    case DType::f16: return TENON_F16;
    case DType::bf16: return TENON_BF16;
    case DType::f32: return TENON_F32;
    case DType::f64: return TENON_F64;
    default: fail_unsupported(text("tensors of ", dtype, " cannot be compiled yet; run the .pt2 file instead"));
  }
}

class Planner {
 public:
  Planner(const loop::Program& program, const CallingConvention& convention, const TablesOptions& options)
      : program_(program),
        convention_(convention),
        options_(options),
        out_{Tables("tenon " TENON_VERSION), {}, {}, {}, {}, {}, {}},
        symbols_(out_.tables, [this](const Expr& e) { return bind_long(e); }),
        ids_(program.buffers.size(), package::none),
        units_(make_units(program, program.steps)) {
    for (const Unit& unit : units_) made_.push_back(make(unit, program.steps, program.nodes));
    std::vector<std::string> calls;
    for (const Made& made : made_) calls.push_back(made.calls);
    batches_ = make_batches(program, units_, calls);
    std::vector<uint32_t> number(program.steps.size());
    for (uint32_t b = 0; b < batches_.size(); ++b)
      for (size_t u : batches_[b])
        for (size_t s : units_[u].steps) number[s] = b;
    lives_ = lifetimes(program, number);
    collect_told(program.steps);
  }

  Planned run() {
    declare_input_symbols();
    add_inputs();
    bind_input_sizes();
    for (size_t i = 0; i < program_.outputs.size(); ++i) add_output(i);
    bind_numbers();
    check_guards();
    advance_random();
    on_state();
    for (now_ = 0; now_ < batches_.size(); ++now_) {
      std::vector<const Made*> batch;
      for (size_t u : batches_[now_]) batch.push_back(&made_[u]);
      execute(batch);
    }
    finish_outputs();
    store_random();
    drop_unused_state();
    t().weights_size(weights_);
    return std::move(out_);
  }

 private:
  Tables& t() { return out_.tables; }
  Expr expr(SymInt e) const { return symbols_.expr(e); }

  // ---- The caller's tensors and numbers ----

  sym::Range range_of(SymInt symbol) const {
    sym::Range range = program_.ranges.of(symbol);
    if (range.lo <= 2 && range.lo >= 0) range.lo = 0;  // as torch.export: 2 is an artefact of tracing
    return range;
  }

  template <class F>
  void for_each_size(F&& f) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const loop::Input& input = program_.inputs[i];
      if (input.type != loop::Input::Type::tensor || is_state_input(i)) continue;
      for (size_t d = 0; d < input.meta.rank(); ++d) f(i, d, input.meta.sizes[d]);
    }
  }

  // A long expression becomes a symbol: at entry where the inputs tell it, else here, or where data have told it.
  Id bind_long(const Expr& e) {
    std::vector<int64_t> key = e.words();
    bool from_inputs = true;
    std::set<Id> waits;
    for (size_t i = 0; i < key.size(); ++i) {
      auto opcode = static_cast<tenon_opcode>(key[i] & 0xff);
      auto used = static_cast<Id>(key[i] >> 8);
      if (opcode == TENON_OP_SYMBOL) from_inputs = from_inputs && entry_.contains(used);
      if (opcode == TENON_OP_SYMBOL && open_.contains(used)) waits.insert(used);
      if (opcode == TENON_OP_CONST_WIDE || opcode == TENON_OP_CONST_REAL) ++i;
    }
    if (auto found = long_.find(key); from_inputs && found != long_.end()) return found->second;
    Id symbol = symbols_.fresh(text("value_", long_count_++), e.type());
    if (!waits.empty()) {
      open_.insert(symbol);
      waiting_.push_back({e, symbol, std::move(waits)});
      return symbol;
    }
    if (!from_inputs) {
      t().bind_expression(body_, symbol, e);
      return symbol;
    }
    t().entry_expression(symbol, e);
    entry_.insert(symbol);
    long_.emplace(std::move(key), symbol);
    return symbol;
  }

  // What an input's size is, is told by that size: directly, or where it is an expression by solving for the symbol.
  void declare_input_symbols() {
    for_each_size([&](size_t i, size_t d, SymInt size) {
      if (!size.is_symbol() || symbols_.has(size)) return;
      sources_.push_back({symbols_.declare(size, range_of(size)), i, d, std::nullopt});
    });
    for (bool again = true; again;) {
      again = false;
      for_each_size([&](size_t i, size_t d, SymInt size) {
        if (size.is_int() || size.is_symbol()) return;
        std::vector<SymInt> open;
        for (SymInt s : sym::symbols_of(size))
          if (!symbols_.has(s)) open.push_back(s);
        if (open.size() != 1) return;
        SymInt given = SymInt::symbol(text("given_", i, "_", d));
        auto solution = sym::solve(size, given, open[0]);
        if (!solution) return;
        sources_.push_back({symbols_.declare(given, {0, INT64_MAX}), i, d, std::nullopt});
        sources_.push_back({symbols_.declare(open[0], range_of(open[0])), i, d, symbols_.expr(solution->value)});
        again = true;
      });
    }
  }
  void bind_input_sizes() {
    for (const Source& s : sources_) {
      entry_.insert(s.symbol);
      if (s.derived) t().entry_expression(s.symbol, *s.derived);
      else t().entry_size(s.symbol, ids_[program_.inputs[s.input].buffer], static_cast<uint32_t>(s.dim));
    }
  }

  const InputMeaning* meaning(size_t input) const {
    return input < convention_.inputs.size() ? &convention_.inputs[input] : nullptr;
  }
  bool is_random(size_t input) const {
    return meaning(input) && std::holds_alternative<input::RngState>(*meaning(input));
  }
  bool is_state_input(size_t input) const {
    const loop::Input& in = program_.inputs[input];
    return is_random(input) || (in.buffer != no_buffer && program_.buffers[in.buffer].role == Role::state);
  }

  package::BufferSpec spec(const loop::Buffer& b) const {
    package::BufferSpec out{.name = b.name, .dtype = dtype_of(b.dtype), .sizes = symbols_.list(b.sizes)};
    if (b.sizes.size() > TENON_MAX_RANK)
      fail_unsupported(text(b.name, ": tensors of more than ", TENON_MAX_RANK, " dimensions cannot be compiled"));
    if (b.strides != contiguous_strides(b.sizes)) {
      out.strides = symbols_.list(b.strides);
      out.bytes = expr(reach(b)) * static_cast<int64_t>(item_size(b.dtype));
    }
    return out;
  }
  /// Elements from the first to the last.
  static SymInt reach(const loop::Buffer& b) {
    SymInt last = 1, any = 1;
    for (size_t d = 0; d < b.sizes.size(); ++d) {
      last = last + (b.sizes[d] - SymInt(1)) * b.strides[d];
      any = any * sym::min(b.sizes[d], 1);
    }
    return last * any;
  }
  uint64_t place_weights(BufferId buffer) {
    const loop::Buffer& b = program_.buffers[buffer];
    SymInt elements = reach(b);
    require(elements.is_int(), b.name, ": expected a constant number of elements, got ", elements);
    uint64_t bytes = static_cast<uint64_t>(elements.as_int()) * item_size(b.dtype), at = weights_;
    out_.weights.push_back({buffer, at, bytes});
    weights_ += align(std::max<uint64_t>(bytes, 1));
    return at;
  }

  void add_inputs() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const loop::Input& in = program_.inputs[i];
      switch (in.type) {
        case loop::Input::Type::constant: break;
        case loop::Input::Type::tensor:
          if (is_random(i)) add_random(in);
          else if (is_state_input(i)) states_.push_back(i);  // when it is first used
          else {
            package::BufferSpec s = spec(program_.buffers[in.buffer]);
            s.name = in.name;
            ids_[in.buffer] = t().input(s, in.written);
            out_.inputs.push_back(i);
          }
          break;
        case loop::Input::Type::integer:
        case loop::Input::Type::floating:
        case loop::Input::Type::boolean: {
          tenon_dtype dtype = in.type == loop::Input::Type::floating  ? TENON_F64
                              : in.type == loop::Input::Type::boolean ? TENON_BOOL
                                                                      : TENON_I64;
          numbers_.push_back({i, t().input({.name = in.name, .dtype = dtype})});
          out_.inputs.push_back(i);
          break;
        }
      }
    }
  }

  void bind_numbers() {
    for (auto [i, buffer] : numbers_) {
      const loop::Input& in = program_.inputs[i];
      if (in.number.is_symbol() && !is_bound(in.number)) {
        t().bind_element(Tables::main, declared(in.number), buffer, 0);
        bound(Tables::main, in.number);
        continue;
      }
      if (in.type == loop::Input::Type::floating) continue;
      Id given = symbols_.fresh(in.name);
      t().bind_element(Tables::main, given, buffer, 0);
      t().check(Tables::main, package::equal(Expr::symbol(given), expr(in.number)),
                text("input '", in.name, "': expected {}, got {}"), {expr(in.number), Expr::symbol(given)});
    }
  }

  // Conditions on the caller's arguments, as far as their questions can be answered here.
  void check_guards() {
    for (const InputGuard& guard : convention_.guards) {
      std::vector<sym::Replacement> replaced;
      for (const GuardSource& source : guard.sources)
        if (auto value = answer(source)) replaced.emplace_back(source.symbol, *value);
      if (replaced.size() != guard.sources.size()) continue;
      SymInt condition = sym::substitute(guard.condition, replaced);
      if (condition == SymInt::boolean(true)) continue;
      t().check(Tables::main, expr(condition),
                text("the inputs do not meet a condition the program was exported under: ", quoted(guard.reason, 200)));
    }
  }
  std::optional<SymInt> answer(const GuardSource& source) {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      auto* user = meaning(i) ? std::get_if<input::User>(meaning(i)) : nullptr;
      if (!user || user->leaf != source.leaf) continue;
      const loop::Input& in = program_.inputs[i];
      bool tensor = in.type == loop::Input::Type::tensor;
      using What = GuardSource::What;
      switch (source.what) {
        case What::value:
          return tensor || in.type == loop::Input::Type::constant ? std::nullopt : std::optional(in.number);
        case What::rank: return tensor ? std::optional(SymInt(in.meta.rank())) : std::nullopt;
        case What::count: return tensor ? std::optional(count(in.meta.sizes)) : std::nullopt;
        case What::offset: return std::nullopt;
        case What::size:
          return tensor && source.dim < in.meta.rank() ? std::optional(in.meta.sizes[source.dim]) : std::nullopt;
        case What::stride:
          return tensor && source.dim < in.meta.rank() ? std::optional(in.meta.strides[source.dim]) : std::nullopt;
      }
    }
    return std::nullopt;
  }

  // ---- Random numbers: seed and number of the run, which counts up ----

  void add_random(const loop::Input& in) {
    random_ = t().state({.name = "random", .dtype = TENON_I64, .sizes = {2}}, TENON_STATE_RANDOM);
    ids_[in.buffer] = *random_;
  }
  void advance_random() {
    if (!random_) return;
    drawn_ = symbols_.fresh("draws");
    t().bind_element(Tables::main, *drawn_, *random_, 1);
  }
  void store_random() {
    if (random_) t().store(Tables::main, *random_, 1, Expr::symbol(*drawn_) + 1);
  }

  // ---- Results ----

  void add_output(size_t i) {
    const loop::Output& o = program_.outputs[i];
    if (o.updates != ~size_t{0}) return;
    std::string name =
        i < convention_.outputs.size() ? output_name(convention_.outputs[i], convention_) : text("output_", i);
    if (o.buffer == no_buffer) {
      tenon_dtype dtype = is_real(o.number) ? TENON_F64 : o.number.is_boolean_typed() ? TENON_BOOL : TENON_I64;
      number_outputs_.emplace_back(t().output({.name = name, .dtype = dtype}), o.number);
    } else {
      const loop::Buffer& b = program_.buffers[o.buffer];
      declare_unknown(b);
      package::BufferSpec s = spec(b);
      s.name = name;
      const Life& life = lives_[o.buffer];
      if (life.by_call && (depends_on_data(b) || told_.contains(o.buffer))) s.flags = TENON_BUFFER_DYNAMIC;
      else if (depends_on_data(b)) {
        s.flags = TENON_BUFFER_DEFERRED;
        deferred_.push_back(o.buffer);
      }
      ids_[o.buffer] = t().output(s);
    }
    out_.outputs.push_back(i);
  }
  // Symbols that a later step binds are declared as soon as a buffer speaks of them.
  void declare_unknown(const loop::Buffer& b) {
    for (const Sizes* list : {&b.sizes, &b.strides})
      for (SymInt e : *list)
        for (SymInt s : sym::symbols_of(e)) declared(s);
  }
  Id declared(SymInt symbol) {
    if (symbols_.has(symbol)) return symbols_.id(symbol);
    unbound_.insert(symbol.name());
    Id id = symbols_.declare(symbol, {});  // checks say what data may be
    open_.insert(id);
    return id;
  }
  bool is_bound(SymInt symbol) const { return symbols_.has(symbol) && !unbound_.contains(symbol.name()); }
  // What becomes known here lies in a segment of its own.
  void bound(Id body, SymInt symbol) {
    unbound_.erase(symbol.name());
    bound_here_.push_back(symbol.name());
    segment_.reset();
    open_.erase(symbols_.id(symbol));
    for (size_t i = 0; i < waiting_.size();) {
      std::erase_if(waiting_[i].symbols, [&](Id s) { return !open_.contains(s); });
      if (!waiting_[i].symbols.empty()) {
        ++i;
        continue;
      }
      t().bind_expression(body, waiting_[i].as, waiting_[i].value);
      open_.erase(waiting_[i].as);
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
      i = 0;  // others may have waited for it
    }
    std::erase_if(deferred_, [&](BufferId b) {
      if (depends_on_data(program_.buffers[b])) return false;
      t().make(body, ids_[b]);
      return true;
    });
  }
  // Sizes that a call tells are compared where an input tells them too.
  void collect_told(const std::vector<loop::Step>& steps) {
    for (const loop::Step& step : steps) {
      if (auto* bind = std::get_if<loop::Bind>(&step); bind && bind->dim >= 0) told_.insert(bind->from);
      if (auto* control = std::get_if<loop::Control>(&step))
        for (const loop::Body& body : control->bodies) collect_told(body.steps);
    }
  }
  bool depends_on_data(const loop::Buffer& b) const {
    for (const Sizes* list : {&b.sizes, &b.strides})
      for (SymInt e : *list)
        for (SymInt s : sym::symbols_of(e))
          if (unbound_.contains(s.name())) return true;
    return false;
  }
  void finish_outputs() {
    for (auto& [buffer, number] : number_outputs_)
      t().store(Tables::main, buffer, 0, is_real(number) ? symbols_.real(number) : expr(number));
  }

  // ---- Buffers ----

  Id buffer(BufferId b) {
    if (ids_[b] != package::none) return ids_[b];
    const loop::Buffer& described = program_.buffers[b];
    declare_unknown(described);
    if (described.view_of != no_buffer) {
      Id root = buffer(described.view_of);
      package::BufferSpec s = spec(described);
      return ids_[b] = t().view(root, s, expr(described.offset) * static_cast<int64_t>(item_size(described.dtype)));
    }
    switch (described.role) {
      case Role::state: return ids_[b] = add_state(described.slot);
      case Role::derived: {
        package::BufferSpec s = spec(described);
        if (!options_.updatable) s.weights = place_weights(b);
        return ids_[b] = t().derived(s);
      }
      case Role::arena: {
        package::BufferSpec s = spec(described);
        const Life& life = lives_[b];
        s.first = life.first;
        s.last = life.last;
        if (life.by_call && (depends_on_data(described) || told_.contains(b))) {
          s.flags = TENON_BUFFER_DYNAMIC;
          return ids_[b] = t().arena(s, package::none);
        }
        return ids_[b] = t().arena(s, segment());
      }
      case Role::input:
      case Role::output: expect(false, described.name, " is no input and no output of the program"); return 0;
    }
    unreachable();
  }

  Id add_state(size_t input) {
    const InputMeaning* m = meaning(input);
    const loop::Input& in = program_.inputs[input];
    package::BufferSpec s = spec(program_.buffers[in.buffer]);
    s.name = in.name;
    s.weights = place_weights(in.buffer);
    tenon_state_kind kind = !m || std::holds_alternative<input::Parameter>(*m) ? TENON_STATE_PARAMETER
                            : std::holds_alternative<input::Buffer>(*m)        ? TENON_STATE_BUFFER
                                                                               : TENON_STATE_CONSTANT;
    if (options_.updatable || in.written) return t().state(s, kind);
    t().frozen_state(in.name, kind);
    return t().constant(s);
  }

  Id segment() {
    if (!segment_) {
      segment_ = t().segment();
      t().plan(body_, *segment_);
    }
    return *segment_;
  }

  // ---- Steps ----

  void on_state() {
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

  /// What a unit calls, before anything is written down.
  struct Made {
    const loop::Step* step = nullptr;  // of one step that is neither
    std::optional<compile::StageKernel> stage;
    SymInt points = 0;
    std::optional<LibraryCalls> anchor;
    std::string origin, calls;
  };

  Made make(const Unit& unit, const std::vector<loop::Step>& steps, const std::vector<uint32_t>& nodes) {
    Made out;
    out.origin = program_.origins.empty() ? "" : program_.origins[nodes[unit.origin]];
    out.step = &steps[unit.steps[0]];
    make(out, unit, steps);
    return out;
  }
  void make(Made& out, const Unit& unit, const std::vector<loop::Step>& steps) {
    auto is = [&]<class... T>(std::variant<T...>*) { return (std::holds_alternative<T>(*out.step) || ...); };
    if (auto* stage = std::get_if<loop::Stage>(out.step)) {
      if (unit.steps.size() == 1) out.stage = compile::make_kernel(program_, *stage);
      else {
        compile::RowStages stages{{}, unit.rows, unit.locals};
        for (size_t s : unit.steps) stages.stages.push_back(&std::get<loop::Stage>(steps[s]));
        out.stage = compile::make_kernel(program_, stages);
      }
      for (size_t s : unit.steps) out.points = out.points + points_of(std::get<loop::Stage>(steps[s]));
      out.calls = kept(out.stage->kernel)->name;
    } else if (!is(static_cast<std::variant<loop::Call, loop::Bind, loop::Check, loop::Control>*>(nullptr))) {
      out.anchor = library_calls(program_, *out.step);
      for (const LibraryCall& call : out.anchor->calls) out.calls += call.function + " ";
    }
  }

  void execute(const std::vector<const Made*>& batch) {
    const Made& first = *batch[0];
    if (first.stage) return generated(body_, batch);
    if (first.anchor) return anchors(body_, batch);
    if (auto* call = std::get_if<loop::Call>(first.step)) host(body_, *call, first.origin);
    else if (auto* bind = std::get_if<loop::Bind>(first.step)) this->bind(body_, *bind);
    else if (auto* check = std::get_if<loop::Check>(first.step)) this->check(body_, *check);
    else if (auto* control = std::get_if<loop::Control>(first.step)) this->control(body_, *first.step, *control);
  }
  static std::string name_of(const std::vector<const Made*>& batch) {
    return batch.size() == 1 ? batch[0]->origin : text(batch[0]->origin, " and ", batch.size() - 1, " like it");
  }

  void conditions(Id body, SymInt holds, std::string_view message) {
    if (holds == SymInt::boolean(true)) return;
    require(holds != SymInt::boolean(false), message);
    t().check(body, expr(holds), message);
  }

  static SymInt points_of(const loop::Stage& stage) {
    SymInt points = 1;
    for (const Sizes* sizes : {&stage.domain, &stage.reduce})
      for (SymInt size : *sizes) points = points * size;
    return points;
  }
  void generated(Id body, const std::vector<const Made*>& batch) {
    package::KernelSpec spec;
    SymInt traffic = 0;
    std::vector<BufferId> buffers;
    std::vector<bool> writes;
    const compile::Kernel* kernel = kept(batch[0]->stage->kernel);
    for (const Made* m : batch) {
      const compile::StageKernel& made = *m->stage;
      for (SymInt c : made.conditions) conditions(body, c, text(m->origin, ": sizes that do not belong together"));
      package::Instance instance;
      if (options_.interpreted) instance.params.emplace_back(reinterpret_cast<int64_t>(kernel));
      for (size_t k = 0; k < made.buffers.size(); ++k) {
        bool written = is_written(made.kernel, k);
        instance.args.push_back(written ? package::written(buffer(made.buffers[k])) : buffer(made.buffers[k]));
        writes.push_back(written);
      }
      for (const loop::Param& p : made.params) instance.params.push_back(symbols_.param(p));
      instance.extent = expr(made.extent);
      SymInt each = sym::max(sym::floor_div(m->points, sym::max(made.extent, 1)), 1);
      SymInt grain = made.serial ? sym::max(made.extent, 1) : sym::max(sym::floor_div(points_per_chunk, each), 1);
      instance.grain = expr(grain);
      spec.instances.push_back(std::move(instance));
      for (BufferId b : made.buffers) traffic = traffic + bytes_of(b);
      buffers.insert(buffers.end(), made.buffers.begin(), made.buffers.end());
    }
    spec.function = t().function(options_.interpreted ? interpret_function : kernel->name);
    if (uint64_t bytes = kernel->scratch_bytes()) spec.scratch = Expr(static_cast<int64_t>(bytes));
    describe(kernel->name, buffers, writes, name_of(batch));
    t().kernel(body, spec, {.name = name_of(batch), .bytes = expr(traffic)});
  }
  void describe(std::string_view function, const std::vector<BufferId>& buffers, const std::vector<bool>& writes,
                const std::string& origin) {
    if (!options_.described) return;
    std::vector<std::string> read, written;
    for (size_t i = 0; i < buffers.size(); ++i)
      (writes[i] ? written : read)
          .push_back(buffers[i] == no_buffer ? "a temporary" : program_.buffers[buffers[i]].name);
    out_.steps.push_back(text(join(written, ", "), " = ", function, "(", join(read, ", "), ")  # ", origin));
  }
  static bool is_written(const compile::Kernel& kernel, size_t number) {
    for (const compile::Memory& m : kernel.memory)
      if (!m.scratch && m.number == number && m.written) return true;
    return false;
  }
  SymInt bytes_of(BufferId b) const {
    const loop::Buffer& buffer = program_.buffers[b];
    return count(buffer.sizes) * SymInt(static_cast<int64_t>(item_size(buffer.dtype)));
  }

  /// The kernel, or an equal one made before.
  compile::Kernel* kept(const compile::Kernel& kernel) {
    std::string written = to_text(kernel);
    auto [found, is_new] = kernel_ids_.try_emplace(written, out_.kernels.size());
    if (is_new) {
      out_.kernels.push_back(std::make_unique<compile::Kernel>(kernel));
      out_.kernels.back()->name = text("stage_", found->second);
    }
    return out_.kernels[found->second].get();
  }

  void anchors(Id body, const std::vector<const Made*>& batch) {
    std::vector<std::vector<Id>> temporaries;
    for (const Made* m : batch) {
      for (const Condition& c : m->anchor->conditions) conditions(body, c.holds, c.message);
      temporaries.emplace_back();
      for (SymInt bytes : m->anchor->temporaries) {
        package::BufferSpec spec{.name = "temporary", .dtype = TENON_U8, .sizes = {expr(bytes)}};
        spec.first = spec.last = now_;
        temporaries.back().push_back(t().arena(spec, segment()));
      }
    }
    const size_t calls = batch[0]->anchor->calls.size();
    for (size_t k = 0; k < calls; ++k) {
      package::KernelSpec spec;
      SymInt traffic = 0;
      std::optional<SymInt> work;
      SymInt scratch = 0;
      std::vector<BufferId> buffers;
      std::vector<bool> writes;
      for (size_t i = 0; i < batch.size(); ++i) {
        const LibraryCall& call = batch[i]->anchor->calls[k];
        package::Instance instance;
        for (const LibraryArg& arg : call.args) {
          Id id = arg.buffer == no_buffer ? temporaries[i].at(arg.temporary) : buffer(arg.buffer);
          instance.args.push_back(arg.written ? package::written(id) : id);
          if (arg.buffer != no_buffer) traffic = traffic + bytes_of(arg.buffer);
          buffers.push_back(arg.buffer);
          writes.push_back(arg.written);
        }
        for (const loop::Param& p : call.params) instance.params.push_back(symbols_.param(p));
        instance.extent = expr(call.extent);
        instance.grain = expr(call.grain);
        scratch = sym::max(scratch, call.scratch);
        spec.instances.push_back(std::move(instance));
        // The last of the calls does the arithmetic; those before it lay out what it reads.
        if (auto own = flops(*batch[i]->step); own && k + 1 == calls) work = work ? *work + *own : *own;
      }
      const std::string& function = batch[0]->anchor->calls[k].function;
      spec.function = library(function);
      if (scratch != SymInt(0)) spec.scratch = expr(scratch);
      describe(function, buffers, writes, name_of(batch));
      t().kernel(
          body, spec,
          {.name = name_of(batch), .flops = work ? std::optional(expr(*work)) : std::nullopt, .bytes = expr(traffic)});
    }
  }
  std::optional<SymInt> flops(const loop::Step& s) const {
    if (auto* g = std::get_if<loop::Gemm>(&s)) return count(g->out.sizes) * g->a.sizes[2] * SymInt(2);
    if (auto* c = std::get_if<loop::Convolution>(&s)) {
      const Sizes& through = (c->transposed ? c->x : c->y).sizes;
      return sym::floor_div(count(through) * count(c->w.sizes) * SymInt(2), sym::max(c->w.sizes[0], 1));
    }
    return std::nullopt;
  }
  Id library(std::string_view function) {
    if (std::find(out_.called.begin(), out_.called.end(), function) == out_.called.end())
      out_.called.emplace_back(function);
    return t().function(function);
  }

  void host(Id body, const loop::Call& call, const std::string& origin) {
    HostCall made = host_call(program_, call);
    package::CallSpec spec;
    spec.function = made.given ? t().function(made.function, true) : library(made.function);
    SymInt traffic = 0;
    for (loop::BufferRef b : made.inputs) {
      spec.inputs.push_back(b ? buffer(b.id) : package::none);
      if (b) traffic = traffic + bytes_of(b.id);
    }
    for (loop::BufferRef b : made.results) spec.results.push_back(buffer(b.id));
    std::vector<BufferId> all;
    for (loop::BufferRef b : made.inputs)
      if (b) all.push_back(b.id);
    std::vector<bool> writes(all.size(), false);
    for (loop::BufferRef b : made.results) all.push_back(b.id);
    writes.resize(all.size(), true);
    describe(made.function, all, writes, origin);
    for (const loop::Param& p : made.params) spec.params.push_back(symbols_.param(p));
    spec.errors = std::move(made.errors);
    if (made.extent) {
      spec.extent = expr(*made.extent);
      spec.grain = expr(made.grain);
    }
    t().call(body, spec, {.name = origin, .bytes = expr(traffic)});
  }

  void bind(Id body, const loop::Bind& bind) {
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

  void check(Id body, const loop::Check& check) {
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
  void control(Id body, const loop::Step& step, const loop::Control& c) {
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
        Expr value = expr(c.value);
        t().counted(body, symbol, value, nested(c.bodies[0]));
        break;
      }
    }
  }
  Id nested(const loop::Body& from) {
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
  void drop_unused_state() {
    for (size_t i : states_) {
      const loop::Input& in = program_.inputs[i];
      if (ids_[in.buffer] != package::none) continue;
      if (options_.updatable) buffer(in.buffer);
      else t().frozen_state(in.name, TENON_STATE_PARAMETER);
    }
  }

  static constexpr int64_t points_per_chunk = 16384;

  struct Source {
    Id symbol;
    size_t input, dim;
    std::optional<Expr> derived;
  };

  const loop::Program& program_;
  const CallingConvention& convention_;
  const TablesOptions& options_;
  Planned out_;
  Symbols symbols_;
  std::vector<Id> ids_;      // of each buffer of the program; none: not used yet
  std::vector<Unit> units_;  // of the program's steps
  std::vector<Made> made_;   // of each unit
  std::vector<std::vector<size_t>> batches_;
  std::vector<Life> lives_;
  std::vector<Source> sources_;
  std::vector<size_t> states_;
  std::vector<std::pair<size_t, Id>> numbers_;
  std::vector<std::pair<Id, SymInt>> number_outputs_;
  std::unordered_set<BufferId> told_;             // results of calls whose sizes are bound
  std::vector<BufferId> deferred_;                // outputs whose sizes are not known yet
  std::vector<std::string_view> bound_here_;      // symbols that this list of steps binds
  std::unordered_set<std::string_view> unbound_;  // symbols that data will tell
  struct Waiting {
    Expr value;
    Id as;
    std::set<Id> symbols;  // that are still open
  };
  std::set<Id> open_;             // of symbols that nothing has bound yet
  std::vector<Waiting> waiting_;  // long expressions of them
  std::unordered_map<std::string, size_t> kernel_ids_;
  std::optional<Id> random_, drawn_;
  std::optional<Id> segment_;  // where arena buffers go that are first used now
  Id body_ = Tables::main;
  uint32_t now_ = 0;
  uint64_t weights_ = 0;
  std::unordered_set<Id> entry_;             // symbols that the inputs tell
  std::map<std::vector<int64_t>, Id> long_;  // expressions over those that became symbols
  size_t long_count_ = 0;
};

}  // namespace

std::string to_text(const Planned& planned) {
  std::string out;
  for (const std::string& step : planned.steps) out += step + "\n";
  for (const auto& kernel : planned.kernels) out += "\n" + compile::to_text(*kernel);
  return out;
}

Planned make_tables(const loop::Program& program, const CallingConvention& convention, const TablesOptions& options) {
  return Planner(program, convention, options).run();
}

}  // namespace tenon::plan
