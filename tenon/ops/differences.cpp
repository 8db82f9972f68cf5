// Derivatives of sampled functions by differences of neighbours.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/views.h"

namespace tenon {
namespace {

// The places of the samples along a dimension: evenly `step` apart, or as a tensor says.
struct Spacing {
  double step = 1;
  Tensor places;
};

// from .. from + the rest, counted from the end where negative
Tensor part(const Tensor& x, int64_t dim, int64_t from, SymInt size) { return narrow(x, dim, from < 0 ? SymInt(from) + x.size(dim) : SymInt(from), size); }

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
  Tensor gaps = reshape(Tensor(slice(places, 0, 1)) - Tensor(slice(places, 0, 0, -1)), shape);
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
  Tensor middle = part(x, dim, 1, n - 2) * ((e - d) / (d * e)) - part(x, dim, 0, n - 2) * (e / (d * both)) + part(x, dim, 2, n - 2) * (d / (e * both));
  return cat(std::vector<Tensor>{first, middle, last}, dim);
}

// The dims: all of them, one, or a list.
std::vector<int64_t> dims_at(const ArgsView& b, size_t at) {
  std::vector<int64_t> out;
  auto rank = b[0].rank();
  if (!b.given(at))
    for (size_t d = 0; d < rank; ++d) out.push_back(static_cast<int64_t>(d));
  else if (b.arg(at).is<SymInt>()) out.push_back(static_cast<int64_t>(normal_dim(b.constant(at), rank)));
  else
    for (SymInt d : b.ints(at)) {
      b.require(d.is_int(), "dim: expected constants, got ", b.ints(at));
      auto dim = static_cast<int64_t>(normal_dim(d.as_int(), rank));
      for (int64_t other : out) b.require(other != dim, "dimension ", dim, " is named twice");
      out.push_back(dim);
    }
  return out;
}

Results slopes(Build& b, const std::vector<int64_t>& dims, const std::vector<Spacing>& spacing, size_t order_at) {
  int64_t order = b.constant(order_at);
  b.require(order == 1 || order == 2, "edge_order: expected 1 or 2, got ", order);
  b.require(spacing.size() == dims.size(), "spacing: expected one for each of ", dims.size(), " dimensions, got ", spacing.size());
  std::vector<Tensor> out;
  Tensor x = b[0].rank() && !is_floating(b[0].dtype()) ? to(b[0], DType::f32) : b[0];
  for (size_t i = 0; i < dims.size(); ++i) {
    if (x.rank() == 0) break;
    SymInt n = x.size(dims[i]);
    b.require(!n.is_int() || n.as_int() > order, "expected at least ", order + 1, " elements along dimension ", dims[i], ", got ", b[0].meta());
    Tensor places = spacing[i].places;
    if (places)
      b.require(places.rank() == 1 && (places.size(0) == n || !n.is_int() || !places.size(0).is_int()), "spacing: expected a place for each of ", n,
                " samples, got ", places.meta());
    out.push_back(places ? uneven(x, dims[i], places, order) : even(x, dims[i], spacing[i].step, order));
  }
  return many(out);
}

std::vector<Spacing> steps(const Build& b, size_t at, size_t count) {
  if (!b.given(at)) return std::vector<Spacing>(count);
  if (auto* list = b.arg(at).get<std::vector<double>>()) {
    std::vector<Spacing> out;
    for (double h : *list) out.push_back({h, {}});
    return out;
  }
  if (auto* list = b.arg(at).get<Sizes>()) {
    std::vector<Spacing> out;
    for (SymInt h : *list) {
      b.require(h.is_int(), "spacing: expected constants, got ", *list);
      out.push_back({static_cast<double>(h.as_int()), {}});
    }
    return out;
  }
  if (b.arg(at).is<std::vector<Tensor>>()) {
    std::vector<Spacing> out;
    for (const Tensor& t : b.tensors(at)) out.push_back({1, t});
    return out;
  }
  return std::vector<Spacing>(count, {b.number(at), {}});
}

Results gradient(Build& b) {   // (self, *, spacing, dim, edge_order)
  std::vector<int64_t> dims = dims_at(b, 2);
  return slopes(b, dims, steps(b, 1, dims.size()), 3);
}

}  // namespace

void register_differences(Registry& ops) {
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
      .decompose = [](Build& b) {
        std::vector<int64_t> dims = dims_at(b, 1);
        return slopes(b, dims, std::vector<Spacing>(dims.size()), 2);
      },
  });
}

}  // namespace tenon
