#pragma once
#include <cstdint>

namespace tenon::parallel {

/// How many threads parallel_for may use, the caller included. At first: the hardware's.
int threads();
/// At least one. Waits for a loop that another thread is running; does nothing inside of a loop.
void set_threads(int count);

using RangeFunction = void (*)(void* context, std::int64_t lo, std::int64_t hi);
/// Calls body(context, lo, hi) over disjoint ranges that cover [0, count), each of `grain` items or more but for the
/// last. A nested call, or one made while another thread's loop runs, goes serially on the caller. The first exception
/// of a body comes out here. Results must not depend on where the ranges are cut: that depends on threads().
void parallel_ranges(std::int64_t count, std::int64_t grain, RangeFunction body, void* context);

template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  parallel_ranges(
      count, grain,
      [](void* context, std::int64_t lo, std::int64_t hi) { (*static_cast<decltype(&body)>(context))(lo, hi); }, &body);
}

}  // namespace tenon::parallel
