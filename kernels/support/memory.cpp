// Compilers turn loops and assignments into calls of these.
#include <stddef.h>

extern "C" {

void* memcpy(void* __restrict to, const void* __restrict from, size_t bytes) {
  char* t = static_cast<char*>(to);
  const char* f = static_cast<const char*>(from);
  for (size_t i = 0; i < bytes; ++i) t[i] = f[i];
  return to;
}

void* memmove(void* to, const void* from, size_t bytes) {
  char* t = static_cast<char*>(to);
  const char* f = static_cast<const char*>(from);
  if (t <= f || t >= f + bytes)
    for (size_t i = 0; i < bytes; ++i) t[i] = f[i];
  else
    for (size_t i = bytes; i-- > 0;) t[i] = f[i];
  return to;
}

void* memset(void* to, int value, size_t bytes) {
  char* t = static_cast<char*>(to);
  for (size_t i = 0; i < bytes; ++i) t[i] = static_cast<char>(value);
  return to;
}

int memcmp(const void* a, const void* b, size_t bytes) {
  const unsigned char* x = static_cast<const unsigned char*>(a);
  const unsigned char* y = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < bytes; ++i)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}
}
