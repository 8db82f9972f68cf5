#include "tenon/ops/combinations.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/index_select.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/masking.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle meshgrid;

namespace {

std::vector<Tensor> grids(const std::vector<Tensor>& given, const std::string& indexing, const ArgsView& call) {
  call.require(indexing == "ij" || indexing == "xy", "indexing: expected 'ij' or 'xy', got ", quoted(indexing));
  call.require(!given.empty(), "expected at least one tensor, got an empty list");
  std::vector<Tensor> axes = given;
  bool swapped = indexing == "xy" && axes.size() >= 2;
  if (swapped) std::swap(axes[0], axes[1]);
  Sizes sizes;
  for (const Tensor& t : axes) {
    call.require(t.rank() <= 1 && t.dtype() == axes[0].dtype(),
                 "expected tensors of one dtype with at most 1 dimension, got ", t.meta());
    sizes.push_back(t.numel());
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < axes.size(); ++i) {
    Sizes own(axes.size(), SymInt(1));
    own[i] = sizes[i];
    out.push_back(expand(view(axes[i], own), sizes));
  }
  if (swapped) std::swap(out[0], out[1]);
  return out;
}

// Positions that ascend are found in the grid of all positions; their number is known beforehand.
Results combined_elements(Build& b) {
  Tensor x = b["self"];
  int64_t r = b.constant("r");
  bool again = b.flag("with_replacement");
  b.require(x.rank() == 1, "expected 1 dimension, got ", x.meta());
  b.require(r >= 0 && r <= 64, "r: expected 0 to 64, the most dimensions there are, got ", r);
  if (r == 0) return full(Sizes{0}, 0, kw("dtype", x.dtype()));
  SymInt n = x.size(0), top = again ? n + SymInt(r - 1) : n, total = 1;
  for (int64_t i = 0; i < r; ++i) total = sym::floor_div(total * (top - SymInt(i)), SymInt(i + 1));  // 0 from top on
  Tensor places = arange(0, n, 1);
  std::vector<Tensor> grids = meshgrid(std::vector<Tensor>(static_cast<size_t>(r), places)).list();
  Tensor ascending = ge(grids[0], 0);
  for (size_t i = 1; i < grids.size(); ++i)
    ascending = logical_and(ascending, again ? le(grids[i - 1], grids[i]) : lt(grids[i - 1], grids[i]));
  return take(x, nonzero_static(ascending, kw("size", total)));
}

}  // namespace

void register_combinations(Registry& ops) {
  ops.add(meshgrid, {
                        .schema = "meshgrid(Tensor[] tensors) -> Tensor[]",
                        .kind = OpKind::composite,
                        .traits = {.may_alias = true},
                        .decompose = [](Build& b) { return many(grids(b.tensors("tensors"), "ij", b)); },
                    });
  ops.add({
      .schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return many(grids(b.tensors("tensors"), b.string("indexing"), b)); },
  });
  ops.add({
      .schema = "cartesian_prod(Tensor[] tensors) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        std::vector<Tensor> tensors = b.tensors("tensors"), columns;
        for (const Tensor& t : tensors) b.require(t.rank() == 1, "expected tensors of 1 dimension, got ", t.meta());
        if (tensors.size() == 1) return one(tensors[0]);
        for (const Tensor& grid : grids(tensors, "ij", b)) columns.push_back(reshape(grid, Sizes{-1}));
        return stack(columns, 1);
      },
  });
  ops.add({
      .schema = "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = combined_elements,
  });
}

}  // namespace tenon
