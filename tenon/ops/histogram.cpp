// Histograms of elements and of points in several dimensions, and how often integers occur.
#include <algorithm>
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

static Handle histogramdd;

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

template <class T>
Tensor totals(DType dtype, SymInt bins, const std::vector<int64_t>& places, const std::vector<T>& weights) {
  Tensor fits = Tensor::empty(dtype, {bins});  // refuses more than there can be
  std::vector<T> sums(static_cast<size_t>(bins.as_int()));
  for (size_t i = 0; i < places.size(); ++i) sums[static_cast<size_t>(places[i])] += weights.empty() ? 1 : weights[i];
  return made(fits.meta(), sums);
}

CallResults count_numbers(ArgsView& call) {
  DType dtype = counted_dtype(call);
  std::vector<int64_t> places = elements<int64_t>(call["self"]);
  int64_t bins = call.constant("minlength");
  for (int64_t place : places) {
    call.require(place >= 0, "expected numbers that are not negative, got ", place);
    bins = std::max(bins, sym::checked_add(place, 1));
  }
  if (dtype == DType::i64) return {CallArg(totals<int64_t>(dtype, bins, places, {}))};
  return {CallArg(totals(dtype, bins, places, elements<double>(call["weights"])))};
}

// What a point of a histogram is: every element, or a row along the last dimension.
enum class Point { element, row };

struct Points {
  Tensor x;                     // [n, d]
  std::vector<double> weights;  // empty: 1 each
};

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
    m.require(w.dtype == x.dtype && w.sizes == points, "weight: expected ", make_meta(x.dtype, points), ", got ", w);
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

Points points_of(const ArgsView& call, Point point, size_t dims) {
  Points out;
  SymInt n = point == Point::element
                 ? call["self"].numel()
                 : sym::floor_div(call["self"].numel(), larger(SymInt(static_cast<int64_t>(dims)), 1));
  out.x = reshape(call["self"], Sizes{n, SymInt(static_cast<int64_t>(dims))});
  if (call.given("weight")) out.weights = elements<double>(call["weight"]);
  return out;
}

std::vector<Tensor> even_edges(const ArgsView& call, const Tensor& x, const Sizes& bins) {
  std::vector<double> range = range_of(call, bins.size()), all;
  if (range.empty()) all = elements<double>(x);
  std::vector<Tensor> out;
  for (size_t d = 0; d < bins.size(); ++d) {
    double low = 0, high = 1;
    if (!range.empty()) {
      low = range[2 * d];
      high = range[2 * d + 1];
    } else if (!all.empty()) {
      low = high = all[d];
      for (size_t i = d; i < all.size(); i += bins.size()) {
        call.require(std::isfinite(all[i]), "expected finite numbers where no range is given, got ", all[i]);
        low = std::min(low, all[i]);
        high = std::max(high, all[i]);
      }
    }
    if (low == high) {
      low -= 0.5;
      high += 0.5;
    }
    out.push_back(linspace(low, high, bins[d] + 1, kw("dtype", x.dtype())));
  }
  return out;
}

// Which bin, -1: none. The last one includes its right end.
int64_t bin_of(double x, const std::vector<double>& edges) {
  if (!(x >= edges.front() && x <= edges.back())) return -1;
  auto last = static_cast<int64_t>(edges.size()) - 2;
  return std::min(last, static_cast<int64_t>(std::upper_bound(edges.begin(), edges.end(), x) - edges.begin()) - 1);
}

Tensor counted(const ArgsView& call, const Points& points, const std::vector<Tensor>& edges) {
  std::vector<std::vector<double>> ends;
  Sizes sizes;
  for (const Tensor& e : edges) {
    ends.push_back(elements<double>(e));
    sizes.push_back(e.size(0) - 1);
  }
  TensorMeta meta = make_meta(points.x.dtype(), sizes);
  std::vector<double> x = elements<double>(points.x), totals(static_cast<size_t>(count(sizes).as_int()));
  size_t dims = edges.size(), n = dims ? x.size() / dims : 0;
  for (size_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < dims && at >= 0; ++d) {
      int64_t bin = bin_of(x[i * dims + d], ends[d]);
      at = bin < 0 ? -1 : at * sizes[d].as_int() + bin;
    }
    if (at >= 0) totals[static_cast<size_t>(at)] += points.weights.empty() ? 1 : points.weights[i];
  }
  Tensor out = made(meta, totals);
  if (!call.flag("density")) return out;
  out = out / sum_all(out);
  for (size_t d = 0; d < dims; ++d) {
    Sizes shape(dims, SymInt(1));
    shape[d] = sizes[d];
    out = out / reshape(slice(edges[d], 0, 1) - slice(edges[d], 0, 0, -1), shape);
  }
  return out;
}

// What a call returns.
enum class Part { counts, edges, both, both_listed };

Metas parts_meta(const TensorMeta& x, const Sizes& bins, Part part) {
  std::vector<TensorMeta> edges;
  for (SymInt n : bins) edges.push_back(like(x, {n + 1}));
  TensorMeta counts = like(x, bins);
  switch (part) {
    case Part::counts: return counts;
    case Part::edges: return {BasicArg<TensorMeta>(edges)};
    case Part::both: return {counts, edges[0]};
    case Part::both_listed: return {counts, BasicArg<TensorMeta>(edges)};
  }
  unreachable();
}

Metas even_meta(MetaCall& m, Point point, Part part) {
  size_t dims = dims_of(m, point);
  range_of(m, dims);
  return parts_meta(m.meta("self"), bins_of(m, dims), part);
}

CallResults parts(const ArgsView& call, const Points& points, std::vector<Tensor> edges, Part part) {
  switch (part) {
    case Part::counts: return {CallArg(counted(call, points, edges))};
    case Part::edges: return {CallArg(std::move(edges))};
    case Part::both: return {CallArg(counted(call, points, edges)), CallArg(edges[0])};
    case Part::both_listed: return {CallArg(counted(call, points, edges)), CallArg(edges)};
  }
  unreachable();
}

CallResults even(ArgsView& call, Point point, Part part) {
  size_t dims = dims_of(call, point);
  Sizes bins = bins_of(call, dims);
  Points points = points_of(call, point, dims);
  return parts(call, points, even_edges(call, points.x, bins), part);
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

Metas given_meta(MetaCall& m, Point point, Part part) {
  Sizes bins;
  std::vector<TensorMeta> edges;
  for (const Tensor& e : given_edges(m, point)) {
    bins.push_back(e.size(0) - 1);
    edges.push_back(e.meta());
  }
  if (part == Part::both_listed) return {like(m.meta("self"), bins), BasicArg<TensorMeta>(edges)};
  return parts_meta(m.meta("self"), bins, part);
}

CallResults by_edges(ArgsView& call, Point point, Part part) {
  std::vector<Tensor> edges = given_edges(call, point);
  if (part == Part::both) edges[0] = contiguous_copy(edges[0]);
  return parts(call, points_of(call, point, edges.size()), edges, part);
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
      .kernel = count_numbers,
  });
  ops.add({
      .schema = "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
                "density=False) -> (Tensor hist, Tensor bin_edges)",
      .meta = [](MetaCall& m) { return even_meta(m, Point::element, Part::both); },
      .kernel = [](ArgsView& call) { return even(call, Point::element, Part::both); },
  });
  ops.add({
      .schema = "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
                "(Tensor hist, Tensor bin_edges)",
      .meta = [](MetaCall& m) { return given_meta(m, Point::element, Part::both); },
      .kernel = [](ArgsView& call) { return by_edges(call, Point::element, Part::both); },
  });
  ops.add({
      .schema = "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
                "density=False) -> Tensor[]",
      .meta = [](MetaCall& m) { return even_meta(m, Point::row, Part::edges); },
      .kernel = [](ArgsView& call) { return even(call, Point::row, Part::edges); },
  });
  ops.add({
      .schema = "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
                "density=False) -> Tensor",
      .meta = [](MetaCall& m) { return even_meta(m, Point::row, Part::counts); },
      .kernel = [](ArgsView& call) { return even(call, Point::row, Part::counts); },
  });
  ops.add({
      .schema = "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) "
                "-> Tensor",
      .meta = [](MetaCall& m) { return given_meta(m, Point::row, Part::counts); },
      .kernel = [](ArgsView& call) { return by_edges(call, Point::row, Part::counts); },
  });
  ops.add(histogramdd, {
                           .schema = "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, "
                                     "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
                           .meta = [](MetaCall& m) { return even_meta(m, Point::row, Part::both_listed); },
                           .kernel = [](ArgsView& call) { return even(call, Point::row, Part::both_listed); },
                       });
  ops.overload(histogramdd, {"histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, "
                             "bool density=False) -> (Tensor hist, Tensor[] bin_edges)"});
  ops.add({
      .schema = "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
                "bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
      .traits = {.may_alias = true},
      .meta = [](MetaCall& m) { return given_meta(m, Point::row, Part::both_listed); },
      .kernel = [](ArgsView& call) { return by_edges(call, Point::row, Part::both_listed); },
  });
}

}  // namespace tenon
