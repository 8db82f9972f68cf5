// GFLOP/s of products, convolutions and attention through the kernel library: kernels_bench [threads]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tenon/base/parallel.h"
#include "tenon/interp/anchors.h"
#include "tenon/loop/pack.h"

namespace {

using namespace tenon;
using Int = std::int64_t;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The best of several runs, in seconds.
template <class Body>
double best(Body body) {
  double least = 1e9, begin = now();
  for (int i = 0; i < 200 && (i < 5 || now() - begin < 0.1); ++i) {
    double t = now();
    body();
    if (now() - t < least) least = now() - t;
  }
  return least;
}

/// Buffers with numbers in them, and the seconds that a step on them takes.
class Bench {
 public:
  loop::Operand add(const Sizes& sizes) {
    TensorMeta meta = make_meta(DType::f32, sizes);
    program_.buffers.push_back({.dtype = DType::f32, .sizes = sizes, .strides = meta.strides, .name = "b"});
    memory_.emplace_back(static_cast<size_t>(count(sizes).as_int()) + 16);
    unsigned state = 1;
    for (float& x : memory_.back()) {
      state = state * 1664525u + 1013904223u;
      x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
    return {static_cast<loop::BufferId>(program_.buffers.size() - 1), sizes, meta.strides, 0};
  }
  /// An image with its channels side by side.
  loop::Operand add_channels_last(Int channels, Int size) {
    loop::Operand o = add({1, size, size, channels});
    return {o.buffer, {1, channels, size, size}, {o.strides[0], 1, o.strides[1], o.strides[2]}, 0};
  }
  template <class Step>
  double packed(const Step& step) {
    loop::Pack pack = loop::pack_of(step, 0);
    pack.to = add(loop::packed_sizes(pack)).buffer;
    seconds(pack);
    return seconds(loop::with_packed(step, pack.to));
  }
  double seconds(const loop::Step& step) {
    sym::Bindings none;
    interp::PreparedAnchor anchor(interp::Resolved{program_, program_.buffers, none}, step);
    std::vector<std::byte*> places;
    for (std::vector<float>& m : memory_) places.push_back(reinterpret_cast<std::byte*>(m.data()));
    std::vector<std::unique_ptr<std::byte[]>> temporaries;
    std::vector<std::byte*> pointers;
    for (size_t bytes : anchor.temporaries()) {
      temporaries.push_back(std::make_unique<std::byte[]>(bytes + 64));
      void* at = temporaries.back().get();
      size_t room = bytes + 64;
      pointers.push_back(static_cast<std::byte*>(std::align(64, bytes, at, room)));
    }
    return best([&] { anchor.run(places.data(), pointers.data()); });
  }

 private:
  loop::Program program_;
  std::vector<std::vector<float>> memory_;
};

void products() {
  const Int sizes[][3] = {{64, 64, 64},     {256, 256, 256},  {1024, 1024, 1024}, {1, 768, 768},  {1, 3072, 768},
                          {2, 768, 768},    {4, 768, 768},    {8, 768, 768},      {8, 768, 3072}, {128, 768, 768},
                          {128, 3072, 768}, {128, 768, 3072}, {197, 768, 768},    {3136, 64, 64}, {3136, 256, 64},
                          {784, 512, 128},  {196, 1024, 256}, {49, 512, 2048},    {128, 128, 64}, {128, 64, 128}};
  std::printf("%-22s %10s %10s %10s %10s\n", "gemm m x n x k", "packed", "row-major", "b turned", "a turned");
  for (auto [m, n, k] : sizes) {
    Bench bench;
    loop::Gemm g;
    g.a = bench.add({1, m, k});
    g.b = bench.add({1, k, n});
    g.out = bench.add({1, m, n});
    const double work = 2e-9 * static_cast<double>(m * n * k);
    const double packed = bench.packed(g), plain = bench.seconds(g);
    g.b.strides = {0, 1, k};
    const double turned = bench.seconds(g);
    g.b.strides = {0, n, 1};
    g.a.strides = {0, 1, m};
    const double left = bench.seconds(g);
    char name[64];
    std::snprintf(name, sizeof name, "%ldx%ldx%ld", long(m), long(n), long(k));
    std::printf("%-22s %10.1f %10.1f %10.1f %10.1f\n", name, work / packed, work / plain, work / turned, work / left);
  }
}

struct Layer {
  const char* name;
  Int in, out, size, kernel, stride, groups;
};

void convolutions() {
  const Layer layers[] = {
      {"7x7/2 3-64 224", 3, 64, 224, 7, 2, 1},       {"3x3 64-64 56", 64, 64, 56, 3, 1, 1},
      {"3x3 128-128 28", 128, 128, 28, 3, 1, 1},     {"3x3 256-256 14", 256, 256, 14, 3, 1, 1},
      {"3x3 512-512 7", 512, 512, 7, 3, 1, 1},       {"3x3/2 128-256 28", 128, 256, 28, 3, 2, 1},
      {"1x1 64-256 56", 64, 256, 56, 1, 1, 1},       {"1x1 256-64 56", 256, 64, 56, 1, 1, 1},
      {"1x1 1024-256 14", 1024, 256, 14, 1, 1, 1},   {"1x1/2 256-512 56", 256, 512, 56, 1, 2, 1},
      {"depthwise 3x3 96 56", 96, 96, 56, 3, 1, 96}, {"depthwise 3x3/2 96 56", 96, 96, 56, 3, 2, 96}};
  std::printf("%-22s %21s %21s %21s\n", "convolution, batch 1", "forward nchw nhwc", "input nchw nhwc",
              "weight nchw nhwc");
  for (const Layer& l : layers) {
    const Int out = (l.size + l.kernel / 2 * 2 - l.kernel) / l.stride + 1;
    const double work = 2e-9 * static_cast<double>(l.out * out * out * l.in / l.groups * l.kernel * l.kernel);
    std::printf("%-22s", l.name);
    for (loop::ConvPart part :
         {loop::ConvPart::forward, loop::ConvPart::input_gradient, loop::ConvPart::weight_gradient}) {
      std::printf(" ");
      for (bool last : {false, true}) {
        Bench bench;
        loop::Convolution c;
        c.part = part;
        c.groups = l.groups;
        c.x = last ? bench.add_channels_last(l.in, l.size) : bench.add({1, l.in, l.size, l.size});
        c.y = last ? bench.add_channels_last(l.out, out) : bench.add({1, l.out, out, out});
        c.w = bench.add({l.out, l.in / l.groups, l.kernel, l.kernel});
        c.stride = Sizes(2, l.stride), c.padding = Sizes(2, l.kernel / 2), c.dilation = Sizes(2, 1);
        c.output_padding = Sizes(2, 0);
        std::printf(" %9.1f", work / (part == loop::ConvPart::weight_gradient ? bench.seconds(c) : bench.packed(c)));
      }
    }
    std::printf("\n");
  }
}

void attention() {
  const Int sizes[][4] = {
      {12, 128, 128, 64}, {12, 512, 512, 64}, {12, 1024, 1024, 64}, {12, 1, 128, 64}, {12, 1, 2048, 64}};
  std::printf("%-32s %10s %10s\n", "attention heads x q x k x width", "forward", "gradient");
  for (auto [heads, queries, keys, width] : sizes) {
    Bench bench;
    loop::AttentionGradient g;
    loop::Operand *of_queries[] = {&g.grad, &g.q, &g.out, &g.grad_q}, *of_keys[] = {&g.k, &g.v, &g.grad_k, &g.grad_v};
    // Positions before heads, as after splitting a projection.
    for (loop::Operand* o : of_queries) *o = bench.add({1, queries, heads, width});
    for (loop::Operand* o : of_keys) *o = bench.add({1, keys, heads, width});
    for (auto& list : {std::span(of_queries), std::span(of_keys)})
      for (loop::Operand* o : list) std::swap(o->sizes[1], o->sizes[2]), std::swap(o->strides[1], o->strides[2]);
    g.logsumexp = bench.add({1, heads, queries});
    g.scale = 0.125;
    loop::Attention a{.q = g.q, .k = g.k, .v = g.v, .out = g.out, .logsumexp = g.logsumexp, .scale = g.scale};
    const double product = 2e-9 * static_cast<double>(heads * queries * keys * width);
    char name[64];
    std::snprintf(name, sizeof name, "%ldx%ldx%ldx%ld", long(heads), long(queries), long(keys), long(width));
    const double forward = bench.seconds(a), gradient = bench.seconds(g);
    std::printf("%-32s %10.1f %10.1f\n", name, 2 * product / forward, 5 * product / gradient);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) parallel::set_threads(std::atoi(words[1]));
  std::printf("%d threads, GFLOP/s\n", parallel::threads());
  products();
  convolutions();
  attention();
}
