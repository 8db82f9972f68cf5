// Matrices in the last two dimensions, the ones before them a batch. Numbers come from tenon/templates/matrix.h.
#pragma once
#include "tenon/rules/op_def.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/views.h"

namespace tenon {

extern Handle linalg_inv_ex, linalg_solve_triangular, linalg_solve_ex, linalg_lu_solve, lu_unpack, linalg_svdvals;

/// A batch of real matrices, row-major.
struct Matrices {
  std::vector<double> values;
  int64_t batch = 0, rows = 0, columns = 0;
  Matrices() = default;
  Matrices(int64_t batch, int64_t rows, int64_t columns)
      : values(static_cast<size_t>(batch * rows * columns)), batch(batch), rows(rows), columns(columns) {}
  explicit Matrices(const Tensor& x);                    // with the batch it has
  Matrices(const Tensor& x, const Sizes& batch);         // repeated to a batch
  double* operator[](int64_t i) { return values.data() + i * rows * columns; }
  Tensor tensor(const TensorMeta& meta) const { return made(meta, values); }
};

Sizes batch_of(const Sizes& sizes, size_t drop = 2);
Sizes joined(Sizes batch, std::initializer_list<SymInt> rest);
/// Contiguous, or with the last two dimensions the other way round, as PyTorch's library gives matrices.
TensorMeta matrix_meta(const TensorMeta& like, Sizes sizes, bool column_major = true);
/// A matrix (or batch) of f32 or f64.
void require_matrix(const ArgsView& m, size_t at, bool square = false);
/// Sizes that are known to differ.
bool differ(SymInt a, SymInt b);
/// Whether PyTorch's LU of det and slogdet is that of the transpose.
inline bool factors_transpose(const TensorMeta& a) { return is_contiguous(a); }

inline Tensor turned(const Tensor& x) { return transpose(x, -2, -1); }
Tensor column_major_copy(const Tensor& x);
Tensor unit_matrix(const Tensor& like, SymInt rows, SymInt columns);

}  // namespace tenon
