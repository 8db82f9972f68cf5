#include "tenon/train/precision.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/base/error.h"
#include "tenon/ops/conversion.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/retrace.h"

namespace tenon::train {
namespace {

using Names = std::set<std::string_view>;

// Products: they are where the time goes, and they add up in f32 whatever they take.
const Names narrow = {"mm",
                      "bmm",
                      "addmm",
                      "baddbmm",
                      "addbmm",
                      "addmv",
                      "mv",
                      "matmul",
                      "linear",
                      "convolution",
                      "conv1d",
                      "conv2d",
                      "conv3d",
                      "einsum",
                      "dot",
                      "_convolution",
                      "conv_transpose1d",
                      "conv_transpose2d",
                      "conv_transpose3d",
                      "scaled_dot_product_attention"};
// Sums of many terms, and functions whose results or slopes bf16 cannot tell apart.
const Names wide = {"exp",
                    "expm1",
                    "log",
                    "log1p",
                    "log2",
                    "log10",
                    "pow",
                    "rsqrt",
                    "reciprocal",
                    "sum",
                    "mean",
                    "prod",
                    "cumsum",
                    "cumprod",
                    "var",
                    "std",
                    "var_mean",
                    "std_mean",
                    "norm",
                    "linalg_vector_norm",
                    "softmax",
                    "_softmax",
                    "log_softmax",
                    "_log_softmax",
                    "logsumexp",
                    "layer_norm",
                    "native_layer_norm",
                    "group_norm",
                    "native_group_norm",
                    "batch_norm",
                    "native_batch_norm",
                    "_native_batch_norm_legit",
                    "_native_batch_norm_legit_functional",
                    "_native_batch_norm_legit_no_training",
                    "rms_norm",
                    "instance_norm",
                    "cross_entropy_loss",
                    "nll_loss",
                    "nll_loss_forward",
                    "nll_loss2d_forward",
                    "mse_loss",
                    "l1_loss",
                    "smooth_l1_loss",
                    "huber_loss",
                    "binary_cross_entropy",
                    "binary_cross_entropy_with_logits",
                    "kl_div",
                    "cdist",
                    "_cdist_forward",
                    "pdist",
                    "grid_sampler",
                    "erfinv",
                    "tan",
                    "acos",
                    "asin",
                    "cosh",
                    "sinh",
                    "lgamma",
                    "digamma",
                    "softplus"};

bool is_narrowable(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

/// Converts what operators take before they are called.
class Converter : public Dispatcher {
 public:
  explicit Converter(Tracer& tracer) : tracer_(tracer) {}

  CallResults run(const Op& op, CallArgs args) override {
    std::optional<DType> wanted = wanted_dtype(op, args);
    if (wanted)
      for (CallArg& arg : args)
        arg = map_tensors<Tensor>(arg, [&](const Tensor& t) {
          return t && t.is_traced() && is_narrowable(t.dtype()) && t.dtype() != *wanted ? converted(t, *wanted) : t;
        });
    return tracer_.call(op, std::move(args));
  }

  Tensor converted(const Tensor& t, DType dtype) {
    auto [known, fresh] = made_.try_emplace({t.impl()->value, dtype, grad_enabled()});
    if (fresh) {
      DispatchScope scope(&tracer_);
      known->second = to(t, dtype);
    }
    return known->second;
  }

 private:
  static std::optional<DType> wanted_dtype(const Op& op, const CallArgs& args) {
    bool any_narrow = false, any_wide = false, other = false;
    for (const CallArg& arg : args)
      for_each_tensor(arg, [&](const Tensor& t) {
        if (!t || t.rank() == 0) return;  // numbers follow the others
        any_narrow = any_narrow || t.dtype() == DType::bf16;
        any_wide = any_wide || t.dtype() == DType::f32;
        other = other || (is_floating(t.dtype()) && !is_narrowable(t.dtype()));
      });
    if (other || op.kind == OpKind::view) return std::nullopt;
    std::string_view name = op.schema.base();
    if (narrow.contains(name)) return any_wide ? std::optional(DType::bf16) : std::nullopt;
    if (wide.contains(name)) return any_narrow ? std::optional(DType::f32) : std::nullopt;
    return any_narrow && any_wide ? std::optional(DType::f32) : std::nullopt;
  }

  Tracer& tracer_;
  std::map<std::tuple<ValueId, DType, bool>, Tensor> made_;  // a value is converted once
};

}  // namespace

Graph in_precision(const GraphBody& graph, Precision precision) {
  Replay replay(graph);
  if (precision == Precision::full) {
    replay.inputs();
    for (const Node& node : graph.nodes) replay.node(node);
    replay.outputs();
    return std::move(replay.graph);
  }
  replay.inputs();
  ShapesScope shapes(&replay.graph->shapes);
  Tracer tracer(replay.graph.body());
  Converter converter(tracer);
  for (const Node& node : graph.nodes) {
    bool whole = std::none_of(node.args.begin(), node.args.end(), [](const Arg& a) { return a.is<Subgraph>(); });
    if (!whole) fail_unsupported(text("training in bf16: ", node.op->name(), " holds programs of its own"));
    retrace(node, replay, tracer, converter);
  }
  replay.outputs();
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    Value* v = replay.graph->outputs[i].get<Value>();
    if (!v || !*v || replay.graph->info(*v).type != ValueType::tensor) continue;
    DType wanted = graph.info(*graph.outputs[i].get<Value>()).meta.dtype;
    if (replay.graph->info(*v).meta.dtype != wanted)
      replay.graph->outputs[i] = tracer.value(converter.converted(tracer.tensor(*v), wanted));
  }
  verify(replay.graph.body());
  return std::move(replay.graph);
}

Precision precision_named(const std::string& text) {
  if (text == "full") return Precision::full;
  if (text == "bf16") return Precision::bf16;
  fail("precision: expected full or bf16, got ", quoted(text, 100));
}

}  // namespace tenon::train
