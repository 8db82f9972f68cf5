#pragma once
#include <cstdint>

namespace tenon::templates {

/// Four dimensions: batch, head, position, feature. Strides in elements, any.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t stride[4] = {0, 0, 0, 1};
};

/// softmax(scale * q k^T + mask) v. Query head h reads the key and value head h / (heads / key_heads).
template <class T>
struct AttentionArgs {
  std::int64_t batch = 1, heads = 1, key_heads = 1;
  std::int64_t queries = 0, keys = 0, width = 0, value_width = 0;
  Heads<const T> q, k, v;  // [batch, heads, queries, width], [batch, key_heads, keys, width], [..., value_width]
  T scale = 1;
  bool causal = false;  // query i sees keys 0 .. i
  // At most one of the two; [batch, heads, queries, keys] by the strides, zeros where it is broadcast.
  const T* mask = nullptr;              // added to the scores
  const unsigned char* keep = nullptr;  // 0: the key is not seen
  std::int64_t mask_stride[4] = {0, 0, 0, 0};
};

/// out [batch, heads, queries, value_width]; logsumexp [batch, heads, queries], may be null. A query that sees no key
/// gets zeros, and 0 for its logsumexp. For float and double.
template <class T>
void attention(const AttentionArgs<T>& args, Heads<T> out, T* logsumexp, const std::int64_t (&logsumexp_stride)[3]);

/// What the forward pass left, and where the gradients go; those with null data are not wanted. A key head's gradient
/// is the sum over its query heads, taken in their order.
template <class T>
struct AttentionGradient {
  Heads<const T> out_gradient, out;
  const T* logsumexp = nullptr;
  std::int64_t logsumexp_stride[3] = {0, 0, 0};
  Heads<T> q, k, v;
};
template <class T>
void attention_gradient(const AttentionArgs<T>& args, const AttentionGradient<T>& gradient);

}  // namespace tenon::templates
