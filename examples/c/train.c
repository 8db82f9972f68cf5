/* Trains from C: runs a training step as machine code on one batch, again and again, and saves what it has learnt.
     tenon train model.pt2 --data train.npz --step step.so -o trained.pt2
     cc train.c -o train $(pkg-config --cflags --libs tenon_runtime)
     ./train step.so batch.bin state.safetensors
   batch.bin: the inputs and targets of 32 samples one after the other, as the program takes them. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/runtime.h>

enum { SAMPLES = 32, STEPS = 10 };

static void check(tenon_status status) {
  if (status == TENON_OK) return;
  fprintf(stderr, "%s\n", tenon_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: train step.so batch.bin state.safetensors\n"), 2;
  tenon_program* program;
  tenon_state* state;
  tenon_session* session;
  check(tenon_program_open(argv[1], NULL, &program));
  check(tenon_state_create(program, &state));
  check(tenon_session_create(program, &session));

  size_t inputs = tenon_program_input_count(program), outputs = tenon_program_output_count(program);
  tenon_tensor* in = calloc(inputs + 1, sizeof *in);
  tenon_tensor* out = calloc(outputs + 1, sizeof *out);
  FILE* file = fopen(argv[2], "rb");
  for (size_t i = 0; i < inputs; ++i) {
    tenon_value_info info;
    check(tenon_program_input_info(program, i, &info));
    int64_t count = 1;
    in[i].dtype = info.dtype;
    in[i].rank = info.rank;
    for (int d = info.rank; d-- > 0; count *= in[i].sizes[d]) {
      in[i].sizes[d] = info.sizes[d] < 0 ? SAMPLES : info.sizes[d];
      in[i].strides[d] = count;
    }
    size_t bytes = (size_t)count * tenon_dtype_size(info.dtype);
    in[i].data = malloc(bytes);
    if (!file || fread(in[i].data, 1, bytes, file) != bytes) return fprintf(stderr, "%s is too short\n", argv[2]), 1;
  }
  fclose(file);
  for (int step = 0; step < STEPS; ++step) {
    check(tenon_session_run(session, state, in, inputs, out, outputs));
    printf("loss %.6f\n", *(float*)out[0].data); /* and the state has learnt */
    for (size_t i = 0; i < outputs; ++i) tenon_output_release(&out[i]);
  }
  check(tenon_state_save(state, argv[3]));
  for (size_t i = 0; i < inputs; ++i) free(in[i].data);
  free(in);
  free(out);
  tenon_session_destroy(session);
  tenon_state_destroy(state);
  tenon_program_close(program);
  return 0;
}
