#include <cmath>

#include "tests/wrong_calls/rows.h"

namespace tenon_test {
namespace {

// Losses: none, sizes that do not fit, a dtype that does not.
template <class Loss>
Row loss(const char* function, Loss loss) {
  return {std::string(function) + "::operator()",
          {[=] { loss(none, x()); }, [=] { loss(x(), none); },
           [=] {
             loss(x(), zeros({5, 7}));
           }},
          ""};
}
// Layers: none, and what they do not take.
template <class Layer>
std::vector<Row> layer(const char* name, std::function<Layer()> make, const Tensor& unfit) {
  std::vector<Row> rows;
  rows.push_back({std::string(name) + "::operator()", {[=] { make()(none); }, [=] { make()(unfit); }}, ""});
  rows.push_back(
      {std::string(name) + "::forward", {[=] { make().forward(none); }, [=] { make().forward(unfit); }}, ""});
  return rows;
}
struct Net : nn::Module {
  nn::Linear first = add("first", nn::Linear(3, 2));
  Tensor forward(const Tensor& in) const { return first(in); }
  Tensor operator()(const Tensor& in) const { return forward(in); }
};
struct Twice : nn::Module {
  Twice() { add("a", nn::Linear(1, 1)), add("a", nn::Linear(1, 1)); }
};

}  // namespace

std::vector<Row> loss_rows() {
  return {
      {"nn::CrossEntropyLoss::CrossEntropyLoss", {[] { nn::CrossEntropyLoss({.label_smoothing = 2}); }}},
      loss("nn::CrossEntropyLoss", nn::CrossEntropyLoss()),
      {"nn::NLLLoss::NLLLoss", {[] {
         nn::NLLLoss({.weight = zeros({2, 2})})(x(), whole());
       }}},
      loss("nn::NLLLoss", nn::NLLLoss()),
      never("nn::MSELoss::MSELoss", "every reduction is one"),
      loss("nn::MSELoss", nn::MSELoss()),
      never("nn::L1Loss::L1Loss", "every reduction is one"),
      loss("nn::L1Loss", nn::L1Loss()),
      {"nn::SmoothL1Loss::SmoothL1Loss", {[] { nn::SmoothL1Loss(-1)(x(), x()); }}},
      loss("nn::SmoothL1Loss", nn::SmoothL1Loss()),
      {"nn::HuberLoss::HuberLoss", {[] { nn::HuberLoss(0)(x(), x()); }}},
      loss("nn::HuberLoss", nn::HuberLoss()),
      {"nn::BCELoss::BCELoss", {[] { nn::BCELoss({.pos_weight = x()}); }}},
      loss("nn::BCELoss", nn::BCELoss()),
      {"nn::BCEWithLogitsLoss::BCEWithLogitsLoss", {[] { nn::BCEWithLogitsLoss({.weight = zeros({7})})(x(), x()); }}},
      loss("nn::BCEWithLogitsLoss", nn::BCEWithLogitsLoss()),
      never("nn::KLDivLoss::KLDivLoss", "takes truths alone"),
      loss("nn::KLDivLoss", nn::KLDivLoss()),
  };
}

std::vector<Row> layer_rows() {
  Tensor image = zeros({1, 2, 4, 4});
  std::vector<Row> rows = {
      {"nn::Linear::Linear",
       {[] { nn::Linear(-1, 2); }, [] { nn::Linear(2, -1); }, [] { nn::Linear(2, 2, true, i64); }}},
      {"nn::Bilinear::Bilinear", {[] { nn::Bilinear(0, 2, 2); }, [] { nn::Bilinear(2, -1, 2); }}},
      {"nn::Bilinear::forward",
       {[] { nn::Bilinear(2, 3, 4).forward(x(), none); }, [] { nn::Bilinear(2, 3, 4).forward(x(), x()); }}},
      {"nn::Bilinear::operator()", {[] { nn::Bilinear(2, 3, 4)(none, x()); }, [] { nn::Bilinear(2, 3, 4)(x(), x()); }}},
      {"nn::Embedding::Embedding", {[] { nn::Embedding(-1, 2); }, [] { nn::Embedding(3, 2, {.padding_idx = 3}); }}},
      {"nn::Dropout::Dropout",
       {[] { nn::Dropout(1.5); }, [] { nn::Dropout(-0.5); }, [] { nn::Dropout(std::nan("")); }}},
      never("nn::Flatten::Flatten", "forward looks at the dimensions"),
      never("nn::Identity::forward", "gives back what it is given"),
      never("nn::Identity::operator()", "gives back what it is given"),
      {"nn::PReLU::PReLU", {[] { nn::PReLU(-1); }, [] { nn::PReLU(1, 0.25, i64); }}},
      {"nn::detail::Conv::Conv",
       {[] { nn::Conv2d(0, 2, 3); }, [] { nn::Conv2d(2, -2, 3); }, [] { nn::Conv2d(2, 2, -3); },
        [] {
          nn::Conv2d(2, 2, {3, 3, 3});
        },
        [] { nn::Conv2d(2, 2, {}); }, [] { nn::Conv2d(2, 2, 3, {.groups = 0}); },
        [] { nn::Conv2d(3, 3, 3, {.groups = 2}); }, [=] { nn::Conv2d(2, 2, 3, {.stride = 0})(image); },
        [=] {
          nn::Conv2d(2, 2, 3, {.stride = {1, 1, 1}})(image);
        }}},
      {"nn::detail::ConvTranspose::ConvTranspose",
       {[] { nn::ConvTranspose2d(0, 2, 3); },
        [] {
          nn::ConvTranspose2d(2, 2, {3, 3, 3});
        },
        [] { nn::ConvTranspose2d(2, 2, 3, {.groups = 0}); },
        [=] { nn::ConvTranspose2d(2, 2, 3, {.output_padding = 5})(image); }}},
      {"nn::detail::BatchNorm::BatchNorm", {[] { nn::BatchNorm1d(-1); }, [] { nn::BatchNorm2d(2, {.dtype = i64}); }}},
      {"nn::LayerNorm::LayerNorm", {[] { nn::LayerNorm(-1); }, [] { nn::LayerNorm({}); }}},
      {"nn::GroupNorm::GroupNorm",
       {[] { nn::GroupNorm(0, 4); }, [] { nn::GroupNorm(3, 4); }, [] { nn::GroupNorm(2, -4); }}},
      {"nn::RMSNorm::RMSNorm", {[] { nn::RMSNorm(-1); }, [] { nn::RMSNorm({}); }}},
      {"nn::detail::Pool::Pool",
       {[=] { nn::MaxPool2d(0)(image); },
        [=] {
          nn::MaxPool2d({2, 2, 2})(image);
        },
        [=] { nn::AvgPool2d(2, {.padding = 5})(image); }, [=] { nn::MaxPool2d(nn::Extents{})(image); }}},
      {"nn::detail::AdaptivePool::AdaptivePool",
       {[=] { nn::AdaptiveAvgPool2d(-1)(image); },
        [=] {
          nn::AdaptiveMaxPool2d({2, 2, 2})(image);
        }}},
      {"nn::MultiheadAttention::MultiheadAttention",
       {[] { nn::MultiheadAttention(4, 0); }, [] { nn::MultiheadAttention(4, 3); },
        [] { nn::MultiheadAttention(-4, 2); }, [] { nn::MultiheadAttention(4, 2, {.dropout = 2}); }}},
      {"nn::MultiheadAttention::forward",
       {[] { nn::MultiheadAttention(4, 2).forward(none, none, none); },
        [] { nn::MultiheadAttention(4, 2).forward(x(), x(), x()); }}},
      {"nn::MultiheadAttention::operator()",
       {[] { nn::MultiheadAttention(4, 2)(none, x(), x()); },
        [] { nn::MultiheadAttention(4, 2)(scalar(1.0f), x(), x()); },
        [] {
          Tensor q = zeros({3, 1, 4});
          nn::MultiheadAttention(4, 2)(q, q, q, {.key_padding_mask = {}, .attn_mask = zeros({9, 9})});
        }}},
      {"nn::TransformerEncoderLayer::TransformerEncoderLayer",
       {[] { nn::TransformerEncoderLayer(4, 3); }, [] { nn::TransformerEncoderLayer(0, 1); },
        [] { nn::TransformerEncoderLayer(4, 2, {.dim_feedforward = -1}); }}},
      {"nn::LSTM::LSTM",
       {[] { nn::LSTM(0, 4); }, [] { nn::LSTM(4, -1); }, [] { nn::LSTM(4, 4, {.num_layers = 0}); },
        [] { nn::LSTM(4, 4, {.dropout = 3}); }}},
      {"nn::LSTM::forward",
       {[] { nn::LSTM(3, 4).forward(none); },
        [] {
          nn::LSTM(3, 4).forward(zeros({2, 2, 5}));
        },
        [] {
          nn::LSTM(3, 4).forward(zeros({2, 2, 3}), {zeros({7}), zeros({7})});
        },
        [] {
          nn::LSTM(3, 4).forward(zeros({2, 2, 3}), {zeros({1, 2, 4}), none});
        }}},
      {"nn::LSTM::operator()", {[] { nn::LSTM(3, 4)(scalar(1.0f)); }}},
      {"nn::GRU::GRU", {[] { nn::GRU(0, 4); }, [] { nn::GRU(4, 4, {.num_layers = -2}); }}},
      {"nn::GRU::forward",
       {[] { nn::GRU(3, 4).forward(none); },
        [] {
          nn::GRU(3, 4).forward(zeros({2, 2, 3}), zeros({9}));
        }}},
      {"nn::GRU::operator()", {[] {
         nn::GRU(3, 4)(zeros({2, 2, 5}));
       }}},
      never("nn::detail::NumberedActivation::NumberedActivation", "every number is one"),
      never("nn::detail::ActivationAlong::ActivationAlong", "forward looks at the dimension"),
  };
  append(rows, layer<nn::Linear>(
                   "nn::Linear", [] { return nn::Linear(2, 2); }, zeros({5})));
  append(rows, layer<nn::Embedding>(
                   "nn::Embedding", [] { return nn::Embedding(2, 2); }, tensor({5})));
  append(rows, layer<nn::Dropout>(
                   "nn::Dropout", [] { return nn::Dropout(); }, none));
  append(rows, layer<nn::Flatten>(
                   "nn::Flatten", [] { return nn::Flatten(3); }, zeros({5})));
  append(rows, layer<nn::PReLU>(
                   "nn::PReLU", [] { return nn::PReLU(3); }, zeros({5, 5})));
  append(rows, layer<nn::Conv2d>(
                   "nn::detail::Convolution", [] { return nn::Conv2d(2, 2, 3); }, zeros({5})));
  append(rows,
         layer<nn::ConvTranspose2d>(
             "nn::detail::TransposedConvolution", [] { return nn::ConvTranspose2d(2, 2, 3); }, zeros({1, 3, 4, 4})));
  append(rows, layer<nn::BatchNorm2d>(
                   "nn::detail::BatchNormalization", [] { return nn::BatchNorm2d(2); }, zeros({5, 2})));
  append(rows, layer<nn::LayerNorm>(
                   "nn::LayerNorm", [] { return nn::LayerNorm(3); }, zeros({5})));
  append(rows, layer<nn::GroupNorm>(
                   "nn::GroupNorm", [] { return nn::GroupNorm(2, 4); }, zeros({5})));
  append(rows, layer<nn::RMSNorm>(
                   "nn::RMSNorm", [] { return nn::RMSNorm(3); }, zeros({5})));
  append(rows, layer<nn::MaxPool2d>(
                   "nn::detail::Pool", [] { return nn::MaxPool2d(2); }, zeros({5})));
  append(rows, layer<nn::AdaptiveAvgPool2d>(
                   "nn::detail::AdaptivePool", [] { return nn::AdaptiveAvgPool2d(2); }, zeros({5})));
  append(rows, layer<nn::TransformerEncoderLayer>(
                   "nn::TransformerEncoderLayer", [] { return nn::TransformerEncoderLayer(4, 2); }, zeros({5})));
  append(rows, layer<nn::ReLU>(
                   "nn::detail::Activation", [] { return nn::ReLU(); }, none));
  append(rows, layer<nn::ELU>(
                   "nn::detail::NumberedActivation", [] { return nn::ELU(); }, none));
  append(rows, layer<nn::GLU>(
                   "nn::detail::ActivationAlong", [] { return nn::GLU(); }, zeros({5})));
  return rows;
}

std::vector<Row> module_rows() {
  using Step = std::function<Tensor(const Tensor&)>;
  return {
      {"nn::Module::Module", {[] { Twice(); }}},
      never("nn::Module::named_parameters", "has no argument"),
      never("nn::Module::named_buffers", "has no argument"),
      never("nn::Module::parameters", "has no argument"),
      never("nn::Module::named_modules", "has no argument"),
      never("nn::Module::state_dict", "has no argument"),
      {"nn::Module::load_state_dict",
       {[] { Net().load_state_dict({}); },
        [] {
          Net().load_state_dict({{"other", x()}}, true);
        },
        [] {
          Net().load_state_dict({{"first.weight", none}}, false);
        },
        [] {
          Net().load_state_dict({{"first.weight", zeros({7})}}, false);
        }}},
      never("nn::Module::zero_grad", "has no argument"),
      never("nn::Module::train", "takes truths alone"),
      never("nn::Module::eval", "has no argument"),
      never("nn::Module::is_training", "has no argument"),
      never("nn::Module::requires_grad_", "takes truths alone"),
      {"nn::Module::to", {[] { Net().to(i64); }, [] { Net().to(no_dtype); }}},
      {"nn::Module::apply", {[] { Net().apply(nullptr); }}},
      never("nn::Parameter::Parameter", "a parameter may be none"),
      never("nn::Parameter::operator const Tensor &", "gives none where there is none"),
      never("nn::Parameter::operator*", "gives none where there is none"),
      {"nn::Parameter::operator->", {[] { nn::Parameter()->sum(); }}},
      never("nn::Parameter::defined", "has no argument"),
      {"nn::Parameter::set", {[] { nn::Parameter().set(x()); }}},
      never("nn::Extents::Extents", "the layer looks at the numbers"),
      never("nn::Extents::operator IntList", "has no argument"),
      {"nn::Sequential::Sequential", {[] { nn::Sequential{Step()}; }}},
      {"nn::Sequential::push_back",
       {[] { nn::Sequential().push_back(Step()); }, [] { nn::Sequential().push_back("a.b", nn::Linear(1, 1)); },
        [] {
          nn::Sequential s;
          s.push_back("a", nn::Linear(1, 1));
          s.push_back("a", nn::Linear(1, 1));
        }}},
      {"nn::Sequential::forward", {[] { nn::Sequential(nn::Linear(2, 2)).forward(none); }}},
      {"nn::Sequential::operator()", {[] { nn::Sequential(nn::Linear(2, 2))(zeros({5})); }}},
      never("nn::Sequential::size", "has no argument"),
      never("nn::ModuleList::ModuleList", "every list of modules is one"),
      never("nn::ModuleList::push_back", "every module can be one more"),
      {"nn::ModuleList::operator[]", {[] { nn::ModuleList<nn::Linear>()[0]; }}},
      never("nn::ModuleList::size", "has no argument"),
      never("nn::ModuleList::begin", "has no argument"),
      never("nn::ModuleList::end", "has no argument"),
      {"nn::ModuleDict::ModuleDict", {[] {
         nn::ModuleDict<nn::Linear>({{"a", nn::Linear(1, 1)}, {"a", nn::Linear(1, 1)}});
       }}},
      {"nn::ModuleDict::insert",
       {[] { nn::ModuleDict<nn::Linear>().insert("", nn::Linear(1, 1)); },
        [] { nn::ModuleDict<nn::Linear>().insert("a.b", nn::Linear(1, 1)); }}},
      {"nn::ModuleDict::operator[]", {[] { nn::ModuleDict<nn::Linear>()["nobody"]; }}},
      never("nn::ModuleDict::size", "has no argument"),
      never("nn::ModuleDict::begin", "has no argument"),
      never("nn::ModuleDict::end", "has no argument"),
      never("nn::Module::named_constants", "has no argument"),
      never("nn::Scope::Scope", "every module has one"),
      never("nn::Scope::result", "every tensor is one, and none too"),
      {"nn::export_module",
       {[] { nn::export_module(Net(), "Net", nullptr, {x()}, {}); },
        [] { nn::export_module(Net(), "Net", [](const std::vector<Tensor>& in) { return in; }, {none}, {}); }}},
      {"nn::export_program",
       {[] { nn::export_program(Net(), {}); }, [] { nn::export_program(Net(), {none}); },
        [] {
          nn::export_program(Net(), {x(), x()});
        },
        [] { nn::export_program(Net(), {zeros({7})}); }}},
  };
}

std::vector<Row> init_rows() {
  namespace init = nn::init;
  return {
      {"nn::init::fans", {[] { init::fans(none); }, [] { init::fans(zeros({3})); }}},
      {"nn::init::gain", {[] { init::gain("wavelet"); }, [] { init::gain(""); }}},
      {"nn::init::constant_", {[] { init::constant_(none, 1); }}},
      {"nn::init::zeros_", {[] { init::zeros_(none); }}},
      {"nn::init::ones_", {[] { init::ones_(none); }}},
      {"nn::init::uniform_",
       {[] { init::uniform_(none); }, [] { init::uniform_(x(), 2, 1); }, [] { init::uniform_(whole()); }}},
      {"nn::init::normal_",
       {[] { init::normal_(none); }, [] { init::normal_(x(), 0, -1); }, [] { init::normal_(whole()); }}},
      {"nn::init::trunc_normal_",
       {[] { init::trunc_normal_(none); }, [] { init::trunc_normal_(x(), 0, -1); },
        [] { init::trunc_normal_(x(), 0, 1, 2, -2); }}},
      {"nn::init::xavier_uniform_", {[] { init::xavier_uniform_(none); }, [] { init::xavier_uniform_(zeros({3})); }}},
      {"nn::init::xavier_normal_", {[] { init::xavier_normal_(none); }, [] { init::xavier_normal_(zeros({3})); }}},
      {"nn::init::kaiming_uniform_",
       {[] { init::kaiming_uniform_(none); }, [] { init::kaiming_uniform_(x(), {.nonlinearity = "wavelet"}); }}},
      {"nn::init::kaiming_normal_", {[] { init::kaiming_normal_(none); }, [] { init::kaiming_normal_(zeros({3})); }}},
  };
}

}  // namespace tenon_test
