#include "tenon/ops/fill.h"

#include <algorithm>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/ops/elementwise.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/views.h"
#include "tenon/ops/diagonal.h"

namespace tenon {

Handle fill, masked_fill, masked_fill_tensor, tril, triu, one_hot;

namespace {

using loop::Compute;
using loop::Expr;

Metas filled_meta(MetaCall& m) {
  if (m.args.size() > 1 && m.is_tensor(1))
    m.require(m.meta(1).rank() == 0, "value: expected a tensor without dimensions, got ", m.meta(1));
  CallArgs args = {m.arg(0), {}, {}, {}, {}, {}};
  return *infer(empty_like.op(), args);
}

// Where all indices are equal; with wrap, below that again after each square and one row.
Tensor diagonal_mask(const Build& b, const Sizes& sizes, bool wrap) {
  size_t rank = sizes.size();
  b.require(rank >= 2, "expected at least 2 dimensions, got sizes ", sizes);
  for (SymInt size : sizes)
    b.require(rank == 2 || size == sizes[0], "expected equal sizes of all dimensions, got ", sizes);
  auto index = [&](size_t dim) -> Tensor {
    Sizes at(rank, SymInt(1));
    at[dim] = sizes[dim];
    return reshape(arange(0, sizes[dim]), at);
  };
  if (wrap && rank == 2)
    return eq(remainder(add(mul(index(0), sizes[1]), index(1)), sizes[1] + 1), 0);
  Tensor mask = eq(index(0), index(1));
  for (size_t dim = 2; dim < rank; ++dim) mask = mul(mask, eq(index(0), index(dim)));
  return mask;
}

Expr value_for(const Scalars& x, size_t arg) { return cast(x[arg], x[0].type()); }

Metas masked_meta(MetaCall& m) {
  m.require(m.meta(1).dtype == DType::boolean, "mask: expected a boolean tensor, got ", m.meta(1));
  if (m.is_tensor(2)) m.require(m.meta(2).rank() == 0, "value: expected a tensor without dimensions, got ", m.meta(2));
  return like(m.meta(0), broadcast(m.meta(0).sizes, m.meta(1).sizes, m));
}

Expr masked(const Scalars& x) { return loop::select(x[1], value_for(x, 2), x[0]); }

Metas triangle_meta(MetaCall& m) {
  m.require(m.meta(0).rank() >= 2, "expected a tensor with at least two dimensions, got ", m.meta(0));
  return like(m.meta(0), m.meta(0).sizes);
}

void lower_triangle(Lower& l, bool lower) {
  Expr diagonal = l.extent(l.integer(1));
  l.tensor([&](const Index& i) {
    size_t n = i.size();
    Expr offset = i[n - 1] - i[n - 2];
    return l[0].at_if(lower ? offset <= diagonal : offset >= diagonal, i, 0);
  });
}

// A lower triangle: in row r of `rows`, the columns up to r + offset. Its elements are numbered row by row, and so begin
// those of row r after as many as the rows before it hold. An upper triangle is a lower one read from its end.
struct Triangle {
  int64_t rows, columns, offset;
  bool lower;

  static Triangle of(const ArgsView& m, bool lower) {
    Triangle t{m.constant(0), m.constant(1), m.constant(2), lower};
    m.require(t.rows >= 0 && t.columns >= 0, "expected sizes that are not negative, got ", t.rows, " and ", t.columns);
    if (!lower) t.offset = sym::checked_sub(sym::checked_sub(t.columns, t.rows), t.offset);
    return t;
  }
  // The sum of min(j, columns) for j = 1..m; 0 where m is not positive.
  int64_t staircase(int64_t m) const {
    if (m <= 0) return 0;
    int64_t steep = std::min(m, columns);
    return sym::checked_add(sym::checked_mul(steep, sym::checked_add(steep, 1)) / 2, sym::checked_mul(m - steep, columns));
  }
  int64_t size() const { return sym::checked_sub(staircase(sym::checked_add(rows, offset)), staircase(offset)); }
};

Metas indices_meta(MetaCall& m, bool lower) {
  return factory_meta(m, {2, SymInt(Triangle::of(m, lower).size())}, DType::i64, 3);
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

void register_fill(Registry& ops) {
  ops.add(fill, {
      .schema = "fill.Scalar(Tensor self, Scalar value) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = filled_meta,
      .scalar = [](const Scalars& x) { return value_for(x, 1); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
      .promotes = "self",
  });
  ops.add({
      .schema = "fill.Tensor(Tensor self, Tensor value) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = filled_meta,
      .scalar = [](const Scalars& x) { return value_for(x, 1); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }},
              {"value", [](Vjp& v) { return v.grad(); }}},
      .promote = Promote::first,
  });
  ops.add({
      .schema = "zero(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = filled_meta,
      .scalar = [](Expr self) { return loop::constant(*self.arena, 0.0, self.type()); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
  });
  ops.add(masked_fill, {
      .schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = masked_meta,
      .scalar = masked,
      .vjp = {{"self", [](Vjp& v) { return masked_fill(v.grad(), v["mask"], 0); }}},
      .promotes = "self",
  });
  Handle fill_diagonal;
  ops.add(fill_diagonal, {   // in place alone in PyTorch
      .schema = "tenon::fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return one(masked_fill(b["self"], diagonal_mask(b, b["self"].sizes(), b.flag("wrap")), b.arg("fill_value"))); },
  });
  ops.in_place(fill_diagonal, "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)");
  ops.add(masked_fill_tensor, {
      .schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = masked_meta,
      .scalar = masked,
      .vjp = {{"self, mask, value", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs("self") ? Grad(masked_fill(g, v["mask"], 0)) : Grad(), none, v.needs("value") ? Grad(where(v["mask"], g, 0.0)) : Grad()};
      }}},
      .promotes = "self",
  });
  ops.add(tril, {
      .schema = "tril(Tensor self, SymInt diagonal=0) -> Tensor",
      .meta = triangle_meta,
      .lower = [](Lower& l) { lower_triangle(l, true); },
      .vjp = {{"self", [](Vjp& v) { return tril(v.grad(), v.arg("diagonal")); }}},
  });
  ops.add(triu, {
      .schema = "triu(Tensor self, SymInt diagonal=0) -> Tensor",
      .meta = triangle_meta,
      .lower = [](Lower& l) { lower_triangle(l, false); },
      .vjp = {{"self", [](Vjp& v) { return triu(v.grad(), v.arg("diagonal")); }}},
  });
  ops.add({
      .schema = "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
                "Tensor",
      .meta = [](MetaCall& m) { return indices_meta(m, true); },
      .lower = [](Lower& l) { lower_indices(l, true); },
  });
  ops.add({
      .schema = "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> "
                "Tensor",
      .meta = [](MetaCall& m) { return indices_meta(m, false); },
      .lower = [](Lower& l) { lower_indices(l, false); },
  });
  ops.add(one_hot, {
      .schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["self"];
        int64_t classes = b.constant("num_classes");
        b.require(x.dtype() == DType::i64, "expected an i64 tensor of class numbers, got ", x.meta());
        b.supports(classes > 0, "num_classes: expected a positive number, got ", classes, "; finding it from the data is not supported");
        Tensor hit = eq(unsqueeze(x, -1), arange(0, classes, 1));
        return one(to(hit, DType::i64));
      },
  });
}

}  // namespace tenon
