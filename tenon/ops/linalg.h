// Matrices in the last two dimensions, the ones before them a batch. Numbers come from tenon/templates/matrix.h.
#pragma once
#include "tenon/ops/elements.h"
#include "tenon/ops/views.h"
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle linalg_inv_ex, linalg_pinv, linalg_solve_triangular, linalg_lu_solve, lu_unpack, linalg_eigh, linalg_svd,
    linalg_svdvals;

/// A batch of real matrices, row-major.
struct Matrices {
  std::vector<double> values;
  int64_t batch = 0, rows = 0, columns = 0;
  Matrices() = default;
  Matrices(int64_t batch, int64_t rows, int64_t columns)
      : values(static_cast<size_t>(batch * rows * columns)), batch(batch), rows(rows), columns(columns) {}
  explicit Matrices(const Tensor& x);             // with the batch it has
  Matrices(const Tensor& x, const Sizes& batch);  // broadcast to a batch
  double* operator[](int64_t i) { return values.data() + i * rows * columns; }
  Tensor tensor(const TensorMeta& meta) const { return made(meta, values); }
};

/// L and U in one, and pivots counted from 1; info is 0, or the column without a pivot.
struct LuFactors {
  Matrices lu;
  std::vector<int64_t> pivots, info;
  explicit LuFactors(const Tensor& a);
};

/// U, the singular values and Vᵀ of each matrix.
struct SvdFactors {
  Matrices u, vt;
  std::vector<double> values;
  int64_t k = 0;  // how many values a matrix has
  SvdFactors(const ArgsView& call, Matrices a);
};

/// What a factorization says of each matrix, 0 where all is well. A call that checks errors refuses others: "matrix 1
/// is singular: no pivot in column 2".
CallArg info_of(const ArgsView& call, const TensorMeta& meta, const std::vector<int64_t>& info, bool check,
                const char* trouble);
inline constexpr const char* is_singular = " is singular: no pivot in column ";

/// A bound on what counts as zero: the larger of atol and rtol times the largest value; numbers, tensors, or none for
/// PyTorch's default.
struct Tolerance {
  CallArg atol, rtol;
  Tensor bound(const Tensor& a, const Tensor& largest) const;
};

Sizes batch_of(const Sizes& sizes, size_t drop = 2);
Sizes joined(Sizes batch, std::initializer_list<SymInt> rest);
inline SymInt rows_of(const TensorMeta& a) { return a.sizes[a.rank() - 2]; }
inline SymInt columns_of(const TensorMeta& a) { return a.sizes.back(); }
/// Contiguous, or with the last two dimensions the other way round, as LAPACK gives matrices.
TensorMeta matrix_meta(const TensorMeta& like, Sizes sizes, bool column_major = true);
/// A matrix (or batch) of f32 or f64.
void require_matrix(const ArgsView& m, Slot arg, bool square = false);
/// Sizes that are known to differ.
bool differ(SymInt a, SymInt b);
bool has_no_elements(const Tensor& a);
double epsilon_of(DType dtype);
int64_t wrapped_dim(const ArgsView& call, SymInt dim, size_t rank);

inline Tensor transposed(const Tensor& x) { return transpose(x, -2, -1); }
Tensor column_major_copy(const Tensor& x);
Tensor unit_matrix(const Tensor& like, SymInt rows, SymInt columns);
/// The gradient of A from that of its pseudo-inverse P.
Tensor pinv_gradient(const Tensor& grad, const Tensor& p, const Tensor& a);

}  // namespace tenon
