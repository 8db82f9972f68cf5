#include "tenon/interp/bind_symbols.h"

#include <unordered_map>

namespace tenon::interp {

std::optional<std::string> why_not_bound(std::span<const loop::Input> expected, const sym::Ranges& ranges,
                                         std::span<const CallArg> inputs, sym::Bindings& symbols) {
  struct Later {
    SymInt expr;
    int64_t value;
    size_t input;
    int dim;
  };
  std::vector<Later> later;
  auto meet = [&](SymInt expr, int64_t value, size_t input, int dim) -> std::optional<std::string> {
    auto where = [&] {
      return dim < 0 ? "input " + expected[input].name : text("input ", expected[input].name, ", dimension ", dim);
    };
    if (expr.is_int()) {
      if (expr.as_int() != value) return text(where(), ": expected ", expr, ", got ", value);
      return std::nullopt;
    }
    if (expr.is_symbol() && !symbols.find(expr)) {
      sym::Range range = ranges.of(expr);
      // As torch.export: sizes 0 and 1 are let through where the range begins at 2, because that bound is an artefact
      // of tracing.
      bool fits = range.contains(value) || (value >= 0 && value < 2 && range.lo <= 2);
      if (!fits) return text(where(), ": expected a size in ", range, " (", expr, "), got ", value);
      symbols.set(expr, value);
      return std::nullopt;
    }
    later.push_back({expr, value, input, dim});
    return std::nullopt;
  };
  for (size_t i = 0; i < expected.size(); ++i) {
    const loop::Input& input = expected[i];
    if (input.type == loop::Input::Type::constant) continue;
    if (input.type == loop::Input::Type::tensor) {
      if (inputs[i].is_none()) continue;
      auto* t = inputs[i].get<Tensor>();
      if (!t || !*t) return text("input ", input.name, ": expected a tensor, ", input.meta);
      if (t->dtype() != input.meta.dtype)
        return text("input ", input.name, ": expected ", input.meta.dtype, ", got ", t->dtype());
      if (t->rank() != input.meta.rank())
        return text("input ", input.name, ": expected ", input.meta.rank(), " dimensions (", input.meta, "), got ",
                    t->meta());
      for (size_t d = 0; d < t->rank(); ++d)
        if (auto why = meet(input.meta.sizes[d], t->sizes()[d].as_int(), i, static_cast<int>(d))) return why;
    } else if (auto* e = inputs[i].get<SymInt>()) {
      if (auto why = meet(input.number, e->as_int(), i, -1)) return why;
    } else if (auto* d = inputs[i].get<double>(); d && input.number.is_symbol()) {
      symbols.set_real(input.number, *d);
    } else if (auto* b = inputs[i].get<bool>(); b && input.number.is_symbol()) {
      symbols.set(input.number, *b);
    }
  }
  // Derived sizes: solved where one symbol is still open, else compared. A size is looked at again when one of its
  // symbols has got its value, and only then.
  std::unordered_map<SymInt, std::vector<size_t>> waiting;
  std::vector<size_t> ready;
  for (size_t i = 0; i < later.size(); ++i) {
    ready.push_back(i);
    for (SymInt s : sym::symbols_of(later[i].expr))
      if (!symbols.find(s)) waiting[s].push_back(i);
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    const Later& l = later[ready[next]];
    std::vector<SymInt> open;
    std::vector<sym::Replacement> known;
    for (SymInt s : sym::symbols_of(l.expr)) {
      if (auto value = symbols.find(s)) known.emplace_back(s, *value);
      else open.push_back(s);
    }
    if (open.size() != 1) continue;
    auto solution = sym::solve(sym::substitute(l.expr, known), l.value, open[0]);
    if (!solution || !solution->value.is_int()) continue;
    symbols.set(open[0], solution->value.as_int());
    for (size_t again : waiting[open[0]]) ready.push_back(again);
  }
  for (const Later& l : later) {
    bool complete = true;
    for (SymInt s : sym::symbols_of(l.expr)) complete = complete && symbols.find(s);
    if (!complete) continue;
    int64_t derived = sym::evaluate(l.expr, symbols);
    if (derived != l.value)
      return text("input ", expected[l.input].name, l.dim < 0 ? "" : text(", dimension ", l.dim), ": expected ", l.expr,
                  " = ", derived, ", got ", l.value);
  }
  return std::nullopt;
}

sym::Bindings bind_symbols(std::span<const loop::Input> expected, const sym::Ranges& ranges,
                           std::span<const CallArg> inputs) {
  sym::Bindings symbols;
  if (auto why = why_not_bound(expected, ranges, inputs, symbols)) fail(*why);
  return symbols;
}

CallArg evaluated(SymInt e, const sym::Bindings& symbols) {
  if (e.is_int()) return e;
  if (e.is_boolean_typed()) return sym::evaluate_bool(e, symbols);
  if (e.kind() == sym::Kind::real || !e.is_integer_typed()) return sym::evaluate_real(e, symbols);
  return sym::evaluate(e, symbols);
}

}  // namespace tenon::interp
