// The thread pool, and what the processor and its limits say.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <filesystem>
#include <thread>

#include "tenon/base/file.h"
#include "tests/runtime/sample_call.h"

extern "C" {
typedef void (*tn_body)(void* context, int participant);
struct tn_executor {
  tenon_pool* pool;
  tenon_parallel_for parallel_for;
  void* host;
  int participants;
};
void tn_parallel(const struct tn_executor* executor, int most, tn_body body, void* context);
int tn_usable_processors(void);
int tn_cgroup_processors(const char* groups_file, const char* mount);
}

namespace tenon::package {
namespace {

struct Work {
  std::atomic<int> next = 0;
  int count = 0;
  std::vector<std::atomic<int>> done;
  std::atomic<uint64_t> participants = 0;
  explicit Work(int count) : count(count), done(static_cast<size_t>(count)) {}
};
void take(void* context, int participant) {
  auto& work = *static_cast<Work*>(context);
  work.participants |= uint64_t(1) << participant;
  for (int i; (i = work.next++) < work.count;) ++work.done[static_cast<size_t>(i)];
}

TEST(Pool, everything_is_done_once) {
  rt::Pool pool(8);
  EXPECT_EQ(tenon_pool_threads(pool.get()), 8);
  tn_executor executor{pool.get(), nullptr, nullptr, 8};
  for (int count : {1, 2, 7, 64, 1000}) {
    Work work(count);
    tn_parallel(&executor, count, take, &work);
    for (const auto& done : work.done) EXPECT_EQ(done, 1);
    EXPECT_TRUE(work.participants & 1);
    EXPECT_LT(work.participants, uint64_t(1) << 8);
  }
}

TEST(Pool, workers_take_part) {
  rt::Pool pool(2);
  tn_executor executor{pool.get(), nullptr, nullptr, 2};
  auto slow = [](void* context, int participant) {
    auto& seen = *static_cast<std::atomic<int>*>(context);
    seen |= 1 << participant;
    for (int i = 0; i < 2000 && seen != 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  std::atomic<int> seen = 0;
  tn_parallel(&executor, 2, slow, &seen);
  EXPECT_EQ(seen, 3);
}

TEST(Pool, callers_share_it) {
  rt::Pool pool(3);
  tn_executor executor{pool.get(), nullptr, nullptr, 3};
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Work work(20);
        tn_parallel(&executor, 20, take, &work);
        for (const auto& done : work.done) ASSERT_EQ(done, 1);
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(Pool, a_parallel_step_within_another) {
  rt::Pool pool(3);
  static tn_executor executor;
  executor = {pool.get(), nullptr, nullptr, 3};
  auto outer = [](void* context, int) {
    auto& total = *static_cast<std::atomic<int>*>(context);
    Work work(10);
    tn_parallel(&executor, 10, take, &work);
    for (const auto& done : work.done) total += done;
  };
  std::atomic<int> total = 0;
  tn_parallel(&executor, 3, outer, &total);
  EXPECT_EQ(total % 10, 0);
  EXPECT_GE(total, 10);
}

TEST(Pool, wrong_numbers_of_threads_are_refused) {
  tenon_pool* pool = nullptr;
  EXPECT_EQ(tenon_pool_create(-1, &pool), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_pool_create(100000, &pool), TENON_INVALID_ARGUMENT);
  EXPECT_STREQ(tenon_last_error(), "tenon_pool_create: expected 0 to 1024 threads, got 100000");
  EXPECT_EQ(tenon_pool_create(0, &pool), TENON_OK);
  EXPECT_EQ(tenon_pool_threads(pool), tn_usable_processors());
  tenon_pool_destroy(pool);
}

TEST(Pool, after_fork_the_childs_pool_works) {
  std::vector<std::byte> bytes = sample_bytes();
  rt::Pool pool(4);
  tenon_options options{.struct_size = sizeof options, .pool = pool.get()};
  auto program = rt::Program::open_memory(bytes.data(), bytes.size(), &options);
  rt::State state(program);
  rt::Session session(program);
  std::vector<float> expected = run_sample(session, state, 64).y;  // workers run now
  for (int i = 0; i < 5; ++i) {
    pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      bool good = true;
      for (int k = 0; k < 20; ++k) good = good && run_sample(session, state, 64).y == expected;
      ::_exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(run_sample(session, state, 64).y, expected);
}

TEST(Processors, affinity_counts) {
  cpu_set_t before, one;
  CPU_ZERO(&one);
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  int usable = tn_usable_processors();
  ::sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(usable, 1);
}

TEST(Processors, quotas_of_control_groups_count) {
  namespace fs = std::filesystem;
  fs::path root = fs::temp_directory_path() / ("tenon-cgroup-" + std::to_string(::getpid()));
  fs::create_directories(root / "a/b");
  fs::create_directories(root / "cpu/old");
  auto processors = [&](const std::string& groups) {
    write_file_atomically(root / "groups", groups);
    return tn_cgroup_processors((root / "groups").c_str(), root.c_str());
  };
  EXPECT_EQ(processors("0::/a/b\n"), INT_MAX);
  write_file_atomically(root / "a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(processors("0::/a/b\n"), INT_MAX);
  write_file_atomically(root / "a/b/cpu.max", "250000 100000\n");
  EXPECT_EQ(processors("0::/a/b\n"), 3);
  write_file_atomically(root / "a/cpu.max", "50000 100000\n");  // of the group around it
  EXPECT_EQ(processors("0::/a/b\n"), 1);
  write_file_atomically(root / "cpu/old/cpu.cfs_quota_us", "400000\n");
  write_file_atomically(root / "cpu/old/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(processors("5:memory:/x\n4:cpu,cpuacct:/old\n"), 4);
  EXPECT_EQ(processors("garbage\n\n::\n"), INT_MAX);
  EXPECT_EQ(tn_cgroup_processors("/nowhere", "/nowhere"), INT_MAX);
  fs::remove_all(root);
}

}  // namespace
}  // namespace tenon::package
