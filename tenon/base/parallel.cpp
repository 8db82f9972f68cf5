#include "tenon/base/parallel.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::parallel {
namespace {

thread_local bool inside_loop = false;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

constexpr int spin_rounds = 2000;  // some 20 to 50 microseconds, then the thread is parked

class Pool {
 public:
  Pool() : wanted_(static_cast<int>(std::thread::hardware_concurrency())) {
    if (wanted_ < 1) wanted_ = 1;
  }

  int threads() const { return wanted_.load(std::memory_order_relaxed); }

  void set_threads(int count) {
    if (count < 1) count = 1;
    if (inside_loop) return;  // the loop that is running keeps its threads
    std::lock_guard lock(loop_);
    stop();
    wanted_ = count;
  }

  void run(std::int64_t count, std::int64_t grain, RangeFunction body, void* context) {
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    if (inside_loop || count <= grain || threads() == 1 || !loop_.try_lock()) return body(context, 0, count);
    std::unique_lock lock(loop_, std::adopt_lock);
    start();
    // Sixteen ranges for each thread: one that is delayed does not delay the loop by its whole share.
    const std::int64_t all = 16 * static_cast<std::int64_t>(wanted_);
    job_ = {body, context, count, (count + all - 1) / all};
    if (job_.step < grain) job_.step = grain;
    const std::int64_t ranges = (count + job_.step - 1) / job_.step;
    parts_ = wanted_ < most_parts ? wanted_.load() : most_parts;
    for (int i = 0; i < parts_; ++i) {
      part_[i].next.store(ranges * i / parts_, std::memory_order_relaxed);
      part_[i].end = ranges * (i + 1) / parts_;
    }
    failure_ = nullptr;
    state_.fetch_or(open, std::memory_order_release);
    ticket_.fetch_add(1, std::memory_order_release);
    ticket_.notify_all();
    take_ranges(0);
    close();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  struct Job {
    RangeFunction body;
    void* context;
    std::int64_t count, step;
  };
  struct alignas(64) Part {  // ranges from `next` on, up to `end`
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  static constexpr int most_parts = 64;
  // state_ holds the number of workers inside the job, and this bit while one may still enter. A worker that wakes too
  // late finds it shut, so a parked worker never delays a short loop.
  static constexpr int open = 1 << 30;

  void start() {
    while (static_cast<int>(workers_.size()) + 1 < wanted_)
      workers_.emplace_back([this, number = static_cast<int>(workers_.size()) + 1] { work(number); });
  }

  void stop() {
    stopping_.store(true, std::memory_order_release);
    ticket_.fetch_add(1, std::memory_order_release);
    ticket_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
    stopping_.store(false, std::memory_order_release);
  }

  void work(int number) {
    int seen = 0;  // a job may already be open, so look once before waiting
    while (!stopping_.load(std::memory_order_acquire)) {
      int ticket = ticket_.load(std::memory_order_acquire);
      if (ticket != seen) {
        seen = ticket;
        int state = state_.load(std::memory_order_relaxed);
        while ((state & open) != 0)
          if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
            take_ranges(number);
            // The caller only sleeps after the door is shut.
            if (state_.fetch_sub(1, std::memory_order_release) == 1) state_.notify_all();
            break;
          }
      }
      for (int i = 0; i < spin_rounds && ticket_.load(std::memory_order_relaxed) == seen; ++i) pause_cpu();
      ticket_.wait(seen, std::memory_order_relaxed);
    }
  }

  // Every thread takes the ranges of its own part, which lie side by side, then what others have left.
  void take_ranges(int number) {
    inside_loop = true;
    try {
      for (int i = 0; i < parts_; ++i) {
        Part& part = part_[(number + i) % parts_];
        for (;;) {
          const std::int64_t range = part.next.fetch_add(1, std::memory_order_relaxed);
          if (range >= part.end) break;
          const std::int64_t lo = range * job_.step;
          job_.body(job_.context, lo, job_.count - lo < job_.step ? job_.count : lo + job_.step);
        }
      }
    } catch (...) {
      for (int i = 0; i < parts_; ++i) part_[i].next.store(part_[i].end, std::memory_order_relaxed);
      std::lock_guard lock(failure_lock_);
      if (!failure_) failure_ = std::current_exception();
    }
    inside_loop = false;
  }

  void close() {
    int state = state_.fetch_and(~open, std::memory_order_acq_rel) & ~open;
    for (int i = 0; state != 0 && i < spin_rounds; ++i) {
      pause_cpu();
      state = state_.load(std::memory_order_acquire);
    }
    while (state != 0) {
      state_.wait(state, std::memory_order_acquire);
      state = state_.load(std::memory_order_acquire);
    }
  }

  std::mutex loop_;  // held while a loop runs; the fields below are its holder's
  std::vector<std::thread> workers_;
  Job job_{};
  std::exception_ptr failure_;
  std::mutex failure_lock_;
  std::atomic<int> wanted_;
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int> ticket_{1};
  alignas(64) std::atomic<int> state_{0};
  int parts_ = 1;
  Part part_[most_parts];
};

// Never destroyed: a loop may run in another static object's destructor.
Pool& pool() {
  static Pool& instance = *new Pool;
  return instance;
}

}  // namespace

int threads() { return pool().threads(); }
void set_threads(int count) { pool().set_threads(count); }
void parallel_ranges(std::int64_t count, std::int64_t grain, RangeFunction body, void* context) {
  pool().run(count, grain, body, context);
}

}  // namespace tenon::parallel
