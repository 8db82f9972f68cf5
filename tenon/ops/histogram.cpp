// Histograms over one dimension or several.
#include <algorithm>
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/ranges.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {
namespace {

// A histogram of points [n, d]. The positions of its arguments: range and weight, -1 where there is none.
struct Form {
  bool flat;   // one dimension: every element is a point
  int range, weight, density;
};

struct Points {
  Tensor x;   // [n, d]
  std::vector<double> weights;   // empty: 1 each
};

size_t dims_of(const ArgsView& m, const Form& form) {
  const TensorMeta& x = m.meta(0);
  m.require(x.dtype == DType::f32 || x.dtype == DType::f64, "expected a tensor of f32 or f64, got ", x);
  Sizes points = x.sizes;
  if (!form.flat) {
    m.require(x.rank() >= 2, "expected a tensor of at least 2 dimensions, got ", x);
    m.require(x.sizes.back().is_int(), "expected points of constant size, got ", x);
    points.pop_back();
  }
  if (form.weight >= 0 && m.given(static_cast<size_t>(form.weight))) {
    const TensorMeta& w = m.meta(static_cast<size_t>(form.weight));
    m.require(w.dtype == x.dtype && w.sizes == points, "weight: expected ", make_meta(x.dtype, points), ", got ", w);
  }
  return form.flat ? 1 : static_cast<size_t>(x.sizes.back().as_int());
}

std::vector<double> range_of(const ArgsView& m, const Form& form, size_t dims) {
  if (form.range < 0 || !m.given(static_cast<size_t>(form.range))) return {};
  auto* range = m.arg(static_cast<size_t>(form.range)).get<std::vector<double>>();
  std::vector<double> out = range ? *range : std::vector<double>();
  m.require(out.size() == 2 * dims, "range: expected ", 2 * dims, " numbers, got ", out.size());
  for (size_t d = 0; d < dims; ++d)
    m.require(std::isfinite(out[2 * d]) && std::isfinite(out[2 * d + 1]) && out[2 * d] <= out[2 * d + 1],
              "range: expected finite ends in order, got ", out[2 * d], " and ", out[2 * d + 1]);
  return out;
}

// The counts of bins per dimension: one number for all, or a list.
Sizes bins_of(const ArgsView& m, size_t dims) {
  Sizes bins = m.arg(1).is<SymInt>() ? Sizes(dims, m.integer(1)) : m.ints(1);
  m.require(bins.size() == dims, "bins: expected ", dims, " numbers, got ", bins);
  for (SymInt n : bins) m.require(n.is_int() && n.as_int() > 0, "bins: expected positive numbers, got ", bins);
  return bins;
}

Points points_of(const ArgsView& call, const Form& form, size_t dims) {
  Points out;
  SymInt n = form.flat ? call[0].numel() : sym::floor_div(call[0].numel(), larger(SymInt(static_cast<int64_t>(dims)), 1));
  out.x = reshape(call[0], Sizes{n, SymInt(static_cast<int64_t>(dims))});
  if (form.weight >= 0 && call.given(static_cast<size_t>(form.weight))) out.weights = elements<double>(call[static_cast<size_t>(form.weight)]);
  return out;
}

std::vector<Tensor> even_edges(const ArgsView& call, const Form& form, const Tensor& x, const Sizes& bins) {
  std::vector<double> range = range_of(call, form, bins.size()), all;
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

Tensor counted(const ArgsView& call, const Form& form, const Points& points, const std::vector<Tensor>& edges) {
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
  if (!call.flag(static_cast<size_t>(form.density))) return out;
  out = out / Tensor(sum_all(out));
  for (size_t d = 0; d < dims; ++d) {
    Sizes shape(dims, SymInt(1));
    shape[d] = sizes[d];
    out = out / Tensor(reshape(Tensor(slice(edges[d], 0, 1)) - Tensor(slice(edges[d], 0, 0, -1)), shape));
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

Metas even_meta(MetaCall& m, const Form& form, Part part) {
  size_t dims = dims_of(m, form);
  range_of(m, form, dims);
  return parts_meta(m.meta(0), bins_of(m, dims), part);
}

CallResults parts(const ArgsView& call, const Form& form, const Points& points, std::vector<Tensor> edges, Part part) {
  switch (part) {
    case Part::counts: return {CallArg(counted(call, form, points, edges))};
    case Part::edges: return {CallArg(std::move(edges))};
    case Part::both: return {CallArg(counted(call, form, points, edges)), CallArg(edges[0])};
    case Part::both_listed: return {CallArg(counted(call, form, points, edges)), CallArg(edges)};
  }
  unreachable();
}

CallResults even(ArgsView& call, const Form& form, Part part) {
  size_t dims = dims_of(call, form);
  Sizes bins = bins_of(call, dims);
  Points points = points_of(call, form, dims);
  return parts(call, form, points, even_edges(call, form, points.x, bins), part);
}

// Edges given as tensors.
std::vector<Tensor> given_edges(const ArgsView& m, const Form& form) {
  size_t dims = dims_of(m, form);
  std::vector<Tensor> edges = m.op.schema.args[1].type.list ? m.tensors(1) : std::vector<Tensor>{m[1]};
  m.require(edges.size() == dims, "bins: expected ", dims, " tensors, got ", edges.size());
  for (const Tensor& e : edges)
    m.require(e && e.rank() == 1 && e.dtype() == m.meta(0).dtype && (!e.size(0).is_int() || e.size(0).as_int() >= 2),
              "bins: expected at least 2 edges of dtype ", m.meta(0).dtype, " in 1 dimension, got ", e ? text(e.meta()) : "none");
  return edges;
}

Metas given_meta(MetaCall& m, const Form& form, Part part) {
  Sizes bins;
  std::vector<TensorMeta> edges;
  for (const Tensor& e : given_edges(m, form)) {
    bins.push_back(e.size(0) - 1);
    edges.push_back(e.meta());
  }
  if (part == Part::both_listed) return {like(m.meta(0), bins), BasicArg<TensorMeta>(edges)};
  return parts_meta(m.meta(0), bins, part);
}

CallResults by_edges(ArgsView& call, const Form& form, Part part) {
  std::vector<Tensor> edges = given_edges(call, form);
  if (part == Part::both) edges[0] = contiguous_copy(edges[0]);
  return parts(call, form, points_of(call, form, edges.size()), edges, part);
}

constexpr Form flat_even{true, 2, 3, 4}, flat_given{true, -1, 2, 3}, several_even{false, 2, 3, 4}, several_given{false, -1, 2, 3},
    several_given_listed{false, -1, 3, 4};

}  // namespace

void register_histogram(Registry& ops) {
  ops.add({
      .schema = "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
      .meta = [](MetaCall& m) { return even_meta(m, flat_even, Part::both); },
      .kernel = [](ArgsView& call) { return even(call, flat_even, Part::both); },
  });
  ops.add({
      .schema = "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
      .meta = [](MetaCall& m) { return given_meta(m, flat_given, Part::both); },
      .kernel = [](ArgsView& call) { return by_edges(call, flat_given, Part::both); },
  });
  ops.add({
      .schema = "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor[]",
      .meta = [](MetaCall& m) { return even_meta(m, several_even, Part::edges); },
      .kernel = [](ArgsView& call) { return even(call, several_even, Part::edges); },
  });
  ops.add({
      .schema = "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False) -> Tensor",
      .meta = [](MetaCall& m) { return even_meta(m, several_even, Part::counts); },
      .kernel = [](ArgsView& call) { return even(call, several_even, Part::counts); },
  });
  ops.add({
      .schema = "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor",
      .meta = [](MetaCall& m) { return given_meta(m, several_given, Part::counts); },
      .kernel = [](ArgsView& call) { return by_edges(call, several_given, Part::counts); },
  });
  ops.add({
      .schema = "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
      .meta = [](MetaCall& m) { return even_meta(m, several_even, Part::both_listed); },
      .kernel = [](ArgsView& call) { return even(call, several_even, Part::both_listed); },
  });
  ops.add({
      .schema = "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
      .meta = [](MetaCall& m) { return even_meta(m, several_even, Part::both_listed); },
      .kernel = [](ArgsView& call) { return even(call, several_even, Part::both_listed); },
  });
  ops.add({
      .schema = "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] bin_edges)",
      .traits = {.may_alias = true},
      .meta = [](MetaCall& m) { return given_meta(m, several_given_listed, Part::both_listed); },
      .kernel = [](ArgsView& call) { return by_edges(call, several_given_listed, Part::both_listed); },
  });
}

}  // namespace tenon
