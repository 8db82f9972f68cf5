/* Every index, list, string and expression of the tables is inside its table and of the right kind. */
#include "verify_tables.h"

#include <stdlib.h>

_Static_assert(sizeof(struct tenon_buffer) == 48, "no padding");
_Static_assert(sizeof(struct tenon_step) == 24, "no padding");
_Static_assert(sizeof(struct tenon_kernel_step) == 24, "no padding");
_Static_assert(sizeof(struct tenon_call_step) == 56, "no padding");
_Static_assert(sizeof(struct tenon_function) == 32, "no padding");
_Static_assert(sizeof(struct tenon_header) == 432, "no padding");
_Static_assert(sizeof(tenon_tensor) == 272, "no padding");

bool tn_spend(struct tn_verifier* v, uint64_t work) {
  if (v->budget < work) return false;
  v->budget -= work;
  return true;
}

static tenon_status too_large(void) { return tn_fail(TENON_INVALID_FILE, "the tables are too large to be checked"); }

tenon_status tn_verify_list(struct tn_verifier* v, struct tenon_list list, uint64_t count, const char* what) {
  if (list.first > count || list.count > count - list.first)
    return tn_fail(TENON_INVALID_FILE, "the tables are damaged: %s: a list of %u from %u goes beyond %llu elements",
                   what, list.count, list.first, (unsigned long long)count);
  return tn_spend(v, list.count) ? TENON_OK : too_large();
}

static tenon_status verify_string(struct tn_verifier* v, uint32_t string, const char* what) {
  if (string >= v->t.header->strings.count)
    return tn_fail(TENON_INVALID_FILE, "the tables are damaged: the name of %s lies outside the strings", what);
  return TENON_OK;
}

static tenon_status find_table(const unsigned char* bytes, uint64_t size, struct tenon_table table, size_t element,
                               const char* what, const void** out) {
  if (table.offset % 8 != 0 || table.offset > size || table.count > (size - table.offset) / element ||
      table.count > INT32_MAX)
    return tn_fail(TENON_INVALID_FILE, "the tables are damaged: %s lie outside of them", what);
  *out = bytes + table.offset;
  return TENON_OK;
}

tenon_status tn_check_version(const struct tenon_header* header) {
  if (memcmp(header->magic, TENON_MAGIC, 8) != 0)
    return tn_fail(TENON_INVALID_FILE, "the tables do not begin as those of Tenon do");
  if (header->abi_major != TENON_ABI_MAJOR || header->abi_minor > TENON_ABI_MINOR)
    return tn_fail(
        TENON_UNSUPPORTED,
        "the artifact has tables of version %u.%u, this runtime (%s) reads %u.0 to %u.%u; compile the program "
        "again, or use the runtime of the Tenon that compiled it",
        header->abi_major, header->abi_minor, tenon_runtime_version(), TENON_ABI_MAJOR, TENON_ABI_MAJOR,
        TENON_ABI_MINOR);
  return TENON_OK;
}

static tenon_status find_tables(const unsigned char* bytes, uint64_t size, struct tn_tables* t) {
  if (size < sizeof(struct tenon_header))
    return tn_fail(TENON_INVALID_FILE, "the tables are truncated: %llu bytes are less than their header",
                   (unsigned long long)size);
  const struct tenon_header* h = (const struct tenon_header*)bytes;
  tenon_status status = tn_check_version(h);
  if (status != TENON_OK) return status;
  if (h->size != size)
    return tn_fail(TENON_INVALID_FILE, "the tables are truncated: they say that they have %llu bytes, there are %llu",
                   (unsigned long long)h->size, (unsigned long long)size);
  t->header = h;
#define FIND(member, type)                                                                                        \
  if ((status = find_table(bytes, size, h->member, sizeof(type), #member, (const void**)&t->member)) != TENON_OK) \
    return status;
  FIND(strings, char)
  FIND(words, int64_t)
  FIND(refs, uint32_t)
  FIND(exprs, struct tenon_expr)
  FIND(symbols, struct tenon_symbol)
  FIND(buffers, struct tenon_buffer)
  FIND(inputs, struct tenon_input)
  FIND(outputs, struct tenon_output)
  FIND(states, struct tenon_state_entry)
  FIND(functions, struct tenon_function)
  FIND(segments, struct tenon_segment)
  FIND(steps, struct tenon_step)
  FIND(kernels, struct tenon_kernel_step)
  FIND(instances, struct tenon_instance)
  FIND(guards, struct tenon_guard)
  FIND(calls, struct tenon_call_step)
  FIND(binds, struct tenon_bind)
  FIND(checks, struct tenon_check)
  FIND(controls, struct tenon_control)
  FIND(copies, struct tenon_copy)
  FIND(stores, struct tenon_store)
  FIND(bodies, struct tenon_list)
  FIND(metadata, struct tenon_metadata)
#undef FIND
  return TENON_OK;
}

/* What an operation takes and leaves: "ii>i", r for reals. NULL: no such operation. Constants, symbols and select are
   handled where it is used. */
static const char* signature(unsigned opcode) {
  switch ((enum tenon_opcode)opcode) {
    case TENON_OP_ADD:
    case TENON_OP_SUB:
    case TENON_OP_MUL:
    case TENON_OP_FLOOR_DIV:
    case TENON_OP_CEIL_DIV:
    case TENON_OP_MOD:
    case TENON_OP_MIN:
    case TENON_OP_MAX:
    case TENON_OP_POW:
    case TENON_OP_AND:
    case TENON_OP_OR:
    case TENON_OP_SHL:
    case TENON_OP_SHR:
    case TENON_OP_EQ:
    case TENON_OP_NE:
    case TENON_OP_LT:
    case TENON_OP_LE: return "ii>i";
    case TENON_OP_NEG:
    case TENON_OP_NOT: return "i>i";
    case TENON_OP_TO_REAL: return "i>r";
    case TENON_OP_REAL_ADD:
    case TENON_OP_REAL_SUB:
    case TENON_OP_REAL_MUL:
    case TENON_OP_REAL_DIV:
    case TENON_OP_REAL_MIN:
    case TENON_OP_REAL_MAX: return "rr>r";
    case TENON_OP_REAL_NEG:
    case TENON_OP_REAL_SQRT: return "r>r";
    case TENON_OP_REAL_EQ:
    case TENON_OP_REAL_LT:
    case TENON_OP_REAL_LE: return "rr>i";
    case TENON_OP_TRUNC:
    case TENON_OP_FLOOR:
    case TENON_OP_CEIL:
    case TENON_OP_ROUND: return "r>i";
    case TENON_OP_CONST:
    case TENON_OP_CONST_WIDE:
    case TENON_OP_CONST_REAL:
    case TENON_OP_SYMBOL:
    case TENON_OP_SELECT: break;
  }
  return NULL;
}

static tenon_status verify_expr(struct tn_verifier* v, uint32_t index) {
  const struct tenon_expr* e = &v->t.exprs[index];
  char stack[TENON_MAX_DEPTH];
  uint32_t top = 0;
  tenon_status status = tn_verify_list(v, e->words, v->t.header->words.count, "an expression");
  if (status != TENON_OK) return status;
  const int64_t* word = v->t.words + e->words.first;
  const int64_t* end = word + e->words.count;
  const char* wrong = e->words.count > 256 ? "is longer than 256 words" : NULL;
  for (; word < end && !wrong; ++word) {
    unsigned opcode = *word & 0xff;
    int64_t operand = *word >> 8;
    char push = 0;
    switch (opcode) {
      case TENON_OP_CONST: push = 'i'; break;
      case TENON_OP_CONST_WIDE:
      case TENON_OP_CONST_REAL:
        push = opcode == TENON_OP_CONST_REAL ? 'r' : 'i';
        if (++word >= end) wrong = "ends within a constant";
        break;
      case TENON_OP_SYMBOL:
        if (operand < 0 || (uint64_t)operand >= v->t.header->symbols.count) wrong = "names a symbol that is not there";
        else push = v->t.symbols[operand].type == TENON_REAL ? 'r' : 'i';
        break;
      case TENON_OP_SELECT:
        if (top < 3 || stack[top - 3] != 'i' || stack[top - 2] != stack[top - 1]) wrong = "selects among wrong values";
        else {
          stack[top - 3] = stack[top - 1];
          top -= 2;
        }
        break;
      default: {
        const char* s = signature(opcode);
        if (!s) {
          wrong = "has an unknown operation";
          break;
        }
        uint32_t takes = (uint32_t)(strchr(s, '>') - s);
        if (top < takes || memcmp(stack + top - takes, s, takes) != 0) {
          wrong = "hands wrong values to an operation";
          break;
        }
        top -= takes;
        push = s[takes + 1];
      }
    }
    if (push) {
      if (top == TENON_MAX_DEPTH) wrong = "is too deep";
      else stack[top++] = push;
    }
  }
  if (!wrong && (top != 1 || e->type > TENON_REAL || stack[0] != (e->type == TENON_REAL ? 'r' : 'i')))
    wrong = "does not leave one value of its type";
  if (wrong) return tn_fail(TENON_INVALID_FILE, "the tables are damaged: expression %u %s", index, wrong);
  return TENON_OK;
}

bool tn_is_expr(const struct tn_verifier* v, uint32_t expr, uint32_t type) {
  return expr < v->t.header->exprs.count && v->t.exprs[expr].type == type;
}

static bool is_constant(const struct tn_tables* t, uint32_t expr) {
  const int64_t* word = t->words + t->exprs[expr].words.first;
  const int64_t* end = word + t->exprs[expr].words.count;
  for (; word < end; ++word) {
    if ((*word & 0xff) == TENON_OP_SYMBOL) return false;
    if ((*word & 0xff) == TENON_OP_CONST_WIDE || (*word & 0xff) == TENON_OP_CONST_REAL) ++word;
  }
  return true;
}

static bool constant_value(const struct tn_tables* t, uint32_t expr, int64_t* out) {
  tn_value value;
  if (!is_constant(t, expr) || tn_evaluate(t, expr, NULL, &value)) return false;
  *out = value.i;
  return true;
}

/* State, derived and constant buffers have one size for good, and lie inside the weights. */
static const char* verify_fixed(const struct tn_tables* t, const struct tenon_buffer* b) {
  int64_t bytes, sizes[TENON_MAX_RANK], strides[TENON_MAX_RANK];
  uint64_t extent;
  if (!constant_value(t, b->bytes, &bytes) || bytes < 0) return "has no constant number of bytes";
  for (uint32_t d = 0; d < b->rank; ++d) {
    if (!constant_value(t, b->sizes + d, &sizes[d])) return "has a size that is not constant";
    if (b->strides != TENON_NONE && !constant_value(t, b->strides + d, &strides[d]))
      return "has a stride that is not constant";
  }
  if (b->strides == TENON_NONE && !tn_contiguous_strides(b->rank, sizes, strides)) return "has impossible sizes";
  if (!tn_extent(b->rank, sizes, strides, tenon_dtype_size(b->dtype), &extent) || extent > (uint64_t)bytes)
    return "is larger than its number of bytes";
  if (b->weights == TENON_NO_WEIGHTS) return b->role == TENON_ROLE_CONSTANT ? "is a constant without weights" : NULL;
  if (b->weights % TENON_ALIGNMENT != 0 || b->weights > t->header->weights_size ||
      (uint64_t)bytes > t->header->weights_size - b->weights)
    return "lies outside the weights";
  return NULL;
}

static const char* verify_buffer(struct tn_verifier* v, uint32_t index) {
  const struct tn_tables* t = &v->t;
  const struct tenon_buffer* b = &t->buffers[index];
  const struct tenon_header* h = t->header;
  if (b->dtype >= TENON_DTYPE_COUNT) return "has an unknown dtype";
  if (b->rank > TENON_MAX_RANK) return "has too many dimensions";
  for (uint32_t d = 0; d < b->rank; ++d) {
    if (b->sizes >= h->exprs.count || !tn_is_expr(v, b->sizes + d, TENON_INTEGER))
      return "has a size that is no integer";
    if (b->strides != TENON_NONE && (b->strides >= h->exprs.count || !tn_is_expr(v, b->strides + d, TENON_INTEGER)))
      return "has a stride that is no integer";
  }
  bool outside = b->role == TENON_ROLE_INPUT || b->role == TENON_ROLE_OUTPUT, view = b->root != TENON_NONE;
  if ((!outside || view) && !tn_is_expr(v, b->bytes, TENON_INTEGER)) return "has no number of bytes";
  if (view) {
    if (b->root >= index || t->buffers[b->root].root != TENON_NONE) return "is a view of what is no earlier buffer";
    const struct tenon_buffer* root = &t->buffers[b->root];
    if (b->role != root->role || b->slot != root->slot) return "is a view with another role than its root";
    if (b->flags || b->weights != TENON_NO_WEIGHTS) return "is a view, but has flags or weights";
    return tn_is_expr(v, b->offset, TENON_INTEGER) ? NULL : "is a view without an offset";
  }
  if (b->flags & ~(unsigned)(TENON_BUFFER_DYNAMIC | TENON_BUFFER_DEFERRED)) return "has unknown flags";
  if ((b->flags & TENON_BUFFER_DEFERRED) && b->role != TENON_ROLE_OUTPUT) return "is deferred, but no output";
  if ((b->flags & TENON_BUFFER_DYNAMIC) && b->role != TENON_ROLE_OUTPUT && b->role != TENON_ROLE_ARENA)
    return "is dynamic, but neither output nor arena";
  if (b->flags == (TENON_BUFFER_DYNAMIC | TENON_BUFFER_DEFERRED)) return "is both dynamic and deferred";
  if (b->role != TENON_ROLE_ARENA && b->offset != TENON_NONE) return "has an offset, but is neither view nor arena";
  if (b->offset != TENON_NONE && !tn_is_expr(v, b->offset, TENON_INTEGER)) return "has an offset that is no integer";
  switch ((enum tenon_role)b->role) {
    case TENON_ROLE_INPUT:
      if (b->slot >= h->inputs.count || t->inputs[b->slot].buffer != index) return "is not the input it says it is";
      return b->weights == TENON_NO_WEIGHTS ? NULL : "is an input with weights";
    case TENON_ROLE_OUTPUT:
      if (b->slot >= h->outputs.count || t->outputs[b->slot].buffer != index) return "is not the output it says it is";
      return b->weights == TENON_NO_WEIGHTS ? NULL : "is an output with weights";
    case TENON_ROLE_STATE:
    case TENON_ROLE_DERIVED:
    case TENON_ROLE_CONSTANT: return verify_fixed(t, b);
    case TENON_ROLE_ARENA:
      if (b->first > b->last) return "is used last before it is used first";
      return b->weights == TENON_NO_WEIGHTS ? NULL : "is in the arena and has weights";
  }
  return "has an unknown role";
}

static tenon_status verify_signature(struct tn_verifier* v) {
  const struct tn_tables* t = &v->t;
  const struct tenon_header* h = t->header;
  tenon_status status;
  for (uint32_t i = 0; i < h->inputs.count; ++i) {
    uint32_t buffer = t->inputs[i].buffer;
    if ((status = verify_string(v, t->inputs[i].name, "an input")) != TENON_OK) return status;
    if (buffer >= h->buffers.count || t->buffers[buffer].role != TENON_ROLE_INPUT || t->buffers[buffer].slot != i ||
        t->buffers[buffer].root != TENON_NONE)
      return tn_fail(TENON_INVALID_FILE, "the tables are damaged: input %u has no buffer of its own", i);
  }
  for (uint32_t i = 0; i < h->outputs.count; ++i) {
    uint32_t buffer = t->outputs[i].buffer;
    if ((status = verify_string(v, t->outputs[i].name, "an output")) != TENON_OK) return status;
    if (buffer >= h->buffers.count || t->buffers[buffer].role != TENON_ROLE_OUTPUT || t->buffers[buffer].slot != i ||
        t->buffers[buffer].root != TENON_NONE)
      return tn_fail(TENON_INVALID_FILE, "the tables are damaged: output %u has no buffer of its own", i);
    if (t->outputs[i].donor != TENON_NONE && t->outputs[i].donor >= h->inputs.count)
      return tn_fail(TENON_INVALID_FILE, "the tables are damaged: output %u names an input that is not there", i);
  }
  unsigned char* seen = calloc(h->buffers.count + 1, 1);
  if (!seen) return tn_fail_memory(h->buffers.count, "tables");
  status = TENON_OK;
  for (uint32_t i = 0; i < h->states.count && status == TENON_OK; ++i) {
    const struct tenon_state_entry* s = &t->states[i];
    status = verify_string(v, s->name, "a state entry");
    if (status == TENON_OK && s->kind > TENON_STATE_RANDOM)
      status = tn_fail(TENON_INVALID_FILE, "the tables are damaged: state entry %u is of unknown kind", i);
    if (status != TENON_OK || s->buffer == TENON_NONE) continue;
    if (s->buffer >= h->buffers.count || t->buffers[s->buffer].role != TENON_ROLE_STATE ||
        t->buffers[s->buffer].root != TENON_NONE || seen[s->buffer]++)
      status = tn_fail(TENON_INVALID_FILE, "the tables are damaged: state entry %u has no buffer of its own", i);
    else if (s->kind == TENON_STATE_RANDOM &&
             (t->buffers[s->buffer].dtype != TENON_I64 || t->buffers[s->buffer].rank != 1))
      status = tn_fail(TENON_INVALID_FILE, "the tables are damaged: the random state %u is not i64[2]", i);
  }
  for (uint32_t i = 0; i < h->segments.count && status == TENON_OK; ++i) {
    status = tn_verify_list(v, t->segments[i].buffers, h->refs.count, "a segment");
    for (uint32_t k = 0; k < t->segments[i].buffers.count && status == TENON_OK; ++k) {
      uint32_t buffer = t->refs[t->segments[i].buffers.first + k];
      if (buffer >= h->buffers.count || t->buffers[buffer].role != TENON_ROLE_ARENA ||
          t->buffers[buffer].root != TENON_NONE || (t->buffers[buffer].flags & TENON_BUFFER_DYNAMIC) || seen[buffer]++)
        status = tn_fail(TENON_INVALID_FILE, "the tables are damaged: segment %u has a buffer that is not its own", i);
    }
  }
  for (uint32_t i = 0; i < h->buffers.count && status == TENON_OK; ++i) {
    const struct tenon_buffer* b = &t->buffers[i];
    bool listed = b->role == TENON_ROLE_STATE || (b->role == TENON_ROLE_ARENA && !(b->flags & TENON_BUFFER_DYNAMIC));
    if (b->root == TENON_NONE && listed && !seen[i])
      status = tn_fail(TENON_INVALID_FILE, "the tables are damaged: buffer %u belongs to no state entry or segment", i);
  }
  free(seen);
  return status;
}

static tenon_status verify_strings(const struct tn_tables* t) {
  uint64_t count = t->header->strings.count;
  if (count == 0 || t->strings[count - 1] != 0)
    return tn_fail(TENON_INVALID_FILE, "the tables are damaged: the strings do not end");
  for (uint64_t i = 0; i < count; ++i) {
    unsigned char c = (unsigned char)t->strings[i];
    if ((c < 0x20 && c != 0 && c != '\n' && c != '\t') || c == 0x7f)
      return tn_fail(TENON_INVALID_FILE, "the tables are damaged: a string holds a control character");
  }
  return TENON_OK;
}

tenon_status tn_tables_verify(const void* bytes, uint64_t size, struct tn_tables* tables) {
  struct tn_verifier v = {.budget = UINT64_C(1) << 27};
  tenon_status status = find_tables(bytes, size, &v.t);
  if (status != TENON_OK || (status = verify_strings(&v.t)) != TENON_OK) return status;
  const struct tenon_header* h = v.t.header;
  if ((status = verify_string(&v, h->producer, "the producer")) != TENON_OK) return status;
  if (h->targets == 0 || h->targets >= 1u << TENON_TARGET_COUNT)
    return tn_fail(TENON_INVALID_FILE, "the tables are damaged: the artifact is for no known target");
  for (uint32_t i = 0; i < h->symbols.count; ++i) {
    const struct tenon_symbol* s = &v.t.symbols[i];
    if ((status = verify_string(&v, s->name, "a symbol")) != TENON_OK) return status;
    if (s->type > TENON_REAL || s->lo > s->hi)
      return tn_fail(TENON_INVALID_FILE, "the tables are damaged: symbol %u has no type or no value", i);
  }
  for (uint32_t i = 0; i < h->exprs.count; ++i)
    if ((status = verify_expr(&v, i)) != TENON_OK) return status;
  for (uint32_t i = 0; i < h->buffers.count; ++i) {
    if ((status = verify_string(&v, v.t.buffers[i].name, "a buffer")) != TENON_OK) return status;
    const char* wrong = tn_spend(&v, 2 * TENON_MAX_RANK) ? verify_buffer(&v, i) : "is one too many to be checked";
    if (wrong) return tn_fail(TENON_INVALID_FILE, "the tables are damaged: buffer %u %s", i, wrong);
  }
  if ((status = verify_signature(&v)) != TENON_OK) return status;
  for (uint32_t i = 0; i < h->functions.count; ++i) {
    const struct tenon_function* f = &v.t.functions[i];
    if ((status = verify_string(&v, f->name, "a function")) != TENON_OK) return status;
    for (uint32_t k = 0; k < TENON_TARGET_COUNT; ++k)
      if (f->external > 1 || (f->external && f->entry[k]) || (!f->external && !(h->targets >> k & 1) && f->entry[k]))
        return tn_fail(TENON_INVALID_FILE, "the tables are damaged: function %u has code where there is none", i);
  }
  for (uint32_t i = 0; i < h->metadata.count; ++i)
    if ((status = verify_string(&v, v.t.metadata[i].key, "an entry of metadata")) != TENON_OK ||
        (status = verify_string(&v, v.t.metadata[i].value, "an entry of metadata")) != TENON_OK)
      return status;
  if ((status = tn_verify_steps(&v)) != TENON_OK) return status;
  *tables = v.t;
  return TENON_OK;
}
