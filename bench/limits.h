// What this machine can do at most: multiply-adds in registers, bytes read from memory, bytes updated in place.
#pragma once
#include <chrono>
#include <cstdint>

namespace tenon::bench {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The best of several runs, in seconds.
template <class Body>
double best(Body&& body, double seconds = 0.1) {
  double least = 1e9, begin = now();
  for (int i = 0; i < 2000 && (i < 5 || now() - begin < seconds); ++i) {
    const double t = now();
    body();
    const double took = now() - t;
    if (took < least) least = took;
  }
  return least;
}

/// Of all threads of tenon/base/parallel.h together. Wide: vectors of 16 floats, else of 8.
double peak_flops(bool wide);
/// Bytes a second from main memory, in huge pages, eight streams to a thread.
double read_bandwidth();
/// Bytes read and written a second where memory is changed in place.
double update_bandwidth();

}  // namespace tenon::bench
