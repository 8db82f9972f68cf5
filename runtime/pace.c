/* When a program runs alone. */
#include "pace.h"

#include <string.h>

enum {
  most = 100000,         /* ns: programs that take longer have steps that are worth a second thread */
  warming = 100000,      /* ns in which a sleeping worker wakes, and caches have what this kind of run needs */
  between = 50000000,    /* ns of runs between two trials */
  for_long = 1000000000, /* the same where all threads are better by far */
};

void tn_pace_restart(struct tn_pace* pace) { memset(pace, 0, sizeof *pace); }

static int64_t median(int64_t* times) {
  for (int i = 1; i < tn_pace_samples; ++i)
    for (int j = i; j > 0 && times[j - 1] > times[j]; --j) {
      int64_t swap = times[j];
      times[j] = times[j - 1];
      times[j - 1] = swap;
    }
  return times[tn_pace_samples / 2];
}

static void settle(struct tn_pace* pace, bool alone, int64_t each, int64_t pause) {
  pace->alone = alone;
  pace->second = false;
  pace->began = 0;
  pace->count = 0;
  pace->rest = pause / (each > 0 ? each : 1) + 1;
}

void tn_pace_took(struct tn_pace* pace, int64_t from, int64_t to) {
  if (pace->began == 0) { /* this run was still like those before the trial */
    pace->began = to;
    pace->alone = pace->second;
    return;
  }
  if (from - pace->began < warming) return;
  pace->times[pace->count++] = to - from;
  if (pace->count < tn_pace_samples) return;
  int64_t took = median(pace->times);
  if (!pace->second) {
    if (took > most) {
      settle(pace, false, took, for_long);
      return;
    }
    pace->together = took;
    pace->second = pace->alone = true;
    pace->count = 0;
    pace->began = to;
    return;
  }
  bool alone = took <= pace->together;
  settle(pace, alone, alone ? took : pace->together, took > 3 * pace->together / 2 ? for_long : between);
}
