// Norms of matrices, distances, cross products, grids of affine maps and membership: composites over other families.
#include <cmath>
#include <functional>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/distance.h"
#include "tenon/ops/linalg.h"
#include "tenon/ops/matmul.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/statistics.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle matrix_norm, named_matrix_norm;

namespace {

int64_t wrapped_dim(const ArgsView& call, SymInt dim, size_t rank) {
  int64_t d = dim.is_int() ? dim.as_int() : 0, n = static_cast<int64_t>(rank);
  call.require(d >= -n && d < n, "expected a dimension from ", -n, " to ", n - 1, ", got ", dim);
  return d < 0 ? d + n : d;
}

Tensor in_dtype(const ArgsView& b, const Tensor& x, size_t at) {
  Tensor t = b.dtype(at) ? to(x, *b.dtype(at)) : x;
  b.require(is_floating(t.dtype()), "expected a floating point tensor, got ", t.meta());
  return t;
}

// A norm that follows from the singular values of the matrices in two dims.
Results by_singular_values(const Tensor& x, int64_t rows, int64_t columns, bool keepdim, const std::function<Tensor(const Tensor&)>& norm) {
  Tensor values = linalg_svdvals(movedim(x, Sizes{rows, columns}, Sizes{-2, -1}));
  Sizes left = values.sizes();
  left.pop_back();
  Tensor out = values.size(-1) == SymInt(0) ? zeros(left, values) : norm(values);
  if (!keepdim) return one(out);
  return unsqueeze(unsqueeze(out, std::min(rows, columns)), std::max(rows, columns));
}

// The largest or smallest sum of magnitudes over rows (ord inf) or columns (ord 1).
Results norm_of_matrix(const ArgsView& b, const Tensor& x, double ord, const Sizes& dims, bool keepdim) {
  b.require(dims.size() == 2, "expected two dimensions, got ", dims);
  b.require(x.rank() >= 2, "expected a matrix, got ", x.meta());
  int64_t rows = wrapped_dim(b, dims[0], x.rank()), columns = wrapped_dim(b, dims[1], x.rank());
  b.require(rows != columns, "expected two different dimensions, got ", dims);
  if (std::abs(ord) == 2)
    return by_singular_values(x, rows, columns, keepdim, [&](const Tensor& s) -> Tensor {
      return ord > 0 ? amax(s, Sizes{-1}) : amin(s, Sizes{-1});
    });
  b.require(std::abs(ord) == 1 || std::isinf(ord), "expected the order 1, -1, inf, -inf, fro, nuc, 2 or -2, got ", ord);
  int64_t first = std::isinf(ord) ? columns : rows, second = std::isinf(ord) ? rows : columns;
  Tensor sums = sum(abs(x), Sizes{first}, true);
  Tensor extreme = ord > 0 ? amax(sums, Sizes{second}, true) : amin(sums, Sizes{second}, true);
  if (keepdim) return one(extreme);
  Tensor less = squeeze_dim(extreme, std::max(rows, columns));
  return squeeze_dim(less, std::min(rows, columns));
}

Results named_norm_of_matrix(const ArgsView& b, const Tensor& x, const std::string& ord, const Sizes& dims, bool keepdim) {
  b.require(ord == "fro" || ord == "nuc", "expected the order fro or nuc, got ", quoted(ord));
  b.require(dims.size() == 2 && x.rank() >= 2, "expected a matrix and two dimensions, got ", x.meta(), " and ", dims);
  if (ord == "nuc") {
    int64_t rows = wrapped_dim(b, dims[0], x.rank()), columns = wrapped_dim(b, dims[1], x.rank());
    b.require(rows != columns, "expected two different dimensions, got ", dims);
    return by_singular_values(x, rows, columns, keepdim, [](const Tensor& s) -> Tensor { return sum(s, Sizes{-1}); });
  }
  return linalg_vector_norm(x, 2, dims, keepdim);
}

Sizes both_dims(const ArgsView& b, const Tensor& x, size_t dims) {
  if (b.given(dims)) return b.ints(dims);
  b.require(x.rank() == 2, "expected a matrix where no dimensions are given, got ", x.meta());
  return {0, 1};
}

// Numbers from -1 to 1: the middles of pixels, or their outer corners' where align_corners.
Tensor pixel_places(const Tensor& like, SymInt count, bool align_corners) {
  if (count == SymInt(1)) return zeros(Sizes{1}, like);
  Tensor line = linspace(-1.0, 1.0, count, kw("dtype", like.dtype()), kw("device", like.meta().device));
  if (align_corners || !count.is_int()) return line;
  double n = static_cast<double>(count.as_int());
  return line * ((n - 1) / n);
}

Results affine_grid(Build& b) {
  Tensor theta = b[0];
  Sizes sizes = b.ints(1);
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
    Tensor line = pixel_places(theta, space[d], b.flag(2));
    Sizes shape(axes, SymInt(1));
    shape[d] = space[d];
    columns.push_back(expand(reshape(line, shape), space));
  }
  columns.push_back(ones(space, kw("dtype", theta.dtype()), kw("device", theta.meta().device)));
  Tensor base = reshape(stack(columns, -1), Sizes{1, count(space), static_cast<int64_t>(axes + 1)});
  Tensor grid =
      bmm(expand(base, Sizes{sizes[0], count(space), static_cast<int64_t>(axes + 1)}), transpose(theta, 1, 2));
  Sizes out = {sizes[0]};
  for (SymInt s : space) out.push_back(s);
  out.push_back(static_cast<int64_t>(axes));
  return one(reshape(grid, out));
}

Results cross_product(const ArgsView& b, const Tensor& x, const Tensor& y, int64_t dim) {
  b.require(x.rank() == y.rank(), "expected tensors of equally many dimensions, got ", x.meta(), " and ", y.meta());
  int64_t d = wrapped_dim(b, dim, x.rank());
  b.require(x.size(static_cast<int>(d)) == SymInt(3) && y.size(static_cast<int>(d)) == SymInt(3), "expected dimension ",
            dim, " of size 3, got ", x.meta(), " and ", y.meta());
  std::vector<Tensor> both = broadcast_tensors(std::vector<Tensor>{x, y}).list();
  auto turned = [&](const Tensor& t, int64_t by) { return Tensor(roll(t, Sizes{by}, Sizes{d})); };
  return one(turned(both[0], -1) * turned(both[1], -2) - turned(both[0], -2) * turned(both[1], -1));
}

Results membership(const Tensor& elements, const Tensor& among, bool invert) {
  Tensor found = any_dim(eq(unsqueeze(elements, -1), reshape(among, Sizes{among.numel()})), -1);
  return invert ? one(logical_not(found)) : one(found);
}

}  // namespace

void register_distance(Registry& ops) {
  ops.add(matrix_norm, {
      .schema = "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return norm_of_matrix(b, in_dtype(b, b["self"], 4), b.number("ord"), b.ints("dim"), b.flag("keepdim")); },
  });
  ops.add({
      .schema = "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return named_norm_of_matrix(b, b["self"], "nuc", {-2, -1}, b.flag("keepdim")); },
  });
  ops.add({
      .schema = "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return named_norm_of_matrix(b, b["self"], "nuc", b.ints("dim"), b.flag("keepdim")); },
  });
  ops.add(named_matrix_norm, {
      .schema = "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, -1], bool keepdim=False, *, "
                "ScalarType? "
                "dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) { return named_norm_of_matrix(b, in_dtype(b, b["self"], 4), b.string("ord"), b.ints("dim"), b.flag("keepdim")); },
  });
  ops.add({
      .schema = "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = in_dtype(b, b["self"], 4);
        size_t named = b.given("dim") ? b.ints("dim").size() : 0;
        if (!b.given("ord")) return linalg_vector_norm(x, 2, b.arg("dim"), b.flag("keepdim"));
        if (named == 1 || (!b.given("dim") && x.rank() == 1)) return linalg_vector_norm(x, b.arg("ord"), b.arg("dim"), b.flag("keepdim"));
        return norm_of_matrix(b, x, b.number("ord"), both_dims(b, x, 2), b.flag("keepdim"));
      },
  });
  ops.add({
      .schema = "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
                "dtype=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = in_dtype(b, b["self"], 4);
            return named_norm_of_matrix(b, x, b.string("ord"), both_dims(b, x, 2), b.flag("keepdim"));
          },
  });
  ops.add({
      .schema = "cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        b.require(b["x1"].rank() >= 2 && b["x2"].rank() >= 2, "expected tensors of at least 2 dimensions, got ", b["x1"].meta(),
                  " and ", b["x2"].meta());
        b.require(is_floating(b["x1"].dtype()) && is_floating(b["x2"].dtype()), "expected floating point tensors, got ",
                  b["x1"].meta(), " and ", b["x2"].meta());
        b.require(b["x1"].size(-1) == b["x2"].size(-1), "the sizes of the points differ: ", b["x1"].meta(), " and ",
                  b["x2"].meta());
        b.require(b.number("p") >= 0, "expected an order p of at least 0, got ", b.number("p"));
        return cdist_forward(b["x1"], b["x2"], b.arg("p"), b.arg("compute_mode"));
      },
  });
  ops.add({
      .schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return cross_product(b, b["self"], b["other"], b.constant("dim")); },
  });
  ops.add({
      .schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            if (b.given("dim")) return cross_product(b, b["self"], b["other"], b.constant("dim"));
            int64_t dim = 0, rank = static_cast<int64_t>(b["self"].rank());
            while (dim < rank && !(b["self"].size(static_cast<int>(dim)) == SymInt(3))) ++dim;
            b.require(dim < rank, "expected a dimension of size 3, got ", b["self"].meta());
            return cross_product(b, b["self"], b["other"], dim);
          },
  });
  ops.add({
      .schema = "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor",
      .kind = OpKind::composite,
      .decompose = affine_grid,
  });
  ops.add({
      .schema = "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return membership(b["elements"], b["test_elements"], b.flag("invert")); },
  });
  ops.add({
      .schema = "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return b.flag("invert") ? ne(b["elements"], b.arg("test_element")) : eq(b["elements"], b.arg("test_element")); },
  });
  ops.add({
      .schema = "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
                "invert=False) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor found = any_dim(eq(reshape(b["test_elements"], Sizes{b["test_elements"].numel()}), b.arg("element")), 0);
        return b.flag("invert") ? logical_not(found) : one(found);
      },
  });
#define TENON_TRUTH(name, of)                                                                   \
  ops.add({                                                                                     \
      .schema = name "(Tensor self) -> Tensor",                                                 \
      .kind = OpKind::composite,                                                                  \
      .decompose = [](Build& b) -> Results {                                                    \
        b.require(b[0].dtype() == DType::boolean, "expected a bool tensor, got ", b[0].meta()); \
        return of(b[0]);                                                                        \
      },                                                                                        \
  })
  TENON_TRUTH("_is_all_true", all);
  TENON_TRUTH("_is_any_true", any);
#undef TENON_TRUTH
}

}  // namespace tenon
