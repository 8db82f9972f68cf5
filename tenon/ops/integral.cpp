// Integrals by the trapezoid rule.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/create.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/scan.h"
#include "tenon/ops/views.h"

namespace tenon {
namespace {

Tensor later(const Tensor& y, int64_t dim) { return slice(y, dim, 1); }
Tensor earlier(const Tensor& y, int64_t dim) { return slice(y, dim, 0, -1); }

// The points of y as it has dims: a row of points lies along dim, fewer dims get ones in front.
Tensor widths(const ArgsView& b, const Tensor& x, const Tensor& y, int64_t dim) {
  Tensor wide = x;
  if (x.rank() == 1 || x.rank() < y.rank()) {
    Sizes sizes(y.rank(), SymInt(1));
    if (x.rank() == 1) {
      SymInt n = y.size(dim);
      b.require(!n.is_int() || !x.size(0).is_int() || n == x.size(0), "expected one point for each of the ", n,
                " values, got ", x.meta());
      sizes[normal_dim(dim, y.rank())] = x.size(0);
    } else {
      for (size_t i = 0; i < x.rank(); ++i) sizes[y.rank() - x.rank() + i] = x.sizes()[i];
    }
    wide = view(x, sizes);
  }
  return later(wide, dim) - earlier(wide, dim);
}

void require_numbers(const ArgsView& b) {
  b.require(b[0].dtype() != DType::boolean && b[0].rank() > 0, "expected a tensor of numbers with dimensions, got ",
            b[0].meta());
}

Results nothing_along(const Tensor& y, int64_t dim) {
  Sizes sizes = y.sizes();
  sizes.erase(normal_dim(dim, y.rank()));
  return one(zeros(sizes, y));
}

Results trapezoid(Build& b) {
  require_numbers(b);
  int64_t dim = b.constant(2);
  if (b[0].size(dim) == SymInt(0)) return nothing_along(b[0], dim);
  Tensor heights = earlier(b[0], dim) + later(b[0], dim);
  return one(Tensor(sum(widths(b, b[1], b[0], dim) * heights, dim)) / 2.0);
}

Results even_trapezoid(Build& b) {
  require_numbers(b);
  int64_t dim = b.constant(2);
  if (b[0].size(dim) == SymInt(0)) return nothing_along(b[0], dim);
  return one(Tensor(sum(earlier(b[0], dim) + later(b[0], dim), dim)) * (b.number(1) / 2));
}

}  // namespace

void register_integral(Registry& ops) {
  ops.add({
      .schema = "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = trapezoid,
  });
  ops.add({
      .schema = "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = even_trapezoid,
  });
  ops.add({
      .schema = "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = trapezoid,
  });
  ops.add({
      .schema = "trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = even_trapezoid,
  });
  ops.add({
      .schema = "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        require_numbers(b);
        int64_t dim = b.constant("dim");
        Tensor heights = earlier(b["y"], dim) + later(b["y"], dim);
        return cumsum(widths(b, b["x"], b["y"], dim) * heights / 2.0, dim);
      },
  });
  ops.add({
      .schema = "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        require_numbers(b);
        int64_t dim = b.constant("dim");
        return cumsum((earlier(b["y"], dim) + later(b["y"], dim)) * (b.number("dx") / 2), dim);
      },
  });
}

}  // namespace tenon
