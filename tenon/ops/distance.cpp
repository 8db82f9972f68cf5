// Distances between two tensors, between all points of two sets, and within one.
#include <cmath>
#include <functional>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/linalg_norms.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle cdist_forward, cdist_backward, pdist_forward, pdist_backward;

namespace {

using loop::Compute;
using loop::Expr;

// The p-norm of the differences over `width` coordinates.
Expr norm(Lower& l, SymInt width, double p, Compute type, const std::function<Expr(Expr)>& difference) {
  Sizes over = {width};
  auto size = [&](const Index& d) { return loop::abs(difference(d[0])); };
  if (width == SymInt(0)) return l.constant(0, type);
  if (p == 0) return l.sum(over, [&](const Index& d) { return cast(difference(d[0]) != 0, type); });
  if (p == 1) return l.sum(over, size);
  if (std::isinf(p)) return l.reduce(loop::Combine::max, over, size);
  if (p == 2)
    return loop::sqrt(l.sum(over, [&](const Index& d) {
      Expr x = difference(d[0]);
      return x * x;
    }));
  return loop::pow(l.sum(over, [&](const Index& d) { return loop::pow(size(d), p); }), 1 / p);
}

// What one coordinate's difference adds to its gradient. Points at no distance have none.
Expr norm_gradient(Lower& l, Expr difference, Expr grad, Expr distance, double p, Compute type) {
  Expr zero = l.constant(0, type), size = loop::abs(difference), sign = call(loop::Fn::sign, difference);
  if (p == 0) return zero;
  if (p == 1) return grad * sign;
  if (std::isinf(p)) return loop::select(size == distance, grad * sign, zero);
  Expr apart = distance != 0;
  if (p == 2) return loop::select(apart, grad * difference / distance, zero);
  if (p < 1) apart = apart && difference != 0;
  Expr scaled = grad / loop::pow(distance, p - 1);
  return loop::select(
      apart, p < 2 ? sign * loop::pow(size, p - 1) * scaled : difference * loop::pow(size, p - 2) * scaled, zero);
}

Sizes batch_of(const TensorMeta& x) { return Sizes(std::span<const SymInt>(x.sizes.begin(), x.rank() - 2)); }

// Two sets of points of equal width; gives the sizes of the batches together.
Sizes two_sets(const ArgsView& m, double p) {
  const TensorMeta &x = m.meta("x1"), &y = m.meta("x2");
  m.require(x.rank() >= 2 && y.rank() >= 2 && is_floating(x.dtype) && x.dtype == y.dtype,
            "expected two sets of points of one floating point dtype with at least 2 dimensions, got ", x, " and ", y);
  SymInt w = x.sizes.back(), v = y.sizes.back();
  relies_on_equal(m, w, v, "the sizes of the points differ: ", x, " and ", y);
  m.require(p >= 0, "expected an order p of at least 0, got ", p);
  return broadcast(batch_of(x), batch_of(y), m);
}

bool is_empty(const Sizes& sizes) {
  for (SymInt s : sizes)
    if (s == SymInt(0)) return true;
  return false;
}

Metas cdist_backward_meta(MetaCall& m) {
  const TensorMeta &g = m.meta("grad_output"), &x = m.meta("x1"), &y = m.meta("x2");
  Sizes sizes = two_sets(m, m.number("p")), pairs = sizes;
  pairs.push_back(x.sizes[x.rank() - 2]);
  pairs.push_back(y.sizes[y.rank() - 2]);
  m.require(
      g.sizes == pairs && m.meta("cdist").sizes == pairs && g.dtype == x.dtype && m.meta("cdist").dtype == x.dtype,
      "expected gradients and distances ", make_meta(x.dtype, pairs), ", got ", g, " and ", m.meta("cdist"));
  if (is_empty(pairs) || x.sizes.back() == SymInt(0)) return like(x, x.sizes);
  sizes.push_back(x.sizes[x.rank() - 2]);
  sizes.push_back(x.sizes.back());
  return like(x, sizes);
}

void lower_cdist_backward(Lower& l) {
  Ref grad = l["grad_output"], x = l["x1"], y = l["x2"], distance = l["cdist"], out = l.out();
  Compute type = loop::compute_of(out.dtype());
  if (grad.sizes().size() != out.sizes().size() || is_empty(grad.sizes())) return l.fill(out, l.constant(0, type));
  double p = l.number("p");
  l.tensor([&](const Index& i) {
    size_t row = i.size() - 2;
    return l.sum({y.size(y.sizes().size() - 2)}, [&](const Index& j) {
      Index pair = i.with(row + 1, j[0]), other = i.with(row, j[0]);
      return norm_gradient(l, x.broadcast_at(i) - y.broadcast_at(other), grad.at(pair), distance.at(pair), p, type);
    });
  });
}

// The number of the pair i < j of n points, row after row.
Expr pair_number(Lower& l, Expr i, Expr j, SymInt n) {
  return l.extent(n) * i - call(loop::Fn::floor_div, i * (i + 1), l.extent(2)) + j - i - 1;
}

SymInt pairs_of(SymInt n) { return sym::floor_div(n * (n - 1), 2); }

void require_points(const ArgsView& m) {
  const TensorMeta& x = m.meta("self");
  double p = m.number("p");
  m.require(x.rank() == 2 && is_floating(x.dtype), "expected floating point points in 2 dimensions, got ", x);
  m.require(p >= 0, "expected an order p of at least 0, got ", p);
}

void lower_pdist(Lower& l) {
  Ref x = l["self"], out = l.out();
  SymInt n = x.size(0);
  Compute type = loop::compute_of(out.dtype());
  if (out.size(0) == SymInt(0)) return;
  l.stage({n, n}, [&](const Index& i) {
    Expr distance = norm(l, x.size(1), l.number("p"), type, [&](Expr d) { return x.at({i[0], d}) - x.at({i[1], d}); });
    l.store_if(i[0] < i[1], out, {pair_number(l, i[0], i[1], n)}, distance);
  });
}

void lower_pdist_backward(Lower& l) {
  Ref grad = l["grad_output"], x = l["self"], distance = l["pdist"];
  SymInt n = x.size(0);
  double p = l.number("p");
  Compute type = loop::compute_of(x.dtype());
  l.tensor([&](const Index& i) {
    return l.sum({n}, [&](const Index& j) {
      Expr apart = i[0] != j[0], zero = l.constant(0, type);
      Index pair = {pair_number(l, loop::min(i[0], j[0]), loop::max(i[0], j[0]), n)};
      Expr g = grad.at_if(apart, pair, zero), d = distance.at_if(apart, pair, zero);
      Expr term = norm_gradient(l, x.at(i) - x.at({j[0], i[1]}), g, d, p, type);
      return loop::select(apart, term, zero);
    });
  });
}

// The same over tensors, for second gradients. `grad` and `distance` have the sizes of the differences but for the
// last, of size 1. Distances are not taken from the differences: what depends on the points through them is their own
// gradient.
Tensor norm_gradient(const Tensor& difference, const Tensor& grad, const Tensor& distance, double p) {
  Tensor size = abs(difference);
  if (p == 0) return zeros_like(difference) * grad;
  if (p == 1) return grad * sign(difference);
  if (std::isinf(p)) return where(eq(size, distance), grad * sign(difference), 0.0);
  Tensor apart = ne(distance, 0.0), scale = where(apart, distance, 1.0);
  if (p == 2) return where(apart, grad * difference / scale, 0.0);
  Tensor differs = ne(difference, 0.0), safe = where(differs, size, 1.0);  // powers of 0 have no slopes
  Tensor slope = where(differs, pow_scalar(safe, p - 1), 0.0) * sign(difference);
  return where(apart, grad * slope / pow_scalar(scale, p - 1), 0.0);
}

// x1 comes with the batches of both, as in cdist_backward_meta.
Results cdist_gradient(Build& b) {
  Tensor difference = unsqueeze(b["x1"], -2) - unsqueeze(b["x2"], -3);
  Tensor grad = unsqueeze(b["grad_output"], -1), distance = unsqueeze(b["cdist"], -1);
  return sum(norm_gradient(difference, grad, distance, b.number("p")), Sizes{-2});
}

// Each pair i < j, row after row, pulls its two points apart.
Results pdist_gradient(Build& b) {
  Tensor x = b["self"];
  SymInt n = x.size(0);
  b.supports(n.is_int(), "second gradients for a number of points that only a run can tell");
  std::vector<Tensor> from, to_points;
  Tensor out = zeros_like(x);
  if (n.as_int() < 2) return {{out}};
  for (int64_t i = 0; i + 1 < n.as_int(); ++i) {
    from.push_back(expand(slice(x, 0, i, i + 1), Sizes{n - 1 - i, x.size(1)}));
    to_points.push_back(slice(x, 0, i + 1, n));
  }
  Tensor grad = unsqueeze(b["grad_output"], -1), distance = unsqueeze(b["pdist"], -1);
  Tensor pull = norm_gradient(cat(from) - cat(to_points), grad, distance, b.number("p"));
  std::vector<Tensor> rows;
  int64_t first = 0;
  for (int64_t i = 0; i + 1 < n.as_int(); ++i) {
    int64_t pairs = n.as_int() - 1 - i;
    Tensor part = slice(pull, 0, first, first + pairs);
    Tensor own = sum(part, Sizes{0}, true);
    std::vector<Tensor> column;
    if (i > 0) column.push_back(new_zeros(x, Sizes{i, x.size(1)}));
    column.push_back(own);
    column.push_back(neg(part));
    out = out + cat(column);
    first += pairs;
  }
  return {{out}};
}

Tensor transposed_copy(const Tensor& x) { return contiguous(transpose(x, -2, -1)); }

Tensor squares(const Tensor& x) { return sum(square(x), Sizes{-1}, true); }

}  // namespace

void register_distance(Registry& ops) {
  ops.add({
      .schema = "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(b["x1"].rank() >= 2 && b["x2"].rank() >= 2, "expected tensors of at least 2 dimensions, got ",
                  b["x1"].meta(), " and ", b["x2"].meta());
        b.require(is_floating(b["x1"].dtype()) && is_floating(b["x2"].dtype()), "expected floating point tensors, got ",
                  b["x1"].meta(), " and ", b["x2"].meta());
        b.require(b["x1"].size(-1) == b["x2"].size(-1), "the sizes of the points differ: ", b["x1"].meta(), " and ",
                  b["x2"].meta());
        b.require(b.number("p") >= 0, "expected an order p of at least 0, got ", b.number("p"));
        return cdist_forward(b["x1"], b["x2"], b.arg("p"), b.arg("compute_mode"));
      },
  });
  ops.add(
      cdist_forward,
      {
          .schema = "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
          .meta = [](MetaCall& m) -> Metas {
            int64_t mode = m.given("compute_mode") ? m.constant("compute_mode") : 0;
            m.require(mode >= 0 && mode <= 2, "compute_mode: expected 0, 1 or 2, got ", mode);
            Sizes sizes = two_sets(m, m.number("p"));
            sizes.push_back(m.meta("x1").sizes[m.meta("x1").rank() - 2]);
            sizes.push_back(m.meta("x2").sizes[m.meta("x2").rank() - 2]);
            return like(m.meta("x1"), sizes);
          },
          .lower =
              [](Lower& l) {
                Ref x = l["x1"], y = l["x2"];
                Compute type = loop::compute_of(x.dtype());
                SymInt width = x.sizes().back();
                l.tensor([&](const Index& i) {
                  size_t last = i.size() - 1;
                  return norm(l, width, l.number("p"), type, [&](Expr d) {
                    return x.broadcast_at(i.with(last, d)) - y.broadcast_at(i.without(last - 1).inserted(last, d));
                  });
                });
              },
          .vjp = {{"x1",
                   [](Vjp& v) { return cdist_backward(contiguous(v.grad()), v["x1"], v["x2"], v.arg("p"), v.out()); }},
                  {"x2",
                   [](Vjp& v) {
                     return cdist_backward(transposed_copy(v.grad()), v["x2"], v["x1"], v.arg("p"),
                                           transposed_copy(v.out()));
                   }}},
      });
  ops.add(cdist_backward,
          {
              .schema = "_cdist_backward(Tensor grad_output, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
              .meta = cdist_backward_meta,
              .lower = lower_cdist_backward,
              .for_grad = cdist_gradient,
          });
  ops.add({
      .schema = "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {  // |x - y|² = -2 x·y + |x|² + |y|², as one product
        two_sets(b, 2);
        Tensor x = b["x1"], y = b["x2"], xx = squares(x), yy = squares(y);
        Tensor left = cat(std::vector<Tensor>{x * -2.0, xx, ones_like(xx)}, -1),
               right = cat(std::vector<Tensor>{y, ones_like(yy), yy}, -1);
        return sqrt(clamp_min(matmul(left, transpose(right, -2, -1)), 0.0));
      },
      .vjp = {{"x1, x2",
               [](Vjp& v) -> Grads {
                 Tensor ratio = where(eq(v.out(), 0.0), 0.0, v.grad() / v.out()), back = transpose(ratio, -2, -1);
                 return {v["x1"] * sum(ratio, Sizes{-1}, true) - matmul(ratio, v["x2"]),
                         v["x2"] * sum(back, Sizes{-1}, true) - matmul(back, v["x1"])};
               }}},
  });
  ops.add(pdist_forward,
          {
              .schema = "_pdist_forward(Tensor self, float p=2.) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                require_points(m);
                return like(m.meta("self"), {pairs_of(m.meta("self").sizes[0])});
              },
              .lower = lower_pdist,
              .vjp = {{"self", [](Vjp& v) { return pdist_backward(v.grad(), v["self"], v.arg("p"), v.out()); }}},
          });
  ops.add(pdist_backward,
          {
              .schema = "_pdist_backward(Tensor grad_output, Tensor self, float p, Tensor pdist) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta &g = m.meta("grad_output"), &x = m.meta("self");
                require_points(m);
                TensorMeta pairs = make_meta(x.dtype, {pairs_of(x.sizes[0])});
                m.require(g.sizes == pairs.sizes && m.meta("pdist").sizes == pairs.sizes && g.dtype == x.dtype &&
                              m.meta("pdist").dtype == x.dtype,
                          "expected gradients and distances ", pairs, ", got ", g, " and ", m.meta("pdist"));
                return like(x, x.sizes);
              },
              .lower = lower_pdist_backward,
              .for_grad = pdist_gradient,
          });
  ops.add({
      .schema = "pdist(Tensor self, float p=2.) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pdist_forward(contiguous(b["self"]), b.arg("p")); },
  });
  ops.add({
      .schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return linalg_vector_norm(b["self"] - b["other"], b.arg("p")); },
  });
}

}  // namespace tenon
