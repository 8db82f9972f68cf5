#include <tenon/autograd.h>

#include <algorithm>

#include "tenon/api/access.h"
#include "tenon/autograd/backward.h"
#include "tenon/autograd/nodes.h"
#include "tenon/interp/eager.h"
#include "tenon/tensor/dispatch.h"

namespace tenon::v0 {

using detail::Access;
using detail::fail_call;
using detail::guarded;

namespace {

std::vector<tenon::Tensor> unwrapped(TensorList tensors) {
  std::vector<tenon::Tensor> out;
  for (size_t i = 0; i < tensors.size(); ++i)
    out.push_back(tensors.data()[i] ? Access::unwrap(tensors.data()[i]) : tenon::Tensor());
  return out;
}

std::vector<Tensor> wrapped(const std::vector<tenon::Tensor>& tensors) {
  std::vector<Tensor> out;
  for (const tenon::Tensor& t : tensors) out.push_back(Access::wrap(t));
  return out;
}

void require_all(const std::vector<tenon::Tensor>& tensors, const char* what) {
  if (tensors.empty()) fail_call(what, ": expected at least one tensor, got an empty list");
  for (const tenon::Tensor& t : tensors)
    if (!t) fail_call(what, ": expected tensors, got one that is none");
}

}  // namespace

GradMode::GradMode(Flag enabled) : scope_(new tenon::GradMode(enabled)) {}
GradMode::~GradMode() { delete static_cast<tenon::GradMode*>(scope_); }
bool GradMode::is_enabled() { return tenon::grad_enabled(); }

bool Tensor::requires_grad() const { return tenon::autograd::requires_grad(Access::unwrap(*this)); }
const Tensor& Tensor::requires_grad_(Flag requires_grad) const {
  guarded(ErrorKind::call, [&] { tenon::autograd::set_requires_grad(Access::unwrap(*this), requires_grad); });
  return *this;
}
bool Tensor::is_leaf() const { return tenon::autograd::is_leaf(Access::unwrap(*this)); }
Tensor Tensor::grad() const { return Access::wrap(tenon::autograd::grad_of(Access::unwrap(*this))); }
void Tensor::set_grad(const Tensor& grad) const {
  guarded(ErrorKind::call,
          [&] { tenon::autograd::set_grad(Access::unwrap(*this), grad ? Access::unwrap(grad) : tenon::Tensor()); });
}
void Tensor::backward(const Tensor& gradient, Flag retain_graph, Flag create_graph) const {
  v0::backward({*this}, {gradient}, {.retain_graph = retain_graph, .create_graph = create_graph});
}
void Tensor::retain_grad() const {
  guarded(ErrorKind::call, [&] { tenon::autograd::retain_grad(Access::unwrap(*this)); });
}
int64_t Tensor::register_hook(Function<Tensor(const Tensor& grad)> hook) const {
  if (!hook) fail_call("register_hook: expected a function, got an empty one");
  return guarded(ErrorKind::call, [&] {
    return tenon::autograd::add_hook(Access::unwrap(*this), [hook = std::move(hook)](const tenon::Tensor& grad) {
      Tensor changed = hook(Access::wrap(grad));
      return changed ? Access::unwrap(changed) : tenon::Tensor();
    });
  });
}
int64_t Tensor::register_post_accumulate_grad_hook(Function<void(const Tensor& leaf)> hook) const {
  if (!hook) fail_call("register_post_accumulate_grad_hook: expected a function, got an empty one");
  return guarded(ErrorKind::call, [&] {
    // The leaf's impl keeps the hook, so the hook must not keep the impl: a tensor over the same memory and history.
    const tenon::Tensor& leaf = Access::unwrap(*this);
    std::weak_ptr<tenon::GradInfo> history = leaf.impl()->grad;
    tenon::Tensor bare = leaf.with_meta(leaf.meta());
    return tenon::autograd::add_hook_after_accumulating(leaf, [hook = std::move(hook), history, bare] {
      tenon::Tensor same = bare.with_meta(bare.meta());
      same.impl()->grad = history.lock();
      hook(Access::wrap(same));
    });
  });
}
bool Tensor::remove_hook(int64_t number) const {
  return guarded(ErrorKind::call, [&] { return tenon::autograd::remove_hook(Access::unwrap(*this), number); });
}
std::string Tensor::grad_fn() const {
  tenon::autograd::Edge edge = tenon::autograd::edge_of(Access::unwrap(*this));
  return edge && !is_leaf() ? edge.node->name() : std::string();
}
uint64_t Tensor::version() const { return Access::unwrap(*this).storage()->version(); }

void backward(TensorList outputs, TensorList gradients, const BackwardOptions& options) {
  guarded(ErrorKind::call, [&] {
    std::vector<tenon::Tensor> of = unwrapped(outputs);
    require_all(of, "backward");
    tenon::interp::install();
    tenon::autograd::backward(of, unwrapped(gradients),
                              {.retain_graph = options.retain_graph, .create_graph = options.create_graph});
  });
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs, const GradOptions& options) {
  return guarded(ErrorKind::call, [&] {
    std::vector<tenon::Tensor> of = unwrapped(outputs), by = unwrapped(inputs);
    require_all(of, "grad: outputs");
    require_all(by, "grad: inputs");
    tenon::interp::install();
    return wrapped(
        tenon::autograd::grad(of, by, unwrapped(grad_outputs),
                              {.walk = {.retain_graph = options.retain_graph, .create_graph = options.create_graph},
                               .allow_unused = options.allow_unused}));
  });
}

struct FunctionContext::Body {
  struct Kept {
    tenon::autograd::Saved tensor;
    tenon::autograd::Edge edge;  // of an input
    size_t output = ~size_t{0};  // of an output: its edge is the call's own
  };
  std::string name;
  std::vector<bool> needed;
  std::vector<Tensor> to_save, non_differentiable;  // as forward named them
  std::vector<Kept> kept;
  std::weak_ptr<tenon::autograd::GradNode> node;
  bool in_forward = true;
};

FunctionContext::Body& FunctionContext::body() const {
  if (!body_)
    fail_call(
        "a context belongs to a call of tenon::apply, which gives it to forward and backward; this one is none's");
  return *body_;
}
void FunctionContext::save_for_backward(TensorList tensors) {
  if (!body().in_forward) fail_call(body_->name, ": save_for_backward belongs into forward");
  body_->to_save.assign(tensors.data(), tensors.data() + tensors.size());
}
std::vector<Tensor> FunctionContext::saved() const {
  if (body().in_forward) return body_->to_save;
  return guarded(ErrorKind::call, [&] {
    std::vector<Tensor> out;
    for (const Body::Kept& kept : body_->kept) {
      tenon::autograd::Edge edge = kept.edge;
      if (kept.output != ~size_t{0}) edge = {body_->node.lock(), kept.output};
      out.push_back(Access::wrap(kept.tensor.get(edge, body_->name)));
    }
    return out;
  });
}
bool FunctionContext::needs_input_grad(size_t input) const {
  return input < body().needed.size() && body_->needed[input];
}
void FunctionContext::mark_non_differentiable(const Tensor& output) { body().non_differentiable.push_back(output); }

struct Access::Functions {
  static std::vector<Tensor> apply(const char* name, detail::Forward forward, detail::Forward backward,
                                   TensorList inputs) {
    tenon::interp::install();
    auto body = std::make_shared<FunctionContext::Body>();  // shared: by the call and by its step back
    body->name = name;
    std::vector<tenon::Tensor> given = unwrapped(inputs);
    bool any = false;
    for (const tenon::Tensor& t : given) {
      body->needed.push_back(t && tenon::grad_enabled() && tenon::autograd::requires_grad(t));
      any = any || body->needed.back();
    }
    std::vector<Tensor> arguments(inputs.data(), inputs.data() + inputs.size()), results;
    FunctionContext context;
    context.body_ = body.get();
    {
      NoGradGuard off;
      results = forward(context, arguments);
    }
    body->in_forward = false;
    if (!any) return results;
    auto run = [body, backward](const std::vector<tenon::Tensor>& grads) {
      FunctionContext then;
      then.body_ = body.get();
      return unwrapped(backward(then, wrapped(grads)));
    };
    auto node = tenon::autograd::make_custom(name, run, given);
    body->node = node;
    std::vector<Tensor> outputs;
    auto is_among = [](const Tensor& t, const std::vector<Tensor>& list) {
      return std::any_of(list.begin(), list.end(), [&](const Tensor& each) {
        return t && each && Access::unwrap(each).same_as(Access::unwrap(t));
      });
    };
    for (size_t i = 0; i < results.size(); ++i) {
      bool flows = results[i] && tenon::is_differentiable(Access::unwrap(results[i]).dtype()) &&
                   !is_among(results[i], body->non_differentiable);
      outputs.push_back(results[i]);
      if (!flows) continue;
      tenon::Tensor result = tenon::autograd::with_edge(Access::unwrap(results[i]), {node, i});
      tenon::autograd::make_history(result).view_of_function = std::any_of(
          given.begin(), given.end(), [&](const tenon::Tensor& t) { return t && t.storage() == result.storage(); });
      outputs.back() = Access::wrap(result);
    }
    for (const Tensor& t : body->to_save) {
      FunctionContext::Body::Kept kept;
      if (t) {
        kept.tensor = tenon::autograd::Saved(Access::unwrap(t));
        if (is_among(t, arguments)) kept.edge = tenon::autograd::edge_of(Access::unwrap(t));
        for (size_t i = 0; i < results.size(); ++i)
          if (is_among(t, {results[i]})) kept.output = i;
      }
      body->kept.push_back(std::move(kept));
    }
    body->to_save.clear();
    body->non_differentiable.clear();
    return outputs;
  }
};

std::vector<Tensor> detail::apply(const char* name, Forward forward, Forward backward, TensorList inputs) {
  return guarded(ErrorKind::call, [&] {
    // "... apply(...) [with F = Cube]", and what follows the name
    std::string_view text(name);
    size_t at = text.find("F = ");
    if (at != text.npos) text = text.substr(at + 4, text.find_first_of(";]", at) - at - 4);
    return Access::Functions::apply(std::string(text).c_str(), forward, backward, inputs);
  });
}

}  // namespace tenon::v0
