// Gradients of eager tensors: walks their history back.
#pragma once
#include "tenon/autograd/history.h"

namespace tenon::autograd {

struct BackwardOptions {
  bool retain_graph = false;  // what calls keep is not freed: one can walk back again
  bool create_graph = false;  // the gradients have a history themselves; implies retain_graph
};

/// Adds the gradients of `outputs`, weighted by `weights` (none, for a scalar: 1), to those of the leaves they came
/// from.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& weights, const BackwardOptions& options);

struct GradOptions {
  BackwardOptions walk;
  bool allow_unused = false;  // an input that nothing leads to has the gradient none; otherwise an Error
};

/// The gradients with respect to `inputs`, which may be results of calls; those of leaves stay as they are.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& weights, const GradOptions& options);

/// Calls the hook with the gradient of `t` when it is known; what it returns, where it is not none, takes its place.
int64_t add_hook(const Tensor& t, Hook hook);
/// Calls the hook after the gradient of a leaf was added to.
int64_t add_hook_after_accumulating(const Tensor& t, std::function<void()> hook);
bool remove_hook(const Tensor& t, int64_t number);
/// The gradient of a result of a call is kept too.
void retain_grad(const Tensor& t);
/// What was accumulated, or retained; none where there is nothing.
Tensor grad_of(const Tensor& t);
void set_grad(const Tensor& t, const Tensor& grad);

}  // namespace tenon::autograd
