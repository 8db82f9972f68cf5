#pragma once
#include <cstdint>

namespace tenon::templates {

/// c[i] = alpha * a[i] * b[i] + beta * c[i] + bias_scale * bias[i] for each matrix i of the batch. Strides are in
/// elements and free: a transpose swaps two of them, a broadcast operand has zeros. c's elements must be distinct and
/// must not overlap a, b or bias.
template <class T>
struct GemmArgs {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  const T* a = nullptr;  // [batch, m, k]
  std::int64_t a_batch = 0, a_row = 0, a_col = 1;
  const T* b = nullptr;  // [batch, k, n]
  std::int64_t b_batch = 0, b_row = 0, b_col = 1;
  T* c = nullptr;  // [batch, m, n]
  std::int64_t c_batch = 0, c_row = 0, c_col = 1;
  T alpha = 1;
  T beta = 0;               // 0: c is not read
  const T* bias = nullptr;  // [batch, m, n] by its strides; null: none. A row of n values has bias_col = 1, the rest 0.
  std::int64_t bias_batch = 0, bias_row = 0, bias_col = 0;
  T bias_scale = 1;
};

/// float, double, std::int64_t (which wraps around). Sums over k are made in the operand's type, in blocks whose length
/// follows from k alone: the result does not depend on the number of threads.
template <class T>
void gemm(const GemmArgs<T>& args);

extern template void gemm<float>(const GemmArgs<float>&);
extern template void gemm<double>(const GemmArgs<double>&);
template <>
void gemm<std::int64_t>(const GemmArgs<std::int64_t>&);

}  // namespace tenon::templates
