// The history of eager calls: which call a tensor came from, and how gradients flow back through it. What is needed of
// a call is kept as it was; a value that was overwritten since is an Error when it is read.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tenon/loop/index_map.h"
#include "tenon/tensor/tensor.h"

namespace tenon::autograd {

class GradNode;
struct Edge {
  std::shared_ptr<GradNode> node;  // shared: by the tensors it made and by the nodes that lead to it
  size_t result = 0;               // which result of that node's call
  explicit operator bool() const { return node != nullptr; }
};

using Hook = std::function<Tensor(const Tensor& grad)>;  // none: the gradient stays as it is
using Hooks = std::map<int64_t, Hook>;                   // by number, in the order they were added

/// One step back: from the gradients of a call's results to those of its tensor arguments.
class GradNode : public std::enable_shared_from_this<GradNode> {
 public:
  GradNode();
  virtual ~GradNode();
  GradNode(const GradNode&) = delete;
  /// One gradient per edge, some of them none. Where gradients are recorded, they can be differentiated again.
  virtual std::vector<Tensor> apply(const std::vector<Tensor>& grads) = 0;
  virtual std::string name() const = 0;  // MulBackward0
  virtual Hooks hooks_of(size_t result) const;
  virtual void release() {}  // forgets what was kept; apply is an Error from then on

  std::vector<Edge> edges;            // one per tensor argument
  std::map<size_t, Hooks> hooks;      // by result
  std::map<size_t, Tensor> retained;  // by result: gradients that retain_grad asked for; none until they are there
  const uint64_t number;              // later calls have higher ones
};

/// What autograd hangs on a tensor.
struct History : GradInfo {
  bool leaf_requires_grad = false;
  Tensor grad;  // of a leaf
  Hooks hooks;  // of a leaf
  std::map<int64_t, std::function<void()>> after_accumulating;
  Edge from;                              // what made it; none for a leaf
  std::shared_ptr<GradNode> accumulator;  // of a leaf; it knows its leaf weakly
  std::mutex mutex;                       // guards accumulator and grad: threads may use one leaf
  // Of a view: what it is a view of, and how. `from` is made anew when the base has been written since.
  Tensor base;
  IndexMap map;
  uint64_t seen_writes = 0;
  uint64_t writes = 0;            // of a base: how often its history was changed by a write
  bool view_of_function = false;  // over the memory of an argument of a function with a gradient of its own
};

History* history_of(const Tensor& t);  // null where there is none
History& make_history(const Tensor& t);
bool requires_grad(const Tensor& t);
bool is_leaf(const Tensor& t);
/// Where the gradient of a tensor goes: to the call that made it, or to the leaf itself. None where none is wanted.
Edge edge_of(const Tensor& t);
/// Marks a leaf. An Error for results of calls and for dtypes without gradients.
void set_requires_grad(const Tensor& t, bool requires_grad);

/// A tensor kept for the way back, with the version it had.
class Saved {
 public:
  Saved() = default;
  explicit Saved(const Tensor& t);
  /// The tensor as it was. Its gradient, where one is wanted, goes to `edge`.
  Tensor get(const Edge& edge, const std::string& by) const;
  const TensorMeta& meta() const { return tensor_.meta(); }
  bool has_data() const { return has_data_; }
  void drop_data();  // keeps what it was, not its elements
  explicit operator bool() const { return tensor_.defined(); }

 private:
  Tensor tensor_;  // without a history: it would keep itself alive
  uint64_t version_ = 0;
  bool has_data_ = false;
};

/// A tensor over the same elements whose gradient goes to `edge`.
Tensor with_edge(const Tensor& t, const Edge& edge);

}  // namespace tenon::autograd
