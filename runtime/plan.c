/* Where the buffers of a segment lie in its block: planned once for each combination of sizes, the last 16 kept. Large
   buffers first, each at the lowest place that is free during its lifetime.

   Of two threads the first writes the first half of a buffer, mostly. Where a buffer comes to lie around the middle of
   one that is gone, each thread writes lines that its own core has; others would have to come from the other core. So a
   place around such a middle is preferred to the lowest one, as long as that takes no more memory. */
#include <stdlib.h>

#include "internal.h"

enum { kept = 16, most_middles = 8 };

struct placed {
  uint64_t offset, size;
  uint32_t first, last;
};
struct placement {
  tn_value* key;     /* values of the segment's symbols */
  uint64_t* offsets; /* by member */
  uint64_t size;
  uint64_t used; /* when last; 0: never */
};
struct tn_plan {
  struct placement entries[kept];
  int current; /* whose offsets the session's pointers show; -1: none */
};

struct sized {
  uint64_t size;
  uint32_t member;
};
static int larger_first(const void* a, const void* b) {
  const struct sized *x = a, *y = b;
  if (x->size != y->size) return x->size > y->size ? -1 : 1;
  return x->member < y->member ? -1 : 1;
}

/* `placed` is ordered by offset. */
static TN_COLD uint64_t lowest_place(const struct placed* placed, uint32_t count, const struct tenon_buffer* b,
                                     uint64_t size) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (placed[i].last < b->first || placed[i].first > b->last) continue;
    if (placed[i].offset >= at && placed[i].offset - at >= size) return at;
    if (placed[i].offset + placed[i].size > at) at = placed[i].offset + placed[i].size;
  }
  return at;
}

static TN_COLD bool is_free(const struct placed* placed, uint32_t count, const struct tenon_buffer* b, uint64_t at,
                            uint64_t size) {
  for (uint32_t i = 0; i < count; ++i)
    if (placed[i].last >= b->first && placed[i].first <= b->last && placed[i].offset < at + size &&
        at < placed[i].offset + placed[i].size)
      return false;
  return true;
}

static void insert(struct placed* placed, uint32_t count, struct placed one) {
  uint32_t at = count;
  while (at > 0 && placed[at - 1].offset > one.offset) {
    placed[at] = placed[at - 1];
    --at;
  }
  placed[at] = one;
}

static tenon_status size_of(tenon_session* session, uint32_t expr, uint64_t* out) {
  tn_value value;
  tenon_status status = tn_value_of(session, expr, &value, "the size of a buffer");
  if (status != TENON_OK) return status;
  if (value.i < 0 || value.i > INT64_MAX / 2)
    return tn_fail(TENON_CHECK_FAILED, "a buffer of %lld bytes is asked for", (long long)value.i);
  *out = (uint64_t)value.i;
  return TENON_OK;
}

/* Buffers of `order` beside the `count` that are placed already; returns where the last one ends. */
static TN_COLD uint64_t arrange(const struct tn_tables* t, struct tenon_list members, const struct sized* order,
                                uint32_t open, struct placed* placed, uint32_t count, bool around_middles,
                                uint64_t* offsets) {
  uint64_t middles[most_middles], end = 0;
  uint32_t middle_count = 0;
  for (uint32_t i = 0; i < count; ++i)
    if (placed[i].offset + placed[i].size > end) end = placed[i].offset + placed[i].size;
  for (uint32_t k = 0; k < open; ++k) {
    const struct tenon_buffer* b = &t->buffers[t->refs[members.first + order[k].member]];
    uint64_t size = order[k].size, offset = UINT64_MAX, least = size / 8;
    for (uint32_t m = 0; around_middles && m < middle_count && size <= end; ++m) {
      uint64_t half = size / 2 / TENON_ALIGNMENT * TENON_ALIGNMENT, at = middles[m] > half ? middles[m] - half : 0;
      if (at > end - size) at = end - size;
      uint64_t away = at + half > middles[m] ? at + half - middles[m] : middles[m] - at - half;
      if (away > least || !is_free(placed, count, b, at, size)) continue;
      offset = at;
      least = away;
    }
    if (offset == UINT64_MAX) {
      offset = lowest_place(placed, count, b, size);
      if (middle_count < most_middles)
        middles[middle_count++] = (offset + size / 2) / TENON_ALIGNMENT * TENON_ALIGNMENT;
    }
    offsets[order[k].member] = offset;
    insert(placed, count++, (struct placed){offset, size, b->first, b->last});
    if (offset + size > end) end = offset + size;
  }
  return end;
}

static TN_COLD tenon_status place(tenon_session* session, struct tenon_list members, struct placement* entry) {
  const struct tn_tables* t = &session->program->tables;
  size_t room = members.count + 1;
  struct sized* order = malloc(room * sizeof *order);
  struct placed* placed = malloc(2 * room * sizeof *placed);
  uint64_t* lowest = malloc(room * sizeof *lowest);
  tenon_status status = order && placed && lowest ? TENON_OK : tn_fail_memory(members.count, "planning");
  uint32_t count = 0, open = 0;
  uint64_t all = 0;
  for (uint32_t i = 0; i < members.count && status == TENON_OK; ++i) {
    const struct tenon_buffer* b = &t->buffers[t->refs[members.first + i]];
    uint64_t size = 0, offset = 0;
    status = size_of(session, b->bytes, &size);
    size = tn_round_up(size, TENON_ALIGNMENT);
    if (b->offset == TENON_NONE) order[open++] = (struct sized){size, i};
    else if (status == TENON_OK && (status = size_of(session, b->offset, &offset)) == TENON_OK) {
      if (offset % TENON_ALIGNMENT != 0)
        status =
            tn_fail(TENON_INVALID_FILE, "a buffer is placed at %llu, off its alignment", (unsigned long long)offset);
      entry->offsets[i] = offset;
      insert(placed, count++, (struct placed){offset, size, b->first, b->last});
    }
    if (status == TENON_OK &&
        (__builtin_add_overflow(all, size, &all) || __builtin_add_overflow(all, offset, &all) || all > INT64_MAX))
      status = tn_fail_memory(size, "working memory");
  }
  if (status == TENON_OK) {
    qsort(order, open, sizeof *order, larger_first);
    struct placed* copy = placed + room;
    memcpy(copy, placed, count * sizeof *placed);
    entry->size = arrange(t, members, order, open, placed, count, true, entry->offsets);
    memcpy(placed, copy, count * sizeof *placed);
    for (uint32_t i = 0; i < members.count; ++i) lowest[i] = entry->offsets[i];
    uint64_t size = arrange(t, members, order, open, placed, count, false, lowest);
    if (size < entry->size) {
      memcpy(entry->offsets, lowest, members.count * sizeof *lowest);
      entry->size = size;
    }
  }
  free(lowest);
  free(order);
  free(placed);
  return status;
}

/* The entry for these values of symbols, made if it is not there. */
static tenon_status find_entry(tenon_session* session, uint32_t segment, int* found) {
  const tenon_program* program = session->program;
  struct tn_plan* plan = &session->plans[segment];
  struct tenon_list symbols = program->plan_symbols[segment];
  const uint32_t* ids = program->plan_symbol_ids + symbols.first;
  static _Atomic uint64_t clock;
  int oldest = 0;
  for (int i = 0; i < kept; ++i) {
    struct placement* entry = &plan->entries[i];
    if (entry->used < plan->entries[oldest].used) oldest = i;
    if (!entry->used) continue;
    uint32_t k = 0;
    while (k < symbols.count && entry->key[k].i == session->symbols[ids[k]].i) ++k;
    if (k < symbols.count) continue;
    entry->used = atomic_fetch_add_explicit(&clock, 1, memory_order_relaxed) + 1;
    *found = i;
    return TENON_OK;
  }
  struct placement* entry = &plan->entries[oldest];
  uint32_t members = program->tables.segments[segment].buffers.count;
  if (!entry->key) entry->key = malloc((symbols.count + 1) * sizeof *entry->key);
  if (!entry->offsets) entry->offsets = malloc((members + 1) * sizeof *entry->offsets);
  entry->used = 0;
  if (plan->current == oldest) plan->current = -1;
  if (!entry->key || !entry->offsets) return tn_fail_memory(members, "planning");
  tenon_status status = place(session, program->tables.segments[segment].buffers, entry);
  if (status != TENON_OK) return status;
  for (uint32_t k = 0; k < symbols.count; ++k) entry->key[k] = session->symbols[ids[k]];
  entry->used = atomic_fetch_add_explicit(&clock, 1, memory_order_relaxed) + 1;
  *found = oldest;
  return TENON_OK;
}

tenon_status tn_plan_segment(tenon_session* session, uint32_t segment) {
  const struct tn_tables* t = &session->program->tables;
  struct tn_plan* plan = &session->plans[segment];
  int found = 0;
  tenon_status status = find_entry(session, segment, &found);
  if (status != TENON_OK || plan->current == found) return status;
  struct placement* entry = &plan->entries[found];
  plan->current = -1;
  status = tn_block_reserve(session, &session->blocks[segment], entry->size, "working memory");
  if (status != TENON_OK) return status;
  struct tenon_list members = t->segments[segment].buffers;
  unsigned char* memory = session->blocks[segment].memory;
  for (uint32_t i = 0; i < members.count; ++i)
    session->pointers[t->refs[members.first + i]] = memory + entry->offsets[i];
  plan->current = found;
  return TENON_OK;
}

bool tn_plans_create(tenon_session* session) {
  size_t count = session->program->tables.header->segments.count;
  session->plans = calloc(count + 1, sizeof *session->plans);
  for (size_t i = 0; session->plans && i < count; ++i) session->plans[i].current = -1;
  return session->plans != NULL;
}

void tn_plans_destroy(tenon_session* session) {
  if (!session->plans) return;
  for (size_t s = 0; s < session->program->tables.header->segments.count; ++s)
    for (int i = 0; i < kept; ++i) {
      free(session->plans[s].entries[i].key);
      free(session->plans[s].entries[i].offsets);
    }
  free(session->plans);
}
