#include "tenon/ops/linalg.h"

#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

Sizes batch_of(const Sizes& sizes, size_t drop) {
  return Sizes(std::span<const SymInt>(sizes.begin(), sizes.size() - drop));
}

Sizes joined(Sizes batch, std::initializer_list<SymInt> rest) {
  for (SymInt s : rest) batch.push_back(s);
  return batch;
}

TensorMeta matrix_meta(const TensorMeta& x, Sizes sizes, bool column_major) {
  TensorMeta out = like(x, std::move(sizes));
  size_t n = out.rank();
  if (!column_major || n < 2) return out;
  Sizes swapped = out.sizes;
  std::swap(swapped[n - 1], swapped[n - 2]);
  out.strides = contiguous_strides(swapped);
  std::swap(out.strides[n - 1], out.strides[n - 2]);
  return out;
}

bool differ(SymInt a, SymInt b) { return a.is_int() && b.is_int() && a != b; }

void require_matrix(const ArgsView& m, Slot arg, bool square, Parts parts) {
  const TensorMeta& a = m.meta(arg);
  bool complex = is_complex(a.dtype);
  m.supports(!complex || parts == Parts::real_or_complex, "of complex matrices this is not supported yet, got ", a);
  const std::string& name = m.op.schema.args[m.index(arg)].name;
  m.require(a.rank() >= 2 && (complex || a.dtype == DType::f32 || a.dtype == DType::f64), name,
            ": expected matrices of f32 or f64, got ", a);
  if (square) m.require(!differ(columns_of(a), rows_of(a)), name, ": expected square matrices, got ", a);
}

Tensor unit_matrix(const Tensor& like, SymInt rows, SymInt columns) {
  return eye(rows, columns, kw("dtype", like.dtype()), kw("device", like.meta().device));
}

Tensor column_major_copy(const Tensor& x) {
  return transposed(clone(transposed(x), kw("memory_format", MemoryFormat::contiguous)));
}

Tensor Tolerance::bound(const Tensor& a, const Tensor& largest) const {
  SymInt m = a.size(-2), n = a.size(-1);
  auto broadcastable = [&](const CallArg& arg) -> Tensor {  // a number, or one for each matrix
    if (auto* t = arg.get<Tensor>()) return to(t->rank() ? unsqueeze(*t, -1) : *t, a.dtype());
    double value = 0;
    if (auto* x = arg.get<double>()) value = *x;
    if (auto* i = arg.get<SymInt>()) value = i->is_int() ? static_cast<double>(i->as_int()) : 0;
    return full(Sizes{}, value, kw("dtype", a.dtype()), kw("device", a.meta().device));
  };
  auto absent = [](const CallArg& arg) { return arg.is_none() || (arg.is<Tensor>() && !*arg.get<Tensor>()); };
  Tensor absolute = broadcastable(atol), relative;
  if (!absent(rtol)) relative = broadcastable(rtol);
  else
    relative = where(gt(absolute, 0.0), 0.0,
                     to(mul(full(Sizes{}, epsilon_of(a.dtype()), kw("dtype", DType::f64)), larger(m, n)), a.dtype()));
  return maximum(absolute, relative * largest);
}

bool has_no_elements(const Tensor& a) {
  for (SymInt s : a.sizes())
    if (s == SymInt(0)) return true;
  return false;
}

double epsilon_of(DType dtype) {
  return dtype == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}

int64_t wrapped_dim(const ArgsView& call, SymInt dim, size_t rank) {
  int64_t d = dim.is_int() ? dim.as_int() : 0, n = static_cast<int64_t>(rank);
  call.require(d >= -n && d < n, "expected a dimension from ", -n, " to ", n - 1, ", got ", dim);
  return d < 0 ? d + n : d;
}

// From dP = -P dA P + P Pᵀ dAᵀ (I - A P) + (I - P A) dAᵀ Pᵀ P
Tensor pinv_gradient(const Tensor& g, const Tensor& p, const Tensor& a) {
  Tensor gt = transposed(g), pt = transposed(p);
  auto times = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
  Tensor right = times(gt, times(p, pt)), left = times(times(pt, p), gt);
  return right - times(a, times(p, right)) + left - times(times(left, p), a) - times(pt, times(g, pt));
}

}  // namespace tenon
