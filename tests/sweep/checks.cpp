#include "tests/sweep/checks.h"

#include <algorithm>
#include <cmath>

#include "tenon/rules/op_def.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"
#include "tests/sweep/compare.h"

namespace tenon::sweep {
namespace {

std::vector<Tensor> tensors_of(const CallArg& arg) {
  std::vector<Tensor> out;
  for_each_tensor(arg, [&](const Tensor& t) { out.push_back(t); });
  return out;
}

// The tensor that "self" or "tensors[1]" names.
Tensor argument(const Op& op, std::span<const CallArg> args, const std::string& name) {
  size_t bracket = name.find('[');
  int at = op.schema.find(name.substr(0, bracket));
  if (at < 0) return {};
  std::vector<Tensor> all = tensors_of(args[static_cast<size_t>(at)]);
  size_t item = bracket == std::string::npos ? 0 : static_cast<size_t>(std::stoll(name.substr(bracket + 1)));
  return item < all.size() ? all[item] : Tensor();
}

Outcome alias_differs(const Op& op, std::span<const CallArg> args, const Tensor& got, const Expected& want) {
  if (got.numel() == SymInt(0)) return std::nullopt;
  if (!want.alias.empty()) {
    Tensor base = argument(op, args, want.alias);
    if (base && base.storage() == got.storage()) return std::nullopt;
    return text("expected to share the storage of ", want.alias, ", has its own");
  }
  for (size_t i = 0; i < args.size(); ++i)
    for (const Tensor& t : tensors_of(args[i]))
      if (t && t.storage() == got.storage())
        return text("expected storage of its own, shares that of ", op.schema.args[i].name);
  return std::nullopt;
}

Outcome tensor_differs(const Tensor& got, const Expected& want) {
  if (auto wrong = meta_differs(got.meta(), want.meta)) return wrong;
  if (want.exact) return values_differ(got, want.exact, want.error);
  return std::nullopt;
}

Outcome number_differs(const CallArg& got, const CallArg& want) {
  if (got == want) return std::nullopt;
  const double *a = got.get<double>(), *b = want.get<double>();
  if (a && b && ((*a != *a && *b != *b) || std::abs(*a - *b) <= 2e-6 * std::abs(*b))) return std::nullopt;
  return text("expected ", describe(want), ", got ", describe(got));
}

Outcome results_differ(const Op& op, std::span<const CallArg> args, const CallResults& got,
                       const std::vector<ExpectedResult>& want, bool aliases) {
  if (got.size() != want.size()) return text("expected ", want.size(), " results, got ", got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (!want[i].is_tensor && !want[i].is_list) {
      if (!want[i].number) continue;
      if (auto wrong = number_differs(got[i], *want[i].number)) return text("result ", i, ": ", *wrong);
      continue;
    }
    std::vector<Tensor> tensors = tensors_of(got[i]);
    if (got[i].is_none()) tensors.emplace_back();
    if (tensors.size() != want[i].tensors.size())
      return text("result ", i, ": expected ", want[i].tensors.size(), " tensors, got ", describe(got[i]));
    for (size_t k = 0; k < tensors.size(); ++k) {
      std::string which = want[i].is_list ? text("result ", i, "[", k, "]: ") : text("result ", i, ": ");
      const std::optional<Expected>& expected = want[i].tensors[k];
      if (!expected && !tensors[k]) continue;
      if (!expected || !tensors[k])
        return which + (expected ? "expected a tensor, got none" : "expected none, got a tensor");
      if (auto wrong = tensor_differs(tensors[k], *expected)) return which + *wrong;
      if (aliases)
        if (auto wrong = alias_differs(op, args, tensors[k], *expected)) return which + *wrong;
    }
  }
  return std::nullopt;
}

std::string bytes_of(const Tensor& t) {
  return {reinterpret_cast<const char*>(t.storage()->data()), t.storage()->size()};
}

// Written arguments hold what they should; the others what they held before.
Outcome arguments_differ(const Op& op, const Case& recorded, std::span<const CallArg> args) {
  auto written = recorded.written();
  std::vector<const Storage*> touched;
  for (const auto& [name, want] : written) {
    Tensor now = argument(op, args, name);
    if (!now) return text("argument ", name, " is missing");
    touched.push_back(now.storage().get());
    if (auto wrong = tensor_differs(now, want)) return text("argument ", name, " after the call: ", *wrong);
  }
  CallArgs before = recorded.arguments(op);
  for (size_t i = 0; i < args.size(); ++i) {
    std::vector<Tensor> now = tensors_of(args[i]), then = tensors_of(before[i]);
    for (size_t k = 0; k < now.size(); ++k) {
      if (!now[k] || !then[k] || std::find(touched.begin(), touched.end(), now[k].storage().get()) != touched.end())
        continue;
      if (now[k].meta() != then[k].meta() || bytes_of(now[k]) != bytes_of(then[k]))
        return text("argument ", op.schema.args[i].name, " was changed by the call");
    }
  }
  return std::nullopt;
}

}  // namespace

Outcome check_schema(const Op& op, const std::string& pytorch) {
  std::string ours = to_text(op.schema);
  if (ours == pytorch) return std::nullopt;
  return text("expected ", pytorch, ", got ", ours);
}

bool determined(const Op& op, const Case& recorded) {
  if (!op.traits.random) return true;
  for (int draw = 0; draw < 8; ++draw) {
    CallArgs args = recorded.arguments(op), again = recorded.arguments(op);
    Results a = call_op(op, args), b = call_op(op, again);
    for (size_t i = 0; i < a.values.size(); ++i) {
      std::vector<Tensor> x = tensors_of(a.values[i]), y = tensors_of(b.values[i]);
      for (size_t k = 0; k < x.size(); ++k)
        if (values_differ(x[k], y[k], 0)) return false;
    }
  }
  return true;
}

Outcome check_results(const Op& op, const Case& recorded) {
  if (!determined(op, recorded)) return check_meta(op, recorded);
  CallArgs args = recorded.arguments(op);
  Results got = call_op(op, args);
  if (auto wrong = results_differ(op, args, got.values, recorded.results(), true)) return wrong;
  return arguments_differ(op, recorded, args);
}

Outcome check_meta(const Op& op, const Case& recorded) {
  GraphBody scratch;
  Tracer tracer(scratch);
  CallArgs args;
  for (const CallArg& a : recorded.arguments(op))
    args.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) {
      return t && !t.meta().wrapped_number ? tracer.tensor(add_input(scratch, "x", t.meta())) : t;
    }));
  ShapesScope shapes(&scratch.shapes);
  Metas got = infer_any(op, args);
  std::vector<ExpectedResult> want = recorded.results();
  if (got.values.size() != want.size()) return text("expected ", want.size(), " results, got ", got.values.size());
  for (size_t i = 0; i < want.size(); ++i) {
    std::vector<TensorMeta> metas;
    for_each_tensor(got.values[i], [&](const TensorMeta& m) { metas.push_back(m); });
    if (!want[i].is_tensor && !want[i].is_list) continue;
    if (want[i].is_tensor && !want[i].tensors[0]) {
      if (!metas.empty()) return text("result ", i, ": expected none, got ", metas[0]);
      continue;
    }
    if (metas.size() != want[i].tensors.size())
      return text("result ", i, ": expected ", want[i].tensors.size(), " tensors, got ", metas.size());
    for (size_t k = 0; k < metas.size(); ++k)
      if (want[i].tensors[k])
        if (auto wrong = meta_differs(metas[k], want[i].tensors[k]->meta)) return text("result ", i, ": ", *wrong);
  }
  return std::nullopt;
}

bool has_decomposition(const Op& op) {
  const OpDef* def = op.def;
  if (!def || op.functional) return false;
  bool computes = def->lower || def->scalar || def->host || def->view;
  return (computes && def->decompose) || def->for_grad;
}

Outcome check_decomposition(const Op& op, const Case& recorded) {
  for (DecomposeRule rule : {op.def->decompose, op.def->for_grad}) {
    if (!rule) continue;
    CallArgs args = recorded.arguments(op);
    Build build(op, args);
    Results got = rule(build);
    if (auto wrong = results_differ(op, args, got.values, recorded.results(), false))
      return (rule == op.def->for_grad ? "for_grad: " : "") + *wrong;
  }
  return std::nullopt;
}

}  // namespace tenon::sweep
