// Normalization over the last dimensions: layer_norm and rms_norm.
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/normalization.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle native_layer_norm, layer_norm_backward;

namespace {

using loop::Compute;
using loop::Expr;

// How an input's dims are normalized: the last ones, together.
struct Rows {
  Sizes sizes;
  size_t outer = 0;  // dims before the normalized ones
  Reduced over;
  Rows(const ArgsView& call, const Sizes& sizes, const Sizes& normalized)
      : sizes(sizes), outer(sizes.size() - std::min(normalized.size(), sizes.size())), over({}, true, sizes.size()) {
    bool fits = !normalized.empty() && normalized.size() <= sizes.size();
    for (size_t i = outer; fits && i < sizes.size(); ++i)
      fits = !statically_true(sym::ne(sizes[i], normalized[i - outer]));
    call.require(fits, "normalized_shape: expected the last sizes of the input ", sizes, ", got ", normalized);
    for (size_t i = outer; i < sizes.size(); ++i) over.dims.push_back(i);
  }
  Sizes extents() const { return extents_of(sizes, over.dims); }
  Sizes statistics() const { return reduced_sizes(sizes, over.dims, true); }
  Index inner(const Index& i) const { return i.drop_first(outer); }
};

void lower_layer_norm(Lower& l) {
  Ref x = l["input"];
  Rows rows(l, x.sizes(), l.ints("normalized_shape"));
  Sizes extents = rows.extents();
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto n = [&] { return cast(l.extent(count(extents)), type); };
  Ref mean = l.temporary(dtype, rows.statistics(), [&](const Index& i) {
    return l.sum(extents, [&](const Index& r) { return x.at(rows.over.at(i, r)); }) / n();
  });
  Ref rstd = l.temporary(dtype, rows.statistics(), [&](const Index& i) {
    Expr squares = l.sum(extents, [&](const Index& r) {
      Expr d = x.at(rows.over.at(i, r)) - mean.at(i);
      return d * d;
    });
    return l.constant(1, type) / loop::sqrt(squares / n() + l.number("eps"));
  });
  l.tensor(l.out(0), [&](const Index& i) {
    Expr y = (x.at(i) - mean.broadcast_at(i)) * rstd.broadcast_at(i);
    if (l.given("weight")) y = y * cast(l["weight"].at(rows.inner(i)), type);
    return l.given("bias") ? y + cast(l["bias"].at(rows.inner(i)), type) : y;
  });
  l.copy(mean, l.out(1));
  l.copy(rstd, l.out(2));
}

// With h = (x - mean) * rstd and w * g for g: dx = rstd * (g - mean(g) - h * mean(g * h)), dw = sum(g * h), db =
// sum(g).
void lower_layer_norm_gradient(Lower& l) {
  Ref g = l["grad_out"], x = l["input"], mean = l["mean"], rstd = l["rstd"];
  Rows rows(l, x.sizes(), l.ints("normalized_shape"));
  Sizes extents = rows.extents();
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  auto normal = [&](const Index& i) {
    return (x.at(i) - cast(mean.broadcast_at(i), type)) * cast(rstd.broadcast_at(i), type);
  };
  auto weighted = [&](const Index& i) {
    return l.given("weight") ? cast(g.at(i), type) * cast(l["weight"].at(rows.inner(i)), type) : cast(g.at(i), type);
  };
  if (l.wants(0)) {
    Ref a = l.temporary(dtype, rows.statistics()), b = l.temporary(dtype, rows.statistics());
    l.stage(rows.statistics(), [&](const Index& i) {
      Expr n = cast(l.extent(count(extents)), type);
      l.store(a, i, l.sum(extents, [&](const Index& r) { return weighted(rows.over.at(i, r)); }) / n);
      l.store(b, i, l.sum(extents, [&](const Index& r) {
        return weighted(rows.over.at(i, r)) * normal(rows.over.at(i, r));
      }) / n);
    });
    l.tensor(l.out(0), [&](const Index& i) {
      return cast(rstd.broadcast_at(i), type) * (weighted(i) - a.broadcast_at(i) - normal(i) * b.broadcast_at(i));
    });
  }
  Sizes outer(std::span<const SymInt>(rows.sizes.begin(), rows.outer));
  auto whole = [](const Index& r, const Index& i) {
    Index at = r;
    at.insert(at.end(), i.begin(), i.end());
    return at;
  };
  if (l.wants(1))
    l.tensor(l.out(1), [&](const Index& i) {
      return l.sum(outer, [&](const Index& r) { return cast(g.at(whole(r, i)), type) * normal(whole(r, i)); });
    });
  if (l.wants(2))
    l.tensor(l.out(2), [&](const Index& i) {
      return l.sum(outer, [&](const Index& r) { return cast(g.at(whole(r, i)), type); });
    });
}

double machine_epsilon(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

// x / sqrt(mean(x²) + eps), in f32 for half precision. Gives the reciprocal root too.
std::pair<Tensor, Tensor> rms_normalized(const Build& b) {
  Tensor x = b["input"], weight = b["weight"];
  b.require(is_floating(x.dtype()) || is_complex(x.dtype()), "expected a floating point or complex tensor, got ",
            x.meta());
  Rows rows(b, x.sizes(), b.ints("normalized_shape"));
  Tensor wide = is_complex(x.dtype()) ? x : Tensor(to(x, computable(x.dtype())));
  double eps = b.given("eps") ? b.number("eps") : machine_epsilon(real_of(x.dtype()));
  Tensor root = rsqrt(mean(pow_scalar(wide, 2), dims_argument(rows.over), true) + eps);
  Tensor y = wide * root;
  if (weight) y = y * weight;
  return {to(y, x.dtype()), root};
}

}  // namespace

void register_layer_norm(Registry& ops) {
  ops.add({
      .schema = "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
                "eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        return one(
            native_layer_norm(b["input"], b.arg("normalized_shape"), b.arg("weight"), b.arg("bias"), b.arg("eps"))[0]);
      },
  });
  ops.add(native_layer_norm,
          {
              .schema = "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, "
                        "Tensor? bias, float eps) -> (Tensor, Tensor, "
                        "Tensor)",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& x = m.meta("input");
                m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
                Rows rows(m, x.sizes, m.ints("normalized_shape"));
                require_parameter(m, "weight", m.ints("normalized_shape"));
                require_parameter(m, "bias", m.ints("normalized_shape"));
                TensorMeta statistics = like(x, rows.statistics(), statistics_dtype(m, {"weight", "bias"}));
                return {like(x, x.sizes), statistics, statistics};
              },
              .lower = lower_layer_norm,
              .vjp = {{"input, weight, bias",
                       [](Vjp& v) -> Grads {
                         if (!v.grad()) return {};
                         std::vector<bool> mask = {v.needs("input"), v.needs("weight"), v.needs("bias")};
                         Results r = layer_norm_backward(v.grad(), v["input"], v.arg("normalized_shape"), v.out(1),
                                                         v.out(2), v.arg("weight"), v.arg("bias"), mask);
                         return {r[0], r[1], r[2]};
                       }}},
          });
  ops.add(layer_norm_backward,
          {
              .schema = "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor "
                        "mean, Tensor rstd, Tensor? "
                        "weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& x = m.meta("input");
                Sizes shape = m.ints("normalized_shape");
                Rows rows(m, x.sizes, shape);
                require_sizes(m, "grad_out", x.sizes);
                require_sizes(m, "mean", rows.statistics());
                require_sizes(m, "rstd", rows.statistics());
                require_parameter(m, "weight", shape);
                require_parameter(m, "bias", shape);
                DType weight = m.given("weight") ? m.meta("weight").dtype : x.dtype;
                DType bias = m.given("bias") ? m.meta("bias").dtype : weight;
                return masked_metas(m, {like(x, x.sizes), like(x, shape, weight), like(x, shape, bias)});
              },
              .lower = lower_layer_norm_gradient,
              .for_grad =
                  [](Build& b) {
                    Rows rows(b, b["input"].sizes(), b.ints("normalized_shape"));
                    Sizes outer;
                    for (size_t d = 0; d < rows.outer; ++d) outer.push_back(static_cast<int64_t>(d));
                    return masked_results(b, normalization_gradient({.grad = b["grad_out"],
                                                                     .input = b["input"],
                                                                     .mean = b["mean"],
                                                                     .rstd = b["rstd"],
                                                                     .weight = b["weight"],
                                                                     .over = dims_argument(rows.over),
                                                                     .parameter_over = outer}));
                  },
          });
  ops.add({
      .schema = "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(rms_normalized(b).first); },
  });
  ops.add({
      .schema = "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        auto [y, root] = rms_normalized(b);
        return {{CallArg(y), CallArg(root)}};
      },
  });
}

}  // namespace tenon
