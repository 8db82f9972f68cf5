// GFLOP/s of the compute templates: templates_bench [threads]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tenon/templates/convolution.h"
#include "tenon/templates/gemm.h"
#include "tenon/templates/parallel.h"

namespace {

using namespace tenon::templates;
using Int = std::int64_t;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The best of several runs, in seconds.
template <class Body>
double best(Body body) {
  double least = 1e9, begin = now();
  for (int i = 0; i < 200 && (i < 5 || now() - begin < 0.3); ++i) {
    double t = now();
    body();
    if (now() - t < least) least = now() - t;
  }
  return least;
}

std::vector<float> values(Int size) {
  std::vector<float> v(static_cast<std::size_t>(size));
  unsigned state = 1;
  for (float& x : v) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return v;
}

void products() {
  const Int sizes[][3] = {{64, 64, 64},     {128, 128, 128},  {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024},
                          {1, 768, 768},    {1, 3072, 768},   {8, 768, 768},   {8, 768, 3072},  {128, 768, 768},
                          {128, 3072, 768}, {128, 768, 3072}, {197, 768, 768}, {3136, 64, 64},  {3136, 256, 64},
                          {196, 1024, 256}, {49, 512, 2048},  {128, 128, 64},  {128, 64, 128}};
  std::printf("%-22s %10s %10s\n", "gemm m x n x k", "row-major", "b turned");
  for (auto [m, n, k] : sizes) {
    std::vector<float> a = values(m * k), b = values(k * n), c = values(m * n);
    GemmArgs<float> args;
    args.m = m, args.n = n, args.k = k;
    args.a = a.data(), args.a_row = k, args.b = b.data(), args.c = c.data(), args.c_row = n;
    const double work = 2.0 * static_cast<double>(m * n * k) * 1e-9;
    args.b_row = n, args.b_col = 1;
    double plain = best([&] { gemm(args); });
    args.b_row = 1, args.b_col = k;
    double turned = best([&] { gemm(args); });
    char name[64];
    std::snprintf(name, sizeof name, "%ldx%ldx%ld", long(m), long(n), long(k));
    std::printf("%-22s %10.1f %10.1f\n", name, work / plain, work / turned);
  }
}

struct Layer {
  const char* name;
  Int in, out, size, kernel, stride, groups, times;  // times: in ResNet-18
};

void convolutions() {
  const Layer layers[] = {
      {"7x7/2 3-64 224", 3, 64, 224, 7, 2, 1, 1},        {"3x3 64-64 56", 64, 64, 56, 3, 1, 1, 4},
      {"3x3/2 64-128 56", 64, 128, 56, 3, 2, 1, 1},      {"1x1/2 64-128 56", 64, 128, 56, 1, 2, 1, 1},
      {"3x3 128-128 28", 128, 128, 28, 3, 1, 1, 3},      {"3x3/2 128-256 28", 128, 256, 28, 3, 2, 1, 1},
      {"1x1/2 128-256 28", 128, 256, 28, 1, 2, 1, 1},    {"3x3 256-256 14", 256, 256, 14, 3, 1, 1, 3},
      {"3x3/2 256-512 14", 256, 512, 14, 3, 2, 1, 1},    {"1x1/2 256-512 14", 256, 512, 14, 1, 2, 1, 1},
      {"3x3 512-512 7", 512, 512, 7, 3, 1, 1, 3},        {"depthwise 3x3 96 56", 96, 96, 56, 3, 1, 96, 0},
      {"depthwise 3x3/2 96 56", 96, 96, 56, 3, 2, 96, 0}};
  double total[3] = {0, 0, 0};
  std::printf("%-22s %10s %10s %10s\n", "convolution", "forward", "input", "weight");
  for (const Layer& l : layers) {
    ConvShape s;
    s.in_channels = l.in, s.out_channels = l.out, s.groups = l.groups;
    for (int d = 1; d < 3; ++d)
      s.in[d] = l.size, s.kernel[d] = l.kernel, s.stride[d] = l.stride, s.padding[d] = l.kernel / 2;
    s.set_out();
    std::vector<float> x = values(l.in * l.size * l.size), y = values(l.out * s.out[1] * s.out[2]);
    std::vector<float> w = values(l.out * l.in / l.groups * l.kernel * l.kernel);
    auto xv = contiguous_volume(x.data(), l.in, s.in), yv = contiguous_volume(y.data(), l.out, s.out);
    auto wv = contiguous_volume(w.data(), l.in / l.groups, s.kernel);
    auto read = [](Volume<float> v) {
      Volume<const float> r{v.data, {}};
      for (int i = 0; i < 5; ++i) r.stride[i] = v.stride[i];
      return r;
    };
    const double work =
        2e-9 * static_cast<double>(y.size() * static_cast<std::size_t>(l.in / l.groups * l.kernel * l.kernel));
    const double seconds[3] = {best([&] { convolution<float>(s, read(xv), read(wv), nullptr, yv); }),
                               best([&] { convolution_input_gradient<float>(s, read(yv), read(wv), xv); }),
                               best([&] { convolution_weight_gradient<float>(s, read(xv), read(yv), wv); })};
    std::printf("%-22s %10.1f %10.1f %10.1f\n", l.name, work / seconds[0], work / seconds[1], work / seconds[2]);
    for (int i = 0; i < 3; ++i) total[i] += static_cast<double>(l.times) * seconds[i];
  }
  std::printf("%-22s %8.2fms %8.2fms %8.2fms\n", "ResNet-18, all layers", 1e3 * total[0], 1e3 * total[1],
              1e3 * total[2]);
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) set_threads(std::atoi(words[1]));
  std::printf("%d threads, GFLOP/s\n", threads());
  products();
  convolutions();
}
