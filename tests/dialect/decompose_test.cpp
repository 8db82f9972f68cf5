// What run_decompositions keeps, replaces and refuses.
#include <gtest/gtest.h>

#include "tenon/dialect/names.h"
#include "tenon/dialect/operators.h"
#include "tenon/dialect/run_decompositions.h"
#include "tenon/dialect/verify_dialect.h"
#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/signature_views.h"
#include "tenon/export/transform.h"
#include "tenon/loop/index_map.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

ExportedProgram program(const std::string& name) {
  return load_exported(text(TENON_TEST_DATA, "/pt2/torch-2.15/", name, ".pt2"), registry());
}

size_t calls(const ExportedProgram& program, std::string_view op) {
  size_t count = 0;
  for (const Node& node : program.graph->nodes) count += node.op->name() == op;
  return count;
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(Names, AreNumberedAsTorchFxNumbersThem) {
  dialect::NodeNames names;
  EXPECT_EQ(names.make("add"), "add");
  EXPECT_EQ(names.make("add"), "add_1");
  EXPECT_EQ(names.make("slice"), "slice_1");  // means something in Python
  EXPECT_EQ(names.make("slice"), "slice_2");
  EXPECT_EQ(names.make("add"), "add_2");
}

TEST(Names, OfNodesMakeWayForThoseOfInputs) {
  dialect::NamesAroundInputs names;
  names.take("add");
  EXPECT_EQ(names.rename("add"), "add_1");
  EXPECT_EQ(names.rename("add_1"), "add_2");
  EXPECT_EQ(names.rename("mul"), "mul");
}

TEST(Operators, OfTheCoreSetAreRegistered) {
  std::vector<std::string> missing;
  for (std::string_view name : dialect::core_operators())
    if (!registry().find(name)) missing.emplace_back(name);
  EXPECT_EQ(missing, std::vector<std::string>());
  for (const char* writes : {"aten::atan2.out", "aten::resize_"})  // tagged, and no part of a functional program
    EXPECT_TRUE(registry().find(writes)) << writes;
  EXPECT_EQ(dialect::core_operators().size() + 2, 193u);
}

TEST(Keep, LeavesACompositeAsItIs) {
  ExportedProgram from = program("a_mlp");
  EXPECT_EQ(calls(run_decompositions(from), "aten::linear"), 0u);
  ExportedProgram kept = run_decompositions(from, {.keep = {"torch.ops.aten.linear.default"}});
  EXPECT_EQ(calls(kept, "aten::linear"), 3u);
  EXPECT_EQ(calls(kept, "aten::addmm"), 0u);
}

TEST(Keep, LeavesAnOperatorOfTheTableAsItIs) {
  ExportedProgram from = program("h_outputs_that_are_inputs");
  EXPECT_EQ(calls(run_decompositions(from), "aten::t"), 0u);
  EXPECT_GT(calls(run_decompositions(from, {.keep = {"t"}}), "aten::t"), 0u);
}

TEST(Keep, TakesTheFormWithoutWritesOfOneThatWrites) {
  ExportedProgram from = program("b_odd_cnn_train");
  ExportedProgram kept = run_decompositions(from, {.keep = {"aten::add_.Tensor"}});
  for (const Node& node : kept.graph->nodes) EXPECT_FALSE(node.op->writes()) << node.op->name();
}

TEST(Keep, LeavesOneThatAliasesWhereNothingWritesToWhatItShares) {
  ExportedProgram from = program("b_digits_eval");
  EXPECT_EQ(calls(run_decompositions(from, {.to = Dialect::aten, .keep = {"flatten.using_ints"}}),
                  "aten::flatten.using_ints"),
            1u);
}

// PyTorch gives such a composite a gradient that throws.
TEST(Keep, WhatWasKeptHasAGradient) {
  ExportedProgram kept = run_decompositions(program("a_mlp_loss"), {.keep = {"linear"}});
  EXPECT_EQ(calls(kept, "aten::linear"), 2u);
  ExportedProgram joint = differentiate(kept, 0, {});
  size_t gradients = 0;
  for (const OutputSpec& output : joint.signature.outputs)
    gradients += output.kind == OutputKind::gradient_to_parameter;
  EXPECT_EQ(gradients, views_of(kept).parameters.size());
}

TEST(Keep, RefusesOneThatAliasesWhereSomethingWrites) {
  std::string said =
      refusal([] { run_decompositions(program("h_writes_to_parts"), {.to = Dialect::aten, .keep = {"chunk"}}); });
  EXPECT_EQ(said,
            "aten::chunk: the program writes to memory that its result shares, so it cannot be kept; leave it out of "
            "keep");
}

TEST(Writes, ToMemoryThatBuffersShareAreRefused) {
  std::string said = refusal([] { run_decompositions(program("i_buffers_sharing_storage")); });
  EXPECT_NE(said.find("share memory, and the program writes to it"), std::string::npos) << said;
}

std::string writing_windows(int64_t size, int64_t step) {
  return text("%x: f32[6] = input()\n%y: f32[6] = aten::clone(%x)\n%w: f32[", (6 - size) / step + 1, ", ", size, "][",
              step, ", 1] = aten::unfold(%y, 0, ", size, ", ", step, ")\n%z: f32[", (6 - size) / step + 1, ", ", size,
              "] = aten::fill_.Scalar(%w, 2)\nreturn %y\n");
}

TEST(Writes, ThroughWindowsThatOverlapOrLeaveSomethingOutAreRefused) {
  for (auto [size, step] : {std::pair(3, 1), std::pair(1, 2), std::pair(4, 4)}) {
    const std::string program = writing_windows(size, step);
    EXPECT_NE(refusal([&] {
                run_decompositions(program_of(program));
              }).find(text("a write through windows of ", size, " elements, ", step, " apart, of a dimension of 6")),
              std::string::npos)
        << size << " " << step;
  }
  EXPECT_EQ(
      calls(run_decompositions(program_of(writing_windows(3, 3)), {.to = Dialect::aten}), "aten::unfold_backward"), 1u);
}

TEST(ControlFlow, InputsOfBranchesHaveTheNamesOfTheirOperands) {
  ExportedProgram from = load_exported(text(TENON_TEST_DATA, "/pt2/torch-2.15/n_condition_that_holds.pt2"), registry());
  ExportedProgram made = run_decompositions(from);
  size_t branches = 0;
  for (const Node& node : made.graph->nodes) {
    if (node.op->traits.control != Control::choose) continue;
    std::vector<std::string> operands;
    for_each_tensor(node.args.at(3), [&](const Value& v) { operands.push_back(made.graph->info(v).name); });
    for (size_t at : {1, 2}) {
      const GraphBody& body = *node.args[at].as<Subgraph>().body;
      ++branches;
      for (size_t i = 0; i < body.inputs.size(); ++i)
        EXPECT_EQ(body.info(body.inputs[i].as<Value>()).name, operands[i]);
    }
  }
  EXPECT_GT(branches, 0u);
}

TEST(Inputs, ThatAreObjectsOrTokensAreKept) {
  for (const char* name : {"custom_object", "effect_tokens"}) {
    ExportedProgram from = load_exported(text(TENON_TEST_DATA, "/pt2/special/", name, ".pt2"), registry());
    ExportedProgram made = run_decompositions(from);
    ASSERT_EQ(made.signature.inputs.size(), from.signature.inputs.size()) << name;
    for (size_t i = 0; i < from.signature.inputs.size(); ++i)
      EXPECT_EQ(made.signature.inputs[i].kind, from.signature.inputs[i].kind) << name;
  }
}

TEST(Table, TakesDecompositionsOfOnesOwn) {
  DecomposeOptions options{.to = Dialect::aten};
  options.table["aten::relu"] = [](Build& b) -> Results {
    return call_op(*registry().find("aten::clamp"), {b["self"], CallArg(0), CallArg()});
  };
  ExportedProgram made = run_decompositions(program("a_mlp"), options);
  EXPECT_EQ(calls(made, "aten::relu"), 0u);
  EXPECT_EQ(calls(made, "aten::clamp"), 1u);
}

// Both axes of the plane are exchanged, the values are not.
TEST(Table, GridsOfXyAreThoseOfPyTorch) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[3] = input()
%y: f32[4] = input()
[%a: f32[4, 3], %b: f32[4, 3]] = aten::meshgrid.indexing([%x, %y], 'xy')
return %a, %b
)"));
  EXPECT_EQ(calls(made, "aten::transpose.int") + calls(made, "aten::permute"), 0u);
  for (const Arg& output : made.graph->outputs)
    EXPECT_EQ(made.graph->info(output.as<Value>()).meta.sizes, (Sizes{4, 3}));
}

TEST(Table, ANumberHasNoDimensionsToMove) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[] = input()
%y: f32[] = aten::movedim.int(%x, 0, -1)
return %y
)"));
  EXPECT_EQ(calls(made, "aten::permute"), 0u);
}

// A file names the sizes of the pieces; what becomes of the call has them as expressions of the places.
TEST(Table, PiecesKeepTheNamesOfTheirSizes) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[7, 2] = input()
%at: i64[1] = input()
[%a: f32[u2, 2], %b: f32[u3, 2]] = aten::tensor_split.tensor_indices_or_sections(%x, %at)
aten::_assert_scalar(u2 >= 0, 'not negative')
return %a
return %b
)"),
                                            {.to = Dialect::aten});
  EXPECT_EQ(calls(made, "aten::slice.Tensor"), 2u);
  EXPECT_EQ(text(made.graph->info(made.graph->outputs[0].as<Value>()).meta), "f32[u2, 2]");
  EXPECT_EQ(calls(made, "aten::_assert_scalar"), 1u);
}

TEST(Table, OneThatIsTurnedIsNotTakenApartAsItWas) {
  EXPECT_NE(refusal([] {
              run_decompositions(program_of(R"(%x: f32[2, 4] = input()
%t: f32[4, 2][1, 4] = aten::t_(%x)
[%a: f32[4], %b: f32[4]] = aten::unbind.int(%x)
return %a
)"));
            }).find("a view in place has given other sizes"),
            std::string::npos);
}

TEST(Table, NoiseIsWrittenOnceByTheFormThatWritesBoth) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[3] = input()
%n: f32[3] = input()
%y: f32[3] = aten::rrelu_with_noise_(%x, %n, 0.125, 0.25, True)
return %y
)"));
  size_t updates = 0;
  for (const OutputSpec& output : made.signature.outputs) updates += output.kind == OutputKind::user_input_mutation;
  EXPECT_EQ(updates, 2u);
}

TEST(Table, ARoundingKeepsItsDecimals) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[3] = input()
%a: f32[3] = aten::special_round(%x)
%b: f32[3] = aten::special_round(%x, 2)
return %a
return %b
)"));
  EXPECT_EQ(calls(made, "aten::round.decimals"), 2u) << to_text(made);
}

TEST(Table, PartsAndConjugatesOfComplexNumbersKeepTheirValues) {
  ExportedProgram program = program_of(R"(%x: f32[3, 3, 2] = input()
%z: c64[3, 3] = aten::view_as_complex(%x)
%r: f32[3, 3][6, 2] = aten::real(%z)
%h: c64[3, 3][1, 3] = aten::adjoint(%z)
%s: c64[3, 3] = aten::sgn(%z)
%p: c64[3, 3] = aten::mm(%h, %s)
%q: c64[3, 3] = aten::mul.Tensor(%p, %r)
%u: c64[3] = aten::select.int(%z, 0, 0)
%v: c64[3] = aten::select.int(%z, 0, 1)
%d: c64[] = aten::vdot(%u, %v)
%w: c64[3, 3] = aten::mul.Tensor(%q, %d)
%n: f32[] = aten::linalg_vector_norm(%z)
%m: c64[3, 3] = aten::mul.Tensor(%w, %n)
%y: f32[3, 3, 2] = aten::view_as_real(%m)
return %y
)");
  Tensor x = Tensor::empty(DType::f32, {3, 3, 2});
  for (int i = 0; i < 18; ++i) x.mutable_data<float>()[i] = static_cast<float>((i * 7) % 11 - 5) / 4;
  const std::vector<float> before = values_of(run_program(program, {x}).outputs[0].as<Tensor>());
  for (Dialect dialect : {Dialect::aten, Dialect::core}) {
    ExportedProgram made = run_decompositions(program, {.to = dialect});
    const std::vector<float> after = values_of(run_program(made, {x}).outputs[0].as<Tensor>());
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-4 * std::abs(before[0])) << i;
    EXPECT_EQ(calls(made, "aten::real") + calls(made, "aten::adjoint"), 0u) << to_text(made);
  }
}

TEST(Views, WritesToPartsAndConjugatesOfComplexNumbersReachThem) {
  ExportedProgram program = program_of(R"(%x: f32[2, 2] = input()
%o: f32[2, 2] = aten::clone(%x)
%z: c64[2] = aten::view_as_complex(%o)
%h: c64[2] = aten::_conj(%z)
%w: c64[2] = aten::mul_.Tensor(%h, %h)
%p: f32[2, 2] = aten::view_as_real(%z)
%s: f32[2][2] = aten::select.int(%p, 1, 1)
%a: f32[2][2] = aten::add_.Scalar(%s, 3)
%y: f32[2, 2] = aten::mul.Scalar(%o, 2)
return %y
)");
  const Tensor x = floats({2, 2}, {1, 2, -3, 0.5f});
  for (Dialect dialect : {Dialect::aten, Dialect::core}) {
    ExportedProgram made = run_decompositions(program, {.to = dialect});
    // (1 + 2i)^2 = -3 + 4i: conjugated twice, with 3 added to the imaginary part and doubled
    EXPECT_EQ(values_of(run_program(made, {x}).outputs[0].as<Tensor>()), (std::vector<float>{-6, 14, 17.5f, 0}))
        << to_text(made);
  }
}

TEST(Table, AnAliasTakesTheOverloadThatIsSpelledOtherwise) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[3] = input()
%a: f32[3] = aten::special_xlogy(%x, %x)
%b: f32[3] = aten::special_xlogy.other_scalar(%x, 2.0)
%c: f32[3] = aten::special_xlogy.self_scalar(2.0, %x)
return %a
return %b
return %c
)"));
  for (const Node& node : made.graph->nodes) EXPECT_NE(node.op->schema.base(), "special_xlogy");
}

// Attention in other operators lies otherwise than PyTorch's kernel leaves it, so that what was a view is a copy.
TEST(Views, OfWhatLiesOtherwiseNowAreCopies) {
  ExportedProgram made = run_decompositions(program_of(R"(%q: f32[2, 4, 16, 8] = input()
%k: f32[2, 4, 16, 8] = input()
%v: f32[2, 4, 16, 8] = input()
%a: f32[2, 4, 16, 8][512, 8, 32, 1] = aten::scaled_dot_product_attention(%q, %k, %v)
%t: f32[2, 16, 4, 8] = aten::transpose.int(%a, 1, 2)
%r: f32[2, 16, 32] = aten::reshape(%t, [2, 16, 32])
%y: f32[32, 32] = aten::view(%r, [-1, 32])
return %y
)"));
  size_t views = 0;
  for (const Node& node : made.graph->nodes) {
    if (node.op->name() != "aten::view") continue;
    const TensorMeta& base = made.graph->info(node.args[0].as<Value>()).meta;
    const TensorMeta& view = made.graph->info(node.results[0].as<Value>()).meta;
    EXPECT_EQ(view_strides(base.sizes, base.strides, view.sizes), view.strides) << node.origin.name;
    ++views;
  }
  EXPECT_GE(views, 5u);
}

// What was written is viewed anew, step by step; each step has the sizes of its own result.
TEST(Views, OfViewsOfWhatWasWrittenAreViewedAnew) {
  for (Dialect to : {Dialect::aten, Dialect::core}) {
    ExportedProgram made = run_decompositions(program_of(R"(%x: f32[3, 4] = input()
%z: f32[3, 4] = aten::add_.Tensor(%x, 1)
%r: f32[4] = aten::select.int(%z, 0, 1)
%e: f32[] = aten::select.int(%r, 0, 2)
%y: f32[] = aten::mul.Tensor(%e, 2)
return %y
)"),
                                              {.to = to});
    EXPECT_EQ(calls(made, "aten::select.int"), 2u);
    for (const Node& node : made.graph->nodes)
      if (node.op->name() == "aten::select.int") {
        const TensorMeta& base = made.graph->info(node.args[0].as<Value>()).meta;
        EXPECT_EQ(made.graph->info(node.results[0].as<Value>()).meta.rank() + 1, base.rank()) << node.origin.name;
      }
  }
}

// The written columns lie as the matrix that they are columns of, so that its rows can be viewed as a vector again.
TEST(Writes, GoThroughATransposedViewOfSizesThatTheRunTells) {
  ExportedProgram made = run_decompositions(program_of(R"(%x: f32[2*s0] = input()
%y: f32[2*s0] = aten::clone(%x)
%m: f32[s0, 2] = aten::view(%y, [s0, 2])
%t: f32[2, s0][1, 2] = aten::t(%m)
%c: f32[s0][2] = aten::select.int(%t, 0, 0)
%z: f32[s0][2] = aten::zero_(%c)
return %y
)"),
                                            {.to = Dialect::aten});
  EXPECT_EQ(calls(made, "aten::select_scatter"), 1u);
}

// PyTorch's decomposition gives the weights in the place of the sums.
TEST(Table, AttentionWhoseSumsAreReadStays) {
  auto attention = [](std::string_view rest) {
    return run_decompositions(program_of(text(R"(%q: f32[2, 4, 16, 8] = input()
%k: f32[2, 4, 16, 8] = input()
%v: f32[2, 4, 16, 8] = input()
%a: f32[2, 4, 16, 8][512, 8, 32, 1], %s: f32[2, 4, 16][64, 1, 4] = aten::_scaled_dot_product_flash_attention_for_cpu(%q, %k, %v)
)",
                                              rest)));
  };
  constexpr std::string_view op = "aten::_scaled_dot_product_flash_attention_for_cpu";
  EXPECT_EQ(calls(attention("return %a\n"), op), 0u);
  EXPECT_EQ(calls(attention("%n: f32[2, 4, 16][64, 1, 4] = aten::neg(%s)\nreturn %a, %n\n"), op), 1u);
}

TEST(Composites, NothingIsNormalizedWithoutElements) {
  ExportedProgram made = run_decompositions(program_of(R"(%p_w: f32[3] = input()
%b_m: f32[3] = input()
%b_v: f32[3] = input()
%x: f32[0, 3, 4] = input()
%y: f32[0, 3, 4] = aten::batch_norm(%x, %p_w, %p_w, %b_m, %b_v, True, 0.1, 1e-05, True)
return %y
)"));
  EXPECT_EQ(made.graph->outputs.size(), 1u);  // statistics are not written
  EXPECT_EQ(calls(made, "aten::select.int"), 2u);
}

TEST(Metadata, GoesToAllNodesThatAreMadeOfANode) {
  ExportedProgram made = run_decompositions(program("a_mlp"));
  for (const Node& node : made.graph->nodes) {
    bool found = false;
    for (const auto& [key, value] : *node.origin.metadata) found = found || key == "nn_module_stack";
    EXPECT_TRUE(found) << node.origin.name;
  }
}

TEST(VerifyDialect, SaysWhichNodeHasNoPlaceInIt) {
  ExportedProgram training = program("b_odd_cnn_train");
  verify_dialect(training, Dialect::training);
  EXPECT_NE(refusal([&] { verify_dialect(training, Dialect::aten); }).find("which writes to its arguments"),
            std::string::npos);
  ExportedProgram aten = run_decompositions(training, {.to = Dialect::aten});
  verify_dialect(aten, Dialect::aten);
  EXPECT_EQ(refusal([&] { verify_dialect(aten, Dialect::core); }),
            "node 'conv2d' calls aten::conv2d, which is no core ATen operator; name it in keep where it is meant to "
            "stay");
  verify_dialect(run_decompositions(program("a_mlp")), Dialect::core);
}

TEST(Transform, GoesByPositionAndRefusesAnotherNumberOfOutputs) {
  ExportedProgram from = program("a_mlp");
  ExportedProgram same = transform(from, {[](Graph graph) { return remove_dead_code(std::move(graph)); }});
  EXPECT_EQ(to_text(same), to_text(from));
  std::string said = refusal([&] {
    transform(from, {[](Graph graph) {
                graph->outputs.clear();
                return graph;
              }});
  });
  EXPECT_NE(said.find("a pass changed the program's 7 inputs and 1 outputs to 7 and 0"), std::string::npos) << said;
}

TEST(Updated, TakesAnotherSignatureAndState) {
  ExportedProgram from = program("a_mlp");
  Graph graph = from.graph.copy();
  Signature signature = from.signature;
  graph->outputs.push_back(graph->outputs[0]);
  signature.outputs.push_back(signature.outputs[0]);
  EXPECT_NE(refusal([&] { updated(from, graph.copy(), from.signature); }), "");
  EXPECT_NE(refusal([&] { updated(from, graph.copy(), signature); }).find("out"), std::string::npos)
      << "the tree of results is that of the program";
  std::vector<NamedTensor> state = from.state;
  for (NamedTensor& each : state)
    if (each.name == "0.bias") each.tensor = counting(each.tensor.sizes());
  ExportedProgram made = updated(from, from.graph.copy(), from.signature, &state);
  EXPECT_EQ(values_of(made.find_state("0.bias")->tensor)[2], 2);
  EXPECT_NE(values_of(from.find_state("0.bias")->tensor)[2], 2);
  EXPECT_EQ(to_text(made), to_text(from));
  state.clear();  // no state is none, not that of before
  EXPECT_NE(refusal([&] { updated(from, from.graph.copy(), from.signature, &state); }), "");
}

TEST(Dialects, ProgramsOfEveryReleaseGoThrough) {
  for (const char* release : {"2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.11", "2.15"})
    for (const char* name : {"a_mlp", "b_digits_train"}) {
      ExportedProgram from =
          load_exported(text(TENON_TEST_DATA, "/pt2/torch-", release, "/", name, ".pt2"), registry());
      for (Dialect to : {Dialect::aten, Dialect::core}) {
        ExportedProgram made = run_decompositions(from, {.to = to});
        for (const Node& node : made.graph->nodes) EXPECT_FALSE(node.op->writes()) << release << " " << name;
      }
    }
}

}  // namespace
}  // namespace tenon
