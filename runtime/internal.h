/* What the files of the runtime share. */
#ifndef TENON_RUNTIME_INTERNAL_H
#define TENON_RUNTIME_INTERNAL_H
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "open_tables.h"
#include "pace.h"
#include "verify.h"

#define TN_COLD __attribute__((cold, noinline))

/* Sets the message of this thread and returns the status. */
TN_COLD tenon_status tn_fail(tenon_status status, const char* format, ...) __attribute__((format(printf, 2, 3)));
TN_COLD tenon_status tn_fail_memory(uint64_t bytes, const char* what);

static inline uint64_t tn_round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/* ---- Expressions ---- */
typedef union tn_value {
  int64_t i;
  double d;
} tn_value;
/* Why an expression has no value; NULL if it has. The expression was verified. */
const char* tn_evaluate(const struct tn_tables* tables, uint32_t expr, const tn_value* symbols, tn_value* value);
/* Elements between the first and one past the last that sizes and strides reach; false on overflow or negatives. */
bool tn_extent(int32_t rank, const int64_t* sizes, const int64_t* strides, uint64_t item, uint64_t* bytes);
bool tn_contiguous_strides(int32_t rank, const int64_t* sizes, int64_t* strides);
bool tn_is_contiguous(const tenon_tensor* tensor);

/* ---- Memory ---- */
void* tn_allocate(const tenon_allocator* allocator, size_t size);
void tn_release(const tenon_allocator* allocator, void* memory, size_t size);
extern const tenon_allocator tn_malloc;

/* ---- Threads ---- */
/* body(context, participant) is called for participant 0 in the caller and for 1 to n in idle workers, each at most
   once; it takes work until there is none. At most `most` participants. */
typedef void (*tn_body)(void* context, int participant);
struct tn_executor { /* a pool, or the host's parallel_for */
  tenon_pool* pool;
  tenon_parallel_for parallel_for;
  void* host;
  int participants; /* at most; scratch memory is provided for so many */
};
void tn_parallel(const struct tn_executor* executor, int most, tn_body body, void* context);
tenon_pool* tn_default_pool(void); /* NULL: no memory */
void tn_default_pool_release(void);
bool tn_pool_exists(const tenon_pool* pool); /* made and not yet destroyed */
uint32_t tn_float_control_default(void);     /* sets the default and returns what was set */
void tn_float_control_restore(uint32_t control);

/* ---- Programs ---- */
enum tn_expr_class { TN_CONSTANT, TN_ENTRY, TN_DYNAMIC }; /* depends on nothing; on entry binds; on later ones */

struct tn_mapping {
  void* memory;
  size_t size;
};
struct tenon_program {
  atomic_size_t references;
  struct tn_tables tables;
  void* tables_memory; /* owned, or NULL */
  struct tn_mapping image, weights_mapping;
  bool weights_in_file; /* weights_mapping is one of the artifact's own file: pages can be read again */
  void* weights_memory; /* the copy in huge pages, or the heap; owned */
  size_t weights_memory_size;
  const unsigned char* weights; /* NULL: none */
  void** functions;             /* by index: tenon_kernel or tenon_host_function */
  int target;
  tenon_allocator allocator;
  struct tn_executor executor;
  bool default_pool;
  unsigned char* expr_class;       /* by expression */
  uint32_t* state_of;              /* by buffer: entry of the state, or TENON_NONE */
  unsigned char* state_written;    /* by entry of the state */
  unsigned char* step_writes;      /* by step: state or derived is written */
  bool writes_state;               /* one of main's does */
  bool on_state_reads_written;     /* derived buffers depend on state that main writes */
  uint32_t max_call_tensors;       /* inputs and results of one call */
  bool has_dynamic;                /* one of its buffers is */
  struct tenon_list* plan_symbols; /* by segment: what its plan depends on; of plan_symbol_ids */
  uint32_t* plan_symbol_ids;
  void* debug; /* what debuggers were told */
};
/* Weights that were copied and are unlikely to be read again need not stay in memory. */
void tn_program_forget_weights(const tenon_program* program, const unsigned char* from, uint64_t size);
void tn_program_retain(tenon_program* program);
/* Fills what follows from tables, functions and options. On failure the caller closes the program. */
tenon_status tn_program_prepare(tenon_program* program, const tenon_options* options);
tenon_program* tn_program_new(void);
static inline const char* tn_string(const struct tn_tables* tables, uint32_t string) {
  return tables->strings + string;
}
int tn_processor_target(void); /* the highest this processor runs */

void* tn_debug_register(const struct tn_source* source, const struct tn_image* image, const void* base);
void tn_debug_unregister(void* entry);

/* ---- State ---- */
struct tenon_state;
/* Takes the lock for a run and brings derived buffers up to date in `session`. */
tenon_status tn_state_begin(tenon_state* state, tenon_session* session, bool writes);
void tn_state_end(tenon_state* state, bool writes, bool wrote, bool failed);
const tenon_program* tn_state_program(const tenon_state* state);
void* const* tn_state_pointers(const tenon_state* state); /* by buffer */

/* For saving and loading. */
void tn_state_lock(const tenon_state* state, bool writes);
void tn_state_unlock(const tenon_state* state);
bool tn_state_damaged(const tenon_state* state);
tenon_status tn_state_refuse_damaged(void);
tenon_status tn_state_writable(tenon_state* state, uint32_t buffer); /* a copy of its own, if it has none */
void tn_state_loaded(tenon_state* state);
tenon_status tn_state_load_source(tenon_state* state, const struct tn_source* source);

/* ---- Sessions ---- */
struct tn_plan;
struct prepared;
struct tn_cached {
  tn_value value;
  uint64_t generation;
};
struct tn_block {
  void* memory;
  size_t size;
};
struct tn_range { /* memory of the caller's */
  uintptr_t start, end;
  bool written;
};
struct tenon_session {
  const struct tenon_step* step; /* in progress, for messages */
  tenon_program* program;
  atomic_flag running;
  tn_value* symbols;
  tn_value* last_entry; /* entry symbols of the last run */
  bool has_last_entry;
  uint64_t generation;             /* of the entry symbols' values */
  struct tn_cached* cache;         /* by expression */
  void** pointers;                 /* by buffer of the caller's or the arena; views are not in it */
  uint64_t* extents;               /* by buffer of the caller's, or dynamic: bytes there are */
  tenon_tensor* dynamic;           /* by buffer: what a call allocated; NULL if the program has no dynamic ones */
  struct tn_block* blocks;         /* by segment */
  struct tn_block* dynamic_blocks; /* by buffer */
  struct tn_block* work;           /* of host functions, in the order they asked */
  size_t work_count;
  struct tn_plan* plans;   /* by segment */
  struct tn_block scratch; /* for each participant scratch_stride bytes */
  size_t scratch_stride;
  struct prepared** prepared; /* by kernel: its arguments; NULL: it was not run yet */
  int64_t* params;            /* room for the arguments of a call */
  size_t params_room;
  int64_t counts[TENON_MAX_COUNTS];
  tenon_tensor* call_tensors; /* room for the arguments of a call */
  tenon_tensor* outputs;      /* of the run; the caller's */
  struct tn_range* ranges;    /* room for all inputs and outputs */
  unsigned char* made;        /* by output: allocated in this run */
  tenon_output_allocator output_allocator;
  void* output_context;
  tenon_step_observer observer;
  void* observer_context;
  bool wrote; /* this run has begun to write state */
  struct tn_pace pace;
  void* const* state_pointers;
};
tenon_status tn_value_of(tenon_session* session, uint32_t expr, tn_value* value, const char* what);
tenon_status tn_run_steps(tenon_session* session, struct tenon_list steps);
int64_t tn_nanoseconds(void); /* of a clock that only goes forward */
tenon_status tn_run_kernel(tenon_session* session, const struct tenon_kernel_step* step,
                           const struct tenon_kernel_step* epilogue); /* NULL: none */
void tn_prepared_release(tenon_session* session);
tenon_status tn_run_call(tenon_session* session, const struct tenon_call_step* step);
/* Where element number `index` (an expression) of a buffer lies, in memory order. */
tenon_status tn_element(tenon_session* session, uint32_t buffer, uint32_t index, unsigned char** at);
tn_value tn_load_number(const unsigned char* at, uint8_t dtype);
void tn_store_number(unsigned char* at, uint8_t dtype, tn_value value, uint32_t type);
/* `inputs` at entry, when nothing else is there yet; NULL later. */
tenon_status tn_bind(tenon_session* session, const struct tenon_bind* bind, const tenon_tensor* inputs);
/* Sizes and strides as the tables say. */
tenon_status tn_describe(tenon_session* session, uint32_t buffer, tenon_tensor* tensor);
tenon_status tn_plan_segment(tenon_session* session, uint32_t segment);
bool tn_plans_create(tenon_session* session);
void tn_plans_destroy(tenon_session* session);
tenon_status tn_tensor_of(tenon_session* session, uint32_t buffer, tenon_tensor* tensor);
tenon_status tn_pointer_of(tenon_session* session, uint32_t buffer, void** pointer);
/* Memory and description of an output whose sizes are known now. */
tenon_status tn_make_output(tenon_session* session, uint32_t output, const tenon_tensor* described);
/* Grows a block, losing what it held. */
tenon_status tn_block_reserve(tenon_session* session, struct tn_block* block, size_t size, const char* what);

#endif
