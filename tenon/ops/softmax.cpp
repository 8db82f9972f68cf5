#include "tenon/ops/softmax.h"

#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle softmax, log_softmax, safe_softmax;
static Handle softmax_of, log_softmax_of, softmax_backward, log_softmax_backward;

namespace {

using loop::Compute;

Metas softmax_meta(MetaCall& m) {
  const TensorMeta& x = m.meta(0);
  (void)m.dim(1, x.rank());
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x, "; convert it or give a dtype");
  return like(x, x.sizes, m.flag(2) ? DType::f32 : x.dtype);
}

Metas gradient_meta(MetaCall& m) {
  (void)m.dim(2, m.meta(0).rank());
  return like(m.meta(0), m.meta(0).sizes, m.dtype(3).value_or(m.meta(0).dtype));
}

// exp(x - max), or its logarithm, over its sum along the dim.
void lower_softmax(Lower& l, bool logarithm) {
  Ref x = l[0], out = l.out();
  Reduced over = Reduced(l, x.sizes(), 1, -1).kept();
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
  Ref total = l.temporary(
      dtype, row, [&](const Index& i) { return l.sum(extents, [&](const Index& r) { return e.at(over.at(i, r)); }); });
  l.tensor([&](const Index& i) { return e.at(i) / total.broadcast_at(i); });
}

// softmax: (g - sum(g * y)) * y. log_softmax: g - exp(y) * sum(g).
void lower_softmax_gradient(Lower& l, bool logarithm) {
  Ref g = l[0], y = l[1];
  Reduced over = Reduced(l, g.sizes(), 2, -1).kept();
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
  Tensor x = b.dtype(2) ? to(b[0], *b.dtype(2)) : b[0];
  return handle(x, b.arg(1), false);
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
  ops.add(softmax_of, {
      .schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
      .kind = OpKind::reduction,
      .meta = softmax_meta,
      .lower = [](Lower& l) { lower_softmax(l, false); },
      .vjp = {{"self", [](Vjp& v) { return softmax_backward(v.grad(), v.out(), v.arg("dim"), v["self"].dtype()); }}},
  });
  ops.add(log_softmax_of, {
      .schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
      .kind = OpKind::reduction,
      .meta = softmax_meta,
      .lower = [](Lower& l) { lower_softmax(l, true); },
      .vjp = {{"self", [](Vjp& v) { return log_softmax_backward(v.grad(), v.out(), v.arg("dim"), v["self"].dtype()); }}},
  });
  ops.add(
      softmax_backward,
      {
          .schema =
              "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
          .kind = OpKind::reduction,
          .meta = gradient_meta,
          .lower = [](Lower& l) { lower_softmax_gradient(l, false); },
          .vjp = {{"grad_output, output, dim, input_dtype", [](Vjp& v) -> Grads {
            Tensor gg = v.grad(0), g = v["grad_output"], y = v["output"];
            auto total = [&](const Tensor& t) -> Tensor { return sum(t, v.arg("dim"), true); };
            return {v.needs("grad_output") ? Grad(softmax_backward(gg, y, v.arg("dim"), g.dtype())) : Grad(),
                    v.needs("output") ? Grad(gg * (g - total(g * y)) - g * total(gg * y)) : Grad()};
          }}},
      });
  ops.add(log_softmax_backward, {
      .schema = "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, "
                "ScalarType input_dtype) -> Tensor",
      .kind = OpKind::reduction,
      .meta = gradient_meta,
      .lower = [](Lower& l) { lower_softmax_gradient(l, true); },
      .vjp = {{"grad_output, output, dim, input_dtype", [](Vjp& v) -> Grads {
        Tensor gg = v.grad(0), g = v["grad_output"], p = exp(v["output"]);
        return {v.needs("grad_output") ? Grad(gg - Tensor(sum(gg * p, v.arg("dim"), true))) : Grad(),
                v.needs("output") ? Grad(-gg * p * Tensor(sum(g, v.arg("dim"), true))) : Grad()};
      }}},
  });
  ops.add(safe_softmax, {
      .schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {  // a row that is masked throughout gives zeros
            Tensor masked = all_dim(eq(b["self"], -std::numeric_limits<double>::infinity()), b.arg("dim"), true);
            return where(masked, 0.0, Tensor(softmax(b["self"], b.arg("dim"), b.arg("dtype"))));
          },
      .vjp = {{"self", [](Vjp& v) { return softmax_backward(v.grad(), v.out(), v.arg("dim"), v["self"].dtype()); }}},
  });
}

}  // namespace tenon
