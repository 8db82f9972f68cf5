#include "tenon/train/loss.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/reduction.h"
#include "tenon/train/settings.h"

namespace tenon::train {
namespace {

using Tensors = std::span<const Tensor>;
using Metas = std::span<const TensorMeta>;

constexpr int64_t mean_reduction = 1;

const TensorMeta& first_output(const std::string& loss, Metas outputs) {
  require(!outputs.empty(), "the loss ", loss, " is of output_0, and the program returns no tensor");
  require(is_floating(outputs[0].dtype), "the loss ", loss, " takes a floating point output_0, got ", outputs[0]);
  return outputs[0];
}

Target like_output(const std::string& loss, Metas outputs) {
  const TensorMeta& out = first_output(loss, outputs);
  return {.meta = make_meta(out.dtype, out.sizes, out.device)};
}

Tensor count_of(const Tensor& condition) { return sum_all(condition, kw("dtype", DType::i64)); }

}  // namespace

Loss cross_entropy(const CrossEntropyOptions& options) {
  std::string name = "cross_entropy";
  auto class_dim = [](size_t rank) -> size_t { return rank == 1 ? 0 : 1; };
  Loss loss;
  loss.name = name;
  loss.targets = [=](Metas outputs) -> std::vector<Target> {
    const TensorMeta& out = first_output(name, outputs);
    require(out.rank() >= 1, "the loss ", name, " takes a score for each class, f32[n, classes, ...], got ", out);
    if (options.probabilities) return {like_output(name, outputs)};
    Sizes sizes = out.sizes;
    sizes.erase(class_dim(out.rank()));
    return {{.meta = make_meta(DType::i64, sizes, out.device),
             .classes = out.sizes[class_dim(out.rank())],
             .ignored = options.ignore_index}};
  };
  loss.value = [=](Tensors outputs, Tensors targets) -> Tensor {
    return cross_entropy_loss(outputs[0], targets[0], none, mean_reduction, SymInt(options.ignore_index),
                              options.label_smoothing);
  };
  loss.right = [=](Tensors outputs, Tensors targets) -> std::vector<Tensor> {
    auto dim = static_cast<int64_t>(class_dim(outputs[0].rank()));
    Tensor said = argmax(outputs[0], SymInt(dim));
    if (options.probabilities) {
      Tensor true_class = argmax(targets[0], SymInt(dim));
      return {count_of(eq(said, true_class)), count_of(ge(said, 0))};
    }
    Tensor counted = ne(targets[0], options.ignore_index);
    return {count_of(logical_and(eq(said, targets[0]), counted)), count_of(counted)};
  };
  return loss;
}

Loss mse() {
  Loss loss;
  loss.name = "mse";
  loss.targets = [](Metas outputs) -> std::vector<Target> { return {like_output("mse", outputs)}; };
  loss.value = [](Tensors outputs, Tensors targets) -> Tensor {
    return mse_loss(outputs[0], targets[0], mean_reduction);
  };
  return loss;
}

Loss bce_with_logits() {
  Loss loss;
  loss.name = "bce_with_logits";
  loss.targets = [](Metas outputs) -> std::vector<Target> { return {like_output("bce_with_logits", outputs)}; };
  loss.value = [](Tensors outputs, Tensors targets) -> Tensor {
    return binary_cross_entropy_with_logits(outputs[0], targets[0], none, none, mean_reduction);
  };
  loss.right = [](Tensors outputs, Tensors targets) -> std::vector<Tensor> {
    Tensor same = eq(outputs[0] > 0.0, targets[0] > 0.5);
    return {count_of(same), count_of(logical_or(same, logical_not(same)))};
  };
  return loss;
}

Loss own_loss() {
  Loss loss;
  loss.name = "none";
  loss.targets = [](Metas outputs) -> std::vector<Target> {
    const TensorMeta& out = first_output("none", outputs);
    require(count(out.sizes) == SymInt(1), "with the loss none, output_0 is the loss itself and has one element, got ",
            out, "; name a loss: cross_entropy, mse or bce_with_logits");
    return {};
  };
  loss.value = [](Tensors outputs, Tensors) -> Tensor {
    return outputs[0].rank() == 0 ? outputs[0] : Tensor(sum_all(outputs[0]));
  };
  return loss;
}

Loss loss_named(const std::string& text, bool probabilities) {
  Settings settings("loss", text);
  Loss loss;
  if (settings.name() == "cross_entropy") {
    CrossEntropyOptions options{.probabilities = probabilities};
    options.label_smoothing = settings.number("label_smoothing", 0);
    require(options.label_smoothing >= 0 && options.label_smoothing <= 1,
            "loss cross_entropy: label_smoothing: expected a number from 0 to 1, got ", options.label_smoothing);
    options.ignore_index = settings.count("ignore_index", -100);
    loss = cross_entropy(options);
  } else if (settings.name() == "mse") {
    loss = mse();
  } else if (settings.name() == "bce_with_logits") {
    loss = bce_with_logits();
  } else if (settings.name() == "none") {
    loss = own_loss();
  } else {
    settings.unknown_name("cross_entropy, mse, bce_with_logits or none");
  }
  settings.done();
  return loss;
}

}  // namespace tenon::train
