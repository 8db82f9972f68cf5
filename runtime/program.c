/* What is the same for every program, wherever its tables and functions come from. */
#include <stdlib.h>

#include "internal.h"

tenon_program* tn_program_new(void) {
  tenon_program* program = calloc(1, sizeof *program);
  if (program) atomic_init(&program->references, 1);
  return program;
}

void tn_program_retain(tenon_program* program) {
  atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
}

/* Which of three kinds each expression is; entry binds decide. */
static void classify(tenon_program* program, unsigned char* entry_symbol) {
  const struct tn_tables* t = &program->tables;
  for (uint32_t i = 0; i < t->header->entry.count; ++i) entry_symbol[t->binds[t->header->entry.first + i].symbol] = 1;
  for (uint32_t e = 0; e < t->header->exprs.count; ++e) {
    struct tenon_list words = t->exprs[e].words;
    unsigned char class = TN_CONSTANT;
    for (uint32_t i = 0; i < words.count; ++i) {
      int64_t word = t->words[words.first + i];
      unsigned opcode = word & 0xff;
      if (opcode == TENON_OP_CONST_WIDE || opcode == TENON_OP_CONST_REAL) ++i;
      else if (opcode == TENON_OP_SYMBOL) {
        unsigned char symbol = entry_symbol[word >> 8] ? TN_ENTRY : TN_DYNAMIC;
        if (symbol > class) class = symbol;
      }
    }
    program->expr_class[e] = class;
  }
}

static void note_access(tenon_program* program, uint32_t ref, bool on_state, uint32_t step,
                        unsigned char* read_by_on_state) {
  const struct tn_tables* t = &program->tables;
  const struct tenon_buffer* b = &t->buffers[ref & ~TENON_WRITTEN];
  uint32_t root = b->root == TENON_NONE ? ref & ~TENON_WRITTEN : b->root;
  if (ref & TENON_WRITTEN) {
    if (b->role == TENON_ROLE_STATE) program->state_written[program->state_of[root]] = 1;
    if (b->role == TENON_ROLE_STATE || b->role == TENON_ROLE_DERIVED) {
      program->step_writes[step] = 1;
      if (!on_state) program->writes_state = true;
    }
  } else if (on_state && b->role == TENON_ROLE_STATE) read_by_on_state[program->state_of[root]] = 1;
}

static void note_list(tenon_program* program, struct tenon_list refs, uint32_t mark, bool on_state, uint32_t step,
                      unsigned char* read_by_on_state) {
  for (uint32_t i = 0; i < refs.count; ++i)
    if (program->tables.refs[refs.first + i] != TENON_NONE) /* an input of a call that is absent */
      note_access(program, program->tables.refs[refs.first + i] | mark, on_state, step, read_by_on_state);
}

static void note_kernel(tenon_program* program, uint32_t kernel, bool on_state, uint32_t step,
                        unsigned char* read_by_on_state) {
  struct tenon_list instances = program->tables.kernels[kernel].instances;
  for (uint32_t i = 0; i < instances.count; ++i)
    note_list(program, program->tables.instances[instances.first + i].args, 0, on_state, step, read_by_on_state);
}

/* Steps of bodies belong to the list that reaches them; the verifier saw to it that they form a tree. */
static void note_steps(tenon_program* program, struct tenon_list steps, bool on_state,
                       unsigned char* read_by_on_state) {
  const struct tn_tables* t = &program->tables;
  for (uint32_t i = steps.first; i < steps.first + steps.count; ++i) {
    const struct tenon_step* s = &t->steps[i];
    switch ((enum tenon_step_kind)s->kind) {
      case TENON_STEP_KERNEL:
      case TENON_STEP_FUSED:
        note_kernel(program, s->index, on_state, i, read_by_on_state);
        if (s->kind == TENON_STEP_FUSED) note_kernel(program, s->index + 1, on_state, i, read_by_on_state);
        break;
      case TENON_STEP_CALL: {
        const struct tenon_call_step* c = &t->calls[s->index];
        note_list(program, c->inputs, 0, on_state, i, read_by_on_state);
        note_list(program, c->results, TENON_WRITTEN, on_state, i, read_by_on_state);
        if (c->inputs.count + c->results.count > program->max_call_tensors)
          program->max_call_tensors = c->inputs.count + c->results.count;
        break;
      }
      case TENON_STEP_COPY:
        note_access(program, t->copies[s->index].from, on_state, i, read_by_on_state);
        note_access(program, t->copies[s->index].to | TENON_WRITTEN, on_state, i, read_by_on_state);
        break;
      case TENON_STEP_STORE:
        note_access(program, t->stores[s->index].buffer | TENON_WRITTEN, on_state, i, read_by_on_state);
        break;
      case TENON_STEP_BIND:
        if (t->binds[s->index].source == TENON_SOURCE_ELEMENT)
          note_access(program, t->binds[s->index].buffer, on_state, i, read_by_on_state);
        break;
      case TENON_STEP_CONTROL: {
        struct tenon_list bodies = t->controls[s->index].bodies;
        for (uint32_t k = 0; k < bodies.count; ++k)
          note_steps(program, t->bodies[bodies.first + k], on_state, read_by_on_state);
        break;
      }
      case TENON_STEP_CHECK:
      case TENON_STEP_PLAN:
      case TENON_STEP_MAKE: break;
    }
  }
}

static uint32_t mark_symbols(const struct tn_tables* t, uint32_t expr, unsigned char* seen, uint32_t* out) {
  uint32_t count = 0;
  if (expr == TENON_NONE) return 0;
  struct tenon_list words = t->exprs[expr].words;
  for (uint32_t i = 0; i < words.count; ++i) {
    int64_t word = t->words[words.first + i];
    unsigned opcode = word & 0xff;
    if (opcode == TENON_OP_CONST_WIDE || opcode == TENON_OP_CONST_REAL) ++i;
    else if (opcode == TENON_OP_SYMBOL && !seen[word >> 8]) {
      seen[word >> 8] = 1;
      out[count++] = (uint32_t)(word >> 8);
    }
  }
  return count;
}

/* The symbols that the plan of each segment depends on. */
static bool find_plan_symbols(tenon_program* program) {
  const struct tn_tables* t = &program->tables;
  uint64_t segments = t->header->segments.count, symbols = t->header->symbols.count;
  program->plan_symbols = calloc(segments + 1, sizeof *program->plan_symbols);
  uint32_t* ids = malloc((symbols + 1) * sizeof *ids);
  unsigned char* seen = malloc(symbols + 1);
  uint32_t total = 0;
  bool good = program->plan_symbols && ids && seen;
  for (uint32_t s = 0; s < segments && good; ++s) {
    uint32_t count = 0;
    memset(seen, 0, symbols);
    struct tenon_list members = t->segments[s].buffers;
    for (uint32_t i = 0; i < members.count; ++i) {
      const struct tenon_buffer* b = &t->buffers[t->refs[members.first + i]];
      count += mark_symbols(t, b->bytes, seen, ids + count);
      count += mark_symbols(t, b->offset, seen, ids + count);
    }
    uint32_t* grown = realloc(program->plan_symbol_ids, (total + count + 1) * sizeof *grown);
    good = grown != NULL;
    if (!good) break;
    program->plan_symbol_ids = grown;
    memcpy(grown + total, ids, count * sizeof *ids);
    program->plan_symbols[s] = (struct tenon_list){total, count};
    total += count;
  }
  free(ids);
  free(seen);
  return good;
}

static tenon_status choose_executor(tenon_program* program, const tenon_options* options) {
  struct tn_executor* e = &program->executor;
  if (options && options->parallel_for) {
    e->parallel_for = options->parallel_for;
    e->host = options->parallel_host;
    e->participants = options->parallel_tasks < 1 ? 1 : options->parallel_tasks;
    return TENON_OK;
  }
  e->pool = options ? options->pool : NULL;
  if (!e->pool) {
    e->pool = tn_default_pool();
    if (!e->pool) return tn_fail_memory(sizeof(void*), "the thread pool");
    program->default_pool = true;
  }
  e->participants = tenon_pool_threads(e->pool);
  return TENON_OK;
}

tenon_status tn_program_prepare(tenon_program* program, const tenon_options* options) {
  const struct tn_tables* t = &program->tables;
  const struct tenon_header* h = t->header;
  program->allocator = options && options->allocator ? *options->allocator : tn_malloc;
  tenon_status status = choose_executor(program, options);
  if (status != TENON_OK) return status;
  program->expr_class = malloc(h->exprs.count + 1);
  program->state_of = malloc((h->buffers.count + 1) * sizeof *program->state_of);
  program->state_written = calloc(h->states.count + 1, 1);
  program->step_writes = calloc(h->steps.count + 1, 1);
  unsigned char* entry = calloc(h->symbols.count + 1, 1);
  unsigned char* read_by_on_state = calloc(h->states.count + 1, 1);
  if (program->expr_class && program->state_of && program->state_written && program->step_writes && entry &&
      read_by_on_state && find_plan_symbols(program)) {
    classify(program, entry);
    for (uint32_t b = 0; b < h->buffers.count; ++b) {
      program->state_of[b] = TENON_NONE;
      if (t->buffers[b].flags & TENON_BUFFER_DYNAMIC) program->has_dynamic = true;
    }
    for (uint32_t s = 0; s < h->states.count; ++s)
      if (t->states[s].buffer != TENON_NONE) program->state_of[t->states[s].buffer] = s;
    note_steps(program, h->main, false, read_by_on_state);
    note_steps(program, h->on_state, true, read_by_on_state);
    for (uint32_t s = 0; s < h->states.count; ++s)
      if (program->state_written[s] && read_by_on_state[s]) program->on_state_reads_written = true;
  } else {
    status = tn_fail_memory(h->size, "the program");
  }
  free(entry);
  free(read_by_on_state);
  return status;
}

tenon_status tn_program_open_tables(const void* tables, uint64_t size, const void* weights, void* const* functions,
                                    const tenon_options* options, tenon_program** out) {
  tenon_program* program = tn_program_new();
  if (!program) return tn_fail_memory(sizeof *program, "the program");
  tenon_status status = tn_tables_verify(tables, size, &program->tables);
  if (status == TENON_OK) {
    size_t count = program->tables.header->functions.count;
    program->functions = malloc((count + 1) * sizeof *program->functions);
    if (!program->functions) status = tn_fail_memory(count, "the program");
    else if (count > 0) memcpy(program->functions, functions, count * sizeof *functions);
  }
  program->weights = weights;
  if (status == TENON_OK) status = tn_program_prepare(program, options);
  if (status != TENON_OK) {
    tenon_program_close(program);
    return status;
  }
  *out = program;
  return TENON_OK;
}

/* ---- What a program says about itself ---- */

size_t tenon_program_input_count(const tenon_program* program) {
  return program ? program->tables.header->inputs.count : 0;
}
size_t tenon_program_output_count(const tenon_program* program) {
  return program ? program->tables.header->outputs.count : 0;
}
size_t tenon_program_state_count(const tenon_program* program) {
  return program ? program->tables.header->states.count : 0;
}

static void fixed_sizes(const tenon_program* program, const struct tenon_buffer* b, int64_t* sizes) {
  for (uint32_t d = 0; d < b->rank; ++d) {
    tn_value value;
    bool known = program->expr_class[b->sizes + d] == TN_CONSTANT && !(b->flags & TENON_BUFFER_DYNAMIC) &&
                 !tn_evaluate(&program->tables, b->sizes + d, NULL, &value);
    sizes[d] = known ? value.i : -1;
  }
}

static tenon_status value_info(const tenon_program* program, uint32_t name, uint32_t buffer, tenon_value_info* info) {
  const struct tenon_buffer* b = &program->tables.buffers[buffer];
  memset(info, 0, sizeof *info);
  info->name = tn_string(&program->tables, name);
  info->dtype = b->dtype;
  info->rank = b->rank;
  info->deferred = b->flags != 0;
  fixed_sizes(program, b, info->sizes);
  return TENON_OK;
}

tenon_status tenon_program_input_info(const tenon_program* program, size_t index, tenon_value_info* info) {
  if (!program || !info) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_program_input_info: an argument is NULL");
  if (index >= program->tables.header->inputs.count)
    return tn_fail(TENON_INVALID_ARGUMENT,
                   "tenon_program_input_info: the program has %zu inputs, there is no number %zu",
                   tenon_program_input_count(program), index);
  tenon_status status =
      value_info(program, program->tables.inputs[index].name, program->tables.inputs[index].buffer, info);
  info->written = (int32_t)program->tables.inputs[index].written;
  return status;
}

tenon_status tenon_program_output_info(const tenon_program* program, size_t index, tenon_value_info* info) {
  if (!program || !info) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_program_output_info: an argument is NULL");
  if (index >= program->tables.header->outputs.count)
    return tn_fail(TENON_INVALID_ARGUMENT,
                   "tenon_program_output_info: the program has %zu outputs, there is no number %zu",
                   tenon_program_output_count(program), index);
  return value_info(program, program->tables.outputs[index].name, program->tables.outputs[index].buffer, info);
}

tenon_status tenon_program_state_info(const tenon_program* program, size_t index, tenon_state_info* info) {
  if (!program || !info) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_program_state_info: an argument is NULL");
  if (index >= program->tables.header->states.count)
    return tn_fail(TENON_INVALID_ARGUMENT,
                   "tenon_program_state_info: the program has %zu state entries, there is no number %zu",
                   tenon_program_state_count(program), index);
  const struct tenon_state_entry* s = &program->tables.states[index];
  memset(info, 0, sizeof *info);
  info->name = tn_string(&program->tables, s->name);
  info->kind = (int32_t)s->kind;
  info->frozen = s->buffer == TENON_NONE;
  info->written = program->state_written[index];
  if (info->frozen) return TENON_OK;
  const struct tenon_buffer* b = &program->tables.buffers[s->buffer];
  info->dtype = b->dtype;
  info->rank = b->rank;
  fixed_sizes(program, b, info->sizes);
  return TENON_OK;
}

const void* tenon_program_weights(const tenon_program* program, size_t* size) {
  if (size) *size = program && program->weights ? (size_t)program->tables.header->weights_size : 0;
  return program ? program->weights : NULL;
}

const char* tenon_program_metadata(const tenon_program* program, const char* key) {
  if (!program || !key) return NULL;
  const struct tn_tables* t = &program->tables;
  for (uint32_t i = 0; i < t->header->metadata.count; ++i)
    if (strcmp(tn_string(t, t->metadata[i].key), key) == 0) return tn_string(t, t->metadata[i].value);
  return NULL;
}

static const char* const target_names[TENON_TARGET_COUNT] = {"portable", "x86-64-v3", "x86-64-v4"};

const char* tenon_program_target(const tenon_program* program) { return program ? target_names[program->target] : "?"; }
