// Every small program that PyTorch wrote, through the stages: what each stage makes of it must compute the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "tenon/aot/rematerialize.h"
#include "tenon/interp/eager.h"
#include "tenon/interp/run_graph.h"
#include "tenon/passes/grad_regions.h"
#include "tenon/passes/normalize.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

std::vector<std::string> program_files() {
  std::vector<std::string> files;
  for (const char* release :
       {"torch-2.4", "torch-2.5", "torch-2.6", "torch-2.8", "torch-2.9", "torch-2.11", "torch-2.15"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(TENON_TEST_DATA "/pt2/") + release)) {
      if (entry.path().extension() == ".pt2") files.push_back(entry.path().string());
    }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_random(const GraphBody& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op->traits.random) return true;
    for (const Arg& arg : node.args)
      if (const Subgraph* sub = arg.get<Subgraph>(); sub && is_random(*sub->body)) return true;
  }
  return false;
}

std::vector<double> numbers(const Tensor& t) {
  Tensor dense = contiguous_copy(t);
  std::vector<double> out;
  for (int64_t i = 0; i < dense.numel().as_int(); ++i) {
    TensorMeta element = dense.meta();
    element.sizes = element.strides = {};
    element.offset = i;
    out.push_back(scalar_value(dense.with_meta(element)));
  }
  return out;
}

void expect_equal(const Tensor& a, const Tensor& b, double relative, const std::string& what) {
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  std::vector<double> x = numbers(a), y = numbers(b);
  double largest = 0;
  for (double v : y)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i]) continue;
    ASSERT_LE(std::fabs(x[i] - y[i]), relative * largest) << what << " at " << i << ": " << x[i] << " and " << y[i];
  }
}

/// Factors of weights are multiplied when the program is prepared, and sums are begun with a bias: a few roundings.
double rounding(DType dtype) {
  switch (dtype) {
    case DType::f64: return 16 * 0x1p-52;
    case DType::f32: return 16 * 0x1p-23;
    case DType::f16: return 2 * 0x1p-10;
    case DType::bf16: return 2 * 0x1p-7;
    default: return 0;
  }
}

class Programs : public testing::TestWithParam<std::string> {};

// The functional program does what the program as written does, operator by operator, writes and aliases included.
TEST_P(Programs, FunctionalEqualsEager) {
  ExportedProgram program = open_program(GetParam());
  if (is_random(program.graph.body())) GTEST_SKIP() << "draws numbers";
  std::optional<SampleInputs> samples = program.samples ? program.samples() : std::nullopt;
  ASSERT_TRUE(samples.has_value());
  // Beyond it batch norms are folded into weights, which rounds elsewhere.
  RunResult functional = run_program(program, samples->leaves, {.until = StageName::fused});

  ExportedProgram fresh = open_program(GetParam());  // state of its own: it will be written
  std::vector<CallArg> leaves = fresh.samples()->leaves, inputs;
  size_t leaf = 0;
  for (const InputSpec& spec : fresh.signature.inputs)
    inputs.push_back(spec.kind == InputKind::user_input ? leaves[leaf++] : CallArg(fresh.tensor_of(spec)));
  Graph normalized = normalize(fresh.graph.body());
  std::vector<CallArg> eager = interp::run_graph(normalized.body(), inputs, {.functional = false});
  size_t outputs = 0;
  std::map<std::string, Tensor> returned;  // what a program of the dialect ATEN would write
  for (size_t i = 0; i < eager.size(); ++i) {
    const OutputSpec& spec = fresh.signature.outputs[i];
    auto* t = eager[i].get<Tensor>();
    if (spec.kind != OutputKind::user_output) returned.emplace(spec.target, *t);
    else if (t)
      expect_equal(*functional.outputs[outputs++].get<Tensor>(), *t, rounding(t->dtype()), text("output ", i));
    else ++outputs;
  }
  for (auto& [name, value] : functional.buffers)
    expect_equal(value, returned.contains(name) ? returned[name] : fresh.find_state(name)->tensor,
                 rounding(value.dtype()), name);
  for (auto& [name, value] : functional.parameters)
    expect_equal(value, fresh.find_state(name)->tensor, rounding(value.dtype()), name);
  for (auto& [name, value] : functional.inputs)
    for (size_t i = 0; i < inputs.size(); ++i)
      if (fresh.signature.inputs[i].name == name)
        expect_equal(value, returned.contains(name) ? returned[name] : *inputs[i].get<Tensor>(), 0, name);
}

// Grad mode as regions and as flags of nodes say the same.
TEST_P(Programs, RegionsAndFlagsAreInverse) {
  Graph flags = normalize(open_program(GetParam()).graph.body());
  Graph regions = make_grad_regions(flags.body());
  for (const Node& node : regions->nodes) EXPECT_TRUE(node.grad_enabled);
  EXPECT_EQ(to_text(normalize(regions.body()).body()), to_text(flags.body()));
}

// Forward and backward apart give the gradients of the joint graph.
TEST_P(Programs, PartitionEqualsJoint) {
  ExportedProgram program = open_program(GetParam());
  std::optional<SampleInputs> samples = program.samples ? program.samples() : std::nullopt;
  ASSERT_TRUE(samples.has_value());
  if (has_no_gradient(GetParam())) {
    EXPECT_THROW(differentiate(program, 0, parse_wrt("all")), Error);
    return;
  }
  JointProgram joint = make_joint(functionalize(program), 0, parse_wrt("all"));
  ExportedProgram written = differentiate(program, 0, parse_wrt("all"));
  std::vector<CallArg> inputs = written.samples()->leaves;
  FunctionalProgram whole{joint.graph.copy(), joint.convention};
  RunResult expected = run_functional(whole, program, inputs);

  TrainingProgram halves = split(joint);
  std::vector<CallArg> forward_inputs, backward_inputs;
  for (const InputMeaning& m : halves.forward.convention.inputs) {
    if (is_state(m)) forward_inputs.emplace_back(program.find_state(public_name(m))->tensor);
    else if (auto* u = std::get_if<input::User>(&m)) forward_inputs.push_back(inputs[u->leaf]);
    else GTEST_SKIP() << "draws numbers";
  }
  std::vector<CallArg> forward = interp::run_graph(halves.forward.graph.body(), forward_inputs);
  for (const InputMeaning& m : halves.backward.convention.inputs) {
    if (std::holds_alternative<input::Tangent>(m)) backward_inputs.push_back(inputs.back());
    for (size_t i = 0; i < forward.size(); ++i) {
      const OutputMeaning& given = halves.forward.convention.outputs[i];
      auto* saved = std::get_if<output::Saved>(&given);
      auto* size = std::get_if<output::SavedSize>(&given);
      if (saved && m == InputMeaning(input::Saved{saved->name})) backward_inputs.push_back(forward[i]);
      if (size && m == InputMeaning(input::SavedSize{size->symbol})) backward_inputs.push_back(forward[i]);
    }
  }
  ASSERT_EQ(backward_inputs.size(), halves.backward.graph->inputs.size());
  std::vector<CallArg> gradients;
  try {
    gradients = interp::run_graph(halves.backward.graph.body(), backward_inputs);
  } catch (const Error& e) { FAIL() << e.what(); }
  size_t next = 0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const InputMeaning& of =
        halves.forward.convention.inputs[std::get<output::Gradient>(halves.backward.convention.outputs[i]).input];
    while (next < expected.gradients.size() && expected.gradients[next].first != public_name(of)) ++next;
    ASSERT_LT(next, expected.gradients.size());
    expect_equal(*gradients[i].get<Tensor>(), expected.gradients[next].second, 1e-6, public_name(of));
  }
}

// A backward that computes again what it does not keep gives the same bits, random draws included, and can be cut off.
TEST_P(Programs, WhatIsComputedAgainHasTheSameBits) {
  if (has_no_gradient(GetParam())) return;
  ExportedProgram program = open_program(GetParam());
  JointProgram joint = make_joint(functionalize(program), 0, parse_wrt("all"));
  ExportedProgram written = differentiate(program, 0, parse_wrt("all"));
  std::vector<CallArg> given = written.samples()->leaves, inputs;
  for (const InputMeaning& m : joint.convention.inputs) {
    if (is_state(m)) inputs.emplace_back(program.find_state(public_name(m))->tensor);
    else if (auto* u = std::get_if<input::User>(&m)) inputs.push_back(given[u->leaf]);
    else if (std::holds_alternative<input::Tangent>(m)) inputs.push_back(given.back());
    else inputs.emplace_back(integers({2}, {7, 3}));
  }
  std::vector<CallArg> expected = interp::run_graph(joint.graph.body(), inputs);
  for (double budget : {1.0, 0.4, 0.0}) {
    JointProgram again = rematerialize(joint, {.memory_budget = budget});
    std::vector<CallArg> results = interp::run_graph(again.graph.body(), inputs);
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i)
      if (auto* t = expected[i].get<Tensor>(); t && *t)
        expect_equal(*results[i].get<Tensor>(), *t, 0, text("budget ", budget, ", output ", i));
    EXPECT_NO_THROW(split(again)) << budget;
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::filesystem::path path(info.param);
  std::string name = path.parent_path().filename().string() + "_" + path.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, Programs, testing::ValuesIn(program_files()), test_name);

}  // namespace
}  // namespace tenon
