// Every recorded program and its joint program, compiled: the interpreter of kernels and machine code give the same
// bits, on one thread and on several, and the values of the interpreter of programs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/compile/emit_native.h"
#include "tenon/pipeline.h"
#include "tenon/rules/call.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

using Results = std::vector<std::pair<std::string, CallArg>>;

Results results_of(const RunResult& r) {
  Results out;
  for (size_t i = 0; i < r.outputs.size(); ++i) out.emplace_back(text("output_", i), r.outputs[i]);
  auto add = [&](const char* prefix, const auto& list) {
    for (const auto& [name, tensor] : list) out.emplace_back(prefix + name, tensor);
  };
  add("buffer.", r.buffers);
  add("parameter.", r.parameters);
  add("input.", r.inputs);
  add("grad.", r.gradients);
  return out;
}

double element(const Tensor& dense, int64_t i) {
  Tensor one = dense;
  TensorMeta meta = dense.meta();
  meta.sizes = {};
  meta.strides = {};
  meta.offset = dense.meta().offset + SymInt(i);
  return scalar_value(Tensor(meta, dense.storage()));
}

/// Of a float tensor, by how much elements may differ: the interpreter computes functions in its own way.
double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-12;
    case DType::f16: return 4e-3;
    case DType::bf16: return 3e-2;
    default: return 2e-5;
  }
}

std::string differ(const Tensor& got, const Tensor& want, bool bits) {
  if (got.dtype() != want.dtype() || got.sizes() != want.sizes())
    return text("expected ", want.meta(), ", got ", got.meta());
  Tensor a = contiguous_copy(got), b = contiguous_copy(want);
  size_t item = item_size(a.dtype());
  double largest = 0;
  int64_t count = a.numel().as_int();
  if (!bits && is_floating(a.dtype()))
    for (int64_t i = 0; i < count; ++i)
      if (double x = std::fabs(element(b, i)); std::isfinite(x)) largest = std::max(largest, x);
  for (int64_t i = 0; i < count; ++i) {
    size_t at = static_cast<size_t>(i) * item;
    if (std::memcmp(a.bytes() + at, b.bytes() + at, item) == 0) continue;
    if (!is_floating(a.dtype())) return text("element ", i, " differs");
    double x = element(a, i), y = element(b, i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (!bits && std::fabs(x - y) <= tolerance(a.dtype()) * (largest + 1e-3)) continue;
    return text("element ", i, " is ", x, ", expected ", y);
  }
  return "";
}

void expect_same(const Results& got, const Results& want, bool bits, const std::string& who) {
  ASSERT_EQ(got.size(), want.size()) << who;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first) << who;
    auto *a = got[i].second.get<Tensor>(), *b = want[i].second.get<Tensor>();
    if (a && *a && b && *b) EXPECT_EQ(differ(*a, *b, bits), "") << who << ", " << got[i].first;
    else EXPECT_EQ(describe(got[i].second), describe(want[i].second)) << who << ", " << got[i].first;
  }
}

/// Copies with the same strides, so that a run which writes its arguments can be repeated.
std::vector<CallArg> copies(const std::vector<CallArg>& inputs) {
  std::vector<CallArg> out;
  for (const CallArg& a : inputs) {
    auto* t = a.get<Tensor>();
    if (!t || !*t) {
      out.push_back(a);
      continue;
    }
    auto storage = std::make_shared<Storage>(t->storage()->size());
    if (storage->size() > 0) std::memcpy(storage->mutable_data(), t->storage()->data(), storage->size());
    out.emplace_back(Tensor(t->meta(), storage));
  }
  return out;
}

void check_program(const ExportedProgram& program) {
  Walk walk(program);
  Compilable made = prepare_to_compile(walk);
  if (!made.samples) {
    EXPECT_NE(made.warning, "");
    return;
  }
  const std::vector<CallArg>& inputs = *made.samples;
  std::unique_ptr<State> own = made.state->copy();
  auto first = copies(inputs);
  Results lowered = results_of(Session(made.executable).run(*own, first, {.absent_are_ones = true}));
  auto run = [&](std::shared_ptr<const CompiledProgram> compiled) {
    auto again = copies(inputs);
    CompiledState state(compiled);
    return results_of(CompiledSession(compiled).run(state, again));
  };
  Results interpreted = run(interpret_compiled(*made.executable, *made.state));
  expect_same(interpreted, lowered, false, "the interpreter of kernels");
  for (Target target : {Target::x86_64_v3, Target::x86_64_v4}) {
    if (!compile::machine_has(target == Target::x86_64_v3 ? compile::Isa::v3 : compile::Isa::v4)) continue;
    std::vector<std::byte> bytes = compile_program(*made.executable, *made.state, {.targets = {target}});
    EXPECT_EQ(bytes, compile_program(*made.executable, *made.state, {.targets = {target}})) << "compiled twice";
    for (int threads : {1, 3})
      expect_same(run(CompiledProgram::open(bytes, {.threads = threads})), interpreted, true,
                  text(name(target), " on ", threads, " threads"));
  }
  std::vector<std::byte> updatable = compile_program(*made.executable, *made.state, {.updatable = true});
  expect_same(run(CompiledProgram::open(updatable, {})), interpreted, true, "updatable");
}

class Recorded : public testing::TestWithParam<std::string> {};

TEST_P(Recorded, program_compiles_to_the_same_bits_everywhere) {
  ExportedProgram program = open_program(GetParam());
  check_program(program);
}

TEST_P(Recorded, joint_program_compiles_to_the_same_bits_everywhere) {
  ExportedProgram program = open_program(GetParam());
  if (has_no_gradient(GetParam())) {
    EXPECT_THROW(differentiate(program, 0, parse_wrt("all")), Error);
    return;
  }
  check_program(differentiate(program, 0, parse_wrt("all")));
}

std::vector<std::string> files() {
  std::vector<std::string> out;
  for (const char* folder : {"torch-2.15", "torch-2.4"})
    for (const auto& entry : std::filesystem::directory_iterator(text(TENON_TEST_DATA, "/pt2/", folder)))
      if (entry.path().extension() == ".pt2") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
  std::filesystem::path path = info.param;
  std::string out = path.parent_path().filename().string() + "_" + path.stem().string();
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return out;
}

INSTANTIATE_TEST_SUITE_P(Programs, Recorded, testing::ValuesIn(files()), case_name);

}  // namespace
}  // namespace tenon::artifact
