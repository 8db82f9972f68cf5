#include "tests/hostile/scaling.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "tenon/base/file.h"
#include "tenon/export/print.h"
#include "tenon/export/serde/save.h"
#include "tenon/pipeline.h"
#include "tests/hostile/work.h"

namespace tenon::scaling {

static std::string scratch(const char* name) {
  return text(testing::TempDir(), "tenon_scaling_", ::getpid(), "_", name);
}

// Everything that is done with a program without running it. What a stage refuses is part of it: the refusal counts.
void go_all_the_way(const std::string& bytes, Until until, std::vector<std::string>* refusals) {
  std::string path = scratch("in.pt2");
  write_file_atomically(path, bytes);
  auto attempt = [&](auto&& act) {
    try {
      act();
    } catch (const Error& error) {
      if (refusals) refusals->push_back(error.what());
    }
  };
  attempt([&] {
    ExportedProgram program = open_program(path);
    missing_operators(program);
    to_text(program);
    attempt([&] { program.samples(); });
    attempt([&] { save_exported(program, scratch("out.pt2"), [](const std::string&) {}); });
    Walk walk(program, {.of = 0, .wrt = parse_wrt("inputs"), .inputs = {}});
    for (StageName stage : {StageName::normalized, StageName::functional, StageName::loops})
      attempt([&] { show(walk, stage); });
    if (until == Until::loops) return;
    for (StageName stage : {StageName::joint, StageName::partition}) attempt([&] { show(walk, stage); });
    attempt([&] {
      save_exported(differentiate(program, 0, parse_wrt("inputs")), scratch("out.pt2"), [](const std::string&) {});
    });
  });
}

// From the file to what is executed, and two runs of that: one that makes ready, and one that finds everything ready.
void go_and_run(const std::string& bytes) {
  std::string path = scratch("in.pt2");
  write_file_atomically(path, bytes);
  ExportedProgram program = open_program(path);
  Walk walk(program);
  Session session(walk.executable());
  std::unique_ptr<State> state = state_of(program);
  std::vector<CallArg> inputs;
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind == InputKind::user_input) {
      const TensorMeta& meta = program.graph->info(spec.arg.as<Value>()).meta;
      Tensor zeros = Tensor::empty(meta.dtype, meta.sizes);
      std::memset(zeros.mutable_bytes(), 0, zeros.storage()->size());
      inputs.emplace_back(std::move(zeros));
    }
  for (int run = 0; run < 2; ++run) session.run(*state, inputs);
}

static Work work_for(const std::string& bytes, const Way& way) {
  way(bytes);  // what is made once and kept
  Work before = work_done();
  way(bytes);
  Work after = work_done();
  return {after.allocations - before.allocations, after.bytes - before.bytes, after.comparisons - before.comparisons};
}

void expect_growth(const Make& make, size_t n, const Way& way, double most) {
  Work small = work_for(make(n), way), large = work_for(make(4 * n), way);
  auto check = [&](uint64_t before, uint64_t after, const char* what) {
    EXPECT_LE(static_cast<double>(after), most * static_cast<double>(before) + 1000)
        << what << ": " << before << " for " << n << ", " << after << " for " << 4 * n;
  };
  check(small.allocations, large.allocations, "allocations");
  check(small.bytes, large.bytes, "bytes");
  check(small.comparisons, large.comparisons, "comparisons");
}

void expect_linear(const Make& make, size_t n, const Way& way) { expect_growth(make, n, way, 5.5); }

// Stages may refuse a program for what Tenon does not do; `refused` is what they say then.
void expect_linear(const Make& make, size_t n, const char* refused) {
  std::vector<std::string> refusals;
  go_all_the_way(make(3), Until::gradients, &refusals);
  for (const std::string& refusal : refusals)
    EXPECT_TRUE(refused && refusal.find(refused) != refusal.npos) << "refused: " << refusal;
  expect_linear(make, n, [](const std::string& bytes) { go_all_the_way(bytes); });
}

TensorMeta f32(Sizes sizes) { return make_meta(DType::f32, std::move(sizes)); }

ProgramText start() {
  ProgramText p;
  p.user_input("x", f32({2, 3}));
  return p;
}

std::string relu(GraphText& g, size_t i, const std::string& from, const TensorMeta& meta) {
  std::string name = text("r", i);
  g.tensor(name, meta);
  g.node("torch.ops.aten.relu.default", {{"self", as_tensor(from)}}, {as_tensor(name)},
         text(R"(, "name": ")", name, "\""));
  return name;
}

std::string finished(ProgramText& p, const std::string& result) {
  std::string name = relu(p, 999'999'999, result);
  p.user_output(name);
  return p.archive();
}

}  // namespace tenon::scaling
