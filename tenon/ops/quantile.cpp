// Quantiles of rows.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/scatter_gather.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/sorting.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle quantile, nanquantile;

namespace {

Tensor number(Build& b) {
  b.require(b.number("q") >= 0 && b.number("q") <= 1, "q: expected a number from 0 to 1, got ", b.number("q"));
  return full(Sizes{}, b.number("q"), kw("dtype", b["self"].dtype()), kw("device", b["self"].meta().device));
}

// Rows are sorted; each quantile is read at a rank between two elements. NaN sorts last: a row with one has NaN for
// every quantile, or NaNs are left out of the count.
Results quantiles(Build& b, bool ignore_nan) {
  Tensor x = b["self"], q = b.is_tensor("q") ? b["q"] : number(b);
  b.require(x.dtype() == DType::f32 || x.dtype() == DType::f64, "expected a tensor of f32 or f64, got ", x.meta());
  b.require(q.rank() <= 1 && q.dtype() == x.dtype(), "q: expected a number or a row of dtype ", x.dtype(), ", got ",
            q.meta());
  const std::string& how = b.string("interpolation");
  b.require(how == "linear" || how == "lower" || how == "higher" || how == "midpoint" || how == "nearest",
            "interpolation: expected linear, lower, higher, midpoint or nearest, got ", quoted(how));
  bool all = !b.given("dim"), keepdim = b.flag("keepdim");
  size_t rank = x.rank(), dim = all ? 0 : b.dim("dim", rank);
  Tensor rows = all || rank == 0 ? reshape(x, Sizes{x.numel()})
                                 : movedim(x, Sizes{SymInt(static_cast<int64_t>(dim))}, Sizes{SymInt(-1)});
  SymInt n = rows.size(-1);
  b.require(!(n == SymInt(0)), "there is no quantile of no elements, got ", x.meta());

  Tensor points = q.rank() == 0 ? unsqueeze(q, 0) : q, missing = isnan(rows), ranks;
  if (ignore_nan) {
    Tensor present = sum(eq(rows, rows), -1, true);
    ranks = points * (to(present, x.dtype()) - 1.0);
    ranks = where(lt(ranks, 0.0), 0.0, ranks);
  } else {
    ranks = where(any_dim(missing, -1, true), to(full(Sizes{}, n - 1), x.dtype()), mul(points, n - 1));
  }
  if (how == "lower") ranks = floor(ranks);
  if (how == "higher") ranks = ceil(ranks);
  if (how == "nearest") ranks = round(ranks);
  Tensor sorted = sort(rows)[0], below = to(ranks, DType::i64);
  Tensor values = gather(sorted, -1, below);
  if (how == "linear" || how == "midpoint") {
    Tensor above = gather(sorted, -1, to(ceil(ranks), DType::i64));
    values = how == "midpoint" ? values + (above - values) * 0.5 : lerp(values, above, ranks - to(below, x.dtype()));
  }
  values = q.rank() == 0 ? select(values, -1, 0) : movedim(values, Sizes{SymInt(-1)}, Sizes{SymInt(0)});
  if (keepdim) {
    size_t extra = q.rank();
    if (all || rank == 0)
      for (size_t i = 0; i < rank; ++i) values = unsqueeze(values, -1);
    else values = unsqueeze(values, dim + extra);
  }
  return one(values);
}

}  // namespace

void register_quantile(Registry& ops) {
  ops.add(quantile, {
                        .schema = "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                                  "interpolation=\"linear\") -> Tensor",
                        .kind = OpKind::composite,
                        .decompose = [](Build& b) { return quantiles(b, false); },
                    });
  ops.overload(quantile, {"quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                          "interpolation=\"linear\") -> Tensor"});
  ops.add(nanquantile, {
                           .schema = "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
                                     "interpolation=\"linear\") -> Tensor",
                           .kind = OpKind::composite,
                           .decompose = [](Build& b) { return quantiles(b, true); },
                       });
  ops.overload(nanquantile, {"nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
                             "interpolation=\"linear\") -> Tensor"});
}

}  // namespace tenon
