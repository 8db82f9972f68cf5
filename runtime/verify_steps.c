/* Steps form a tree in which nothing is used before it is there: symbols are bound, memory is planned, made or
   allocated. What holds inside a branch or a loop is forgotten behind it. */
#include <stdlib.h>

#include "verify_tables.h"

struct flow {
  struct tn_verifier* v;
  unsigned char* bound;   /* by symbol */
  unsigned char* entry;   /* by symbol: bound from the inputs; may not be bound again */
  unsigned char* ready;   /* by buffer that is no view */
  unsigned char* visited; /* by step */
  unsigned char* planned; /* by segment */
  uint32_t* trail;        /* what was set, for forgetting: symbols, and buffers with the top bit */
  uint64_t trail_count;
  bool on_state;
  uint32_t step; /* for messages */
};

static TN_COLD tenon_status wrong_step(const struct flow* f, const char* what) {
  return tn_fail(TENON_INVALID_FILE, "the tables are damaged: step %u %s", f->step, what);
}

static void set(struct flow* f, unsigned char* flags, uint32_t index, uint32_t mark) {
  if (flags[index]) return;
  flags[index] = 1;
  f->trail[f->trail_count++] = index | mark;
}
static void bind_symbol(struct flow* f, uint32_t symbol) { set(f, f->bound, symbol, 0); }
static void make_ready(struct flow* f, uint32_t buffer) { set(f, f->ready, buffer, TENON_WRITTEN); }
static void forget(struct flow* f, uint64_t from) {
  while (f->trail_count > from) {
    uint32_t mark = f->trail[--f->trail_count];
    (mark & TENON_WRITTEN ? f->ready : f->bound)[mark & ~TENON_WRITTEN] = 0;
  }
}

static tenon_status use_expr(struct flow* f, uint32_t expr, uint32_t type) {
  const struct tn_tables* t = &f->v->t;
  if (!tn_is_expr(f->v, expr, type))
    return wrong_step(f, "needs an expression of another type, or one that is not there");
  struct tenon_list list = t->exprs[expr].words;
  if (!tn_spend(f->v, list.count)) return wrong_step(f, "is one too many to be checked");
  for (uint32_t i = 0; i < list.count; ++i) {
    int64_t word = t->words[list.first + i];
    unsigned opcode = word & 0xff;
    if (opcode == TENON_OP_CONST_WIDE || opcode == TENON_OP_CONST_REAL) ++i;
    else if (opcode == TENON_OP_SYMBOL && !f->bound[word >> 8])
      return wrong_step(f, "uses a symbol before it is bound");
  }
  return TENON_OK;
}
static tenon_status use_integer(struct flow* f, uint32_t expr) { return use_expr(f, expr, TENON_INTEGER); }
static tenon_status use_optional(struct flow* f, uint32_t expr) {
  return expr == TENON_NONE ? TENON_OK : use_integer(f, expr);
}

static tenon_status use_buffer(struct flow* f, uint32_t buffer, bool written, bool described) {
  const struct tn_tables* t = &f->v->t;
  tenon_status status = TENON_OK;
  if (buffer >= t->header->buffers.count) return wrong_step(f, "names a buffer that is not there");
  const struct tenon_buffer* b = &t->buffers[buffer];
  uint32_t root = b->root == TENON_NONE ? buffer : b->root;
  if (!f->ready[root]) return wrong_step(f, "uses a buffer before it has memory");
  if (f->on_state && (b->role == TENON_ROLE_INPUT || b->role == TENON_ROLE_OUTPUT))
    return wrong_step(f, "of on_state uses an input or an output");
  if (written) {
    bool allowed = b->role == TENON_ROLE_ARENA || b->role == TENON_ROLE_OUTPUT || b->role == TENON_ROLE_DERIVED ||
                   (b->role == TENON_ROLE_STATE && !f->on_state) ||
                   (b->role == TENON_ROLE_INPUT && t->inputs[b->slot].written);
    if (!allowed) return wrong_step(f, "writes a buffer that it may only read");
  }
  if (b->root != TENON_NONE &&
      ((status = use_integer(f, b->offset)) != TENON_OK || (status = use_integer(f, b->bytes)) != TENON_OK))
    return status;
  if (described && !(b->flags & TENON_BUFFER_DYNAMIC))
    for (uint32_t d = 0; d < b->rank && status == TENON_OK; ++d)
      if ((status = use_integer(f, b->sizes + d)) == TENON_OK && b->strides != TENON_NONE)
        status = use_integer(f, b->strides + d);
  return status;
}

static tenon_status use_params(struct flow* f, struct tenon_list list) {
  const struct tn_tables* t = &f->v->t;
  tenon_status status = tn_verify_list(f->v, list, t->header->refs.count, "parameters");
  for (uint32_t i = 0; i < list.count && status == TENON_OK; ++i) {
    uint32_t expr = t->refs[list.first + i];
    status = use_expr(f, expr, expr < t->header->exprs.count ? t->exprs[expr].type : TENON_INTEGER);
  }
  return status;
}

static tenon_status use_guards(struct flow* f, struct tenon_list list) {
  const struct tn_tables* t = &f->v->t;
  tenon_status status = tn_verify_list(f->v, list, t->header->guards.count, "guards");
  for (uint32_t i = 0; i < list.count && status == TENON_OK; ++i) {
    const struct tenon_guard* g = &t->guards[list.first + i];
    if ((status = use_buffer(f, g->buffer, false, true)) != TENON_OK || (status = use_integer(f, g->lo)) != TENON_OK ||
        (status = use_integer(f, g->hi)) != TENON_OK)
      return status;
    uint8_t dtype = t->buffers[g->buffer].dtype;
    if (dtype < TENON_U8 || dtype > TENON_U64) return wrong_step(f, "guards indices that are no integers");
    if (g->what >= t->header->strings.count) return wrong_step(f, "has a guard without a name");
  }
  return status;
}

static tenon_status use_kernel(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->kernels.count) return wrong_step(f, "names a kernel that is not there");
  const struct tenon_kernel_step* k = &t->kernels[index];
  if (k->function >= t->header->functions.count || t->functions[k->function].external)
    return wrong_step(f, "names a function that is not there or no kernel");
  tenon_status status = tn_verify_list(f->v, k->instances, t->header->instances.count, "instances");
  if (status == TENON_OK) status = use_guards(f, k->guards);
  if (status == TENON_OK) status = use_optional(f, k->scratch);
  for (uint32_t i = 0; i < k->instances.count && status == TENON_OK; ++i) {
    const struct tenon_instance* n = &t->instances[k->instances.first + i];
    status = tn_verify_list(f->v, n->args, t->header->refs.count, "arguments");
    for (uint32_t a = 0; a < n->args.count && status == TENON_OK; ++a) {
      uint32_t arg = t->refs[n->args.first + a];
      status = use_buffer(f, arg & ~TENON_WRITTEN, arg & TENON_WRITTEN, false);
    }
    if (status == TENON_OK) status = use_params(f, n->params);
    if (status == TENON_OK) status = use_integer(f, n->extent);
    if (status == TENON_OK) status = use_integer(f, n->grain);
  }
  return status;
}

static tenon_status use_fused(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  tenon_status status = use_kernel(f, index);
  if (status == TENON_OK && index + 1 == t->header->kernels.count) return wrong_step(f, "has no epilogue behind it");
  if (status == TENON_OK) status = use_kernel(f, index + 1);
  if (status == TENON_OK && t->kernels[index].instances.count != t->kernels[index + 1].instances.count)
    return wrong_step(f, "has an epilogue for another number of instances");
  return status;
}

static tenon_status use_call(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->calls.count) return wrong_step(f, "names a call that is not there");
  const struct tenon_call_step* c = &t->calls[index];
  if (c->function >= t->header->functions.count) return wrong_step(f, "names a function that is not there");
  tenon_status status = tn_verify_list(f->v, c->inputs, t->header->refs.count, "inputs of a call");
  if (status == TENON_OK) status = tn_verify_list(f->v, c->results, t->header->refs.count, "results of a call");
  for (uint32_t i = 0; i < c->inputs.count && status == TENON_OK; ++i) {
    uint32_t arg = t->refs[c->inputs.first + i];
    if (arg != TENON_NONE) status = use_buffer(f, arg & ~TENON_WRITTEN, arg & TENON_WRITTEN, true);
  }
  if (status == TENON_OK) status = tn_verify_list(f->v, c->errors, t->header->refs.count, "errors of a call");
  for (uint32_t i = 0; i < c->errors.count && status == TENON_OK; ++i)
    if (t->refs[c->errors.first + i] >= t->header->strings.count)
      return wrong_step(f, "has an error without a sentence");
  if (status == TENON_OK) status = use_params(f, c->params);
  if (status == TENON_OK) status = use_guards(f, c->guards);
  if (status == TENON_OK) status = use_optional(f, c->scratch);
  if (status == TENON_OK) status = use_optional(f, c->extent);
  if (status == TENON_OK) status = use_optional(f, c->grain);
  if (status != TENON_OK) return status;
  if ((c->extent == TENON_NONE) != (c->grain == TENON_NONE)) return wrong_step(f, "has only one of extent and grain");
  bool allocates = false;
  for (uint32_t i = 0; i < c->results.count && status == TENON_OK; ++i) {
    uint32_t buffer = t->refs[c->results.first + i] & ~TENON_WRITTEN;
    if (buffer < t->header->buffers.count && (t->buffers[buffer].flags & TENON_BUFFER_DYNAMIC)) {
      allocates = true;
      make_ready(f, buffer);
    }
    status = use_buffer(f, buffer, true, true);
  }
  if (status == TENON_OK && allocates && c->extent != TENON_NONE) return wrong_step(f, "allocates in parallel");
  return status;
}

static tenon_status use_bind(struct flow* f, const struct tenon_bind* b, bool entry) {
  const struct tn_tables* t = &f->v->t;
  tenon_status status = TENON_OK;
  if (b->symbol >= t->header->symbols.count) return wrong_step(f, "binds a symbol that is not there");
  if (!entry && f->entry[b->symbol]) return wrong_step(f, "binds a symbol of the inputs again");
  uint32_t type = t->symbols[b->symbol].type;
  switch ((enum tenon_source)b->source) {
    case TENON_SOURCE_SIZE:
    case TENON_SOURCE_STRIDE: {
      if ((status = use_buffer(f, b->buffer, false, false)) != TENON_OK) return status;
      const struct tenon_buffer* buffer = &t->buffers[b->buffer];
      bool known = buffer->root == TENON_NONE &&
                   (entry ? buffer->role == TENON_ROLE_INPUT : (buffer->flags & TENON_BUFFER_DYNAMIC) != 0);
      if (!known || b->index >= buffer->rank || type != TENON_INTEGER)
        return wrong_step(f, "binds a size of what is neither an input nor made by a call");
      break;
    }
    case TENON_SOURCE_ELEMENT: {
      if (entry) return wrong_step(f, "binds an element before the inputs are checked");
      if ((status = use_buffer(f, b->buffer, false, true)) != TENON_OK) return status;
      if ((status = use_integer(f, b->index)) != TENON_OK) return status;
      uint8_t dtype = t->buffers[b->buffer].dtype;
      if (dtype == TENON_F16 || dtype == TENON_BF16 || dtype > TENON_F64)
        return wrong_step(f, "binds an element of a dtype that has no plain number");
      if ((type == TENON_REAL) != (dtype == TENON_F32 || dtype == TENON_F64))
        return wrong_step(f, "binds an element to a symbol of another type");
      break;
    }
    case TENON_SOURCE_COUNT:
      if (entry || b->index >= TENON_MAX_COUNTS || type != TENON_INTEGER)
        return wrong_step(f, "binds a count that is not there");
      break;
    case TENON_SOURCE_EXPRESSION:
      if ((status = use_expr(f, b->index, type)) != TENON_OK) return status;
      break;
    default: return wrong_step(f, "binds from an unknown source");
  }
  bind_symbol(f, b->symbol);
  return TENON_OK;
}

static tenon_status use_check(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->checks.count) return wrong_step(f, "names a check that is not there");
  const struct tenon_check* c = &t->checks[index];
  if (c->message >= t->header->strings.count) return wrong_step(f, "has no message");
  tenon_status status = use_integer(f, c->condition);
  return status == TENON_OK ? use_params(f, c->values) : status;
}

static tenon_status use_plan(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->segments.count || f->planned[index]++) return wrong_step(f, "plans no segment, or one again");
  struct tenon_list list = t->segments[index].buffers;
  tenon_status status = TENON_OK;
  for (uint32_t i = 0; i < list.count && status == TENON_OK; ++i) {
    const struct tenon_buffer* b = &t->buffers[t->refs[list.first + i]];
    status = use_integer(f, b->bytes);
    if (status == TENON_OK) status = use_optional(f, b->offset);
    make_ready(f, t->refs[list.first + i]);
  }
  return status;
}

static tenon_status use_copy(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->copies.count) return wrong_step(f, "names a copy that is not there");
  const struct tenon_copy* c = &t->copies[index];
  tenon_status status = use_buffer(f, c->from, false, true);
  if (status == TENON_OK) status = use_buffer(f, c->to, true, true);
  if (status == TENON_OK && t->buffers[c->from].dtype != t->buffers[c->to].dtype)
    return wrong_step(f, "copies between dtypes");
  return status;
}

static tenon_status use_store(struct flow* f, uint32_t index) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->stores.count) return wrong_step(f, "names a store that is not there");
  const struct tenon_store* s = &t->stores[index];
  tenon_status status = use_buffer(f, s->buffer, true, true);
  if (status == TENON_OK) status = use_integer(f, s->index);
  if (status != TENON_OK) return status;
  uint8_t dtype = t->buffers[s->buffer].dtype;
  if (dtype == TENON_F16 || dtype == TENON_BF16 || dtype > TENON_F64)
    return wrong_step(f, "stores to a dtype that has no plain number");
  bool real = s->value < t->header->exprs.count && t->exprs[s->value].type == TENON_REAL;
  if (real && dtype < TENON_F32) return wrong_step(f, "stores a real number as an integer");
  return use_expr(f, s->value, real ? TENON_REAL : TENON_INTEGER);
}

static tenon_status use_steps(struct flow* f, struct tenon_list list, int depth);

static tenon_status use_control(struct flow* f, uint32_t index, int depth) {
  const struct tn_tables* t = &f->v->t;
  if (index >= t->header->controls.count) return wrong_step(f, "names a control that is not there");
  const struct tenon_control* c = &t->controls[index];
  tenon_status status = tn_verify_list(f->v, c->bodies, t->header->bodies.count, "bodies");
  if (status != TENON_OK) return status;
  const struct tenon_list* bodies = t->bodies + c->bodies.first;
  switch ((enum tenon_control_kind)c->kind) {
    case TENON_CONTROL_CHOOSE:
      if (c->bodies.count == 0) return wrong_step(f, "chooses from nothing");
      status = use_integer(f, c->value);
      for (uint32_t i = 0; i < c->bodies.count && status == TENON_OK; ++i) {
        uint64_t before = f->trail_count;
        status = use_steps(f, bodies[i], depth + 1);
        forget(f, before);
      }
      return status;
    case TENON_CONTROL_WHILE: {
      if (c->bodies.count != 2) return wrong_step(f, "repeats without a condition and a body");
      status = use_steps(f, bodies[0], depth + 1);
      if (status == TENON_OK) status = use_integer(f, c->value);
      uint64_t before = f->trail_count;
      if (status == TENON_OK) status = use_steps(f, bodies[1], depth + 1);
      forget(f, before);
      return status;
    }
    case TENON_CONTROL_COUNTED: {
      if (c->bodies.count != 1 || c->symbol >= t->header->symbols.count || f->entry[c->symbol] ||
          t->symbols[c->symbol].type != TENON_INTEGER)
        return wrong_step(f, "counts without a body and a symbol");
      status = use_integer(f, c->value);
      uint64_t before = f->trail_count;
      bind_symbol(f, c->symbol);
      if (status == TENON_OK) status = use_steps(f, bodies[0], depth + 1);
      forget(f, before);
      return status;
    }
  }
  return wrong_step(f, "is a control of unknown kind");
}

static tenon_status use_steps(struct flow* f, struct tenon_list list, int depth) {
  const struct tn_tables* t = &f->v->t;
  tenon_status status = tn_verify_list(f->v, list, t->header->steps.count, "steps");
  if (status == TENON_OK && depth > TENON_MAX_DEPTH) return wrong_step(f, "is nested too deeply");
  for (uint32_t i = 0; i < list.count && status == TENON_OK; ++i) {
    f->step = list.first + i;
    const struct tenon_step* s = &t->steps[f->step];
    if (f->visited[f->step]++) return wrong_step(f, "stands in two lists");
    if (s->name >= t->header->strings.count) return wrong_step(f, "has a name outside the strings");
    if (s->flops != TENON_NONE) status = use_integer(f, s->flops);
    if (status == TENON_OK && s->bytes != TENON_NONE) status = use_integer(f, s->bytes);
    if (status != TENON_OK) return status;
    switch ((enum tenon_step_kind)s->kind) {
      case TENON_STEP_KERNEL: status = use_kernel(f, s->index); break;
      case TENON_STEP_FUSED: status = use_fused(f, s->index); break;
      case TENON_STEP_CALL: status = use_call(f, s->index); break;
      case TENON_STEP_BIND:
        status = s->index < t->header->binds.count ? use_bind(f, &t->binds[s->index], false)
                                                   : wrong_step(f, "names a bind that is not there");
        break;
      case TENON_STEP_CHECK: status = use_check(f, s->index); break;
      case TENON_STEP_CONTROL: status = use_control(f, s->index, depth); break;
      case TENON_STEP_PLAN: status = use_plan(f, s->index); break;
      case TENON_STEP_COPY: status = use_copy(f, s->index); break;
      case TENON_STEP_STORE: status = use_store(f, s->index); break;
      case TENON_STEP_MAKE:
        if (s->index >= t->header->outputs.count || f->on_state ||
            !(t->buffers[t->outputs[s->index].buffer].flags & TENON_BUFFER_DEFERRED))
          return wrong_step(f, "makes what is no deferred output");
        make_ready(f, t->outputs[s->index].buffer);
        status = use_buffer(f, t->outputs[s->index].buffer, true, true);
        break;
      default: return wrong_step(f, "is of unknown kind");
    }
  }
  return status;
}

static tenon_status verify_run(struct flow* f) {
  const struct tn_tables* t = &f->v->t;
  const struct tenon_header* h = t->header;
  tenon_status status = tn_verify_list(f->v, h->entry, h->binds.count, "entry binds");
  for (uint32_t i = 0; i < h->entry.count && status == TENON_OK; ++i)
    status = use_bind(f, &t->binds[h->entry.first + i], true);
  if (status != TENON_OK) return status;
  memcpy(f->entry, f->bound, h->symbols.count);
  for (uint32_t i = 0; i < h->inputs.count && status == TENON_OK; ++i)
    status = use_buffer(f, t->inputs[i].buffer, false, true);
  for (uint32_t i = 0; i < h->outputs.count && status == TENON_OK; ++i)
    if (f->ready[t->outputs[i].buffer]) status = use_buffer(f, t->outputs[i].buffer, true, true);
  if (status == TENON_OK) status = use_steps(f, h->main, 0);
  for (uint32_t i = 0; i < h->outputs.count && status == TENON_OK; ++i)
    if (!f->ready[t->outputs[i].buffer]) status = wrong_step(f, "is the last, but an output was never made");
  return status;
}

tenon_status tn_verify_steps(struct tn_verifier* v) {
  const struct tn_tables* t = &v->t;
  const struct tenon_header* h = t->header;
  uint64_t symbols = h->symbols.count, buffers = h->buffers.count;
  unsigned char* flags = calloc(2 * symbols + buffers + h->steps.count + h->segments.count + 1, 1);
  uint32_t* trail = malloc((symbols + buffers + 1) * sizeof *trail);
  tenon_status status = flags && trail ? TENON_OK : tn_fail_memory(symbols + buffers, "tables");
  if (status == TENON_OK) {
    struct flow f = {.v = v,
                     .bound = flags,
                     .entry = flags + symbols,
                     .ready = flags + 2 * symbols,
                     .visited = flags + 2 * symbols + buffers,
                     .planned = flags + 2 * symbols + buffers + h->steps.count,
                     .trail = trail};
    for (uint32_t i = 0; i < buffers; ++i)
      f.ready[i] = t->buffers[i].role != TENON_ROLE_ARENA && t->buffers[i].flags == 0;
    status = verify_run(&f);
    forget(&f, 0);
    f.on_state = true;
    if (status == TENON_OK) status = use_steps(&f, h->on_state, 0);
  }
  free(flags);
  free(trail);
  return status;
}
