/* Runs the code of a step: splits it into chunks, hands them to whoever is idle, and explains what failed. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

/* Looks for the index that a function stumbled over. */
static TN_COLD tenon_status find_culprit(tenon_session* session, const struct tenon_guard* guard, bool* found) {
  tenon_tensor tensor;
  tn_value lo, hi;
  tenon_status status = tn_tensor_of(session, guard->buffer, &tensor);
  if (status == TENON_OK) status = tn_value_of(session, guard->lo, &lo, "a bound");
  if (status == TENON_OK) status = tn_value_of(session, guard->hi, &hi, "a bound");
  if (status != TENON_OK) return status;
  int64_t at[TENON_MAX_RANK] = {0};
  for (int32_t d = 0; d < tensor.rank; ++d)
    if (tensor.sizes[d] == 0) return TENON_OK;
  const struct tn_tables* t = &session->program->tables;
  for (;;) {
    int64_t offset = 0;
    for (int32_t d = 0; d < tensor.rank; ++d) offset += at[d] * tensor.strides[d];
    tn_value value = tn_load_number(
        (const unsigned char*)tensor.data + offset * (int64_t)tenon_dtype_size(tensor.dtype), (uint8_t)tensor.dtype);
    if (value.i < lo.i || value.i >= hi.i) {
      char position[200];
      int length = snprintf(position, sizeof position, "[");
      for (int32_t d = 0; d < tensor.rank && length < (int)sizeof position - 24; ++d)
        length += snprintf(position + length, 24, "%s%lld", d ? ", " : "", (long long)at[d]);
      *found = true;
      return tn_fail(TENON_CHECK_FAILED, "%s: index %lld at %s] of '%s' is out of range; expected %lld to %lld",
                     tn_string(t, guard->what), (long long)value.i, position,
                     tn_string(t, t->buffers[guard->buffer].name), (long long)lo.i, (long long)hi.i - 1);
    }
    int32_t d = tensor.rank - 1;
    while (d >= 0 && ++at[d] == tensor.sizes[d]) at[d--] = 0;
    if (d < 0) return TENON_OK;
  }
}

/* The sentence that a host function chose, with its numbers. */
static TN_COLD tenon_status function_refused(const tenon_session* session, const char* sentence) {
  char text[400];
  size_t length = 0;
  int next = 1;
  for (const char* c = sentence; *c && length + 40 < sizeof text; ++c) {
    bool integer = strncmp(c, "{}", 2) == 0, real = strncmp(c, "{real}", 6) == 0;
    if ((!integer && !real) || next == TENON_MAX_COUNTS) {
      text[length++] = *c;
      continue;
    }
    tn_value value = {.i = session->counts[next++]};
    if (real) length += (size_t)snprintf(text + length, 32, "%g", value.d);
    else length += (size_t)snprintf(text + length, 32, "%lld", (long long)value.i);
    c += integer ? 1 : 5;
  }
  text[length] = 0;
  return tn_fail(TENON_CHECK_FAILED, "%s", text);
}

static TN_COLD tenon_status function_failed(tenon_session* session, int code, uint32_t function,
                                            struct tenon_list guards, struct tenon_list errors) {
  const struct tn_tables* t = &session->program->tables;
  const char* name = tn_string(t, session->step->name);
  if (!*name) name = tn_string(t, t->functions[function].name);
  bool found = false;
  if (code & TENON_KERNEL_INDEX) {
    for (uint32_t i = 0; i < guards.count; ++i) {
      tenon_status status = find_culprit(session, &t->guards[guards.first + i], &found);
      if (found || status != TENON_OK) return status;
    }
    return tn_fail(TENON_CHECK_FAILED, "%s: an index is out of range", name);
  }
  if (code & TENON_KERNEL_MEMORY) return tn_fail(TENON_OUT_OF_MEMORY, "%s: no memory for its result", name);
  if (code & TENON_KERNEL_REFUSED && session->counts[0] >= 1 && session->counts[0] <= errors.count)
    return function_refused(session, tn_string(t, t->refs[errors.first + (uint32_t)session->counts[0] - 1]));
  if (code & (TENON_KERNEL_ARITHMETIC | TENON_KERNEL_REFUSED))
    return tn_fail(TENON_CHECK_FAILED,
                   "%s: there is no result for these numbers (a division by zero, a matrix without an inverse)", name);
  return tn_fail(TENON_CHECK_FAILED, "%s failed with status %d", name, code);
}

struct instance {
  void* const* buffers;
  const int64_t* params;
  int64_t extent, grain, first; /* first: number of its first chunk */
  struct tenon_epilogue epilogue;
};
enum { most_parts = 16 };
/* Chunks from `next` on, up to `end`. */
struct part {
  _Alignas(64) atomic_llong next;
  int64_t end;
};
/* A step in progress. Every participant takes the chunks of its own part, which are those of its part in the steps
   before and behind, so that what it wrote is in its cache; then what others have left. */
struct work {
  _Alignas(64) const struct instance* instances; /* what kernels need lies in one line */
  tenon_kernel kernel;
  unsigned char* scratch;
  size_t scratch_stride;
  uint32_t count;
  int part_count;
  atomic_int status;
  int64_t chunks;
  tenon_host_function host; /* in place of kernel, with call */
  const struct tenon_host_call* call;
  struct part parts[most_parts];
};

/* Everything but the parts, which run_work makes: they are many lines of memory. */
static void begin_work(struct work* work, uint32_t count) {
  work->instances = NULL;
  work->count = count;
  work->chunks = 0;
  work->kernel = NULL;
  work->host = NULL;
  work->call = NULL;
  work->scratch = NULL;
  work->scratch_stride = 0;
  work->part_count = 0;
  atomic_init(&work->status, 0);
}

static int run_chunk(const struct work* work, const struct instance* n, int64_t chunk, void* scratch) {
  int64_t lo = (chunk - n->first) * n->grain, hi = n->extent - lo < n->grain ? n->extent : lo + n->grain;
  if (work->kernel) {
    struct tenon_args args = {n->buffers, n->params, scratch, n->epilogue.kernel ? &n->epilogue : NULL};
    return work->kernel(&args, lo, hi);
  }
  struct tenon_host_call call = *work->call;
  call.scratch = scratch;
  return work->host(&call, lo, hi);
}

static void take_chunks(void* context, int participant) {
  struct work* work = context;
  void* scratch = work->scratch ? work->scratch + (size_t)participant * work->scratch_stride : NULL;
  uint32_t at = 0;
  for (int i = 0; i < work->part_count; ++i) {
    struct part* part = &work->parts[(participant + i) % work->part_count];
    for (;;) {
      if (atomic_load_explicit(&work->status, memory_order_relaxed)) return;
      /* The part of another: its line stays there if nothing is left. */
      if (i > 0 && atomic_load_explicit(&part->next, memory_order_relaxed) >= part->end) break;
      int64_t chunk = atomic_fetch_add_explicit(&part->next, 1, memory_order_relaxed);
      if (chunk >= part->end) break;
      if (work->instances[at].first > chunk) at = 0;
      while (at + 1 < work->count && work->instances[at + 1].first <= chunk) ++at;
      int status = run_chunk(work, &work->instances[at], chunk, scratch);
      if (status) atomic_fetch_or_explicit(&work->status, status, memory_order_relaxed);
    }
  }
}

static int run_work(tenon_session* session, struct work* work) {
  if (work->chunks == 1) { /* nothing to share */
    uint32_t at = 0;
    while (at + 1 < work->count && work->instances[at].extent == 0) ++at;
    return run_chunk(work, &work->instances[at], 0, work->scratch);
  }
  int64_t parts = session->pace.alone ? 1 : session->program->executor.participants;
  if (parts > most_parts) parts = most_parts;
  if (parts > work->chunks) parts = work->chunks;
  work->part_count = (int)parts;
  for (int64_t i = 0; i < parts; ++i) { /* without a product that could be too large */
    int64_t each = work->chunks / parts, more = work->chunks % parts;
    atomic_init(&work->parts[i].next, i * each + (i < more ? i : more));
    work->parts[i].end = (i + 1) * each + (i + 1 < more ? i + 1 : more);
  }
  int most = session->pace.alone ? 1 : work->chunks < INT32_MAX ? (int)work->chunks : INT32_MAX;
  tn_parallel(&session->program->executor, most, take_chunks, work);
  return atomic_load_explicit(&work->status, memory_order_relaxed);
}

static tenon_status reserve_scratch(tenon_session* session, uint32_t expr, struct work* work) {
  if (expr == TENON_NONE) return TENON_OK;
  tn_value bytes;
  tenon_status status = tn_value_of(session, expr, &bytes, "the size of scratch memory");
  if (status != TENON_OK) return status;
  size_t participants = (size_t)session->program->executor.participants;
  if (bytes.i < 0 || (uint64_t)bytes.i > INT64_MAX / participants / 2)
    return tn_fail(TENON_CHECK_FAILED, "%lld bytes of scratch memory are asked for", (long long)bytes.i);
  work->scratch_stride = tn_round_up((uint64_t)bytes.i, 2 * TENON_ALIGNMENT);
  status = tn_block_reserve(session, &session->scratch, work->scratch_stride * participants, "scratch memory");
  work->scratch = session->scratch.memory;
  return status;
}

static tenon_status split(tenon_session* session, uint32_t extent, uint32_t grain, struct instance* out,
                          int64_t* chunks) {
  tn_value e, g;
  tenon_status status = tn_value_of(session, extent, &e, "the extent of a loop");
  if (status == TENON_OK) status = tn_value_of(session, grain, &g, "the grain of a loop");
  if (status != TENON_OK) return status;
  if (e.i < 0 || g.i < 1)
    return tn_fail(TENON_CHECK_FAILED, "a loop of %lld iterations in chunks of %lld is asked for", (long long)e.i,
                   (long long)g.i);
  out->extent = e.i;
  out->grain = g.i;
  out->first = *chunks;
  int64_t count = e.i / g.i + (e.i % g.i != 0);
  if (__builtin_add_overflow(*chunks, count, chunks) || *chunks > INT64_MAX / 2)
    return tn_fail(TENON_CHECK_FAILED, "a loop has more chunks than can be counted");
  return TENON_OK;
}

static tenon_status grow(void** memory, size_t* room, size_t wanted, size_t item) {
  if (*room >= wanted) return TENON_OK;
  void* grown = realloc(*memory, wanted * item);
  if (!grown) return tn_fail_memory(wanted * item, "the arguments of a step");
  *memory = grown;
  *room = wanted;
  return TENON_OK;
}

/* The arguments of a step, laid out when it first runs. What follows from sizes stays until these change; where memory
   lies is asked for at every run. */
struct prepared {
  uint64_t generation; /* of the sizes that parameters and chunks were computed for; 0: none */
  bool dynamic;        /* parameters may change within a run */
  int64_t chunks;
  int64_t* params; /* behind the instances and buffers of all of them */
  struct instance instances[];
};

static void count_arguments(const struct tn_tables* t, struct tenon_list instances, size_t* args, size_t* params) {
  for (uint32_t i = 0; i < instances.count; ++i) {
    *args += t->instances[instances.first + i].args.count;
    *params += t->instances[instances.first + i].params.count;
  }
}

static TN_COLD tenon_status lay_out(tenon_session* session, const struct tenon_kernel_step* k,
                                    const struct tenon_kernel_step* epilogue, struct prepared** out) {
  const struct tn_tables* t = &session->program->tables;
  size_t args = 0, params = 0;
  count_arguments(t, k->instances, &args, &params);
  if (epilogue) count_arguments(t, epilogue->instances, &args, &params);
  size_t bytes = sizeof(struct prepared) + k->instances.count * sizeof(struct instance) + args * sizeof(void*) +
                 params * sizeof(int64_t);
  struct prepared* p = calloc(1, bytes);
  if (!p) return tn_fail_memory(bytes, "the arguments of a step");
  void** arg = (void**)(p->instances + k->instances.count);
  p->params = (int64_t*)(arg + args);
  int64_t* param = p->params;
  for (uint32_t i = 0; i < k->instances.count; ++i) {
    const struct tenon_instance* n = &t->instances[k->instances.first + i];
    struct instance* to = &p->instances[i];
    to->buffers = arg;
    to->params = param;
    arg += n->args.count;
    param += n->params.count;
    if (!epilogue) continue;
    n = &t->instances[epilogue->instances.first + i];
    memcpy(&to->epilogue.kernel, &session->program->functions[epilogue->function], sizeof(tenon_kernel));
    to->epilogue.buffers = arg;
    to->epilogue.params = param;
    arg += n->args.count;
    param += n->params.count;
  }
  *out = session->prepared[k - t->kernels] = p;
  return TENON_OK;
}

static tenon_status fill_buffers(tenon_session* session, struct tenon_list args, void* const* buffers) {
  const struct tn_tables* t = &session->program->tables;
  void** to = (void**)(uintptr_t)buffers; /* of a struct prepared */
  tenon_status status = TENON_OK;
  for (uint32_t a = 0; a < args.count && status == TENON_OK; ++a, ++to) {
    void* pointer = NULL;
    status = tn_pointer_of(session, t->refs[args.first + a] & ~TENON_WRITTEN, &pointer);
    if (*to != pointer) *to = pointer; /* lines that nobody writes stay in the caches of all threads */
  }
  return status;
}

static tenon_status fill_params(tenon_session* session, struct prepared* p, struct tenon_list params, int64_t** to) {
  const struct tn_tables* t = &session->program->tables;
  tenon_status status = TENON_OK;
  for (uint32_t i = 0; i < params.count && status == TENON_OK; ++i) {
    tn_value value = {.i = 0};
    uint32_t expr = t->refs[params.first + i];
    status = tn_value_of(session, expr, &value, "a parameter of a kernel");
    p->dynamic |= session->program->expr_class[expr] == TN_DYNAMIC;
    *(*to)++ = value.i;
  }
  return status;
}

static tenon_status compute(tenon_session* session, const struct tenon_kernel_step* k,
                            const struct tenon_kernel_step* epilogue, struct prepared* p) {
  const struct tn_tables* t = &session->program->tables;
  tenon_status status = TENON_OK;
  int64_t* param = p->params;
  p->generation = 0;
  p->chunks = 0;
  for (uint32_t i = 0; i < k->instances.count && status == TENON_OK; ++i) {
    const struct tenon_instance* n = &t->instances[k->instances.first + i];
    status = fill_params(session, p, n->params, &param);
    if (status == TENON_OK && epilogue)
      status = fill_params(session, p, t->instances[epilogue->instances.first + i].params, &param);
    if (status == TENON_OK) status = split(session, n->extent, n->grain, &p->instances[i], &p->chunks);
    const unsigned char* class = session->program->expr_class;
    p->dynamic |= class[n->extent] == TN_DYNAMIC || class[n->grain] == TN_DYNAMIC;
  }
  if (status == TENON_OK) p->generation = session->generation;
  return status;
}

tenon_status tn_run_kernel(tenon_session* session, const struct tenon_kernel_step* k,
                           const struct tenon_kernel_step* epilogue) {
  const tenon_program* program = session->program;
  const struct tn_tables* t = &program->tables;
  struct prepared* p = session->prepared[k - t->kernels];
  struct work work;
  begin_work(&work, k->instances.count);
  tenon_status status = p ? TENON_OK : lay_out(session, k, epilogue, &p);
  if (status == TENON_OK && (p->generation != session->generation || p->dynamic))
    status = compute(session, k, epilogue, p);
  if (status == TENON_OK) status = reserve_scratch(session, k->scratch, &work);
  for (uint32_t i = 0; i < k->instances.count && status == TENON_OK; ++i) {
    status = fill_buffers(session, t->instances[k->instances.first + i].args, p->instances[i].buffers);
    if (status == TENON_OK && epilogue)
      status =
          fill_buffers(session, t->instances[epilogue->instances.first + i].args, p->instances[i].epilogue.buffers);
  }
  if (status != TENON_OK || p->chunks == 0) return status;
  work.chunks = p->chunks;
  work.instances = p->instances;
  memcpy(&work.kernel, &program->functions[k->function], sizeof work.kernel);
  int code = run_work(session, &work);
  return code ? function_failed(session, code, k->function, k->guards, (struct tenon_list){0}) : TENON_OK;
}

void tn_prepared_release(tenon_session* session) {
  for (uint64_t i = 0; session->prepared && i < session->program->tables.header->kernels.count; ++i)
    free(session->prepared[i]);
  free(session->prepared);
}

struct call_context {
  tenon_session* session;
  const struct tenon_call_step* step;
  tenon_tensor* results;
  size_t work_used; /* of the session's blocks of work memory */
};

/* Blocks are kept for the next call. */
static void* reserve_work(const struct tenon_host_call* call, uint64_t bytes) {
  struct call_context* context = call->context;
  tenon_session* session = context->session;
  if (context->step->extent != TENON_NONE || bytes > INT64_MAX) return NULL;
  if (context->work_used == session->work_count) {
    struct tn_block* grown = realloc(session->work, (session->work_count + 1) * sizeof *grown);
    if (!grown) return NULL;
    session->work = grown;
    session->work[session->work_count++] = (struct tn_block){0};
  }
  struct tn_block* block = &session->work[context->work_used++];
  return tn_block_reserve(session, block, bytes ? bytes : 1, "a host function") == TENON_OK ? block->memory : NULL;
}

static int allocate_result(const struct tenon_host_call* call, uint32_t result, int32_t rank, const int64_t* sizes) {
  const struct call_context* context = call->context;
  tenon_session* session = context->session;
  const struct tn_tables* t = &session->program->tables;
  if (result >= context->step->results.count) return TENON_KERNEL_MEMORY;
  uint32_t buffer = t->refs[context->step->results.first + result] & ~TENON_WRITTEN;
  const struct tenon_buffer* b = &t->buffers[buffer];
  uint64_t bytes;
  tenon_tensor* tensor = &context->results[result];
  if (rank != b->rank || rank > TENON_MAX_RANK) return TENON_KERNEL_MEMORY;
  if (!(b->flags & TENON_BUFFER_DYNAMIC))
    return memcmp(tensor->sizes, sizes, (size_t)rank * sizeof *sizes) == 0 ? 0 : TENON_KERNEL_ARITHMETIC;
  tensor->dtype = b->dtype;
  tensor->rank = rank;
  memcpy(tensor->sizes, sizes, (size_t)rank * sizeof *sizes);
  if (!tn_contiguous_strides(rank, tensor->sizes, tensor->strides) ||
      !tn_extent(rank, tensor->sizes, tensor->strides, tenon_dtype_size(b->dtype), &bytes))
    return TENON_KERNEL_MEMORY;
  if (b->role == TENON_ROLE_OUTPUT) {
    if (tn_make_output(session, b->slot, tensor) != TENON_OK) return TENON_KERNEL_MEMORY;
    tensor->data = session->outputs[b->slot].data;
  } else {
    if (tn_block_reserve(session, &session->dynamic_blocks[buffer], bytes, "a result") != TENON_OK)
      return TENON_KERNEL_MEMORY;
    tensor->data = session->dynamic_blocks[buffer].memory;
    session->pointers[buffer] = tensor->data;
    session->extents[buffer] = bytes;
  }
  session->dynamic[buffer] = *tensor;
  return 0;
}

tenon_status tn_run_call(tenon_session* session, const struct tenon_call_step* c) {
  const tenon_program* program = session->program;
  const struct tn_tables* t = &program->tables;
  tenon_tensor* inputs = session->call_tensors;
  tenon_tensor* results = inputs + c->inputs.count;
  tenon_status status = grow((void**)&session->params, &session->params_room, c->params.count, sizeof(int64_t));
  for (uint32_t i = 0; i < c->inputs.count && status == TENON_OK; ++i)
    if (t->refs[c->inputs.first + i] == TENON_NONE) {
      memset(&inputs[i], 0, sizeof inputs[i]);
      inputs[i].dtype = -1;
    } else {
      status = tn_tensor_of(session, t->refs[c->inputs.first + i] & ~TENON_WRITTEN, &inputs[i]);
    }
  for (uint32_t i = 0; i < c->results.count && status == TENON_OK; ++i) {
    uint32_t buffer = t->refs[c->results.first + i] & ~TENON_WRITTEN;
    if (t->buffers[buffer].flags & TENON_BUFFER_DYNAMIC) {
      memset(&results[i], 0, sizeof results[i]);
      results[i].dtype = t->buffers[buffer].dtype;
      results[i].rank = t->buffers[buffer].rank;
    } else {
      status = tn_tensor_of(session, buffer, &results[i]);
    }
  }
  for (uint32_t i = 0; i < c->params.count && status == TENON_OK; ++i) {
    tn_value value = {.i = 0};
    status = tn_value_of(session, t->refs[c->params.first + i], &value, "a parameter of a call");
    session->params[i] = value.i;
  }
  struct work work;
  begin_work(&work, 1);
  struct instance whole = {.extent = 1, .grain = 1};
  if (status == TENON_OK) status = reserve_scratch(session, c->scratch, &work);
  if (status == TENON_OK) {
    if (c->extent != TENON_NONE) status = split(session, c->extent, c->grain, &whole, &work.chunks);
    else work.chunks = 1;
  }
  if (status != TENON_OK) return status;
  struct call_context context = {session, c, results, 0};
  struct tenon_host_call call = {.inputs = inputs,
                                 .results = results,
                                 .params = session->params,
                                 .counts = session->counts,
                                 .input_count = c->inputs.count,
                                 .result_count = c->results.count,
                                 .param_count = c->params.count,
                                 .context = &context,
                                 .allocate = allocate_result,
                                 .work = reserve_work};
  memset(session->counts, 0, sizeof session->counts);
  work.instances = &whole;
  work.call = &call;
  memcpy(&work.host, &program->functions[c->function], sizeof work.host);
  int code = work.chunks ? run_work(session, &work) : 0;
  if (code) return function_failed(session, code, c->function, c->guards, c->errors);
  for (uint32_t i = 0; i < c->results.count; ++i)
    if (!results[i].data && (t->buffers[t->refs[c->results.first + i] & ~TENON_WRITTEN].flags & TENON_BUFFER_DYNAMIC))
      return tn_fail(TENON_CHECK_FAILED, "%s allocated no memory for its result %u",
                     tn_string(t, t->functions[c->function].name), i);
  return TENON_OK;
}
