// Losses, as modules with options; as functions they are operators: tenon::mse_loss(x, y).
#pragma once
#include <tenon/nn/module.h>

namespace tenon::TENON_INLINE v0::nn {

enum class Reduction : std::uint8_t { none, mean, sum };

struct CrossEntropyLossOptions {
  Tensor weight = {};  // per class
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
};
/// Of logits [batch, classes, ...] against class numbers [batch, ...], or against probabilities of the logits' sizes.
class TENON_PUBLIC CrossEntropyLoss : public Module {
 public:
  explicit CrossEntropyLoss(const CrossEntropyLossOptions& options = {});
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  CrossEntropyLossOptions options_;
};

struct NLLLossOptions {
  Tensor weight = {};
  std::int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};
class TENON_PUBLIC NLLLoss : public Module {
 public:
  explicit NLLLoss(const NLLLossOptions& options = {});
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  NLLLossOptions options_;
};

class TENON_PUBLIC MSELoss : public Module {
 public:
  explicit MSELoss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

class TENON_PUBLIC L1Loss : public Module {
 public:
  explicit L1Loss(Reduction reduction = Reduction::mean) : reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  Reduction reduction_;
};

class TENON_PUBLIC SmoothL1Loss : public Module {
 public:
  explicit SmoothL1Loss(double beta = 1, Reduction reduction = Reduction::mean) : beta_(beta), reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  double beta_;
  Reduction reduction_;
};

class TENON_PUBLIC HuberLoss : public Module {
 public:
  explicit HuberLoss(double delta = 1, Reduction reduction = Reduction::mean) : delta_(delta), reduction_(reduction) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  double delta_;
  Reduction reduction_;
};

struct BCELossOptions {
  Tensor weight = {}, pos_weight = {};  // pos_weight: with logits only
  Reduction reduction = Reduction::mean;
};
class TENON_PUBLIC BCELoss : public Module {
 public:
  explicit BCELoss(const BCELossOptions& options = {});
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  BCELossOptions options_;
};
class TENON_PUBLIC BCEWithLogitsLoss : public Module {
 public:
  explicit BCEWithLogitsLoss(const BCELossOptions& options = {}) : options_(options) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  BCELossOptions options_;
};

/// Of log-probabilities against probabilities (log_target: their logarithms). Beside the usual reductions, batchmean
/// divides the sum by the size of the batch, as the mathematics wants it.
class TENON_PUBLIC KLDivLoss : public Module {
 public:
  explicit KLDivLoss(bool batchmean = true, bool log_target = false) : batchmean_(batchmean), log_target_(log_target) {}
  Tensor operator()(const Tensor& input, const Tensor& target) const;

 private:
  bool batchmean_, log_target_;
};

}  // namespace tenon::TENON_INLINEv0::nn
