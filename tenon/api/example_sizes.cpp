#include "tenon/api/example_sizes.h"

#include <algorithm>
#include <set>

#include "tenon/api/access.h"
#include "tenon/api/size_code.h"
#include "tenon/api/symbol_names.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/print.h"

namespace tenon::v0::detail {

namespace sym = tenon::sym;
using sym::Expr;
using sym::Range;
using tenon::require;
using tenon::text;

namespace {

constexpr int64_t least_open = 2;  // sizes 0 and 1 are special: a dimension of size 1 is repeated, one of 0 is empty

std::string bounds_text(Range r) {
  if (!r.has_hi()) return text("at least ", r.lo);
  return r.lo == r.hi ? text(r.lo) : text("from ", r.lo, " to ", r.hi);
}

std::string dim_code(const std::string& name, Range r) {
  std::string bounds;
  if (r.lo > 0) bounds += text(".min = ", r.lo);
  if (r.has_hi()) bounds += text(bounds.empty() ? "" : ", ", ".max = ", r.hi);
  return text(name, " = Dim(\"", name, "\"", bounds.empty() ? "" : text(", {", bounds, "}"), ")");
}

Range scaled(Range r, const Dim& spec) {
  auto end = [&](int64_t v) {
    int64_t out = 0;
    bool fits = !__builtin_mul_overflow(v, spec.factor(), &out) && !__builtin_add_overflow(out, spec.offset(), &out);
    return fits ? out : Range::infinity;
  };
  return {end(r.lo), r.has_hi() ? end(r.hi) : Range::infinity};
}

tenon::Sizes strides_like(const tenon::TensorMeta& example, const tenon::Sizes& sizes, const std::string& input) {
  if (tenon::is_contiguous(example)) return tenon::contiguous_strides(sizes);
  require(tenon::is_dense(example), "export_program: ", input,
          ": an input whose elements have gaps between them cannot have open dimensions, got ", example,
          "; give contiguous() of it");
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return example.strides[a].as_int() > example.strides[b].as_int(); });
  tenon::Sizes out = sizes;
  tenon::SymInt dense = 1;
  for (size_t i = order.size(); i-- > 0; dense = dense * sizes[order[i]]) out[order[i]] = dense;
  return out;
}

}  // namespace

ExampleSizes::ExampleSizes(std::vector<Input> inputs, const DynamicShapes& shapes) : inputs_(std::move(inputs)) {
  std::vector<std::string> names;
  for (const Input& input : inputs_) names.push_back(input.name);
  for (const auto& [name, dims] : shapes)
    require(std::find(names.begin(), names.end(), name) != names.end(), "export_program: dynamic_shapes speaks of ",
            tenon::quoted(name, 100), ", and the inputs are ", tenon::join(names, ", "));
  for (size_t i = 0; i < inputs_.size(); ++i) {
    auto found = shapes.find(inputs_[i].name);
    if (found == shapes.end()) continue;
    int64_t rank = static_cast<int64_t>(inputs_[i].meta.rank());
    std::set<int64_t> seen;
    for (const auto& [dim, spec] : found->second) {
      require(dim >= -rank && dim < rank, "export_program: dynamic_shapes: ", inputs_[i].name, " has no dimension ",
              dim, "; it is ", inputs_[i].meta);
      int64_t own = dim < 0 ? dim + rank : dim;
      require(seen.insert(own).second, "export_program: dynamic_shapes: dimension ", own, " of ", inputs_[i].name,
              " is given twice");
      open(i, static_cast<size_t>(own), spec);
    }
  }
}

void ExampleSizes::open(size_t input, size_t dim, const Dim& spec) {
  Input& given = inputs_[input];
  int64_t size = given.meta.sizes[dim].as_int();
  std::string place = text(given.name, ", dimension ", dim);
  std::string source = text("L['", given.name, "'].size()[", dim, "]");
  Range bounds{spec.bounds().min, spec.bounds().max};
  switch (spec.kind()) {
    case Dim::Kind::fixed:
      require(!spec.size() || *spec.size() == size, "export_program: ", place, ": expected the size ",
              spec.size().value_or(0), " that dynamic_shapes gives, got ", size);
      return;
    case Dim::Kind::named: {
      Symbol& s = named(spec, place, source, size);
      given.meta.sizes[dim] = s.symbol * spec.factor() + spec.offset();
      return;
    }
    case Dim::Kind::automatic:
    case Dim::Kind::dynamic:
      require(bounds.contains(size), "export_program: ", place, ": expected a size ", bounds_text(bounds), ", got ",
              size);
      if (size < least_open || bounds.lo == bounds.hi) {
        require(spec.kind() == Dim::Kind::automatic, "export_program: ", place,
                " shall be dynamic, and its example has size ", size,
                ", which programs treat specially; give an example of size 2 or more, or use Dim::automatic()");
        return;
      }
      given.meta.sizes[dim] = fresh(spec, place, source, place, size).symbol;
  }
}

ExampleSizes::Symbol& ExampleSizes::named(const Dim& spec, const std::string& place, const std::string& source,
                                          int64_t size) {
  Range bounds{spec.bounds().min, spec.bounds().max}, here = scaled(bounds, spec);
  std::string as = spec.name();
  if (spec.factor() != 1) as = text(spec.factor(), "*", as);
  if (spec.offset() != 0) as = text(as, spec.offset() < 0 ? " - " : " + ", std::abs(spec.offset()));
  require(here.contains(size), "export_program: ", place, ": expected ", as, ", a size ", bounds_text(here), ", got ",
          size);
  require((size - spec.offset()) % spec.factor() == 0, "export_program: ", place, ": expected a size of the form ", as,
          ", got ", size);
  int64_t hint = (size - spec.offset()) / spec.factor();
  for (Symbol& s : symbols_)
    if (s.kind == Dim::Kind::named && s.label == spec.name()) {
      require(s.declared == bounds, "export_program: the dimension ", s.label, " is given with sizes ",
              bounds_text(s.declared), " at ", s.place, " and ", bounds_text(bounds), " at ", place);
      require(s.hint == hint, "export_program: ", place, ": expected ", as, " = ",
              s.hint * spec.factor() + spec.offset(), ", because ", s.label, " = ", s.hint, " at ", s.place, ", got ",
              size);
      if (spec.factor() == 1 && spec.offset() == 0) s.source = source, s.place = place;
      return s;
    }
  require(hint >= least_open, "export_program: ", place, " shall be ", as, ", and its example has size ", size,
          ", which programs treat specially; give an example with ", spec.name(), " = 2 or more");
  std::string own = source;
  if (spec.offset() != 0) own = text("(", own, " - ", spec.offset(), ")");
  if (spec.factor() != 1) own = text("(", own, " // ", spec.factor(), ")");
  return fresh(spec, spec.name(), own, place, hint);
}

ExampleSizes::Symbol& ExampleSizes::fresh(const Dim& spec, std::string label, const std::string& source,
                                          const std::string& place, int64_t hint) {
  int number = symbol_number(source);
  auto taken = [&] {
    return std::any_of(symbols_.begin(), symbols_.end(),
                       [&](const Symbol& s) { return s.symbol.name() == text("s", number); });
  };
  while (taken()) ++number;
  Range declared{spec.bounds().min, spec.bounds().max};
  Expr symbol = Expr::symbol(text("s", number), {.positive = true});
  hints_.set(symbol, hint);
  symbols_.push_back({symbol, std::move(label), source, place, spec.kind(), declared, declared, hint, {}});
  return symbols_.back();
}

ExampleSizes::Symbol* ExampleSizes::find(Expr symbol) {
  for (Symbol& s : symbols_)
    if (s.symbol == symbol) return &s;
  return nullptr;
}

std::string ExampleSizes::where(Expr symbol) const {
  const Symbol* s = find(symbol);
  return !s ? sym::to_infix(symbol) : s->label == s->place ? s->place : text(s->label, " (", s->place, ")");
}

Expr ExampleSizes::resolved(Expr e) const {
  std::vector<sym::Replacement> known;
  for (const Symbol& s : symbols_)
    if (s.known_as) known.emplace_back(s.symbol, *s.known_as);
  for (size_t i = 0; i < known.size(); ++i) e = sym::substitute(e, known);
  return e;
}

void ExampleSizes::begin(sym::ShapeEnv& shapes) {
  shapes_ = &shapes;
  conditions_.clear();
  learnt_ = false;
  for (const Symbol& s : symbols_) {
    Expr e = resolved(s.symbol);
    if (!e.is_int()) shapes.constrain(e, {std::max(s.declared.lo, least_open), s.declared.hi});
  }
}

tenon::TensorMeta ExampleSizes::meta(size_t input) const {
  tenon::TensorMeta out = inputs_[input].meta;
  bool open = false;
  for (tenon::SymInt& size : out.sizes) {
    size = resolved(size);
    open = open || !size.is_int();
  }
  if (!open) return out;
  tenon::TensorMeta example = out;
  for (tenon::SymInt& size : example.sizes) size = *value(size);
  out.strides = strides_like(example, out.sizes, inputs_[input].name);
  return out;
}

std::optional<int64_t> ExampleSizes::value(Expr size) const {
  for (Expr symbol : sym::symbols_of(size))
    if (!hints_.find(symbol)) return std::nullopt;
  return sym::evaluate(size, hints_);
}

std::optional<bool> ExampleSizes::decide(Expr condition) {
  Expr now = resolved(condition);
  if (now.is(sym::Kind::boolean)) return now.boolean_value();
  for (Expr symbol : sym::symbols_of(now))
    if (!hints_.find(symbol)) return std::nullopt;
  bool holds = sym::evaluate_bool(now, hints_);
  learn(holds ? now : sym::logical_not(now));
  return holds;
}

void ExampleSizes::learn(Expr condition) {
  if (condition.is(sym::Kind::boolean)) return;
  if (condition.is(sym::Kind::logical_and)) {
    for (Expr each : condition.args()) learn(each);
    return;
  }
  if (condition.is(sym::Kind::eq) && replace(condition.args()[0], condition.args()[1])) return;
  for (const Condition& known : conditions_)
    if (known.expr == condition) return;
  conditions_.push_back({condition, at_});
  if (!condition.is_boolean_typed() || condition.args().size() != 2) return;
  Expr difference = condition.args()[0] - condition.args()[1];
  switch (condition.kind()) {
    case sym::Kind::lt: return shapes_->constrain(difference, {Range::minus_infinity, -1});
    case sym::Kind::le: return shapes_->constrain(difference, {Range::minus_infinity, 0});
    case sym::Kind::gt: return shapes_->constrain(difference, {1, Range::infinity});
    case sym::Kind::ge: return shapes_->constrain(difference, {0, Range::infinity});
    default: return;  // nothing that ranges can say
  }
}

bool ExampleSizes::replace(Expr left, Expr right) {
  Expr difference = left - right;
  std::vector<Symbol*> candidates;
  for (Symbol& s : symbols_)
    if (sym::has_symbol(difference, s.symbol)) candidates.push_back(&s);
  auto order = [](const Symbol* s) {
    return s->kind == Dim::Kind::automatic ? 0 : s->kind == Dim::Kind::dynamic ? 1 : 2;
  };
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Symbol* a, const Symbol* b) {
    return order(a) != order(b) ? order(a) < order(b) : a > b;  // the later one follows from the earlier
  });
  for (Symbol* s : candidates) {
    auto solution = sym::solve(difference, Expr(0), s->symbol);
    bool plain = solution && solution->unique && solution->condition.is(sym::Kind::boolean) &&
                 solution->condition.boolean_value();
    if (!plain || value(solution->value) != s->hint) continue;
    std::string because = at_.empty() ? "" : text(" (", at_, ")");
    bool all_named = true;
    std::vector<sym::Replacement> labels;
    for (Expr other : sym::symbols_of(solution->value)) {
      const Symbol* o = find(other);
      all_named = all_named && o && o->kind == Dim::Kind::named;
      if (o) labels.emplace_back(other, Expr::symbol(o->label));
    }
    if (solution->value.is_int()) {
      if (s->kind != Dim::Kind::automatic) {
        faults_.push_back(
            text(where(s->symbol), " shall be open, and forward works with the size ", s->hint, " alone", because));
        fixes_.push_back(s->kind == Dim::Kind::named ? text(s->label, " = Dim::fixed(", s->hint, ")")
                                                     : text("Dim::automatic() or Dim::fixed() at ", s->place));
      }
    } else if (s->kind == Dim::Kind::named && all_named) {
      std::string as = sym::to_infix(sym::substitute(solution->value, labels));
      faults_.push_back(text(where(s->symbol), " must always be ", as, because));
      fixes_.push_back(text(s->label, " = ", as));
    }
    s->known_as = solution->value;
    equalities_.push_back(code(sym::eq(s->symbol, solution->value)));
    learnt_ = true;
    return true;
  }
  return false;
}

void ExampleSizes::check_named(const Symbol& s, std::vector<std::string>& faults, std::vector<std::string>& fixes) {
  Range promised{std::max(s.declared.lo, least_open), s.declared.hi};
  Range allowed = tenon::sym::intersect(shapes_->range_of(s.symbol), promised);
  if (allowed == promised) return;
  std::string reason;
  for (const Condition& c : conditions_)
    if (sym::has_symbol(c.expr, s.symbol)) reason = text(": ", code(c.expr), c.reason.empty() ? "" : " in ", c.reason);
  faults.push_back(text(where(s.symbol), " may be ", bounds_text(s.declared),
                        ", and forward takes another way unless it is ", bounds_text(allowed), reason));
  fixes.push_back(dim_code(s.label, allowed));
}

void ExampleSizes::finish(tenon::ExportedProgram& program) {
  std::vector<std::string> faults = faults_, fixes = fixes_;
  if (faults.empty())
    for (const Symbol& s : symbols_)
      if (s.kind == Dim::Kind::named && !s.known_as) check_named(s, faults, fixes);
  for (const sym::Guard& guard : shapes_->guards)
    if (std::none_of(conditions_.begin(), conditions_.end(),
                     [&](const Condition& c) { return c.expr == guard.condition; }))
      conditions_.push_back({guard.condition, guard.reason});
  std::vector<std::string> guards = equalities_;
  for (const Condition& c : conditions_) {
    if (sym::decide(c.expr, shapes_->ranges) == true) continue;
    std::vector<Expr> symbols = sym::symbols_of(c.expr);
    const Symbol* only = symbols.size() == 1 ? find(symbols[0]) : nullptr;
    if (only && only->kind == Dim::Kind::named && faults.empty()) {
      int64_t first = std::max(only->declared.lo, least_open);
      int64_t last = std::min(only->declared.hi, first + 256);
      for (int64_t v = first; v <= last; ++v) {
        if (sym::evaluate_bool(c.expr, {{only->symbol, v}})) continue;
        faults.push_back(text(where(only->symbol), " may be ", bounds_text(only->declared),
                              ", and forward takes another way for ", v, ": it was traced for ", code(c.expr),
                              c.reason.empty() ? "" : " in ", c.reason));
        if (c.expr.is(sym::Kind::eq) && c.expr.args()[0].is(sym::Kind::mod) && c.expr.args()[1] == Expr(0) &&
            c.expr.args()[0].args()[0] == only->symbol && c.expr.args()[0].args()[1].is_int())
          fixes.push_back(text(only->label, " = ", c.expr.args()[0].args()[1], " * Dim(\"_", only->label, "\")"));
        break;
      }
    }
    guards.push_back(code(c.expr));
  }
  require(faults.empty(), "export_program: ", tenon::join(faults, "; "),
          fixes.empty() ? "; use Dim::automatic() there" : "; suggested fixes: ", tenon::join(fixes, ", "));

  sym::ShapeEnv shapes;
  shapes.next_unbacked = shapes_->next_unbacked;
  auto write = [&](Expr e, Range range) {
    program.ranges.emplace_back(sym::to_infix(e), range);
    shapes.constrain(e, range);
  };
  for (const Symbol& s : symbols_) {
    program.hints[std::string(s.symbol.name())] = s.hint;
    if (s.known_as) continue;
    write(s.symbol, s.kind == Dim::Kind::named ? s.declared : shapes_->range_of(s.symbol));
  }
  for (const Input& input : inputs_)
    for (tenon::SymInt size : input.meta.sizes)
      if (Expr e = resolved(size); !e.is_int() && !e.is_symbol()) {
        bool listed = std::any_of(program.ranges.begin(), program.ranges.end(),
                                  [&](const auto& known) { return known.first == sym::to_infix(e); });
        if (!listed) write(e, sym::range_of(e, shapes.ranges));
      }
  for (const sym::Ranges::Entry& entry : shapes_->ranges.entries())
    if (!find(entry.symbol)) write(entry.symbol, entry.range);
  for (const Symbol& s : symbols_)
    if (s.known_as) program.hints.erase(std::string(s.symbol.name()));
  program.graph->shapes = std::move(shapes);
  for (std::string& guard : guards)
    if (std::find(program.guards.begin(), program.guards.end(), guard) == program.guards.end())
      program.guards.push_back(std::move(guard));
}

std::string ExampleSizes::code(Expr condition) const {
  return size_code(condition, [&](Expr symbol) {
    const Symbol* s = find(symbol);
    return s ? s->source : std::string(symbol.name());
  });
}

std::vector<ExampleSizes::Probe> ExampleSizes::probes() const {
  std::vector<Probe> out;
  sym::Bindings examples;
  for (const Symbol& s : symbols_)
    if (!s.known_as) examples.set(s.symbol, s.hint);
  for (const Symbol& s : symbols_) {
    if (s.known_as) continue;
    Range r = shapes_->range_of(s.symbol);
    std::set<int64_t> values = {std::max(r.lo, least_open), std::max(r.lo, least_open) + 1, s.hint + 1};
    if (r.hi <= 1 << 20) values.insert(r.hi);
    for (int64_t v : values) {
      if (!r.contains(v) || v == s.hint) continue;
      Probe probe{text(where(s.symbol), " = ", v), examples};
      probe.sizes.set(s.symbol, v);
      bool meant = std::all_of(conditions_.begin(), conditions_.end(),
                               [&](const Condition& c) { return sym::evaluate_bool(c.expr, probe.sizes); });
      if (meant) out.push_back(std::move(probe));
    }
  }
  return out;
}

}  // namespace tenon::v0::detail
