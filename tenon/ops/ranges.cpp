#include "tenon/ops/ranges.h"

#include <cmath>

#include "tenon/base/saturate.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle arange, linspace, one_hot;

namespace {

using loop::Compute;
using loop::Expr;

bool has(const ArgsView& m, const char* arg) { return m.op.schema.find(arg) >= 0; }

// arange's three forms: not all have a start and a step.
bool counts_integers(const ArgsView& m) {
  for (const char* arg : {"start", "end", "step"})
    if (has(m, arg) && number_dtype(m.arg(arg)) != DType::i64) return false;
  return true;
}

SymInt arange_length(const ArgsView& m) {
  if (counts_integers(m)) {
    SymInt start = has(m, "start") ? m.integer("start") : SymInt(0), end = m.integer("end");
    SymInt step = has(m, "step") ? m.integer("step") : SymInt(1);
    m.require(!(step == SymInt(0)), "the step must not be 0");
    SymInt past = step.is_int() && step.as_int() < 0 ? SymInt(-1) : SymInt(1);
    SymInt n = step == SymInt(1) ? end - start : sym::floor_div(end - start + step - past, step);
    m.require(!n.is_int() || n.as_int() >= 0, "the bounds ", start, " and ", end, " do not fit the sign of the step ",
              step);
    return n;
  }
  double start = has(m, "start") ? m.number("start") : 0, end = m.number("end"),
         step = has(m, "step") ? m.number("step") : 1;
  m.require(step != 0 && (end - start) / step >= 0, "the bounds ", start, " and ", end, " do not fit the step ", step);
  return saturated(std::ceil((end - start) / step));
}

Metas arange_meta(MetaCall& m) {
  return factory_meta(m, {arange_length(m)}, counts_integers(m) ? DType::i64 : DType::f32);
}

void lower_arange(Lower& l) {
  Compute type = loop::compute_of(l.out().dtype());
  if (type == Compute::f32) type = Compute::f64;  // as PyTorch: steps are counted in double
  l.tensor([&](const Index& i) {
    Expr start = has(l, "start") ? l.scalar("start", type) : l.constant(0, type);
    Expr step = has(l, "step") ? l.scalar("step", type) : l.constant(1, type);
    return start + cast(i[0], type) * step;
  });
}

// As arange, but the end counts as one of the numbers, and they are real.
Metas range_meta(MetaCall& m) {
  double start = m.number("start"), end = m.number("end"), step = has(m, "step") ? m.number("step") : 1;
  m.require(step != 0 && (end - start) / step >= 0, "the bounds ", start, " and ", end, " do not fit the step ", step);
  return factory_meta(m, {saturated(std::floor((end - start) / step) + 1)}, DType::f32);
}

// Numbers between two; counted from the nearer end, so that both are met.
Metas spaced_meta(MetaCall& m) {
  int64_t steps = m.constant("steps");
  m.require(steps >= 0, "steps: expected a number that is not negative, got ", steps);
  DType dtype = DType::f32;
  for (const char* end : {"start", "end"}) {
    if (!m.is_tensor(end)) continue;
    m.require(m.meta(end).rank() == 0, end, ": expected a tensor without dimensions, got ", m.meta(end));
    if (m.meta(end).dtype == DType::f64) dtype = DType::f64;
  }
  return factory_meta(m, {SymInt(steps)}, dtype);
}

void lower_spaced(Lower& l, bool powers) {
  int64_t steps = l.constant("steps");
  DType dtype = l.out().dtype();
  Compute type = loop::compute_of(dtype);
  bool whole = type == Compute::i64;
  // Integers start and end as such, the steps between them are real.
  Compute step_type = whole ? (powers ? Compute::f32 : Compute::f64) : type;
  auto rounded = [&](Expr e) { return whole ? e : round_to(e, dtype); };
  l.tensor([&](const Index& i) -> Expr {
    auto end_point = [&](const char* arg) {
      return cast(whole ? cast(l.scalar(arg, Compute::f64), type) : l.scalar(arg, type), step_type);
    };
    Expr start = end_point("start"), end = end_point("end"), value = start;
    if (steps > 1) {
      Expr step = rounded((end - start) / static_cast<double>(steps - 1)), k = cast(i[0], step_type);
      value = loop::select(i[0] < steps / 2, start + rounded(step * k),
                           end - rounded(step * (static_cast<double>(steps - 1) - k)));
    }
    if (!powers) return value;
    return pow(l.constant(l.number("base"), Compute::f64), cast(rounded(value), Compute::f64));
  });
}

}  // namespace

void register_ranges(Registry& ops) {
  ops.add(arange, {
                      .schema = "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " TENON_TENSOR_OPTIONS
                                ") -> Tensor",
                      .meta = arange_meta,
                      .lower = lower_arange,
                  });
  ops.overload(arange, {"arange(Scalar end, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                        "arange.start(Scalar start, Scalar end, *, " TENON_TENSOR_OPTIONS ") -> Tensor"});
  for (const char* schema :
       {"range.step(Scalar start, Scalar end, Scalar step=1, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
        "range(Scalar start, Scalar end, *, " TENON_TENSOR_OPTIONS ") -> Tensor"})
    ops.add({.schema = schema, .meta = range_meta, .lower = lower_arange});
  ops.add(linspace,
          {
              .schema = "linspace(Scalar start, Scalar end, int steps, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
              .meta = spaced_meta,
              .lower = [](Lower& l) { lower_spaced(l, false); },
              .complex = [](Build& b) { return by_parts(b, "start, end"); },
          });
  ops.overload(linspace,
               {"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " TENON_TENSOR_OPTIONS ") -> Tensor",
                "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " TENON_TENSOR_OPTIONS ") -> Tensor"});
  for (const char* schema :
       {"logspace(Scalar start, Scalar end, int steps, float base=10., *, " TENON_TENSOR_OPTIONS ") -> Tensor",
        "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, " TENON_TENSOR_OPTIONS
        ") -> Tensor",
        "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, " TENON_TENSOR_OPTIONS
        ") -> Tensor",
        "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, " TENON_TENSOR_OPTIONS
        ") -> Tensor"})
    ops.add({
        .schema = schema,
        .meta = spaced_meta,
        .lower = [](Lower& l) { lower_spaced(l, true); },
        .complex = [](Build& b) -> Results {
          Tensor exponents = linspace(b.arg("start"), b.arg("end"), b.arg("steps"), kw("dtype", b.arg("dtype")));
          return exp(exponents * std::log(b.number("base")));
        },
    });
  ops.add(one_hot, {
                       .schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor",
                       .kind = OpKind::composite,
                       .decompose = [](Build& b) -> Results {
                         Tensor x = b["self"];
                         int64_t classes = b.constant("num_classes");
                         b.require(x.dtype() == DType::i64, "expected an i64 tensor of class numbers, got ", x.meta());
                         b.supports(classes > 0, "num_classes: expected a positive number, got ", classes,
                                    "; finding it from the data is not supported");
                         Tensor numbers = arange(0, classes, 1), rows = unsqueeze(x, -1);
                         return one(to(eq(rows, numbers), DType::i64));
                       },
                   });
}

}  // namespace tenon
