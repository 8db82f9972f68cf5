// GFLOP/s of products, convolutions and attention through the kernel library: kernels_bench [threads [which]], which
// being products, convolutions or attention.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "tenon/base/parallel.h"
#include "tenon/interp/anchors.h"
#include "tenon/loop/method.h"
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
  loop::Operand add_channels_last(Int channels, Int size, Int batch = 1) {
    loop::Operand o = add({batch, size, size, channels});
    return {o.buffer, {batch, channels, size, size}, {o.strides[0], 1, o.strides[1], o.strides[2]}, 0};
  }
  template <class Step>
  double packed(const Step& step, bool transformed = false) {
    loop::Pack pack = loop::pack_of(step, 0);
    pack.to = add(transformed ? loop::transformed_sizes(pack) : loop::packed_sizes(pack)).buffer;
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

/// GFLOP/s of one thread that does nothing but multiply and add.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) void fma_512(Int rounds) {
  asm volatile(
      "1:\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm0\n vfmadd231ps %%zmm16, %%zmm17, %%zmm1\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm2\n vfmadd231ps %%zmm16, %%zmm17, %%zmm3\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm4\n vfmadd231ps %%zmm16, %%zmm17, %%zmm5\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm6\n vfmadd231ps %%zmm16, %%zmm17, %%zmm7\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm8\n vfmadd231ps %%zmm16, %%zmm17, %%zmm9\n"
      "dec %0\n jnz 1b\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "cc");
}
__attribute__((target("avx2,fma"))) void fma_256(Int rounds) {
  asm volatile(
      "1:\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n"
      "dec %0\n jnz 1b\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "cc");
}
double peak() {
  constexpr Int rounds = 100000;
  if (__builtin_cpu_supports("avx512f")) return 1e-9 * 10 * 32 * rounds / best([] { fma_512(rounds); });
  if (__builtin_cpu_supports("fma")) return 1e-9 * 10 * 16 * rounds / best([] { fma_256(rounds); });
  return 0;
}
#else
double peak() { return 0; }
#endif

struct Layer {
  const char* name;
  Int in, out, size, kernel, stride, groups, batch = 1;
};

void convolutions() {
  const Layer layers[] = {{"7x7/2 3-64 224", 3, 64, 224, 7, 2, 1},
                          {"3x3 64-64 56", 64, 64, 56, 3, 1, 1},
                          {"3x3 128-128 28", 128, 128, 28, 3, 1, 1},
                          {"3x3 256-256 14", 256, 256, 14, 3, 1, 1},
                          {"3x3 512-512 7", 512, 512, 7, 3, 1, 1},
                          {"3x3/2 128-256 28", 128, 256, 28, 3, 2, 1},
                          {"1x1 64-256 56", 64, 256, 56, 1, 1, 1},
                          {"1x1 256-64 56", 256, 64, 56, 1, 1, 1},
                          {"1x1 1024-256 14", 1024, 256, 14, 1, 1, 1},
                          {"1x1/2 256-512 56", 256, 512, 56, 1, 2, 1},
                          {"1x1 16-96 112", 16, 96, 112, 1, 1, 1},
                          {"1x1 144-24 56", 144, 24, 56, 1, 1, 1},
                          {"1x1 160-960 7", 160, 960, 7, 1, 1, 1},
                          {"depthwise 3x3 96 56", 96, 96, 56, 3, 1, 96},
                          {"depthwise 3x3/2 96 112", 96, 96, 112, 3, 2, 96},
                          {"depthwise 3x3 384 14", 384, 384, 14, 3, 1, 384},
                          {"depthwise 5x5 120 28", 120, 120, 28, 5, 1, 120},
                          {"depthwise 5x5/2 72 56", 72, 72, 56, 5, 2, 72},
                          {"depthwise 5x5 960 7", 960, 960, 7, 5, 1, 960},
                          {"3x3 64-64 56, batch 8", 64, 64, 56, 3, 1, 1, 8},
                          {"3x3 256-256 14, batch 8", 256, 256, 14, 3, 1, 1, 8}};
  const double all = peak() * parallel::threads();
  std::printf("%-24s %21s %21s %21s %10s %10s    peak %.0f\n", "convolution", "forward nchw nhwc", "input nchw nhwc",
              "weight nchw nhwc", "Winograd", "of input", all);
  for (const Layer& l : layers) {
    const Int out = (l.size + l.kernel / 2 * 2 - l.kernel) / l.stride + 1;
    const double work = 2e-9 * static_cast<double>(l.batch * l.out * out * out * l.in / l.groups * l.kernel * l.kernel);
    std::printf("%-24s", l.name);
    auto measured = [&](loop::ConvPart part, bool last, bool winograd) {
      Bench bench;
      loop::Convolution c;
      c.part = part;
      c.groups = l.groups;
      c.x = last ? bench.add_channels_last(l.in, l.size, l.batch) : bench.add({l.batch, l.in, l.size, l.size});
      c.y = last ? bench.add_channels_last(l.out, out, l.batch) : bench.add({l.batch, l.out, out, out});
      c.w = bench.add({l.out, l.in / l.groups, l.kernel, l.kernel});
      c.stride = Sizes(2, l.stride), c.padding = Sizes(2, l.kernel / 2), c.dilation = Sizes(2, 1);
      c.output_padding = Sizes(2, 0);
      const double rate =
          work / (part == loop::ConvPart::weight_gradient ? bench.seconds(c) : bench.packed(c, winograd));
      std::printf(" %5.0f", rate);
      if (all > 0) std::printf(" %2.0f%%", 100 * rate / all);
    };
    for (loop::ConvPart part :
         {loop::ConvPart::forward, loop::ConvPart::input_gradient, loop::ConvPart::weight_gradient}) {
      std::printf(" ");
      for (bool last : {false, true}) measured(part, last, false);
    }
    if (l.kernel == 3 && l.stride == 1 && l.groups == 1) {
      std::printf(" ");
      for (loop::ConvPart part : {loop::ConvPart::forward, loop::ConvPart::input_gradient}) measured(part, true, true);
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
  const std::string_view which = count > 2 ? words[2] : "";
  std::printf("%d threads, GFLOP/s\n", parallel::threads());
  if (which.empty() || which == "products") products();
  if (which.empty() || which == "convolutions") convolutions();
  if (which.empty() || which == "attention") attention();
}
