/* What expressions, buffers and single numbers in them are at this point of a run. */
#include "internal.h"

tenon_status tn_value_of(tenon_session* session, uint32_t expr, tn_value* value, const char* what) {
  const tenon_program* program = session->program;
  struct tn_cached* cached = &session->cache[expr];
  if (cached->generation == session->generation) {
    *value = cached->value;
    return TENON_OK;
  }
  const char* wrong = tn_evaluate(&program->tables, expr, session->symbols, value);
  if (wrong) return tn_fail(TENON_CHECK_FAILED, "%s has no value: %s", what, wrong);
  if (program->expr_class[expr] != TN_DYNAMIC) *cached = (struct tn_cached){*value, session->generation};
  return TENON_OK;
}

static void* root_pointer(const tenon_session* session, uint32_t root) {
  uint8_t role = session->program->tables.buffers[root].role;
  bool of_state = role == TENON_ROLE_STATE || role == TENON_ROLE_DERIVED || role == TENON_ROLE_CONSTANT;
  return of_state ? session->state_pointers[root] : session->pointers[root];
}

static tenon_status root_bytes(tenon_session* session, uint32_t root, uint64_t* bytes) {
  const struct tenon_buffer* b = &session->program->tables.buffers[root];
  if (b->role == TENON_ROLE_INPUT || b->role == TENON_ROLE_OUTPUT || (b->flags & TENON_BUFFER_DYNAMIC)) {
    *bytes = session->extents[root];
    return TENON_OK;
  }
  tn_value value;
  tenon_status status = tn_value_of(session, b->bytes, &value, "the size of a buffer");
  *bytes = status == TENON_OK && value.i > 0 ? (uint64_t)value.i : 0;
  return status;
}

tenon_status tn_pointer_of(tenon_session* session, uint32_t buffer, void** pointer) {
  const struct tenon_buffer* b = &session->program->tables.buffers[buffer];
  if (b->root == TENON_NONE) {
    *pointer = root_pointer(session, buffer);
    return TENON_OK;
  }
  tn_value offset, size;
  uint64_t bytes = 0;
  tenon_status status = tn_value_of(session, b->offset, &offset, "the offset of a view");
  if (status == TENON_OK) status = tn_value_of(session, b->bytes, &size, "the size of a view");
  if (status == TENON_OK) status = root_bytes(session, b->root, &bytes);
  if (status != TENON_OK) return status;
  if (size.i == 0) { /* nothing lies there, wherever it begins */
    *pointer = root_pointer(session, b->root);
    return TENON_OK;
  }
  if (offset.i < 0 || size.i < 0 || (uint64_t)offset.i > bytes || (uint64_t)size.i > bytes - (uint64_t)offset.i)
    return tn_fail(TENON_CHECK_FAILED, "a view of %lld bytes from %lld lies outside its buffer of %llu bytes",
                   (long long)size.i, (long long)offset.i, (unsigned long long)bytes);
  *pointer = (unsigned char*)root_pointer(session, b->root) + offset.i;
  return TENON_OK;
}

tenon_status tn_describe(tenon_session* session, uint32_t buffer, tenon_tensor* tensor) {
  const struct tenon_buffer* b = &session->program->tables.buffers[buffer];
  tensor->dtype = b->dtype;
  tensor->rank = b->rank;
  for (uint32_t d = 0; d < b->rank; ++d) {
    tn_value value;
    tenon_status status = tn_value_of(session, b->sizes + d, &value, "a size");
    if (status != TENON_OK) return status;
    if (value.i < 0) return tn_fail(TENON_CHECK_FAILED, "a tensor would have the size %lld", (long long)value.i);
    tensor->sizes[d] = value.i;
  }
  if (b->strides == TENON_NONE)
    return tn_contiguous_strides(b->rank, tensor->sizes, tensor->strides)
               ? TENON_OK
               : tn_fail(TENON_CHECK_FAILED, "a tensor would have more elements than fit into 64 bits");
  for (uint32_t d = 0; d < b->rank; ++d) {
    tn_value value;
    tenon_status status = tn_value_of(session, b->strides + d, &value, "a stride");
    if (status != TENON_OK) return status;
    tensor->strides[d] = value.i;
  }
  return TENON_OK;
}

tenon_status tn_tensor_of(tenon_session* session, uint32_t buffer, tenon_tensor* tensor) {
  if (session->program->tables.buffers[buffer].flags & TENON_BUFFER_DYNAMIC) {
    *tensor = session->dynamic[buffer];
    return TENON_OK;
  }
  tenon_status status = tn_describe(session, buffer, tensor);
  return status == TENON_OK ? tn_pointer_of(session, buffer, &tensor->data) : status;
}

tenon_status tn_block_reserve(tenon_session* session, struct tn_block* block, size_t size, const char* what) {
  if (block->memory && block->size >= size) return TENON_OK;
  void* memory = tn_allocate(&session->program->allocator, size);
  if (!memory) return tn_fail_memory(size, what);
  tn_release(&session->program->allocator, block->memory, block->size);
  *block = (struct tn_block){memory, size};
  return TENON_OK;
}

/* ---- Numbers in buffers ---- */

tn_value tn_load_number(const unsigned char* at, uint8_t dtype) {
  tn_value value = {.i = 0};
#define LOAD(code, type, member)        \
  case code: {                          \
    type number;                        \
    memcpy(&number, at, sizeof number); \
    value.member = number;              \
    break;                              \
  }
  switch (dtype) {
    LOAD(TENON_BOOL, uint8_t, i)
    LOAD(TENON_U8, uint8_t, i)
    LOAD(TENON_I8, int8_t, i)
    LOAD(TENON_I16, int16_t, i)
    LOAD(TENON_I32, int32_t, i)
    LOAD(TENON_I64, int64_t, i)
    LOAD(TENON_U16, uint16_t, i)
    LOAD(TENON_U32, uint32_t, i)
    LOAD(TENON_U64, int64_t, i)
    LOAD(TENON_F32, float, d)
    LOAD(TENON_F64, double, d)
    default: break;
  }
#undef LOAD
  return value;
}

void tn_store_number(unsigned char* at, uint8_t dtype, tn_value value, uint32_t type) {
  if (type == TENON_REAL) { /* verified: then the dtype is one of these two */
    float narrow = (float)value.d;
    if (dtype == TENON_F32) memcpy(at, &narrow, sizeof narrow);
    else memcpy(at, &value.d, sizeof value.d);
    return;
  }
#define STORE(code, kind)               \
  case code: {                          \
    kind number = (kind)value.i;        \
    memcpy(at, &number, sizeof number); \
    break;                              \
  }
  switch (dtype) {
    case TENON_BOOL:
      *at = value.i != 0;
      break;
      STORE(TENON_U8, uint8_t)
      STORE(TENON_I8, int8_t)
      STORE(TENON_I16, int16_t)
      STORE(TENON_I32, int32_t)
      STORE(TENON_I64, int64_t)
      STORE(TENON_U16, uint16_t)
      STORE(TENON_U32, uint32_t)
      STORE(TENON_U64, uint64_t)
      STORE(TENON_F32, float)
      STORE(TENON_F64, double)
    default: break;
  }
#undef STORE
}

/* The element number `index` of a buffer, in memory order. */
tenon_status tn_element(tenon_session* session, uint32_t buffer, uint32_t index, unsigned char** at) {
  tenon_tensor tensor;
  tn_value number;
  uint64_t bytes = 0, item;
  tenon_status status = tn_tensor_of(session, buffer, &tensor);
  if (status == TENON_OK) status = tn_value_of(session, index, &number, "the position of an element");
  if (status != TENON_OK) return status;
  item = tenon_dtype_size(tensor.dtype);
  if (!tn_extent(tensor.rank, tensor.sizes, tensor.strides, item, &bytes) || number.i < 0 ||
      (uint64_t)number.i >= bytes / item)
    return tn_fail(TENON_CHECK_FAILED, "element %lld of a buffer that has %llu is asked for", (long long)number.i,
                   (unsigned long long)(bytes / item));
  *at = (unsigned char*)tensor.data + (uint64_t)number.i * item;
  return TENON_OK;
}
