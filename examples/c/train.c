/* Trains from C: runs a training step as machine code on one batch, again and again, and saves what it has learnt.
     tenon train model.pt2 --data train.npz --step step.so -o trained.pt2
     cc train.c -o train $(pkg-config --cflags --libs tenon_runtime)
     ./train step.so batch.bin state.safetensors
   batch.bin: the inputs and targets of 32 samples one after the other, as the program takes them. */
#include "loaded.h"

enum { SAMPLES = 32, STEPS = 10 };

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: train step.so batch.bin state.safetensors\n"), 2;
  loaded it = load(argv[1], SAMPLES);
  FILE* file = fopen(argv[2], "rb");
  for (size_t i = 0; i < it.inputs; ++i) {
    size_t bytes = bytes_of(&it.in[i]);
    if (!file || fread(it.in[i].data, 1, bytes, file) != bytes) return fprintf(stderr, "%s is too short\n", argv[2]), 1;
  }
  fclose(file);
  for (int step = 0; step < STEPS; ++step) {
    check(tenon_session_run(it.session, it.state, it.in, it.inputs, it.out, it.outputs));
    printf("loss %.6f\n", *(float*)it.out[0].data); /* and the state has learnt */
    for (size_t i = 0; i < it.outputs; ++i) tenon_output_release(&it.out[i]);
  }
  check(tenon_state_save(it.state, argv[3]));
  unload(it);
  return 0;
}
