/* Loads and runs programs that `tenon compile` made. C11, libc only.

   Handles. A program is code, tables and weights: immutable, used by any number of threads. A state holds what the
   program may change (parameters, buffers, optimizer state, random state): many runs read it at the same time, or one
   writes. A session holds working memory: one run at a time, so one for each thread. States and sessions keep their
   program alive; handles may be closed in any order.

   Errors. Every function that can fail returns a status; anything but TENON_OK comes with a sentence from
   tenon_last_error(), of the calling thread. Nothing aborts, prints or throws.

   Stability. Functions, struct fields and values are added, never changed or removed, within one major version of the
   library. Structs with a field `struct_size` may grow: set it to sizeof of the struct you compiled against. An
   artifact of the same ABI major version and of no later minor version loads; else the error names both versions.

   Trust. An artifact is code: it is validated before anything of it runs, but validation cannot say what its code does.
   Load only what you would also execute. */
#ifndef TENON_RUNTIME_H
#define TENON_RUNTIME_H
#include <stddef.h>
#include <stdint.h>

#include "abi.h" /* <tenon/abi.h> */

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_API __attribute__((visibility("default")))

typedef enum tenon_status {
  TENON_OK = 0,
  TENON_INVALID_ARGUMENT = 1, /* wrong count, rank, dtype, size, alignment; null; overlapping memory */
  TENON_INVALID_FILE = 2,     /* not an artifact, or a damaged one */
  TENON_UNSUPPORTED = 3, /* an artifact of another version, for another processor, or without a function it needs */
  TENON_OUT_OF_MEMORY = 4,
  TENON_IO = 5,           /* the operating system refused to open, read, write or map */
  TENON_CHECK_FAILED = 6, /* a check of the program failed, an index in a tensor was out of range */
  TENON_DAMAGED = 7,      /* a run failed after it had begun to write this state; load or reset it */
  TENON_BUSY = 8          /* the session is running in another thread */
} tenon_status;

typedef struct tenon_program tenon_program;
typedef struct tenon_state tenon_state;
typedef struct tenon_session tenon_session;
typedef struct tenon_pool tenon_pool;

/* The version of this library, "0.1.0". */
TENON_API const char* tenon_runtime_version(void);
/* Why the last call of this thread failed; good until its next call. Never NULL. */
TENON_API const char* tenon_last_error(void);
TENON_API const char* tenon_status_name(tenon_status status);
/* Bytes of one element; 0 for a number that is no dtype. "f32" and so on; "?" likewise. */
TENON_API size_t tenon_dtype_size(int32_t dtype);
TENON_API const char* tenon_dtype_name(int32_t dtype);

/* ---- Threads --------------------------------------------------------------------------------------------------- */

/* A pool of threads - 1 workers beside the caller; 0: as many as affinity and cgroup allow. Workers start with the
   first run, spin for some 50 microseconds after one, then sleep. A run uses the workers that are idle; results do not
   depend on how many. After fork() the child's pool starts anew. */
TENON_API tenon_status tenon_pool_create(int threads, tenon_pool** pool);
/* After every program that uses it was closed. */
TENON_API void tenon_pool_destroy(tenon_pool* pool);
TENON_API int tenon_pool_threads(const tenon_pool* pool);
/* Calls body(context, task) for every task of 0 to tasks - 1, in any order and in any threads, and returns when all are
   done. */
typedef void (*tenon_parallel_for)(void* host, int tasks, void (*body)(void* context, int task), void* context);

/* ---- Programs -------------------------------------------------------------------------------------------------- */

typedef struct tenon_allocator {
  void* context;
  void* (*allocate)(void* context, size_t size, size_t alignment); /* NULL: none left */
  void (*release)(void* context, void* memory, size_t size);
} tenon_allocator;

typedef struct tenon_named_function {
  const char* name; /* "mylib::my_op" */
  tenon_host_function function;
} tenon_named_function;

typedef struct tenon_options {
  size_t struct_size;               /* sizeof(tenon_options) */
  const tenon_allocator* allocator; /* for states and sessions; copied. NULL: malloc */
  tenon_pool* pool;                 /* NULL: one for the process, kept while programs use it */
  tenon_parallel_for parallel_for;  /* instead of a pool: the host's */
  void* parallel_host;
  int parallel_tasks;                    /* how many tasks of the host's make sense at a time */
  int huge_pages;                        /* 1: weights are copied into huge pages when opened */
  const tenon_named_function* functions; /* operators of the host's that programs may call */
  size_t function_count;
} tenon_options;

/* Options may be NULL. The file may be removed or replaced afterwards, but not overwritten in place. */
TENON_API tenon_status tenon_program_open(const char* path, const tenon_options* options, tenon_program** program);
/* The bytes are borrowed until the program, its states and sessions are closed (weights are used in place; they should
   begin at a multiple of 64). */
TENON_API tenon_status tenon_program_open_memory(const void* bytes, size_t size, const tenon_options* options,
                                                 tenon_program** program);
TENON_API void tenon_program_close(tenon_program* program);

typedef struct tenon_value_info {
  const char* name; /* good as long as the program */
  int32_t dtype, rank;
  int64_t sizes[TENON_MAX_RANK]; /* -1: depends on the inputs or on data */
  int32_t written;               /* an input that the program changes */
  int32_t deferred;              /* an output whose sizes depend on data */
} tenon_value_info;
typedef struct tenon_state_info {
  const char* name;
  int32_t kind; /* enum tenon_state_kind */
  int32_t dtype, rank;
  int64_t sizes[TENON_MAX_RANK];
  int32_t frozen;  /* cannot be read or set: only packed forms of it are in the artifact */
  int32_t written; /* the program changes it */
} tenon_state_info;

TENON_API size_t tenon_program_input_count(const tenon_program* program);
TENON_API size_t tenon_program_output_count(const tenon_program* program);
TENON_API size_t tenon_program_state_count(const tenon_program* program);
TENON_API tenon_status tenon_program_input_info(const tenon_program* program, size_t index, tenon_value_info* info);
TENON_API tenon_status tenon_program_output_info(const tenon_program* program, size_t index, tenon_value_info* info);
TENON_API tenon_status tenon_program_state_info(const tenon_program* program, size_t index, tenon_state_info* info);
/* "x86-64-v4" and so on: which of the artifact's codes this machine runs. */
TENON_API const char* tenon_program_target(const tenon_program* program);
/* The bytes of the artifact's weights, with what else it keeps among them; NULL where it has none. */
TENON_API const void* tenon_program_weights(const tenon_program* program, size_t* size);
/* A text stored under a key, or NULL. */
TENON_API const char* tenon_program_metadata(const tenon_program* program, const char* key);

/* ---- State ----------------------------------------------------------------------------------------------------- */

/* As it was when the program was compiled. */
TENON_API tenon_status tenon_state_create(tenon_program* program, tenon_state** state);
TENON_API void tenon_state_destroy(tenon_state* state);
/* Makes `state` what it was at the beginning, or what `from`, of the same program, is. Heals a damaged state. */
TENON_API tenon_status tenon_state_reset(tenon_state* state);
TENON_API tenon_status tenon_state_assign(tenon_state* state, const tenon_state* from);
/* Copies one entry in or out; the tensor must be contiguous, and of the entry's dtype and sizes. */
TENON_API tenon_status tenon_state_get(const tenon_state* state, const char* name, tenon_tensor* tensor);
TENON_API tenon_status tenon_state_set(tenon_state* state, const char* name, const tenon_tensor* tensor);
/* Seeds the random state: the next run draws what a fresh generator with that seed draws. */
TENON_API tenon_status tenon_state_seed(tenon_state* state, uint64_t seed);
/* Counts changes, by runs and from outside. */
TENON_API uint64_t tenon_state_version(const tenon_state* state);
/* A safetensors file with every entry that is not frozen. Loading wants each of them, with its dtype and sizes. */
TENON_API tenon_status tenon_state_save(const tenon_state* state, const char* path);
TENON_API tenon_status tenon_state_load(tenon_state* state, const char* path);

/* ---- Sessions -------------------------------------------------------------------------------------------------- */

/* Memory for an output that was handed in without: of `bytes`, at least 1, aligned to 64. NULL: none left. */
typedef void* (*tenon_output_allocator)(void* context, size_t output, size_t bytes);

TENON_API tenon_status tenon_session_create(tenon_program* program, tenon_session** session);
TENON_API void tenon_session_destroy(tenon_session* session);
/* Without one, such memory is the C library's: give it back with tenon_output_release. */
TENON_API void tenon_session_set_output_allocator(tenon_session* session, tenon_output_allocator allocate,
                                                  void* context);
TENON_API void tenon_output_release(tenon_tensor* output);

/* Fills dtype, rank, sizes and strides of the outputs that these inputs would give, and sets their data to NULL. Of an
   output whose sizes depend on data, sizes are -1. */
TENON_API tenon_status tenon_session_describe_outputs(tenon_session* session, const tenon_tensor* inputs,
                                                      size_t input_count, tenon_tensor* outputs, size_t output_count);
/* Runs the program once. Inputs and outputs are borrowed. An output with data must have the dtype, sizes and strides
   that the program gives it; one whose data is NULL is allocated and described. Outputs and inputs that are written
   must not overlap anything else. On anything but TENON_OK outputs are unspecified, and the state is as it was or
   damaged. */
TENON_API tenon_status tenon_session_run(tenon_session* session, tenon_state* state, const tenon_tensor* inputs,
                                         size_t input_count, tenon_tensor* outputs, size_t output_count);
/* Called after each step of a run, with its time; NULL ends it. Measuring makes runs slower. */
typedef void (*tenon_step_observer)(void* context, const char* name, enum tenon_step_kind kind, uint64_t nanoseconds,
                                    double flops, double bytes);
TENON_API void tenon_session_observe(tenon_session* session, tenon_step_observer observer, void* context);
/* Bytes of working memory that the session holds. */
TENON_API size_t tenon_session_memory(const tenon_session* session);

#ifdef __cplusplus
}
#endif
#endif
