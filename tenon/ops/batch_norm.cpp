#include "tenon/ops/batch_norm.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/gradient_operator.h"
#include "tenon/ops/normalization.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/statistics.h"
#include "tenon/ops/views.h"
#include "tenon/ops/writing.h"
#include "tenon/rules/lowering_options.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle batch_norm;
static Handle batch_norm_functional, batch_norm_no_training, batch_norm_no_stats, batch_norm_backward;

namespace {

using loop::Compute;
using loop::Expr;

// The forward forms share their arguments; some have no running statistics, some do not say whether they train.
bool has(const ArgsView& call, const char* arg) { return call.op.schema.find(arg) >= 0; }
bool keeps_statistics(const ArgsView& call) { return has(call, "running_mean"); }
bool uses_batch_statistics(const ArgsView& call) {
  return !keeps_statistics(call) || (has(call, "training") && call.flag("training"));
}

void require_per_channel(const ArgsView& m, const TensorMeta& x, std::initializer_list<const char*> args) {
  for (const char* arg : args) {
    if (!has(m, arg) || !m.given(arg)) continue;
    const TensorMeta& t = m.meta(arg);
    bool fits = t.rank() == 1 && !(t.sizes[0].is_int() && x.sizes[1].is_int() && t.sizes[0] != x.sizes[1]);
    m.require(fits, arg, ": expected ", x.sizes[1], " numbers, one per channel, got ", t);
  }
}

Metas forward_meta(const ArgsView& m, bool updated) {
  const TensorMeta& x = m.meta("input");
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
  m.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x);
  DType dtype = keeps_statistics(m) ? statistics_dtype(m, {"weight", "bias", "running_mean", "running_var"})
                                    : statistics_dtype(m, {"weight", "bias"});
  require_per_channel(m, x, {"weight", "bias", "running_mean", "running_var"});
  TensorMeta out = like(x, x.sizes), saved = like(x, {uses_batch_statistics(m) ? x.sizes[1] : SymInt(0)}, dtype);
  out.strides = normalized_strides(x);
  if (!updated) return {out, saved, saved};
  const TensorMeta &mean = m.meta("running_mean"), &var = m.meta("running_var");
  return {out, saved, saved, like(mean, mean.sizes), like(var, var.sizes)};
}

// All places of a channel.
Sizes places(const Sizes& sizes) {
  Sizes out = sizes;
  out.erase(1);
  return out;
}

DType statistics_dtype(DType input) { return lowering_options().double_statistics ? DType::f64 : computable(input); }

/// One over the deviation times the weight.
Ref scale_of(Lower& l, const Ref& invstd, DType elements, Compute type) {
  return l.temporary(elements, {invstd.size(0)}, [&](const Index& i) {
    Expr s = cast(invstd.at(i), type);
    return cast(l.given("weight") ? s * cast(l["weight"].at(i), type) : s, loop::compute_of(elements));
  });
}

void lower_forward(Lower& l, bool updated) {
  Ref x = l["input"];
  bool batch = uses_batch_statistics(l);
  DType dtype = statistics_dtype(x.dtype());
  Compute type = loop::compute_of(dtype);
  Sizes channels = {x.size(1)}, extents = places(x.sizes());
  double eps = l.number("eps");
  auto n = [&] { return cast(l.extent(count(extents)), type); };
  Ref mean, variance;
  if (batch) {
    mean = l.temporary(dtype, channels, [&](const Index& i) {
      return l.sum(extents, [&](const Index& r) { return cast(x.at(r.inserted(1, i[0])), type); }) / n();
    });
    variance = l.temporary(dtype, channels, [&](const Index& i) {
      return l.sum(extents, [&](const Index& r) {
        Expr d = x.at(r.inserted(1, i[0])) - mean.at(i);
        return d * d;
      }) / n();
    });
  } else {
    mean = l["running_mean"];
    variance = l["running_var"];
  }
  Ref invstd = l.temporary(dtype, channels, [&](const Index& i) {
    return l.constant(1, type) / loop::sqrt(cast(variance.at(i), type) + eps);
  });
  // Statistics are wide, elements are not: what a channel needs is rounded once.
  const DType elements = computable(x.dtype());
  const Compute own = loop::compute_of(elements);
  Ref scale = scale_of(l, invstd, elements, type);
  l.tensor(l.out(0), [&](const Index& i) {
    Index c = {i[1]};
    Expr y = (cast(x.at(i), own) - cast(mean.at(c), own)) * scale.at(c);
    return l.given("bias") ? y + cast(l["bias"].at(c), own) : y;
  });
  if (batch) {
    l.copy(mean, l.out(1));
    l.copy(invstd, l.out(2));
  }
  if (!updated) return;
  Ref old_mean = l["running_mean"], old_var = l["running_var"];
  if (!batch) {
    l.copy(old_mean, l.out(3));
    l.copy(old_var, l.out(4));
    return;
  }
  // What is remembered is the unbiased variance.
  double momentum = l.number("momentum");
  auto blend = [&](Expr fresh, Expr old) { return fresh * momentum + cast(old, fresh.type()) * (1 - momentum); };
  l.tensor(l.out(3), [&](const Index& i) { return blend(mean.at(i), old_mean.at(i)); });
  l.tensor(l.out(4), [&](const Index& i) { return blend(variance.at(i) * (n() / (n() - 1)), old_var.at(i)); });
}

// With c = x - mean: dx = w * invstd * (g - mean(g) - c * invstd² * mean(g * c)); with fixed statistics only the first
// term.
void lower_gradient(Lower& l) {
  Ref g = l["grad_out"], x = l["input"];
  bool train = l.flag("train");
  DType dtype = statistics_dtype(x.dtype());
  Compute type = loop::compute_of(dtype);
  Sizes channels = {x.size(1)}, extents = places(x.sizes());
  Ref mean = train ? l["save_mean"] : l["running_mean"];
  Ref invstd = train ? l["save_invstd"] : l.temporary(dtype, channels, [&](const Index& i) {
    return l.constant(1, type) / loop::sqrt(cast(l["running_var"].at(i), type) + l.number("eps"));
  });
  auto centered = [&](const Index& i) { return x.at(i) - cast(mean.at({i[1]}), type); };
  Ref a = l.temporary(dtype, channels), b = l.temporary(dtype, channels);  // sum(g), sum(g * c)
  if (train || l.wants(1) || l.wants(2))
    l.stage(channels, [&](const Index& i) {
      l.store(a, i, l.sum(extents, [&](const Index& r) { return cast(g.at(r.inserted(1, i[0])), type); }));
      l.store(b, i, l.sum(extents, [&](const Index& r) {
        return cast(g.at(r.inserted(1, i[0])), type) * centered(r.inserted(1, i[0]));
      }));
    });
  if (l.wants(0)) {
    const DType elements = computable(x.dtype());
    const Compute own = loop::compute_of(elements);
    auto n = [&] { return cast(l.extent(count(extents)), type); };
    Ref scale = scale_of(l, invstd, elements, type), average, slope;
    if (train) {
      average = l.temporary(elements, channels, [&](const Index& i) { return cast(a.at(i) / n(), own); });
      slope = l.temporary(elements, channels, [&](const Index& i) {
        Expr s = cast(invstd.at(i), type);
        return cast(b.at(i) * s * s / n(), own);
      });
    }
    l.tensor(l.out(0), [&](const Index& i) {
      Index c = {i[1]};
      Expr d = cast(g.at(i), own);
      if (train) d = d - average.at(c) - (cast(x.at(i), own) - cast(mean.at(c), own)) * slope.at(c);
      return d * scale.at(c);
    });
  }
  if (l.wants(1)) l.tensor(l.out(1), [&](const Index& i) { return b.at(i) * cast(invstd.at(i), type); });
  if (l.wants(2)) l.copy(a, l.out(2));
}

// Of input, weight and bias.
Grads forward_vjp(Vjp& v) {
  if (!v.grad()) return {};
  bool batch = uses_batch_statistics(v);
  std::vector<bool> mask = {v.needs("input"), v.needs("weight"), v.needs("bias")};
  // With statistics of the batch the running ones are not needed, and not to be kept: the program updates them.
  CallArg mean = batch ? CallArg() : v.arg("running_mean"), var = batch ? CallArg() : v.arg("running_var");
  Results r = batch_norm_backward(v.grad(), v["input"], v.arg("weight"), mean, var, v.out(1), v.out(2), batch,
                                  v.arg("eps"), mask);
  return {r[0], r[1], r[2]};
}

Results differentiable_gradient(Build& b) {
  Tensor x = b["input"];
  Sizes channels(x.rank(), 1), others;
  channels[1] = x.size(1);
  for (size_t d = 0; d < x.rank(); ++d)
    if (d != 1) others.push_back(static_cast<int64_t>(d));
  auto per_channel = [&](const Tensor& t) { return t ? Tensor(reshape(t, channels)) : none; };
  NormalizationGradient of{
      .grad = b["grad_out"], .input = x, .weight = per_channel(b["weight"]), .over = others, .parameter_over = others};
  if (b.flag("train")) {
    of.mean = per_channel(b["save_mean"]);
    of.rstd = per_channel(b["save_invstd"]);
  } else {
    of.fixed_mean = per_channel(b["running_mean"]);
    of.fixed_rstd = rsqrt(per_channel(b["running_var"]) + b.number("eps"));
  }
  return masked_results(b, normalization_gradient(of));
}

// Out, saved mean and saved inverse deviation; running statistics, where there are any, are written.
Results normalized(const Build& b, bool training) {
  Tensor x = b["input"], weight = b["weight"], bias = b["bias"], mean = b["running_mean"], var = b["running_var"];
  const CallArg &momentum = b.arg("momentum"), &eps = b.arg("eps");
  if (!training) {
    b.require(mean && var, "running_mean and running_var are needed where training is False");
    return batch_norm_no_training(x, weight, bias, mean, var, momentum, eps);
  }
  b.require(bool(mean) == bool(var), "expected both running_mean and running_var, or neither");
  if (!mean) return batch_norm_no_stats(x, weight, bias, true, momentum, eps);
  Results r = batch_norm_functional(x, weight, bias, mean, var, true, momentum, eps);
  write(mean, r[3]);
  write(var, r[4]);
  r.values.resize(3);
  return r;
}

// Of an input without elements, whatever its dimensions: no statistics are written, and gradients are zeros.
Tensor nothing_normalized(const Build& b) {
  Tensor out = clone(b["input"]);
  if (b["weight"]) out = out * select(b["weight"], 0, 0);
  if (b["bias"]) out = out + select(b["bias"], 0, 0);
  return out;
}

// With a fourth result, which only CUDA fills.
Results normalized_with_reserve(const Build& b, bool training) {
  Results r = normalized(b, training);
  r.values.emplace_back(
      Tensor(full(Sizes{SymInt(0)}, 0, kw("dtype", DType::u8), kw("device", b["input"].meta().device))));
  return r;
}

// Each instance is a channel of a batch of one.
Results instance_normalized(Build& b) {
  Tensor x = b["input"], mean = b["running_mean"], var = b["running_var"];
  b.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x.meta());
  bool input_stats = b.flag("use_input_stats");
  const CallArg &momentum = b.arg("momentum"), &eps = b.arg("eps");
  b.require(input_stats || (mean && var), "running_mean and running_var are needed where use_input_stats is False");
  SymInt n = x.size(0), c = x.size(1);
  auto repeated = [&](const Tensor& t) -> Tensor {
    return t ? Tensor(reshape(expand(t, Sizes{n, c}), Sizes{n * c})) : none;
  };
  Sizes flat = x.sizes();
  flat[0] = 1;
  flat[1] = n * c;
  Tensor wide = view(contiguous(x), flat), weight = repeated(b["weight"]), bias = repeated(b["bias"]);
  Tensor y;
  if (!input_stats) y = batch_norm_no_training(wide, weight, bias, repeated(mean), repeated(var), momentum, eps)[0];
  else if (!mean) y = batch_norm_no_stats(wide, weight, bias, true, momentum, eps)[0];
  else {
    Results r = batch_norm_functional(wide, weight, bias, repeated(mean), repeated(var), true, momentum, eps);
    auto averaged = [&](const Tensor& t) -> Tensor { return tenon::mean(view(t, Sizes{n, c}), Sizes{SymInt(0)}); };
    write(mean, averaged(r[3]));
    write(var, averaged(r[4]));
    y = r[0];
  }
  return view(y, x.sizes());
}

}  // namespace

void register_batch_norm(Registry& ops) {
  // Running statistics are written although the schema does not say so: the op is expanded wherever writes matter.
  ops.add(batch_norm,
          {
              .schema = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                        "running_var, bool training, float "
                        "momentum, float eps, bool cudnn_enabled) -> Tensor",
              .kind = OpKind::composite,
              .traits = {.may_alias = true},
              .decompose =
                  [](Build& b) {
                    if (b["input"].numel() == SymInt(0)) return one(nothing_normalized(b));
                    return one(normalized(b, b.flag("training"))[0]);
                  },
          });
  ops.add(batch_norm_functional,
          {
              .schema = "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, "
                        "Tensor running_mean, Tensor running_var, bool "
                        "training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor "
                        "running_mean_out, Tensor running_var_out)",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) { return forward_meta(m, true); },
              .lower = [](Lower& l) { lower_forward(l, true); },
              .vjp = {{"input, weight, bias", forward_vjp}},
          });
  ops.add(batch_norm_no_training,
          {
              .schema = "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
                        "Tensor running_mean, Tensor running_var, float "
                        "momentum, float eps) -> (Tensor, Tensor, Tensor)",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) { return forward_meta(m, false); },
              .lower = [](Lower& l) { lower_forward(l, false); },
              .vjp = {{"input, weight, bias", forward_vjp}},
          });
  ops.add(batch_norm_no_stats,
          {
              .schema = "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
                        "training, float momentum, float eps) -> "
                        "(Tensor, Tensor, Tensor)",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) { return forward_meta(m, false); },
              .lower = [](Lower& l) { lower_forward(l, false); },
              .vjp = {{"input, weight, bias", forward_vjp}},
          });
  ops.add({
      .schema = "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
                "Tensor(b!) running_var, bool "
                "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return normalized(b, b.flag("training")); },
  });
  ops.add({
      .schema = "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                "running_var, bool training, float "
                "momentum, float eps) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return normalized(b, b.flag("training")); },
  });
  ops.add({
      .schema = "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
                "Tensor(b!) running_var, float "
                "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return normalized_with_reserve(b, true); },
  });
  ops.add({
      .schema = "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                "running_var, float momentum, float "
                "eps) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return normalized_with_reserve(b, false); },
  });
  ops.add(
      batch_norm_backward,
      {
          .schema =
              "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
              "running_var, Tensor? "
              "save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
          .kind = OpKind::reduction,
          .meta = [](MetaCall& m) -> Metas {
            const TensorMeta& x = m.meta("input");
            m.require(m.flag("train") ? m.given("save_mean") && m.given("save_invstd")
                                      : m.given("running_mean") && m.given("running_var"),
                      "expected ", m.flag("train") ? "saved" : "running", " statistics where train is ",
                      m.flag("train") ? "True" : "False");
            m.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x);
            require_sizes(m, "grad_out", x.sizes);
            if (m.flag("train")) require_per_channel(m, x, {"weight", "save_mean", "save_invstd"});
            else require_per_channel(m, x, {"weight", "running_mean", "running_var"});
            TensorMeta out = like(x, x.sizes);
            out.strides = normalized_strides(x);
            TensorMeta parameter = like(x, {x.sizes[1]}, m.given("weight") ? m.meta("weight").dtype : x.dtype);
            return masked_metas(m, {out, parameter, parameter});
          },
          .lower = lower_gradient,
          .for_grad = differentiable_gradient,
      });
  ops.add({
      .schema = "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
                "bool use_input_stats, float "
                "momentum, float eps, bool cudnn_enabled) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = instance_normalized,
  });
}

}  // namespace tenon
