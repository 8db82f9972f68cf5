#include "tenon/ops/where.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle where, fill, masked_fill, masked_fill_tensor;

static Handle fill_diagonal;

namespace {

using loop::Expr;

// What empty_like gives: dense, in the order of self.
Metas filled_meta(MetaCall& m) { return *infer(empty_like.op(), CallArgs{m.arg("self"), {}, {}, {}, {}, {}}); }

void require_zero_dim(const ArgsView& m, const char* value) {
  if (m.is_tensor(value))
    m.require(m.meta(value).rank() == 0, value, ": expected a tensor without dimensions, got ", m.meta(value));
}

Metas fill_meta(MetaCall& m) {
  require_zero_dim(m, "value");
  return filled_meta(m);
}

Metas masked_fill_meta(MetaCall& m) {
  const TensorMeta &self = m.meta("self"), &mask = m.meta("mask");
  m.require(mask.dtype == DType::boolean, "mask: expected a boolean tensor, got ", mask);
  require_zero_dim(m, "value");
  return like(self, broadcast(self.sizes, mask.sizes, m));
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
  if (wrap && rank == 2) return eq(remainder(add(mul(index(0), sizes[1]), index(1)), sizes[1] + 1), 0);
  Tensor mask = eq(index(0), index(1));
  for (size_t dim = 2; dim < rank; ++dim) mask = mul(mask, eq(index(0), index(dim)));
  return mask;
}

}  // namespace

void register_where(Registry& ops) {
  ops.add(where,
          {
              .schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr condition, Expr self, Expr other) { return loop::select(condition, self, other); },
              .vjp = {{"self", [](Vjp& v) { return where(v["condition"], v.grad(), 0.0); }},
                      {"other", [](Vjp& v) { return where(v["condition"], 0.0, v.grad()); }}},
              .promotes = "self, other",
              .complex = [](Build& b) { return by_parts(b, "self, other"); },
          });
  ops.overload(where, {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
                       "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
                       "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"});

  ops.add(fill, {
                    .schema = "fill.Scalar(Tensor self, Scalar value) -> Tensor",
                    .kind = OpKind::pointwise,
                    .meta = fill_meta,
                    .scalar = [](Expr self, Expr value) { return cast(value, self.type()); },
                    .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
                    .promotes = "self",
                    .complex = [](Build& b) { return by_parts(b, "self, value"); },
                });
  ops.add({
      .schema = "fill.Tensor(Tensor self, Tensor value) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = fill_meta,
      .scalar = [](Expr self, Expr value) { return cast(value, self.type()); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}, {"value", [](Vjp& v) { return v.grad(); }}},
      .promote = Promote::first,
      .complex = [](Build& b) { return by_parts(b, "self, value"); },
  });
  ops.add({
      .schema = "zero(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = filled_meta,
      .scalar = [](Expr self) { return loop::constant(*self.arena, 0.0, self.type()); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
      .complex = [](Build& b) { return by_parts(b, "self"); },
  });
  ops.add(fill_diagonal,
          {
              // in place alone in PyTorch
              .schema = "tenon::fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor",
              .kind = OpKind::composite,
              .traits = {.may_alias = true},
              .decompose =
                  [](Build& b) {
                    return one(masked_fill(b["self"], diagonal_mask(b, b["self"].sizes(), b.flag("wrap")),
                                           b.arg("fill_value")));
                  },
          });
  ops.in_place(fill_diagonal, "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)");
  ops.add(
      masked_fill_tensor,
      {
          .schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
          .kind = OpKind::pointwise,
          .meta = masked_fill_meta,
          .scalar = [](Expr self, Expr mask, Expr value) { return loop::select(mask, cast(value, self.type()), self); },
          .vjp = {{"self", [](Vjp& v) { return masked_fill(v.grad(), v["mask"], 0); }},
                  {"value", [](Vjp& v) { return where(v["mask"], v.grad(), 0.0); }}},
          .promotes = "self",
          .complex = [](Build& b) { return by_parts(b, "self, value"); },
      });
  ops.overload(masked_fill_tensor, masked_fill, "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor");
}

}  // namespace tenon
