/* States as safetensors files: a length, a JSON object of names, dtypes, shapes and offsets, then the bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

static const char* const dtype_names[TENON_DTYPE_COUNT] = {
    "BOOL", "U8",  "I8",  "I16", "I32",  "I64",     "U16",     "U32",         "U64",         "F16",    "BF16",
    "F32",  "F64", "C32", "C64", "C128", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"};

/* Sizes and bytes of an entry; they are constants. */
static uint64_t entry_shape(const tenon_program* program, uint32_t buffer, int64_t* sizes) {
  const struct tenon_buffer* b = &program->tables.buffers[buffer];
  uint64_t bytes = tenon_dtype_size(b->dtype);
  for (uint32_t d = 0; d < b->rank; ++d) {
    tn_value size = {.i = 0};
    tn_evaluate(&program->tables, b->sizes + d, NULL, &size);
    sizes[d] = size.i;
    bytes *= (uint64_t)size.i; /* verified: at most the buffer's bytes */
  }
  return bytes;
}

/* ---- Writing ---- */

struct text {
  char* bytes;
  size_t size, room;
  bool failed;
};
static void put_bytes(struct text* t, const char* bytes, size_t size) {
  if (t->failed) return;
  if (t->size + size > t->room) {
    size_t room = 2 * (t->room + size);
    char* grown = realloc(t->bytes, room);
    if (!grown) {
      t->failed = true;
      return;
    }
    t->bytes = grown;
    t->room = room;
  }
  memcpy(t->bytes + t->size, bytes, size);
  t->size += size;
}
static void put_text(struct text* t, const char* s) { put_bytes(t, s, strlen(s)); }
static void put_number(struct text* t, uint64_t value) {
  char digits[24];
  put_bytes(t, digits, (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)value));
}
static void put_string(struct text* t, const char* s) {
  put_text(t, "\"");
  for (; *s; ++s) {
    char escaped[8];
    if (*s == '"' || *s == '\\') put_bytes(t, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\%c", *s));
    else if ((unsigned char)*s < 0x20)
      put_bytes(t, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", (unsigned char)*s));
    else put_bytes(t, s, 1);
  }
  put_text(t, "\"");
}

static void describe(const tenon_program* program, struct text* header) {
  const struct tn_tables* t = &program->tables;
  uint64_t offset = 0;
  put_text(header, "{\"__metadata__\":{\"format\":\"tenon\"}");
  for (uint32_t i = 0; i < t->header->states.count; ++i) {
    uint32_t buffer = t->states[i].buffer;
    if (buffer == TENON_NONE) continue;
    int64_t sizes[TENON_MAX_RANK];
    uint64_t bytes = entry_shape(program, buffer, sizes);
    put_text(header, ",");
    put_string(header, tn_string(t, t->states[i].name));
    put_text(header, ":{\"dtype\":\"");
    put_text(header, dtype_names[t->buffers[buffer].dtype]);
    put_text(header, "\",\"shape\":[");
    for (uint32_t d = 0; d < t->buffers[buffer].rank; ++d) {
      if (d) put_text(header, ",");
      put_number(header, (uint64_t)sizes[d]);
    }
    put_text(header, "],\"data_offsets\":[");
    put_number(header, offset);
    put_text(header, ",");
    put_number(header, offset + bytes);
    put_text(header, "]}");
    offset += bytes;
  }
  put_text(header, "}");
  while (header->size % 8 != 0 && !header->failed) put_text(header, " ");
}

static bool write_all(int descriptor, const void* bytes, uint64_t size) {
  const char* at = bytes;
  while (size > 0) {
    ssize_t written = write(descriptor, at, size < 1 << 30 ? size : 1 << 30);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += written;
    size -= (uint64_t)written;
  }
  return true;
}

static tenon_status refuse_strided(const tenon_program* program) {
  const struct tn_tables* t = &program->tables;
  for (uint32_t i = 0; i < t->header->states.count; ++i)
    if (t->states[i].buffer != TENON_NONE && t->buffers[t->states[i].buffer].strides != TENON_NONE)
      return tn_fail(TENON_UNSUPPORTED, "'%s' is not contiguous in the artifact; it cannot be saved or loaded",
                     tn_string(t, t->states[i].name));
  return TENON_OK;
}

tenon_status tenon_state_save(const tenon_state* state, const char* path) {
  if (!state || !path) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_save: an argument is NULL");
  const tenon_program* program = tn_state_program(state);
  const struct tn_tables* t = &program->tables;
  tenon_status status = refuse_strided(program);
  if (status != TENON_OK) return status;
  struct text header = {0};
  describe(program, &header);
  char* temporary = malloc(strlen(path) + 32);
  if (header.failed || !temporary) {
    free(header.bytes);
    free(temporary);
    return tn_fail_memory(header.size, "saving the state");
  }
  static _Atomic unsigned number;
  sprintf(temporary, "%s.%d-%u.partial", path, (int)getpid(), atomic_fetch_add(&number, 1) % 1000000);
  int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  uint64_t size = header.size;
  bool good = descriptor >= 0 && write_all(descriptor, &size, 8) && write_all(descriptor, header.bytes, size);
  int error = errno;
  tn_state_lock(state, false);
  bool damaged = tn_state_damaged(state);
  for (uint32_t i = 0; i < t->header->states.count && good && !damaged; ++i) {
    uint32_t buffer = t->states[i].buffer;
    int64_t sizes[TENON_MAX_RANK];
    if (buffer == TENON_NONE) continue;
    good = write_all(descriptor, tn_state_pointers(state)[buffer], entry_shape(program, buffer, sizes));
    error = errno;
  }
  tn_state_unlock(state);
  if (descriptor >= 0 && close(descriptor) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && !damaged && rename(temporary, path) != 0) {
    good = false;
    error = errno;
  }
  if (damaged) status = tn_state_refuse_damaged();
  else if (!good) status = tn_fail(TENON_IO, "'%s' cannot be written: %s", path, strerror(error));
  if (status != TENON_OK && descriptor >= 0) unlink(temporary);
  free(temporary);
  free(header.bytes);
  return status;
}

/* ---- Reading ---- */

struct reader {
  const char* at;
  const char* end;
  const char* wrong; /* why it ended; NULL as long as it is good */
};
static void fail_reading(struct reader* r, const char* why) {
  if (!r->wrong) r->wrong = why;
  r->at = r->end;
}
static void skip_space(struct reader* r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) ++r->at;
}
static bool accept(struct reader* r, char c) {
  skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  ++r->at;
  return true;
}
static void need(struct reader* r, char c) {
  if (!accept(r, c)) fail_reading(r, "its header is not the JSON that safetensors files have");
}

static int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Into `out`, of `room` bytes, with a NUL; longer text is cut. */
static void read_string(struct reader* r, char* out, size_t room) {
  static const char ends[] = "its header ends within a name", escape[] = "its header has a wrong escape";
  size_t length = 0;
  need(r, '"');
  while (!r->wrong) {
    int c = r->at < r->end ? (unsigned char)*r->at++ : -1;
    if (c == '"') break;
    if (c == '\\') {
      c = r->at < r->end ? (unsigned char)*r->at++ : -1;
      if (c == 'n') c = '\n';
      else if (c == 't') c = '\t';
      else if (c == 'u') {
        c = 0;
        for (int i = 0; i < 4 && c >= 0; ++i) {
          int digit = r->at < r->end ? hex(*r->at++) : -1;
          c = digit < 0 ? -1 : c * 16 + digit;
        }
        if (c < 0 || c >= 0x80) fail_reading(r, escape); /* names beyond ASCII are written as they are */
      } else if (c != '"' && c != '\\' && c != '/') {
        fail_reading(r, escape);
      }
    }
    if (c < 0) fail_reading(r, ends);
    if (length + 1 < room) out[length++] = (char)c;
  }
  out[length] = 0;
}

static uint64_t read_number(struct reader* r) {
  uint64_t value = 0;
  skip_space(r);
  if (r->at == r->end || *r->at < '0' || *r->at > '9') {
    fail_reading(r, "its header lacks a number");
    return 0;
  }
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9') {
    if (__builtin_mul_overflow(value, 10u, &value) || __builtin_add_overflow(value, (uint64_t)(*r->at - '0'), &value)) {
      fail_reading(r, "its header has a number that is too large");
      return 0;
    }
    ++r->at;
  }
  return value;
}

struct described {
  char dtype[16];
  int64_t sizes[TENON_MAX_RANK];
  int32_t rank;
  uint64_t begin, end;
};

static void read_tensor(struct reader* r, struct described* d) {
  memset(d, 0, sizeof *d);
  need(r, '{');
  bool first = true;
  while (!r->wrong && !accept(r, '}')) {
    char key[32];
    if (!first) need(r, ',');
    first = false;
    read_string(r, key, sizeof key);
    need(r, ':');
    if (strcmp(key, "dtype") == 0) read_string(r, d->dtype, sizeof d->dtype);
    else if (strcmp(key, "shape") == 0) {
      need(r, '[');
      d->rank = 0;
      while (!r->wrong && !accept(r, ']')) {
        if (d->rank) need(r, ',');
        uint64_t size = read_number(r);
        if (d->rank == TENON_MAX_RANK) fail_reading(r, "its header has a shape of too many dimensions");
        else if (size > INT64_MAX) fail_reading(r, "its header has a number that is too large");
        else d->sizes[d->rank++] = (int64_t)size;
      }
    } else if (strcmp(key, "data_offsets") == 0) {
      need(r, '[');
      d->begin = read_number(r);
      need(r, ',');
      d->end = read_number(r);
      need(r, ']');
    } else {
      fail_reading(r, "its header has an unknown field");
    }
  }
}

static void skip_metadata(struct reader* r) {
  char ignored[8];
  need(r, '{');
  bool first = true;
  while (!r->wrong && !accept(r, '}')) {
    if (!first) need(r, ',');
    first = false;
    read_string(r, ignored, sizeof ignored);
    need(r, ':');
    read_string(r, ignored, sizeof ignored);
  }
}

/* Where each entry's bytes lie: offsets[i] of the data, or UINT64_MAX. */
static tenon_status read_header(const tenon_program* program, struct reader* r, uint64_t data_size, uint64_t* offsets) {
  const struct tn_tables* t = &program->tables;
  for (uint32_t i = 0; i < t->header->states.count; ++i) offsets[i] = UINT64_MAX;
  need(r, '{');
  bool first = true;
  while (!r->wrong && !accept(r, '}')) {
    char name[1024];
    struct described d;
    if (!first) need(r, ',');
    first = false;
    read_string(r, name, sizeof name);
    need(r, ':');
    if (strcmp(name, "__metadata__") == 0) {
      skip_metadata(r);
      continue;
    }
    read_tensor(r, &d);
    if (r->wrong) break;
    uint32_t i = 0;
    while (i < t->header->states.count && strcmp(tn_string(t, t->states[i].name), name) != 0) ++i;
    if (i == t->header->states.count)
      return tn_fail(TENON_INVALID_FILE, "it holds '%s', which this program has not: it is the state of another", name);
    if (t->states[i].buffer == TENON_NONE)
      return tn_fail(TENON_INVALID_FILE, "it holds '%s', which is frozen in this artifact", name);
    const struct tenon_buffer* b = &t->buffers[t->states[i].buffer];
    int64_t sizes[TENON_MAX_RANK];
    uint64_t bytes = entry_shape(program, t->states[i].buffer, sizes);
    if (strcmp(d.dtype, dtype_names[b->dtype]) != 0)
      return tn_fail(TENON_INVALID_FILE, "'%s': expected %s, got %s", name, dtype_names[b->dtype], d.dtype);
    if (d.rank != b->rank || memcmp(d.sizes, sizes, (size_t)d.rank * sizeof *sizes) != 0)
      return tn_fail(TENON_INVALID_FILE, "'%s': its shape is not the one this program has", name);
    if (d.begin > d.end || d.end > data_size || d.end - d.begin != bytes)
      return tn_fail(TENON_INVALID_FILE, "'%s': its bytes do not lie in the file; it may be truncated", name);
    offsets[i] = d.begin;
  }
  if (r->wrong) return tn_fail(TENON_INVALID_FILE, "%s", r->wrong);
  for (uint32_t i = 0; i < t->header->states.count; ++i)
    if (t->states[i].buffer != TENON_NONE && offsets[i] == UINT64_MAX)
      return tn_fail(TENON_INVALID_FILE, "it lacks '%s'", tn_string(t, t->states[i].name));
  return TENON_OK;
}

tenon_status tn_state_load_source(tenon_state* state, const struct tn_source* source) {
  const tenon_program* program = tn_state_program(state);
  const struct tn_tables* t = &program->tables;
  uint64_t size = 0;
  tenon_status status = tn_read(source, 0, &size, 8);
  if (status != TENON_OK) return status;
  if (size > source->size - 8 || size > 100 << 20)
    return tn_fail(TENON_INVALID_FILE, "it is no safetensors file, or truncated");
  char* header = malloc(size + 1);
  uint64_t* offsets = malloc((t->header->states.count + 1) * sizeof *offsets);
  status = header && offsets ? tn_read(source, 8, header, size) : tn_fail_memory(size, "loading the state");
  struct reader r = {header, header ? header + size : NULL, NULL};
  if (status == TENON_OK) status = read_header(program, &r, source->size - 8 - size, offsets);
  if (status == TENON_OK) {
    tn_state_lock(state, true);
    for (uint32_t i = 0; i < t->header->states.count && status == TENON_OK; ++i) {
      uint32_t buffer = t->states[i].buffer;
      int64_t sizes[TENON_MAX_RANK];
      if (buffer == TENON_NONE) continue;
      status = tn_state_writable(state, buffer);
      if (status == TENON_OK)
        status = tn_read(source, 8 + size + offsets[i], tn_state_pointers(state)[buffer],
                         entry_shape(program, buffer, sizes));
    }
    if (status == TENON_OK) tn_state_loaded(state);
    tn_state_unlock(state);
  }
  free(header);
  free(offsets);
  return status;
}

tenon_status tenon_state_load(tenon_state* state, const char* path) {
  if (!state || !path) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_state_load: an argument is NULL");
  tenon_status status = refuse_strided(tn_state_program(state));
  if (status != TENON_OK) return status;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info;
  if (descriptor < 0 || fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    status =
        tn_fail(TENON_IO, "'%s' cannot be read: %s", path, descriptor < 0 ? strerror(errno) : "it is no regular file");
    if (descriptor >= 0) close(descriptor);
    return status;
  }
  struct tn_source source = {.descriptor = descriptor, .size = (uint64_t)info.st_size};
  status = tn_state_load_source(state, &source);
  close(descriptor);
  if (status != TENON_OK) {
    char reason[400];
    strncpy(reason, tenon_last_error(), sizeof reason - 1);
    reason[sizeof reason - 1] = 0;
    tn_fail(status, "'%s': %s", path, reason);
  }
  return status;
}
