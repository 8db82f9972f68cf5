// Parameters of attention, in the families "gemm_f32" and "gemm_f64": softmax(scale * q k^T + mask) v and its gradient.
// Four dimensions each: batch, head, position, feature; any strides. Query head h reads the key and value head h /
// (heads / key_heads).
#pragma once
#include "kernels/gemm.h"

namespace tenon::kernels {

constexpr int64_t mask_none = 0, mask_added = 1, mask_keep = 2;  // keep: bool; false: the key is not seen

struct AttentionParams {
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
  int64_t causal;  // query i sees keys 0 .. i
  int64_t mask_kind;
  double scale;
  // Where each begins in its buffer, and its strides; a mask is [batch, heads, queries, keys], strides 0 where
  // broadcast.
  int64_t q, q_strides[4], k, k_strides[4], v, v_strides[4], out, out_strides[4];
  int64_t logsumexp, logsumexp_strides[3], mask, mask_strides[4];
};

/// attention_pack_T: buffers k, v, packed. Iterations: attention_pack_iterations.
/// attention_T: buffers q, k, v, packed, out, logsumexp, and mask if there is one. Iterations: attention_block queries
/// of a head. A query that sees no key gets zeros, and 0 for its logsumexp.
/// Up to attention_in_place queries nothing is packed: `packed` is not touched.
/// attention_heads_T: the same by whole heads, the same buffers; `packed` is not touched, each key head is packed into
/// scratch memory by whoever needs it. Iterations: key heads.
constexpr int64_t attention_block = 48, attention_in_place = 4, attention_panel = 16;
constexpr int64_t attention_gradient_block = 96;
constexpr int64_t attention_fixed_scratch = gemm_unpacked_scratch;  // elements

inline int64_t floor_div(int64_t a, int64_t b) { return a / b; }  // of numbers that are not negative

/// Sizes in elements, for numbers and for symbolic expressions.
template <class Int>
struct AttentionSizes {
  Int batch, heads, key_heads, queries, keys, width, value_width;

  static Int panels(Int n) { return floor_div(n + Int(attention_panel - 1), Int(attention_panel)); }
  static Int padded(Int n) { return panels(n) * Int(attention_panel); }
  static Int blocks(Int n) { return floor_div(n + Int(attention_block - 1), Int(attention_block)); }

  Int packed_head() const { return padded(keys) * width + padded(value_width) * keys; }
  Int packed() const { return batch * key_heads * packed_head(); }
  Int pack_iterations() const { return batch * key_heads * (panels(keys) + panels(value_width)); }
  Int iterations() const { return batch * heads * blocks(queries); }
  Int head_iterations() const { return batch * key_heads; }
  Int head_scratch() const { return packed_head() + scratch(); }
  Int scratch() const {
    return Int(attention_block) * (padded(keys) + padded(value_width)) + Int(attention_fixed_scratch);
  }

  /// attention_gradient_T: buffers grad, q, k, v, out, logsumexp, grad_q, grad_k, grad_v, and mask if there is one.
  /// Iterations: key heads, each of which takes the contributions of its query heads in their order.
  Int gradient_iterations() const { return batch * key_heads; }
  Int gradient_scratch() const {
    return padded(keys) * (width + value_width) + padded(width) * keys +
           Int(attention_gradient_block) * (padded(keys) * Int(2) + padded(width) + padded(value_width)) +
           Int(attention_fixed_scratch);
  }
};

struct AttentionGradientParams : AttentionParams {
  int64_t grad, grad_strides[4], grad_q, grad_q_strides[4], grad_k, grad_k_strides[4], grad_v, grad_v_strides[4];
};

}  // namespace tenon::kernels
