#include "tenon/autograd/history.h"

#include <atomic>

#include "tenon/autograd/nodes.h"
#include "tenon/tensor/dispatch.h"

namespace tenon::autograd {
namespace {

std::atomic<uint64_t> next_number{1};

// A chain of a million nodes must not be a recursion of a million destructors.
void dispose(std::vector<Edge> edges) {
  thread_local std::vector<Edge>* pending = nullptr;
  if (pending) {
    for (Edge& edge : edges) pending->push_back(std::move(edge));
    return;
  }
  pending = &edges;
  while (!edges.empty()) {
    Edge last = std::move(edges.back());
    edges.pop_back();
    last.node.reset();
  }
  pending = nullptr;
}

}  // namespace

GradNode::GradNode() : number(next_number.fetch_add(1, std::memory_order_relaxed)) {}
GradNode::~GradNode() {
  if (!edges.empty()) dispose(std::move(edges));
}

Hooks GradNode::hooks_of(size_t result) const {
  auto found = hooks.find(result);
  return found == hooks.end() ? Hooks() : found->second;
}

History* history_of(const Tensor& t) { return t ? static_cast<History*>(t.impl()->grad.get()) : nullptr; }

History& make_history(const Tensor& t) {
  if (!t.impl()->grad) t.impl()->grad = std::make_shared<History>();
  return *history_of(t);
}

bool requires_grad(const Tensor& t) {
  const History* h = history_of(t);
  if (!h) return false;
  if (h->base) {
    const History* base = history_of(h->base);
    if (base && base->writes != h->seen_writes) return edge_of(t).node != nullptr;
  }
  return h->leaf_requires_grad || h->from;
}

bool is_leaf(const Tensor& t) { return !requires_grad(t) || !edge_of(t) || history_of(t)->leaf_requires_grad; }

Edge edge_of(const Tensor& t) {
  History* h = history_of(t);
  if (!h) return {};
  if (h->base) {
    const History* base = history_of(h->base);
    if (base && base->writes != h->seen_writes) {  // the base was written: what this view shows has another history
      h->seen_writes = base->writes;
      h->from = view_edge(h->map, h->base);
    }
  }
  if (h->from) return h->from;
  if (!h->leaf_requires_grad) return {};
  std::lock_guard lock(h->mutex);
  if (!h->accumulator) h->accumulator = make_accumulator(t);
  return {h->accumulator, 0};
}

void set_requires_grad(const Tensor& t, bool wanted) {
  const History* h = history_of(t);
  if (h && h->from) {
    require(wanted, "requires_grad: expected a leaf, got the result of ", h->from.node->name(),
            "; use detach() to get a tensor without gradients");
    return;
  }
  if (!h && !wanted) return;
  require(!wanted || is_differentiable(t.dtype()), "requires_grad: expected a floating point tensor, got ", t.meta(),
          "; only those have gradients");
  make_history(t).leaf_requires_grad = wanted;
}

Saved::Saved(const Tensor& t) {
  if (!t) return;
  tensor_ = t.with_meta(t.meta());
  tensor_.impl()->meta.requires_grad = false;
  version_ = t.storage()->version();
  has_data_ = true;
}

void Saved::drop_data() {
  static const std::shared_ptr<Storage> nothing = std::make_shared<Storage>(size_t{0});
  if (tensor_) tensor_ = Tensor(tensor_.meta(), nothing);
  has_data_ = false;
}

Tensor Saved::get(const Edge& edge, const std::string& by) const {
  if (!tensor_) return {};
  if (has_data_)
    require(tensor_.storage()->version() == version_,
            "one of the variables needed for gradient computation has been modified by an inplace operation: ",
            tensor_.meta(), ", which ", by, " needs, is at version ", tensor_.storage()->version(),
            "; expected version ", version_, " instead. Write to a clone() of it, or out of place");
  return edge && grad_enabled() ? with_edge(tensor_, edge) : tensor_;
}

Tensor with_edge(const Tensor& t, const Edge& edge) {
  Tensor out = t.with_meta(t.meta());
  if (edge) make_history(out).from = edge;
  return out;
}

}  // namespace tenon::autograd
