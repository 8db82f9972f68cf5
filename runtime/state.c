/* What a program may change. Entries that nobody has changed lie in the artifact's weights; the others in memory of
   their own. */
#include <pthread.h>
#include <stdlib.h>

#include "internal.h"
#include "open_tables.h"

enum owner { of_artifact, of_state, of_caller };

struct tenon_state {
  tenon_program* program;
  pthread_rwlock_t lock; /* runs that only read hold it together; everything that writes holds it alone */
  void** pointers;       /* by buffer that is no view: state, derived, constant */
  unsigned char* owned;  /* by buffer: whose memory pointers[b] is */
  _Atomic uint64_t version;
  bool stale; /* derived buffers do not follow from the state */
  bool damaged;
};

const tenon_program* tn_state_program(const tenon_state* state) { return state->program; }
void* const* tn_state_pointers(const tenon_state* state) { return state->pointers; }

static uint64_t bytes_of(const tenon_program* program, uint32_t buffer) {
  tn_value value;
  const char* wrong = tn_evaluate(&program->tables, program->tables.buffers[buffer].bytes, NULL, &value);
  return wrong ? 0 : (uint64_t)value.i; /* verified: constant, and has a value */
}

static const unsigned char* initial(const tenon_program* program, uint32_t buffer) {
  uint64_t weights = program->tables.buffers[buffer].weights;
  return weights == TENON_NO_WEIGHTS ? NULL : program->weights + weights;
}

/* Memory of its own, contents undefined. */
static tenon_status own(tenon_state* state, uint32_t buffer) {
  if (state->owned[buffer]) return TENON_OK;
  uint64_t bytes = bytes_of(state->program, buffer);
  void* memory = tn_allocate(&state->program->allocator, bytes);
  if (!memory) return tn_fail_memory(bytes, "the state");
  state->pointers[buffer] = memory;
  state->owned[buffer] = of_state;
  return TENON_OK;
}

static void fill(tenon_state* state, uint32_t buffer, const void* from) {
  uint64_t bytes = bytes_of(state->program, buffer);
  if (from) memcpy(state->pointers[buffer], from, bytes);
  else memset(state->pointers[buffer], 0, bytes);
}

/* A writable copy of what the buffer holds. */
static tenon_status own_copy(tenon_state* state, uint32_t buffer) {
  if (state->owned[buffer]) return TENON_OK;
  const void* before = state->pointers[buffer];
  tenon_status status = own(state, buffer);
  if (status == TENON_OK) fill(state, buffer, before);
  return status;
}

/* `keep_lent`: what lies in the caller's memory stays as it is. */
static tenon_status set_initial(tenon_state* state, bool keep_lent) {
  const tenon_program* program = state->program;
  const struct tn_tables* t = &program->tables;
  tenon_status status = TENON_OK;
  state->stale = false;
  for (uint32_t b = 0; b < t->header->buffers.count && status == TENON_OK; ++b) {
    const struct tenon_buffer* buffer = &t->buffers[b];
    if (buffer->root != TENON_NONE || (keep_lent && state->owned[b] == of_caller)) continue;
    const unsigned char* weights = initial(program, b);
    switch ((enum tenon_role)buffer->role) {
      case TENON_ROLE_CONSTANT: state->pointers[b] = (void*)(uintptr_t)weights; break;
      case TENON_ROLE_STATE:
      case TENON_ROLE_DERIVED: {
        bool written = buffer->role == TENON_ROLE_STATE ? program->state_written[program->state_of[b]] : false;
        if (buffer->role == TENON_ROLE_DERIVED && !weights) { /* made when it is first needed */
          state->stale = true;
          break;
        }
        if (buffer->role == TENON_ROLE_DERIVED && program->writes_state) written = true; /* by main, maybe */
        if (state->owned[b] || written || !weights) {
          status = own(state, b);
          if (status == TENON_OK) fill(state, b, weights);
          if (weights) tn_program_forget_weights(program, weights, bytes_of(program, b));
        } else {
          state->pointers[b] = (void*)(uintptr_t)weights;
        }
        break;
      }
      case TENON_ROLE_INPUT:
      case TENON_ROLE_OUTPUT:
      case TENON_ROLE_ARENA: break;
    }
  }
  state->damaged = status != TENON_OK;
  return status;
}

/* The caller's memory takes the place of our own where an entry lies in it as it would in ours. */
static void lend(tenon_state* state, struct tn_lent* lent) {
  const struct tn_tables* t = &state->program->tables;
  lent->taken = false;
  for (uint32_t i = 0; i < t->header->states.count; ++i) {
    uint32_t b = t->states[i].buffer;
    if (strcmp(tn_string(t, t->states[i].name), lent->name) != 0 || b == TENON_NONE) continue;
    if (t->buffers[b].role != TENON_ROLE_STATE || t->buffers[b].root != TENON_NONE) continue;
    if (t->buffers[b].strides != TENON_NONE || (uintptr_t)lent->data % TENON_ALIGNMENT != 0) continue;
    if (lent->size < bytes_of(state->program, b) || lent->dtype != t->buffers[b].dtype) continue;
    state->pointers[b] = lent->data;
    state->owned[b] = of_caller;
    lent->taken = true;
  }
}

tenon_status tenon_state_create(tenon_program* program, tenon_state** out) {
  return tn_state_create_over(program, NULL, 0, out);
}

tenon_status tn_state_create_over(tenon_program* program, struct tn_lent* lent, size_t count, tenon_state** out) {
  if (!program || !out) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_create: an argument is NULL");
  *out = NULL;
  size_t buffers = program->tables.header->buffers.count;
  tenon_state* state = calloc(1, sizeof *state);
  if (!state) return tn_fail_memory(sizeof *state, "the state");
  state->program = program;
  tn_program_retain(program);
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
#ifdef __GLIBC__
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
  pthread_rwlock_init(&state->lock, &attributes);
  pthread_rwlockattr_destroy(&attributes);
  state->pointers = calloc(buffers + 1, sizeof *state->pointers);
  state->owned = calloc(buffers + 1, 1);
  tenon_status status = state->pointers && state->owned ? TENON_OK : tn_fail_memory(buffers, "the state");
  for (size_t i = 0; i < count && status == TENON_OK; ++i) lend(state, &lent[i]);
  if (status == TENON_OK) status = set_initial(state, true);
  if (status != TENON_OK) {
    tenon_state_destroy(state);
    return status;
  }
  *out = state;
  return TENON_OK;
}

void tenon_state_destroy(tenon_state* state) {
  if (!state) return;
  for (uint32_t b = 0; state->owned && b < state->program->tables.header->buffers.count; ++b)
    if (state->owned[b] == of_state)
      tn_release(&state->program->allocator, state->pointers[b], bytes_of(state->program, b));
  free(state->pointers);
  free(state->owned);
  pthread_rwlock_destroy(&state->lock);
  tenon_program_close(state->program);
  free(state);
}

/* ---- Runs ---- */

static tenon_status refuse_damaged(void) {
  return tn_fail(TENON_DAMAGED,
                 "the state is damaged: a run failed after it had begun to write it; tenon_state_reset, "
                 "tenon_state_assign or tenon_state_load restore it");
}

/* The lock is held alone. */
static tenon_status update_derived(tenon_state* state, tenon_session* session) {
  const struct tn_tables* t = &state->program->tables;
  tenon_status status = TENON_OK;
  for (uint32_t b = 0; b < t->header->buffers.count && status == TENON_OK; ++b)
    if (t->buffers[b].root == TENON_NONE && t->buffers[b].role == TENON_ROLE_DERIVED) status = own(state, b);
  session->state_pointers = state->pointers;
  if (status == TENON_OK) status = tn_run_steps(session, t->header->on_state);
  if (status == TENON_OK) state->stale = false;
  return status;
}

tenon_status tn_state_begin(tenon_state* state, tenon_session* session, bool writes) {
  for (;;) {
    bool alone = writes;
    if (alone) pthread_rwlock_wrlock(&state->lock);
    else pthread_rwlock_rdlock(&state->lock);
    if (state->stale && !alone && !state->damaged) {
      pthread_rwlock_unlock(&state->lock);
      pthread_rwlock_wrlock(&state->lock);
      alone = true;
    }
    tenon_status status = TENON_OK;
    if (state->damaged) status = refuse_damaged();
    else if (state->stale) status = update_derived(state, session);
    if (status == TENON_OK && alone == writes) return TENON_OK;
    pthread_rwlock_unlock(&state->lock);
    if (status != TENON_OK) return status;
  }
}

void tn_state_end(tenon_state* state, bool writes, bool wrote, bool failed) {
  if (writes && wrote) {
    atomic_fetch_add_explicit(&state->version, 1, memory_order_relaxed);
    if (failed) state->damaged = true;
    if (state->program->on_state_reads_written) state->stale = true;
  }
  pthread_rwlock_unlock(&state->lock);
}

/* ---- From outside ---- */

/* The lock is held alone. */
static void changed(tenon_state* state) {
  atomic_fetch_add_explicit(&state->version, 1, memory_order_relaxed);
  if (state->program->tables.header->on_state.count > 0) state->stale = true;
}

void tn_state_changed(tenon_state* state) {
  pthread_rwlock_wrlock(&state->lock);
  changed(state);
  pthread_rwlock_unlock(&state->lock);
}

uint64_t tenon_state_version(const tenon_state* state) {
  return state ? atomic_load_explicit(&((tenon_state*)(uintptr_t)state)->version, memory_order_relaxed) : 0;
}

tenon_status tenon_state_reset(tenon_state* state) {
  if (!state) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_reset: state is NULL");
  pthread_rwlock_wrlock(&state->lock);
  tenon_status status = set_initial(state, false);
  atomic_fetch_add_explicit(&state->version, 1, memory_order_relaxed);
  pthread_rwlock_unlock(&state->lock);
  return status;
}

tenon_status tenon_state_assign(tenon_state* state, const tenon_state* from) {
  if (!state || !from) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_assign: an argument is NULL");
  if (state == from) return TENON_OK;
  if (state->program != from->program)
    return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_assign: the states belong to different programs");
  pthread_rwlock_t* source = (pthread_rwlock_t*)(uintptr_t)&from->lock;
  if ((uintptr_t)state < (uintptr_t)from) { /* always in the same order, or two assignments could wait for each other */
    pthread_rwlock_wrlock(&state->lock);
    pthread_rwlock_rdlock(source);
  } else {
    pthread_rwlock_rdlock(source);
    pthread_rwlock_wrlock(&state->lock);
  }
  tenon_status status = from->damaged ? refuse_damaged() : TENON_OK;
  for (uint32_t b = 0; b < state->program->tables.header->buffers.count && status == TENON_OK; ++b) {
    if (!from->pointers[b] || from->pointers[b] == state->pointers[b]) continue;
    status = own(state, b);
    if (status == TENON_OK) fill(state, b, from->pointers[b]);
    else state->damaged = true;
  }
  if (status == TENON_OK) {
    state->damaged = false;
    state->stale = from->stale;
    atomic_fetch_add_explicit(&state->version, 1, memory_order_relaxed);
  }
  pthread_rwlock_unlock(source);
  pthread_rwlock_unlock(&state->lock);
  return status;
}

static tenon_status find_entry(const tenon_state* state, const char* name, uint32_t* buffer) {
  const struct tn_tables* t = &state->program->tables;
  for (uint32_t i = 0; i < t->header->states.count; ++i) {
    if (strcmp(tn_string(t, t->states[i].name), name) != 0) continue;
    *buffer = t->states[i].buffer;
    if (*buffer != TENON_NONE) return TENON_OK;
    return tn_fail(TENON_INVALID_ARGUMENT,
                   "'%s' is frozen: the artifact holds only packed forms of it; compile the program with --updatable",
                   name);
  }
  return tn_fail(TENON_INVALID_ARGUMENT, "the program has no state entry '%s'", name);
}

/* Between the caller's contiguous tensor and an entry, which may lie in another order. */
static void copy_entry(const tenon_state* state, uint32_t buffer, const tenon_tensor* tensor, bool in) {
  const struct tn_tables* t = &state->program->tables;
  const struct tenon_buffer* b = &t->buffers[buffer];
  size_t item = tenon_dtype_size(b->dtype);
  int64_t strides[TENON_MAX_RANK], at[TENON_MAX_RANK] = {0};
  for (int32_t d = 0; d < b->rank; ++d) {
    tn_value stride;
    tn_evaluate(t, b->strides + (uint32_t)d, NULL, &stride);
    strides[d] = stride.i;
  }
  unsigned char* outside = tensor->data;
  for (;;) {
    int64_t offset = 0;
    for (int32_t d = 0; d < b->rank; ++d) offset += at[d] * strides[d];
    unsigned char* inside = (unsigned char*)state->pointers[buffer] + offset * (int64_t)item;
    if (in) memcpy(inside, outside, item);
    else memcpy(outside, inside, item);
    outside += item;
    int32_t d = b->rank - 1;
    while (d >= 0 && ++at[d] == tensor->sizes[d]) at[d--] = 0;
    if (d < 0) return;
  }
}

/* The tensor against the entry's dtype and sizes. */
static tenon_status check_entry(const tenon_state* state, uint32_t buffer, const char* name, const tenon_tensor* tensor,
                                uint64_t* bytes) {
  const struct tn_tables* t = &state->program->tables;
  const struct tenon_buffer* b = &t->buffers[buffer];
  if (tensor->dtype != b->dtype)
    return tn_fail(TENON_INVALID_ARGUMENT, "'%s': expected %s, got %s", name, tenon_dtype_name(b->dtype),
                   tenon_dtype_name(tensor->dtype));
  if (tensor->rank != b->rank)
    return tn_fail(TENON_INVALID_ARGUMENT, "'%s': expected %d dimensions, got %d", name, b->rank, tensor->rank);
  for (int32_t d = 0; d < b->rank; ++d) {
    tn_value size;
    tn_evaluate(t, b->sizes + (uint32_t)d, NULL, &size);
    if (size.i != tensor->sizes[d])
      return tn_fail(TENON_INVALID_ARGUMENT, "'%s': expected size %lld in dimension %d, got %lld", name,
                     (long long)size.i, d, (long long)tensor->sizes[d]);
  }
  if (!tn_is_contiguous(tensor))
    return tn_fail(TENON_INVALID_ARGUMENT, "'%s': expected a contiguous tensor; copy it into one", name);
  tn_extent(tensor->rank, tensor->sizes, tensor->strides, tenon_dtype_size(tensor->dtype), bytes);
  if (*bytes > 0 && !tensor->data) return tn_fail(TENON_INVALID_ARGUMENT, "'%s': its data is NULL", name);
  return TENON_OK;
}

tenon_status tenon_state_get(const tenon_state* state, const char* name, tenon_tensor* tensor) {
  if (!state || !name || !tensor) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_get: an argument is NULL");
  uint32_t buffer;
  uint64_t bytes;
  tenon_status status = find_entry(state, name, &buffer);
  if (status == TENON_OK) status = check_entry(state, buffer, name, tensor, &bytes);
  if (status != TENON_OK) return status;
  pthread_rwlock_t* lock = (pthread_rwlock_t*)(uintptr_t)&state->lock;
  pthread_rwlock_rdlock(lock);
  if (state->damaged) status = refuse_damaged();
  else if (bytes && state->program->tables.buffers[buffer].strides != TENON_NONE)
    copy_entry(state, buffer, tensor, false);
  else if (bytes) memcpy(tensor->data, state->pointers[buffer], bytes);
  pthread_rwlock_unlock(lock);
  return status;
}

tenon_status tenon_state_set(tenon_state* state, const char* name, const tenon_tensor* tensor) {
  if (!state || !name || !tensor) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_set: an argument is NULL");
  uint32_t buffer;
  uint64_t bytes;
  tenon_status status = find_entry(state, name, &buffer);
  if (status == TENON_OK) status = check_entry(state, buffer, name, tensor, &bytes);
  if (status != TENON_OK) return status;
  pthread_rwlock_wrlock(&state->lock);
  status = own_copy(state, buffer); /* bytes beyond the tensor's, if any, stay */
  if (status == TENON_OK) {
    if (bytes && state->program->tables.buffers[buffer].strides != TENON_NONE) copy_entry(state, buffer, tensor, true);
    else if (bytes) memcpy(state->pointers[buffer], tensor->data, bytes);
    changed(state);
  }
  pthread_rwlock_unlock(&state->lock);
  return status;
}

tenon_status tenon_state_seed(tenon_state* state, uint64_t seed) {
  if (!state) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_seed: state is NULL");
  const struct tn_tables* t = &state->program->tables;
  for (uint32_t i = 0; i < t->header->states.count; ++i) {
    if (t->states[i].kind != TENON_STATE_RANDOM || t->states[i].buffer == TENON_NONE) continue;
    int64_t values[2] = {(int64_t)seed, 0};
    tenon_tensor tensor = {.data = values, .dtype = TENON_I64, .rank = 1, .sizes = {2}, .strides = {1}};
    return tenon_state_set(state, tn_string(t, t->states[i].name), &tensor);
  }
  return tn_fail(TENON_INVALID_ARGUMENT, "the program draws no random numbers, so it has no random state to seed");
}

/* ---- For state_file.c ---- */

void tn_state_lock(const tenon_state* state, bool writes) {
  pthread_rwlock_t* lock = (pthread_rwlock_t*)(uintptr_t)&state->lock;
  if (writes) pthread_rwlock_wrlock(lock);
  else pthread_rwlock_rdlock(lock);
}
void tn_state_unlock(const tenon_state* state) { pthread_rwlock_unlock((pthread_rwlock_t*)(uintptr_t)&state->lock); }
bool tn_state_damaged(const tenon_state* state) { return state->damaged; }
tenon_status tn_state_refuse_damaged(void) { return refuse_damaged(); }
tenon_status tn_state_writable(tenon_state* state, uint32_t buffer) { return own_copy(state, buffer); }
void tn_state_loaded(tenon_state* state) {
  state->damaged = false;
  changed(state);
}
