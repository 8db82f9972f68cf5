// Linear maps, embeddings, dropout.
#pragma once
#include <tenon/nn/module.h>

#include <optional>

namespace tenon::TENON_INLINE v0::nn {

class Identity : public Module {
 public:
  Tensor forward(const Tensor& x) const { return x; }
  Tensor operator()(const Tensor& x) const { return x; }
};

/// x Wᵀ + b, with W [out, in].
class TENON_PUBLIC Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true, DType dtype = f32);
  Tensor forward(const Tensor& x) const;
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Parameter weight, bias;
};

/// x1ᵀ W x2 + b for each output, with W [out, in1, in2].
class TENON_PUBLIC Bilinear : public Module {
 public:
  Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out, bool bias = true, DType dtype = f32);
  Tensor forward(const Tensor& x1, const Tensor& x2) const;
  Tensor operator()(const Tensor& x1, const Tensor& x2) const { return forward(x1, x2); }
  Parameter weight, bias;
};

struct EmbeddingOptions {
  std::optional<std::int64_t> padding_idx = std::nullopt;  // a row that stays 0: it gets no gradient
  DType dtype = f32;
};
/// Rows of a table [count, size] by their numbers.
class TENON_PUBLIC Embedding : public Module {
 public:
  Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options = {});
  Tensor forward(const Tensor& indices) const;
  Tensor operator()(const Tensor& indices) const { return forward(indices); }
  Parameter weight;

 private:
  std::int64_t padding_;
};

/// In training, zeroes elements with probability p and scales the others by 1 / (1 - p).
class TENON_PUBLIC Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) const;
  Tensor operator()(const Tensor& x) const { return forward(x); }

 private:
  double p_;
};

class TENON_PUBLIC Flatten : public Module {
 public:
  explicit Flatten(std::int64_t start_dim = 1, std::int64_t end_dim = -1) : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    return scope.result(x.flatten(start_, end_));
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }

 private:
  std::int64_t start_, end_;
};

}  // namespace tenon::TENON_INLINEv0::nn
