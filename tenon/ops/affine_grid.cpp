// The places at which an affine map reads an image, as grid_sample takes them.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// Numbers from -1 to 1: the middles of pixels, or their outer corners' where align_corners.
Tensor pixel_places(const Tensor& like, SymInt count, bool align_corners) {
  if (count == SymInt(1)) return zeros(Sizes{1}, like);
  Tensor line = linspace(-1.0, 1.0, count, kw("dtype", like.dtype()), kw("device", like.meta().device));
  if (align_corners || !count.is_int()) return line;
  double n = static_cast<double>(count.as_int());
  return line * ((n - 1) / n);
}

Results affine_grid(Build& b) {
  Tensor theta = b["theta"];
  Sizes sizes = b.ints("size");
  bool flat = sizes.size() == 4;
  b.require(flat || sizes.size() == 5, "expected 4 or 5 sizes, got ", sizes);
  size_t axes = sizes.size() - 2;
  b.require(theta.rank() == 3 && theta.size(1) == SymInt(static_cast<int64_t>(axes)) &&
                theta.size(2) == SymInt(static_cast<int64_t>(axes + 1)) && theta.size(0) == sizes[0],
            "expected theta of sizes [", sizes[0], ", ", axes, ", ", axes + 1, "], got ", theta.meta());
  Sizes space;
  for (size_t d = 2; d < sizes.size(); ++d) space.push_back(sizes[d]);
  for (SymInt s : space) b.require(s.is_int(), "expected constant sizes of the grid, got ", sizes);
  std::vector<Tensor> columns;  // the innermost axis first, then a column of ones
  for (size_t a = 0; a < axes; ++a) {
    size_t d = axes - 1 - a;
    Tensor line = pixel_places(theta, space[d], b.flag("align_corners"));
    Sizes shape(axes, SymInt(1));
    shape[d] = space[d];
    columns.push_back(expand(reshape(line, shape), space));
  }
  columns.push_back(ones(space, kw("dtype", theta.dtype()), kw("device", theta.meta().device)));
  Tensor base = reshape(stack(columns, -1), Sizes{1, count(space), static_cast<int64_t>(axes + 1)});
  Tensor turned = transpose(theta, 1, 2);
  Tensor grid = bmm(expand(base, Sizes{sizes[0], count(space), static_cast<int64_t>(axes + 1)}), turned);
  Sizes out = {sizes[0]};
  for (SymInt s : space) out.push_back(s);
  out.push_back(static_cast<int64_t>(axes));
  return one(reshape(grid, out));
}

}  // namespace

void register_affine_grid(Registry& ops) {
  ops.add({
      .schema = "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
      .kind = OpKind::composite,
      .decompose = affine_grid,
  });
}

}  // namespace tenon
