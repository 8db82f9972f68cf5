// Products of rows with the matrix of their group, as layers of experts have them. Groups lie one behind the other;
// `offs` holds the end of each.
#include "tenon/ops/blas.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

/// The group of each of `count` places: how many groups end at or before it. Behind the last it is their number.
Tensor group_of_each(const Tensor& offs, SymInt count) {
  Tensor places = arange(0, count, 1, kw("device", offs.meta().device));
  return sum(to(le(unsqueeze(offs, 0), unsqueeze(places, 1)), DType::i64), Sizes{1}, false);
}

/// [S, K] x [G, K, N] -> [S, N], zeros for rows behind the last group.
Tensor rows_by_group(const Tensor& rows, const Tensor& matrices, const Tensor& offs) {
  Tensor group = group_of_each(offs, rows.size(0)), last = clamp_max(group, matrices.size(0) - 1);
  Tensor products = squeeze_dim(bmm(unsqueeze(rows, 1), index_select(matrices, 0, last)), 1);
  return masked_fill(products, unsqueeze(ne(group, last), 1), 0);
}

/// [M, S] x [S, N] -> [G, M, N], each a sum over the part of S that is the group's.
Tensor sums_by_group(const Tensor& rows, const Tensor& columns, const Tensor& offs) {
  Tensor group = group_of_each(offs, rows.size(1));
  Tensor other = ne(unsqueeze(arange(0, offs.size(0), 1, kw("device", offs.meta().device)), 1), unsqueeze(group, 0));
  return matmul(masked_fill(unsqueeze(rows, 0), unsqueeze(other, 1), 0), columns);
}

void require_ends(const ArgsView& b, const Tensor& offs, SymInt groups) {
  b.require(offs && offs.rank() == 1 && is_integral(offs.dtype()),
            "offs: expected the ends of groups, a vector of i32");
  relies_on_equal(b, offs.size(0), groups, "offs: expected as many ends as there are matrices");
}

Results grouped(Build& b) {
  Tensor x = b["self"], y = b["mat2"], offs = b.given("offs") ? b["offs"] : Tensor();
  b.require(!b.given("bias"), "bias is not supported yet");
  const bool matrix = x.rank() == 2, flat = y.rank() == 2;
  b.require((matrix || x.rank() == 3) && (flat || y.rank() == 3), "expected matrices, or stacks of them, got ",
            x.meta(), " and ", y.meta());
  b.require(!offs == (!matrix && !flat),
            "offs: expected ends of groups where one of the two is a matrix, and none for two stacks");
  Tensor out;
  if (!matrix && !flat) {
    out = bmm(x, y);
  } else if (matrix && flat) {
    require_ends(b, offs, offs.size(0));
    out = sums_by_group(x, y, offs);
  } else if (matrix) {
    require_ends(b, offs, y.size(0));
    out = rows_by_group(x, y, offs);
  } else {
    require_ends(b, offs, x.size(0));
    out = transpose(rows_by_group(transpose(y, 0, 1), transpose(x, 1, 2), offs), 0, 1);
  }
  return one(to(out, b.dtype("out_dtype").value_or(x.dtype())));
}

}  // namespace

void register_grouped_products(Registry& ops) {
  ops.add({
      .schema = "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
                "out_dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = grouped,
  });
  // What the models of the package transformers call where the operator above is not at hand.
  ops.add({
      .schema = "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["input"], weight = b["weight"], offs = b["offs"];
        b.require(x.rank() == 2 && weight.rank() == 3, "expected a matrix and a stack of matrices, got ", x.meta(),
                  " and ", weight.meta());
        require_ends(b, offs, weight.size(0));
        return one(rows_by_group(x, weight, offs));
      },
  });
}

}  // namespace tenon
