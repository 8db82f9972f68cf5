// What kernels reach of what the machine can do, measured in the same run, beside what is asked of them:
//   kernels_bench [--threads N] [--target v3] [--only TEXT]
// Anchors are called as the interpreter of programs calls them; stages and optimizers as compiled programs.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/limits.h"
#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/base/parallel.h"
#include "tenon/base/text.h"
#include "tenon/interp/anchors.h"
#include "tenon/loop/method.h"
#include "tenon/loop/pack.h"
#include "tenon/pipeline.h"
#include "tenon/train/training_step.h"
#include "tests/text_program.h"

namespace {

using namespace tenon;
using bench::best;
using Int = std::int64_t;

struct Options {
  int threads = 2;
  bool wide = kernels::machine_target() == TENON_TARGET_X86_64_V4;
  std::string only;
  tenon_target target() const { return wide ? TENON_TARGET_X86_64_V4 : TENON_TARGET_X86_64_V3; }
};
Options options;

/// Floats at a multiple of 64 bytes, as programs have them.
class Floats {
 public:
  explicit Floats(Int count)
      : data_(static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(count + 31) / 16 * 64))) {
    unsigned state = 1;
    for (Int i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      data_[i] = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
  }
  ~Floats() { std::free(data_); }
  Floats(Floats&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  float* data() const { return data_; }

 private:
  float* data_;
};

/// Buffers with numbers in them, and the seconds that steps on them take.
class Anchors {
 public:
  loop::Operand add(const Sizes& sizes) {
    TensorMeta meta = make_meta(DType::f32, sizes);
    program_.buffers.push_back({.dtype = DType::f32, .sizes = sizes, .strides = meta.strides, .name = "b"});
    memory_.emplace_back(count(sizes).as_int());
    return {static_cast<loop::BufferId>(program_.buffers.size() - 1), sizes, meta.strides, 0};
  }
  /// An image with its channels side by side.
  loop::Operand add_channels_last(Int channels, Int size, Int batch = 1) {
    loop::Operand o = add({batch, size, size, channels});
    return {o.buffer, {batch, channels, size, size}, {o.strides[0], 1, o.strides[1], o.strides[2]}, 0};
  }
  template <class Step>
  Step with_packed(const Step& step, bool transformed = false) {
    loop::Pack pack = loop::pack_of(step, 0);
    pack.to = add(transformed ? loop::transformed_sizes(pack) : loop::packed_sizes(pack)).buffer;
    seconds(pack);
    return loop::with_packed(step, pack.to);
  }
  /// One after the other, all of them; the time of one.
  double seconds(const std::vector<loop::Step>& steps) {
    sym::Bindings none;
    std::vector<interp::PreparedAnchor> anchors;
    std::vector<std::byte*> places;
    for (Floats& m : memory_) places.push_back(reinterpret_cast<std::byte*>(m.data()));
    for (const loop::Step& step : steps)
      anchors.emplace_back(interp::Resolved{program_, program_.buffers, none}, step, options.target());
    std::vector<Floats> temporaries;
    std::vector<std::byte*> pointers;
    for (size_t bytes : anchors[0].temporaries()) {
      temporaries.emplace_back(static_cast<Int>(bytes / 4 + 16));
      pointers.push_back(reinterpret_cast<std::byte*>(temporaries.back().data()));
    }
    return best([&] {
             for (const auto& anchor : anchors) anchor.run(places.data(), pointers.data());
           }) /
           static_cast<double>(steps.size());
  }
  double seconds(const loop::Step& step) { return seconds(std::vector<loop::Step>{step}); }

 private:
  loop::Program program_;
  std::vector<Floats> memory_;
};

Tensor numbers(const Sizes& sizes) {
  Tensor t = Tensor::empty(DType::f32, sizes);
  const Floats from(t.numel().as_int());
  std::copy(from.data(), from.data() + t.numel().as_int(), t.mutable_data<float>());
  return t;
}

/// A program compiled for the target, run on arguments of its own.
class Compiled {
 public:
  Compiled(const std::shared_ptr<const Executable>& executable, const State& state, int threads, bool updatable = false)
      : program_(artifact::CompiledProgram::open(
            artifact::compile_program(
                *executable, state,
                {.targets = {options.wide ? artifact::Target::x86_64_v4 : artifact::Target::x86_64_v3},
                 .updatable = updatable}),
            {.threads = threads, .huge_pages = true})),
        state_(program_),
        session_(program_) {}
  static Compiled of(const std::string& graph, int threads) {
    ExportedProgram program = program_of(graph);
    for (NamedTensor& t : program.state) t.tensor = numbers(t.tensor.sizes());
    Walk walk(program);
    Compilable made = prepare_to_compile(walk);
    return Compiled(made.executable, *made.state, threads);
  }
  double seconds(const std::vector<CallArg>& inputs) { return best(session_.repeated(state_, inputs), 0.2); }
  /// Of one run, in order.
  std::vector<artifact::StepTime> steps(const std::vector<CallArg>& inputs) {
    std::function<void()> run = session_.repeated(state_, inputs);
    run();
    std::vector<artifact::StepTime> times, least;
    for (int i = 0; i < 10; ++i) {
      session_.observe(&times);
      run();
      session_.observe(nullptr);
      if (least.empty()) least = times;
      for (size_t k = 0; k < times.size(); ++k)
        least[k].nanoseconds = std::min(least[k].nanoseconds, times[k].nanoseconds);
      times.clear();
    }
    return least;
  }

 private:
  std::shared_ptr<const artifact::CompiledProgram> program_;
  artifact::CompiledState state_;
  artifact::CompiledSession session_;
};

bool wanted(const std::string& name) { return name.find(options.only) != std::string::npos; }

void line(const std::string& name, double value, const char* unit, double reached, double asked, const char* of) {
  std::printf("%-44s %9.3g %-8s %8.3g %-6s %8.3g%s\n", name.c_str(), value, unit, reached, of, asked,
              asked == 0                                                             ? ""
              : (std::string_view(of) == "ns" ? reached <= asked : reached >= asked) ? ""
                                                                                     : "  missed");
  std::fflush(stdout);
}
/// A share of the peak, which is measured beside it.
void share(const std::string& name, double flops, double asked, const std::function<double()>& seconds) {
  if (!wanted(name)) return;
  double peak = bench::peak_flops(options.wide);
  const double took = seconds();
  peak = std::max(peak, bench::peak_flops(options.wide));
  line(name, flops / took * 1e-9, "GFLOP/s", 100 * flops / took / peak, asked, "%");
}

loop::Gemm product(Anchors& anchors, Int m, Int n, Int k, bool epilogue) {
  loop::Gemm g;
  g.a = anchors.add({1, m, k});
  g.b = anchors.add({1, k, n});
  g.out = anchors.add({1, m, n});
  if (epilogue) {
    g.epilogue.has_bias = g.epilogue.relu = true;
    g.epilogue.bias = anchors.add({n});
  }
  return g;
}
std::string sizes_text(Int m, Int n, Int k) { return text(m, "x", n, "x", k); }
double flops_of(Int m, Int n, Int k) { return 2.0 * static_cast<double>(m * n * k); }

void products() {
  const Int many[][3] = {{24, 768, 768},   {64, 256, 256},  {128, 768, 768}, {128, 3072, 768}, {128, 768, 3072},
                         {197, 768, 3072}, {256, 512, 512}, {3136, 64, 64},  {3136, 256, 64},  {784, 512, 128},
                         {196, 1024, 256}, {49, 512, 2048}, {1024, 256, 256}};
  for (auto [m, n, k] : many)
    share(text("gemm, bias and relu ", sizes_text(m, n, k)), flops_of(m, n, k), 93, [=] {
      Anchors anchors;
      return anchors.seconds(anchors.with_packed(product(anchors, m, n, k, true)));
    });
  for (auto [m, n, k] : {std::array<Int, 3>{128, 3072, 768}, {1024, 1024, 256}})
    share(text("gemm, then gelu ", sizes_text(m, n, k)), flops_of(m, n, k), 90, [=] {
      Compiled program =
          Compiled::of(text("%p_w: f32[", n, ", ", k, "] = input()\n%p_b: f32[", n, "] = input()\n%x: f32[", m, ", ", k,
                            "] = input()\n%h: f32[", m, ", ", n, "] = aten::linear(%x, %p_w, %p_b)\n%y: f32[", m, ", ",
                            n, "] = aten::gelu(%h)\nreturn %y\n"),
                       options.threads);
      return program.seconds({numbers({m, k})});
    });
  for (auto [m, n, k] : {std::array<Int, 3>{8, 768, 768}, {8, 256, 512}, {2, 768, 768}, {3, 768, 768}, {4, 768, 768}})
    share(text("gemm, few rows, warm ", sizes_text(m, n, k)), flops_of(m, n, k), m == 8 ? 90 : 70, [=] {
      Anchors anchors;
      return anchors.seconds(anchors.with_packed(product(anchors, m, n, k, true)));
    });
  for (auto [n, k] : {std::pair<Int, Int>{3072, 768}, {768, 3072}, {768, 768}}) {
    const std::string name = text("gemm, one row, cold ", sizes_text(1, n, k));
    if (!wanted(name)) continue;
    // Bytes as programs have them: one file of weights in huge pages, layer after layer.
    const Int layers = (Int{192} << 20) / (n * k * 4);
    std::string graph;
    for (Int i = 0; i < layers; ++i) graph += text("%p_w", i, ": f32[", n, ", ", k, "] = input()\n");
    graph += text("%x: f32[1, ", k, "] = input()\n");
    std::string results;
    for (Int i = 0; i < layers; ++i) {
      graph += text("%y", i, ": f32[1, ", n, "] = aten::linear(%x, %p_w", i, ")\n");
      results += text("return %y", i, "\n");
    }
    Compiled program = Compiled::of(graph + results, options.threads);
    const double limit = bench::read_bandwidth();
    const double rate = static_cast<double>(layers * n * k * 4) / program.seconds({numbers({1, k})});
    line(name, rate * 1e-9, "GB/s", 100 * rate / std::max(limit, bench::read_bandwidth()), 88, "%");
  }
}

struct Layer {
  const char* name;
  Int in, out, size, kernel, stride, groups;
  double asked;
  Int batch = 1;
  Int results() const { return (size + kernel / 2 * 2 - kernel) / stride + 1; }
  double flops() const {
    return 2.0 * static_cast<double>(batch * out * results() * results() * in / groups * kernel * kernel);
  }
};

double seconds_of(const Layer& l, loop::ConvPart part, bool winograd) {
  Anchors anchors;
  loop::Convolution c;
  c.part = part;
  c.groups = l.groups;
  c.x = anchors.add_channels_last(l.in, l.size, l.batch);
  c.y = anchors.add_channels_last(l.out, l.results(), l.batch);
  c.w = anchors.add({l.out, l.in / l.groups, l.kernel, l.kernel});
  c.stride = Sizes(2, l.stride), c.padding = Sizes(2, l.kernel / 2), c.dilation = Sizes(2, 1);
  c.output_padding = Sizes(2, 0);
  if (part == loop::ConvPart::forward) {
    c.epilogue.has_bias = c.epilogue.relu = true;
    c.epilogue.bias = anchors.add({l.out});
  }
  return anchors.seconds(part == loop::ConvPart::weight_gradient ? c : anchors.with_packed(c, winograd));
}

const Layer threes[] = {{"3x3 64-64 at 56", 64, 64, 56, 3, 1, 1, 92},
                        {"3x3 128-128 at 28", 128, 128, 28, 3, 1, 1, 92},
                        {"3x3 256-256 at 14", 256, 256, 14, 3, 1, 1, 92},
                        {"3x3 512-512 at 7", 512, 512, 7, 3, 1, 1, 90}};

void convolutions() {
  const Layer others[] = {
      {"stem 7x7/2 3-64 at 224", 3, 64, 224, 7, 2, 1, 90}, {"3x3/2 128-128 at 56", 128, 128, 56, 3, 2, 1, 92},
      {"3x3/2 256-256 at 28", 256, 256, 28, 3, 2, 1, 92},  {"3x3/2 512-512 at 14", 512, 512, 14, 3, 2, 1, 90},
      {"1x1 64-256 at 56", 64, 256, 56, 1, 1, 1, 92},      {"1x1 256-64 at 56", 256, 64, 56, 1, 1, 1, 92},
      {"1x1 512-128 at 28", 512, 128, 28, 1, 1, 1, 92},    {"1x1 1024-256 at 14", 1024, 256, 14, 1, 1, 1, 92},
      {"1x1 512-2048 at 7", 512, 2048, 7, 1, 1, 1, 90},    {"1x1/2 256-512 at 56", 256, 512, 56, 1, 2, 1, 92}};
  const Layer depthwise[] = {{"depthwise 3x3 96 at 56", 96, 96, 56, 3, 1, 96, 60},
                             {"depthwise 3x3 384 at 14", 384, 384, 14, 3, 1, 384, 60},
                             {"depthwise 5x5 120 at 28", 120, 120, 28, 5, 1, 120, 60},
                             {"depthwise 5x5 960 at 7", 960, 960, 7, 5, 1, 960, 60},
                             {"depthwise 3x3/2 96 at 112", 96, 96, 112, 3, 2, 96, 40},
                             {"depthwise 5x5/2 72 at 56", 72, 72, 56, 5, 2, 72, 40}};
  auto forward = [](const Layer& l) {
    share(text("convolution ", l.name), l.flops(), l.asked,
          [&] { return seconds_of(l, loop::ConvPart::forward, false); });
  };
  for (const Layer& l : others) forward(l);
  for (const Layer& l : threes) forward(l);
  for (const Layer& l : depthwise) forward(l);
}

/// Winograd's method against plain sums: how many times as fast.
void winograd(const char* what, loop::ConvPart part, double asked) {
  for (const Layer& l : threes) {
    const std::string name = text("Winograd", what, " ", l.name);
    if (!wanted(name) || l.size < 14) continue;
    double plain = 1e9, fast = 1e9;
    for (int i = 0; i < 3; ++i) {
      plain = std::min(plain, seconds_of(l, part, false));
      fast = std::min(fast, seconds_of(l, part, true));
    }
    line(name, fast * 1e3, "ms", plain / fast, asked, "times");
  }
}

void attention() {
  for (Int tokens : {128, 1024}) {
    const Int heads = 12, width = 64;
    auto made = [&](Anchors& anchors) {
      loop::AttentionGradient g;
      // Positions before heads, as after splitting a projection.
      for (loop::Operand* o : {&g.grad, &g.q, &g.out, &g.grad_q, &g.k, &g.v, &g.grad_k, &g.grad_v}) {
        *o = anchors.add({1, tokens, heads, width});
        std::swap(o->sizes[1], o->sizes[2]), std::swap(o->strides[1], o->strides[2]);
      }
      g.logsumexp = anchors.add({1, heads, tokens});
      g.scale = 0.125;
      return g;
    };
    auto forward = [](const loop::AttentionGradient& g) {
      return loop::Attention{.q = g.q, .k = g.k, .v = g.v, .out = g.out, .logsumexp = g.logsumexp, .scale = g.scale};
    };
    const double flops = flops_of(heads * tokens, tokens, width);
    share(text("attention, ", tokens, " tokens"), 2 * flops, tokens == 128 ? 66 : 72, [&] {
      Anchors anchors;
      return anchors.seconds(forward(made(anchors)));
    });
    share(text("gradient of attention, ", tokens, " tokens"), 5 * flops, 65, [&] {
      Anchors anchors;
      const loop::AttentionGradient g = made(anchors);
      anchors.seconds(forward(g));  // its results are part of what the gradient reads
      return anchors.seconds(g);
    });
  }
}

void rows() {
  struct Row {
    const char* name;
    Int rows, columns;
    std::string call;
    double asked;
  };
  const Row all[] = {{"softmax", 6144, 128, "aten::_softmax(%x, 1, False)", 0.45},
                     {"softmax", 768, 1024, "aten::_softmax(%x, 1, False)", 0.45},
                     {"gelu", 256, 3072, "aten::gelu(%x)", 0.30},
                     {"gelu, tanh form", 256, 3072, "aten::gelu(%x, approximate='tanh')", 0},
                     {"layer norm", 1024, 768, "aten::layer_norm(%x, [768], %w, %b)", 0.15},
                     {"layer norm", 128, 768, "aten::layer_norm(%x, [768], %w, %b)", 0.15},
                     {"exp", 256, 3072, "aten::exp(%x)", 0},
                     {"copy with a sum", 256, 3072, "aten::add.Tensor(%x, %x)", 0}};
  for (const Row& r : all) {
    const std::string name = text(r.name, " ", r.rows, "x", r.columns, ", a core");
    if (!wanted(name)) continue;
    const bool affine = r.call.find("%w") != std::string::npos;
    const std::string type = text("f32[", r.rows, ", ", r.columns, "]"), vector = text("f32[", r.columns, "]");
    Compiled program =
        Compiled::of((affine ? text("%w: ", vector, " = input()\n%b: ", vector, " = input()\n") : std::string()) +
                         text("%x: ", type, " = input()\n%y: ", type, " = ", r.call, "\nreturn %y\n"),
                     1);
    std::vector<CallArg> inputs;
    if (affine) inputs = {numbers({r.columns}), numbers({r.columns})};
    inputs.emplace_back(numbers({r.rows, r.columns}));
    const double took = program.seconds(inputs);
    line(name, took * 1e6, "us", took * 1e9 / static_cast<double>(r.rows * r.columns), r.asked, "ns");
  }
}

void gradients() {
  for (const Layer& l : threes) {
    Layer of_eight = l;
    of_eight.batch = 8;
    share(text("gradient of a convolution's input ", l.name, ", batch 8"), of_eight.flops(), 92,
          [&] { return seconds_of(of_eight, loop::ConvPart::input_gradient, false); });
    share(text("gradient of its weights ", l.name, ", batch 8"), of_eight.flops(), 86,
          [&] { return seconds_of(of_eight, loop::ConvPart::weight_gradient, false); });
  }
  // y[m, n] = x[m, k] w: x's gradient is dy w', w's is x' dy.
  for (auto [m, n, k] : {std::array<Int, 3>{1024, 256, 256}, {1024, 1024, 256}, {1024, 768, 768}}) {
    share(text("gradient of a product's left side ", sizes_text(m, n, k)), flops_of(m, n, k), 92, [=] {
      Anchors anchors;
      loop::Gemm g = product(anchors, m, k, n, false);
      g.b.strides = {0, 1, SymInt(n)};
      return anchors.seconds(g);
    });
    share(text("gradient of its weights ", sizes_text(m, n, k)), flops_of(m, n, k), 87, [=] {
      Anchors anchors;
      loop::Gemm g = product(anchors, k, n, m, false);
      g.a.strides = {0, 1, SymInt(k)};
      return anchors.seconds(g);
    });
  }
}

void optimizer() {
  const std::string name = "AdamW over 300 parameters";
  if (!wanted(name)) return;
  constexpr Int parameters = 300, elements = 65536;
  std::string graph, sum = "%x";
  for (Int i = 0; i < parameters; ++i) graph += text("%p_w", i, ": f32[", elements, "] = input()\n");
  graph += text("%x: f32[", elements, "] = input()\n");
  for (Int i = 0; i < parameters; ++i) {
    graph += text("%y", i, ": f32[", elements, "] = aten::add.Tensor(", sum, ", %p_w", i, ")\n");
    sum = text("%y", i);
  }
  ExportedProgram program = program_of(graph + "return " + sum + "\n");
  train::TrainingStep step = train::make_training_step(program, train::mse(), train::optimizer_named("adamw"));
  Compiled compiled(prepare(step.update), *train::initial_state(step, program), options.threads, true);
  std::vector<artifact::StepTime> steps = compiled.steps({numbers({elements}), numbers({elements})});
  // Those that write the state: read and written are a parameter and two moments.
  double seconds = 0;
  int kernels = 0;
  for (const artifact::StepTime& s : steps) {
    if (s.bytes < 12.0 * elements * 8) continue;
    seconds += static_cast<double>(s.nanoseconds) * 1e-9;
    ++kernels;
    if (!options.only.empty())
      std::printf("  %.0f us, %.1f MB: %.100s\n", s.nanoseconds * 1e-3, s.bytes * 1e-6, s.name.c_str());
  }
  const double rate = 24.0 * parameters * elements / seconds, limit = bench::update_bandwidth();
  line(text(name, ", ", kernels, " kernels"), rate * 1e-9, "GB/s",
       100 * rate / std::max(limit, bench::update_bandwidth()), 85, "%");
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view word = words[i];
    if (word == "--threads") options.threads = std::atoi(words[i + 1]);
    if (word == "--only") options.only = words[i + 1];
    if (word == "--target") options.wide = options.wide && std::string_view(words[i + 1]) != "v3";
  }
  parallel::set_threads(options.threads);
  std::printf("%d threads, x86-64-v%d: peak %.0f GFLOP/s, reading %.1f GB/s, updating %.1f GB/s\n", options.threads,
              options.wide ? 4 : 3, bench::peak_flops(options.wide) * 1e-9, bench::read_bandwidth() * 1e-9,
              bench::update_bandwidth() * 1e-9);
  std::printf("%-44s %9s %-8s %8s %-6s %8s\n", "kernel", "measured", "", "reached", "", "asked");
  products();
  convolutions();
  winograd("", loop::ConvPart::forward, 1.8);
  attention();
  rows();
  gradients();
  winograd(", gradient of the input,", loop::ConvPart::input_gradient, 1.7);
  optimizer();
}
