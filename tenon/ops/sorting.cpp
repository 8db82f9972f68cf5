#include "tenon/ops/sorting.h"

#include <functional>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Handle sort, topk;
static Handle sort_stable, median, nanmedian, searchsorted, bucketize;

namespace {

using loop::Compute;
using loop::Expr;

Metas sort_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  (void)m.dim("dim", x.rank());
  TensorMeta values = like(x, x.sizes);
  const TensorMeta* operand = &x;
  values.strides =
      is_dense(x) ? x.strides : pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
  TensorMeta indices = values;
  indices.dtype = DType::i64;
  return {values, indices};
}

void first_of_one(Lower& l) {
  l.tensor(l.out(), [&](const Index&) { return l["self"].at({}); });
  l.fill(l.out(1), l.constant(0, Compute::i64));
}

void lower_sort(Lower& l) {
  Ref x = l["self"], out = l.out();
  size_t rank = x.sizes().size();
  if (rank == 0) return first_of_one(l);
  Ref in = l.computable(x);
  Ref target = in.dtype() == out.dtype() ? out : l.temporary(in.dtype(), Sizes(out.sizes()));
  l.anchor(loop::Sort{in.operand(), target.operand(), l.out(1).operand(), l.dim("dim", rank), l.flag("descending")});
  if (target.id != out.id) l.copy(target, out);
}

// The gradient of values selected along dim: sorting keeps the dimension, choosing one of a row may drop it.
Tensor sorted_gradient(Vjp& v) {
  return v.grad() ? place_selected(v.grad(), v.out(1), v["self"].sizes(), v.constant("dim"), true) : none;
}
Tensor chosen_gradient(Vjp& v) {
  return v.grad() ? place_selected(v.grad(), v.out(1), v["self"].sizes(), v.constant("dim"), v.flag("keepdim")) : none;
}

struct SortedRows {
  Ref values, positions;
  size_t dim;
  SymInt length;
};

// Rows in order, with the place each element came from.
SortedRows sorted_rows(Lower& l, size_t dim) {
  Ref in = l.computable(l["self"]);
  SortedRows rows{l.temporary(in.dtype(), Sizes(in.sizes())), l.temporary(DType::i64, Sizes(in.sizes())), dim,
                  in.size(dim)};
  l.anchor(loop::Sort{in.operand(), rows.values.operand(), rows.positions.operand(), dim, false});
  return rows;
}

// From each sorted row the element at a place that may depend on the row.
void choose(Lower& l, const SortedRows& rows, bool keepdim, const std::function<Expr(const Index& row)>& place) {
  for (Ref from : {rows.values, rows.positions}) {
    Ref to = from.id == rows.values.id ? l.out() : l.out(1);
    l.tensor(to, [&](const Index& i) {
      Index row = keepdim ? i.with(rows.dim, Expr(0)) : i.inserted(rows.dim, Expr(0));
      return from.at(row.with(rows.dim, place(row)));
    });
  }
}

Metas chosen_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  Reduced over(m, x.sizes);
  require_elements(m, x.sizes, over);
  Sizes sizes = reduced_sizes(x.sizes, over.dims, over.keepdim);
  return {like(x, sizes), like(x, sizes, DType::i64)};
}

// The lower one of two in the middle. NaN sorts last: the first NaN is the median, or NaNs do not count.
void lower_median(Lower& l, bool ignore_nan) {
  Ref x = l["self"];
  size_t rank = x.sizes().size();
  if (rank == 0) return first_of_one(l);
  SortedRows rows = sorted_rows(l, l.dim("dim", rank));
  Reduced over({rows.dim}, true, rank);
  Expr n = l.extent(rows.length), middle = call(loop::Fn::floor_div, n - 1, Expr(2));
  if (!is_floating(x.dtype())) return choose(l, rows, l.flag("keepdim"), [&](const Index&) { return middle; });
  Ref place = l.temporary(DType::i64, reduced_sizes(x.sizes(), over.dims, true), [&](const Index& i) {
    Expr missing =
        l.sum({rows.length}, [&](const Index& r) { return cast(loop::is_nan(x.at(over.at(i, r))), Compute::i64); });
    if (!ignore_nan) return loop::select(missing > 0, n - missing, middle);
    return loop::select(missing < n, call(loop::Fn::floor_div, n - missing - 1, Expr(2)), middle);
  });
  choose(l, rows, l.flag("keepdim"), [&](const Index& row) { return place.at(row); });
}

// In sorted rows, the end of the first of the longest runs of equal elements.
void lower_mode(Lower& l) {
  Ref x = l["self"];
  size_t rank = x.sizes().size();
  if (rank == 0) return first_of_one(l);
  SortedRows rows = sorted_rows(l, l.dim("dim", rank));
  Reduced over({rows.dim}, true, rank);
  Ref begins = l.temporary(DType::i64, Sizes(x.sizes()), [&](const Index& i) {
    Expr at = i[rows.dim];
    Expr before = rows.values.at_if(at > 0, i.with(rows.dim, at - 1), Expr(0.0));
    return loop::select(at > 0 && before != rows.values.at(i), at, 0);
  });
  Ref start = l.temporary(DType::i64, Sizes(x.sizes())), seen = l.temporary(DType::i64, Sizes(x.sizes()));
  l.anchor(loop::Scan{.kind = loop::ScanKind::max,
                      .in = begins.operand(),
                      .out = start.operand(),
                      .has_indices = true,
                      .indices = seen.operand(),
                      .dim = rows.dim});
  Ref place = l.temporary(DType::i64, reduced_sizes(x.sizes(), over.dims, true), [&](const Index& i) {
    return l.reduce(loop::Combine::argmax, {rows.length},
                    [&](const Index& r) { return r[0] - start.at(over.at(i, r)); });
  });
  choose(l, rows, l.flag("keepdim"), [&](const Index& row) { return place.at(row); });
}

Results median_of_all(Build& b, const Handle& median) {
  if (statically_true(sym::eq(b["self"].numel(), 0))) {
    b.require(is_floating(b["self"].dtype()), "there is no median of no integers");
    return full(Sizes{}, std::numeric_limits<double>::quiet_NaN(), kw("dtype", b["self"].dtype()),
                kw("device", b["self"].meta().device));
  }
  return one(median(reshape(b["self"], Sizes{b["self"].numel()}), 0)[0]);
}

// How many boundaries lie before each value; those equal to it count where `right`. NaN comes last.
void lower_search(Lower& l, const std::function<Expr(const Index&)>& boundary, SymInt boundaries,
                  const std::function<Expr(const Index&)>& value, bool right) {
  l.tensor([&](const Index& i) {
    Expr v = value(i);
    return l.sum({boundaries}, [&](const Index& r) {
      Index at = i.empty() ? Index{r[0]} : i.with(i.size() - 1, r[0]);
      Expr b = boundary(at);
      return cast(!(right ? b > v : b >= v), Compute::i64);
    });
  });
}

TensorMeta found_meta(const ArgsView& m, const TensorMeta& values) {
  return like(values, values.sizes, m.flag("out_int32") ? DType::i32 : DType::i64);
}

bool counts_equal(const ArgsView& m) {
  if (!m.given("side")) return m.flag("right");
  const std::string& side = m.string("side");
  m.require(side == "left" || side == "right", "side: expected 'left' or 'right', got ", quoted(side));
  m.require(side == "right" || !m.flag("right"), "side is 'left' but right is True");
  return side == "right";
}

Metas searchsorted_meta(MetaCall& m) {
  const TensorMeta& s = m.meta("sorted_sequence");
  if (!m.is_tensor("self")) {
    m.require(s.rank() == 1, "sorted_sequence: expected one row beside a number, got ", s);
    return found_meta(m, like(s, {}));
  }
  const TensorMeta& x = m.meta("self");
  m.require(s.rank() >= 1, "sorted_sequence: expected at least one dimension, got ", s);
  m.require(s.rank() == 1 || s.rank() == x.rank(),
            "expected one row of boundaries, or as many rows as values have, got ", s, " and ", x);
  return found_meta(m, x);
}

// The values that are looked for: a tensor's, or a number in the type of the boundaries.
std::function<Expr(const Index&)> values_of(Lower& l, DType boundaries) {
  if (l.is_tensor("self")) return [&l](const Index& i) { return l["self"].at(i); };
  return [&l, boundaries](const Index&) { return l.scalar("self", loop::compute_of(boundaries)); };
}

void lower_searchsorted(Lower& l) {
  Ref sequence = l["sorted_sequence"];
  bool one_row = sequence.sizes().size() == 1;
  auto boundary = [&](const Index& at) {
    Index row = one_row ? Index{at.back()} : at;
    return sequence.at(l.given("sorter") ? row.with(row.size() - 1, l["sorter"].at(row)) : row);
  };
  lower_search(l, boundary, sequence.sizes().back(), values_of(l, sequence.dtype()), counts_equal(l));
}

Metas bucketize_meta(MetaCall& m) {
  const TensorMeta& boundaries = m.meta("boundaries");
  m.require(boundaries.rank() == 1, "boundaries: expected one row, got ", boundaries);
  return found_meta(m, m.is_tensor("self") ? m.meta("self") : like(boundaries, {}));
}

void lower_bucketize(Lower& l) {
  Ref boundaries = l["boundaries"];
  lower_search(
      l, [&](const Index& at) { return boundaries.at({at.back()}); }, boundaries.size(0),
      values_of(l, boundaries.dtype()), l.flag("right"));
}

}  // namespace

void register_sorting(Registry& ops) {
  ops.add(sort, {
                    .schema = "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
                    .meta = sort_meta,
                    .lower = lower_sort,
                    .vjp = {{"self", [](Vjp& v) { return sorted_gradient(v); }}},
                });
  ops.overload(sort, sort_stable,
               "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor "
               "indices)");
  ops.add({
      .schema = "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(sort(b["self"], b.arg("dim"), b.arg("descending"))[1]); },
  });
  ops.add({
      .schema = "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            return one(sort_stable(b["self"], kw("stable", b.arg("stable")), kw("dim", b.arg("dim")),
                                   kw("descending", b.arg("descending")))[1]);
          },
  });
  ops.add({
      .schema = "msort(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(sort(b["self"], 0)[0]); },
  });
  ops.add(topk, {
                    .schema = "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor "
                              "values, Tensor indices)",
                    .meta = [](MetaCall& m) -> Metas {
                      const TensorMeta& x = m.meta("self");
                      size_t dim = m.dim("dim", x.rank());
                      SymInt k = m.integer("k"), n = x.rank() ? x.sizes[dim] : SymInt(1);
                      m.require(!statically_true(sym::lt(k, 0)) && !statically_true(sym::gt(k, n)), "k: expected 0 to ",
                                n, ", the size of dimension ", dim, ", got ", k);
                      Sizes sizes = x.sizes;
                      if (x.rank()) sizes[dim] = k;
                      return {like(x, sizes), like(x, sizes, DType::i64)};
                    },
                    .lower =
                        [](Lower& l) {
                          Ref x = l["self"], out = l.out();
                          size_t rank = x.sizes().size();
                          if (rank == 0) return first_of_one(l);
                          Ref in = l.computable(x);
                          Ref target = in.dtype() == out.dtype() ? out : l.temporary(in.dtype(), Sizes(out.sizes()));
                          l.anchor(loop::TopK{in.operand(), target.operand(), l.out(1).operand(), l.dim("dim", rank),
                                              l.integer("k"), l.flag("largest"), l.flag("sorted")});
                          if (target.id != out.id) l.copy(target, out);
                        },
                    .vjp = {{"self", [](Vjp& v) { return sorted_gradient(v); }}},
                });
  ops.add({
      .schema = "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) -> Metas {
        Metas out = chosen_meta(m);
        SymInt n = m.meta("self").rank() ? m.meta("self").sizes[m.dim("dim", m.meta("self").rank())] : SymInt(1),
               k = m.integer("k");
        m.require(!statically_true(sym::lt(k, 1)) && !statically_true(sym::gt(k, n)), "k: expected 1 to ", n, ", got ",
                  k);
        return out;
      },
      .lower =
          [](Lower& l) {
            if (l["self"].sizes().empty()) return first_of_one(l);
            SortedRows rows = sorted_rows(l, l.dim("dim", l["self"].sizes().size()));
            choose(l, rows, l.flag("keepdim"), [&](const Index&) { return l.extent(l.integer("k") - 1); });
          },
      .vjp = {{"self", [](Vjp& v) { return chosen_gradient(v); }}},
  });
  ops.add(median,
          {
              .schema = "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
              .meta = chosen_meta,
              .lower = [](Lower& l) { lower_median(l, false); },
              .vjp = {{"self", [](Vjp& v) { return chosen_gradient(v); }}},
          });
  ops.add(nanmedian,
          {
              .schema = "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
              .meta = chosen_meta,
              .lower = [](Lower& l) { lower_median(l, true); },
              .vjp = {{"self", [](Vjp& v) { return chosen_gradient(v); }}},
          });
  ops.add({
      .schema = "median(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return median_of_all(b, median); },
      .vjp = {{"self",
               [](Vjp& v) { return share_evenly(v.grad(), v["self"], v.out(), Reduced(v, v["self"].sizes())); }}},
  });
  ops.add({
      .schema = "nanmedian(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return median_of_all(b, nanmedian); },
      .vjp = {{"self",
               [](Vjp& v) { return share_evenly(v.grad(), v["self"], v.out(), Reduced(v, v["self"].sizes())); }}},
  });
  ops.add({
      .schema = "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .meta = chosen_meta,
      .lower = lower_mode,
      .vjp = {{"self", [](Vjp& v) { return chosen_gradient(v); }}},
  });
  ops.add(searchsorted,
          {
              .schema =
                  "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
                  "str? side=None, Tensor? sorter=None) -> Tensor",
              .meta = searchsorted_meta,
              .lower = lower_searchsorted,
          });
  ops.overload(searchsorted,
               {"searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
                "str? side=None, Tensor? sorter=None) -> Tensor"});
  ops.add(
      bucketize,
      {
          .schema =
              "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
          .meta = bucketize_meta,
          .lower = lower_bucketize,
      });
  ops.overload(
      bucketize,
      {"bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"});
}

}  // namespace tenon
