#include "tenon/autograd/nodes.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/view_writes.h"
#include "tenon/rules/registry.h"

namespace tenon::autograd {
namespace {

class Accumulator : public GradNode {
 public:
  explicit Accumulator(const Tensor& leaf) : history_(leaf.impl()->grad) {}
  std::string name() const override { return "AccumulateGrad"; }
  Hooks hooks_of(size_t) const override {
    std::shared_ptr<GradInfo> history = history_.lock();
    return history ? static_cast<History*>(history.get())->hooks : Hooks();
  }
  std::vector<Tensor> apply(const std::vector<Tensor>& grads) override {
    std::shared_ptr<GradInfo> history = history_.lock();
    if (!history) return {};  // nobody can ask for it any more
    History& h = *static_cast<History*>(history.get());
    const Tensor& grad = grads[0];
    std::map<int64_t, std::function<void()>> after;
    {
      std::lock_guard lock(h.mutex);
      if (!h.grad) h.grad = grad_enabled() ? grad : contiguous_copy(grad);  // it may be a gradient of others too
      else if (grad_enabled()) h.grad = h.grad + grad;
      else call_op(registry().in_place_form(add.op()), {h.grad, grad, CallArg(1)});
      after = h.after_accumulating;
    }
    for (const auto& [number, hook] : after) hook();
    return {};
  }

 private:
  std::weak_ptr<GradInfo> history_;  // which has this
};

class ThroughView : public GradNode {
 public:
  ThroughView(IndexMap map, TensorMeta base) : map_(std::move(map)), base_(std::move(base)) {}
  std::string name() const override { return "ViewBackward0"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& grads) override {
    return {fitted(gradient_through(map_, base_, grads[0]), base_)};
  }

 private:
  IndexMap map_;
  TensorMeta base_;
};

Tensor write_all(const std::vector<remap::Part>& parts, size_t first, const Tensor& base, const Tensor& source) {
  if (first == parts.size()) return source;
  Tensor inner =
      first + 1 == parts.size() ? source : write_all(parts, first + 1, read_step(parts[first], base), source);
  return write_through(parts[first], base, inner);
}

class AfterWrite : public GradNode {
 public:
  AfterWrite(IndexMap map, TensorMeta base) : map_(std::move(map)), base_(std::move(base)) {}
  std::string name() const override { return "CopySlices"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& grads) override {
    Tensor shown = read_through(map_, grads[0]), rest;
    if (edges[0]) rest = write_all(map_.parts, 0, grads[0], zeros_like(shown));
    return {rest, shown};
  }

 private:
  IndexMap map_;
  TensorMeta base_;
};

class Custom : public GradNode {
 public:
  Custom(std::string name, Backward backward) : name_(std::move(name)), backward_(std::move(backward)) {}
  std::string name() const override { return name_; }
  std::vector<Tensor> apply(const std::vector<Tensor>& grads) override {
    require(backward_ != nullptr, freed_message);
    std::vector<Tensor> out = backward_(grads);
    require(out.size() == edges.size(), name_, ": expected one gradient per input, ", edges.size(), ", got ",
            out.size());
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i] || !edges[i]) continue;
      require(out[i].sizes() == inputs[i].sizes, name_, ": gradient ", i, ": expected the sizes of the input, ",
              inputs[i], ", got ", out[i].meta());
      out[i] = fitted(out[i], inputs[i]);
    }
    return out;
  }
  void release() override { backward_ = nullptr; }
  std::vector<TensorMeta> inputs;

  static constexpr const char* freed_message =
      "Trying to backward through the graph a second time: what the first time needed has been freed; give "
      "retain_graph = true the first time";

 private:
  std::string name_;
  Backward backward_;
};

}  // namespace

std::shared_ptr<GradNode> make_accumulator(const Tensor& leaf) { return std::make_shared<Accumulator>(leaf); }

Edge view_edge(const IndexMap& map, const Tensor& base) {
  Edge to = edge_of(base);
  if (!to) return {};
  for (const remap::Part& part : map.parts)
    if (std::holds_alternative<remap::Stop>(part)) return {};
  auto node = std::make_shared<ThroughView>(map, base.meta());
  node->edges.push_back(std::move(to));
  return {std::move(node), 0};
}

Edge write_edge(const IndexMap& map, const TensorMeta& base, const Edge& before, const Edge& written) {
  auto node = std::make_shared<AfterWrite>(map, base);
  node->edges = {before, written};
  return {std::move(node), 0};
}

std::shared_ptr<GradNode> make_custom(std::string name, Backward backward, const std::vector<Tensor>& inputs) {
  auto node = std::make_shared<Custom>(std::move(name), std::move(backward));
  for (const Tensor& input : inputs) {
    node->edges.push_back(edge_of(input));
    node->inputs.push_back(input ? input.meta() : TensorMeta());
  }
  return node;
}

Tensor fitted(Tensor grad, const TensorMeta& meta) {
  if (!grad) return grad;
  if (grad.sizes() != meta.sizes && grad.rank() >= meta.rank()) grad = sum_to(grad, meta.sizes);
  if (grad.dtype() != meta.dtype) grad = to(grad, meta.dtype);
  return grad;
}

}  // namespace tenon::autograd
