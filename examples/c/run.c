/* Runs a compiled program on zeros and prints the first numbers of each output.
     tenon compile model.pt2 -o model.so
     cc run.c -o run $(pkg-config --cflags --libs tenon_runtime)
     ./run model.so */
#include "loaded.h"

int main(int argc, char** argv) {
  if (argc != 2) return fprintf(stderr, "usage: run model.so\n"), 2;
  loaded it = load(argv[1], 2);
  check(tenon_session_run(it.session, it.state, it.in, it.inputs, it.out, it.outputs));
  for (size_t i = 0; i < it.outputs; ++i) {
    tenon_tensor* out = &it.out[i];
    size_t count = bytes_of(out) / tenon_dtype_size(out->dtype);
    printf("output %zu: %zu elements of %s", i, count, tenon_dtype_name(out->dtype));
    for (size_t k = 0; k < count && k < 4 && out->dtype == TENON_F32; ++k) printf(" %g", ((float*)out->data)[k]);
    printf("\n");
    tenon_output_release(out);
  }
  unload(it);
  return 0;
}
