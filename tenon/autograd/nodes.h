// The kinds of steps back that are not the gradient of one operator.
#pragma once
#include "tenon/autograd/history.h"

namespace tenon::autograd {

/// Adds to the gradient of a leaf.
std::shared_ptr<GradNode> make_accumulator(const Tensor& leaf);

/// Where the gradient of a view of `base` goes; none where the base wants none.
Edge view_edge(const IndexMap& map, const Tensor& base);

/// A base after a view of it was written: its gradient goes to the base as it was, but for what the view shows, which
/// goes to what was written.
Edge write_edge(const IndexMap& map, const TensorMeta& base, const Edge& before, const Edge& written);

/// A function's own gradient.
using Backward = std::function<std::vector<Tensor>(const std::vector<Tensor>& grads)>;
std::shared_ptr<GradNode> make_custom(std::string name, Backward backward, const std::vector<Tensor>& inputs);

/// sum_to the sizes and conversion to the dtype of what a gradient belongs to.
Tensor fitted(Tensor grad, const TensorMeta& meta);

}  // namespace tenon::autograd
