#include "tenon/ops/batch_norm.h"

#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/norm.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle batch_norm;
static Handle functional, no_training, no_stats, backward;

namespace {

using loop::Compute;
using loop::Expr;

// Positions of arguments shared by the forward forms; -1: absent.
struct Form {
  int weight = 1, bias = 2, running_mean, running_var, training, momentum, eps;
};
constexpr Form with_stats{1, 2, 3, 4, 5, 6, 7}, without_training{1, 2, 3, 4, -1, 5, 6},
    without_stats{1, 2, -1, -1, 3, 4, 5};

size_t at(int position) { return static_cast<size_t>(position); }
bool trains(const ArgsView& call, Form f) { return f.training >= 0 && call.flag(at(f.training)); }

Metas forward_meta(const ArgsView& m, Form f, bool updated) {
  const TensorMeta& x = m.meta(0);
  m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
  m.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x);
  DType dtype = f.running_mean >= 0 ? statistics_dtype(m, 0, {1, 2, 3, 4}) : statistics_dtype(m, 0, {1, 2});
  for (int p : {f.weight, f.bias, f.running_mean, f.running_var})
    if (p >= 0 && m.given(at(p)))
      m.require(m.meta(at(p)).rank() == 1 &&
                    !(m.meta(at(p)).sizes[0].is_int() && x.sizes[1].is_int() && m.meta(at(p)).sizes[0] != x.sizes[1]),
                m.op.schema.args[at(p)].name, ": expected ", x.sizes[1], " numbers, one per channel, got ",
                m.meta(at(p)));
  TensorMeta out = like(x, x.sizes),
             saved = like(x, {trains(m, f) || f.running_mean < 0 ? x.sizes[1] : SymInt(0)}, dtype);
  out.strides = normalized_strides(x);
  if (!updated) return {out, saved, saved};
  TensorMeta mean = like(m.meta(at(f.running_mean)), m.meta(at(f.running_mean)).sizes);
  TensorMeta var = like(m.meta(at(f.running_var)), m.meta(at(f.running_var)).sizes);
  return {out, saved, saved, mean, var};
}

// All places of a channel.
Sizes places(const Sizes& sizes) {
  Sizes out = sizes;
  out.erase(1);
  return out;
}

void lower_forward(Lower& l, Form f, bool updated) {
  Ref x = l[0];
  bool batch = trains(l, f) || f.running_mean < 0;
  // Statistics in double, as PyTorch has them on a CPU: with few samples the gradient is a difference of nearly equal numbers.
  DType dtype = DType::f64;
  Compute type = Compute::f64;
  Sizes channels = {x.size(1)}, extents = places(x.sizes());
  double eps = l.number(at(f.eps));
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
    mean = l[at(f.running_mean)];
    variance = l[at(f.running_var)];
  }
  Ref invstd = l.temporary(dtype, channels, [&](const Index& i) {
    return l.constant(1, type) / loop::sqrt(cast(variance.at(i), type) + eps);
  });
  l.tensor(l.out(0), [&](const Index& i) {
    Index c = {i[1]};
    Expr y = (x.at(i) - cast(mean.at(c), type)) * invstd.at(c);
    if (l.given(at(f.weight))) y = y * cast(l[at(f.weight)].at(c), type);
    return l.given(at(f.bias)) ? y + cast(l[at(f.bias)].at(c), type) : y;
  });
  if (batch) {
    l.copy(mean, l.out(1));
    l.copy(invstd, l.out(2));
  }
  if (!updated) return;
  Ref old_mean = l[at(f.running_mean)], old_var = l[at(f.running_var)];
  if (!batch) {
    l.copy(old_mean, l.out(3));
    l.copy(old_var, l.out(4));
    return;
  }
  // What is remembered is the unbiased variance.
  double momentum = l.number(at(f.momentum));
  auto blend = [&](Expr fresh, Expr old) { return fresh * momentum + cast(old, fresh.type()) * (1 - momentum); };
  l.tensor(l.out(3), [&](const Index& i) { return blend(mean.at(i), old_mean.at(i)); });
  l.tensor(l.out(4), [&](const Index& i) { return blend(variance.at(i) * (n() / (n() - 1)), old_var.at(i)); });
}

// With c = x - mean: dx = w * invstd * (g - mean(g) - c * invstd² * mean(g * c)); with fixed statistics only the first
// term.
void lower_gradient(Lower& l) {
  Ref g = l[0], x = l[1];
  bool train = l.flag(7);
  DType dtype = DType::f64;   // as the forward
  Compute type = Compute::f64;
  Sizes channels = {x.size(1)}, extents = places(x.sizes());
  Ref mean = train ? l[5] : l[3];
  Ref invstd = train ? l[6] : l.temporary(dtype, channels, [&](const Index& i) {
    return l.constant(1, type) / loop::sqrt(cast(l[4].at(i), type) + l.number(8));
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
  if (l.wants(0))
    l.tensor(l.out(0), [&](const Index& i) {
      Index c = {i[1]};
      Expr d = cast(g.at(i), type), n = cast(l.extent(count(extents)), type), s = cast(invstd.at(c), type);
      if (train) d = d - a.at(c) / n - centered(i) * (b.at(c) * s * s / n);
      d = d * s;
      return l.given(2) ? d * cast(l[2].at(c), type) : d;
    });
  if (l.wants(1)) l.tensor(l.out(1), [&](const Index& i) { return b.at(i) * cast(invstd.at(i), type); });
  if (l.wants(2)) l.copy(a, l.out(2));
}

Grads forward_rule(Vjp& v, Form f) {
  if (!v.grad(0)) return {};
  bool batch = trains(v, f) || f.running_mean < 0;
  std::vector<bool> mask = {v.needs(0), v.needs(1), v.needs(2)};
  // With statistics of the batch the running ones are not needed, and not to be kept: the program updates them.
  CallArg mean = batch ? CallArg() : v.arg(at(f.running_mean)), var = batch ? CallArg() : v.arg(at(f.running_var));
  Results r = backward(v.grad(0), v[0], v.arg(1), mean, var, v.out(1), v.out(2), batch, v.arg(at(f.eps)), mask);
  return {r[0], r[1], r[2]};
}

void write(const Tensor& to, const Tensor& value) {
  static const Op& copy_into = registry().in_place_form(copy.op());
  call_op(copy_into, {to, value, false});
}

// Out, saved mean and saved inverse deviation; running statistics, where there are any, are written.
Results normalized(const ArgsView& b, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                   const Tensor& var, bool training, double momentum, double eps) {
  if (!training) {
    b.require(mean && var, "running_mean and running_var are needed where training is False");
    return no_training(x, weight, bias, mean, var, momentum, eps);
  }
  b.require(bool(mean) == bool(var), "expected both running_mean and running_var, or neither");
  if (!mean) return no_stats(x, weight, bias, true, momentum, eps);
  Results r = functional(x, weight, bias, mean, var, true, momentum, eps);
  write(mean, r[3]);
  write(var, r[4]);
  r.values.resize(3);
  return r;
}

// Each instance is a channel of a batch of one.
Results instance_normalized(Build& b) {
  Tensor x = b[0], mean = b[3], var = b[4];
  b.require(x.rank() >= 2, "expected an input of at least 2 dimensions, got ", x.meta());
  bool input_stats = b.flag(5);
  b.require(input_stats || (mean && var), "running_mean and running_var are needed where use_input_stats is False");
  SymInt n = x.size(0), c = x.size(1);
  auto repeated = [&](const Tensor& t) -> Tensor {
    return t ? Tensor(reshape(expand(t, Sizes{n, c}), Sizes{n * c})) : none;
  };
  Sizes flat = x.sizes();
  flat[0] = 1;
  flat[1] = n * c;
  Tensor wide = view(contiguous(x), flat), weight = repeated(b[1]), bias = repeated(b[2]);
  Tensor y;
  if (!input_stats) y = no_training(wide, weight, bias, repeated(mean), repeated(var), b.arg(6), b.arg(7))[0];
  else if (!mean) y = no_stats(wide, weight, bias, true, b.arg(6), b.arg(7))[0];
  else {
    Results r = functional(wide, weight, bias, repeated(mean), repeated(var), true, b.arg(6), b.arg(7));
    auto averaged = [&](const Tensor& t) -> Tensor { return tenon::mean(view(t, Sizes{n, c}), Sizes{SymInt(0)}); };
    write(mean, averaged(r[3]));
    write(var, averaged(r[4]));
    y = r[0];
  }
  return view(y, x.sizes());
}

Tensor no_reserve(const Tensor& x) {
  return full(Sizes{SymInt(0)}, 0, kw("dtype", DType::u8), kw("device", x.meta().device));
}

}  // namespace

void register_batch_norm(Registry& ops) {
  // Running statistics are written although the schema does not say so: the op is expanded wherever writes matter.
  ops.add(batch_norm, {
      .schema = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                "running_var, bool training, float "
                "momentum, float eps, bool cudnn_enabled) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            if (b["input"].rank() == 1 && b["input"].size(0) == SymInt(0))
              return clone(b["input"]);  // nothing to normalize, whatever its dims
            return one(normalized(b, b["input"], b["weight"], b["bias"], b["running_mean"], b["running_var"], b.flag("training"), b.number("momentum"), b.number("eps"))[0]);
          },
  });
  ops.add(functional, {
      .schema = "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, "
                "Tensor running_mean, Tensor running_var, bool "
                "training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor "
                "running_mean_out, Tensor running_var_out)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return forward_meta(m, with_stats, true); },
      .lower = [](Lower& l) { lower_forward(l, with_stats, true); },
      .vjp = {{"input, weight, bias, running_mean, running_var, training, momentum, eps", [](Vjp& v) { return forward_rule(v, with_stats); }}},
  });
  ops.add(no_training, {
      .schema = "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, "
                "Tensor running_mean, Tensor running_var, float "
                "momentum, float eps) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return forward_meta(m, without_training, false); },
      .lower = [](Lower& l) { lower_forward(l, without_training, false); },
      .vjp = {{"input, weight, bias, running_mean, running_var, momentum, eps", [](Vjp& v) { return forward_rule(v, without_training); }}},
  });
  ops.add(no_stats, {
      .schema = "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool "
                "training, float momentum, float eps) -> "
                "(Tensor, Tensor, Tensor)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return forward_meta(m, without_stats, false); },
      .lower = [](Lower& l) { lower_forward(l, without_stats, false); },
      .vjp = {{"input, weight, bias, training, momentum, eps", [](Vjp& v) { return forward_rule(v, without_stats); }}},
  });
  ops.add({
      .schema = "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
                "Tensor(b!) running_var, bool "
                "training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return normalized(b, b["input"], b["weight"], b["bias"], b["running_mean"], b["running_var"], b.flag("training"), b.number("momentum"), b.number("eps")); },
  });
  ops.add({
      .schema = "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                "running_var, bool training, float "
                "momentum, float eps) -> (Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) { return normalized(b, b["input"], b["weight"], b["bias"], b["running_mean"], b["running_var"], b.flag("training"), b.number("momentum"), b.number("eps")); },
  });
  ops.add({
      .schema = "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
                "Tensor(b!) running_var, float "
                "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose =
          [](Build& b) {
            Results r = normalized(b, b["input"], b["weight"], b["bias"], b["running_mean"], b["running_var"], true, b.number("momentum"), b.number("eps"));
            r.values.emplace_back(no_reserve(b["input"]));
            return r;
          },
  });
  ops.add({
      .schema = "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
                "running_var, float momentum, float "
                "eps) -> (Tensor, Tensor, Tensor, Tensor)",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Results r = normalized(b, b["input"], b["weight"], b["bias"], b["running_mean"], b["running_var"], false, b.number("momentum"), b.number("eps"));
            r.values.emplace_back(no_reserve(b["input"]));
            return r;
          },
  });
  ops.add(
      backward,
      {
          .schema =
              "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? "
              "running_var, Tensor? "
              "save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
          .kind = OpKind::reduction,
          .meta = [](MetaCall& m) -> Metas {
            const TensorMeta& x = m.meta("input");
            m.require(m.flag("train") ? m.given("save_mean") && m.given("save_invstd") : m.given("running_mean") && m.given("running_var"), "expected ",
                      m.flag("train") ? "saved" : "running", " statistics where train is ", m.flag("train") ? "True" : "False");
            TensorMeta out = like(x, x.sizes);
            out.strides = normalized_strides(x);
            TensorMeta parameter = like(x, {x.sizes[1]}, m.given("weight") ? m.meta("weight").dtype : x.dtype);
            return masked_metas(m, 9, {out, parameter, parameter});
          },
          .lower = lower_gradient,
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
