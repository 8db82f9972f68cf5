/* Threads. A worker has a mailbox; a caller puts its job into the mailboxes of idle workers, works itself, and takes
   the job back from workers that have not begun. So callers never wait for each other or for a worker that sleeps, and
   any number of them share the pool. */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpu.h"

enum { spin_worker = 4000, spin_caller = 2000, line = 64, most_threads = 1024, most_helpers = 256 };

/* What a worker finds in its mailbox. */
struct letter {
  struct job* job;
  int participant;
};
/* The letters lie behind the job: a worker waits for as few lines of the caller's as can be. */
struct job {
  _Alignas(line) tn_body body;
  void* context;
  _Atomic uint32_t pending; /* workers that may still touch the job; the top bit: the caller sleeps */
  struct letter letters[most_helpers];
};
static const uint32_t sleeping = UINT32_C(1) << 31;
static struct letter working; /* its address in a mailbox: the worker is busy */

struct worker {
  _Alignas(line) _Atomic(struct letter*) mailbox; /* NULL: idle */
  _Atomic uint32_t parked;                        /* 1: asleep in the kernel */
  pthread_t thread;
  struct tenon_pool* pool;
  int64_t moved; /* when it last left its caller's processor, in nanoseconds */
};

struct tenon_pool {
  int threads;            /* callers included */
  struct worker* workers; /* threads - 1 */
  _Atomic int started;    /* workers that run */
  _Atomic bool stopping;
  _Atomic int caller; /* the processor that the last caller was seen on */
  pthread_mutex_t starting;
  struct tenon_pool* next; /* of all, for fork() */
};

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tenon_pool* all_pools;
static struct tenon_pool* default_pool;
static size_t default_users;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void pause_processor(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}
static void futex_wait(_Atomic uint32_t* word, uint32_t value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void futex_wake(_Atomic uint32_t* word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

static void wake(struct worker* worker) {
  if (atomic_load(&worker->parked) && atomic_exchange(&worker->parked, 0)) futex_wake(&worker->parked);
}

/* On a busy machine a scheduler may leave a new thread beside the one that made it for seconds: they then take turns
   on one processor, and waiting workers only cost. So a worker that finds itself on its caller's processor goes to
   another one, where it has one; where it may run does not change. */
static TN_COLD void leave_processor(struct worker* worker, int processor) {
  int64_t time = tn_nanoseconds();
  if (time - worker->moved < 10000000) return;
  worker->moved = time;
  cpu_set_t allowed, others;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  others = allowed;
  CPU_CLR((size_t)processor, &others);
  if (CPU_COUNT(&others) == 0) return;
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}
static void leave_caller(struct worker* worker) {
  int processor = sched_getcpu();
  if (processor >= 0 && processor == atomic_load_explicit(&worker->pool->caller, memory_order_relaxed))
    leave_processor(worker, processor);
}

static void run_job(struct worker* worker, const struct letter* letter) {
  leave_caller(worker);
  struct job* job = letter->job;
  job->body(job->context, letter->participant);
  uint32_t before = atomic_fetch_sub_explicit(&job->pending, 1, memory_order_acq_rel);
  /* The caller may have left by now: only the address of the word is used. */
  if (before == (sleeping | 1)) futex_wake(&job->pending);
  atomic_store_explicit(&worker->mailbox, NULL, memory_order_release);
}

static void* work(void* argument) {
  struct worker* worker = argument;
  tn_float_control_default(); /* new threads inherit their creator's */
  for (;;) {
    struct letter* letter = NULL;
    for (int i = 0; i < spin_worker; ++i) {
      letter = atomic_load_explicit(&worker->mailbox, memory_order_relaxed);
      if (letter) break;
      if (i % 256 == 255) leave_caller(worker);
      pause_processor();
    }
    if (!letter) {
      if (atomic_load(&worker->pool->stopping)) return NULL;
      atomic_store(&worker->parked, 1);
      if (!atomic_load(&worker->mailbox) && !atomic_load(&worker->pool->stopping)) futex_wait(&worker->parked, 1);
      atomic_store(&worker->parked, 0);
      continue;
    }
    if (atomic_compare_exchange_strong_explicit(&worker->mailbox, &letter, &working, memory_order_acquire,
                                                memory_order_relaxed))
      run_job(worker, letter);
  }
}

/* Makes the missing threads; with fewer than wanted the work is still done. */
static TN_COLD void start(struct tenon_pool* pool) {
  pthread_mutex_lock(&pool->starting);
  for (int i = atomic_load(&pool->started); i < pool->threads - 1; ++i) {
    pool->workers[i].pool = pool;
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* signals are the host's, not our workers' */
    int error = pthread_create(&pool->workers[i].thread, NULL, work, &pool->workers[i]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) break;
    atomic_store_explicit(&pool->started, i + 1, memory_order_release);
  }
  pthread_mutex_unlock(&pool->starting);
}

static TN_COLD void stop(struct tenon_pool* pool) {
  atomic_store(&pool->stopping, true);
  for (int i = 0; i < atomic_load(&pool->started); ++i) {
    struct worker* worker = &pool->workers[i];
    atomic_store(&worker->parked, 0);
    futex_wake(&worker->parked);
  }
  for (int i = 0; i < atomic_load(&pool->started); ++i) pthread_join(pool->workers[i].thread, NULL);
}

/* In the child no worker exists, whatever its mailbox says. */
static TN_COLD void after_fork(void) {
  pthread_mutex_init(&all_lock, NULL);
  for (struct tenon_pool* pool = all_pools; pool; pool = pool->next) {
    pthread_mutex_init(&pool->starting, NULL);
    atomic_store(&pool->started, 0);
    for (int i = 0; i < pool->threads - 1; ++i) {
      atomic_store(&pool->workers[i].mailbox, NULL);
      atomic_store(&pool->workers[i].parked, 0);
    }
  }
}
static void watch_fork(void) { pthread_atfork(NULL, NULL, after_fork); }

static TN_COLD struct tenon_pool* make_pool(int threads) {
  pthread_once(&fork_once, watch_fork);
  struct tenon_pool* pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  atomic_init(&pool->caller, -1);
  pool->threads = threads < 1 ? tn_usable_processors() : threads;
  if (pool->threads > most_threads) pool->threads = most_threads;
  size_t workers = (size_t)pool->threads - 1;
  if (workers && posix_memalign((void**)&pool->workers, line, workers * sizeof *pool->workers) != 0) {
    free(pool);
    return NULL;
  }
  if (workers) memset(pool->workers, 0, workers * sizeof *pool->workers);
  pthread_mutex_init(&pool->starting, NULL);
  return pool;
}

static void free_pool(struct tenon_pool* pool) {
  stop(pool);
  pthread_mutex_destroy(&pool->starting);
  free(pool->workers);
  free(pool);
}

static void list_pool(struct tenon_pool* pool) { /* all_lock is held */
  pool->next = all_pools;
  all_pools = pool;
}
static void unlist_pool(struct tenon_pool* pool) {
  for (struct tenon_pool** at = &all_pools; *at; at = &(*at)->next)
    if (*at == pool) {
      *at = pool->next;
      return;
    }
}

TN_COLD tenon_status tenon_pool_create(int threads, tenon_pool** pool) {
  if (!pool) return tn_fail(TENON_INVALID_ARGUMENT, "tenon_pool_create: pool is NULL");
  if (threads < 0 || threads > most_threads)
    return tn_fail(TENON_INVALID_ARGUMENT, "tenon_pool_create: expected 0 to %d threads, got %d", most_threads,
                   threads);
  struct tenon_pool* made = make_pool(threads);
  if (!made) return tn_fail_memory(sizeof *made, "tenon_pool_create");
  pthread_mutex_lock(&all_lock);
  list_pool(made);
  pthread_mutex_unlock(&all_lock);
  *pool = made;
  return TENON_OK;
}

TN_COLD void tenon_pool_destroy(tenon_pool* pool) {
  if (!pool) return;
  pthread_mutex_lock(&all_lock);
  unlist_pool(pool);
  pthread_mutex_unlock(&all_lock);
  free_pool(pool);
}

bool tn_pool_exists(const tenon_pool* pool) {
  pthread_mutex_lock(&all_lock);
  const tenon_pool* at = all_pools;
  while (at && at != pool) at = at->next;
  pthread_mutex_unlock(&all_lock);
  return at != NULL;
}

int tenon_pool_threads(const tenon_pool* pool) { return pool ? pool->threads : 0; }

tenon_pool* tn_default_pool(void) {
  pthread_mutex_lock(&all_lock);
  if (!default_pool && (default_pool = make_pool(0))) list_pool(default_pool);
  if (default_pool) ++default_users;
  tenon_pool* pool = default_pool;
  pthread_mutex_unlock(&all_lock);
  return pool;
}

void tn_default_pool_release(void) {
  tenon_pool* last = NULL;
  pthread_mutex_lock(&all_lock);
  if (--default_users == 0) {
    last = default_pool;
    default_pool = NULL;
    unlist_pool(last);
  }
  pthread_mutex_unlock(&all_lock);
  if (last) free_pool(last);
}

struct host_job {
  tn_body body;
  void* context;
};
static void host_task(void* context, int task) {
  const struct host_job* job = context;
  uint32_t control = tn_float_control_default();
  job->body(job->context, task);
  tn_float_control_restore(control);
}

static void wait_for(struct job* job) {
  for (int i = 0; i < spin_caller; ++i) {
    if (atomic_load_explicit(&job->pending, memory_order_acquire) == 0) return;
    pause_processor();
  }
  uint32_t pending = atomic_fetch_or_explicit(&job->pending, sleeping, memory_order_acq_rel) | sleeping;
  while (pending != sleeping) {
    futex_wait(&job->pending, pending);
    pending = atomic_load_explicit(&job->pending, memory_order_acquire);
  }
}

void tn_parallel(const struct tn_executor* executor, int most, tn_body body, void* context) {
  if (most > executor->participants) most = executor->participants;
  if (most <= 1) {
    body(context, 0);
    return;
  }
  if (executor->parallel_for) {
    struct host_job job = {body, context};
    executor->parallel_for(executor->host, most, host_task, &job);
    return;
  }
  tenon_pool* pool = executor->pool;
  int started = atomic_load_explicit(&pool->started, memory_order_acquire);
  if (started < pool->threads - 1) {
    start(pool);
    started = atomic_load_explicit(&pool->started, memory_order_acquire);
  }
  int processor = sched_getcpu();
  if (atomic_load_explicit(&pool->caller, memory_order_relaxed) != processor)
    atomic_store_explicit(&pool->caller, processor, memory_order_relaxed);
  struct job job; /* letters are written as they are sent */
  job.body = body;
  job.context = context;
  atomic_init(&job.pending, 0);
  struct worker* given[most_helpers];
  int count = 0;
  for (int i = 0; i < started && count + 1 < most && count < most_helpers; ++i) {
    struct worker* worker = &pool->workers[i];
    if (atomic_load_explicit(&worker->mailbox, memory_order_relaxed)) continue;
    job.letters[count] = (struct letter){&job, count + 1};
    atomic_fetch_add_explicit(&job.pending, 1, memory_order_relaxed);
    struct letter* idle = NULL;
    if (!atomic_compare_exchange_strong(&worker->mailbox, &idle, &job.letters[count])) {
      atomic_fetch_sub_explicit(&job.pending, 1, memory_order_relaxed);
      continue;
    }
    wake(worker);
    given[count++] = worker;
  }
  body(context, 0);
  for (int i = 0; i < count; ++i) {
    struct letter* mine = &job.letters[i];
    if (atomic_load_explicit(&given[i]->mailbox, memory_order_relaxed) == mine &&
        atomic_compare_exchange_strong_explicit(&given[i]->mailbox, &mine, NULL, memory_order_relaxed,
                                                memory_order_relaxed))
      atomic_fetch_sub_explicit(&job.pending, 1, memory_order_relaxed);
  }
  wait_for(&job);
}
