// Derivatives of sampled functions by differences of neighbours, integrals by the trapezoid rule.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/scan.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// The places of the samples along a dimension: evenly `step` apart, or as a tensor says.
struct Spacing {
  double step = 1;
  Tensor places;
};

// from .. from + the rest, counted from the end where negative
Tensor part(const Tensor& x, int64_t dim, int64_t from, SymInt size) {
  return narrow(x, dim, from < 0 ? SymInt(from) + x.size(dim) : SymInt(from), size);
}

Tensor even(const Tensor& x, int64_t dim, double h, int64_t order) {
  SymInt n = x.size(dim);
  auto at = [&](int64_t i) { return part(x, dim, i, 1); };
  Tensor first = (at(1) - at(0)) / h, last = (at(-1) - at(-2)) / h;
  if (order == 2) {
    first = (at(0) * -1.5 + at(1) * 2.0 - at(2) * 0.5) / h;
    last = (at(-3) * 0.5 - at(-2) * 2.0 + at(-1) * 1.5) / h;
  }
  if (n == SymInt(2)) return cat(std::vector<Tensor>{first, last}, dim);
  Tensor middle = (part(x, dim, 2, n - 2) - part(x, dim, 0, n - 2)) / (2 * h);
  return cat(std::vector<Tensor>{first, middle, last}, dim);
}

// A parabola through three neighbours, the first two d apart, the others e.
Tensor uneven(const Tensor& x, int64_t dim, const Tensor& places, int64_t order) {
  SymInt n = x.size(dim);
  Sizes shape(x.rank(), SymInt(1));
  shape[static_cast<size_t>(dim)] = n - 1;
  Tensor gaps = reshape(slice(places, 0, 1) - slice(places, 0, 0, -1), shape);
  auto at = [&](int64_t i) { return part(x, dim, i, 1); };
  auto gap = [&](int64_t i) { return part(gaps, dim, i, 1); };
  Tensor first = (at(1) - at(0)) / gap(0), last = (at(-1) - at(-2)) / gap(-1);
  if (order == 2) {
    Tensor d = gap(0), e = gap(1), both = d + e;
    first = at(1) * (both / (d * e)) - at(0) * ((d + both) / (d * both)) - at(2) * (d / (e * both));
    d = gap(-2);
    e = gap(-1);
    both = d + e;
    last = at(-3) * (e / (d * both)) - at(-2) * (both / (d * e)) + at(-1) * ((e + both) / (e * both));
  }
  if (n == SymInt(2)) return cat(std::vector<Tensor>{first, last}, dim);
  Tensor d = part(gaps, dim, 0, n - 2), e = part(gaps, dim, 1, n - 2), both = d + e;
  Tensor middle = part(x, dim, 1, n - 2) * ((e - d) / (d * e)) - part(x, dim, 0, n - 2) * (e / (d * both)) +
                  part(x, dim, 2, n - 2) * (d / (e * both));
  return cat(std::vector<Tensor>{first, middle, last}, dim);
}

// The dims: all of them, one, or a list.
std::vector<int64_t> dims_of(const ArgsView& b) {
  std::vector<int64_t> out;
  auto rank = b["self"].rank();
  if (!b.given("dim"))
    for (size_t d = 0; d < rank; ++d) out.push_back(static_cast<int64_t>(d));
  else if (b.arg("dim").is<SymInt>()) out.push_back(static_cast<int64_t>(normal_dim(b.constant("dim"), rank)));
  else
    for (SymInt d : b.ints("dim")) {
      b.require(d.is_int(), "dim: expected constants, got ", b.ints("dim"));
      auto dim = static_cast<int64_t>(normal_dim(d.as_int(), rank));
      for (int64_t other : out) b.require(other != dim, "dimension ", dim, " is named twice");
      out.push_back(dim);
    }
  return out;
}

Results slopes(Build& b, const std::vector<int64_t>& dims, const std::vector<Spacing>& spacing) {
  int64_t order = b.constant("edge_order");
  b.require(order == 1 || order == 2, "edge_order: expected 1 or 2, got ", order);
  b.require(spacing.size() == dims.size(), "spacing: expected one for each of ", dims.size(), " dimensions, got ",
            spacing.size());
  std::vector<Tensor> out;
  Tensor self = b["self"], x = self.rank() && !is_differentiable(self.dtype()) ? to(self, DType::f32) : self;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (x.rank() == 0) break;
    SymInt n = x.size(dims[i]);
    b.require(!n.is_int() || n.as_int() > order, "expected at least ", order + 1, " elements along dimension ", dims[i],
              ", got ", self.meta());
    Tensor places = spacing[i].places;
    if (places)
      b.require(places.rank() == 1 && (places.size(0) == n || !n.is_int() || !places.size(0).is_int()),
                "spacing: expected a place for each of ", n, " samples, got ", places.meta());
    out.push_back(places ? uneven(x, dims[i], places, order) : even(x, dims[i], spacing[i].step, order));
  }
  return many(out);
}

std::vector<Spacing> spacing_of(const Build& b, size_t count) {
  if (!b.given("spacing")) return std::vector<Spacing>(count);
  if (auto* list = b.arg("spacing").get<std::vector<double>>()) {
    std::vector<Spacing> out;
    for (double h : *list) out.push_back({h, {}});
    return out;
  }
  if (auto* list = b.arg("spacing").get<Sizes>()) {
    std::vector<Spacing> out;
    for (SymInt h : *list) {
      b.require(h.is_int(), "spacing: expected constants, got ", *list);
      out.push_back({static_cast<double>(h.as_int()), {}});
    }
    return out;
  }
  if (b.arg("spacing").is<std::vector<Tensor>>()) {
    std::vector<Spacing> out;
    for (const Tensor& t : b.tensors("spacing")) out.push_back({1, t});
    return out;
  }
  return std::vector<Spacing>(count, {b.number("spacing"), {}});
}

Results gradient(Build& b) {
  std::vector<int64_t> dims = dims_of(b);
  return slopes(b, dims, spacing_of(b, dims.size()));
}

Tensor later(const Tensor& y, int64_t dim) { return slice(y, dim, 1); }
Tensor earlier(const Tensor& y, int64_t dim) { return slice(y, dim, 0, -1); }

// The points of y as it has dims: a row of points lies along dim, fewer dims get ones in front.
Tensor widths(const ArgsView& b, const Tensor& x, const Tensor& y, int64_t dim) {
  Tensor wide = x;
  if (x.rank() == 1 || x.rank() < y.rank()) {
    Sizes sizes(y.rank(), SymInt(1));
    if (x.rank() == 1) {
      SymInt n = y.size(dim);
      b.require(!n.is_int() || !x.size(0).is_int() || n == x.size(0), "expected one point for each of the ", n,
                " values, got ", x.meta());
      sizes[normal_dim(dim, y.rank())] = x.size(0);
    } else {
      for (size_t i = 0; i < x.rank(); ++i) sizes[y.rank() - x.rank() + i] = x.sizes()[i];
    }
    wide = view(x, sizes);
  }
  return later(wide, dim) - earlier(wide, dim);
}

void require_numbers(const ArgsView& b, const Tensor& y) {
  b.require(y.dtype() != DType::boolean && y.rank() > 0, "expected a tensor of numbers with dimensions, got ",
            y.meta());
}

Results nothing_along(const Tensor& y, int64_t dim) {
  Sizes sizes = y.sizes();
  sizes.erase(normal_dim(dim, y.rank()));
  return one(zeros(sizes, y));
}

Results trapezoid(Build& b) {
  Tensor y = b["y"];
  require_numbers(b, y);
  int64_t dim = b.constant("dim");
  if (y.size(dim) == SymInt(0)) return nothing_along(y, dim);
  Tensor heights = earlier(y, dim) + later(y, dim);
  return one(sum(widths(b, b["x"], y, dim) * heights, dim) / 2.0);
}

Results even_trapezoid(Build& b) {
  Tensor y = b["y"];
  require_numbers(b, y);
  int64_t dim = b.constant("dim");
  if (y.size(dim) == SymInt(0)) return nothing_along(y, dim);
  return one(sum(earlier(y, dim) + later(y, dim), dim) * (b.number("dx") / 2));
}

}  // namespace

void register_calculus(Registry& ops) {
  for (const char* schema : {
           "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[]",
           "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]",
           "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
           "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
           "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
           "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
       })
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = gradient});
  ops.add({
      .schema = "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            std::vector<int64_t> dims = dims_of(b);
            return slopes(b, dims, std::vector<Spacing>(dims.size()));
          },
  });

  ops.add({
      .schema = "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = trapezoid,
  });
  ops.add({
      .schema = "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = even_trapezoid,
  });
  ops.add({
      .schema = "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = trapezoid,
  });
  ops.add({
      .schema = "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = even_trapezoid,
  });
  ops.add({
      .schema = "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor y = b["y"];
        require_numbers(b, y);
        int64_t dim = b.constant("dim");
        Tensor heights = earlier(y, dim) + later(y, dim);
        return cumsum(widths(b, b["x"], y, dim) * heights / 2.0, dim);
      },
  });
  ops.add({
      .schema = "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor y = b["y"];
        require_numbers(b, y);
        int64_t dim = b.constant("dim");
        return cumsum((earlier(y, dim) + later(y, dim)) * (b.number("dx") / 2), dim);
      },
  });
}

}  // namespace tenon
