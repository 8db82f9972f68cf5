// Sizes and numbers, the caller's tensors, results, state and memory.
#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/plan/planner.h"
#include "tenon/tensor/dtype.h"

namespace tenon::plan {

using loop::BufferId;
using loop::no_buffer;
using loop::Role;
using package::Expr;
using package::Id;
using package::Tables;

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
    case DType::c64: return TENON_C64;
    case DType::c128: return TENON_C128;
    default: fail_unsupported(text("tensors of ", dtype, " cannot be compiled yet; run the .pt2 file instead"));
  }
}

}  // namespace

sym::Range Planner::range_of(SymInt symbol) const {
  sym::Range range = program_.ranges.of(symbol);
  if (range.lo <= 2 && range.lo >= 0) range.lo = 0;  // as torch.export: 2 is an artefact of tracing
  return range;
}

// A long expression becomes a symbol: at entry where the inputs tell it, else here, or where data have told it.
Id Planner::bind_long(const Expr& e) {
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
void Planner::declare_input_symbols() {
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

void Planner::bind_input_sizes() {
  for (const Source& s : sources_) {
    entry_.insert(s.symbol);
    if (s.derived) t().entry_expression(s.symbol, *s.derived);
    else t().entry_size(s.symbol, ids_[program_.inputs[s.input].buffer], static_cast<uint32_t>(s.dim));
  }
}

const InputMeaning* Planner::meaning(size_t input) const {
  return input < convention_.inputs.size() ? &convention_.inputs[input] : nullptr;
}

bool Planner::is_random(size_t input) const {
  return meaning(input) && std::holds_alternative<input::RngState>(*meaning(input));
}

bool Planner::is_state_input(size_t input) const {
  const loop::Input& in = program_.inputs[input];
  return is_random(input) || (in.buffer != no_buffer && program_.buffers[in.buffer].role == Role::state);
}

package::BufferSpec Planner::spec(const loop::Buffer& b) const {
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
SymInt Planner::reach(const loop::Buffer& b) {
  SymInt last = 1, any = 1;
  for (size_t d = 0; d < b.sizes.size(); ++d) {
    last = last + (b.sizes[d] - SymInt(1)) * b.strides[d];
    any = any * sym::min(b.sizes[d], 1);
  }
  return last * any;
}

uint64_t Planner::place_weights(BufferId buffer) {
  const loop::Buffer& b = program_.buffers[buffer];
  SymInt elements = reach(b);
  require(elements.is_int(), b.name, ": expected a constant number of elements, got ", elements);
  uint64_t bytes = static_cast<uint64_t>(elements.as_int()) * item_size(b.dtype), at = weights_;
  out_.weights.push_back({buffer, at, bytes});
  weights_ += align(std::max<uint64_t>(bytes, 1));
  return at;
}

void Planner::add_inputs() {
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

void Planner::bind_numbers() {
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

void Planner::add_random(const loop::Input& in) {
  random_ = t().state({.name = "random", .dtype = TENON_I64, .sizes = {2}}, TENON_STATE_RANDOM);
  ids_[in.buffer] = *random_;
}

void Planner::advance_random() {
  if (!random_) return;
  drawn_ = symbols_.fresh("draws");
  t().bind_element(Tables::main, *drawn_, *random_, 1);
}

void Planner::store_random() {
  if (random_) t().store(Tables::main, *random_, 1, Expr::symbol(*drawn_) + 1);
}

void Planner::add_output(size_t i) {
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
      deferred_[*open_symbol(b)].push_back(o.buffer);
    }
    ids_[o.buffer] = t().output(s);
  }
  out_.outputs.push_back(i);
}

// Symbols that a later step binds are declared as soon as a buffer speaks of them.
void Planner::declare_unknown(const loop::Buffer& b) {
  for (const Sizes* list : {&b.sizes, &b.strides})
    for (SymInt e : *list)
      for (SymInt s : sym::symbols_of(e)) declared(s);
}

Id Planner::declared(SymInt symbol) {
  if (symbols_.has(symbol)) return symbols_.id(symbol);
  unbound_.insert(symbol.name());
  untold_.insert(symbol.name());
  Id id = symbols_.declare(symbol, {});  // checks say what data may be
  open_.insert(id);
  return id;
}

// What becomes known here lies in a segment of its own.
void Planner::bound(Id body, SymInt symbol) {
  unbound_.erase(symbol.name());
  untold_.erase(symbol.name());
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
  auto waited = deferred_.extract(symbol.name());
  if (!waited) return;
  for (BufferId b : waited.mapped()) {
    if (auto next = open_symbol(program_.buffers[b])) deferred_[*next].push_back(b);
    else t().make(body, ids_[b]);
  }
}

// Sizes that a call tells are compared where an input tells them too.
void Planner::collect_told(const std::vector<loop::Step>& steps) {
  for (const loop::Step& step : steps) {
    if (auto* bind = std::get_if<loop::Bind>(&step); bind && bind->dim >= 0) told_.insert(bind->from);
    if (auto* control = std::get_if<loop::Control>(&step))
      for (const loop::Body& body : control->bodies) collect_told(body.steps);
  }
}

std::optional<std::string_view> Planner::open_symbol(const loop::Buffer& b) const {
  for (const Sizes* list : {&b.sizes, &b.strides})
    for (SymInt e : *list)
      for (SymInt s : sym::symbols_of(e))
        if (unbound_.contains(s.name())) return s.name();
  return std::nullopt;
}

void Planner::finish_outputs() {
  for (auto& [buffer, number] : number_outputs_)
    t().store(Tables::main, buffer, 0, is_real(number) ? symbols_.real(number) : expr(number));
}

Id Planner::buffer(BufferId b) {
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

Id Planner::add_state(size_t input) {
  const InputMeaning* m = meaning(input);
  const loop::Input& in = program_.inputs[input];
  package::BufferSpec s = spec(program_.buffers[in.buffer]);
  s.name = in.name;
  const bool changes = options_.updatable || in.written;
  if (!changes || options_.not_stored.empty() || !options_.not_stored[input]) s.weights = place_weights(in.buffer);
  tenon_state_kind kind = !m || std::holds_alternative<input::Parameter>(*m) ? TENON_STATE_PARAMETER
                          : std::holds_alternative<input::Buffer>(*m)        ? TENON_STATE_BUFFER
                                                                             : TENON_STATE_CONSTANT;
  if (changes) return t().state(s, kind);
  t().frozen_state(in.name, kind);
  return t().constant(s);
}

Id Planner::segment() {
  if (!segment_) {
    segment_ = t().segment();
    t().plan(body_, *segment_);
  }
  return *segment_;
}

}  // namespace tenon::plan
