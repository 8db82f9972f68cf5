/* Runs a compiled program on zeros and prints the first numbers of each output.
     tenon compile model.pt2 -o model.so
     cc run.c -o run $(pkg-config --cflags --libs tenon_runtime)
     ./run model.so */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/runtime.h>

static void check(tenon_status status) {
  if (status == TENON_OK) return;
  fprintf(stderr, "%s\n", tenon_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: run model.so\n"), 2;
  tenon_program* program;
  tenon_state* state;
  tenon_session* session;
  check(tenon_program_open(argv[1], NULL, &program));
  check(tenon_state_create(program, &state));
  check(tenon_session_create(program, &session));

  size_t inputs = tenon_program_input_count(program), outputs = tenon_program_output_count(program);
  tenon_tensor* in = calloc(inputs + 1, sizeof *in);
  tenon_tensor* out = calloc(outputs + 1, sizeof *out); /* data is NULL: the run allocates */
  for (size_t i = 0; i < inputs; ++i) {
    tenon_value_info info;
    check(tenon_program_input_info(program, i, &info));
    size_t bytes = tenon_dtype_size(info.dtype);
    in[i].dtype = info.dtype;
    in[i].rank = info.rank;
    for (int d = info.rank; d-- > 0;) {
      in[i].sizes[d] = info.sizes[d] < 0 ? 2 : info.sizes[d]; /* -1: any size will do */
      in[i].strides[d] = (int64_t)(bytes / tenon_dtype_size(info.dtype));
      bytes *= (size_t)in[i].sizes[d];
    }
    in[i].data = calloc(bytes, 1);
  }
  check(tenon_session_run(session, state, in, inputs, out, outputs));
  for (size_t i = 0; i < outputs; ++i) {
    int64_t count = 1;
    for (int d = 0; d < out[i].rank; ++d) count *= out[i].sizes[d];
    printf("output %zu: %lld elements of %s", i, (long long)count, tenon_dtype_name(out[i].dtype));
    for (int64_t k = 0; k < count && k < 4 && out[i].dtype == TENON_F32; ++k) printf(" %g", ((float*)out[i].data)[k]);
    printf("\n");
    tenon_output_release(&out[i]);
  }
  for (size_t i = 0; i < inputs; ++i) free(in[i].data);
  free(in);
  free(out);
  tenon_session_destroy(session);
  tenon_state_destroy(state);
  tenon_program_close(program);
  return 0;
}
