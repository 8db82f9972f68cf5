/* Kernels of the sample artifact, compiled freestanding for each target and copied as bytes. */
#include "runtime/abi.h"

/* to[c][r] = from[r][c] */
int transpose(const struct tenon_args* a, int64_t lo, int64_t hi) {
  const float* from = a->buffers[0];
  float* to = a->buffers[1];
  int64_t rows = a->params[0], columns = a->params[1];
  for (int64_t c = lo; c < hi; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * rows + r] = from[r * columns + c];
  return TENON_KERNEL_OK;
}

/* y[i] = relu(x[i] w + bias + table[ids[i]]) */
int linear(const struct tenon_args* a, int64_t lo, int64_t hi) {
  const float *x = a->buffers[0], *w = a->buffers[1], *bias = a->buffers[2], *table = a->buffers[3];
  const int64_t* ids = a->buffers[4];
  float* y = a->buffers[5];
  int64_t k = a->params[0], n = a->params[1], rows = a->params[2];
  float* sums = a->scratch;
  for (int64_t i = lo; i < hi; ++i) {
    if (ids[i] < 0 || ids[i] >= rows) return TENON_KERNEL_INDEX;
    for (int64_t j = 0; j < n; ++j) {
      sums[j] = bias[j] + table[ids[i] * n + j];
      for (int64_t p = 0; p < k; ++p) sums[j] += x[i * k + p] * w[j * k + p];
    }
    for (int64_t j = 0; j < n; ++j) y[i * n + j] = sums[j] > 0 ? sums[j] : 0;
  }
  return TENON_KERNEL_OK;
}

/* partial[lo / grain] = sum of rows lo to hi - 1 */
int partial_sums(const struct tenon_args* a, int64_t lo, int64_t hi) {
  const float* y = a->buffers[0];
  float* partial = a->buffers[1];
  int64_t n = a->params[0], grain = a->params[1];
  float sum = 0;
  for (int64_t i = lo * n; i < hi * n; ++i) sum += y[i];
  partial[lo / grain] = sum;
  return TENON_KERNEL_OK;
}

/* total = sum of partials, in order */
int merge(const struct tenon_args* a, int64_t lo, int64_t hi) {
  const float* partial = a->buffers[0];
  float sum = 0;
  (void)lo;
  (void)hi;
  for (int64_t i = 0; i < a->params[0]; ++i) sum += partial[i];
  *(float*)a->buffers[1] = sum;
  return TENON_KERNEL_OK;
}

/* running = running * decay + total, decay a real parameter */
int update(const struct tenon_args* a, int64_t lo, int64_t hi) {
  union {
    int64_t bits;
    double value;
  } decay = {a->params[0]};
  float* running = a->buffers[1];
  for (int64_t i = lo; i < hi; ++i) running[i] = (float)(running[i] * decay.value) + *(const float*)a->buffers[0];
  return TENON_KERNEL_OK;
}

/* The positive elements in order, at the front of the result; counts[0] says how many. */
int positive(const struct tenon_host_call* c, int64_t lo, int64_t hi) {
  const float* in = c->inputs[0].data;
  float* out = c->results[0].data;
  int64_t elements = c->inputs[0].sizes[0] * c->inputs[0].sizes[1], count = 0;
  (void)lo;
  (void)hi;
  for (int64_t i = 0; i < elements; ++i)
    if (in[i] > 0) out[count++] = in[i];
  c->counts[0] = count;
  return TENON_KERNEL_OK;
}

/* Positions of the positive elements, in memory that it asks for itself. */
int positions(const struct tenon_host_call* c, int64_t lo, int64_t hi) {
  const float* in = c->inputs[0].data;
  int64_t elements = c->inputs[0].sizes[0] * c->inputs[0].sizes[1], count = 0;
  (void)lo;
  (void)hi;
  for (int64_t i = 0; i < elements; ++i) count += in[i] > 0;
  int status = c->allocate(c, 0, 1, &count);
  if (status) return status;
  int64_t* out = c->results[0].data;
  for (int64_t i = 0, k = 0; i < elements; ++i)
    if (in[i] > 0) out[k++] = i;
  return TENON_KERNEL_OK;
}
