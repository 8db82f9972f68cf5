// Attention over several heads, and the encoder layer made of it.
#pragma once
#include <tenon/nn/linear.h>
#include <tenon/nn/normalization.h>

namespace tenon::TENON_INLINE v0::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;
  bool bias = true, batch_first = false;
  DType dtype = f32;
};
struct AttentionArguments {
  Tensor key_padding_mask;  // bool [batch, source]: true is not looked at; or floats that are added
  Tensor attn_mask;         // [target, source] or [batch * heads, target, source]: likewise
  bool need_weights = true, average_attn_weights = true;
  bool is_causal = false;  // each position sees itself and those before; takes the place of attn_mask
};
/// Attention of query [target, batch, width] to key and value [source, batch, width]; with batch_first the batch comes
/// first. Gives the result and the weights, none where they are not needed.
class TENON_PUBLIC MultiheadAttention : public Module {
 public:
  MultiheadAttention(std::int64_t embed_dim, std::int64_t num_heads, const MultiheadAttentionOptions& options = {});
  std::pair<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionArguments& arguments = {}) const;
  std::pair<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                       const AttentionArguments& arguments = {}) const {
    return forward(query, key, value, arguments);
  }
  Parameter in_proj_weight, in_proj_bias;
  Linear out_proj;

 private:
  std::int64_t width_, heads_;
  MultiheadAttentionOptions options_;
};

struct TransformerEncoderLayerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  bool gelu = false;  // in place of relu
  double layer_norm_eps = 1e-5;
  bool batch_first = false, norm_first = false, bias = true;
  DType dtype = f32;
};
class TENON_PUBLIC TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead, const TransformerEncoderLayerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {},
                 bool is_causal = false) const;
  Tensor operator()(const Tensor& src, const Tensor& src_mask = {}, const Tensor& src_key_padding_mask = {},
                    bool is_causal = false) const {
    return forward(src, src_mask, src_key_padding_mask, is_causal);
  }
  MultiheadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout, dropout1, dropout2;

 private:
  bool norm_first_, gelu_;
};

}  // namespace tenon::TENON_INLINEv0::nn
