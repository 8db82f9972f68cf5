/* The pool under the thread sanitizer: callers share it, and every write of a worker is seen by its caller. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../runtime/internal.h"

struct sum {
  atomic_int next;
  int values[64]; /* plain memory: the sanitizer sees who wrote it */
};
static void add(void* context, int participant) {
  struct sum* sum = context;
  (void)participant;
  for (int i; (i = atomic_fetch_add_explicit(&sum->next, 1, memory_order_relaxed)) < 64;) sum->values[i] += i;
}

static struct tn_executor executor;
static void* call(void* argument) {
  (void)argument;
  for (int i = 0; i < 2000; ++i) {
    struct sum sum = {0};
    int total = 0;
    tn_parallel(&executor, 1 + i % 9, add, &sum);
    for (int k = 0; k < 64; ++k) total += sum.values[k];
    if (total != 63 * 32) {
      fprintf(stderr, "a sum is %d\n", total);
      exit(1);
    }
  }
  return NULL;
}

int main(void) {
  for (int round = 0; round < 5; ++round) {
    pthread_t threads[6];
    if (tenon_pool_create(4, &executor.pool) != TENON_OK) return 1;
    executor.participants = 4;
    for (int i = 0; i < 6; ++i) pthread_create(&threads[i], NULL, call, NULL);
    for (int i = 0; i < 6; ++i) pthread_join(threads[i], NULL);
    tenon_pool_destroy(executor.pool);
  }
  printf("ok\n");
  return 0;
}
