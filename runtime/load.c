/* Brings an artifact into memory: validated, then mapped through the same descriptor. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

enum { page = 4096 };

static void unmap(struct tn_mapping* mapping) {
  if (mapping->memory) munmap(mapping->memory, mapping->size);
  mapping->memory = NULL;
}

void tenon_program_close(tenon_program* program) {
  if (!program || atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1) return;
  if (program->default_pool) tn_default_pool_release();
  tn_debug_unregister(program->debug);
  unmap(&program->image);
  unmap(&program->weights_mapping);
  free(program->weights_memory);
  free(program->tables_memory);
  free(program->functions);
  free(program->expr_class);
  free(program->state_of);
  free(program->state_written);
  free(program->step_writes);
  free(program->plan_symbols);
  free(program->plan_symbol_ids);
  free(program);
}

static tenon_status cannot_map(const char* what) {
  return tn_fail(errno == ENOMEM ? TENON_OUT_OF_MEMORY : TENON_IO, "%s cannot be mapped: %s", what, strerror(errno));
}

static int protection(const struct tn_load* load) {
  return PROT_READ | (load->writable ? PROT_WRITE : 0) | (load->executable ? PROT_EXEC : 0);
}

static tenon_status map_file(int descriptor, const struct tn_image* image, unsigned char* base, uint64_t from) {
  for (uint32_t i = 0; i < image->load_count; ++i) {
    const struct tn_load* l = &image->loads[i];
    uint64_t start = l->address / page * page, slack = l->address - start;
    if (mmap(base + (start - from), l->size + slack, protection(l), MAP_PRIVATE | MAP_FIXED, descriptor,
             (off_t)(l->offset - slack)) == MAP_FAILED)
      return cannot_map("the code");
  }
  return TENON_OK;
}

/* Copies the segments and makes them executable; where that is forbidden for anonymous memory, through a file in
 * memory. */
static tenon_status map_copy(const struct tn_source* source, const struct tn_image* image, unsigned char* base,
                             uint64_t from, uint64_t size) {
  if (mprotect(base, size, PROT_READ | PROT_WRITE) != 0) return cannot_map("the code");
  for (uint32_t i = 0; i < image->load_count; ++i) {
    tenon_status status =
        tn_read(source, image->loads[i].offset, base + (image->loads[i].address - from), image->loads[i].size);
    if (status != TENON_OK) return status;
  }
  bool refused = false;
  for (uint32_t i = 0; i < image->load_count && !refused; ++i) {
    const struct tn_load* l = &image->loads[i];
    uint64_t start = l->address / page * page;
    refused = mprotect(base + (start - from), l->size + (l->address - start), protection(l) & ~PROT_WRITE) != 0;
  }
  if (!refused) return TENON_OK;
  int descriptor = memfd_create("tenon", MFD_CLOEXEC);
  if (descriptor < 0) return cannot_map("the code");
  struct tn_image copied = *image;
  tenon_status status = TENON_OK;
  for (uint32_t i = 0; i < image->load_count && status == TENON_OK; ++i) {
    struct tn_load* l = &copied.loads[i];
    l->offset = l->address - from;
    for (uint64_t done = 0; done < l->size && status == TENON_OK;) {
      ssize_t written = pwrite(descriptor, base + l->offset + done, l->size - done, (off_t)(l->offset + done));
      if (written > 0) done += (uint64_t)written;
      else if (written < 0 && errno != EINTR) status = cannot_map("the code");
    }
  }
  if (status == TENON_OK) status = map_file(descriptor, &copied, base, from);
  close(descriptor);
  return status;
}

static tenon_status map_image(tenon_program* program, const struct tn_source* source, const struct tn_image* image,
                              const unsigned char** base_address) {
  const struct tn_load* last = &image->loads[image->load_count - 1];
  uint64_t from = image->loads[0].address / page * page;
  uint64_t size = tn_round_up(last->address + last->size, page) - from;
  unsigned char* base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return cannot_map("the code");
  program->image = (struct tn_mapping){base, size};
  tenon_status status =
      source->memory ? map_copy(source, image, base, from, size) : map_file(source->descriptor, image, base, from);
  for (uint32_t i = 0; i < image->load_count && status == TENON_OK; ++i) {
    const struct tn_load* l = &image->loads[i];
    uint64_t start = l->address / page * page;
    if (l->writable && mprotect(base + (start - from), l->size + (l->address - start), PROT_READ) != 0)
      status = cannot_map("the code");
  }
  *base_address = base - from;
  return status;
}

static tenon_status map_weights(tenon_program* program, const struct tn_source* source, const struct tn_image* image,
                                bool huge) {
  if (image->weights_size == 0) return TENON_OK;
  if (huge) {
    size_t size = tn_round_up(image->weights_size, 2 << 20);
    void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return cannot_map("a copy of the weights");
    program->weights_mapping = (struct tn_mapping){memory, size};
    madvise(memory, size, MADV_HUGEPAGE);
    tenon_status status = tn_read(source, image->weights_offset, memory, image->weights_size);
    if (status == TENON_OK && mprotect(memory, size, PROT_READ) != 0) status = cannot_map("a copy of the weights");
    program->weights = memory;
    return status;
  }
  if (!source->memory) {
    void* memory =
        mmap(NULL, image->weights_size, PROT_READ, MAP_PRIVATE, source->descriptor, (off_t)image->weights_offset);
    if (memory == MAP_FAILED) return cannot_map("the weights");
    program->weights_mapping = (struct tn_mapping){memory, image->weights_size};
    program->weights = memory;
    program->weights_in_file = true;
    return TENON_OK;
  }
  program->weights = source->memory + image->weights_offset;
  if ((uintptr_t)program->weights % TENON_ALIGNMENT == 0) return TENON_OK;
  if (posix_memalign(&program->weights_memory, TENON_ALIGNMENT, image->weights_size) != 0)
    return tn_fail_memory(image->weights_size, "a copy of the weights");
  memcpy(program->weights_memory, program->weights, image->weights_size);
  program->weights = program->weights_memory;
  return TENON_OK;
}

void tn_program_forget_weights(const tenon_program* program, const unsigned char* from, uint64_t size) {
  if (!program->weights_in_file) return;
  uintptr_t first = tn_round_up((uintptr_t)from, page), last = ((uintptr_t)from + size) / page * page;
  if (first < last) madvise((void*)first, last - first, MADV_DONTNEED);
}

static tenon_status choose_target(tenon_program* program, const struct tn_image* image) {
#if defined(__x86_64__)
  const uint32_t machine = EM_X86_64;
  const char* here = "x86-64";
#elif defined(__aarch64__)
  const uint32_t machine = EM_AARCH64;
  const char* here = "AArch64";
#else
  const uint32_t machine = EM_NONE;
  const char* here = "an unknown one";
#endif
  if (image->machine != machine)
    return tn_fail(TENON_UNSUPPORTED, "the artifact is for %s processors, this is %s; compile the program for it",
                   image->machine == EM_X86_64 ? "x86-64" : "AArch64", here);
  int best = tn_processor_target();
  for (program->target = best; program->target >= 0; --program->target)
    if (program->tables.header->targets >> program->target & 1) return TENON_OK;
  int least = TENON_TARGET_X86_64_V3;
  while (!(program->tables.header->targets >> least & 1)) ++least;
  program->target = least;
  const char* needs = tenon_program_target(program);
  program->target = best;
  return tn_fail(TENON_UNSUPPORTED,
                 "the artifact has code for %s, this processor runs at most %s; compile the program with --target=%s",
                 needs, tenon_program_target(program), tenon_program_target(program));
}

static tenon_status find_functions(tenon_program* program, const unsigned char* tables, const tenon_options* options) {
  const struct tn_tables* t = &program->tables;
  program->functions = calloc(t->header->functions.count + 1, sizeof *program->functions);
  if (!program->functions) return tn_fail_memory(t->header->functions.count, "the functions");
  for (uint32_t i = 0; i < t->header->functions.count; ++i) {
    const struct tenon_function* f = &t->functions[i];
    if (!f->external) {
      program->functions[i] = (void*)(uintptr_t)(tables + f->entry[program->target]);
      continue;
    }
    for (size_t k = 0; options && k < options->function_count; ++k)
      if (options->functions[k].name && strcmp(options->functions[k].name, tn_string(t, f->name)) == 0)
        memcpy(&program->functions[i], &options->functions[k].function, sizeof(void*));
    if (!program->functions[i])
      return tn_fail(TENON_UNSUPPORTED,
                     "the artifact calls '%s', which is not among the functions handed in: in C those of "
                     "tenon_options, on the command line those of --ops",
                     tn_string(t, f->name));
  }
  return TENON_OK;
}

/* Options of an older caller are shorter. */
static tenon_status read_options(const tenon_options* given, tenon_options* options) {
  memset(options, 0, sizeof *options);
  if (!given) return TENON_OK;
  if (given->struct_size < sizeof given->struct_size || given->struct_size > 4096)
    return tn_fail(TENON_INVALID_ARGUMENT, "tenon_options: struct_size is %zu; set it to sizeof(tenon_options)",
                   given->struct_size);
  memcpy(options, given, given->struct_size < sizeof *options ? given->struct_size : sizeof *options);
  if (options->functions == NULL && options->function_count > 0)
    return tn_fail(TENON_INVALID_ARGUMENT, "tenon_options: %zu functions are announced, but functions is NULL",
                   options->function_count);
  for (size_t i = 0; i < options->function_count; ++i)
    if (!options->functions[i].name || !options->functions[i].function)
      return tn_fail(TENON_INVALID_ARGUMENT, "tenon_options: function %zu has no %s", i,
                     options->functions[i].name ? "function" : "name");
  if (options->allocator && (!options->allocator->allocate || !options->allocator->release))
    return tn_fail(TENON_INVALID_ARGUMENT, "tenon_options: the allocator has no %s; give both or no allocator",
                   options->allocator->allocate ? "release" : "allocate");
  if (options->pool && !options->parallel_for && !tn_pool_exists(options->pool))
    return tn_fail(TENON_INVALID_ARGUMENT, "tenon_options: there is no such pool, or it was destroyed");
  return TENON_OK;
}

static tenon_status open_source(const struct tn_source* source, const tenon_options* given, tenon_program** out) {
  struct tn_image image;
  tenon_options options;
  tenon_status status = read_options(given, &options);
  if (status == TENON_OK) status = tn_image_verify(source, &image);
  if (status != TENON_OK) return status;
  tenon_program* program = tn_program_new();
  if (!program) return tn_fail_memory(sizeof *program, "the program");
  program->tables_memory = malloc(image.tables_size);
  const unsigned char* base = NULL;
  status = program->tables_memory ? tn_image_read_tables(source, &image, program->tables_memory, &program->tables)
                                  : tn_fail_memory(image.tables_size, "the tables");
  if (status == TENON_OK) status = choose_target(program, &image);
  if (status == TENON_OK) status = map_image(program, source, &image, &base);
  if (status == TENON_OK) status = tn_image_compare_checksums(source, &image, program->tables_memory, base);
  if (status == TENON_OK) status = map_weights(program, source, &image, options.huge_pages);
  if (status == TENON_OK) status = find_functions(program, base + image.tables_address, &options);
  if (status == TENON_OK) status = tn_program_prepare(program, &options);
  if (status != TENON_OK) {
    tenon_program_close(program);
    return status;
  }
  program->debug = tn_debug_register(source, &image, base);
  *out = program;
  return TENON_OK;
}

tenon_status tenon_program_open(const char* path, const tenon_options* options, tenon_program** program) {
  if (!path || !program) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_program_open: an argument is NULL");
  *program = NULL;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (descriptor < 0 || fstat(descriptor, &info) != 0) {
    tenon_status status = tn_fail(TENON_IO, "'%s' cannot be read: %s", path, strerror(errno));
    if (descriptor >= 0) close(descriptor);
    return status;
  }
  struct tn_source source = {.descriptor = descriptor, .size = (uint64_t)info.st_size};
  tenon_status status =
      S_ISREG(info.st_mode) ? open_source(&source, options, program) : tn_fail(TENON_IO, "expected a regular file");
  close(descriptor);
  if (status != TENON_OK) {
    char reason[400];
    strncpy(reason, tenon_last_error(), sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    tn_fail(status, "'%s': %s", path, reason);
  }
  return status;
}

tenon_status tenon_program_open_memory(const void* bytes, size_t size, const tenon_options* options,
                                       tenon_program** program) {
  if (!bytes || !program) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_program_open_memory: an argument is NULL");
  *program = NULL;
  struct tn_source source = {.memory = bytes, .descriptor = -1, .size = size};
  return open_source(&source, options, program);
}
