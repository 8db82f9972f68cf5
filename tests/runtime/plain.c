/* A user's program: opens the sample artifact, runs it, also from many threads, again and again.
     plain FILE [THREADS [CALLS [LOADS]]]
   or damages the code in memory, where the file says what it was:
     plain FILE damaged */
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/runtime.h>

#define BATCH 37

static void need(tenon_status status, const char* what) {
  if (status == TENON_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, tenon_status_name(status), tenon_last_error());
  exit(1);
}
static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

struct run {
  float x[BATCH * 4], y[BATCH * 3], total;
  int64_t ids[BATCH], drawn;
};

static void fill(struct run* run) {
  for (int i = 0; i < BATCH * 4; ++i) run->x[i] = (float)(i * 13 % 29 - 14) / 8;
  for (int i = 0; i < BATCH; ++i) run->ids[i] = i % 5;
}

static void call(tenon_session* session, tenon_state* state, struct run* run) {
  tenon_tensor inputs[2] = {{run->x, TENON_F32, 2, {BATCH, 4}, {4, 1}}, {run->ids, TENON_I64, 1, {BATCH}, {1}}};
  tenon_tensor outputs[5] = {{run->y, TENON_F32, 2, {BATCH, 3}, {3, 1}},
                             {&run->total, TENON_F32, 0, {0}, {0}},
                             {&run->drawn, TENON_I64, 0, {0}, {0}}};
  need(tenon_session_run(session, state, inputs, 2, outputs, 5), "run");
  if (outputs[3].sizes[0] != outputs[4].sizes[0]) fail("positive elements and positions differ in number");
  for (int64_t i = 0; i < outputs[3].sizes[0]; ++i)
    if (((float*)outputs[3].data)[i] != run->y[((int64_t*)outputs[4].data)[i]]) fail("a positive element is wrong");
  tenon_output_release(&outputs[3]);
  tenon_output_release(&outputs[4]);
}

struct caller {
  tenon_program* program;
  tenon_state* state;
  const struct run* expected;
  int calls;
};

static void* call_often(void* argument) {
  const struct caller* caller = argument;
  tenon_session* session;
  struct run* run = calloc(1, sizeof *run);
  fill(run);
  need(tenon_session_create(caller->program, &session), "session");
  for (int i = 0; i < caller->calls; ++i) {
    memset(run->y, 0xff, sizeof run->y);
    call(session, caller->state, run);
    if (memcmp(run->y, caller->expected->y, sizeof run->y) != 0 || run->total != caller->expected->total)
      fail("a thread got other numbers");
  }
  tenon_session_destroy(session);
  free(run);
  return NULL;
}

/* One bit of the code is another: the file is refused before any of it is executed. */
static void refuse_damaged(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0) fail("the artifact cannot be read");
  long size = ftell(file);
  unsigned char* bytes = malloc((size_t)size);
  rewind(file);
  if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) fail("the artifact cannot be read");
  fclose(file);
  const Elf64_Ehdr* header = (const Elf64_Ehdr*)bytes;
  const Elf64_Phdr* segments = (const Elf64_Phdr*)(bytes + header->e_phoff);
  for (int i = 0; i < header->e_phnum; ++i)
    if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X))
      bytes[segments[i].p_offset + segments[i].p_filesz / 2] ^= 4;
  tenon_program* program;
  if (tenon_program_open_memory(bytes, (size_t)size, NULL, &program) != TENON_INVALID_FILE)
    fail("damaged code was accepted");
  if (!strstr(tenon_last_error(), "its code or its tables are damaged; compile the program again"))
    fail(tenon_last_error());
  free(bytes);
}

int main(int argc, char** argv) {
  if (argc < 2) fail("usage: plain FILE [THREADS [CALLS [LOADS]]]");
  int threads = argc > 2 ? atoi(argv[2]) : 2, calls = argc > 3 ? atoi(argv[3]) : 10,
      loads = argc > 4 ? atoi(argv[4]) : 3;
  if (argc > 2 && strcmp(argv[2], "damaged") == 0) {
    refuse_damaged(argv[1]);
    printf("ok\n");
    return 0;
  }
  static struct run first;
  fill(&first);
  for (int i = 0; i < loads; ++i) {
    tenon_program* program;
    tenon_state* state;
    tenon_session* session;
    need(tenon_program_open(argv[1], NULL, &program), "open");
    need(tenon_state_create(program, &state), "state");
    need(tenon_session_create(program, &session), "session");
    tenon_program_close(program); /* state and session keep it */
    call(session, state, &first);
    if (first.drawn != 0) fail("a fresh state has drawn numbers");
    call(session, state, &first);
    if (first.drawn != BATCH * 3) fail("the random state did not advance");
    tenon_state_destroy(state);
    tenon_session_destroy(session);
  }

  struct caller caller = {.expected = &first, .calls = calls};
  tenon_pool* pool;
  tenon_options options = {.struct_size = sizeof options};
  need(tenon_pool_create(4, &pool), "pool");
  options.pool = pool;
  need(tenon_program_open(argv[1], &options, &caller.program), "open");
  need(tenon_state_create(caller.program, &caller.state), "state");
  pthread_t* handles = calloc((size_t)threads, sizeof *handles);
  for (int i = 0; i < threads; ++i) pthread_create(&handles[i], NULL, call_often, &caller);
  for (int i = 0; i < threads; ++i) pthread_join(handles[i], NULL);
  free(handles);
  int64_t runs;
  tenon_tensor entry = {&runs, TENON_I64, 1, {1}, {1}};
  need(tenon_state_get(caller.state, "runs", &entry), "get");
  if (runs != (int64_t)threads * calls) fail("runs were lost");
  tenon_state_destroy(caller.state);
  tenon_program_close(caller.program);
  tenon_pool_destroy(pool);
  printf("ok\n");
  return 0;
}
