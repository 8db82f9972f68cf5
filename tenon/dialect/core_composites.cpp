// Composites that neither alias nor write, which the core dialect alone replaces: what PyTorch makes of each, call by
// call. What is not here is replaced by what its own block says it is made of.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "tenon/dialect/parts.h"
#include "tenon/dialect/rules.h"
#include "tenon/rules/infer.h"

namespace tenon::dialect {
namespace {

Tensor unfolded(const Tensor& x, SymInt rows) { return aten("view", x, Sizes{rows, x.sizes().back()}); }

Results linear(Build& b) {
  Tensor x = b["input"], weight = b["weight"];
  bool bias = b.given("bias");
  if (x.rank() == 2 && bias) {
    Tensor turned = aten("t", weight);
    return aten("addmm", b["bias"], x, turned);
  }
  if (bias && x.rank() != 2 && is_contiguous(x.meta())) {
    Sizes sizes;
    SymInt rows = 1;
    for (size_t d = 0; d + 1 < x.rank(); ++d) {
      sizes.push_back(x.sizes()[d]);
      rows = rows * x.sizes()[d];
    }
    sizes.push_back(weight.sizes()[0]);
    Tensor flat = unfolded(x, rows);
    Tensor turned = aten("t", weight);
    Tensor product = aten("addmm", b["bias"], flat, turned);
    return aten("view", product, sizes);
  }
  Tensor turned = aten("t", weight);
  Tensor product = aten("matmul", x, turned);
  return bias ? aten("add.Tensor", product, b["bias"]) : one(product);
}

Results matrix_product(Build& b) {
  Tensor x = b["self"], y = b["other"];
  size_t p = x.rank(), q = y.rank();
  if (p == 1 && q == 1) return aten("dot", x, y);
  if (p == 2 && q == 1) return aten("mv", x, y);
  if (p == 1 && q == 2) {
    Tensor product = aten("mm", aten("unsqueeze", x, 0), y);
    return aten("squeeze.dim", product, 0);
  }
  if (p == 2 && q == 2) return aten("mm", x, y);
  if (p >= 3 && q <= 2 && is_contiguous(x.meta())) {  // rows of x in one product
    Sizes sizes;
    SymInt rows = 1;
    for (size_t d = 0; d + 1 < p; ++d) {
      sizes.push_back(x.sizes()[d]);
      rows = rows * x.sizes()[d];
    }
    Tensor flat = unfolded(x, rows);
    if (q == 1) return aten("view", aten("mv", flat, y), sizes);
    sizes.push_back(y.sizes()[1]);
    return aten("view", aten("mm", flat, y), sizes);
  }
  if (p < 2 || q < 2) return {};
  Sizes batch;
  size_t rank = std::max(p, q) - 2;
  SymInt count = 1;
  for (size_t d = 0; d < rank; ++d) {
    SymInt left = d + p - 2 < rank ? SymInt(1) : x.sizes()[d + p - 2 - rank];
    SymInt right = d + q - 2 < rank ? SymInt(1) : y.sizes()[d + q - 2 - rank];
    batch.push_back(left == SymInt(1) ? right : left);
    count = count * batch.back();
  }
  auto spread = [&](const Tensor& t) {
    SymInt rows = t.sizes()[t.rank() - 2], columns = t.sizes()[t.rank() - 1];
    Sizes sizes = batch;
    sizes.push_back(rows);
    sizes.push_back(columns);
    return Tensor(aten("reshape", aten("expand", t, sizes), Sizes{count, rows, columns}));
  };
  Tensor left = spread(x), right = spread(y);
  Sizes sizes = batch;
  sizes.push_back(x.sizes()[p - 2]);
  sizes.push_back(y.sizes()[q - 1]);
  return aten("view", aten("bmm", left, right), sizes);
}

Results convolved(Build& b, bool transposed) {
  Sizes zeros(b["input"].rank() > 2 ? b["weight"].rank() - 2 : 0, SymInt(0));
  Tensor x = b["input"];
  size_t spatial = b["weight"].rank() - 2;
  if (x.rank() != spatial + 2) {  // without a batch
    Tensor wide = aten("unsqueeze", x, 0);
    CallArgs args(b.args.begin(), b.args.end());
    args[0] = wide;
    Tensor made = call_op(b.op, std::move(args));
    return aten("squeeze.dim", made, 0);
  }
  CallArg output = transposed ? b.arg("output_padding") : CallArg(zeros);
  return aten("convolution", x, b["weight"], b.arg("bias"), b.arg("stride"), b.arg("padding"), b.arg("dilation"),
              transposed, output, b.arg("groups"));
}

Results softmaxed(Build& b, std::string_view op) {
  Tensor x = b["self"];
  if (auto dtype = b.dtype("dtype"); dtype && *dtype != x.dtype())
    x = aten("_to_copy", x, kw("dtype", *dtype), kw("layout", Layout::strided), kw("device", x.meta().device));
  return aten(op, x, b.arg("dim"), false);
}

Results as(Build& b, std::string_view op) { return call_op(aten_op(op), CallArgs(b.args.begin(), b.args.end())); }

Results finite(const Tensor& x) {
  if (!is_floating(x.dtype())) return {};
  Tensor bounded = aten("ne.Scalar", aten("abs", x), std::numeric_limits<double>::infinity());
  return aten("mul.Tensor", aten("eq.Tensor", x, x), bounded);
}

Results pooled_along_a_line(Build& b) {
  Tensor wide = aten("unsqueeze", b["self"], -2);
  auto two = [&](const char* name, int64_t other) {
    Sizes list = b.ints(name);
    return list.empty() ? Sizes{} : Sizes{other, list[0]};
  };
  Results both = aten("max_pool2d_with_indices", wide, two("kernel_size", 1), two("stride", 1), two("padding", 0),
                      two("dilation", 1), b.arg("ceil_mode"));
  return {{CallArg(Tensor(aten("squeeze.dim", both[0], -2))), CallArg(Tensor(aten("squeeze.dim", both[1], -2)))}};
}

Results averaged_along_a_line(Build& b) {
  Tensor wide = aten("unsqueeze", b["self"], -2);
  auto two = [&](const char* name, int64_t other) {
    Sizes list = b.ints(name);
    return list.empty() ? Sizes{other, b.ints("kernel_size")[0]} : Sizes{other, list[0]};
  };
  Tensor made = aten("avg_pool2d", wide, two("kernel_size", 1), two("stride", 1), two("padding", 0), b.arg("ceil_mode"),
                     b.arg("count_include_pad"));
  return aten("squeeze.dim", made, -2);
}

// Every channel of every sample is a channel of one sample.
Results normed_by_instance(Build& b) {
  Tensor x = b["input"];
  SymInt batch = x.size(0), channels = x.size(1);
  auto repeated = [&](const char* name) {
    return b.given(name) ? CallArg(Tensor(aten("repeat", b[name], Sizes{batch}))) : CallArg();
  };
  CallArg weight = repeated("weight"), bias = repeated("bias");
  CallArg mean = repeated("running_mean"), variance = repeated("running_var");
  Sizes sizes = x.sizes();
  sizes[0] = 1;
  sizes[1] = batch * channels;
  Tensor flat = aten("view", aten("contiguous", x), sizes);
  Tensor out = aten("batch_norm", flat, weight, bias, mean, variance, b.arg("use_input_stats"), b.arg("momentum"),
                    b.arg("eps"), b.arg("cudnn_enabled"));
  auto update = [&](const char* name, const CallArg& statistics) {
    auto* made = statistics.get<Tensor>();
    if (!made || !b.flag("use_input_stats")) return;
    Tensor kept = aten("alias", b[name]);
    Tensor each = aten("view", *made, Sizes{batch, channels});
    aten("copy_", kept, aten("mean.dim", each, Sizes{0}));
  };
  update("running_mean", mean);
  update("running_var", variance);
  return aten("view", out, x.sizes());
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const std::unordered_map<std::string_view, Rule> all = {
      {"aten::linear", linear},
      {"aten::matmul", matrix_product},
      {"aten::linalg_matmul", matrix_product},
      {"aten::conv1d", [](Build& b) { return convolved(b, false); }},
      {"aten::conv2d", [](Build& b) { return convolved(b, false); }},
      {"aten::conv3d", [](Build& b) { return convolved(b, false); }},
      {"aten::conv_transpose1d", [](Build& b) { return convolved(b, true); }},
      {"aten::conv_transpose2d.input", [](Build& b) { return convolved(b, true); }},
      {"aten::conv_transpose3d.input", [](Build& b) { return convolved(b, true); }},
      {"aten::special_round",
       [](Build& b) { return aten("round.decimals", b["self"], kw("decimals", b.arg("decimals"))); }},
      {"aten::softmax.int", [](Build& b) { return softmaxed(b, "_softmax"); }},
      {"aten::log_softmax.int", [](Build& b) { return softmaxed(b, "_log_softmax"); }},
      {"aten::layer_norm",
       [](Build& b) {
         return one(aten("native_layer_norm", b["input"], b.arg("normalized_shape"), b.arg("weight"), b.arg("bias"),
                         b.arg("eps"))[0]);
       }},
      {"aten::group_norm",
       [](Build& b) {
         Tensor x = b["input"];
         SymInt rest = 1;
         for (size_t d = 2; d < x.rank(); ++d) rest = rest * x.sizes()[d];
         return one(aten("native_group_norm", x, b.arg("weight"), b.arg("bias"), x.sizes()[0], x.sizes()[1], rest,
                         b.arg("num_groups"), b.arg("eps"))[0]);
       }},
      {"aten::max_pool2d",
       [](Build& b) {
         return one(aten("max_pool2d_with_indices", b["self"], b.arg("kernel_size"), b.arg("stride"), b.arg("padding"),
                         b.arg("dilation"), b.arg("ceil_mode"))[0]);
       }},
      {"aten::max_pool3d",
       [](Build& b) {
         return one(aten("max_pool3d_with_indices", b["self"], b.arg("kernel_size"), b.arg("stride"), b.arg("padding"),
                         b.arg("dilation"), b.arg("ceil_mode"))[0]);
       }},
      {"aten::max_pool1d_with_indices", pooled_along_a_line},
      {"aten::max_pool1d", [](Build& b) { return one(pooled_along_a_line(b)[0]); }},
      {"aten::avg_pool1d", averaged_along_a_line},
      {"aten::adaptive_avg_pool1d",
       [](Build& b) -> Results {
         Tensor wide = aten("unsqueeze", b["self"], -2);
         Tensor made = aten("adaptive_avg_pool2d", wide, Sizes{1, b.ints("output_size")[0]});
         return aten("squeeze.dim", made, -2);
       }},
      {"aten::adaptive_avg_pool2d",
       [](Build& b) -> Results {
         Sizes size = b.ints("output_size");
         if (size[0] == SymInt(1) && size[1] == SymInt(1)) return aten("mean.dim", b["self"], Sizes{-1, -2}, true);
         return aten("_adaptive_avg_pool2d", b["self"], b.arg("output_size"));
       }},
      {"aten::adaptive_avg_pool3d",
       [](Build& b) { return aten("_adaptive_avg_pool3d", b["self"], b.arg("output_size")); }},
      {"aten::cross_entropy_loss",
       [](Build& b) -> Results {
         Tensor x = b["self"], target = b["target"];
         if (is_floating(target.dtype()) || b.number("label_smoothing") != 0 || x.rank() > 2) return {};
         Tensor logs = aten("log_softmax.int", x, x.rank() == 1 ? 0 : 1);
         return aten("nll_loss_nd", logs, target, b.arg("weight"), b.arg("reduction"), b.arg("ignore_index"));
       }},
      {"aten::nll_loss_nd",
       [](Build& b) -> Results {
         if (b["self"].rank() > 2) return {};
         return aten("nll_loss", b["self"], b["target"], b.arg("weight"), b.arg("reduction"), b.arg("ignore_index"));
       }},
      {"aten::nll_loss", [](Build& b) { return one(as(b, "nll_loss_forward")[0]); }},
      {"aten::l1_loss",
       [](Build& b) {
         return reduced(Tensor(aten("abs", aten("sub.Tensor", b["self"], b["target"]))), b.constant("reduction"));
       }},
      {"aten::log_sigmoid", [](Build& b) { return one(aten("log_sigmoid_forward", b["self"])[0]); }},
      {"aten::relu6", [](Build& b) { return aten("hardtanh", b["self"], 0, 6); }},
      {"aten::selu", [](Build& b) { return aten("elu", b["self"], 1.6732632423543772, 1.0507009873554805); }},
      {"aten::square", [](Build& b) { return aten("pow.Tensor_Scalar", b["self"], 2); }},
      {"aten::max.other", [](Build& b) { return aten("maximum", b["self"], b["other"]); }},
      {"aten::min.other", [](Build& b) { return aten("minimum", b["self"], b["other"]); }},
      {"aten::isfinite", [](Build& b) { return finite(b["self"]); }},
      {"aten::fliplr", [](Build& b) -> Results { return aten("flip", b["self"], Sizes{1}); }},
      {"aten::flipud", [](Build& b) -> Results { return aten("flip", b["self"], Sizes{0}); }},
      {"aten::__or__.Tensor", [](Build& b) { return aten("bitwise_or.Tensor", b["self"], b["other"]); }},
      {"aten::__and__.Tensor", [](Build& b) { return aten("bitwise_and.Tensor", b["self"], b["other"]); }},
      {"aten::__xor__.Tensor", [](Build& b) { return aten("bitwise_xor.Tensor", b["self"], b["other"]); }},
      {"aten::__or__.Scalar", [](Build& b) { return aten("bitwise_or.Scalar", b["self"], b.arg("other")); }},
      {"aten::__and__.Scalar", [](Build& b) { return aten("bitwise_and.Scalar", b["self"], b.arg("other")); }},
      {"aten::__xor__.Scalar", [](Build& b) { return aten("bitwise_xor.Scalar", b["self"], b.arg("other")); }},
      {"aten::var",
       [](Build& b) {
         return aten("var.correction", b["self"], CallArg(), kw("correction", b.flag("unbiased") ? 1 : 0));
       }},
      {"aten::var_mean",
       [](Build& b) {
         return aten("var_mean.correction", b["self"], CallArg(), kw("correction", b.flag("unbiased") ? 1 : 0));
       }},
      {"aten::std",
       [](Build& b) {
         return aten("std.correction", b["self"], CallArg(), kw("correction", b.flag("unbiased") ? 1 : 0));
       }},
      {"aten::std_mean",
       [](Build& b) {
         return aten("std_mean.correction", b["self"], CallArg(), kw("correction", b.flag("unbiased") ? 1 : 0));
       }},
      {"aten::var.dim",
       [](Build& b) {
         return aten("var.correction", b["self"], b.arg("dim"), kw("correction", b.flag("unbiased") ? 1 : 0),
                     kw("keepdim", b.arg("keepdim")));
       }},
      {"aten::std.dim",
       [](Build& b) {
         return aten("std.correction", b["self"], b.arg("dim"), kw("correction", b.flag("unbiased") ? 1 : 0),
                     kw("keepdim", b.arg("keepdim")));
       }},
      {"aten::type_as",
       [](Build& b) -> Results {
         Tensor x = b["self"], like = b["other"];
         if (x.dtype() == like.dtype()) return one(x);
         return aten("_to_copy", x, kw("dtype", like.dtype()), kw("layout", Layout::strided),
                     kw("device", like.meta().device));
       }},
      {"aten::where.ScalarOther",
       [](Build& b) {
         Tensor x = b["self"];
         DType dtype = infer_any(b.op, b.args).values.at(0).as<TensorMeta>().dtype;
         Tensor other = aten("scalar_tensor", b.arg("other"), kw("dtype", dtype), kw("layout", Layout::strided),
                             kw("device", x.meta().device));
         if (x.dtype() != dtype) x = aten("_to_copy", x, kw("dtype", dtype));
         return aten("where.self", b["condition"], x, other);
       }},
      {"aten::where.ScalarSelf",
       [](Build& b) {
         Tensor y = b["other"];
         DType dtype = infer_any(b.op, b.args).values.at(0).as<TensorMeta>().dtype;
         Tensor self = aten("scalar_tensor", b.arg("self"), kw("dtype", dtype), layout(), device(y));
         if (y.dtype() != dtype) y = aten("_to_copy", y, kw("dtype", dtype));
         return aten("where.self", b["condition"], self, y);
       }},
      {"aten::instance_norm", normed_by_instance},
      {"aten::broadcast_tensors",
       [](Build& b) {
         Sizes sizes;
         for (const Tensor& t : b.tensors("tensors")) sizes = broadcast(sizes, t.sizes(), b);
         std::vector<Tensor> out;
         for (const Tensor& t : b.tensors("tensors"))
           out.push_back(t.sizes() == sizes ? t : Tensor(aten("expand", t, sizes)));
         return many(std::move(out));
       }},
      {"aten::outer",
       [](Build& b) {
         Tensor column = aten("view", b["self"], Sizes{b["self"].sizes()[0], 1});
         return aten("mul.Tensor", column, b["vec2"]);
       }},
      {"aten::rrelu",
       [](Build& b) {
         Tensor x = b["self"];
         Tensor noise = aten("empty.memory_format", x.sizes(), kw("dtype", x.dtype()), kw("layout", Layout::strided),
                             kw("device", x.meta().device), kw("pin_memory", false),
                             kw("memory_format", MemoryFormat::contiguous));
         return aten("rrelu_with_noise", x, noise, b.arg("lower"), b.arg("upper"), b.arg("training"));
       }},
      {"aten::matrix_exp", [](Build& b) { return aten("linalg_matrix_exp", b["self"]); }},
  };
  return all;
}

struct Alias {
  std::string_view name, of;
};
// Names with the same arguments as another operator.
constexpr Alias aliases[] = {
    {"absolute", "abs"},
    {"arccos", "acos"},
    {"arccosh", "acosh"},
    {"arcsin", "asin"},
    {"arcsinh", "asinh"},
    {"arctan", "atan"},
    {"arctan2", "atan2"},
    {"arctanh", "atanh"},
    {"clip", "clamp"},
    {"concat", "cat"},
    {"concatenate", "cat"},
    {"divide", "div"},
    {"fix", "trunc"},
    {"greater", "gt"},
    {"greater_equal", "ge"},
    {"less", "lt"},
    {"less_equal", "le"},
    {"multiply", "mul"},
    {"negative", "neg"},
    {"not_equal", "ne"},
    {"subtract", "sub"},
    {"true_divide", "div"},
    {"ger", "outer"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_erfinv", "erfinv"},
    {"special_exp2", "exp2"},
    {"special_expit", "sigmoid"},
    {"special_expm1", "expm1"},
    {"special_gammaln", "lgamma"},
    {"special_digamma", "digamma"},
    {"special_psi", "digamma"},
    {"special_i0", "i0"},
    {"special_log1p", "log1p"},
    {"special_sinc", "sinc"},
    {"special_xlogy", "xlogy"},
    {"special_logit", "logit"},
    {"special_logsumexp", "logsumexp"},
    {"special_polygamma", "polygamma"},
};

/// The same overload of another operator, which may spell it differently.
const Op* overload_of(std::string_view base, std::string_view overload) {
  static constexpr std::pair<std::string_view, std::string_view> spellings[] = {
      {"default", "Tensor"}, {"other_scalar", "Scalar_Other"}, {"self_scalar", "Scalar_Self"}};
  std::string name = text("aten::", base);
  if (const Op* op = registry().find(overload == "default" ? name : text(name, ".", overload))) return op;
  for (auto [ours, theirs] : spellings)
    if (ours == overload)
      if (const Op* op = registry().find(text(name, ".", theirs))) return op;
  return nullptr;
}

}  // namespace

Rule alias_rule(std::string_view op) {
  std::string_view base = op.substr(6);
  base = base.substr(0, base.find('.'));
  bool in_place = !base.empty() && base.back() == '_';
  if (in_place) base.remove_suffix(1);
  for (const Alias& alias : aliases)
    if (alias.name == base)
      return [](Build& b) -> Results {
        std::string_view name = b.op.schema.base();
        bool writes = name.back() == '_';
        if (writes) name.remove_suffix(1);
        for (const Alias& each : aliases) {
          if (each.name != name) continue;
          const Op* other = overload_of(text(each.of, writes ? "_" : ""), b.op.schema.overload());
          bool alike = other && other->schema.args.size() == b.args.size();
          return alike ? call_op(*other, CallArgs(b.args.begin(), b.args.end())) : Results{};
        }
        return {};
      };
  return nullptr;
}

Rule functional_composite_rule(std::string_view op) {
  if (auto at = rules().find(op); at != rules().end()) return at->second;
  if (Rule family = family_rule(op)) return family;
  return alias_rule(op);
}

}  // namespace tenon::dialect
