// Gradients of eager code: whatever is computed from tensors that require them can be walked back. By the operators'
// own rules, as in differentiate(). A history belongs to one thread at a time; threads may share leaves.
#pragma once
#include <tenon/tensor.h>

namespace tenon::TENON_INLINE v0 {
/// Whether calls on this thread are remembered for gradients, while the guard lives.
class TENON_PUBLIC GradMode {
 public:
  explicit GradMode(Flag enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;
  static bool is_enabled();

 private:
  void* scope_;
};
class NoGradGuard : public GradMode {
 public:
  NoGradGuard() : GradMode(false) {}
};
class EnableGradGuard : public GradMode {
 public:
  EnableGradGuard() : GradMode(true) {}
};

struct BackwardOptions {
  bool retain_graph = false;  // walking back again is possible
  bool create_graph = false;  // gradients can be differentiated again; implies retain_graph
};
/// Adds the gradients of outputs, weighted by `gradients` (none for scalars), to those of the leaves behind them.
TENON_PUBLIC void backward(TensorList outputs, TensorList gradients = {}, const BackwardOptions& options = {});

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input that the outputs do not depend on has the gradient none
};
/// The gradients of outputs with respect to inputs; leaves keep theirs as they are.
TENON_PUBLIC std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs = {},
                                      const GradOptions& options = {});

/// What a function of one's own keeps from forward for backward.
class TENON_PUBLIC FunctionContext {
 public:
  void save_for_backward(TensorList tensors);  // inputs or outputs; those written in between are an Error
  std::vector<Tensor> saved() const;
  bool needs_input_grad(std::size_t input) const;
  void mark_non_differentiable(const Tensor& output);

 private:
  friend struct detail::Access;
  struct Body;
  Body& body() const;
  Body* body_ = nullptr;  // of the call, which outlives the context
};

namespace detail {
using Forward = std::vector<Tensor> (*)(FunctionContext& context, const std::vector<Tensor>& inputs);
TENON_PUBLIC std::vector<Tensor> apply(const char* name, Forward forward, Forward backward, TensorList inputs);
}  // namespace detail

/// Calls a function with a gradient of its own: a struct with
///   static std::vector<Tensor> forward(FunctionContext& context, const std::vector<Tensor>& inputs);
///   static std::vector<Tensor> backward(FunctionContext& context, const std::vector<Tensor>& grads);
/// Forward is not recorded; backward gives one gradient per input, some of them none.
template <class F>
std::vector<Tensor> apply(TensorList inputs) {
  return detail::apply(__PRETTY_FUNCTION__, F::forward, F::backward, inputs);
}

}  // namespace tenon::TENON_INLINEv0
