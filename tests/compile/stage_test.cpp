// Kernels made from stages against the interpreter of stages, over the calls recorded from PyTorch.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/compile/evaluate.h"
#include "tenon/compile/make_kernel.h"
#include "tenon/interp/anchors.h"
#include "tenon/interp/eager.h"
#include "tenon/interp/stage.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"
#include "tests/compile/run.h"
#include "tests/sweep/recording.h"

namespace tenon::compile {
namespace {

using Buffers = std::vector<std::vector<std::byte>>;  // of the program, views in the memory of their own

// A function that math.h computes in its own way: last bits may differ from the C library's.
bool has_own_function(const loop::Program& program, loop::ExprId id) {
  const loop::ExprNode& n = program.arena[id];
  using loop::Fn;
  if (n.fn == Fn::pow || n.fn == Fn::atan2 || n.fn == Fn::hypot || (n.fn >= Fn::exp && n.fn <= Fn::sigmoid)) return true;
  for (loop::ExprId a : n.args)
    if (has_own_function(program, a)) return true;
  return (n.guard != ~0u && has_own_function(program, n.guard)) ||
         (n.otherwise != ~0u && has_own_function(program, n.otherwise));
}
bool has_own_function(const loop::Program& program, const loop::Stage& stage) {
  for (const loop::Accumulator& a : stage.accumulators)
    if (has_own_function(program, a.value)) return true;
  for (const loop::Store& s : stage.stores)
    if (has_own_function(program, s.value)) return true;
  return false;
}

struct Ran {
  int status = 0;
  Buffers buffers;  // in the kernel's order
};

struct Counts {
  size_t stages = 0, refused = 0, exact = 0, own_functions = 0, own_equal = 0, largest_faults = 0;
  double worst = 0;
  std::set<std::string> reasons;
};

// What differs, beyond `tolerance` of the largest element; the greatest relative difference is kept.
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
        double unit = m.element == Element::f64 ? 0x1p-52 : m.element == Element::f16 ? 0x1p-10 : m.element == Element::bf16 ? 0x1p-7 : 0x1p-23;
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
    if (auto wrong = differs(made_, want, {got.status, got.buffers}, own ? 64 : 0, worst); !wrong.empty())
      return "the interpreter of kernels: " + wrong + "\n" + to_text(made_.kernel);
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
      if (t) std::memcpy(buffers[next].data(), t.bytes(), buffers[next].size()), ++next;
    });
  for (const loop::Step& step : program.steps) {
    const auto* stage = std::get_if<loop::Stage>(&step);
    if (!stage) {
      std::vector<std::byte*> pointers;
      for (auto& b : buffers) pointers.push_back(b.data());
      interp::run_anchor(program.buffers, step, pointers.data());
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

Counts over_recordings(const KernelOptions& options, size_t one_in) {
  interp::install();
  sweep::Library library(TENON_TEST_DATA "/sweep");
  Counts counts;
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
        ADD_FAILURE() << name << " case " << i << " ("
                      << sweep::describe_call(*op, recording[i].arguments(*op)) << "): " << wrong;
    }
    ops += ran;
  }
  std::printf("%zu operators, %zu stages: %zu bit-equal, %zu with functions of their own (%zu of them equal, at most "
              "%.1f units of the last place), %zu refused, %zu failed\n",
              ops, counts.stages, counts.exact, counts.own_functions, counts.own_equal, counts.worst, counts.refused,
              failures);
  for (const std::string& r : counts.reasons) std::printf("  refused: %s\n", r.c_str());
  return counts;
}

TEST(MakeKernel, gives_what_the_interpreter_gives_for_every_recorded_operator) {
  Counts counts = over_recordings({}, 8);
  EXPECT_TRUE(std::getenv("TENON_OP") || counts.exact > 500);
}
TEST(MakeKernel, serves_all_sizes_by_parameters) {
  KernelOptions options;
  options.numbers_are_params = true;
  Counts counts = over_recordings(options, 16);
  EXPECT_TRUE(std::getenv("TENON_OP") || counts.exact > 300);
}

}  // namespace
}  // namespace tenon::compile
