#include "tenon/ops/triangular.h"

#include <algorithm>

#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle tril, triu;

namespace {

using loop::Compute;
using loop::Expr;

Metas triangle_meta(MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  m.require(x.rank() >= 2, "expected a tensor with at least two dimensions, got ", x);
  return like(x, x.sizes);
}

void lower_triangle(Lower& l, bool lower) {
  Expr diagonal = l.extent(l.integer("diagonal"));
  l.tensor([&](const Index& i) {
    size_t n = i.size();
    Expr offset = i[n - 1] - i[n - 2];
    return l["self"].at_if(lower ? offset <= diagonal : offset >= diagonal, i, 0);
  });
}

// A lower triangle: in row r of `rows`, the columns up to r + offset. Its elements are numbered row by row, and so
// begin those of row r after as many as the rows before it hold. An upper triangle is a lower one read from its end.
struct Triangle {
  int64_t rows, columns, offset;
  bool lower;

  static Triangle of(const ArgsView& m, bool lower) {
    Triangle t{m.constant("row"), m.constant("col"), m.constant("offset"), lower};
    m.require(t.rows >= 0 && t.columns >= 0, "expected sizes that are not negative, got ", t.rows, " and ", t.columns);
    if (!lower) t.offset = sym::checked_sub(sym::checked_sub(t.columns, t.rows), t.offset);
    return t;
  }
  // The sum of min(j, columns) for j = 1..m; 0 where m is not positive.
  int64_t staircase(int64_t m) const {
    if (m <= 0) return 0;
    int64_t steep = std::min(m, columns);
    return sym::checked_add(sym::checked_mul(steep, sym::checked_add(steep, 1)) / 2,
                            sym::checked_mul(m - steep, columns));
  }
  int64_t size() const { return sym::checked_sub(staircase(sym::checked_add(rows, offset)), staircase(offset)); }
};

Metas indices_meta(MetaCall& m, bool lower) {
  return factory_meta(m, {2, SymInt(Triangle::of(m, lower).size())}, DType::i64);
}

void lower_indices(Lower& l, bool lower) {
  Triangle t = Triangle::of(l, lower);
  int64_t n = t.size(), steep = t.staircase(t.columns), skipped = t.staircase(t.offset);
  l.stage(Sizes{SymInt(n)}, [&](const Index& i) {
    // m(m + 1)/2 elements stand above step m of the steep part; the square root is right to within one.
    Expr place = (lower ? i[0] : n - 1 - i[0]) + skipped;
    auto above = [](Expr m) { return call(loop::Fn::floor_div, m * (m + 1), 2); };
    Expr root = loop::sqrt(cast(place * 8 + 1, Compute::f64));
    Expr m = call(loop::Fn::floor_div, cast(root, Compute::i64) - 1, 2);
    m = m + cast(above(m + 1) <= place, Compute::i64) - cast(above(m) > place, Compute::i64);
    Expr flat = place - steep, width = l.extent(std::max<int64_t>(t.columns, 1));
    Expr row = loop::select(flat < 0, m, call(loop::Fn::floor_div, flat, width) + t.columns) - t.offset;
    Expr column = loop::select(flat < 0, place - above(m), call(loop::Fn::remainder, flat, width));
    l.store(l.out(), {Expr(0), i[0]}, lower ? row : t.rows - 1 - row);
    l.store(l.out(), {Expr(1), i[0]}, lower ? column : t.columns - 1 - column);
  });
}

}  // namespace

void register_triangular(Registry& ops) {
  ops.add(tril, {
                    .schema = "tril(Tensor self, SymInt diagonal=0) -> Tensor",
                    .meta = triangle_meta,
                    .lower = [](Lower& l) { lower_triangle(l, true); },
                    .vjp = {{"self", [](Vjp& v) { return tril(v.grad(), v.arg("diagonal")); }}},
                    .complex = [](Build& b) { return by_parts(b, "self"); },
                });
  ops.add(triu, {
                    .schema = "triu(Tensor self, SymInt diagonal=0) -> Tensor",
                    .meta = triangle_meta,
                    .lower = [](Lower& l) { lower_triangle(l, false); },
                    .vjp = {{"self", [](Vjp& v) { return triu(v.grad(), v.arg("diagonal")); }}},
                    .complex = [](Build& b) { return by_parts(b, "self"); },
                });
  ops.add({
      .schema = "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
                "device=None, bool? pin_memory=None) -> "
                "Tensor",
      .meta = [](MetaCall& m) { return indices_meta(m, true); },
      .lower = [](Lower& l) { lower_indices(l, true); },
  });
  ops.add({
      .schema = "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? "
                "device=None, bool? pin_memory=None) -> "
                "Tensor",
      .meta = [](MetaCall& m) { return indices_meta(m, false); },
      .lower = [](Lower& l) { lower_indices(l, false); },
  });
}

}  // namespace tenon
