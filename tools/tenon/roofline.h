// What the machine can do at most, measured.
#pragma once

namespace tenon::tool {

struct Roofline {
  double flops = 1, bytes = 1;  // per second
};
/// Some tens of milliseconds of f32 multiply-adds in registers and of reading memory. 0 threads: all of the process's.
Roofline measure_roofline(int threads);

}  // namespace tenon::tool
