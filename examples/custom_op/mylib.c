/* Operators of the namespace mylib, as model.py defines them for PyTorch:

     cc -shared -fPIC mylib.c -o mylib.so $(pkg-config --cflags tenon_runtime)
     tenon run model.pt2 --ops mylib.so

   A kernel gets borrowed tensors, reads inputs and writes results; what a program hands it was checked against
   `results` before. docs/custom_ops.md explains each field. */
#include <stdio.h>
#include <tenon/operator_table.h>

typedef struct tenon_host_call call;

static int64_t count(const tenon_tensor* t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; ++d) n *= t->sizes[d];
  return n;
}

/* The element number i in row-major order. Tensors need not be contiguous. */
static float* at(const tenon_tensor* t, int64_t i) {
  int64_t offset = 0;
  for (int32_t d = t->rank - 1; d >= 0; --d) {
    offset += i % t->sizes[d] * t->strides[d];
    i /= t->sizes[d];
  }
  return (float*)t->data + offset;
}

/* The sentences of `errors`, counted from 1. */
static const char* const errors[] = {"expected tensors of f32", NULL};
static int refuse(const call* c) {
  c->counts[0] = 1;
  return TENON_KERNEL_REFUSED;
}

/* scaled(Tensor x, float factor) -> Tensor */
static int scaled(const call* c, int64_t lo, int64_t hi) {
  (void)lo, (void)hi;
  const tenon_tensor *x = &c->inputs[0], *out = &c->results[0];
  if (x->dtype != TENON_F32) return refuse(c);
  float factor = (float)tenon_real_param(c->params[0]);
  for (int64_t i = 0, n = count(out); i < n; ++i) *at(out, i) = *at(x, i) * factor;
  return TENON_KERNEL_OK;
}

/* distances(Tensor a, Tensor b) -> Tensor: of each row of a to each row of b, squared */
static int distances(const call* c, int64_t lo, int64_t hi) {
  (void)lo, (void)hi;
  const tenon_tensor *a = &c->inputs[0], *b = &c->inputs[1], *out = &c->results[0];
  int64_t rows = a->sizes[0], columns = b->sizes[0], k = a->sizes[1];
  if (a->dtype != TENON_F32 || b->dtype != TENON_F32) return refuse(c);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        float d = *at(a, i * k + p) - *at(b, j * k + p);
        sum += d * d;
      }
      *at(out, i * columns + j) = sum;
    }
  return TENON_KERNEL_OK;
}

/* distances_backward(Tensor grad, Tensor a, Tensor b) -> (Tensor, Tensor) */
static int distances_backward(const call* c, int64_t lo, int64_t hi) {
  (void)lo, (void)hi;
  const tenon_tensor *grad = &c->inputs[0], *a = &c->inputs[1], *b = &c->inputs[2];
  const tenon_tensor *of_a = &c->results[0], *of_b = &c->results[1];
  int64_t rows = a->sizes[0], columns = b->sizes[0], k = a->sizes[1];
  if (a->dtype != TENON_F32 || b->dtype != TENON_F32 || grad->dtype != TENON_F32) return refuse(c);
  for (int64_t i = 0; i < rows * k; ++i) *at(of_a, i) = 0;
  for (int64_t i = 0; i < columns * k; ++i) *at(of_b, i) = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t p = 0; p < k; ++p) {
        float d = 2 * *at(grad, i * columns + j) * (*at(a, i * k + p) - *at(b, j * k + p));
        *at(of_a, i * k + p) += d;
        *at(of_b, j * k + p) -= d;
      }
  return TENON_KERNEL_OK;
}

/* accumulate(Tensor x, Tensor(a!) total) -> (): what it writes to total is its only result */
static int accumulate(const call* c, int64_t lo, int64_t hi) {
  (void)lo, (void)hi;
  const tenon_tensor *x = &c->inputs[0], *total = &c->inputs[1], *out = &c->results[0];
  if (x->dtype != TENON_F32 || total->dtype != TENON_F32) return refuse(c);
  for (int64_t i = 0, n = count(out); i < n; ++i) *at(out, i) = *at(total, i) + *at(x, i);
  return TENON_KERNEL_OK;
}

/* positive(Tensor x) -> Tensor: how many there are only x tells */
static int positive(const call* c, int64_t lo, int64_t hi) {
  (void)lo, (void)hi;
  const tenon_tensor* x = &c->inputs[0];
  int64_t n = count(x), kept = 0;
  if (x->dtype != TENON_F32) return refuse(c);
  for (int64_t i = 0; i < n; ++i) kept += *at(x, i) > 0;
  int status = c->allocate(c, 0, 1, &kept);
  if (status) return status;
  kept = 0;
  for (int64_t i = 0; i < n; ++i)
    if (*at(x, i) > 0) *at(&c->results[0], kept++) = *at(x, i);
  return TENON_KERNEL_OK;
}

/* note(Tensor x, str what) -> (): an effect. A string is its length, then its bytes, eight to a param. */
static int note(const call* c, int64_t lo, int64_t hi) {
  (void)lo, (void)hi;
  double sum = 0;
  if (c->inputs[0].dtype != TENON_F32) return refuse(c);
  for (int64_t i = 0, n = count(&c->inputs[0]); i < n; ++i) sum += *at(&c->inputs[0], i);
  fprintf(stderr, "%.*s: %g\n", (int)c->params[0], (const char*)(c->params + 1), sum);
  return TENON_KERNEL_OK;
}

static const tenon_operator operators[] = {
    {.schema = "mylib::scaled(Tensor x, float factor) -> Tensor",
     .results = "x",
     .kernel = scaled,
     .gradient = "x = mylib::scaled(grad, factor)",
     .errors = errors},
    {.schema = "mylib::distances(Tensor a, Tensor b) -> Tensor",
     .results = "a[n, k], b[m, k] -> a[n, m]",
     .kernel = distances,
     .gradient = "a, b = mylib::distances_backward(grad, a, b)",
     .errors = errors},
    {.schema = "mylib::distances_backward(Tensor grad, Tensor a, Tensor b) -> (Tensor, Tensor)",
     .results = "grad[n, m], a[n, k], b[m, k] -> a, b",
     .kernel = distances_backward,
     .errors = errors},
    {.schema = "mylib::accumulate(Tensor x, Tensor(a!) total) -> ()", .kernel = accumulate, .errors = errors},
    {.schema = "mylib::positive(Tensor x) -> Tensor", .results = "x[?]", .kernel = positive, .errors = errors},
    {.schema = "mylib::note(Tensor x, str what) -> ()",
     .kernel = note,
     .errors = errors,
     .flags = TENON_OPERATOR_EFFECTS},
};

const tenon_operator_table* tenon_operators(void) {
  static const tenon_operator_table table = {TENON_OPERATOR_TABLE_VERSION, sizeof(tenon_operator),
                                             sizeof operators / sizeof operators[0], operators};
  return &table;
}
