/* One run: the caller's tensors are checked, sizes are bound, steps are executed. */
#include <stdlib.h>

#include "internal.h"

TN_COLD tenon_status tenon_session_create(tenon_program* program, tenon_session** out) {
  if (!program || !out) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_session_create: an argument is NULL");
  *out = NULL;
  const struct tenon_header* h = program->tables.header;
  tenon_session* s = calloc(1, sizeof *s);
  if (!s) return tn_fail_memory(sizeof *s, "a session");
  s->program = program;
  tn_program_retain(program);
  s->generation = 1;
  s->symbols = calloc(h->symbols.count + 1, sizeof *s->symbols);
  s->last_entry = calloc(h->symbols.count + 1, sizeof *s->last_entry);
  s->cache = calloc(h->exprs.count + 1, sizeof *s->cache);
  s->pointers = calloc(h->buffers.count + 1, sizeof *s->pointers);
  s->extents = calloc(h->buffers.count + 1, sizeof *s->extents);
  s->blocks = calloc(h->segments.count + 1, sizeof *s->blocks);
  s->call_tensors = calloc(program->max_call_tensors + 1, sizeof *s->call_tensors);
  s->prepared = calloc(h->kernels.count + 1, sizeof *s->prepared);
  s->made = calloc(h->outputs.count + 1, 1);
  s->ranges = calloc(h->inputs.count + h->outputs.count + 1, sizeof *s->ranges);
  bool good = s->symbols && s->last_entry && s->cache && s->pointers && s->extents && s->blocks && s->call_tensors &&
              s->prepared && s->made && s->ranges && tn_plans_create(s);
  if (good && program->has_dynamic) {
    s->dynamic = calloc(h->buffers.count, sizeof *s->dynamic);
    s->dynamic_blocks = calloc(h->buffers.count, sizeof *s->dynamic_blocks);
    good = s->dynamic && s->dynamic_blocks;
  }
  if (!good) {
    tenon_session_destroy(s);
    return tn_fail_memory(h->size, "a session");
  }
  *out = s;
  return TENON_OK;
}

TN_COLD void tenon_session_destroy(tenon_session* s) {
  if (!s) return;
  const struct tenon_header* h = s->program->tables.header;
  const tenon_allocator* allocator = &s->program->allocator;
  tn_plans_destroy(s);
  for (size_t i = 0; s->blocks && i < h->segments.count; ++i)
    tn_release(allocator, s->blocks[i].memory, s->blocks[i].size);
  for (size_t i = 0; s->dynamic_blocks && i < h->buffers.count; ++i)
    tn_release(allocator, s->dynamic_blocks[i].memory, s->dynamic_blocks[i].size);
  for (size_t i = 0; i < s->work_count; ++i) tn_release(allocator, s->work[i].memory, s->work[i].size);
  tn_release(allocator, s->scratch.memory, s->scratch.size);
  free(s->work);
  free(s->symbols);
  free(s->last_entry);
  free(s->cache);
  free(s->pointers);
  free(s->extents);
  free(s->dynamic);
  free(s->blocks);
  free(s->dynamic_blocks);
  tn_prepared_release(s);
  free(s->params);
  free(s->call_tensors);
  free(s->made);
  free(s->ranges);
  tenon_program_close(s->program);
  free(s);
}

size_t tenon_session_memory(const tenon_session* s) {
  if (!s) return 0;
  const struct tenon_header* h = s->program->tables.header;
  size_t sum = s->scratch.size;
  for (size_t i = 0; i < h->segments.count; ++i) sum += s->blocks[i].size;
  for (size_t i = 0; i < s->work_count; ++i) sum += s->work[i].size;
  for (size_t i = 0; s->dynamic_blocks && i < h->buffers.count; ++i) sum += s->dynamic_blocks[i].size;
  return sum;
}

void tenon_session_set_output_allocator(tenon_session* session, tenon_output_allocator allocate, void* context) {
  if (!session) return;
  session->output_allocator = allocate;
  session->output_context = context;
}

void tenon_session_observe(tenon_session* session, tenon_step_observer observer, void* context) {
  if (!session) return;
  session->observer = observer;
  session->observer_context = context;
}

void tenon_output_release(tenon_tensor* output) {
  if (!output) return;
  free(output->data);
  output->data = NULL;
}

/* ---- The caller's tensors ---- */

static const char* input_name(const tenon_session* s, size_t i) {
  return tn_string(&s->program->tables, s->program->tables.inputs[i].name);
}
static const char* output_name(const tenon_session* s, size_t i) {
  return tn_string(&s->program->tables, s->program->tables.outputs[i].name);
}

static bool is_complex(int32_t dtype) { return dtype >= TENON_C32 && dtype <= TENON_C128; }

/* What needs no symbols: dtype, rank, signs, alignment. `kind` is "input" or "output". */
static tenon_status check_plain(const tenon_tensor* tensor, const struct tenon_buffer* b, const char* kind,
                                const char* name, uint64_t* extent) {
  if (tensor->dtype != b->dtype)
    return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': expected %s, got %s", kind, name, tenon_dtype_name(b->dtype),
                   tenon_dtype_name(tensor->dtype));
  if (tensor->rank != b->rank)
    return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': expected %d dimensions, got %d", kind, name, b->rank,
                   tensor->rank);
  size_t item = tenon_dtype_size(b->dtype), alignment = is_complex(b->dtype) ? item / 2 : item;
  if (!tn_extent(tensor->rank, tensor->sizes, tensor->strides, item, extent))
    return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': its sizes or strides are negative or too large", kind, name);
  if (!tensor->data && *extent > 0) return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': its data is NULL", kind, name);
  if ((uintptr_t)tensor->data % alignment != 0)
    return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': its data is not aligned to the %zu bytes of %s", kind, name,
                   alignment, tenon_dtype_name(b->dtype));
  return TENON_OK;
}

static TN_COLD tenon_status wrong_size(const char* kind, const char* name, int32_t d, int64_t expected, int64_t got) {
  return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': expected size %lld in dimension %d, got %lld", kind, name,
                 (long long)expected, d, (long long)got);
}

/* Sizes and strides against what the tables say. */
static tenon_status check_described(tenon_session* s, const tenon_tensor* tensor, uint32_t buffer, const char* kind,
                                    const char* name) {
  const struct tn_tables* t = &s->program->tables;
  const struct tenon_buffer* b = &t->buffers[buffer];
  bool empty = false;
  for (int32_t d = 0; d < b->rank; ++d) {
    tn_value size;
    tenon_status status = tn_value_of(s, b->sizes + (uint32_t)d, &size, "a size");
    if (status != TENON_OK) return status;
    if (size.i != tensor->sizes[d]) return wrong_size(kind, name, d, size.i, tensor->sizes[d]);
    empty |= size.i == 0;
  }
  if (empty) return TENON_OK;
  if (b->strides == TENON_NONE)
    return tn_is_contiguous(tensor)
               ? TENON_OK
               : tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': expected a contiguous tensor; copy it into one", kind, name);
  for (int32_t d = 0; d < b->rank; ++d) {
    tn_value stride;
    tenon_status status = tn_value_of(s, b->strides + (uint32_t)d, &stride, "a stride");
    if (status != TENON_OK) return status;
    if (tensor->sizes[d] > 1 && stride.i != tensor->strides[d])
      return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s': expected stride %lld in dimension %d, got %lld", kind, name,
                     (long long)stride.i, d, (long long)tensor->strides[d]);
  }
  return TENON_OK;
}

static bool entry_changed(const tenon_session* s) {
  const struct tn_tables* t = &s->program->tables;
  if (!s->has_last_entry) return true;
  for (uint32_t i = 0; i < t->header->entry.count; ++i) {
    uint32_t symbol = t->binds[t->header->entry.first + i].symbol;
    if (s->symbols[symbol].i != s->last_entry[symbol].i) return true;
  }
  return false;
}

static tenon_status take_inputs(tenon_session* s, const tenon_tensor* inputs, size_t count) {
  const struct tn_tables* t = &s->program->tables;
  const struct tenon_header* h = t->header;
  tenon_status status = TENON_OK;
  if (count != h->inputs.count)
    return tn_fail(TENON_INVALID_ARGUMENT, "expected %zu inputs, got %zu", (size_t)h->inputs.count, count);
  if (count && !inputs) return tn_fail(TENON_INVALID_ARGUMENT, "expected %zu inputs, got NULL", count);
  for (size_t i = 0; i < count && status == TENON_OK; ++i) {
    uint32_t buffer = t->inputs[i].buffer;
    status = check_plain(&inputs[i], &t->buffers[buffer], "input", input_name(s, i), &s->extents[buffer]);
    s->pointers[buffer] = inputs[i].data;
  }
  for (uint32_t i = 0; i < h->entry.count && status == TENON_OK; ++i)
    status = tn_bind(s, &t->binds[h->entry.first + i], inputs);
  if (status != TENON_OK) {
    s->has_last_entry = false;
    return status;
  }
  if (entry_changed(s)) {
    ++s->generation;
    memcpy(s->last_entry, s->symbols, h->symbols.count * sizeof *s->symbols);
    tn_pace_restart(&s->pace);
    s->has_last_entry = true;
  }
  for (size_t i = 0; i < count && status == TENON_OK; ++i)
    status = check_described(s, &inputs[i], t->inputs[i].buffer, "input", input_name(s, i));
  return status;
}

tenon_status tn_make_output(tenon_session* s, uint32_t output, const tenon_tensor* described) {
  const struct tn_tables* t = &s->program->tables;
  uint32_t buffer = t->outputs[output].buffer;
  uint64_t bytes;
  if (!tn_extent(described->rank, described->sizes, described->strides, tenon_dtype_size(described->dtype), &bytes))
    return tn_fail(TENON_CHECK_FAILED, "output '%s' would be too large", output_name(s, output));
  void* memory = NULL;
  if (s->output_allocator) memory = s->output_allocator(s->output_context, output, bytes ? bytes : 1);
  else memory = tn_malloc.allocate(NULL, tn_round_up(bytes ? bytes : 1, TENON_ALIGNMENT), TENON_ALIGNMENT);
  if (!memory)
    return tn_fail(TENON_OUT_OF_MEMORY, "output '%s': no memory for %llu bytes", output_name(s, output),
                   (unsigned long long)bytes);
  if ((uintptr_t)memory % TENON_ALIGNMENT != 0)
    return tn_fail(TENON_INVALID_ARGUMENT, "output '%s': the allocator's memory is not aligned to %d bytes",
                   output_name(s, output), TENON_ALIGNMENT);
  if (s->made[output] && !s->output_allocator) free(s->outputs[output].data);
  s->outputs[output] = *described;
  s->outputs[output].data = memory;
  s->made[output] = 1;
  s->pointers[buffer] = memory;
  s->extents[buffer] = bytes;
  return TENON_OK;
}

static tenon_status take_outputs(tenon_session* s, tenon_tensor* outputs, size_t count) {
  const struct tn_tables* t = &s->program->tables;
  const struct tenon_header* h = t->header;
  tenon_status status = TENON_OK;
  if (count != h->outputs.count)
    return tn_fail(TENON_INVALID_ARGUMENT, "expected %zu outputs, got %zu", (size_t)h->outputs.count, count);
  if (count && !outputs) return tn_fail(TENON_INVALID_ARGUMENT, "expected %zu outputs, got NULL", count);
  s->outputs = outputs;
  memset(s->made, 0, h->outputs.count);
  for (size_t i = 0; i < count && status == TENON_OK; ++i) {
    uint32_t buffer = t->outputs[i].buffer;
    if (t->buffers[buffer].flags) {
      if (outputs[i].data)
        return tn_fail(TENON_INVALID_ARGUMENT,
                       "output '%s': its sizes depend on data, so its memory is allocated by the run; set data to NULL",
                       output_name(s, i));
      s->pointers[buffer] = NULL;
      s->extents[buffer] = 0;
      continue;
    }
    if (!outputs[i].data) continue; /* below, once everything was checked */
    status = check_plain(&outputs[i], &t->buffers[buffer], "output", output_name(s, i), &s->extents[buffer]);
    if (status == TENON_OK) status = check_described(s, &outputs[i], buffer, "output", output_name(s, i));
    s->pointers[buffer] = outputs[i].data;
  }
  return status;
}

static tenon_status make_missing_outputs(tenon_session* s, size_t count) {
  const struct tn_tables* t = &s->program->tables;
  tenon_status status = TENON_OK;
  for (size_t i = 0; i < count && status == TENON_OK; ++i) {
    uint32_t buffer = t->outputs[i].buffer;
    if (s->outputs[i].data || t->buffers[buffer].flags) continue;
    tenon_tensor described = {0};
    status = tn_describe(s, buffer, &described);
    if (status == TENON_OK) status = tn_make_output(s, (uint32_t)i, &described);
  }
  return status;
}

/* ---- Overlap ---- */

/* The caller's tensor number i, inputs first; false if it has no memory yet or none at all. */
static bool range_of(const tenon_session* s, size_t inputs, size_t i, struct tn_range* range) {
  const struct tn_tables* t = &s->program->tables;
  bool is_input = i < inputs;
  uint32_t buffer = is_input ? t->inputs[i].buffer : t->outputs[i - inputs].buffer;
  if (!is_input && (!s->outputs[i - inputs].data || t->buffers[buffer].flags)) return false;
  range->start = (uintptr_t)s->pointers[buffer];
  range->end = range->start + s->extents[buffer];
  range->written = is_input ? t->inputs[i].written != 0 : true;
  return range->start != range->end;
}

/* Orders by start: a heap sort, because qsort may allocate. */
static void sift(struct tn_range* ranges, size_t root, size_t count) {
  for (size_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && ranges[child + 1].start > ranges[child].start) ++child;
    if (ranges[root].start >= ranges[child].start) return;
    struct tn_range swap = ranges[root];
    ranges[root] = ranges[child];
    ranges[child] = swap;
  }
}
static void sort_ranges(struct tn_range* ranges, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift(ranges, i, count);
  while (count > 1) {
    struct tn_range swap = ranges[0];
    ranges[0] = ranges[--count];
    ranges[count] = swap;
    sift(ranges, 0, count);
  }
}

/* Names the pair, unless it is an input that was donated for an output. */
static TN_COLD tenon_status find_overlap(const tenon_session* s, size_t inputs, size_t count) {
  const struct tn_tables* t = &s->program->tables;
  for (size_t w = 0; w < count; ++w) {
    struct tn_range written, other;
    if (!range_of(s, inputs, w, &written) || !written.written) continue;
    for (size_t o = 0; o < count; ++o) {
      if (o == w || !range_of(s, inputs, o, &other) || other.start >= written.end || other.end <= written.start)
        continue;
      bool is_input = w < inputs, other_input = o < inputs;
      size_t output = is_input ? o : w, input = is_input ? w : o;
      if (is_input != other_input && t->outputs[output - inputs].donor == input && other.start == written.start)
        continue;
      return tn_fail(TENON_INVALID_ARGUMENT, "%s '%s' is written, but overlaps %s '%s'; hand in memory of its own",
                     is_input ? "input" : "output", is_input ? input_name(s, w) : output_name(s, w - inputs),
                     other_input ? "input" : "output", other_input ? input_name(s, o) : output_name(s, o - inputs));
    }
  }
  return TENON_OK;
}

/* Memory that is written must not overlap any other. */
static tenon_status check_overlap(tenon_session* s, size_t inputs, size_t outputs) {
  size_t count = 0;
  for (size_t i = 0; i < inputs + outputs; ++i) count += range_of(s, inputs, i, &s->ranges[count]);
  sort_ranges(s->ranges, count);
  uintptr_t end = 0, written_end = 0;
  for (size_t i = 0; i < count; ++i) {
    const struct tn_range* range = &s->ranges[i];
    if (range->start < (range->written ? end : written_end)) return find_overlap(s, inputs, inputs + outputs);
    if (range->end > end) end = range->end;
    if (range->written && range->end > written_end) written_end = range->end;
  }
  return TENON_OK;
}

static void release_made(tenon_session* s, size_t count) {
  if (s->output_allocator) return;
  for (size_t i = 0; i < count; ++i)
    if (s->made[i]) tenon_output_release(&s->outputs[i]);
}

static tenon_status begin(tenon_session* session, const char* function) {
  if (!session) return tn_fail(TENON_INVALID_ARGUMENT, "%s: session is NULL", function);
  if (atomic_flag_test_and_set_explicit(&session->running, memory_order_acquire))
    return tn_fail(TENON_BUSY, "%s: the session is running in another thread; make one for each thread", function);
  return TENON_OK;
}
static tenon_status finish(tenon_session* session, tenon_status status) {
  atomic_flag_clear_explicit(&session->running, memory_order_release);
  return status;
}

TN_COLD tenon_status tenon_session_describe_outputs(tenon_session* s, const tenon_tensor* inputs, size_t input_count,
                                                    tenon_tensor* outputs, size_t output_count) {
  tenon_status status = begin(s, "tenon_session_describe_outputs");
  if (status != TENON_OK) return status;
  const struct tn_tables* t = &s->program->tables;
  status = take_inputs(s, inputs, input_count);
  if (status == TENON_OK && (output_count != t->header->outputs.count || (output_count && !outputs)))
    status = tn_fail(TENON_INVALID_ARGUMENT, "expected %zu outputs, got %zu", (size_t)t->header->outputs.count,
                     output_count);
  for (size_t i = 0; i < output_count && status == TENON_OK; ++i) {
    const struct tenon_buffer* b = &t->buffers[t->outputs[i].buffer];
    memset(&outputs[i], 0, sizeof outputs[i]);
    if (!b->flags) {
      status = tn_describe(s, t->outputs[i].buffer, &outputs[i]);
      continue;
    }
    outputs[i].dtype = b->dtype;
    outputs[i].rank = b->rank;
    for (int32_t d = 0; d < b->rank; ++d) outputs[i].sizes[d] = -1;
  }
  return finish(s, status);
}

static tenon_status run_main(tenon_session* s) {
  const tenon_program* program = s->program;
  bool may_share = program->executor.pool && program->executor.participants > 1;
  if (!may_share || !tn_pace_wants(&s->pace)) return tn_run_steps(s, program->tables.header->main);
  int64_t from = tn_nanoseconds();
  tenon_status status = tn_run_steps(s, program->tables.header->main);
  tn_pace_took(&s->pace, from, tn_nanoseconds());
  return status;
}

tenon_status tenon_session_run(tenon_session* s, tenon_state* state, const tenon_tensor* inputs, size_t input_count,
                               tenon_tensor* outputs, size_t output_count) {
  tenon_status status = begin(s, "tenon_session_run");
  if (status != TENON_OK) return status;
  const tenon_program* program = s->program;
  if (!state) return finish(s, tn_fail(TENON_INVALID_ARGUMENT, "tenon_session_run: state is NULL"));
  if (tn_state_program(state) != program)
    return finish(s, tn_fail(TENON_INVALID_ARGUMENT, "tenon_session_run: the state belongs to another program"));
  uint32_t control = tn_float_control_default();
  status = take_inputs(s, inputs, input_count);
  if (status == TENON_OK) status = take_outputs(s, outputs, output_count);
  if (status == TENON_OK) status = check_overlap(s, input_count, output_count);
  if (status == TENON_OK) {
    bool writes = program->writes_state;
    s->wrote = false;
    status = tn_state_begin(state, s, writes);
    if (status == TENON_OK) {
      s->state_pointers = tn_state_pointers(state);
      s->wrote = false;
      status = make_missing_outputs(s, output_count);
      if (status == TENON_OK) status = run_main(s);
      tn_state_end(state, writes, s->wrote, status != TENON_OK);
    }
    if (status != TENON_OK) release_made(s, output_count);
  }
  tn_float_control_restore(control);
  return finish(s, status);
}
