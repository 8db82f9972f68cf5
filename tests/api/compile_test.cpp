#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <atomic>
#include <thread>

namespace {

using tenon::Tensor;
using tenon::Value;

std::string file(const std::string& name) { return std::string(TENON_TEST_DATA) + "/pt2/torch-2.15/" + name + ".pt2"; }

tenon::CompiledModule compiled(const std::string& name, const tenon::CompileOptions& options = {}) {
  return tenon::CompiledModule(tenon::compile(tenon::load_program(file(name)), options));
}

std::string failure_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const tenon::Error& e) { return e.what(); }
  return "no error";
}

TEST(CompiledModule, KeepsItsBuffersBetweenCalls) {
  tenon::CompiledModule counter = compiled("i_counter");
  Tensor x = tenon::tensor({-1.0f, 0.0f, 2.0f});
  int64_t start = counter.get("steps").item<int64_t>();
  Value first = counter(x), second = counter(x);
  EXPECT_EQ(counter.get("steps").item<int64_t>(), start + 2);
  EXPECT_EQ(second[0].as<Tensor>().span<float>()[2], 2.0f * static_cast<float>(start + 2));
}

TEST(CompiledModule, TakesTreesAndKeywordsAsAModuleDoes) {
  tenon::Module model = tenon::load(file("i_counter"));
  tenon::CompiledModule fast = compiled("i_counter");
  EXPECT_EQ(fast.input_names(), model.program().input_names());
  EXPECT_EQ(failure_of([&] { fast(1.5); }), failure_of([&] { model(1.5); }));
  EXPECT_EQ(failure_of([&] { fast(); }), failure_of([&] { model(); }));
  EXPECT_EQ(failure_of([&] { fast(tenon::zeros({4})); }), failure_of([&] { model(tenon::zeros({4})); }));
}

TEST(CompiledModule, WeightsAreSetWhereTheProgramWasCompiledForIt) {
  tenon::CompiledModule fixed = compiled("a_mlp"), updatable = compiled("a_mlp", {.updatable = true});
  tenon::Module model = tenon::load(file("a_mlp"));
  std::string name = updatable.names().at(0);
  Tensor zero = tenon::zeros(model.get(name).sizes());
  updatable.set(name, zero);
  model.set(name, zero);
  Tensor x = tenon::ones({5, 6});
  Tensor got = updatable(x), want = model(x);
  for (size_t i = 0; i < got.span<float>().size(); ++i) EXPECT_NEAR(got.span<float>()[i], want.span<float>()[i], 1e-5);
  EXPECT_NE(failure_of([&] { fixed.set(name, zero); }), "no error");
}

TEST(CompiledModule, WhatCannotBeOpenedIsAnError) {
  EXPECT_NE(failure_of([] { tenon::load_compiled("/nothing/there.so"); }), "no error");
  EXPECT_NE(failure_of([] { tenon::load_compiled(file("a_mlp")); }), "no error");
  EXPECT_NE(failure_of([] { tenon::CompiledModule(std::vector<std::byte>(100)); }), "no error");
  EXPECT_EQ(failure_of([] { compiled("a_mlp", {.targets = {"armv9"}}); }),
            "compile: expected the target x86-64-v3 or x86-64-v4, got 'armv9'");
  EXPECT_EQ(failure_of([] { compiled("a_mlp", {.weights = "int4"}); }),
            "compile: expected weights in f32, f16 or bf16, got 'int4'");
}

TEST(CompiledModule, IsSafeFromManyThreads) {
  tenon::CompiledModule model = compiled("i_counter");
  int64_t start = model.get("steps").item<int64_t>();
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 25; ++k) model(tenon::tensor({1.0f, 2.0f, 3.0f}));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(model.get("steps").item<int64_t>(), start + 400);
}

}  // namespace
