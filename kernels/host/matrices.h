// Batches of matrices as host functions read and write them: the last two dimensions of a tensor, in double precision.
#pragma once
#include "kernels/host/call.h"

namespace tenon::kernels {

/// A batch of matrices, row-major.
struct Matrices {
  double* values = nullptr;
  int64_t batch = 0, rows = 0, columns = 0;
  explicit operator bool() const { return values != nullptr; }
  double* operator[](int64_t i) const { return values + i * rows * columns; }
};

inline tenon_tensor transposed(tenon_tensor t) {
  exchange(t.sizes[t.rank - 1], t.sizes[t.rank - 2]);
  exchange(t.strides[t.rank - 1], t.strides[t.rank - 2]);
  return t;
}
inline int64_t rows_of(const tenon_tensor& t) { return t.sizes[t.rank - 2]; }
inline int64_t columns_of(const tenon_tensor& t) { return t.sizes[t.rank - 1]; }
inline bool is_square(const tenon_tensor& t) { return t.rank >= 2 && rows_of(t) == columns_of(t); }
inline int64_t batch_of(const tenon_tensor& t, int32_t drop = 2) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.rank - drop; ++d) n *= t.sizes[d];
  return n;
}

inline Matrices zero_matrices(Call& call, int64_t batch, int64_t rows, int64_t columns) {
  return {zeroed_work<double>(call, batch * rows * columns), batch, rows, columns};
}
inline Matrices matrices(Call& call, const tenon_tensor& t) {
  return {elements<double>(call, t), batch_of(t), rows_of(t), columns_of(t)};
}

/// What a tensor of `own` trailing dimensions is broadcast to over the batch of a result, in row-major order; null
/// where it does not go.
template <class T>
T* over_batch(Call& call, const tenon_tensor& t, int32_t own, const tenon_tensor& result, int32_t of_result) {
  int32_t batch = result.rank - of_result, rank = batch + own;
  int64_t sizes[TENON_MAX_RANK + 2], n = 1;
  if (rank > TENON_MAX_RANK || t.rank > rank || t.rank < own) return nullptr;
  for (int32_t d = 0; d < batch; ++d) sizes[d] = result.sizes[d];
  for (int32_t d = 0; d < own; ++d) sizes[batch + d] = t.sizes[t.rank - own + d];
  for (int32_t d = 0; d < rank; ++d) n *= sizes[d];
  for (int32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != 1 && t.sizes[d] != sizes[rank - t.rank + d]) return nullptr;
  T* out = work<T>(call, n);
  Walk at(t, rank, sizes, 0);
  for (int64_t i = 0; out && i < n; ++i, at.next()) out[i] = load<T>(t.data, t.dtype, at.offset());
  return out;
}
inline Matrices matrices_over(Call& call, const tenon_tensor& t, const tenon_tensor& result) {
  return {over_batch<double>(call, t, 2, result, 2), batch_of(result), rows_of(t), columns_of(t)};
}

inline int write_matrices(tenon_tensor& to, const Matrices& from) {
  if (count(to) != from.batch * from.rows * from.columns) return TENON_KERNEL_ARITHMETIC;
  write(to, from.values);
  return 0;
}
inline int write_transposed(const tenon_tensor& to, const Matrices& from) {
  tenon_tensor other = transposed(to);
  return write_matrices(other, from);
}

// What a factorization says of each matrix, 0 where all is well; where errors are checked, the first other is refused.
inline int write_info(Call& call, tenon_tensor& to, const int64_t* info, int64_t batch, bool check) {
  for (int64_t i = 0; check && i < batch; ++i)
    if (info[i] != 0) return refuse(call, 1, i, info[i]);
  if (count(to) != batch) return TENON_KERNEL_ARITHMETIC;
  write(to, info);
  return 0;
}

}  // namespace tenon::kernels
