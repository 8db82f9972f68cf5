#include <cmath>
#include <memory>

#include "tests/wrong_calls/rows.h"

namespace tenon_test {
namespace {

// Constructors of optimizers: no parameters, none among them, no leaf, the same twice, a rate below 0, unknown numbers.
template <class O, class Options>
Row optimizer(const char* function) {
  using Groups = std::vector<optim::ParameterGroup>;
  using Tensors = std::vector<Tensor>;
  return {function,
          {[] { O(Tensors{}); }, [] { O(Groups{}); }, [] { O(Tensors{none}); }, [] { O(Tensors{leaf() * 2}); },
           [] { O(Tensors{whole()}); },
           [] {
             Tensor a = leaf();
             O(Tensors{a, a});
           },
           [] {
             Options options;
             options.lr = -1;
             O(Tensors{leaf()}, options);
           },
           [] {
             Options options;
             options.weight_decay = std::nan("");
             O(Tensors{leaf()}, options);
           },
           [] {
             O(Groups{{{leaf()}, {{"taste", 1}}}});
           },
           [] {
             O(Groups{{{leaf()}, {{"lr", -1}}}});
           }},
          ""};
}

}  // namespace

std::vector<Row> optimizer_rows() {
  using namespace tenon::optim;  // NOLINT: likewise
  static SGD sgd({leaf()}, {.lr = 0.1});
  static SGD other({leaf()}, {.lr = 0.1});
  return {
      optimizer<SGD, SGDOptions>("optim::SGD::SGD"),
      optimizer<Adam, AdamOptions>("optim::Adam::Adam"),
      optimizer<AdamW, AdamWOptions>("optim::AdamW::AdamW"),
      optimizer<RMSprop, RMSpropOptions>("optim::RMSprop::RMSprop"),
      optimizer<Adagrad, AdagradOptions>("optim::Adagrad::Adagrad"),
      never("optim::Optimizer::step", "gradients fit their parameters since they were set"),
      never("optim::Optimizer::zero_grad", "has no argument"),
      {"optim::Optimizer::add_group",
       {[] { sgd.add_group({}); }, [] { sgd.add_group({{none}}); },
        [] {
          sgd.add_group({{leaf()}, {{"taste", 1}}});
        }}},
      never("optim::Optimizer::groups", "has no argument"),
      {"optim::Optimizer::get", {[] { sgd.get(9, "lr"); }, [] { sgd.get(0, "taste"); }}},
      {"optim::Optimizer::set",
       {[] { sgd.set(9, "lr", 1); }, [] { sgd.set(0, "taste", 1); }, [] { sgd.set(0, "lr", -1); },
        [] { sgd.set(0, "lr", std::nan("")); }}},
      never("optim::Optimizer::has", "tells whether there is one"),
      never("optim::Optimizer::state_dict", "has no argument"),
      {"optim::Optimizer::load_state_dict",
       {[] { sgd.load_state_dict({}); },
        [] {
          sgd.load_state_dict({{"state.99.momentum_buffer", x()}});
        },
        [] {
          sgd.load_state_dict({{"nonsense", none}});
        },
        [] {
          auto state = sgd.state_dict();
          for (auto& [name, value] : state) value = zeros({3, 3, 3});
          sgd.load_state_dict(state);
        }}},
      never("optim::Schedule::step", "has no argument"),
      never("optim::Schedule::last_lr", "has no argument"),
      never("optim::Schedule::steps", "has no argument"),
      {"optim::Schedule::set_steps", {[] { StepLR(sgd, 2).set_steps(-1); }}},
      {"optim::StepLR::StepLR", {[] { StepLR(sgd, 0); }, [] { StepLR(sgd, -3); }}},
      {"optim::MultiStepLR::MultiStepLR", {[] { MultiStepLR(sgd, {-1}); }}},
      {"optim::ExponentialLR::ExponentialLR",
       {[] { ExponentialLR(sgd, -1); }, [] { ExponentialLR(sgd, std::nan("")); }}},
      {"optim::LinearLR::LinearLR",
       {[] { LinearLR(sgd, {.start_factor = 0}); }, [] { LinearLR(sgd, {.end_factor = 2}); },
        [] { LinearLR(sgd, {.total_iters = 0}); }}},
      {"optim::CosineAnnealingLR::CosineAnnealingLR", {[] { CosineAnnealingLR(sgd, 0); }}},
      {"optim::OneCycleLR::OneCycleLR",
       {[] { OneCycleLR(sgd, {}); }, [] { OneCycleLR(sgd, {.max_lr = 1, .total_steps = 10, .pct_start = 2}); },
        [] { OneCycleLR(sgd, {.max_lr = 1, .total_steps = 0}); }}},
      {"optim::SequentialLR::SequentialLR",
       {[] { SequentialLR(sgd, {}, {}); }, [] { SequentialLR(sgd, {nullptr}, {}); },
        [] { SequentialLR(sgd, {std::make_shared<StepLR>(sgd, 2)}, {3}); },
        [] { SequentialLR(sgd, {std::make_shared<StepLR>(other, 2)}, {}); },
        [] {
          SequentialLR(
              sgd,
              {std::make_shared<StepLR>(sgd, 2), std::make_shared<StepLR>(sgd, 2), std::make_shared<StepLR>(sgd, 2)},
              {3, 2});
        }}},
      {"optim::clip_grad_norm_",
       {[] { clip_grad_norm_({none}, 1); }, [] { clip_grad_norm_({leaf()}, -1); },
        [] { clip_grad_norm_({leaf()}, std::nan("")); }}},
      {"optim::clip_grad_value_", {[] { clip_grad_value_({none}, 1); }, [] { clip_grad_value_({leaf()}, -1); }}},
  };
}

}  // namespace tenon_test
