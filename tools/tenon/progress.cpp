#include "tools/tenon/progress.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

namespace tenon::tool {

struct Progress::Watch {
  std::string what;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread;

  void run() {
    auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex);
    bool shown = false;
    while (!changed.wait_for(lock, std::chrono::milliseconds(500), [&] { return done; })) {
      auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
      std::fprintf(stderr, "\r\033[K%s, %lld s", what.c_str(), static_cast<long long>(seconds));
      std::fflush(stderr);
      shown = true;
    }
    if (shown) std::fputs("\r\033[K", stderr);
  }
};

Progress::Progress(std::string what) {
  if (!::isatty(STDERR_FILENO)) return;
  watch_ = std::make_unique<Watch>();
  watch_->what = std::move(what);
  watch_->thread = std::thread([watch = watch_.get()] { watch->run(); });
}

Progress::~Progress() {
  if (!watch_) return;
  {
    std::lock_guard lock(watch_->mutex);
    watch_->done = true;
  }
  watch_->changed.notify_one();
  watch_->thread.join();
}

void report_passes(const std::vector<PassRecord>& passes) {
  std::string lines = to_text(passes);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

}  // namespace tenon::tool
