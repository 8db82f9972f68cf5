/* Looks at an artifact without running or mapping any of it. What passes here is what the loader maps and what
   `tenon show` prints; tests/fuzz/fuzz_artifact.cpp attacks it. */
#ifndef TENON_RUNTIME_VERIFY_H
#define TENON_RUNTIME_VERIFY_H
#include <stddef.h>

#include "include/tenon/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes in memory, or of a file of which only what is looked at is read. */
struct tn_source {
  const unsigned char* memory; /* or NULL */
  int descriptor;
  uint64_t size;
};
tenon_status tn_read(const struct tn_source* source, uint64_t offset, void* to, size_t size);

/* The tables with their types. Counts are in the header. */
struct tn_tables {
  const struct tenon_header* header;
  const char* strings;
  const int64_t* words;
  const uint32_t* refs;
  const struct tenon_expr* exprs;
  const struct tenon_symbol* symbols;
  const struct tenon_buffer* buffers;
  const struct tenon_input* inputs;
  const struct tenon_output* outputs;
  const struct tenon_state_entry* states;
  const struct tenon_function* functions;
  const struct tenon_segment* segments;
  const struct tenon_step* steps;
  const struct tenon_kernel_step* kernels;
  const struct tenon_instance* instances;
  const struct tenon_guard* guards;
  const struct tenon_call_step* calls;
  const struct tenon_bind* binds;
  const struct tenon_check* checks;
  const struct tenon_control* controls;
  const struct tenon_copy* copies;
  const struct tenon_store* stores;
  const struct tenon_list* bodies;
  const struct tenon_metadata* metadata;
};
/* `bytes` aligned to 8. Every index, list, expression and string is checked, and that nothing is used before it is
   there. Addresses of functions are not: see tn_image_verify. */
tenon_status tn_tables_verify(const void* bytes, uint64_t size, struct tn_tables* tables);

enum { TN_MAX_SEGMENTS = 16 };
struct tn_load {
  uint64_t offset, address, size;
  uint32_t writable, executable;
};
/* Where things lie in an ELF file that may be loaded. */
struct tn_image {
  uint32_t machine; /* EM_X86_64, EM_AARCH64 */
  uint32_t load_count;
  struct tn_load loads[TN_MAX_SEGMENTS];
  uint64_t relro_address, relro_size;
  uint64_t tables_offset, tables_address, tables_size;
  uint64_t weights_offset, weights_size;
  uint64_t checksums_offset, checksums_size;
  uint64_t symbols_offset, symbols_size, symbol_names_offset, symbol_names_size; /* .symtab; 0 if stripped */
  uint64_t text_address, text_size, eh_frame_address, eh_frame_size;             /* for debuggers; 0 if stripped */
  unsigned char build_id[20];
  uint32_t build_id_size;
};
tenon_status tn_image_verify(const struct tn_source* source, struct tn_image* image);
/* Reads the image's tables into `memory` (of image->tables_size bytes, aligned to 8) and verifies them against it. */
tenon_status tn_image_read_tables(const struct tn_source* source, const struct tn_image* image, void* memory,
                                  struct tn_tables* tables);

enum { TN_CHECKSUM_BLOCK = 1 << 24 }; /* of weights, bytes */
/* A fast checksum against damage of files, not against forgery. */
uint64_t tn_checksum(const void* memory, uint64_t size, uint64_t seed);
/* Compares tables and code with their checksums, where the file has them: `tables` as they were read, `base` where the
   image's address 0 is mapped. */
tenon_status tn_image_compare_checksums(const struct tn_source* source, const struct tn_image* image,
                                        const void* tables, const unsigned char* base);

#ifdef __cplusplus
}
#endif
#endif
