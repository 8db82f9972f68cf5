/* What a compiled program looks like in memory and on disk: the C tensor, the signatures of kernels and host functions,
   and the flat tables that say what to run. Read by the runtime, written by tenon/package, filled by the compiler and
   by the interpreter. docs/artifact.md explains it in prose.

   Everything is little endian and fixed in size. Nothing holds an address: functions are distances from the start of
   the tables, strings and lists are positions in other tables, so that a file needs no relocation.

   Stability: a reader takes every minor version of its own major version up to its own; fields and values are only
   added. A new major version is another format. */
#ifndef TENON_RUNTIME_ABI_H
#define TENON_RUNTIME_ABI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_ABI_MAJOR 1u
#define TENON_ABI_MINOR 1u
#define TENON_MAX_RANK 16         /* dimensions of a tensor */
#define TENON_MAX_COUNTS 8        /* numbers that one call of a host function can return */
#define TENON_MAX_DEPTH 32        /* stack of an expression; nesting of control steps */
#define TENON_ALIGNMENT 64        /* of buffers in the arena, state and weights, and of scratch memory */
#define TENON_NONE 0xffffffffu    /* "none" wherever an index stands */
#define TENON_WRITTEN 0x80000000u /* set on a buffer's index in a list of arguments: the callee writes it */
#define TENON_NO_WEIGHTS UINT64_MAX
#define TENON_MAGIC "TenonTab" /* eight characters, no NUL */
#define TENON_SECTION_TABLES ".tenon.tables"
#define TENON_SECTION_WEIGHTS ".tenon.weights"     /* outside every segment; file offset aligned to 4096 */
#define TENON_SECTION_CHECKSUMS ".tenon.checksums" /* outside every segment; of the weights, docs/artifact.md */
#define TENON_SYMBOL_TABLES "tenon_tables"

/* ---- Values ---------------------------------------------------------------------------------------------------- */

enum tenon_dtype {
  TENON_BOOL = 0,
  TENON_U8 = 1,
  TENON_I8 = 2,
  TENON_I16 = 3,
  TENON_I32 = 4,
  TENON_I64 = 5,
  TENON_U16 = 6,
  TENON_U32 = 7,
  TENON_U64 = 8,
  TENON_F16 = 9,
  TENON_BF16 = 10,
  TENON_F32 = 11,
  TENON_F64 = 12,
  TENON_C32 = 13,
  TENON_C64 = 14,
  TENON_C128 = 15,
  TENON_F8_E4M3FN = 16,
  TENON_F8_E5M2 = 17,
  TENON_F8_E4M3FNUZ = 18,
  TENON_F8_E5M2FNUZ = 19,
  TENON_F8_E8M0FNU = 20,
  TENON_DTYPE_COUNT = 21
};

/* A tensor in somebody else's memory. Strides are counted in elements. */
typedef struct tenon_tensor {
  void* data;
  int32_t dtype; /* enum tenon_dtype */
  int32_t rank;
  int64_t sizes[TENON_MAX_RANK];
  int64_t strides[TENON_MAX_RANK];
} tenon_tensor;

/* ---- Code ------------------------------------------------------------------------------------------------------ */

struct tenon_args {
  void* const* buffers;                  /* first element of each argument, in the order of the instance */
  const int64_t* params;                 /* a real parameter is the bits of a double */
  void* scratch;                         /* of this thread, aligned to TENON_ALIGNMENT; contents undefined */
  const struct tenon_epilogue* epilogue; /* what TENON_STEP_FUSED has behind the kernel; NULL: nothing */
};
/* A kernel that is called by another one, block by block, on results that this one has just written, while they are in
   the first caches: on rows lo to hi - 1. Which of their columns it is handed in its scratch memory, two numbers: the
   first one, and the one behind the last. */
struct tenon_epilogue {
  int (*kernel)(const struct tenon_args* args, int64_t lo, int64_t hi); /* a tenon_kernel */
  void* const* buffers;
  const int64_t* params;
};

/* Bits; a function returns the union of those that apply. */
enum tenon_kernel_status {
  TENON_KERNEL_OK = 0,
  TENON_KERNEL_INDEX = 1,      /* an index out of a tensor was out of range; nothing was accessed there */
  TENON_KERNEL_MEMORY = 2,     /* the allocation callback gave nothing */
  TENON_KERNEL_ARITHMETIC = 4, /* integer division by zero, sizes that do not fit, ... */
  TENON_KERNEL_REFUSED =
      8 /* host functions: counts[0] is which of the call's `errors`, from 1 on; the others fill it in */
};

/* Runs iterations lo to hi - 1. No allocation, no barrier, no global state; other ranges run at the same time in other
   threads. Returns bits of enum tenon_kernel_status. */
typedef int (*tenon_kernel)(const struct tenon_args* args, int64_t lo, int64_t hi);

/* One call of a host function: what no stage can do (sorting, factorisations, sizes that depend on data), or an
   operator of the user's. Tensors are borrowed for the call. */
struct tenon_host_call {
  const tenon_tensor* inputs; /* one that is absent has no data and dtype -1 */
  tenon_tensor* results;      /* data is NULL where the buffer is TENON_BUFFER_DYNAMIC: ask `allocate` */
  const int64_t* params;
  int64_t* counts; /* TENON_MAX_COUNTS numbers for binds of TENON_SOURCE_COUNT */
  void* scratch;
  uint32_t input_count, result_count, param_count, reserved;
  void* context;
  /* Memory for a dynamic result, once its sizes are known: sets data, rank, sizes and strides of results[result]; 0, or
     TENON_KERNEL_MEMORY. Of a result that has memory already, sizes are only compared. Only from the thread and during
     the call that was handed this. */
  int (*allocate)(const struct tenon_host_call* call, uint32_t result, int32_t rank, const int64_t* sizes);
  /* Memory until the call returns, aligned to TENON_ALIGNMENT, contents undefined; NULL if there is none. Not in a call
     that is split into chunks: those have scratch. */
  void* (*work)(const struct tenon_host_call* call, uint64_t bytes);
};
typedef int (*tenon_host_function)(const struct tenon_host_call* call, int64_t lo, int64_t hi);

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

/* A table: `offset` bytes after the start of the tables lie `count` elements. */
struct tenon_table {
  uint64_t offset, count;
};
/* Consecutive elements of a table named where the list stands. */
struct tenon_list {
  uint32_t first, count;
};

/* Sizes, offsets, parameters and conditions are expressions: a few words for a stack of 64-bit values. A word is an
   opcode in its low 8 bits and a signed operand in the other 56. Integers are checked for overflow, reals are doubles,
   truth is the integer 1 or 0. No jumps: an expression's depth and types are known before it is evaluated. */
enum tenon_opcode {
  TENON_OP_CONST = 0,      /* push operand */
  TENON_OP_CONST_WIDE = 1, /* push the next word, an integer */
  TENON_OP_CONST_REAL = 2, /* push the next word, the bits of a double */
  TENON_OP_SYMBOL = 3,     /* push the value of symbol `operand` */
  TENON_OP_ADD = 4,        /* integers: a b -> a + b, ... */
  TENON_OP_SUB = 5,
  TENON_OP_MUL = 6,
  TENON_OP_FLOOR_DIV = 7, /* rounds down; by zero is an error */
  TENON_OP_MOD = 8,       /* sign of the divisor, as in Python */
  TENON_OP_NEG = 9,
  TENON_OP_MIN = 10,
  TENON_OP_MAX = 11,
  TENON_OP_POW = 12, /* exponent at least 0 */
  TENON_OP_AND = 13, /* bits */
  TENON_OP_OR = 14,
  TENON_OP_SHL = 15, /* by 0 to 62 */
  TENON_OP_SHR = 16, /* arithmetic, by 0 to 63 */
  TENON_OP_EQ = 17,
  TENON_OP_NE = 18,
  TENON_OP_LT = 19,
  TENON_OP_LE = 20,
  TENON_OP_NOT = 21,    /* 0 -> 1, else 0 */
  TENON_OP_SELECT = 22, /* condition a b -> a if condition is not 0, else b; a and b of one type */
  TENON_OP_CEIL_DIV = 23,
  TENON_OP_TO_REAL = 32,
  TENON_OP_REAL_ADD = 33, /* reals */
  TENON_OP_REAL_SUB = 34,
  TENON_OP_REAL_MUL = 35,
  TENON_OP_REAL_DIV = 36,
  TENON_OP_REAL_NEG = 37,
  TENON_OP_REAL_MIN = 38, /* the second operand if either is NaN */
  TENON_OP_REAL_MAX = 39,
  TENON_OP_REAL_SQRT = 40,
  TENON_OP_REAL_EQ = 41, /* reals -> truth */
  TENON_OP_REAL_LT = 42,
  TENON_OP_REAL_LE = 43,
  TENON_OP_TRUNC = 44, /* real -> integer; out of range or NaN is an error */
  TENON_OP_FLOOR = 45,
  TENON_OP_CEIL = 46,
  TENON_OP_ROUND = 47 /* halves to even */
};
#define TENON_WORD(opcode, operand) ((int64_t)((uint64_t)(int64_t)(operand) << 8 | (uint64_t)(opcode)))

enum tenon_type { TENON_INTEGER = 0, TENON_REAL = 1 };

struct tenon_expr {
  struct tenon_list words; /* of `words` */
  uint32_t type;           /* enum tenon_type of the value it leaves */
  uint32_t reserved;
};

/* A number known only at run time. A value outside [lo, hi] (integers) is refused when it is bound. */
struct tenon_symbol {
  uint32_t name;
  uint32_t type; /* enum tenon_type; truth is an integer of [0, 1] */
  int64_t lo, hi;
};

enum tenon_role {
  TENON_ROLE_INPUT = 0,    /* the caller's, slot: which input */
  TENON_ROLE_OUTPUT = 1,   /* the caller's, slot: which output */
  TENON_ROLE_STATE = 2,    /* of the state handle; begins as its weights, or zero */
  TENON_ROLE_DERIVED = 3,  /* of the state handle, written by the on_state steps; begins as its weights, if any */
  TENON_ROLE_CONSTANT = 4, /* in the weights, never written */
  TENON_ROLE_ARENA = 5     /* of the session */
};
enum {
  TENON_BUFFER_DYNAMIC = 1, /* arena, output: memory and sizes come from the call that fills it, through `allocate` */
  TENON_BUFFER_DEFERRED = 2 /* output: its sizes are known only at its TENON_STEP_MAKE */
};

struct tenon_buffer {
  uint32_t name;
  uint8_t dtype, role, rank, flags;
  uint32_t slot;    /* input, output: which; else TENON_NONE */
  uint32_t root;    /* a view: the buffer, listed before this one and no view itself, in whose memory it lies */
  uint32_t sizes;   /* first of `rank` consecutive expressions */
  uint32_t strides; /* likewise, in elements; TENON_NONE: contiguous */
  uint32_t bytes;   /* expression: memory it takes (a data-dependent one: at most). Not for inputs and outputs */
  uint32_t offset;  /* expression, in bytes. View: from its root. Arena: from the start of the segment's block, if the
                       compiler placed it; TENON_NONE: the runtime does */
  uint64_t weights; /* bytes from the start of the weights, or TENON_NO_WEIGHTS */
  uint32_t first, last; /* arena: the steps, numbered in the order of execution, that first and last touch it */
};

struct tenon_input {
  uint32_t name, buffer;
  uint32_t written; /* 1: the program writes the caller's memory */
  uint32_t reserved;
};
struct tenon_output {
  uint32_t name, buffer;
  uint32_t donor; /* the input whose memory the caller may hand in for this output, or TENON_NONE */
  uint32_t reserved;
};

enum tenon_state_kind {
  TENON_STATE_PARAMETER = 0,
  TENON_STATE_BUFFER = 1,
  TENON_STATE_CONSTANT = 2,
  TENON_STATE_OPTIMIZER = 3,
  TENON_STATE_RANDOM = 4 /* i64[2]: seed and offset of Philox */
};
struct tenon_state_entry {
  uint32_t name;   /* fully qualified, as in the state_dict */
  uint32_t buffer; /* of role state; TENON_NONE: frozen, only its derived forms are here */
  uint32_t kind;   /* enum tenon_state_kind */
  uint32_t reserved;
};

enum tenon_target {
  TENON_TARGET_PORTABLE = 0,
  TENON_TARGET_X86_64_V3 = 1,
  TENON_TARGET_X86_64_V4 = 2,
  TENON_TARGET_COUNT = 3
};
struct tenon_function {
  uint32_t name;
  uint32_t external;                 /* 1: the host hands it in by name when the program is opened */
  int64_t entry[TENON_TARGET_COUNT]; /* distance from the start of the tables; 0: no code for that target */
};

/* Arena buffers whose sizes become known together. Planned once for each combination of sizes. */
struct tenon_segment {
  struct tenon_list buffers; /* of `refs`: buffers of role arena, views and dynamic ones excluded */
};

enum tenon_step_kind {
  TENON_STEP_KERNEL = 0, /* index: of `kernels` */
  TENON_STEP_CALL = 1,
  TENON_STEP_BIND = 2,
  TENON_STEP_CHECK = 3,
  TENON_STEP_CONTROL = 4,
  TENON_STEP_PLAN = 5,  /* index: of `segments`: gives its buffers their memory. Before their first use */
  TENON_STEP_COPY = 6,  /* index: of `copies` */
  TENON_STEP_STORE = 7, /* index: of `stores` */
  TENON_STEP_MAKE = 8,  /* index: an output; asks the caller for the memory of a deferred one */
  TENON_STEP_FUSED = 9  /* index: of `kernels`, with the one behind it as its epilogue: as many instances, whose extent,
                           grain and scratch are not looked at. Since minor version 1 */
};
struct tenon_step {
  uint32_t kind, index;
  uint32_t name;         /* what it computes, for people */
  uint32_t flops, bytes; /* expressions: work and memory traffic, for measuring; TENON_NONE */
  uint32_t reserved;
};

/* One set of arguments of a kernel. Iterations 0 to extent - 1 are run in chunks of `grain`, in any order and at the
   same time; grain does not depend on the number of threads, so results do not either. */
struct tenon_instance {
  struct tenon_list args;   /* of `refs`: buffers, TENON_WRITTEN where the kernel writes */
  struct tenon_list params; /* of `refs`: expressions */
  uint32_t extent, grain;   /* expressions */
};
/* Values of a tensor that are used as indices. A kernel that meets a bad one returns TENON_KERNEL_INDEX; the runtime
   then looks here for the culprit. */
struct tenon_guard {
  uint32_t buffer;
  uint32_t lo, hi; /* expressions: lo <= index < hi */
  uint32_t what;   /* string: "index of aten::embedding" */
};
struct tenon_kernel_step {
  uint32_t function;
  struct tenon_list instances; /* of `instances` */
  struct tenon_list guards;    /* of `guards` */
  uint32_t scratch;            /* expression: bytes for each thread; TENON_NONE */
};
struct tenon_call_step {
  uint32_t function;
  struct tenon_list inputs, results; /* of `refs`: buffers; an input that is also written bears TENON_WRITTEN, an absent
                                        one is TENON_NONE */
  struct tenon_list params;          /* of `refs`: expressions */
  struct tenon_list guards;
  struct tenon_list errors; /* of `refs`: strings, what TENON_KERNEL_REFUSED says by its code; each {} stands for the
                               next of counts[1], counts[2], ..., {real} for one that is the bits of a double */
  uint32_t scratch;
  uint32_t extent, grain; /* as of a kernel; TENON_NONE: one call with lo 0 and hi 1 */
};

enum tenon_source {
  TENON_SOURCE_SIZE = 0,      /* size of dimension `index` of `buffer`: an input, or a dynamic one after its call */
  TENON_SOURCE_STRIDE = 1,    /* likewise, in elements */
  TENON_SOURCE_ELEMENT = 2,   /* element number `index` (an expression) of `buffer`, in memory order */
  TENON_SOURCE_COUNT = 3,     /* counts[index] of the call just before */
  TENON_SOURCE_EXPRESSION = 4 /* the value of expression `index` */
};
struct tenon_bind {
  uint32_t symbol;
  uint32_t source; /* enum tenon_source */
  uint32_t buffer; /* or TENON_NONE */
  uint32_t index;
};

struct tenon_check {
  uint32_t condition;       /* expression; 0 fails */
  uint32_t message;         /* string; each {} stands for the next of `values` */
  struct tenon_list values; /* of `refs`: expressions */
};

enum tenon_control_kind {
  TENON_CONTROL_CHOOSE = 0, /* runs body number `value` */
  TENON_CONTROL_WHILE = 1,  /* runs body 0, evaluates `value`, ends if it is 0, runs body 1, and again */
  TENON_CONTROL_COUNTED = 2 /* runs body 0 `value` times with `symbol` = 0, 1, ...: map and scan over views */
};
struct tenon_control {
  uint32_t kind;
  uint32_t value;           /* expression */
  uint32_t symbol;          /* counted; else TENON_NONE */
  struct tenon_list bodies; /* of `bodies` */
};
struct tenon_copy {
  uint32_t from, to; /* buffers of equal dtype and sizes, both contiguous */
};
struct tenon_store {
  uint32_t buffer, index, value; /* element number `index` of buffer becomes `value`, converted to its dtype */
};
struct tenon_metadata {
  uint32_t key, value; /* strings: "producer", "in_spec", ... */
};

/* At the start of the tables. */
struct tenon_header {
  char magic[8];
  uint32_t abi_major, abi_minor;
  uint64_t size;              /* bytes of the tables, this header included */
  uint64_t weights_size;      /* bytes of the section of weights */
  uint32_t targets;           /* bit t: every function that is not external has code for target t */
  uint32_t producer;          /* string: who wrote the file, with version */
  struct tenon_list entry;    /* of `binds`: sizes, strides and expressions of the inputs, bound before all else */
  struct tenon_list main;     /* of `steps`: one run */
  struct tenon_list on_state; /* of `steps`: run when the state was changed from outside */
  struct tenon_table strings; /* bytes; a string is the position of its first byte and ends with a NUL */
  struct tenon_table words;   /* int64_t */
  struct tenon_table refs;    /* uint32_t */
  struct tenon_table exprs, symbols, buffers, inputs, outputs, states, functions, segments;
  struct tenon_table steps, kernels, instances, guards, calls, binds, checks, controls, copies, stores;
  struct tenon_table bodies; /* struct tenon_list, of `steps` */
  struct tenon_table metadata;
};

#ifdef __cplusplus
}
#endif
#endif
