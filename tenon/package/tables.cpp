#include "tenon/package/tables.h"

#include <algorithm>
#include <cstring>

#include "runtime/include/tenon/runtime.h"
#include "tenon/base/error.h"

namespace tenon::package {

namespace {
Id index_of(size_t size) {
  expect(size < INT32_MAX, "a table of ", size, " elements");
  return static_cast<Id>(size);
}

template <class T>
Id append(std::vector<T>& table, const T& element) {
  Id id = index_of(table.size());
  table.push_back(element);
  return id;
}

// What the runtime takes for damage in a string of the tables.
bool acts_on_terminals(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
}
std::string with_escapes(std::string_view s) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    if (acts_on_terminals(c)) (out += "\\x").append({digits[byte >> 4], digits[byte & 15]});
    else out += c;
  }
  return out;
}
}  // namespace

Tables::Tables(std::string_view producer) : bodies_(2) {
  string("");
  producer_ = string(producer);
}

Id Tables::string(std::string_view s) {
  if (std::any_of(s.begin(), s.end(), acts_on_terminals)) return string(with_escapes(s));
  auto found = string_ids_.find(s);
  if (found != string_ids_.end()) return found->second;
  Id id = index_of(strings_.size());
  strings_ += s;
  strings_ += '\0';
  string_ids_.emplace(s, id);
  return id;
}

Id Tables::expr(const Expr& e) {
  auto [found, is_new] = expr_ids_.try_emplace({e.words(), e.type()}, index_of(exprs_.size()));
  if (!is_new) return found->second;
  exprs_.push_back({{index_of(words_.size()), index_of(e.words().size())}, e.type(), 0});
  words_.insert(words_.end(), e.words().begin(), e.words().end());
  return found->second;
}

Id Tables::consecutive(const std::vector<Expr>& exprs) {
  Id first = index_of(exprs_.size());
  for (const Expr& e : exprs) {
    Id shared = expr(e);  // the words are shared; the entries must follow one another
    if (shared != first + (&e - exprs.data())) exprs_.push_back(exprs_[shared]);
  }
  return exprs.empty() ? 0 : first;
}

tenon_list Tables::list(const std::vector<Id>& ids) {
  tenon_list out{index_of(refs_.size()), index_of(ids.size())};
  refs_.insert(refs_.end(), ids.begin(), ids.end());
  return out;
}

tenon_list Tables::expr_list(const std::vector<Expr>& exprs) {
  std::vector<Id> ids;
  for (const Expr& e : exprs) ids.push_back(expr(e));
  return list(ids);
}

tenon_list Tables::guard_list(const std::vector<Guard>& guards) {
  tenon_list out{index_of(guards_.size()), index_of(guards.size())};
  for (const Guard& g : guards) guards_.push_back({g.buffer, expr(g.lo), expr(g.hi), string(g.what)});
  return out;
}

Id Tables::symbol(std::string_view name, int64_t lo, int64_t hi, tenon_type type) {
  return append(symbols_, tenon_symbol{string(name), static_cast<uint32_t>(type), lo, hi});
}

Id Tables::add_buffer(const BufferSpec& spec, tenon_role role, Id slot) {
  expect(spec.sizes.size() <= TENON_MAX_RANK, "a buffer of ", spec.sizes.size(), " dimensions");
  tenon_buffer b{};
  b.name = string(spec.name);
  b.dtype = static_cast<uint8_t>(spec.dtype);
  b.role = static_cast<uint8_t>(role);
  b.rank = static_cast<uint8_t>(spec.sizes.size());
  b.flags = spec.flags;
  b.slot = slot;
  b.root = none;
  b.sizes = consecutive(spec.sizes);
  b.strides = spec.strides ? consecutive(*spec.strides) : none;
  Expr bytes = static_cast<int64_t>(tenon_dtype_size(spec.dtype));
  for (const Expr& size : spec.sizes) bytes = bytes * size;
  expect(spec.bytes || !spec.strides || role == TENON_ROLE_INPUT || role == TENON_ROLE_OUTPUT,
         "a strided buffer without its number of bytes");
  b.bytes = expr(spec.bytes ? *spec.bytes : bytes);
  b.offset = optional_expr(spec.offset);
  b.weights = spec.weights;
  b.first = spec.first;
  b.last = spec.last;
  return append(buffers_, b);
}

Id Tables::input(const BufferSpec& spec, bool is_written) {
  Id id = add_buffer(spec, TENON_ROLE_INPUT, index_of(inputs_.size()));
  inputs_.push_back({string(spec.name), id, is_written, 0});
  return id;
}

Id Tables::output(const BufferSpec& spec, Id donor_input) {
  Id id = add_buffer(spec, TENON_ROLE_OUTPUT, index_of(outputs_.size()));
  outputs_.push_back({string(spec.name), id, donor_input, 0});
  return id;
}

Id Tables::state(const BufferSpec& spec, tenon_state_kind kind) {
  Id id = add_buffer(spec, TENON_ROLE_STATE, none);
  states_.push_back({string(spec.name), id, static_cast<uint32_t>(kind), 0});
  return id;
}

Id Tables::frozen_state(std::string_view name, tenon_state_kind kind) {
  return append(states_, tenon_state_entry{string(name), none, static_cast<uint32_t>(kind), 0});
}

Id Tables::arena(const BufferSpec& spec, Id segment) {
  Id id = add_buffer(spec, TENON_ROLE_ARENA, none);
  if (!(spec.flags & TENON_BUFFER_DYNAMIC)) segments_.at(segment).push_back(id);
  return id;
}

Id Tables::view(Id root, const BufferSpec& spec, const Expr& byte_offset) {
  expect(buffers_.at(root).root == none, "a view of a view; name the root");
  Id id = add_buffer(spec, static_cast<tenon_role>(buffers_[root].role), buffers_[root].slot);
  buffers_[id].root = root;
  buffers_[id].offset = expr(byte_offset);
  return id;
}

Id Tables::segment() { return append(segments_, {}); }

Id Tables::function(std::string_view name, bool external) {
  for (size_t i = 0; i < function_names_.size(); ++i)
    if (function_names_[i] == name && is_external(static_cast<Id>(i)) == external) return static_cast<Id>(i);
  function_names_.emplace_back(name);
  return append(functions_, tenon_function{string(name), external, {}});
}

Id Tables::body() { return append(bodies_, {}); }

void Tables::step(Id body, tenon_step_kind kind, size_t index, const StepNote& note) {
  bodies_.at(body).steps.push_back({static_cast<uint32_t>(kind), index_of(index), string(note.name),
                                    optional_expr(note.flops), optional_expr(note.bytes), 0});
}

void Tables::kernel(Id body, const KernelSpec& spec, const StepNote& note) {
  step(body, TENON_STEP_KERNEL, kernels_.size(), note);
  add_kernel(spec);
}

void Tables::fused(Id body, const KernelSpec& spec, const KernelSpec& epilogue, const StepNote& note) {
  step(body, TENON_STEP_FUSED, kernels_.size(), note);
  add_kernel(spec);
  add_kernel(epilogue);
}

void Tables::add_kernel(const KernelSpec& spec) {
  std::vector<tenon_instance> instances;
  for (const Instance& i : spec.instances)
    instances.push_back({list(i.args), expr_list(i.params), expr(i.extent), expr(i.grain)});
  tenon_list placed{index_of(instances_.size()), index_of(instances.size())};
  instances_.insert(instances_.end(), instances.begin(), instances.end());
  kernels_.push_back({spec.function, placed, guard_list(spec.guards), optional_expr(spec.scratch)});
}

void Tables::call(Id body, const CallSpec& spec, const StepNote& note) {
  step(body, TENON_STEP_CALL, calls_.size(), note);
  std::vector<Id> errors;
  for (const std::string& sentence : spec.errors) errors.push_back(string(sentence));
  calls_.push_back({spec.function, list(spec.inputs), list(spec.results), expr_list(spec.params),
                    guard_list(spec.guards), list(errors), optional_expr(spec.scratch), optional_expr(spec.extent),
                    optional_expr(spec.grain)});
}

void Tables::check(Id body, const Expr& condition, std::string_view message, const std::vector<Expr>& values) {
  step(body, TENON_STEP_CHECK, checks_.size());
  checks_.push_back({expr(condition), string(message), expr_list(values)});
}

void Tables::plan(Id body, Id segment) { step(body, TENON_STEP_PLAN, segment); }

void Tables::copy(Id body, Id from, Id to) {
  step(body, TENON_STEP_COPY, copies_.size());
  copies_.push_back({from, to});
}

void Tables::store(Id body, Id buffer, const Expr& index, const Expr& value) {
  step(body, TENON_STEP_STORE, stores_.size());
  stores_.push_back({buffer, expr(index), expr(value)});
}

void Tables::make(Id body, Id output_buffer) { step(body, TENON_STEP_MAKE, buffers_.at(output_buffer).slot); }

void Tables::choose(Id body, const Expr& which, const std::vector<Id>& bodies) {
  step(body, TENON_STEP_CONTROL, controls_.size());
  controls_.push_back(
      {TENON_CONTROL_CHOOSE, expr(which), none, {index_of(control_bodies_.size()), index_of(bodies.size())}});
  control_bodies_.insert(control_bodies_.end(), bodies.begin(), bodies.end());
}

void Tables::repeat_while(Id body, Id condition_body, const Expr& condition, Id loop_body) {
  step(body, TENON_STEP_CONTROL, controls_.size());
  controls_.push_back({TENON_CONTROL_WHILE, expr(condition), none, {index_of(control_bodies_.size()), 2}});
  control_bodies_.insert(control_bodies_.end(), {condition_body, loop_body});
}

void Tables::counted(Id body, Id symbol, const Expr& count, Id loop_body) {
  step(body, TENON_STEP_CONTROL, controls_.size());
  controls_.push_back({TENON_CONTROL_COUNTED, expr(count), symbol, {index_of(control_bodies_.size()), 1}});
  control_bodies_.push_back(loop_body);
}

void Tables::bind(Id body, tenon_bind bind) {
  step(body, TENON_STEP_BIND, binds_.size());
  binds_.push_back(bind);
}
void Tables::bind_element(Id body, Id symbol, Id buffer, const Expr& index) {
  bind(body, {symbol, TENON_SOURCE_ELEMENT, buffer, expr(index)});
}
void Tables::bind_count(Id body, Id symbol, uint32_t count) { bind(body, {symbol, TENON_SOURCE_COUNT, none, count}); }
void Tables::bind_size(Id body, Id symbol, Id buffer, uint32_t dim) {
  bind(body, {symbol, TENON_SOURCE_SIZE, buffer, dim});
}
void Tables::bind_expression(Id body, Id symbol, const Expr& value) {
  bind(body, {symbol, TENON_SOURCE_EXPRESSION, none, expr(value)});
}
void Tables::entry_size(Id symbol, Id buffer, uint32_t dim) {
  entry_.push_back({symbol, TENON_SOURCE_SIZE, buffer, dim});
}
void Tables::entry_stride(Id symbol, Id buffer, uint32_t dim) {
  entry_.push_back({symbol, TENON_SOURCE_STRIDE, buffer, dim});
}
void Tables::entry_expression(Id symbol, const Expr& value) {
  entry_.push_back({symbol, TENON_SOURCE_EXPRESSION, none, expr(value)});
}

void Tables::metadata(std::string_view key, std::string_view value) {
  metadata_.push_back({string(key), string(value)});
}

void Tables::place(Id function, tenon_target target, int64_t distance) {
  functions_.at(function).entry[target] = distance;
}

std::vector<std::byte> Tables::bytes() const {
  std::vector<std::byte> out(sizeof(tenon_header));
  tenon_header header{};
  std::memcpy(header.magic, TENON_MAGIC, 8);
  header.abi_major = TENON_ABI_MAJOR;
  header.abi_minor = TENON_ABI_MINOR;
  header.weights_size = weights_size_;
  header.targets = targets_;
  header.producer = producer_;

  std::vector<tenon_list> placed;  // by body
  std::vector<tenon_step> steps;
  for (const Body& body : bodies_) {
    placed.push_back({index_of(steps.size()), index_of(body.steps.size())});
    steps.insert(steps.end(), body.steps.begin(), body.steps.end());
  }
  header.main = placed[main];
  header.on_state = placed[on_state];
  std::vector<tenon_list> bodies;
  for (Id id : control_bodies_) bodies.push_back(placed.at(id));

  std::vector<tenon_bind> binds = binds_;
  header.entry = {index_of(binds.size()), index_of(entry_.size())};
  binds.insert(binds.end(), entry_.begin(), entry_.end());

  std::vector<uint32_t> refs = refs_;
  std::vector<tenon_segment> segments;
  for (const std::vector<Id>& members : segments_) {
    segments.push_back({{index_of(refs.size()), index_of(members.size())}});
    refs.insert(refs.end(), members.begin(), members.end());
  }

  auto table = [&](const auto& elements) {
    out.resize((out.size() + 7) / 8 * 8);
    tenon_table placed_table{out.size(), elements.size()};
    auto bytes = std::as_bytes(std::span(elements.data(), elements.size()));
    out.insert(out.end(), bytes.begin(), bytes.end());
    return placed_table;
  };
  header.words = table(words_);
  header.refs = table(refs);
  header.exprs = table(exprs_);
  header.symbols = table(symbols_);
  header.buffers = table(buffers_);
  header.inputs = table(inputs_);
  header.outputs = table(outputs_);
  header.states = table(states_);
  header.functions = table(functions_);
  header.segments = table(segments);
  header.steps = table(steps);
  header.kernels = table(kernels_);
  header.instances = table(instances_);
  header.guards = table(guards_);
  header.calls = table(calls_);
  header.binds = table(binds);
  header.checks = table(checks_);
  header.controls = table(controls_);
  header.copies = table(copies_);
  header.stores = table(stores_);
  header.bodies = table(bodies);
  header.metadata = table(metadata_);
  header.strings = table(strings_);
  out.resize((out.size() + 7) / 8 * 8);
  header.size = out.size();
  std::memcpy(out.data(), &header, sizeof header);
  return out;
}

}  // namespace tenon::package
