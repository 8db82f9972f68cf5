#include <tenon/arithmetic.h>
#include <tenon/autograd.h>
#include <tenon/optim/clip.h>

#include <algorithm>
#include <cmath>

namespace tenon::TENON_INLINE v0::optim {

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  if (!(max_norm >= 0))
    throw Error(ErrorKind::call, "clip_grad_norm_: expected a max_norm of at least 0, got " + std::to_string(max_norm));
  NoGradGuard off;
  std::vector<Tensor> norms;
  for (const Tensor& parameter : parameters)
    if (Tensor grad = parameter.grad()) norms.push_back(linalg_vector_norm(grad, norm_type));
  if (norms.empty()) return 0;
  Tensor total = linalg_vector_norm(stack(norms), norm_type);
  Tensor factor = (max_norm / (total + 1e-6)).clamp(std::nullopt, 1.0);
  for (const Tensor& parameter : parameters)
    if (Tensor grad = parameter.grad()) grad.mul_(factor.to(grad.dtype()));
  return total.item<double>();
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double value) {
  if (!(value >= 0))
    throw Error(ErrorKind::call, "clip_grad_value_: expected a value of at least 0, got " + std::to_string(value));
  NoGradGuard off;
  for (const Tensor& parameter : parameters)
    if (Tensor grad = parameter.grad()) grad.clamp_(-value, value);
}

}  // namespace tenon::TENON_INLINEv0::optim
