/* Executes steps: the interpreter of the tables. */
#include <stdio.h>
#include <time.h>

#include "internal.h"

/* ---- Binds and checks ---- */

static TN_COLD tenon_status out_of_range(const tenon_session* session, const struct tenon_bind* bind, int64_t value) {
  const struct tn_tables* t = &session->program->tables;
  const struct tenon_symbol* s = &t->symbols[bind->symbol];
  const char* name = bind->buffer == TENON_NONE ? "" : tn_string(t, t->buffers[bind->buffer].name);
  char subject[160];
  switch ((enum tenon_source)bind->source) {
    case TENON_SOURCE_SIZE:
      if (t->buffers[bind->buffer].role == TENON_ROLE_INPUT)
        snprintf(subject, sizeof subject, "input '%s': size %u", name, bind->index);
      else snprintf(subject, sizeof subject, "size %u of '%s'", bind->index, name);
      break;
    case TENON_SOURCE_STRIDE: snprintf(subject, sizeof subject, "input '%s': stride %u", name, bind->index); break;
    case TENON_SOURCE_ELEMENT: snprintf(subject, sizeof subject, "an element of '%s'", name); break;
    case TENON_SOURCE_COUNT:
    case TENON_SOURCE_EXPRESSION: snprintf(subject, sizeof subject, "%s", tn_string(t, s->name)); break;
  }
  return tn_fail(bind->source <= TENON_SOURCE_STRIDE ? TENON_INVALID_ARGUMENT : TENON_CHECK_FAILED,
                 "%s is %lld, but %s may be %lld to %lld", subject, (long long)value, tn_string(t, s->name),
                 (long long)s->lo, (long long)s->hi);
}

tenon_status tn_bind(tenon_session* session, const struct tenon_bind* bind, const tenon_tensor* inputs) {
  const struct tn_tables* t = &session->program->tables;
  tn_value value = {.i = 0};
  tenon_status status = TENON_OK;
  unsigned char* at;
  switch ((enum tenon_source)bind->source) {
    case TENON_SOURCE_SIZE:
    case TENON_SOURCE_STRIDE: {
      const struct tenon_buffer* b = &t->buffers[bind->buffer];
      const tenon_tensor* tensor = b->flags & TENON_BUFFER_DYNAMIC ? &session->dynamic[bind->buffer] : NULL;
      if (inputs) tensor = &inputs[b->slot];
      if (!tensor) return tn_fail(TENON_INVALID_FILE, "a size of an input is bound after entry");
      value.i = bind->source == TENON_SOURCE_SIZE ? tensor->sizes[bind->index] : tensor->strides[bind->index];
      break;
    }
    case TENON_SOURCE_ELEMENT:
      if ((status = tn_element(session, bind->buffer, bind->index, &at)) != TENON_OK) return status;
      value = tn_load_number(at, t->buffers[bind->buffer].dtype);
      break;
    case TENON_SOURCE_COUNT: value.i = session->counts[bind->index]; break;
    case TENON_SOURCE_EXPRESSION: {
      /* At entry symbols change under the cache. */
      const char* wrong = tn_evaluate(t, bind->index, session->symbols, &value);
      if (wrong)
        return tn_fail(TENON_CHECK_FAILED, "%s has no value: %s", tn_string(t, t->symbols[bind->symbol].name), wrong);
      break;
    }
  }
  const struct tenon_symbol* s = &t->symbols[bind->symbol];
  if (s->type == TENON_INTEGER && (value.i < s->lo || value.i > s->hi)) return out_of_range(session, bind, value.i);
  session->symbols[bind->symbol] = value;
  return TENON_OK;
}

static TN_COLD tenon_status check_failed(tenon_session* session, const struct tenon_check* check) {
  const struct tn_tables* t = &session->program->tables;
  char text[400];
  size_t length = 0;
  uint32_t next = 0;
  for (const char* c = tn_string(t, check->message); *c && length + 32 < sizeof text; ++c) {
    tn_value value;
    if (c[0] != '{' || c[1] != '}' || next == check->values.count) {
      text[length++] = *c;
      continue;
    }
    uint32_t expr = t->refs[check->values.first + next++];
    if (tn_value_of(session, expr, &value, "a value") != TENON_OK) text[length++] = '?';
    else if (t->exprs[expr].type == TENON_REAL) length += (size_t)snprintf(text + length, 32, "%g", value.d);
    else length += (size_t)snprintf(text + length, 32, "%lld", (long long)value.i);
    ++c;
  }
  text[length] = 0;
  return tn_fail(TENON_CHECK_FAILED, "%s", text);
}

static tenon_status run_check(tenon_session* session, const struct tenon_check* check) {
  tn_value value;
  tenon_status status = tn_value_of(session, check->condition, &value, "a check");
  if (status != TENON_OK) return status;
  return value.i ? TENON_OK : check_failed(session, check);
}

static tenon_status run_copy(tenon_session* session, const struct tenon_copy* copy) {
  tenon_tensor from, to;
  uint64_t bytes, room;
  tenon_status status = tn_tensor_of(session, copy->from, &from);
  if (status == TENON_OK) status = tn_tensor_of(session, copy->to, &to);
  if (status != TENON_OK) return status;
  if (from.rank != to.rank || memcmp(from.sizes, to.sizes, (size_t)from.rank * sizeof *from.sizes) != 0 ||
      !tn_is_contiguous(&from) || !tn_is_contiguous(&to) ||
      !tn_extent(from.rank, from.sizes, from.strides, tenon_dtype_size(from.dtype), &bytes) ||
      !tn_extent(to.rank, to.sizes, to.strides, tenon_dtype_size(to.dtype), &room) || room != bytes)
    return tn_fail(TENON_CHECK_FAILED, "a copy between tensors of different sizes or strides is asked for");
  if (bytes) memmove(to.data, from.data, bytes);
  return TENON_OK;
}

static tenon_status run_store(tenon_session* session, const struct tenon_store* store) {
  const struct tn_tables* t = &session->program->tables;
  tn_value value;
  unsigned char* at;
  tenon_status status = tn_element(session, store->buffer, store->index, &at);
  if (status == TENON_OK) status = tn_value_of(session, store->value, &value, "a stored number");
  if (status == TENON_OK) tn_store_number(at, t->buffers[store->buffer].dtype, value, t->exprs[store->value].type);
  return status;
}

static tenon_status run_control(tenon_session* session, const struct tenon_control* c) {
  const struct tn_tables* t = &session->program->tables;
  const struct tenon_list* bodies = t->bodies + c->bodies.first;
  tn_value value;
  tenon_status status = TENON_OK;
  switch ((enum tenon_control_kind)c->kind) {
    case TENON_CONTROL_CHOOSE:
      if ((status = tn_value_of(session, c->value, &value, "a choice")) != TENON_OK) return status;
      if (value.i < 0 || value.i >= c->bodies.count)
        return tn_fail(TENON_CHECK_FAILED, "branch %lld of %u is chosen", (long long)value.i, c->bodies.count);
      return tn_run_steps(session, bodies[value.i]);
    case TENON_CONTROL_WHILE:
      for (;;) {
        if ((status = tn_run_steps(session, bodies[0])) != TENON_OK) return status;
        if ((status = tn_value_of(session, c->value, &value, "a condition")) != TENON_OK || !value.i) return status;
        if ((status = tn_run_steps(session, bodies[1])) != TENON_OK) return status;
      }
    case TENON_CONTROL_COUNTED: {
      if ((status = tn_value_of(session, c->value, &value, "a number of iterations")) != TENON_OK) return status;
      for (int64_t i = 0; i < value.i && status == TENON_OK; ++i) {
        session->symbols[c->symbol].i = i;
        status = tn_run_steps(session, bodies[0]);
      }
      return status;
    }
  }
  return status;
}

static tenon_status make_deferred(tenon_session* session, uint32_t output) {
  tenon_tensor described;
  tenon_status status = tn_describe(session, session->program->tables.outputs[output].buffer, &described);
  return status == TENON_OK ? tn_make_output(session, output, &described) : status;
}

static tenon_status run_step(tenon_session* session, const struct tenon_step* s) {
  const struct tn_tables* t = &session->program->tables;
  session->step = s;
  switch ((enum tenon_step_kind)s->kind) {
    case TENON_STEP_KERNEL: return tn_run_kernel(session, &t->kernels[s->index], NULL);
    case TENON_STEP_FUSED: return tn_run_kernel(session, &t->kernels[s->index], &t->kernels[s->index + 1]);
    case TENON_STEP_CALL: return tn_run_call(session, &t->calls[s->index]);
    case TENON_STEP_BIND: return tn_bind(session, &t->binds[s->index], NULL);
    case TENON_STEP_CHECK: return run_check(session, &t->checks[s->index]);
    case TENON_STEP_CONTROL: return run_control(session, &t->controls[s->index]);
    case TENON_STEP_PLAN: return tn_plan_segment(session, s->index);
    case TENON_STEP_COPY: return run_copy(session, &t->copies[s->index]);
    case TENON_STEP_STORE: return run_store(session, &t->stores[s->index]);
    case TENON_STEP_MAKE: return make_deferred(session, s->index);
  }
  return TENON_OK;
}

int64_t tn_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static TN_COLD tenon_status run_observed(tenon_session* session, const struct tenon_step* s) {
  int64_t began = tn_nanoseconds();
  tenon_status status = run_step(session, s);
  uint64_t took = (uint64_t)(tn_nanoseconds() - began);
  if (status != TENON_OK) return status;
  tn_value flops = {.i = 0}, bytes = {.i = 0};
  if (s->flops != TENON_NONE) (void)tn_value_of(session, s->flops, &flops, "flops");
  if (s->bytes != TENON_NONE) (void)tn_value_of(session, s->bytes, &bytes, "bytes");
  session->observer(session->observer_context, tn_string(&session->program->tables, s->name),
                    (enum tenon_step_kind)s->kind, took, (double)flops.i, (double)bytes.i);
  return TENON_OK;
}

tenon_status tn_run_steps(tenon_session* session, struct tenon_list steps) {
  const tenon_program* program = session->program;
  for (uint32_t i = steps.first; i < steps.first + steps.count; ++i) {
    const struct tenon_step* s = &program->tables.steps[i];
    if (program->step_writes[i]) session->wrote = true;
    tenon_status status =
        session->observer && s->kind != TENON_STEP_CONTROL ? run_observed(session, s) : run_step(session, s);
    if (status != TENON_OK) return status;
  }
  return TENON_OK;
}
