#include "tools/tenon/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace tenon::tool {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double window_s = 0.02;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Twelve accumulators of one register each hide the latency of multiply-add. The clones are what the machine has.
constexpr int accumulators = 12, lanes = 16;
__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) float multiply_adds(int64_t rounds) {
  typedef float Vector __attribute__((vector_size(4 * lanes)));
  Vector sums[accumulators], factor;
  volatile float start = 0.999f;  // unknown to the compiler, or it would find that the sums are equal
  for (int l = 0; l < lanes; ++l) factor[l] = start;
  for (int a = 0; a < accumulators; ++a)
    for (int l = 0; l < lanes; ++l) sums[a][l] = start * static_cast<float>(a + l);
  for (int64_t i = 0; i < rounds; ++i)
    for (Vector& s : sums) s = s * factor + factor;
  float out = 0;
  for (const Vector& s : sums)
    for (int l = 0; l < lanes; ++l) out += s[l];
  return out;
}

double flops_of_thread() {
  constexpr int64_t rounds = 20000;
  volatile float sink = multiply_adds(rounds);
  double best = 0;
  auto begin = Clock::now();
  while (seconds_since(begin) < window_s) {
    auto before = Clock::now();
    sink = multiply_adds(rounds);
    best = std::max(best, 2.0 * accumulators * lanes * rounds / seconds_since(before));
  }
  static_cast<void>(sink);
  return best;
}

double bytes_of_thread() {
  constexpr size_t size = size_t{32} << 20;
  std::vector<char> from(size, 1), to(size, 0);
  double best = 0;
  auto begin = Clock::now();
  do {
    auto before = Clock::now();
    std::memcpy(to.data(), from.data(), size);
    best = std::max(best, 2.0 * size / seconds_since(before));
  } while (seconds_since(begin) < 3 * window_s);
  return best;
}

double together(int threads, double (*measure)()) {
  std::vector<double> each(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  for (double& out : each) workers.emplace_back([&out, measure] { out = measure(); });
  for (std::thread& t : workers) t.join();
  double sum = 0;
  for (double e : each) sum += e;
  return sum;
}

}  // namespace

Roofline measure_roofline(int threads) {
  int count = threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return {together(count, flops_of_thread), together(count, bytes_of_thread)};
}

}  // namespace tenon::tool
