/* Tables and functions of this process as a program, without a file: how an interpreter of kernels uses the runtime. */
#ifndef TENON_RUNTIME_OPEN_TABLES_H
#define TENON_RUNTIME_OPEN_TABLES_H
#include <stdbool.h>

#include "include/tenon/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program of tables that the caller fills and functions of its own, by index; all is borrowed. */
tenon_status tn_program_open_tables(const void* tables, uint64_t size, const void* weights, void* const* functions,
                                    const tenon_options* options, tenon_program** program);

/* Memory of the caller's for an entry of a state. */
struct tn_lent {
  const char* name;
  void* data; /* contiguous, aligned as tensors are */
  uint64_t size;
  int32_t dtype;
  bool taken; /* filled in: the state lies in it; else the entry has memory of its own, which holds what it starts with
               */
};
/* A state over the caller's memory, which must outlive it and holds the contents already. */
tenon_status tn_state_create_over(tenon_program* program, struct tn_lent* lent, size_t count, tenon_state** state);
/* The caller wrote to memory that it lent. */
void tn_state_changed(tenon_state* state);

#ifdef __cplusplus
}
#endif
#endif
