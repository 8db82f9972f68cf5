#include "tenon/ops/softmax.h"

#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle softmax, log_softmax, safe_softmax;
static Handle softmax_of, log_softmax_of, softmax_backward, log_softmax_backward;

namespace {

using loop::Compute;

Metas softmax_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  (void)m.dim("dim", x.rank());
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x, "; convert it or give a dtype");
  return like(x, x.sizes, m.flag("half_to_float") ? DType::f32 : x.dtype);
}

Metas gradient_meta(MetaCall& m) {
  const TensorMeta& g = m.meta("grad_output");
  (void)m.dim("dim", g.rank());
  for (const char* arg : {"grad_output", "output"})
    m.require(is_floating(m.meta(arg).dtype), arg, ": expected a floating point tensor, got ", m.meta(arg));
  require_sizes(m, "output", g.sizes);
  return like(g, g.sizes, m.dtype("input_dtype").value_or(g.dtype));
}

Reduced along_dim(const Lower& l, const Ref& x) {
  size_t rank = x.sizes().size(), dim = l.dim("dim", rank);
  SmallVector<size_t, 6> dims;
  if (rank > 0) dims.push_back(dim);  // a tensor without dimensions is a row of one element
  return Reduced(dims, true, rank);
}

// exp(x - max), or its logarithm, over its sum along the dim.
void lower_softmax(Lower& l, bool logarithm) {
  Ref x = l["self"], out = l.out();
  Reduced over = along_dim(l, x);
  Sizes extents = extents_of(x.sizes(), over.dims), row = reduced_sizes(x.sizes(), over.dims, true);
  DType dtype = computable(out.dtype());
  Compute type = loop::compute_of(dtype);
  Ref high = l.temporary(dtype, row, [&](const Index& i) {
    return l.reduce(loop::Combine::max, extents, [&](const Index& r) { return cast(x.at(over.at(i, r)), type); });
  });
  auto shifted = [&](const Index& i) { return cast(x.at(i), type) - high.broadcast_at(i); };
  if (logarithm) {
    Ref total = l.temporary(dtype, row, [&](const Index& i) {
      return loop::log(l.sum(extents, [&](const Index& r) { return loop::exp(shifted(over.at(i, r))); }));
    });
    l.tensor([&](const Index& i) { return shifted(i) - total.broadcast_at(i); });
    return;
  }
  Ref e = l.temporary(dtype, Sizes(x.sizes()), [&](const Index& i) { return loop::exp(shifted(i)); });
  Ref share = l.temporary(dtype, row, [&](const Index& i) {
    return l.constant(1, type) / l.sum(extents, [&](const Index& r) { return e.at(over.at(i, r)); });
  });
  l.tensor([&](const Index& i) { return e.at(i) * share.broadcast_at(i); });
}

// softmax: (g - sum(g * y)) * y. log_softmax: g - exp(y) * sum(g).
void lower_softmax_gradient(Lower& l, bool logarithm) {
  Ref g = l["grad_output"], y = l["output"];
  Reduced over = along_dim(l, g);
  DType dtype = computable(g.dtype());
  Compute type = loop::compute_of(dtype);
  Ref total = l.temporary(dtype, reduced_sizes(g.sizes(), over.dims, true), [&](const Index& i) {
    return l.sum(extents_of(g.sizes(), over.dims), [&](const Index& r) {
      Index at = over.at(i, r);
      return logarithm ? g.at(at) : g.at(at) * cast(y.at(at), type);
    });
  });
  l.tensor([&](const Index& i) {
    loop::Expr s = total.broadcast_at(i), v = cast(y.at(i), type);
    return logarithm ? g.at(i) - loop::exp(v) * s : (g.at(i) - s) * v;
  });
}

Results converted(Build& b, const Handle& handle) {
  std::optional<DType> dtype = b.dtype("dtype");
  return handle(dtype ? to(b["self"], *dtype) : b["self"], b.arg("dim"), false);
}

}  // namespace

void register_softmax(Registry& ops) {
  ops.add(softmax, {
                       .schema = "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                       .kind = OpKind::composite,
                       .decompose = [](Build& b) { return converted(b, softmax_of); },
                   });
  ops.add(log_softmax, {
                           .schema = "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                           .kind = OpKind::composite,
                           .decompose = [](Build& b) { return converted(b, log_softmax_of); },
                       });
  ops.alias(softmax, {"special_softmax"});
  ops.add({
      .schema = "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return converted(b, log_softmax_of); },
  });
  ops.add(softmax_of,
          {
              .schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
              .kind = OpKind::reduction,
              .meta = softmax_meta,
              .lower = [](Lower& l) { lower_softmax(l, false); },
              .vjp = {{"self",
                       [](Vjp& v) { return softmax_backward(v.grad(), v.out(), v.arg("dim"), v["self"].dtype()); }}},
          });
  ops.add(
      log_softmax_of,
      {
          .schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
          .kind = OpKind::reduction,
          .meta = softmax_meta,
          .lower = [](Lower& l) { lower_softmax(l, true); },
          .vjp = {{"self",
                   [](Vjp& v) { return log_softmax_backward(v.grad(), v.out(), v.arg("dim"), v["self"].dtype()); }}},
      });
  ops.add(
      softmax_backward,
      {
          .schema =
              "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
          .kind = OpKind::reduction,
          .meta = gradient_meta,
          .lower = [](Lower& l) { lower_softmax_gradient(l, false); },
          .vjp = {{"grad_output",
                   [](Vjp& v) {
                     return softmax_backward(v.grad(), v["output"], v.arg("dim"), v["grad_output"].dtype());
                   }},
                  {"output",
                   [](Vjp& v) {
                     Tensor gg = v.grad(), g = v["grad_output"], y = v["output"];
                     auto total = [&](const Tensor& t) { return sum(t, v.arg("dim"), true); };
                     return gg * (g - total(g * y)) - g * total(gg * y);
                   }}},
      });
  ops.add(log_softmax_backward,
          {
              .schema = "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                        "ScalarType input_dtype) -> Tensor",
              .kind = OpKind::reduction,
              .meta = gradient_meta,
              .lower = [](Lower& l) { lower_softmax_gradient(l, true); },
              .vjp = {{"grad_output, output",
                       [](Vjp& v) -> Grads {
                         Tensor gg = v.grad(), g = v["grad_output"], p = exp(v["output"]);
                         return {gg - sum(gg * p, v.arg("dim"), true), -gg * p * sum(g, v.arg("dim"), true)};
                       }}},
          });
  ops.add(safe_softmax,
          {
              .schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
              .kind = OpKind::composite,
              .decompose =
                  [](Build& b) {  // a row that is masked throughout gives zeros
                    Tensor masked =
                        all_dim(eq(b["self"], -std::numeric_limits<double>::infinity()), b.arg("dim"), true);
                    return where(masked, 0.0, softmax(b["self"], b.arg("dim"), b.arg("dtype")));
                  },
              .vjp = {{"self",
                       [](Vjp& v) { return softmax_backward(v.grad(), v.out(), v.arg("dim"), v["self"].dtype()); }}},
          });
}

}  // namespace tenon
