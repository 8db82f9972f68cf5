// Optimizers, schedules and clipping against real PyTorch.
#include <tenon/optim.h>

#include "tests/nn/recorded.h"

namespace {

using namespace tenon;
using Parameters = std::vector<Tensor>;
using Make = std::function<std::unique_ptr<optim::Optimizer>(Parameters)>;

template <class O, class Options>
Make with(Options options) {
  return [options](Parameters p) { return std::make_unique<O>(std::move(p), options); };
}

const std::map<std::string, Make> optimizers = {
    {"sgd", with<optim::SGD>(optim::SGDOptions{.lr = 0.1})},
    {"sgd_momentum",
     with<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01})},
    {"sgd_nesterov",
     with<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true, .maximize = true})},
    {"adam", with<optim::Adam>(optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1})},
    {"adam_amsgrad", with<optim::Adam>(optim::AdamOptions{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.9, .amsgrad = true})},
    {"adamw", with<optim::AdamW>(optim::AdamWOptions{.lr = 0.01})},
    {"rmsprop", with<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.01, .weight_decay = 0.01})},
    {"rmsprop_centered", with<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.01, .momentum = 0.9, .centered = true})},
    {"adagrad", with<optim::Adagrad>(optim::AdagradOptions{
                    .lr = 0.1, .lr_decay = 0.01, .weight_decay = 0.01, .initial_accumulator_value = 0.1})},
};

Parameters start(const Tensors& all) {
  return {all.at("start0").clone().requires_grad_(), all.at("start1").clone().requires_grad_()};
}
void set_gradients(const Tensors& all, const Parameters& parameters, int step) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].set_grad(all.at("grads" + std::to_string(i))[step].clone());
}

TEST(Optimizers, UpdateAsThoseOfPyTorch) {
  const Tensors all = recorded("optimizers");
  for (const auto& [name, make] : optimizers) {
    Parameters parameters = start(all);
    auto optimizer = make(parameters);
    for (int step = 0; step < 100; ++step) {
      set_gradients(all, parameters, step);
      optimizer->step();
      for (std::size_t i = 0; i < 2; ++i)
        if (auto at = all.find(name + "." + std::to_string(step + 1) + ".p" + std::to_string(i)); at != all.end())
          expect_close(parameters[i], at->second, at->first);
    }
  }
}

TEST(Optimizers, ResumedFromTheirStateGoOnBitByBit) {
  const Tensors all = recorded("optimizers");
  for (const auto& [name, make] : optimizers) {
    Parameters whole = start(all), half = start(all);
    auto a = make(whole), b = make(half);
    for (int step = 0; step < 20; ++step) {
      if (step == 10) {
        auto state = b->state_dict();
        b = make(half);
        b->load_state_dict(state);
      }
      set_gradients(all, whole, step);
      set_gradients(all, half, step);
      a->step();
      b->step();
    }
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(equal(whole[i], half[i])) << name;
  }
}

TEST(Optimizers, GroupsHaveTheirOwnNumbers) {
  Tensor w = ones({2}).requires_grad_(), b = ones({2}).requires_grad_(), frozen = ones({2}).requires_grad_();
  optim::SGD sgd({{{w}}, {{b}, {{"lr", 1.0}, {"weight_decay", 0.0}}}, {{frozen}}}, {.lr = 0.1, .weight_decay = 1});
  w.set_grad(ones({2}));
  b.set_grad(ones({2}));
  sgd.step();
  EXPECT_FLOAT_EQ(w.span<float>()[0], 0.8f);
  EXPECT_FLOAT_EQ(b.span<float>()[0], 0.0f);
  EXPECT_FLOAT_EQ(frozen.span<float>()[0], 1.0f);
  sgd.zero_grad();
  EXPECT_FALSE(w.grad().defined());
  EXPECT_THROW(optim::SGD({{{w}, {{"beta1", 1.0}}}}), Error);
  EXPECT_THROW(optim::SGD(Parameters{}), Error);
  EXPECT_THROW(optim::SGD(Parameters{w * 2}), Error);
  EXPECT_THROW(optim::Adam(Parameters{w}, {.beta1 = 1}), Error);
  EXPECT_THROW(sgd.set(0, "beta1", 1), Error);
  EXPECT_THROW(sgd.load_state_dict({{"state.7.step", ones({})}}), Error);
}

using MakeSchedule = std::function<std::unique_ptr<optim::Schedule>(optim::Optimizer&)>;
const std::map<std::string, MakeSchedule> schedules = {
    {"step", [](auto& o) { return std::make_unique<optim::StepLR>(o, 5, 0.5); }},
    {"multi_step",
     [](auto& o) {
       return std::make_unique<optim::MultiStepLR>(o, std::vector<int64_t>{3, 7, 20}, 0.3);
     }},
    {"exponential", [](auto& o) { return std::make_unique<optim::ExponentialLR>(o, 0.9); }},
    {"linear",
     [](auto& o) {
       return std::make_unique<optim::LinearLR>(
           o, optim::LinearLROptions{.start_factor = 0.25, .end_factor = 0.75, .total_iters = 10});
     }},
    {"cosine", [](auto& o) { return std::make_unique<optim::CosineAnnealingLR>(o, 15, 0.01); }},
    {"one_cycle",
     [](auto& o) {
       return std::make_unique<optim::OneCycleLR>(o, optim::OneCycleLROptions{.max_lr = 0.5, .total_steps = 40});
     }},
    {"one_cycle_linear",
     [](auto& o) {
       return std::make_unique<optim::OneCycleLR>(
           o, optim::OneCycleLROptions{.max_lr = 0.5, .total_steps = 40, .linear = true, .three_phase = true});
     }},
    {"sequential",
     [](auto& o) {
       auto warm = std::make_shared<optim::LinearLR>(
           o, optim::LinearLROptions{.start_factor = 0.1, .end_factor = 1.0, .total_iters = 5});
       auto cool = std::make_shared<optim::CosineAnnealingLR>(o, 30, 0.02);
       return std::make_unique<optim::SequentialLR>(o, std::vector<std::shared_ptr<optim::Schedule>>{warm, cool},
                                                    std::vector<int64_t>{5});
     }},
};

TEST(Schedules, HaveTheRatesOfPyTorchs) {
  const Tensors all = recorded("schedules");
  ASSERT_EQ(all.size(), schedules.size());
  for (const auto& [name, make] : schedules) {
    Tensor a = ones({1}).requires_grad_(), b = ones({1}).requires_grad_();
    optim::SGD sgd({{{a}}, {{b}, {{"lr", 0.4}}}}, {.lr = 0.1, .momentum = 0.9});
    auto schedule = make(sgd);
    std::vector<double> expected = all.at(name).vector<double>();
    for (std::size_t step = 0; step < expected.size() / 3; ++step) {
      EXPECT_NEAR(sgd.get(0, "lr"), expected[3 * step], 1e-12) << name << " at " << step;
      EXPECT_NEAR(sgd.get(1, "lr"), expected[3 * step + 1], 1e-12) << name << " at " << step;
      EXPECT_NEAR(sgd.get(0, "momentum"), expected[3 * step + 2], 1e-12) << name << " at " << step;
      schedule->step();
    }
    auto resumed = make(sgd);
    resumed->set_steps(schedule->steps() - 1);
    EXPECT_NEAR(sgd.get(1, "lr"), expected[expected.size() - 2], 1e-12) << name;
  }
}

TEST(Clipping, IsThatOfPyTorch) {
  const Tensors all = recorded("optimizers");
  Parameters parameters{zeros({3, 4}, f64).requires_grad_(), zeros({5}, f64).requires_grad_()};
  auto reset = [&] {
    for (std::size_t i = 0; i < 2; ++i) parameters[i].set_grad(all.at("clip.g" + std::to_string(i)).clone());
  };
  for (auto [label, order] : {std::pair("2", 2.0), std::pair("inf", HUGE_VAL), std::pair("1", 1.0)}) {
    reset();
    std::string name = std::string("clip.") + label;
    EXPECT_NEAR(optim::clip_grad_norm_(parameters, 1.5, order), all.at(name + ".norm").item<double>(), 1e-9);
    for (std::size_t i = 0; i < 2; ++i)
      expect_close(parameters[i].grad(), all.at(name + ".g" + std::to_string(i)), name);
  }
  reset();
  optim::clip_grad_value_(parameters, 0.5);
  EXPECT_EQ(abs(parameters[0].grad()).max().item<double>(), 0.5);
}

}  // namespace
