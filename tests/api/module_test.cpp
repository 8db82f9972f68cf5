#include <gtest/gtest.h>
#include <tenon/tenon.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using tenon::Error;
using tenon::ErrorKind;
using tenon::Module;
using tenon::Tensor;
using tenon::Value;

std::string file(const std::string& name) { return std::string(TENON_TEST_DATA) + "/pt2/torch-2.15/" + name + ".pt2"; }

struct Failure {
  std::string message = "no error";
  ErrorKind kind = ErrorKind::internal;
};
template <class F>
Failure failure_of(F&& f) {
  try {
    f();
  } catch (const Error& e) { return {e.what(), e.kind()}; }
  return {};
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("tenon_api_" + std::to_string(::getpid()) + "_" + name)).string();
}

// What the programs compute stands in tests/data/pt2/README.md.
TEST(Module, KeepsItsBuffersBetweenCalls) {
  Module counter = tenon::load(file("i_counter"));
  Tensor x = tenon::tensor({-1.0f, 0.0f, 2.0f});
  int64_t start = counter.get("steps").item<int64_t>();
  Value first = counter(x), second = counter(x);
  EXPECT_EQ(counter.get("steps").item<int64_t>(), start + 2);
  EXPECT_EQ(second[0].as<Tensor>().span<float>()[2], 2.0f * static_cast<float>(start + 2));
  EXPECT_EQ(tenon::load(file("i_counter")).get("steps").item<int64_t>(), start);
}

TEST(Module, StateIsSetByName) {
  Module counter = tenon::load(file("i_counter"));
  counter.set("steps", tenon::full({}, 40, counter.get("steps").dtype()));
  Tensor product = counter(tenon::tensor({1.0f, 1.0f, 1.0f}))[0];
  EXPECT_EQ(product.span<float>()[0], 41.0f);
  EXPECT_EQ(failure_of([&] { counter.set("steps", tenon::zeros({2})); }).kind, ErrorKind::call);
  EXPECT_EQ(failure_of([&] { counter.get("steeps"); }).message,
            "the program has no parameter, buffer or constant 'steeps'; names() lists them");
}

TEST(Module, WritesTheInputsThatTheProgramWrites) {
  Module model = tenon::load(file("h_mutated_input"));
  float memory[12], y[4] = {1, 2, 3, 4};
  for (int i = 0; i < 12; ++i) memory[i] = static_cast<float>(i);
  model(tenon::from_blob(memory, {3, 4}, tenon::f32), tenon::from_blob(y, {4}, tenon::f32));
  EXPECT_EQ(memory[1], 4.0f);    // 2 * 1 + 2
  EXPECT_EQ(memory[11], 22.0f);  // 2 * 11
}

TEST(Module, TakesAndGivesTreesOfValues) {
  Module model = tenon::load(file("j_nested_inputs"));
  auto pairs = std::tuple(tenon::tensor({1.0f, 2.0f}),
                          std::vector{tenon::tensor({10.0f, 20.0f}), tenon::tensor({1.0f, 2.0f, 3.0f})});
  std::map<std::string, Value> table{{"y", std::vector{tenon::tensor({1.0f, 1.0f})}}, {"x", tenon::tensor({7.0f})}};
  Value out = model(pairs, table, {{"offset", tenon::tensor({5.0f, 6.0f})}, {"scale", tenon::scalar(2.0f)}});
  EXPECT_EQ(out["sum"].as<Tensor>().vector<float>(), (std::vector<float>{11, 22}));
  EXPECT_EQ(out["rest"][0].as<Tensor>().vector<float>(), (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(out["none"].is_none());
  EXPECT_EQ(out["number"].as<int>(), 3);
  EXPECT_TRUE(out["flag"].as<bool>());
  EXPECT_EQ(out["offset"].as<Tensor>().vector<float>(), (std::vector<float>{4, 5}));

  auto wrong =
      std::tuple(tenon::tensor({1.0f, 2.0f}), std::vector{tenon::tensor({10.0f, 20.0f}), tenon::tensor({1.0f})});
  EXPECT_EQ(failure_of([&] {
              model(wrong, table, {{"offset", 1}, {"scale", 2}});
            }).message,
            "inputs[\"pairs\"][1][1]: expected f32[3], got f32[1]");
  EXPECT_EQ(failure_of([&] {
              model(pairs, std::map<std::string, int>{{"x", 1}});
            }).message,
            "inputs[\"table\"]: expected a dictionary with the keys x, y, and 'y' is missing");
  EXPECT_EQ(failure_of([&] {
              model(pairs, table, {{"scale", tenon::scalar(1.0f)}});
            }).message,
            "inputs[\"offset\"] is missing; give it by position or as a keyword (pairs, table, scale, offset)");
  EXPECT_EQ(
      failure_of([&] {
        model(pairs, table, {{"shift", 1}, {"offset", tenon::tensor({1.0f, 1.0f})}, {"scale", tenon::scalar(1.0f)}});
      }).message,
      "the program takes no argument 'shift' (pairs, table, scale, offset)");
  EXPECT_EQ(failure_of([&] { model(std::vector<int>{1}, table); }).message,
            "inputs[\"pairs\"]: expected a tuple of 2, got a list of 1");
}

TEST(Module, AListIsNoTuple) {
  Module model = tenon::load(file("j_nested_inputs"));
  Tensor a = tenon::tensor({1.0f, 2.0f}), b = tenon::tensor({1.0f, 2.0f, 3.0f});
  std::map<std::string, Value> table{{"y", std::vector{a}}, {"x", tenon::tensor({7.0f})}};
  EXPECT_EQ(failure_of([&] { model(std::tuple(a, std::tuple(a, b)), table); }).message,
            "inputs[\"pairs\"][1]: expected a list of 2, got a tuple of 2; give a std::vector or Value::list");
  EXPECT_EQ(failure_of([&] {
              model(std::vector<Value>{a, std::vector{a, b}}, table);
            }).message,
            "inputs[\"pairs\"]: expected a tuple of 2, got a list of 2; give a std::tuple, a struct or Value::tuple");
  Value out = model(std::tuple(a, std::vector{a, b}), table, {{"offset", a}, {"scale", tenon::scalar(2.0f)}});
  EXPECT_EQ(out["rest"].kind(), Value::Kind::list);
}

TEST(Module, ReportsWhatPreparesItAndHowFarItIs) {
  std::vector<std::string> lines;
  std::vector<int> steps;
  Module model = tenon::load(file("a_mlp"), {.log = [&](const std::string& line) { lines.push_back(line); },
                                             .progress =
                                                 [&](const tenon::Progress& p) {
                                                   EXPECT_EQ(p.steps, 3);
                                                   steps.push_back(p.step);
                                                 }});
  EXPECT_TRUE(lines.empty());
  model(tenon::zeros({5, 6}));
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3}));
  std::size_t said = lines.size();
  EXPECT_GE(said, 3u);  // normalize, functionalize, lower and more
  model(tenon::zeros({5, 6}));
  EXPECT_EQ(lines.size(), said);
  steps.clear();
  tenon::differentiate(model.program(), {.log = [&](const std::string& line) { lines.push_back(line); },
                                         .progress = [&](const tenon::Progress& p) { steps.push_back(p.step); }});
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3}));
  EXPECT_GT(lines.size(), said);
}

TEST(Module, TakesKeywordsInAnyOrderAndPositionsByName) {
  Module model = tenon::load(file("a_mlp"));
  Tensor x = tenon::full({5, 6}, 0.25);
  Tensor by_position = model(x), by_name = model({{"input", x}});
  EXPECT_EQ(by_position.vector<float>(), by_name.vector<float>());
  EXPECT_EQ(failure_of([&] {
              model(x, {{"input", x}});
            }).message,
            "inputs[\"input\"] is given twice, by position and by keyword");
}

TEST(Module, ACallThatDoesNotFitIsAnErrorOfTheCall) {
  Module model = tenon::load(file("a_mlp"));
  Failure dtype = failure_of([&] { model(tenon::zeros({5, 6}, tenon::f64)); });
  EXPECT_EQ(dtype.kind, ErrorKind::call);
  EXPECT_EQ(dtype.message, "inputs[\"input\"]: expected f32[5, 6], got f64[5, 6]");
  EXPECT_EQ(failure_of([&] { model(); }).message,
            "inputs[\"input\"] is missing; give it by position or as a keyword (input)");
  EXPECT_EQ(failure_of([&] { model(1, 2); }).message, "expected 1 positional arguments (input), got 2");
  EXPECT_EQ(failure_of([&] { model(nullptr); }).message, "inputs[\"input\"]: expected f32[5, 6], got None");
}

TEST(Module, AFileThatIsNoProgramIsAnErrorOfTheFile) {
  EXPECT_EQ(failure_of([&] { tenon::load("/no/such/file.pt2"); }).kind, ErrorKind::file);
  std::string path = temporary("text.pt2");
  std::ofstream(path) << "not a program";
  EXPECT_EQ(failure_of([&] { tenon::load(path); }).kind, ErrorKind::file);
  std::filesystem::remove(path);
  EXPECT_EQ(failure_of([&] { tenon::save(tenon::load_program(file("a_mlp")), "/no/such/folder/x.pt2"); }).kind,
            ErrorKind::file);
}

TEST(Module, IsDifferentiatedSavedAndLoadedAgain) {
  tenon::ExportedProgram program = tenon::load_program(file("a_mlp_loss"));
  tenon::ExportedProgram joint = tenon::differentiate(program, {.of = 0, .wrt = "all"});
  std::string path = temporary("joint.pt2");
  tenon::save(joint, path);
  Module made(joint), read = tenon::load(path);
  std::filesystem::remove(path);
  std::vector<Value> args{tenon::full({6, 5}, 0.5), tenon::zeros({6}, tenon::i64)};
  tenon::RunResult a = made.run(args), b = read.run(args);
  ASSERT_FALSE(a.gradients.empty());
  for (const std::string& name : program.parameter_names()) {
    ASSERT_TRUE(a.gradients.contains(name)) << name;
    EXPECT_EQ(a.gradients[name].vector<float>(), b.gradients[name].vector<float>()) << name;
  }
  EXPECT_EQ(failure_of([&] { tenon::differentiate(program, {.of = 9}); }).kind, ErrorKind::call);
  EXPECT_EQ(failure_of([&] { tenon::differentiate(program, {.wrt = "nobody"}); }).kind, ErrorKind::call);
}

TEST(Module, IsSavedWithItsStateAsItIs) {
  Module counter = tenon::load(file("i_counter"));
  counter(tenon::zeros({3}));
  std::string path = temporary("counter.pt2");
  tenon::save(counter, path);
  EXPECT_EQ(tenon::load(path).get("steps").item<int64_t>(), counter.get("steps").item<int64_t>());
  std::filesystem::remove(path);
}

TEST(Module, IsShownAfterEachStage) {
  tenon::ExportedProgram program = tenon::load_program(file("a_mlp"));
  EXPECT_NE(tenon::show(program).find("linear"), std::string::npos);
  EXPECT_FALSE(tenon::show(program, {.after = "loops"}).empty());
  EXPECT_EQ(failure_of([&] { tenon::show(program, {.after = "lunch"}); }).message,
            "show: there is no stage 'lunch'; the stages are read, normalized, functional, joint, partition and loops");
  EXPECT_EQ(failure_of([&] { tenon::show(tenon::ExportedProgram()); }).kind, ErrorKind::call);
}

TEST(Module, SixteenThreadsGetTheResultsOfOne) {
  Module model = tenon::load(file("a_mlp_dynamic"));
  auto input = [](int64_t rows) { return tenon::full({rows, 7}, 0.125 * static_cast<double>(rows)); };
  std::vector<std::vector<float>> expected;
  for (int64_t rows = 1; rows <= 8; ++rows) expected.push_back(Tensor(model(input(rows))).vector<float>());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        int64_t rows = (t + i) % 8 + 1;
        wrong += Tensor(model(input(rows))).vector<float>() != expected[static_cast<size_t>(rows - 1)];
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Module, ThreadsThatWriteItsStateTakeTurns) {
  Module counter = tenon::load(file("i_counter"));
  int64_t start = counter.get("steps").item<int64_t>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) counter(tenon::zeros({3}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.get("steps").item<int64_t>(), start + 160);
}

}  // namespace
