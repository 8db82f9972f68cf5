/* Operators of your own, for programs that call them. A shared library exports `tenon_operators`, which gives a table;
   `tenon VERB FILE --ops LIBRARY`, tenon::load_operators (C++) and nothing else loads it: no file can ask for one.
   C11, no dependency. docs/custom_ops.md explains it with an example.

   What a compiled program calls it asks for by name when it is opened: hand in schema names and kernels as the
   `functions` of tenon_options (<tenon/runtime.h>). */
#ifndef TENON_OPERATOR_TABLE_H
#define TENON_OPERATOR_TABLE_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "abi.h" /* <tenon/abi.h> */

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_OPERATOR_TABLE_VERSION 1

/* What an operator does besides computing: it prints, counts, writes to a device. Its calls are neither dropped nor
   exchanged with each other. An operator that returns nothing and writes to nothing has effects without saying so. */
#define TENON_OPERATOR_EFFECTS 1u

/* All texts are zero-terminated and live as long as the library. */
typedef struct tenon_operator {
  /* As PyTorch spells it: "mylib::scaled(Tensor x, float factor) -> Tensor". Results are tensors. */
  const char* schema;
  /* What the results are, one after another: "x" (dtype and sizes of the argument x), "f32 x" (its sizes), "x[n, 2*k]"
     or "f32[n]" (dtype and sizes). Letters are sizes of arguments, named before an arrow: "x[..., k], w[n, k] ->
     x[..., n]"; integer arguments may be used by name; "?" is a size that only the kernel knows, see `allocate`.
     NULL or "" where there are no results. */
  const char* results;
  /* Called with the tensors of the schema as inputs, the others as params (<tenon/abi.h>, docs/custom_ops.md), lo 0 and
     hi 1. It writes results only: what the operator writes to its arguments (Tensor(a!)) is given as further results,
     in the order of the schema. */
  tenon_host_function kernel;
  /* NULL, or calls of operators that give the gradients of arguments: "x = mylib::scaled(grad, factor)". More of them
     are separated by ";", results of one by ",". grad and out are those of the first result, grad1 and out1 of the
     next. */
  const char* gradient;
  const char* const* errors; /* what the kernel refuses by code, from 1 on; ends with NULL. May be NULL */
  uint64_t flags;
} tenon_operator;

typedef struct tenon_operator_table {
  uint32_t version;       /* TENON_OPERATOR_TABLE_VERSION */
  uint32_t operator_size; /* sizeof(tenon_operator) */
  uint64_t count;
  const tenon_operator* operators;
} tenon_operator_table;

/* What the library exports. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const tenon_operator_table*
tenon_operators(void);

/* A float of the schema among the params. */
static inline double tenon_real_param(int64_t param) {
  double value;
  memcpy(&value, &param, sizeof value);
  return value;
}

#ifdef __cplusplus
}
#endif
#endif
