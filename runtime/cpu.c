/* What the processor can do, how many of it we may use, and its floating point control. */
#include "cpu.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t enabled_features(void) { /* of the operating system, for registers wider than 128 bits */
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

int tn_processor_target(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return TENON_TARGET_PORTABLE;
  uint32_t wanted = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C | bit_SSE4_2 | bit_POPCNT;
  if ((c & wanted) != wanted || (enabled_features() & 6) != 6) return TENON_TARGET_PORTABLE;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & bit_LZCNT)) return TENON_TARGET_PORTABLE;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return TENON_TARGET_PORTABLE;
  wanted = bit_AVX2 | bit_BMI | bit_BMI2;
  if ((b & wanted) != wanted) return TENON_TARGET_PORTABLE;
  wanted = bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
  if ((b & wanted) != wanted || (enabled_features() & 0xe6) != 0xe6) return TENON_TARGET_X86_64_V3;
  return TENON_TARGET_X86_64_V4;
}

uint32_t tn_float_control_default(void) {
  uint32_t before = __builtin_ia32_stmxcsr(), standard = 0x1f80; /* round to nearest, denormals kept, nothing traps */
  if ((before & 0xffc0) != standard) __builtin_ia32_ldmxcsr(standard);
  return before;
}
void tn_float_control_restore(uint32_t control) {
  if ((control & 0xffc0) != 0x1f80) __builtin_ia32_ldmxcsr(control);
}
#elif defined(__aarch64__)
int tn_processor_target(void) { return TENON_TARGET_PORTABLE; }
uint32_t tn_float_control_default(void) {
  uint64_t before, standard = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  if (before) __asm__ volatile("msr fpcr, %0" : : "r"(standard));
  return (uint32_t)before;
}
void tn_float_control_restore(uint32_t control) {
  uint64_t value = control;
  if (control) __asm__ volatile("msr fpcr, %0" : : "r"(value));
}
#else
int tn_processor_target(void) { return TENON_TARGET_PORTABLE; }
uint32_t tn_float_control_default(void) { return 0; }
void tn_float_control_restore(uint32_t control) { (void)control; }
#endif

/* Reads the first line of a file; false if there is none. */
static bool first_line(const char* path, char* line, int size) {
  FILE* file = fopen(path, "re");
  if (!file) return false;
  bool read = fgets(line, size, file) != NULL;
  fclose(file);
  return read;
}

static int quota_of(const char* folder) {
  char path[PATH_MAX], line[64];
  long long quota, period;
  if (snprintf(path, sizeof path, "%s/cpu.max", folder) < (int)sizeof path && first_line(path, line, sizeof line)) {
    if (sscanf(line, "%lld %lld", &quota, &period) != 2) return INT_MAX; /* "max 100000" */
  } else {
    if (snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder) >= (int)sizeof path ||
        !first_line(path, line, sizeof line) || sscanf(line, "%lld", &quota) != 1)
      return INT_MAX;
    if (snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder) >= (int)sizeof path ||
        !first_line(path, line, sizeof line) || sscanf(line, "%lld", &period) != 1)
      return INT_MAX;
  }
  if (quota <= 0 || period <= 0) return INT_MAX;
  long long processors = (quota + period - 1) / period;
  return processors < 1 ? 1 : processors > INT_MAX ? INT_MAX : (int)processors;
}

/* The least quota of the group and of those it lies in. `group` is cut short. */
static int quota_along(const char* mount, char* group) {
  int least = INT_MAX;
  for (;;) {
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof folder, "%s%s", mount, group) < (int)sizeof folder) {
      int quota = quota_of(folder);
      if (quota < least) least = quota;
    }
    char* slash = strrchr(group, '/');
    if (!slash) return least;
    *slash = 0;
  }
}

int tn_cgroup_processors(const char* groups_file, const char* mount) {
  int least = INT_MAX;
  FILE* file = fopen(groups_file, "re");
  if (!file) return INT_MAX;
  char line[PATH_MAX];
  while (fgets(line, sizeof line, file)) { /* "0::/a/b", or "3:cpu,cpuacct:/a/b" */
    line[strcspn(line, "\n")] = 0;
    char* controllers = strchr(line, ':');
    char* group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    ++controllers;
    char place[PATH_MAX];
    if (*controllers == 0) snprintf(place, sizeof place, "%s", mount);
    else if (strcmp(controllers, "cpu") == 0 || strncmp(controllers, "cpu,", 4) == 0 || strstr(controllers, ",cpu"))
      snprintf(place, sizeof place, "%s/cpu", mount);
    else continue;
    int quota = quota_along(place, group);
    if (quota < least) least = quota;
  }
  fclose(file);
  return least;
}

int tn_usable_processors(void) {
  int count = 0;
  for (size_t bits = 1024; bits <= 1 << 20; bits *= 4) { /* more processors than the mask has room for: EINVAL */
    cpu_set_t* set = CPU_ALLOC(bits);
    if (!set) break;
    bool done = sched_getaffinity(0, CPU_ALLOC_SIZE(bits), set) == 0;
    if (done) count = CPU_COUNT_S(CPU_ALLOC_SIZE(bits), set);
    CPU_FREE(set);
    if (done || errno != EINVAL) break;
  }
  if (count < 1) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    count = online < 1 ? 1 : (int)online;
  }
  int quota = tn_cgroup_processors("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota < count ? quota : count;
}
