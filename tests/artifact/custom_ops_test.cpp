// Operators of the user, from a table as C++ programs and shared libraries hand it in: interpreted, differentiated,
// compiled.
#include "tenon/ops/custom_ops.h"

#include <gtest/gtest.h>

#include "runtime/include/tenon/operator_table.h"
#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/passes/check_metas.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

using Floats = std::vector<float>;

float element(const tenon_tensor& t, int64_t i) {
  int64_t offset = 0;
  for (int32_t d = t.rank - 1; d >= 0; --d) {
    offset += i % t.sizes[d] * t.strides[d];
    i /= t.sizes[d];
  }
  return static_cast<const float*>(t.data)[offset];
}
int64_t count(const tenon_tensor& t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t.rank; ++d) n *= t.sizes[d];
  return n;
}

int times(const tenon_host_call* call, int64_t, int64_t) {
  if (call->inputs[0].dtype != TENON_F32) {
    call->counts[0] = 1;
    return TENON_KERNEL_REFUSED;
  }
  auto* out = static_cast<float*>(call->results[0].data);
  for (int64_t i = 0, n = count(call->results[0]); i < n; ++i)
    out[i] = element(call->inputs[0], i) * static_cast<float>(tenon_real_param(call->params[0]));
  return TENON_KERNEL_OK;
}
int outer(const tenon_host_call* call, int64_t, int64_t) {
  auto* out = static_cast<float*>(call->results[0].data);
  for (int64_t i = 0; i < count(call->inputs[0]); ++i)
    for (int64_t j = 0; j < count(call->inputs[1]); ++j)
      *out++ = element(call->inputs[0], i) * element(call->inputs[1], j);
  return TENON_KERNEL_OK;
}
// swapped(Tensor(a!) a, Tensor(b!) b) -> Tensor: the sum, then what is written to a and to b
int swapped(const tenon_host_call* call, int64_t, int64_t) {
  for (int64_t i = 0, n = count(call->inputs[0]); i < n; ++i) {
    float a = element(call->inputs[0], i), b = element(call->inputs[1], i);
    static_cast<float*>(call->results[0].data)[i] = a + b;
    static_cast<float*>(call->results[1].data)[i] = b;
    static_cast<float*>(call->results[2].data)[i] = a;
  }
  return TENON_KERNEL_OK;
}
std::string told;
int tell(const tenon_host_call* call, int64_t, int64_t) {
  told += std::string(reinterpret_cast<const char*>(call->params + 1), static_cast<size_t>(call->params[0]));
  told += " ";
  return TENON_KERNEL_OK;
}
// counted(Tensor x) -> Tensor, with an effect although it returns something
int counted(const tenon_host_call* call, int64_t, int64_t) {
  told += "counted ";
  *static_cast<float*>(call->results[0].data) = static_cast<float>(count(call->inputs[0]));
  return TENON_KERNEL_OK;
}
int first_of(const tenon_host_call* call, int64_t, int64_t) {
  int64_t n = call->params[0];
  if (int status = call->allocate(call, 0, 1, &n)) return status;
  for (int64_t i = 0; i < n; ++i) static_cast<float*>(call->results[0].data)[i] = element(call->inputs[0], i);
  return TENON_KERNEL_OK;
}

const char* const only_floats[] = {"expected a tensor of f32", nullptr};

const tenon_operator operators[] = {
    {"our::times(Tensor x, float factor) -> Tensor", "x", times, "x = our::times(grad, factor)", only_floats, 0},
    {"our::outer(Tensor a, Tensor b) -> Tensor", "a[n], b[m] -> a[n, m]", outer,
     "a = aten::mv(grad, b); b = our::of_second(grad, a)", nullptr, 0},
    {"our::of_second(Tensor grad, Tensor a) -> Tensor", "grad[n, m], a[n] -> a[m]",
     [](const tenon_host_call* call, int64_t, int64_t) -> int {
       int64_t columns = call->results[0].sizes[0];
       for (int64_t j = 0; j < columns; ++j) {
         float sum = 0;
         for (int64_t i = 0; i < count(call->inputs[1]); ++i)
           sum += element(call->inputs[0], i * columns + j) * element(call->inputs[1], i);
         static_cast<float*>(call->results[0].data)[j] = sum;
       }
       return TENON_KERNEL_OK;
     },
     nullptr, nullptr, 0},
    {"our::swapped(Tensor(a!) a, Tensor(b!) b) -> Tensor", "a", swapped, nullptr, nullptr, 0},
    {"our::tell(Tensor x, str what) -> ()", nullptr, tell, nullptr, nullptr, 0},
    {"our::counted(Tensor x) -> Tensor", "f32[]", counted, nullptr, nullptr, TENON_OPERATOR_EFFECTS},
    {"our::first_of(Tensor x, int n) -> Tensor", "x[?]", first_of, nullptr, nullptr, 0},
    {"our::rows(Tensor x, int extra) -> Tensor", "x[..., k] -> i64[..., 2*k + extra]",
     [](const tenon_host_call* call, int64_t, int64_t) -> int {
       for (int64_t i = 0, n = count(call->results[0]); i < n; ++i) static_cast<int64_t*>(call->results[0].data)[i] = n;
       return TENON_KERNEL_OK;
     },
     nullptr, nullptr, 0},
};

class CustomOps : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const tenon_operator_table table = {TENON_OPERATOR_TABLE_VERSION, sizeof(tenon_operator), std::size(operators),
                                        operators};
    register_custom_operators(table, "a test");
  }
  void SetUp() override { told.clear(); }

  // The first output, interpreted; compiled it is the same, and so is what was told.
  Floats run(std::string_view graph, const std::vector<CallArg>& inputs) {
    ExportedProgram program = program_of(graph);
    RunResult interpreted = run_program(program, inputs);
    std::string first = told;
    told.clear();
    Walk walk(program);
    Compilable made = prepare_to_compile(walk);
    auto compiled = CompiledProgram::open(compile_program(*made.executable, *made.state, {}), {});
    CompiledState state(compiled);
    CompiledSession session(compiled);
    RunResult native = session.run(state, inputs);
    EXPECT_EQ(told, first);
    EXPECT_EQ(interpreted.outputs.size(), native.outputs.size());
    for (size_t i = 0; i < native.outputs.size(); ++i)
      EXPECT_EQ(values_of(interpreted.outputs[i].as<Tensor>()), values_of(native.outputs[i].as<Tensor>())) << i;
    return values_of(interpreted.outputs.at(0).as<Tensor>());
  }
  std::string refusal(std::vector<CustomOperator> given) {
    try {
      register_custom_operators(std::move(given), "LIB");
    } catch (const Error& error) { return error.what(); }
    return "";
  }
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(CustomOps, AreCalledInterpretedAndCompiled) {
  EXPECT_EQ(run("%x: f32[3] = input()\n%y: f32[3] = our::times(%x, 2.5)\n%z: f32[3] = aten::add.Tensor(%y, 1)\n"
                "return %z\n",
                {floats({3}, {1, 2, 4})}),
            (Floats{3.5, 6, 11}));
}

TEST_F(CustomOps, SizesOfResultsFollowFromThoseOfArguments) {
  EXPECT_EQ(run("%a: f32[2] = input()\n%b: f32[3] = input()\n%y: f32[2, 3] = our::outer(%a, %b)\nreturn %y\n",
                {floats({2}, {1, 2}), floats({3}, {1, 2, 3})}),
            (Floats{1, 2, 3, 2, 4, 6}));
  ExportedProgram program =
      program_of("%x: f32[2, s0, 3] = input()\n%y: i64[2, s0, 7] = our::rows(%x, 1)\nreturn %y\n");
  EXPECT_EQ(run_program(program, {counting({2, 5, 3})}).outputs.at(0).as<Tensor>().sizes(), (Sizes{2, 5, 7}));
}

TEST_F(CustomOps, ASizeMayBeKnownToTheKernelAlone) {
  EXPECT_EQ(run("%x: f32[4] = input()\n%y: f32[u0] = our::first_of(%x, 2)\n%z: f32[u0] = aten::neg(%y)\nreturn %z\n",
                {floats({4}, {1, 2, 3, 4})}),
            (Floats{-1, -2}));
}

TEST_F(CustomOps, ArgumentsThatDoNotFitAreRefused) {
  ExportedProgram program = program_of(
      "%a: f32[2, 2] = input()\n%b: f32[3] = input()\n%y: f32[2, 3] = our::outer(%a, "
      "%b)\nreturn %y\n");
  try {
    check_metas(program.graph.body(), {});
    FAIL();
  } catch (const Error& error) { EXPECT_HAS(std::string(error.what()), "a: expected 1 dimensions, got f32[2, 2]"); }
}

TEST_F(CustomOps, AKernelRefusesInItsOwnWords) {
  ExportedProgram program = program_of("%x: i64[2] = input()\n%y: i64[2] = our::times(%x, 2.0)\nreturn %y\n");
  try {
    run_program(program, {integers({2}, {1, 2})});
    FAIL();
  } catch (const Error& error) { EXPECT_HAS(std::string(error.what()), "our::times: expected a tensor of f32"); }
}

TEST_F(CustomOps, GradientsAreCallsOfOperators) {
  ExportedProgram program = program_of(
      "%p_a: f32[2] = input()\n%p_b: f32[3] = input()\n%o: f32[2, 3] = our::outer(%p_a, %p_b)\n"
      "%t: f32[2, 3] = our::times(%o, 3.0)\n%s: f32[] = aten::sum(%t)\nreturn %s\n");
  program.state = {{.name = "a", .tensor = floats({2}, {1, 2}), .is_parameter = true},
                   {.name = "b", .tensor = floats({3}, {1, 2, 3}), .is_parameter = true}};
  Walk walk(program, {.of = 0, .wrt = parse_wrt("parameters")});
  std::string joint = show(walk, StageName::joint);
  EXPECT_HAS(joint, "our::times(");
  EXPECT_HAS(joint, "our::of_second(");
  ExportedProgram written = differentiate(walk);
  RunResult ran = run_program(written, {});
  ASSERT_EQ(ran.gradients.size(), 2u);
  EXPECT_EQ(ran.gradients[0].first, "a");
  EXPECT_EQ(values_of(ran.gradients[0].second), (Floats{18, 18}));
  EXPECT_EQ(ran.gradients[1].first, "b");
  EXPECT_EQ(values_of(ran.gradients[1].second), (Floats{9, 9, 9}));
}

TEST_F(CustomOps, WritesReachArgumentsAndTheirViews) {
  EXPECT_EQ(run("%a: f32[2] = input()\n%x: f32[2, 2] = aten::zeros([2, 2])\n"
                "%row: f32[2] = aten::select.int(%x, 0, 1)\n%copy: f32[2] = aten::clone(%a)\n"
                "%sum: f32[2] = our::swapped(%copy, %row)\nreturn %x, %copy, %sum\n",
                {floats({2}, {5, 7})}),
            (Floats{0, 0, 5, 7}));
}

TEST_F(CustomOps, EffectsStayInTheirOrder) {
  run("%x: f32[2] = input()\nour::tell(%x, 'first')\n%n: f32[] = our::counted(%x)\n%y: f32[2] = aten::neg(%x)\n"
      "our::tell(%y, 'last')\nreturn %y\n",
      {floats({2}, {1, 2})});
  EXPECT_EQ(told, "first counted last ");
}

TEST_F(CustomOps, AWrongTableIsRefusedInOneSentence) {
  CustomOperator good{.schema = "wrong::op(Tensor x) -> Tensor", .results = "x", .kernel = times};
  auto with = [&](auto change) {
    CustomOperator made = good;
    change(made);
    return refusal({made});
  };
  EXPECT_HAS(with([](auto& o) { o.schema = "wrong::op(Tensor"; }), "expected a schema such as");
  EXPECT_HAS(with([](auto& o) { o.schema = "op(Tensor x) -> Tensor"; }), "expected a namespace");
  EXPECT_HAS(with([](auto& o) { o.schema = "aten::mine(Tensor x) -> Tensor"; }), "is not the user's");
  EXPECT_HAS(with([](auto& o) { o.schema = "our::times(Tensor x) -> Tensor"; }), "there is an operator our::times");
  EXPECT_HAS(with([](auto& o) { o.schema = "wrong::op(Tensor x) -> int"; }), "results must be new tensors");
  EXPECT_HAS(with([](auto& o) { o.kernel = nullptr; }), "it has no kernel");
  EXPECT_HAS(with([](auto& o) { o.results = "y"; }), "results 'y': expected an argument or a dtype");
  EXPECT_HAS(with([](auto& o) { o.results = "x[n] -> x[m]"; }), "is named by no argument");
  EXPECT_HAS(with([](auto& o) { o.results = ""; }), "expected 1 results, got 0");
  EXPECT_HAS(with([](auto& o) { o.gradient = "x = wrong::other(grad)"; }), "there is no operator 'wrong::other'");
  EXPECT_HAS(with([](auto& o) { o.gradient = "x"; }), "expected a call such as");
  EXPECT_EQ(registry().find("wrong::op"), nullptr) << "nothing of a wrong table is registered";
  tenon_operator_table table = {TENON_OPERATOR_TABLE_VERSION + 1, sizeof(tenon_operator), 1, operators};
  try {
    register_custom_operators(table, "LIB");
    FAIL();
  } catch (const Error& error) { EXPECT_HAS(std::string(error.what()), "LIB: its table of operators has version 2"); }
}

}  // namespace
}  // namespace tenon::artifact
