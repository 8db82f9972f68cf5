#include "tenon/autograd/backward.h"

#include <algorithm>
#include <atomic>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "tenon/autograd/record.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/tensor/ones.h"

namespace tenon::autograd {
namespace {

/// One walk back. A node's number is higher than those of the nodes it sends gradients to, so that taking the highest
/// first, each has all of its gradients when its turn comes.
class Walk {
 public:
  Walk(const BackwardOptions& options, const std::vector<Edge>* wanted) : options_(options), wanted_(wanted) {}

  std::vector<Tensor> run(const std::vector<Edge>& roots, const std::vector<Tensor>& weights) {
    if (wanted_) find_leading(roots);
    GradMode mode(options_.create_graph);
    DispatchScope scope(options_.create_graph ? &recorder() : nullptr);
    for (size_t i = 0; i < roots.size(); ++i) give(roots[i], weights[i]);
    while (!ready_.empty()) {
      GradNode* node = ready_.top();
      ready_.pop();
      step(*node);
    }
    return std::move(found_);
  }

 private:
  struct Earlier {
    bool operator()(const GradNode* a, const GradNode* b) const { return a->number < b->number; }
  };

  // Nodes from which a wanted input is reached; without recursion, since histories are long.
  void find_leading(const std::vector<Edge>& roots) {
    found_.resize(wanted_->size());
    std::vector<GradNode*> stack, order;
    std::unordered_set<GradNode*> seen;
    auto visit = [&](const Edge& edge) {
      if (edge && seen.insert(edge.node.get()).second) stack.push_back(edge.node.get());
    };
    for (const Edge& root : roots) visit(root);
    while (!stack.empty()) {
      order.push_back(stack.back());
      stack.pop_back();
      for (const Edge& edge : order.back()->edges) visit(edge);
    }
    for (const Edge& edge : *wanted_)
      if (edge) leads_.insert(edge.node.get());
    std::sort(order.begin(), order.end(), Earlier());
    for (GradNode* node : order)
      if (sends(*node)) leads_.insert(node);
  }

  bool sends(const GradNode& node) const {
    if (!wanted_) return true;
    return std::any_of(node.edges.begin(), node.edges.end(),
                       [&](const Edge& edge) { return edge && leads_.contains(edge.node.get()); });
  }

  void give(const Edge& edge, const Tensor& grad) {
    if (!edge || !grad || (wanted_ && !leads_.contains(edge.node.get()))) return;
    auto [at, is_new] = grads_.try_emplace(edge.node.get());
    if (is_new) ready_.push(edge.node.get());
    if (at->second.size() <= edge.result) at->second.resize(edge.result + 1);
    Tensor& sum = at->second[edge.result];
    sum = sum ? sum + grad : grad;
  }

  void step(GradNode& node) {
    std::vector<Tensor> grads = std::move(grads_[&node]);
    grads_.erase(&node);
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i]) continue;
      for (const auto& [number, hook] : node.hooks_of(i))
        if (Tensor changed = hook(grads[i])) grads[i] = changed;
      if (auto kept = node.retained.find(i); kept != node.retained.end() && !wanted_)
        kept->second = kept->second ? kept->second + grads[i] : grads[i];
    }
    if (wanted_)
      for (size_t k = 0; k < wanted_->size(); ++k) {
        const Edge& edge = (*wanted_)[k];
        if (edge.node.get() == &node && edge.result < grads.size()) found_[k] = grads[edge.result];
      }
    if (!sends(node)) return;
    std::vector<Tensor> next = node.apply(grads);
    if (!options_.retain_graph && !options_.create_graph) node.release();
    for (size_t i = 0; i < next.size(); ++i) give(node.edges[i], next[i]);
  }

  BackwardOptions options_;
  const std::vector<Edge>* wanted_;
  std::vector<Tensor> found_;
  std::unordered_set<const GradNode*> leads_;
  std::unordered_map<GradNode*, std::vector<Tensor>> grads_;
  std::priority_queue<GradNode*, std::vector<GradNode*>, Earlier> ready_;
};

std::vector<Tensor> walk(const std::vector<Tensor>& outputs, const std::vector<Tensor>& given,
                         const BackwardOptions& options, const std::vector<Edge>* wanted) {
  require(given.empty() || given.size() == outputs.size(), "expected one gradient per output, ", outputs.size(),
          ", got ", given.size());
  std::vector<Edge> roots;
  std::vector<Tensor> weights;
  for (size_t i = 0; i < outputs.size(); ++i) {
    roots.push_back(edge_of(outputs[i]));
    require(static_cast<bool>(roots.back()), "element ", i,
            " of tensors does not require grad and does not have a grad_fn; mark what it is computed from with "
            "requires_grad_(), and compute it where gradients are enabled");
    Tensor weight = given.empty() ? Tensor() : given[i];
    if (weight) {
      require(weight.sizes() == outputs[i].sizes(), "Mismatch in shape: grad_output[", i, "] has a shape of ",
              weight.sizes(), " and output[", i, "] has a shape of ", outputs[i].sizes());
    } else {
      require(outputs[i].numel() == SymInt(1), "grad can be implicitly created only for scalar outputs, got ",
              outputs[i].meta(), "; give its gradient, or sum() it");
      weight = ones_tensor(outputs[i].dtype(), outputs[i].sizes());
    }
    weights.push_back(std::move(weight));
  }
  return Walk(options, wanted).run(roots, weights);
}

std::atomic<int64_t> next_hook{1};

}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& weights, const BackwardOptions& options) {
  walk(outputs, weights, options, nullptr);
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& weights, const GradOptions& options) {
  std::vector<Edge> wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    wanted.push_back(edge_of(inputs[i]));
    require(static_cast<bool>(wanted.back()), "grad: One of the differentiated Tensors does not require grad: input ",
            i);
  }
  std::vector<Tensor> found = walk(outputs, weights, options.walk, &wanted);
  for (size_t i = 0; i < found.size(); ++i)
    require(options.allow_unused || found[i],
            "One of the differentiated Tensors appears to not have been used in the graph: input ", i,
            "; set allow_unused = true if this is what you want");
  return found;
}

int64_t add_hook(const Tensor& t, Hook hook) {
  Edge edge = edge_of(t);
  require(static_cast<bool>(edge), "register_hook: expected a tensor that requires grad");
  int64_t number = next_hook++;
  if (history_of(t)->from) edge.node->hooks[edge.result].emplace(number, std::move(hook));
  else {  // the accumulator of a leaf goes with the calls that lead to it; its hooks stay
    History* h = history_of(t);
    h->hooks.emplace(number, std::move(hook));
  }
  return number;
}

int64_t add_hook_after_accumulating(const Tensor& t, std::function<void()> hook) {
  History* h = history_of(t);
  require(h && h->leaf_requires_grad && !h->from, "a hook after accumulating belongs to a leaf that requires grad");
  int64_t number = next_hook++;
  h->after_accumulating.emplace(number, std::move(hook));
  return number;
}

bool remove_hook(const Tensor& t, int64_t number) {
  History* h = history_of(t);
  if (!h) return false;
  bool removed = h->hooks.erase(number) + h->after_accumulating.erase(number) > 0;
  if (h->from)
    for (auto& [result, hooks] : h->from.node->hooks) removed = hooks.erase(number) > 0 || removed;
  return removed;
}

void retain_grad(const Tensor& t) {
  Edge edge = edge_of(t);
  require(static_cast<bool>(edge), "retain_grad: can't retain_grad on Tensor that has requires_grad=False");
  if (history_of(t)->from) edge.node->retained.try_emplace(edge.result);
}

Tensor grad_of(const Tensor& t) {
  const History* h = history_of(t);
  if (!h) return {};
  if (!h->from) return h->grad;
  auto kept = h->from.node->retained.find(h->from.result);
  return kept == h->from.node->retained.end() ? Tensor() : kept->second;
}

void set_grad(const Tensor& t, const Tensor& grad) {
  if (!grad) {
    History* h = history_of(t);
    if (h && !h->from) h->grad = {};
    else if (h) h->from.node->retained.erase(h->from.result);
    return;
  }
  require(grad.sizes() == t.sizes() && grad.dtype() == t.dtype(), "set_grad: expected a gradient like the tensor, ",
          t.meta(), ", got ", grad.meta());
  require(!history_of(t) || !history_of(t)->from, "set_grad: expected a leaf, got the result of a call");
  make_history(t).grad = grad;
}

}  // namespace tenon::autograd
