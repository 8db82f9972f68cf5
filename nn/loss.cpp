#include <tenon/arithmetic.h>
#include <tenon/nn/loss.h>

namespace tenon::TENON_INLINE v0::nn {
namespace {
std::int64_t number(Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return 0;
    case Reduction::mean: return 1;
    case Reduction::sum: return 2;
  }
  throw Error(ErrorKind::call, "a loss: there is no such reduction; give none, mean or sum");
}
}  // namespace

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyLossOptions& options) : options_(options) {
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw Error(ErrorKind::call, "CrossEntropyLoss: expected label_smoothing from 0 to 1, got " +
                                     std::to_string(options.label_smoothing));
  add_buffer("weight", options.weight);
}
Tensor CrossEntropyLoss::operator()(const Tensor& input, const Tensor& target) const {
  return cross_entropy_loss(input, target, options_.weight, number(options_.reduction), options_.ignore_index,
                            options_.label_smoothing);
}
NLLLoss::NLLLoss(const NLLLossOptions& options) : options_(options) { add_buffer("weight", options.weight); }
Tensor NLLLoss::operator()(const Tensor& input, const Tensor& target) const {
  return nll_loss_nd(input, target, options_.weight, number(options_.reduction), options_.ignore_index);
}
Tensor MSELoss::operator()(const Tensor& input, const Tensor& target) const {
  return mse_loss(input, target, number(reduction_));
}
Tensor L1Loss::operator()(const Tensor& input, const Tensor& target) const {
  return l1_loss(input, target, number(reduction_));
}
Tensor SmoothL1Loss::operator()(const Tensor& input, const Tensor& target) const {
  return smooth_l1_loss(input, target, number(reduction_), beta_);
}
Tensor HuberLoss::operator()(const Tensor& input, const Tensor& target) const {
  return huber_loss(input, target, number(reduction_), delta_);
}
BCELoss::BCELoss(const BCELossOptions& options) : options_(options) {
  if (options.pos_weight)
    throw Error(ErrorKind::call, "BCELoss has no pos_weight; use BCEWithLogitsLoss, which takes logits");
}
Tensor BCELoss::operator()(const Tensor& input, const Tensor& target) const {
  return binary_cross_entropy(input, target, options_.weight, number(options_.reduction));
}
Tensor BCEWithLogitsLoss::operator()(const Tensor& input, const Tensor& target) const {
  return binary_cross_entropy_with_logits(input, target, options_.weight, options_.pos_weight,
                                          number(options_.reduction));
}
Tensor KLDivLoss::operator()(const Tensor& input, const Tensor& target) const {
  if (!batchmean_) return kl_div(input, target, 1, log_target_);
  return kl_div(input, target, 2, log_target_) / input.size(0);
}

}  // namespace tenon::TENON_INLINEv0::nn
