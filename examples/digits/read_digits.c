/* Reads handwritten digits with a compiled network: plain C, no PyTorch, no Python.
     tenon compile digits.pt2 -o digits.so
     cc read_digits.c -o read_digits $(pkg-config --cflags --libs tenon_runtime)
     ./read_digits digits.so test.bin
   test.bin has 65 bytes for each digit: 8 x 8 greys from 0 to 16, then which digit it is. */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/runtime.h>

enum { PIXELS = 64, MOST = 2000, SHOWN = 8 };
static unsigned char digits[MOST][PIXELS + 1];
static float images[MOST * PIXELS];

static void check(tenon_status status) {
  if (status == TENON_OK) return;
  fprintf(stderr, "%s\n", tenon_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  FILE* file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  if (!file) return fprintf(stderr, "usage: read_digits digits.so test.bin\n"), 2;
  int n = (int)fread(digits, sizeof digits[0], MOST, file), right = 0, said[MOST];
  int step = n < SHOWN ? 1 : n / SHOWN; /* a few from all of them */
  fclose(file);
  for (int i = 0; i < n * PIXELS; ++i) images[i] = digits[i / PIXELS][i % PIXELS] / 16.0f;

  tenon_program* program;
  tenon_state* state;
  tenon_session* session;
  check(tenon_program_open(argv[1], NULL, &program));
  check(tenon_state_create(program, &state));
  check(tenon_session_create(program, &session));
  tenon_tensor in = {images, TENON_F32, 4, {n, 1, 8, 8}, {PIXELS, PIXELS, 8, 1}}, scores = {0};
  check(tenon_session_run(session, state, &in, 1, &scores, 1));

  for (int i = 0; i < n; ++i) {
    const float* score = (const float*)scores.data + 10 * i;
    said[i] = 0;
    for (int k = 1; k < 10; ++k)
      if (score[k] > score[said[i]]) said[i] = k;
    right += said[i] == digits[i][PIXELS];
  }
  for (int y = 0; y < 8; ++y, printf("\n"))
    for (int i = 0; i + step <= n; i += step, printf("  "))
      for (int x = 0; x < 8; ++x) printf("%c%c", " .:*#"[digits[i][8 * y + x] / 4], " .:*#"[digits[i][8 * y + x] / 4]);
  for (int i = 0; i + step <= n; i += step) printf("says %d, is %d      ", said[i], digits[i][PIXELS]);
  printf("\n%d of %d held-out digits read right: %.1f %%\n", right, n, 100.0 * right / n);
  tenon_output_release(&scores);
  tenon_session_destroy(session);
  tenon_state_destroy(state);
  tenon_program_close(program);
  return 0;
}
