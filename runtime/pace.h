/* Whether a program runs on all threads or on the caller's alone: what is over within microseconds may take longer with
   two threads than with one, and which it is depends on how fast lines of memory come from another processor, which
   changes while a process runs. So short programs try both from time to time. Results do not depend on it. */
#ifndef TENON_RUNTIME_PACE_H
#define TENON_RUNTIME_PACE_H
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { tn_pace_samples = 9 };
struct tn_pace {
  bool alone;       /* how runs are done now */
  bool second;      /* of a trial's two halves, the one whose runs are alone */
  uint8_t count;    /* times taken in this half */
  int64_t rest;     /* runs before the next trial */
  int64_t began;    /* this half */
  int64_t together; /* median of the trial's first half */
  int64_t times[tn_pace_samples];
};

/* The sizes are others than in the run before, or the first ones. */
void tn_pace_restart(struct tn_pace* pace);
/* This run belongs to a trial: its time is wanted. */
static inline bool tn_pace_wants(struct tn_pace* pace) { return pace->rest == 0 || --pace->rest == 0; }
/* It took from `from` to `to`, in nanoseconds of a clock that only goes forward. */
void tn_pace_took(struct tn_pace* pace, int64_t from, int64_t to);

#ifdef __cplusplus
}
#endif
#endif
