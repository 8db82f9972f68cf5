// Histograms of elements and of points in several dimensions, and how often integers occur.
#include <cmath>

#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle histogramdd, histogram_edges, histogram_counts;

namespace {

using loop::Compute;
using loop::Expr;

// Counts in equal bins from lo to hi, both counted in; from the least to the greatest element where lo is hi.
void lower_histc(Lower& l) {
  Ref x = l["self"];
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  Sizes all = x.sizes();
  double lo = l.number("min"), hi = l.number("max");
  Ref low = l.temporary(dtype, {}), high = l.temporary(dtype, {});
  bool of_data = lo == hi && !statically_true(sym::eq(count(all), 0));
  l.stage({}, [&](const Index& i) {
    Expr a =
        of_data ? l.reduce(loop::Combine::min, all, [&](const Index& r) { return x.at(r); }) : l.constant(lo, type);
    Expr b =
        of_data ? l.reduce(loop::Combine::max, all, [&](const Index& r) { return x.at(r); }) : l.constant(hi, type);
    l.store(low, i, loop::select(a == b, a - 1.0, a));
    l.store(high, i, loop::select(a == b, b + 1.0, b));
  });
  Ref counts = l.temporary(DType::i64, Sizes(l.out().sizes()));
  l.fill(counts, l.constant(0, Compute::i64));
  l.stage(all, [&](const Index& i) {
    Expr e = x.at(i), a = low.at({}), b = high.at({}), bins = l.extent(l.integer("bins"));
    Expr within = e >= a && e <= b;
    Expr place = cast((loop::select(within, e, a) - a) * cast(bins, type) / (b - a), Compute::i64);
    l.store_if(within, counts, {loop::min(place, bins - 1)}, l.constant(1, Compute::i64), loop::Mode::add);
  });
  l.copy(counts, l.out());
}

DType counted_dtype(const ArgsView& m) {
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() == 1 && is_integral(x.dtype), "expected integers in 1 dimension, got ", x);
  SymInt least = m.integer("minlength");
  m.require(!least.is_int() || least.as_int() >= 0, "minlength: expected a number that is not negative, got ", least);
  if (!m.given("weights")) return DType::i64;
  SymInt a = x.sizes[0], b = m.meta("weights").rank() == 1 ? m.meta("weights").sizes[0] : SymInt(-1);
  m.require(m.meta("weights").rank() == 1 && (a == b || !a.is_int() || !b.is_int()),
            "weights: expected one for each of ", x, ", got ", m.meta("weights"));
  if (a == SymInt(0)) return DType::i64;
  return m.meta("weights").dtype == DType::f32 ? DType::f32 : DType::f64;
}

// What a point of a histogram is: every element, or a row along the last dimension.
enum class Point { element, row };

size_t dims_of(const ArgsView& m, Point point) {
  const TensorMeta& x = m.meta("self");
  m.require(x.dtype == DType::f32 || x.dtype == DType::f64, "expected a tensor of f32 or f64, got ", x);
  Sizes points = x.sizes;
  if (point == Point::row) {
    m.require(x.rank() >= 2, "expected a tensor of at least 2 dimensions, got ", x);
    m.require(x.sizes.back().is_int(), "expected points of constant size, got ", x);
    points.pop_back();
  }
  if (m.given("weight")) {
    const TensorMeta& w = m.meta("weight");
    m.require(w.dtype == x.dtype, "weight: expected ", make_meta(x.dtype, points), ", got ", w);
    require_sizes(m, "weight", points);
  }
  return point == Point::element ? 1 : static_cast<size_t>(x.sizes.back().as_int());
}

std::vector<double> range_of(const ArgsView& m, size_t dims) {
  if (!m.given("range")) return {};
  auto* range = m.arg("range").get<std::vector<double>>();
  std::vector<double> out = range ? *range : std::vector<double>();
  m.require(out.size() == 2 * dims, "range: expected ", 2 * dims, " numbers, got ", out.size());
  for (size_t d = 0; d < dims; ++d)
    m.require(std::isfinite(out[2 * d]) && std::isfinite(out[2 * d + 1]) && out[2 * d] <= out[2 * d + 1],
              "range: expected finite ends in order, got ", out[2 * d], " and ", out[2 * d + 1]);
  return out;
}

// The counts of bins per dimension: one number for all, or a list.
Sizes bins_of(const ArgsView& m, size_t dims) {
  Sizes bins = m.arg("bins").is<SymInt>() ? Sizes(dims, m.integer("bins")) : m.ints("bins");
  m.require(bins.size() == dims, "bins: expected ", dims, " numbers, got ", bins);
  for (SymInt n : bins) m.require(n.is_int() && n.as_int() > 0, "bins: expected positive numbers, got ", bins);
  return bins;
}

Metas edges_meta(MetaCall& m) {
  size_t dims = dims_of(m, Point::row);
  range_of(m, dims);
  std::vector<TensorMeta> edges;
  for (SymInt n : bins_of(m, dims)) edges.push_back(like(m.meta("self"), {n + 1}));
  return {BasicArg<TensorMeta>(edges)};
}

// Edges given as tensors.
std::vector<Tensor> given_edges(const ArgsView& m, Point point) {
  size_t dims = dims_of(m, point);
  std::vector<Tensor> edges =
      m.op.schema.args[m.index("bins")].type.list ? m.tensors("bins") : std::vector<Tensor>{m["bins"]};
  m.require(edges.size() == dims, "bins: expected ", dims, " tensors, got ", edges.size());
  for (const Tensor& e : edges)
    m.require(
        e && e.rank() == 1 && e.dtype() == m.meta("self").dtype && (!e.size(0).is_int() || e.size(0).as_int() >= 2),
        "bins: expected at least 2 edges of dtype ", m.meta("self").dtype, " in 1 dimension, got ",
        e ? text(e.meta()) : "none");
  return edges;
}

Metas counts_meta(MetaCall& m) {
  Sizes bins;
  for (const Tensor& e : given_edges(m, Point::row)) bins.push_back(e.size(0) - 1);
  return like(m.meta("self"), bins);
}

// What a call returns.
enum class Part { counts, both, both_listed };

// All histograms are those of points in rows: edges, then counts between them.
Results histogram_of(const ArgsView& b, Point point, Part part, std::vector<Tensor> edges) {
  Tensor x = b["self"], weight = b.given("weight") ? b["weight"] : none;
  if (point == Point::element) {
    x = reshape(x, Sizes{x.numel(), 1});
    if (weight) weight = reshape(weight, Sizes{weight.numel()});
  }
  if (edges.empty()) {
    Sizes bins = bins_of(b, dims_of(b, point));
    edges = histogram_edges(x, bins, kw("range", b.arg("range"))).list();
  }
  Tensor counts = histogram_counts(x, edges, kw("weight", weight), kw("density", b.flag("density")));
  switch (part) {
    case Part::counts: return one(counts);
    case Part::both: return {{CallArg(counts), CallArg(edges[0])}};
    case Part::both_listed: return {{CallArg(counts), CallArg(std::move(edges))}};
  }
  unreachable();
}

Results even(Build& b, Point point, Part part) {
  range_of(b, dims_of(b, point));
  return histogram_of(b, point, part, {});
}

Results by_edges(Build& b, Point point, Part part) {
  std::vector<Tensor> edges = given_edges(b, point);
  if (part == Part::both) edges[0] = clone(edges[0], kw("memory_format", MemoryFormat::contiguous));
  return histogram_of(b, point, part, std::move(edges));
}

}  // namespace

void register_histogram(Registry& ops) {
  ops.add({
      .schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(is_floating(m.meta("self").dtype), "expected a floating point tensor, got ", m.meta("self"),
                  "; convert it first");
        m.require(m.constant("bins") > 0, "bins: expected a positive number, got ", m.constant("bins"));
        m.require(m.number("min") <= m.number("max"), "max must not be less than min, got ", m.number("max"), " and ",
                  m.number("min"));
        return like(m.meta("self"), {m.integer("bins")});
      },
      .lower = lower_histc,
      .vjp = no_gradient(),  // counts do not follow elements
  });
  ops.add({
      .schema = "bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        DType dtype = counted_dtype(m);
        return like(m.meta("self"),
                    {m.meta("self").sizes[0] == SymInt(0) ? m.integer("minlength") : data_dependent_size()}, dtype);
      },
      .host = {"bincount", {"expected numbers that are not negative, got {}"}},
  });
  ops.add({
      .schema = "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
                "density=False) -> (Tensor hist, Tensor bin_edges)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return even(b, Point::element, Part::both); },
  });
  ops.add({
      .schema = "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
                "(Tensor hist, Tensor bin_edges)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return by_edges(b, Point::element, Part::both); },
  });
  ops.add(histogram_edges,
          {
              .schema = "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, "
                        "bool density=False) -> Tensor[]",
              .meta = edges_meta,
              .host = {"histogram_edges", {"expected finite numbers where no range is given, got {real}"}},
          });
  ops.add({
      .schema = "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
                "density=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return even(b, Point::row, Part::counts); },
  });
  ops.add(histogram_counts,
          {
              .schema = "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool "
                        "density=False) -> Tensor",
              .meta = counts_meta,
              .host = {"histogram_counts"},
          });
  ops.add(histogramdd, {
                           .schema = "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, "
                                     "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
                           .kind = OpKind::composite,
                           .decompose = [](Build& b) { return even(b, Point::row, Part::both_listed); },
                       });
  ops.overload(histogramdd, {"histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, "
                             "bool density=False) -> (Tensor hist, Tensor[] bin_edges)"});
  ops.add({
      .schema = "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
                "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return by_edges(b, Point::row, Part::both_listed); },
  });
}

}  // namespace tenon
