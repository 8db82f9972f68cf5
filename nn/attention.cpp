#include <tenon/arithmetic.h>
#include <tenon/nn/attention.h>
#include <tenon/nn/init.h>

#include <cmath>
#include <limits>

namespace tenon::TENON_INLINE v0::nn {

MultiheadAttention::MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : in_proj_weight(add_parameter("in_proj_weight", empty({3 * embed_dim, embed_dim}, options.dtype))),
      in_proj_bias(add_parameter("in_proj_bias", options.bias ? zeros({3 * embed_dim}, options.dtype) : Tensor())),
      out_proj(add("out_proj", Linear(embed_dim, embed_dim, options.bias, options.dtype))),
      width_(embed_dim),
      heads_(num_heads),
      options_(options) {
  if (embed_dim < 1 || num_heads < 1 || embed_dim % num_heads != 0)
    throw Error(ErrorKind::call, "MultiheadAttention: the width " + std::to_string(embed_dim) +
                                     " does not divide into " + std::to_string(num_heads) + " heads");
  if (!(options.dropout >= 0 && options.dropout <= 1))
    throw Error(ErrorKind::call,
                "MultiheadAttention: expected a probability as dropout, got " + std::to_string(options.dropout));
  init::xavier_uniform_(in_proj_weight);
  if (options.bias) init::zeros_(out_proj.bias);
}

namespace {

// Added to the scores: minus infinity where a boolean mask is true.
Tensor as_bias(const Tensor& mask, DType dtype) {
  if (mask.dtype() != boolean) return mask;
  return zeros(mask.sizes(), dtype).masked_fill(mask, -std::numeric_limits<double>::infinity());
}

}  // namespace

std::pair<Tensor, Tensor> MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                      const AttentionArguments& arguments) const {
  Scope scope(*this, query, key, value, arguments.key_padding_mask, arguments.attn_mask);
  if (query.dim() != 3 || key.dim() != 3 || value.dim() != 3)
    throw Error(ErrorKind::call, "MultiheadAttention: expected query, key and value of three dimensions, got " +
                                     std::to_string(query.dim()) + ", " + std::to_string(key.dim()) + " and " +
                                     std::to_string(value.dim()));
  std::vector<Tensor> weights = chunk(in_proj_weight, 3), biases(3);
  if (in_proj_bias.defined()) biases = chunk(in_proj_bias, 3);
  auto heads = [&](const Tensor& x, std::size_t which) {  // [batch, heads, length, width]
    Tensor projected = linear(options_.batch_first ? x : x.transpose(0, 1), weights[which], biases[which]);
    return projected.reshape({projected.size(0), projected.size(1), heads_, width_ / heads_}).transpose(1, 2);
  };
  Tensor q = heads(query, 0), k = heads(key, 1), v = heads(value, 2), bias;
  Size batch = q.size(0), target = q.size(2), source = k.size(2);
  if (arguments.is_causal) bias = as_bias(triu(ones({target, source}), 1) > 0, q.dtype());
  else if (arguments.attn_mask) {
    bias = as_bias(arguments.attn_mask, q.dtype());
    if (bias.dim() == 3) bias = bias.view({batch, heads_, target, source});
  }
  if (arguments.key_padding_mask) {
    Tensor padding = as_bias(arguments.key_padding_mask, q.dtype()).view({batch, 1, 1, source});
    bias = bias ? bias + padding : padding;
  }
  double p = is_training() ? options_.dropout : 0;
  Tensor out, shown;
  if (arguments.need_weights) {
    Tensor scores = matmul(q / std::sqrt(static_cast<double>(width_ / heads_)), k.transpose(-2, -1));
    shown = softmax(bias ? scores + bias : scores, -1);
    if (p > 0) shown = dropout(shown, p, true);
    out = matmul(shown, v);
    if (arguments.average_attn_weights) shown = shown.mean(1);
  } else {
    if (bias) bias = bias.expand({batch, heads_, target, source});
    out = scaled_dot_product_attention(q, k, v, bias, p);
  }
  out = out_proj(out.transpose(1, 2).reshape({batch, target, width_}));
  Tensor given = options_.batch_first ? out : out.transpose(0, 1);
  scope.gives({given, shown});
  return {given, shown};
}

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerEncoderLayerOptions& o)
    : self_attn(add(
          "self_attn",
          MultiheadAttention(d_model, nhead,
                             {.dropout = o.dropout, .bias = o.bias, .batch_first = o.batch_first, .dtype = o.dtype}))),
      linear1(add("linear1", Linear(d_model, o.dim_feedforward, o.bias, o.dtype))),
      linear2(add("linear2", Linear(o.dim_feedforward, d_model, o.bias, o.dtype))),
      norm1(add("norm1", LayerNorm(d_model, {.eps = o.layer_norm_eps, .bias = o.bias, .dtype = o.dtype}))),
      norm2(add("norm2", LayerNorm(d_model, {.eps = o.layer_norm_eps, .bias = o.bias, .dtype = o.dtype}))),
      dropout(add("dropout", Dropout(o.dropout))),
      dropout1(add("dropout1", Dropout(o.dropout))),
      dropout2(add("dropout2", Dropout(o.dropout))),
      norm_first_(o.norm_first),
      gelu_(o.gelu) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const Tensor& src_mask, const Tensor& src_key_padding_mask,
                                        bool is_causal) const {
  Scope scope(*this, src, src_mask, src_key_padding_mask);
  auto attend = [&](const Tensor& x) {
    return dropout1(self_attn(x, x, x,
                              {.key_padding_mask = src_key_padding_mask,
                               .attn_mask = src_mask,
                               .need_weights = false,
                               .is_causal = is_causal})
                        .first);
  };
  auto feed = [&](const Tensor& x) {
    Tensor hidden = linear1(x);
    return dropout2(linear2(dropout(gelu_ ? gelu(hidden) : relu(hidden))));
  };
  Tensor x = src;
  if (norm_first_) {
    x = x + attend(norm1(x));
    return scope.result(x + feed(norm2(x)));
  }
  x = norm1(x + attend(x));
  return scope.result(norm2(x + feed(x)));
}

}  // namespace tenon::TENON_INLINEv0::nn
