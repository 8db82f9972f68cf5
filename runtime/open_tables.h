/* Tables and functions of this process as a program, without a file: how an interpreter of kernels uses the runtime. */
#ifndef TENON_RUNTIME_OPEN_TABLES_H
#define TENON_RUNTIME_OPEN_TABLES_H
#include "include/tenon/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A program of tables that the caller fills and functions of its own, by index; all is borrowed. */
tenon_status tn_program_open_tables(const void* tables, uint64_t size, const void* weights, void* const* functions,
                                    const tenon_options* options, tenon_program** program);

#ifdef __cplusplus
}
#endif
#endif
