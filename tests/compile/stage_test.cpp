// Kernels made from stages against the interpreter of stages, over the calls recorded from PyTorch.
#include "tenon/interp/stage.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/compile/emit_c.h"
#include "tenon/compile/evaluate.h"
#include "tenon/compile/make_kernel.h"
#include "tenon/interp/anchors.h"
#include "tenon/interp/eager.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tests/compile/c_library.h"
#include "tests/compile/run.h"
#include "tests/sweep/recording.h"

namespace tenon::compile {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;  // of the program, views in the memory of their own

// A function that math.h computes in its own way: last bits may differ from the C library's.
bool has_own_function(const loop::Program& program, const loop::Stage& stage) {
  using loop::Fn;
  std::vector<loop::ExprId> open;
  for (const loop::Accumulator& a : stage.accumulators) open.push_back(a.value);
  for (const loop::Store& s : stage.stores) open.push_back(s.value);
  std::unordered_set<loop::ExprId> seen(open.begin(), open.end());
  while (!open.empty()) {
    const loop::ExprNode& n = program.arena[open.back()];
    open.pop_back();
    if (n.fn == Fn::pow || n.fn == Fn::atan2 || n.fn == Fn::hypot || (n.fn >= Fn::exp && n.fn <= Fn::sigmoid))
      return true;
    auto visit = [&](loop::ExprId id) {
      if (id != ~0u && seen.insert(id).second) open.push_back(id);
    };
    for (loop::ExprId a : n.args) visit(a);
    visit(n.guard);
    visit(n.otherwise);
  }
  return false;
}

struct Ran {
  int status = 0;
  Buffers buffers;  // in the kernel's order
};

/// A kernel and one call of it, with what the interpreter of kernels gave.
struct Sample {
  Kernel kernel;
  Buffers buffers;
  std::vector<int64_t> params;
  int64_t extent = 0;
  Outcome want;
};

struct Counts {
  std::map<std::string, Sample>* distinct = nullptr;  // by text: kept where they are asked for
  size_t stages = 0, refused = 0, exact = 0, own_functions = 0, own_equal = 0;
  double worst = 0;
  std::set<std::string> reasons;
};

// What differs beyond `tolerance` units of the last place (of 1 below 1); the greatest difference is kept.
std::string differs(const StageKernel& made, const Ran& want, const Ran& got, double tolerance, double& worst) {
  if (want.status != got.status) return text("status ", got.status, " instead of ", want.status);
  if (want.status) return "";
  for (const Memory& m : made.kernel.memory) {
    if (m.scratch || !m.written) continue;
    const auto &a = want.buffers[m.number], &b = got.buffers[m.number];
    auto size = static_cast<size_t>(bytes_of(m.element));
    Type type = computed_in(m.element);
    for (size_t i = 0; i + size <= a.size(); i += size) {
      if (std::memcmp(&a[i], &b[i], size) == 0) continue;
      double x = number_of(type, load_element(m.element, &a[i])), y = number_of(type, load_element(m.element, &b[i]));
      if (is_float(type) && std::isnan(x) && std::isnan(y)) continue;
      double off = std::abs(x - y) / std::max(std::abs(x), 1.0);
      if (is_float(type) && tolerance > 0) {
        double unit = m.element == Element::f64    ? 0x1p-52
                      : m.element == Element::f16  ? 0x1p-10
                      : m.element == Element::bf16 ? 0x1p-7
                                                   : 0x1p-23;
        worst = std::max(worst, off / unit);
        if (off <= tolerance * unit) continue;
      }
      return text(m.name, '[', i / size, "] is ", y, " instead of ", x);
    }
  }
  return "";
}

class StageCheck {
 public:
  StageCheck(const loop::Program& program, const loop::Stage& stage, const KernelOptions& options, Counts& counts)
      : program_(program), stage_(stage), counts_(counts), made_(make_kernel(program, stage, options)) {}

  // In place: runs the interpreter of stages on the buffers and compares the rest with what it gives.
  std::string run(Buffers& buffers, bool native) {
    Ran before = chosen(buffers);
    std::vector<std::byte*> pointers;
    for (auto& b : buffers) pointers.push_back(b.data());
    int status = 0;
    try {
      const sym::Bindings none;
      interp::Resolved resolved{program_, program_.buffers, none};
      interp::CompiledStage(resolved, stage_).run(pointers.data());
    } catch (const Error& e) {
      status = std::string_view(e.what()).find("division by zero") != std::string_view::npos ? division_by_zero
                                                                                             : index_out_of_range;
    }
    Ran want = chosen(buffers);
    want.status = status;
    std::vector<int64_t> params;
    for (const Param& p : made_.params) params.push_back(compile::evaluate(p, {}));
    int64_t extent = sym::evaluate(made_.extent, {});
    Outcome got = interpreted(made_.kernel, before.buffers, params, 0, extent);
    bool own = has_own_function(program_, stage_);
    double worst = 0;
    if (auto wrong = differs(made_, want, {got.status, got.buffers}, own ? 8 : 0, worst); !wrong.empty())
      return "the interpreter of kernels: " + wrong + "\n" + to_text(made_.kernel);
    if (counts_.distinct)
      counts_.distinct->try_emplace(to_text(made_.kernel), Sample{made_.kernel, before.buffers, params, extent, got});
    ++(own ? counts_.own_functions : counts_.exact);
    counts_.own_equal += own && worst == 0;
    counts_.worst = std::max(counts_.worst, worst);
    if (!native) return "";
    for (Isa isa : isas()) {
      MappedCode code(emit_native(std::span(&made_.kernel, 1), isa));
      std::vector<std::pair<int64_t, int64_t>> parts = {{0, extent}};
      if (!made_.serial && extent > 1) parts = {{0, extent / 3}, {extent / 3, extent}};  // as threads share it
      Ran there{0, before.buffers};
      for (auto [lo, hi] : parts) {
        Outcome part = called(code.function(), made_.kernel, there.buffers, params, lo, hi);
        there.buffers = std::move(part.buffers);
        there.status |= part.status;
      }
      if (auto wrong = difference(made_.kernel, got, {there.status, there.buffers}); !wrong.empty())
        return text("machine code ", name(isa), ": ", wrong, "\n", to_text(made_.kernel));
    }
    return "";
  }

 private:
  Ran chosen(const Buffers& buffers) const {
    Ran out;
    for (loop::BufferId b : made_.buffers) out.buffers.push_back(buffers[b]);
    return out;
  }
  const loop::Program& program_;
  const loop::Stage& stage_;
  Counts& counts_;
  StageKernel made_;
};

// A buffer as large as its strides reach.
size_t memory_of(const loop::Buffer& b) {
  int64_t last = 0;
  for (size_t d = 0; d < b.sizes.size(); ++d) {
    if (b.sizes[d].as_int() == 0) return 0;
    last += (b.sizes[d].as_int() - 1) * b.strides[d].as_int();
  }
  return static_cast<size_t>(last + 1) * item_size(b.dtype);
}

// The stages of one call, one after another.
std::string check_call(const tenon::Op& op, std::span<const CallArg> args, const KernelOptions& options, bool native,
                       Counts& counts) {
  std::optional<Metas> metas = infer(op, args);
  if (!metas) return "";
  loop::Program program;
  Lower lower(op, args, metas->values, program);
  lower_op(lower);
  Buffers buffers;
  for (const loop::Buffer& b : program.buffers) buffers.emplace_back(memory_of(b));
  size_t next = 0;
  for (const CallArg& arg : args)
    for_each_tensor(arg, [&](const Tensor& t) {
      if (t && buffers[next].size() > 0) std::memcpy(buffers[next].data(), t.bytes(), buffers[next].size());
      if (t) ++next;
    });
  for (const loop::Step& step : program.steps) {
    const auto* stage = std::get_if<loop::Stage>(&step);
    if (!stage) {
      std::vector<std::byte*> pointers;
      for (auto& b : buffers) pointers.push_back(b.data());
      const sym::Bindings none;
      interp::PreparedAnchor({program, program.buffers, none}, step).run(pointers.data());
      continue;
    }
    ++counts.stages;
    try {
      std::string wrong = StageCheck(program, *stage, options, counts).run(buffers, native);
      if (!wrong.empty()) return wrong;
    } catch (const Unsupported& e) {
      ++counts.refused;
      counts.reasons.insert(e.what());
      return "";  // what follows would read what was not computed
    }
  }
  return "";
}

Counts over_recordings(const KernelOptions& options, size_t one_in, std::map<std::string, Sample>* distinct = nullptr) {
  interp::install();
  sweep::Library library(TENON_TEST_DATA "/sweep", TENON_TEST_DATA "/sweep/schemas.txt");
  Counts counts;
  counts.distinct = distinct;
  const char* only = std::getenv("TENON_OP");
  size_t failures = 0, ops = 0;
  for (const std::string& name : library.names()) {
    const tenon::Op* op = registry().find(name);
    if (!op || op->functional || (only && name != only)) continue;
    sweep::Recording recording = library.open(name);
    bool ran = false;
    for (size_t i = 0; i < recording.size(); ++i) {
      if (i > 0 && (std::hash<std::string>()(name) + i) % one_in != 0) continue;  // the first of every operator
      std::string wrong;
      try {
        CallArgs args = recording[i].arguments(*op);
        if (implementation_of(*op, args) != Implementation::stages) continue;
        ran = true;
        wrong = check_call(*op, args, options, true, counts);
      } catch (const std::exception& e) { wrong = e.what(); }
      if (!wrong.empty() && ++failures <= 12)
        ADD_FAILURE() << name << " case " << i << " (" << sweep::describe_call(*op, recording[i].arguments(*op))
                      << "): " << wrong;
    }
    ops += ran;
  }
  std::printf(
      "%zu operators, %zu stages: %zu bit-equal, %zu with functions of their own (%zu of them equal, at most "
      "%.1f units of the last place), %zu refused, %zu failed\n",
      ops, counts.stages, counts.exact, counts.own_functions, counts.own_equal, counts.worst, counts.refused, failures);
  for (const std::string& r : counts.reasons) std::printf("  refused: %s\n", r.c_str());
  return counts;
}

TEST(MakeKernel, gives_what_the_interpreter_gives_for_every_recorded_operator) {
  Counts counts = over_recordings({}, 1);
  EXPECT_TRUE(std::getenv("TENON_OP") || counts.exact > 4000);
}
TEST(MakeKernel, serves_all_sizes_by_parameters_also_as_c) {
  KernelOptions options;
  options.numbers_are_params = true;
  std::map<std::string, Sample> distinct;
  Counts counts = over_recordings(options, 2, &distinct);
  EXPECT_TRUE(std::getenv("TENON_OP") || counts.exact > 2000);
#ifndef TENON_SANITIZED
  if (!has_c_compiler()) GTEST_SKIP() << "there is no C compiler here";
  Folder folder;
  constexpr size_t per_file = 200;
  size_t equal = 0;
  for (auto first = distinct.begin(); first != distinct.end();) {
    std::vector<Sample*> samples;
    std::vector<Kernel> kernels;
    for (; first != distinct.end() && samples.size() < per_file; ++first) {
      samples.push_back(&first->second);
      samples.back()->kernel.name = text("stage_", samples.size());
      kernels.push_back(samples.back()->kernel);
    }
    void* library = build_c(folder, text("stages_", equal), emit_c(kernels), "-O1");
    ASSERT_NE(library, nullptr);
    for (const Sample* s : samples) {
      auto function = reinterpret_cast<KernelFunction>(dlsym(library, s->kernel.name.c_str()));
      ASSERT_NE(function, nullptr);
      std::string wrong =
          difference(s->kernel, s->want, called(function, s->kernel, s->buffers, s->params, 0, s->extent));
      EXPECT_EQ(wrong, "") << to_text(s->kernel);
      equal += wrong.empty();
    }
    dlclose(library);
  }
  std::printf("%zu kernels, each once, as C: bit-equal\n", equal);
#endif
}

void golden(const Kernel& kernel) {
  std::string path = std::string(TENON_GOLDEN) + "/" + kernel.name + ".txt", text = to_text(kernel);
  if (std::getenv("TENON_GOLDEN_UPDATE")) write_file_atomically(path, text);
  EXPECT_EQ(text, read_file(path));
}

// x and y of one size, an index into them, and stages over them.
struct Example {
  loop::Program program;
  loop::Stage stage;
  int64_t n;
  explicit Example(int64_t n) : n(n) {
    for (DType dtype : {DType::f32, DType::f32, DType::i64}) {
      loop::Buffer b;
      b.dtype = dtype;
      b.sizes.push_back(n);
      b.strides.push_back(1);
      program.buffers.push_back(b);
    }
  }
  loop::ExprId index() { return program.arena.add({.fn = loop::Fn::index, .type = loop::Compute::i64}); }
  loop::ExprId load(loop::BufferId buffer, loop::ExprId at) {
    loop::ExprNode n{.fn = loop::Fn::load, .type = loop::compute_of(program.buffers[buffer].dtype), .buffer = buffer};
    n.args.push_back(at);
    return program.arena.add(n);
  }
  void store(loop::BufferId to, loop::ExprId at, loop::ExprId value, loop::Mode mode = loop::Mode::set) {
    loop::Store s{.to = to, .value = value, .mode = mode};
    s.at.push_back(at);
    stage.stores.push_back(s);
  }
  void reduce(loop::Combine combine, int64_t to) {
    stage.accumulators.push_back({combine, load(0, index()), loop::Compute::f32});
    bool position = combine == loop::Combine::argmin || combine == loop::Combine::argmax;
    loop::ExprId got = program.arena.add({.fn = loop::Fn::accumulated,
                                          .type = position ? loop::Compute::i64 : loop::Compute::f32,
                                          .integer = static_cast<int64_t>(stage.accumulators.size() - 1)});
    loop::ExprId at = program.arena.add({.fn = loop::Fn::constant, .type = loop::Compute::i64, .integer = to});
    store(position ? 2 : 1, at, got);
  }
  Kernel kernel(const char* name) {
    KernelOptions options;
    options.name = name;
    return make_kernel(program, stage, options).kernel;
  }
};

TEST(MakeKernel, writes_a_pointwise_stage_over_lanes) {
  Example e(100);
  e.stage.domain.push_back(100);
  e.store(1, e.index(), e.load(0, e.index()));
  golden(e.kernel("stage_pointwise"));
}
TEST(MakeKernel, writes_a_long_reduction_in_chunks) {
  Example e(5000);
  e.stage.reduce.push_back(5000);
  e.reduce(loop::Combine::sum, 0);
  golden(e.kernel("stage_reduction"));
}
TEST(MakeKernel, writes_a_gather_with_its_check) {
  Example e(100);
  e.stage.domain.push_back(100);
  e.store(1, e.index(), e.load(0, e.load(2, e.index())));
  golden(e.kernel("stage_gather"));
}
TEST(MakeKernel, writes_a_scatter_as_updates) {
  Example e(100);
  e.stage.domain.push_back(100);
  e.store(1, e.load(2, e.index()), e.load(0, e.index()), loop::Mode::add);
  golden(e.kernel("stage_scatter"));
}

TEST(MakeKernel, keeps_the_order_of_reductions_of_any_length) {
  for (int64_t n : {1, 2, 31, 32, 33, 48, 1023, 1024, 1025, 2048, 3000, 5000, 7168, 20000})
    for (bool params : {false, true}) {
      Example e(n);
      e.stage.reduce.push_back(n);
      e.reduce(loop::Combine::sum, 0);
      if (n > 2) {
        e.reduce(loop::Combine::max, 1);
        e.reduce(loop::Combine::argmin, 0);
      }
      Buffers buffers{std::vector<std::byte>(static_cast<size_t>(n) * 4),
                      std::vector<std::byte>(static_cast<size_t>(n) * 4),
                      std::vector<std::byte>(static_cast<size_t>(n) * 8)};
      uint32_t state = 12345;
      for (int64_t i = 0; i < n; ++i) {
        state = state * 1664525 + 1013904223;
        float x = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
        std::memcpy(buffers[0].data() + i * 4, &x, 4);
      }
      Counts counts;
      KernelOptions options;
      options.numbers_are_params = params;
      EXPECT_EQ(StageCheck(e.program, e.stage, options, counts).run(buffers, true), "") << n;
    }
}

// One accumulator over long rows is streamed through scratch memory; two, or short rows, stay in registers.
TEST(MakeKernel, keeps_the_order_of_sums_of_columns) {
  for (int64_t columns : {48, 64, 100, 300, 1100})
    for (int64_t terms : {33, 63, 64, 67, 1024, 1025, 2050, 5000}) {
      if (columns * terms > 1'200'000) continue;
      for (size_t accumulators : {1u, 2u}) {
        loop::Program program;
        for (bool matrix : {true, false, false}) {
          loop::Buffer b{.dtype = DType::f32, .sizes = {columns}, .strides = {1}};
          if (matrix) b.sizes = {terms, columns}, b.strides = {columns, 1};
          program.buffers.push_back(b);
        }
        auto index = [&](int64_t loop) {
          return program.arena.add({.fn = loop::Fn::index, .type = loop::Compute::i64, .integer = loop});
        };
        loop::Stage stage;
        stage.domain.push_back(columns);
        stage.reduce.push_back(terms);
        for (size_t k = 0; k < accumulators; ++k) {
          loop::ExprNode x{.fn = loop::Fn::load, .type = loop::Compute::f32, .buffer = 0};
          x.args.push_back(index(1));
          x.args.push_back(index(0));
          stage.accumulators.push_back(
              {k == 0 ? loop::Combine::sum : loop::Combine::max, program.arena.add(x), loop::Compute::f32});
          loop::Store store{.to = static_cast<loop::BufferId>(1 + k)};
          store.at.push_back(index(0));
          store.value = program.arena.add(
              {.fn = loop::Fn::accumulated, .type = loop::Compute::f32, .integer = static_cast<int64_t>(k)});
          stage.stores.push_back(store);
        }
        Buffers buffers{std::vector<std::byte>(static_cast<size_t>(terms * columns) * 4),
                        std::vector<std::byte>(static_cast<size_t>(columns) * 4),
                        std::vector<std::byte>(static_cast<size_t>(columns) * 4)};
        uint32_t state = 54321;
        for (int64_t i = 0; i < terms * columns; ++i) {
          state = state * 1664525 + 1013904223;
          float x = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
          std::memcpy(buffers[0].data() + i * 4, &x, 4);
        }
        Counts counts;
        KernelOptions options;
        EXPECT_EQ(StageCheck(program, stage, options, counts).run(buffers, true), "") << terms << " x " << columns;
        const Kernel kernel = make_kernel(program, stage, options).kernel;
        const bool streams = std::any_of(kernel.memory.begin(), kernel.memory.end(), [](auto& m) { return m.scratch; });
        EXPECT_EQ(streams, accumulators == 1 && columns >= 64);
      }
    }
}

TEST(MakeKernel, serves_every_value_of_a_symbol) {
  SymInt symbol = SymInt::symbol("s0", {.positive = true});
  Example any(1);
  for (loop::Buffer& b : any.program.buffers) b.sizes[0] = symbol;
  any.stage.reduce.push_back(symbol);
  any.reduce(loop::Combine::sum, 0);
  StageKernel made = make_kernel(any.program, any.stage);
  EXPECT_FALSE(made.params.empty());
  for (int64_t n : {1, 7, 32, 33, 1000, 5000}) {
    Example fixed(n);
    fixed.stage.reduce.push_back(n);
    fixed.reduce(loop::Combine::sum, 0);
    std::vector<float> x(static_cast<size_t>(n)), y(x), expected(x);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 3);
    run(make_kernel(fixed.program, fixed.stage).kernel, {span_of(x), span_of(expected)}, {}, 0, 1);
    std::vector<int64_t> params;
    for (const Param& p : made.params) params.push_back(compile::evaluate(p, {{symbol, n}}));
    for (SymInt c : made.conditions) EXPECT_TRUE(sym::evaluate_bool(c, {{symbol, n}}));
    EXPECT_EQ(run(made.kernel, {span_of(x), span_of(y)}, params, 0, 1), 0);
    EXPECT_EQ(y, expected) << n;
  }
}

}  // namespace
}  // namespace tenon::compile
