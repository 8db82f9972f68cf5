/* A compiled program with its state, a session, and tensors for its inputs and outputs: what run.c and train.c begin
   and end with. */
#ifndef EXAMPLES_LOADED_H
#define EXAMPLES_LOADED_H
#include <stdio.h>
#include <stdlib.h>
#include <tenon/runtime.h>

typedef struct {
  tenon_program* program;
  tenon_state* state;
  tenon_session* session;
  size_t inputs, outputs;
  tenon_tensor *in, *out; /* inputs are zeros; the data of outputs is NULL: a run allocates them */
} loaded;

static void check(tenon_status status) {
  if (status == TENON_OK) return;
  fprintf(stderr, "%s\n", tenon_last_error());
  exit(1);
}

static size_t bytes_of(const tenon_tensor* t) {
  size_t bytes = tenon_dtype_size(t->dtype);
  for (int d = 0; d < t->rank; ++d) bytes *= (size_t)t->sizes[d];
  return bytes;
}

/* Sizes that the program leaves open become `any`. */
static loaded load(const char* path, int64_t any) {
  loaded it;
  check(tenon_program_open(path, NULL, &it.program));
  check(tenon_state_create(it.program, &it.state));
  check(tenon_session_create(it.program, &it.session));
  it.inputs = tenon_program_input_count(it.program);
  it.outputs = tenon_program_output_count(it.program);
  it.in = calloc(it.inputs + 1, sizeof *it.in);
  it.out = calloc(it.outputs + 1, sizeof *it.out);
  for (size_t i = 0; i < it.inputs; ++i) {
    tenon_value_info info;
    check(tenon_program_input_info(it.program, i, &info));
    tenon_tensor* t = &it.in[i];
    t->dtype = info.dtype;
    t->rank = info.rank;
    int64_t step = 1;
    for (int d = info.rank; d-- > 0; step *= t->sizes[d]) {
      t->sizes[d] = info.sizes[d] < 0 ? any : info.sizes[d];
      t->strides[d] = step;
    }
    t->data = calloc(bytes_of(t) + 1, 1);
  }
  return it;
}

static void unload(loaded it) {
  for (size_t i = 0; i < it.inputs; ++i) free(it.in[i].data);
  free(it.in);
  free(it.out);
  tenon_session_destroy(it.session);
  tenon_state_destroy(it.state);
  tenon_program_close(it.program);
}

#endif
