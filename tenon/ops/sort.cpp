#include "tenon/ops/sort.h"

#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/creation.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle sort, topk;
static Handle sort_stable, median, nanmedian;

namespace {

using loop::Compute;
using loop::Expr;

// Positions of dim and descending differ between the two forms.
Metas sort_meta(const ArgsView& m, size_t dim) {
  const TensorMeta& x = m.meta(0);
  (void)m.dim(dim, x.rank());
  TensorMeta values = like(x, x.sizes);
  const TensorMeta* operand = &x;
  values.strides =
      is_dense(x) ? x.strides : pointwise_strides(x.sizes, std::span<const TensorMeta* const>(&operand, 1));
  TensorMeta indices = values;
  indices.dtype = DType::i64;
  return {values, indices};
}

void first_of_one(Lower& l) {
  l.tensor(l.out(0), [&](const Index&) { return l[0].at({}); });
  l.fill(l.out(1), l.constant(0, Compute::i64));
}

void lower_sort(Lower& l, size_t dim, size_t descending) {
  Ref x = l[0], out = l.out(0);
  size_t rank = x.sizes().size();
  if (rank == 0) return first_of_one(l);
  Ref in = l.computable(x);
  Ref target = in.dtype() == out.dtype() ? out : l.temporary(in.dtype(), Sizes(out.sizes()));
  l.anchor(loop::Sort{in.operand(), target.operand(), l.out(1).operand(), l.dim(dim, rank), l.flag(descending)});
  if (target.id != out.id) l.copy(target, out);
}

Grads sorted_rule(Vjp& v, size_t dim) {
  if (!v.grad(0)) return {};
  return {place_selected(v.grad(0), v.out(1), v[0].sizes(), v.constant(dim), true)};
}

struct SortedRows {
  Ref values, positions;
  size_t dim;
  SymInt length;
};

// Rows in order, with the place each element came from.
SortedRows sorted_rows(Lower& l, size_t dim) {
  Ref in = l.computable(l[0]);
  SortedRows rows{l.temporary(in.dtype(), Sizes(in.sizes())), l.temporary(DType::i64, Sizes(in.sizes())), dim,
                  in.size(dim)};
  l.anchor(loop::Sort{in.operand(), rows.values.operand(), rows.positions.operand(), dim, false});
  return rows;
}

// From each sorted row the element at a place that may depend on the row.
void choose(Lower& l, const SortedRows& rows, bool keepdim, const std::function<Expr(const Index& row)>& place) {
  for (Ref from : {rows.values, rows.positions}) {
    Ref to = from.id == rows.values.id ? l.out(0) : l.out(1);
    l.tensor(to, [&](const Index& i) {
      Index row = keepdim ? i.with(rows.dim, Expr(0)) : i.inserted(rows.dim, Expr(0));
      return from.at(row.with(rows.dim, place(row)));
    });
  }
}

Metas chosen_meta(const ArgsView& m, size_t dim, size_t keepdim) {
  const TensorMeta& x = m.meta(0);
  Reduced over(m, x.sizes, static_cast<int>(dim), static_cast<int>(keepdim));
  require_elements(m, x.sizes, over);
  Sizes sizes = reduced_sizes(x.sizes, over.dims, over.keepdim);
  return {like(x, sizes), like(x, sizes, DType::i64)};
}

Grads chosen_rule(Vjp& v, size_t dim, size_t keepdim) {
  if (!v.grad(0)) return {};
  return {place_selected(v.grad(0), v.out(1), v[0].sizes(), v.constant(dim), v.flag(keepdim))};
}

// The lower one of two in the middle. NaN sorts last: the first NaN is the median, or NaNs do not count.
void lower_median(Lower& l, bool ignore_nan) {
  Ref x = l[0];
  size_t rank = x.sizes().size();
  if (rank == 0) return first_of_one(l);
  SortedRows rows = sorted_rows(l, l.dim(1, rank));
  Reduced over({rows.dim}, true, rank);
  Expr n = l.extent(rows.length), middle = call(loop::Fn::floor_div, n - 1, Expr(2));
  if (!is_floating(x.dtype())) return choose(l, rows, l.flag(2), [&](const Index&) { return middle; });
  Ref place = l.temporary(DType::i64, reduced_sizes(x.sizes(), over.dims, true), [&](const Index& i) {
    Expr missing =
        l.sum({rows.length}, [&](const Index& r) { return cast(loop::is_nan(x.at(over.at(i, r))), Compute::i64); });
    if (!ignore_nan) return loop::select(missing > 0, n - missing, middle);
    return loop::select(missing < n, call(loop::Fn::floor_div, n - missing - 1, Expr(2)), middle);
  });
  choose(l, rows, l.flag(2), [&](const Index& row) { return place.at(row); });
}

// In sorted rows, the end of the first of the longest runs of equal elements.
void lower_mode(Lower& l) {
  Ref x = l[0];
  size_t rank = x.sizes().size();
  if (rank == 0) return first_of_one(l);
  SortedRows rows = sorted_rows(l, l.dim(1, rank));
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
  choose(l, rows, l.flag(2), [&](const Index& row) { return place.at(row); });
}

Tensor flat(const Tensor& x) { return reshape(x, Sizes{x.numel()}); }

Results median_of_all(Build& b, const Handle& median) {
  if (statically_true(sym::eq(b[0].numel(), 0))) {
    b.require(is_floating(b[0].dtype()), "there is no median of no integers");
    return full(Sizes{}, std::numeric_limits<double>::quiet_NaN(), kw("dtype", b[0].dtype()),
                kw("device", b[0].meta().device));
  }
  return one(median(flat(b[0]), 0)[0]);
}

// Counts in equal bins from lo to hi, both counted in; from the least to the greatest element where lo is hi.
void lower_histogram(Lower& l) {
  Ref x = l[0];
  DType dtype = computable(x.dtype());
  Compute type = loop::compute_of(dtype);
  Sizes all = x.sizes();
  double lo = l.number(2), hi = l.number(3);
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
    Expr e = x.at(i), a = low.at({}), b = high.at({}), bins = l.extent(l.integer(1));
    Expr within = e >= a && e <= b;
    Expr place = cast((loop::select(within, e, a) - a) * cast(bins, type) / (b - a), Compute::i64);
    l.store_if(within, counts, {loop::min(place, bins - 1)}, l.constant(1, Compute::i64), loop::Mode::add);
  });
  l.copy(counts, l.out());
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

TensorMeta found_meta(const ArgsView& m, const TensorMeta& like_this, bool narrow) {
  (void)m;
  return like(like_this, like_this.sizes, narrow ? DType::i32 : DType::i64);
}

bool to_the_right(const ArgsView& m, size_t right, size_t side) {
  if (!m.given(side)) return m.flag(right);
  const std::string& name = m.string(side);
  m.require(name == "left" || name == "right", "side: expected 'left' or 'right', got ", quoted(name));
  m.require(name == "right" || !m.flag(right), "side is 'left' but right is True");
  return name == "right";
}

void lower_searchsorted(Lower& l, bool number) {
  Ref sequence = l[0];
  SymInt n = sequence.sizes().back();
  bool one_row = sequence.sizes().size() == 1;
  lower_search(
      l,
      [&](const Index& at) {
        Index row = one_row ? Index{at.back()} : at;
        return sequence.at(l.given(5) ? row.with(row.size() - 1, l[5].at(row)) : row);
      },
      n, [&](const Index& i) { return number ? l.scalar(1, loop::compute_of(sequence.dtype())) : l[1].at(i); },
      to_the_right(l, 3, 4));
}

}  // namespace

void register_sort(Registry& ops) {
  ops.add(sort, {
      .schema = "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) { return sort_meta(m, 1); },
      .lower = [](Lower& l) { lower_sort(l, 1, 2); },
      .vjp = {{"self, dim, descending", [](Vjp& v) { return sorted_rule(v, 1); }}},
  });
  ops.add(sort_stable, {
      .schema = "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> "
                "(Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) { return sort_meta(m, 2); },
      .lower = [](Lower& l) { lower_sort(l, 2, 3); },
      .vjp = {{"self, stable, dim, descending", [](Vjp& v) { return sorted_rule(v, 2); }}},
  });
  ops.add({
      .schema = "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(sort(b["self"], b.arg("dim"), b.arg("descending"))[1]); },
  });
  ops.add({
      .schema = "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        return {
            {CallArg(sort_stable(b["self"], kw("stable", b.arg("stable")), kw("dim", b.arg("dim")), kw("descending", b.arg("descending")))[1])}};
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
        m.require(!statically_true(sym::lt(k, 0)) && !statically_true(sym::gt(k, n)), "k: expected 0 to ", n,
                  ", the size of dimension ", dim, ", got ", k);
        Sizes sizes = x.sizes;
        if (x.rank()) sizes[dim] = k;
        return {like(x, sizes), like(x, sizes, DType::i64)};
      },
      .lower =
          [](Lower& l) {
            Ref x = l["self"], out = l.out(0);
            size_t rank = x.sizes().size();
            if (rank == 0) return first_of_one(l);
            Ref in = l.computable(x);
            Ref target = in.dtype() == out.dtype() ? out : l.temporary(in.dtype(), Sizes(out.sizes()));
            l.anchor(loop::TopK{in.operand(), target.operand(), l.out(1).operand(), l.dim("dim", rank),
                                l.integer("k"), l.flag("largest"), l.flag("sorted")});
            if (target.id != out.id) l.copy(target, out);
          },
      .vjp = {{"self, k, dim, largest, sorted", [](Vjp& v) { return sorted_rule(v, 2); }}},
  });
  ops.add({
      .schema = "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) -> Metas {
        Metas out = chosen_meta(m, 2, 3);
        SymInt n = m.meta("self").rank() ? m.meta("self").sizes[m.dim("dim", m.meta("self").rank())] : SymInt(1), k = m.integer("k");
        m.require(!statically_true(sym::lt(k, 1)) && !statically_true(sym::gt(k, n)), "k: expected 1 to ", n, ", got ", k);
        return out;
      },
      .lower =
          [](Lower& l) {
            if (l["self"].sizes().empty()) return first_of_one(l);
            SortedRows rows = sorted_rows(l, l.dim("dim", l["self"].sizes().size()));
            choose(l, rows, l.flag("keepdim"), [&](const Index&) { return l.extent(l.integer("k") - 1); });
          },
      .vjp = {{"self, k, dim, keepdim", [](Vjp& v) { return chosen_rule(v, 2, 3); }}},
  });
  ops.add(median, {
      .schema = "median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) { return chosen_meta(m, 1, 2); },
      .lower = [](Lower& l) { lower_median(l, false); },
      .vjp = {{"self, dim, keepdim", [](Vjp& v) { return chosen_rule(v, 1, 2); }}},
  });
  ops.add(nanmedian, {
      .schema = "nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) { return chosen_meta(m, 1, 2); },
      .lower = [](Lower& l) { lower_median(l, true); },
      .vjp = {{"self, dim, keepdim", [](Vjp& v) { return chosen_rule(v, 1, 2); }}},
  });
  ops.add({
      .schema = "median(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return median_of_all(b, median); },
      .vjp = {{"self", [](Vjp& v) { return share_evenly(v.grad(), v["self"], v.out(), Reduced(v, v["self"].sizes(), -1, -1)); }}},
  });
  ops.add({
      .schema = "nanmedian(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return median_of_all(b, nanmedian); },
      .vjp = {{"self", [](Vjp& v) { return share_evenly(v.grad(), v["self"], v.out(), Reduced(v, v["self"].sizes(), -1, -1)); }}},
  });
  ops.add({
      .schema = "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
      .meta = [](MetaCall& m) { return chosen_meta(m, 1, 2); },
      .lower = lower_mode,
      .vjp = {{"self, dim, keepdim", [](Vjp& v) { return chosen_rule(v, 1, 2); }}},
  });
  ops.add({
      .schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(is_floating(m.meta("self").dtype), "expected a floating point tensor, got ", m.meta("self"),
                  "; convert it first");
        m.require(m.constant("bins") > 0, "bins: expected a positive number, got ", m.constant("bins"));
        m.require(m.number("min") <= m.number("max"), "max must not be less than min, got ", m.number("max"), " and ", m.number("min"));
        return like(m.meta("self"), {m.integer("bins")});
      },
      .lower = lower_histogram,
      .vjp = no_gradient(),   // counts do not follow elements
  });
  ops.add({
      .schema = "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
                "str? side=None, Tensor? "
                "sorter=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta &s = m.meta("sorted_sequence"), &x = m.meta("self");
        m.require(s.rank() >= 1, "sorted_sequence: expected at least one dimension, got ", s);
        m.require(s.rank() == 1 || s.rank() == x.rank(),
                  "expected one row of boundaries, or as many rows as values have, got ", s, " and ", x);
        return found_meta(m, x, m.flag("out_int32"));
      },
      .lower = [](Lower& l) { lower_searchsorted(l, false); },
  });
  ops.add({
      .schema = "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
                "str? side=None, Tensor? "
                "sorter=None) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("sorted_sequence").rank() == 1, "sorted_sequence: expected one row beside a number, got ", m.meta("sorted_sequence"));
        return found_meta(m, like(m.meta("sorted_sequence"), {}), m.flag("out_int32"));
      },
      .lower = [](Lower& l) { lower_searchsorted(l, true); },
  });
  ops.add({
      .schema = "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("boundaries").rank() == 1, "boundaries: expected one row, got ", m.meta("boundaries"));
        return found_meta(m, m.meta("self"), m.flag("out_int32"));
      },
      .lower =
          [](Lower& l) {
            lower_search(
                l, [&](const Index& at) { return l["boundaries"].at({at.back()}); }, l["boundaries"].size(0),
                [&](const Index& i) { return l["self"].at(i); }, l.flag("right"));
          },
  });
  ops.add({
      .schema = "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("boundaries").rank() == 1, "boundaries: expected one row, got ", m.meta("boundaries"));
        return found_meta(m, like(m.meta("boundaries"), {}), m.flag("out_int32"));
      },
      .lower =
          [](Lower& l) {
            lower_search(
                l, [&](const Index& at) { return l["boundaries"].at({at.back()}); }, l["boundaries"].size(0),
                [&](const Index&) { return l.scalar("self", loop::compute_of(l["boundaries"].dtype())); }, l.flag("right"));
          },
  });
}

}  // namespace tenon
