#include "tests/wrong_calls/rows.h"

namespace tenon_test {
namespace {

template <class T>
void use(const T&) {}

// Every way to call an operator of C++ on tensors that are none, or do not fit.
template <class F>
Row both(const char* function, F apply, std::size_t scalars) {
  Row row{function, {[=] { apply(none, x()); }}, ""};
  if (scalars >= 1) row.calls.emplace_back([=] { apply(none, Scalar(1)); });
  if (scalars >= 2) row.calls.emplace_back([=] { apply(Scalar(1), none); });
  return row;
}
#define TENON_BOTH(op, scalars)                          \
  both(                                                  \
      "operator" #op,                                    \
      [](const auto& a, const auto& b) {                 \
        if constexpr (requires { a op b; }) use(a op b); \
      },                                                 \
      scalars)

struct Doubled {
  static std::vector<Tensor> forward(FunctionContext& context, const std::vector<Tensor>& inputs) {
    context.save_for_backward({inputs[0]});
    return {inputs[0] * 2};
  }
  static std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>&) { return {}; }  // one is due
};

Value dictionary() { return Value::dictionary({{"a", 1}}); }

}  // namespace

std::vector<Row> tensor_rows() {
  return {
      never("Tensor::defined", "tells none from others"),
      never("Tensor::operator bool", "tells none from others"),
      never("Tensor::is_same", "tells handles apart"),
      {"Tensor::dtype", {[] { none.dtype(); }}},
      {"Tensor::dim", {[] { none.dim(); }}},
      {"Tensor::size", {[] { none.size(0); }, [] { x().size(2); }, [] { x().size(-3); }, [] { x().size(huge); }}},
      {"Tensor::sizes", {[] { none.sizes(); }}},
      {"Tensor::strides", {[] { none.strides(); }}},
      {"Tensor::numel", {[] { none.numel(); }}},
      {"Tensor::item_size", {[] { none.item_size(); }}},
      {"Tensor::is_contiguous", {[] { none.is_contiguous(); }}},
      {"Tensor::data", {[] { none.data<float>(); }, [] { x().data<double>(); }}},
      {"Tensor::mutable_data", {[] { Tensor().mutable_data<float>(); }, [] { x().mutable_data<int>(); }}},
      {"Tensor::raw_data", {[] { none.raw_data(); }}},
      {"Tensor::span",
       {[] { none.span<float>(); }, [] { x().span<bool>(); }, [] { x().transpose(0, 1).span<float>(); }}},
      {"Tensor::mutable_span",
       {[] { Tensor().mutable_span<float>(); }, [] { x().transpose(0, 1).mutable_span<float>(); }}},
      {"Tensor::vector", {[] { none.vector<float>(); }, [] { x().vector<int>(); }}},
      {"Tensor::item", {[] { none.item<float>(); }, [] { x().item<float>(); }, [] { zeros({0}).item<int>(); }}},
      {"Tensor::requires_grad", {[] { none.requires_grad(); }}},
      {"Tensor::requires_grad_",
       {[] { none.requires_grad_(); }, [] { whole().requires_grad_(); }, [] { (leaf() * 2).requires_grad_(false); }}},
      {"Tensor::is_leaf", {[] { none.is_leaf(); }}},
      {"Tensor::grad", {[] { none.grad(); }}},
      {"Tensor::set_grad",
       {[] { none.set_grad(x()); }, [] { leaf().set_grad(whole()); }, [] { leaf().set_grad(zeros({2})); }}},
      {"Tensor::backward",
       {[] { none.backward(); }, [] { x().backward(); }, [] { leaf().backward(); }, [] { leaf().backward(zeros({7})); },
        [] {
          Tensor a = leaf(), y = (a * a).sum();
          y.backward();
          y.backward();
        }}},
      {"Tensor::retain_grad", {[] { none.retain_grad(); }, [] { x().retain_grad(); }}},
      {"Tensor::register_hook",
       {[] { none.register_hook([](const Tensor& g) { return g; }); },
        [] { x().register_hook([](const Tensor& g) { return g; }); }, [] { leaf().register_hook(nullptr); }}},
      {"Tensor::register_post_accumulate_grad_hook",
       {[] { none.register_post_accumulate_grad_hook([](const Tensor&) {}); },
        [] { (leaf() * 2).register_post_accumulate_grad_hook([](const Tensor&) {}); },
        [] { leaf().register_post_accumulate_grad_hook(nullptr); }}},
      {"Tensor::remove_hook", {[] { none.remove_hook(0); }}},
      {"Tensor::grad_fn", {[] { none.grad_fn(); }}},
      {"Tensor::version", {[] { none.version(); }}},
      {"Tensor::operator[]", {[] { none[0]; }, [] { x()[2]; }, [] { x()[-3]; }, [] { scalar(1.0f)[0]; }}},
      {"from_blob",
       {[] { from_blob(nullptr, {2}, f32); },
        [] {
          float v = 0;
          from_blob(&v, {-1}, f32);
        },
        [] {
          float v = 0;
          from_blob(&v, {huge, huge}, f32);
        },
        [] {
          float v = 0;
          from_blob(&v, {1}, no_dtype);
        },
        [] {
          float v = 0;
          from_blob(&v, {1}, {1, 1}, f32);
        },
        [] {
          float v = 0;
          from_blob(&v, {2}, {-1}, f32);
        }}},
      {"tensor",
       {[] {
          tensor({{1, 2}, {3}});
        },
        [] {
          tensor(std::vector<float>{1, 2}, {3});
        },
        [] {
          tensor(std::vector<float>{1, 2}, {-2});
        },
        [] {
          tensor(std::vector<bool>{true}, {2, 2});
        },
        [] {
          tensor(std::span<const float>(), {huge, huge});
        }}},
      never("scalar", "every number is one"),
      {"Function::operator()", {[] { Function<void()>()(); }}},
      never("Function::Function", "every callable is one"),
      never("Function::operator=", "every function is one"),
      never("Function::operator bool", "tells none from others"),
      never("Function::operator==", "tells none from others"),
      never("manual_seed", "every number is a seed"),
      never("to_string", "none is printed as None"),
      never("operator<<", "none is printed as None"),
      never("Scalar::Scalar", "every number is one"),
      never("Scalar::kind", "has no argument"),
      never("Scalar::size", "has no argument"),
      never("Scalar::integer", "every number has one"),
      never("Scalar::real", "every number has one"),
      never("OptionalScalar::OptionalScalar", "every number is one"),
      never("OptionalScalar::given", "has no argument"),
      never("OptionalScalar::number", "has no argument"),
      never("Flag::Flag", "takes the two truths alone"),
      never("Flag::operator bool", "has no argument"),
      never("IntList::IntList", "the operator looks at what it holds"),
      never("IntList::size", "has no argument"),
      never("IntList::operator[]", "the operator counts what it holds"),
      never("IntList::given", "has no argument"),
      never("IntItems::IntItems", "the operator looks at what it holds"),
      never("Size::Size", "every integer is one"),
      never("Size::operator=", "every size is one"),
      never("Size::operator std :: int64_t", "has no argument"),
      never("Size::operator bool", "has no argument"),
      never("Size::operator-", "every size has one"),
      never("Size::is_symbolic", "has no argument"),
      never("FloatList::FloatList", "the operator looks at what it holds"),
      never("FloatList::size", "has no argument"),
      never("FloatList::data", "has no argument"),
      never("FloatList::given", "has no argument"),
      never("TensorList::TensorList", "the operator looks at what it holds"),
      never("TensorList", "the definition of a constructor"),
      never("TensorList::data", "has no argument"),
      never("TensorList::size", "has no argument"),
  };
}

std::vector<Row> arithmetic_rows() {
  return {
      {"operator-",
       {[] { -none; }, [] { none - x(); }, [] { none - 1; }, [] { 1 - none; },
        [] {
          x() - zeros({7, 7});
        }}},
      {"operator~", {[] { ~none; }, [] { ~x(); }}},
      TENON_BOTH(+, 2),
      TENON_BOTH(*, 2),
      TENON_BOTH(/, 2),
      TENON_BOTH(%, 1),
      {"operator&", {[] { none& x(); }, [] { x() & x(); }}},
      {"operator|", {[] { none | x(); }, [] { x() | x(); }}},
      {"operator^", {[] { none ^ x(); }, [] { x() ^ x(); }}},
      TENON_BOTH(<, 2),
      TENON_BOTH(<=, 2),
      TENON_BOTH(>, 2),
      TENON_BOTH(>=, 2),
      TENON_BOTH(==, 1),
      TENON_BOTH(!=, 1),
      {"operator+=", {[] { none += x(); }, [] { none += 1; }, [] { whole() += 0.5; }, [] { x() += zeros({5}); }}},
      {"operator-=", {[] { none -= x(); }, [] { none -= 1; }, [] { whole() -= 0.5; }, [] { x() -= zeros({5}); }}},
      {"operator*=", {[] { none *= x(); }, [] { none *= 1; }, [] { whole() *= 0.5; }, [] { x() *= zeros({5}); }}},
      {"operator/=", {[] { none /= x(); }, [] { none /= 1; }, [] { whole() /= 2; }, [] { leaf() /= 2; }}},
  };
}

std::vector<Row> autograd_rows() {
  return {
      never("GradMode::GradMode", "takes the two truths alone"),
      never("GradMode::is_enabled", "has no argument"),
      never("NoGradGuard::NoGradGuard", "has no argument"),
      never("EnableGradGuard::EnableGradGuard", "has no argument"),
      {"backward",
       {[] { tenon::backward({}); }, [] { tenon::backward({none}); }, [] { tenon::backward({x()}); },
        [] {
          tenon::backward({leaf()}, {x(), x()});
        },
        [] { tenon::backward({leaf().sum()}, {zeros({9})}); }}},
      {"grad",
       {[] { tenon::grad({}, {x()}); }, [] { tenon::grad({none}, {none}); }, [] { tenon::grad({leaf().sum()}, {x()}); },
        [] { tenon::grad({leaf().sum()}, {}); },
        [] {
          Tensor a = leaf();
          tenon::grad({a.sum()}, {leaf()});
        },
        [] {
          Tensor a = leaf();
          tenon::grad({a * 2}, {a});
        }}},
      {"apply", {[] { tenon::apply<Doubled>({none}); }, [] { tenon::apply<Doubled>({leaf()})[0].sum().backward(); }}},
      {"FunctionContext::save_for_backward", {[] { FunctionContext().save_for_backward({x()}); }}},
      {"FunctionContext::saved", {[] { FunctionContext().saved(); }}},
      {"FunctionContext::needs_input_grad", {[] { FunctionContext().needs_input_grad(0); }}},
      {"FunctionContext::mark_non_differentiable", {[] { FunctionContext().mark_non_differentiable(x()); }}},
  };
}

std::vector<Row> value_rows() {
  return {
      {"Value::Value",
       {[] { Value(static_cast<const char*>(nullptr)); }},
       "every other C++ value that it takes is one"},
      never("Value::kind", "has no argument"),
      never("Value::is_none", "has no argument"),
      never("Value::is_sequence", "has no argument"),
      {"Value::size", {[] { Value(1).size(); }, [] { Value().size(); }, [] { Value(x()).size(); }}},
      {"Value::keys", {[] { Value(1).keys(); }, [] { Value::list({}).keys(); }}},
      {"Value::operator[]",
       {[] { Value(1)[0]; }, [] { Value::list({1})[1]; }, [] { dictionary()["b"]; }, [] { Value()["a"]; },
        [] { dictionary()[0]; }}},
      never("Value::contains", "what is no dictionary has no keys"),
      {"Value::as",
       {[] { Value(1).as<Tensor>(); }, [] { Value("a").as<int>(); }, [] { Value(2.5).as<bool>(); },
        [] { Value::list({1}).as<std::vector<Tensor>>(); }, [] { (Value::list({1}).as<int, int>()); },
        [] { (dictionary().as<std::map<std::string, std::string>>()); }, [] { Value(1).as<std::array<int, 2>>(); },
        [] { Value(std::int64_t{1} << 40).as<int>(); }, [] { Value(-1).as<unsigned>(); }}},
      {"Value::operator Tensor",
       {[] { Tensor t = Value(1); },
        [] {
          Tensor t = Value::list({x(), x()});
        }}},
      never("Value::list", "every list of values is one"),
      never("Value::tuple", "every list of values is one"),
      {"Value::dictionary", {[] {
         Value::dictionary({{"a", 1}, {"a", 2}});
       }}},
      never("describe", "every value is described"),
      never("Kwargs::Kwargs", "the call looks at the names"),
      never("Kwargs::add", "the call looks at the names"),
      never("Kwargs::entries", "has no argument"),
      never("Error::Error", "every message is one"),
      never("Error::kind", "has no argument"),
  };
}

}  // namespace tenon_test
