// Matrices in the last two dimensions, the ones before them a batch. Numbers come from kernels/host/linalg.cpp.
#pragma once
#include "tenon/ops/views.h"
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle linalg_inv_ex, linalg_pinv, linalg_solve_triangular, linalg_lu_factor_ex, linalg_lu_solve, lu_unpack,
    linalg_eigh, linalg_svd, linalg_svdvals;

/// What host functions refuse of a matrix.
inline constexpr const char* is_singular = "matrix {} is singular: no pivot in column {}";
inline constexpr const char* without_values =
    "matrix {} has no singular values that could be found: does it hold NaN or infinite elements?";

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
/// A matrix (or batch) of f32 or f64; complex ones are unsupported where a rule takes real ones alone.
enum class Parts { real, real_or_complex };
void require_matrix(const ArgsView& m, Slot arg, bool square = false, Parts parts = Parts::real);
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
