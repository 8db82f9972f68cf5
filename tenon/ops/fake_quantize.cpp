// Quantization that is only simulated, for training: values go to the nearest that an integer could stand for, and
// gradients pass where nothing was clamped.
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/quantization.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/ops/writing.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle cachemask, cachemask_channel, cachemask_tensor, learnable_tensor_backward, learnable_channel_backward,
    moving_average;

namespace {

// An element's integer before it is clamped, and what becomes of it.
struct Simulated {
  Tensor integer, value, mask;
  double low, high;
  Simulated(const ArgsView& b, const Tensor& x, const Tensor& scale, const Tensor& zero)
      : low(b.number("quant_min")), high(b.number("quant_max")) {
    b.require(is_floating(x.dtype()), "expected a floating point tensor, got ", x.meta());
    b.require(low <= high, "expected quant_min <= quant_max, got ", low, " and ", high);
    DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    integer = add(round(mul(to(x, wide), to(reciprocal(scale), wide))), to(zero, wide));
    value = to(mul(sub(clamp(integer, low, high), to(zero, wide)), to(scale, wide)), x.dtype());
    mask = logical_and(integer >= low, integer <= high);
  }
};

Tensor number(const ArgsView& b, Slot arg, DType dtype) { return scalar_tensor(b.arg(arg), kw("dtype", dtype)); }

Simulated simulated_tensor(const ArgsView& b) {
  if (b.is_tensor("scale"))
    return Simulated(b, b["self"], to(only_element(b, "scale"), DType::f32), only_element(b, "zero_point"));
  double low = b.number("quant_min"), high = b.number("quant_max"), zero = b.number("zero_point");
  b.require(zero >= low && zero <= high, "zero_point: expected a number from quant_min to quant_max, got ", zero);
  return Simulated(b, b["self"], number(b, "scale", DType::f32), number(b, "zero_point", DType::f32));
}

Simulated simulated_channels(const ArgsView& b) {
  Tensor x = b["self"];
  size_t axis = b.dim("axis", x.rank());
  b.require(b["scale"].dtype() == DType::f32, "scale: expected a tensor of f32, got ", b["scale"].meta());
  b.require(b["zero_point"].dtype() == DType::i32 || is_floating(b["zero_point"].dtype()),
            "zero_point: expected a tensor of i32, f32 or f16, got ", b["zero_point"].meta());
  return Simulated(b, x, along_axis(b, b["scale"], x, axis), along_axis(b, b["zero_point"], x, axis));
}

Results pair(const Tensor& a, const Tensor& b) { return {{CallArg(a), CallArg(b)}}; }
GradFormulas masked() {
  return {{"self", [](Vjp& v) { return v.grad() * v.out(1); }}};
}

// A zero point that is learned is rounded before it is used.
struct Learned {
  Tensor x, scale, zero;
  Learned(const ArgsView& b, bool per_channel) : x(b["self"]) {
    double low = b.number("quant_min"), high = b.number("quant_max");
    Tensor rounded = clamp(round(to(b["zero_point"], DType::f32)), low, high);
    if (per_channel) {
      size_t axis = b.dim("axis", x.rank());
      scale = along_axis(b, b["scale"], x, axis);
      zero = along_axis(b, rounded, x, axis);
    } else {
      scale = only_element(b, "scale");
      b.require(!rounded.numel().is_int() || rounded.numel() == SymInt(1), "zero_point: expected one element, got ",
                rounded.meta());
      zero = view(rounded, Sizes{});
    }
  }
};

// Of x, scale and zero point (LSQ): where clamped, the scale moves the end of the range, the zero point all of it.
Results learned_gradients(const ArgsView& b, bool per_channel) {
  Learned l(b, per_channel);
  Simulated s(b, l.x, l.scale, l.zero);
  Tensor g = b["grad"];
  Tensor below = s.integer<full_like(s.integer, s.low), above = s.integer> full_like(s.integer, s.high);
  Tensor of_scale = where(below, s.low - l.zero, where(above, s.high - l.zero, (s.value - l.x) / l.scale));
  Tensor of_zero = where(s.mask, 0.0, neg(l.scale));
  double factor = b.number("grad_factor");
  Sizes over;
  if (per_channel) {
    size_t axis = b.dim("axis", l.x.rank());
    for (size_t d = 0; d < l.x.rank(); ++d)
      if (d != axis) over.push_back(SymInt(static_cast<int64_t>(d)));
  }
  auto gathered = [&](const Tensor& each, const Tensor& like) -> Tensor {
    Tensor product = g * each * factor;
    bool whole = per_channel && over.empty();
    return to(reshape(whole ? product : Tensor(sum(product, over)), like.sizes()), like.dtype());
  };
  return {{CallArg(g * s.mask), CallArg(gathered(of_scale, b["scale"])), CallArg(gathered(of_zero, b["zero_point"]))}};
}

// The scale and zero point for values from `least` to `largest`, as FBGEMM chooses them.
struct Chosen {
  Tensor scale, zero;
  Chosen(Tensor least, Tensor largest, double low, double high, bool symmetric) {
    Tensor spans = logical_and(least<0.0, largest> 0.0);
    if (symmetric) {
      double half = std::trunc((high - low) / 2);
      Tensor unit = maximum(abs(least / -(half + 1)), abs(largest / half));
      least = where(spans, unit * -(half + 1), least);
      largest = where(spans, unit * half, largest);
    }
    least = minimum(least, zeros_like(least));
    largest = maximum(largest, zeros_like(largest));
    Tensor exact = to((to(largest, DType::f64) - to(least, DType::f64)) / (high - low), DType::f32);
    exact = where(logical_or(eq(exact, 0.0), isinf(reciprocal(exact))), 0.1, exact);
    constexpr double smallest = static_cast<double>(6.1e-5f);
    Tensor small = exact < smallest;
    scale = where(small, smallest, exact);
    Tensor longer = div(full_like(exact, smallest), exact);
    Tensor low_end = where(eq(least, 0.0), 0.0, where(eq(largest, 0.0), -smallest * (high - low), least * longer));
    Tensor high_end = where(eq(least, 0.0), smallest * (high - low), where(eq(largest, 0.0), 0.0, largest * longer));
    least = to(where(small, low_end, least), DType::f64);
    largest = to(where(small, high_end, largest), DType::f64);
    Tensor wide = to(scale, DType::f64), from_low = low - least / wide, from_high = high - largest / wide;
    Tensor low_error = std::abs(low) + abs(least / wide), high_error = std::abs(high) + abs(largest / wide);
    Tensor start = where(low_error < high_error, from_low, from_high);
    if (symmetric) start = where(spans, (low + high) / 2, start);
    zero = to(round(clamp(start, low, high)), DType::i32);
  }
};

// Output, mask, and what the observer holds afterwards.
Results observed(Build& b) {
  Tensor x = b["self"];
  b.require(x.dtype() == DType::f32, "expected a tensor of f32, got ", x.meta());
  bool per_row = b.flag("per_row_fake_quant");
  double low = b.number("quant_min"), high = b.number("quant_max");
  Tensor observing = ne(only_element(b, "observer_on"), 0), simulating = ne(only_element(b, "fake_quant_on"), 0);
  Sizes over;
  size_t axis = per_row ? b.dim("ch_axis", x.rank()) : 0;
  b.require(axis == 0, "ch_axis: expected 0, as PyTorch does on a CPU, got ", axis);
  for (size_t d = 0; d < x.rank(); ++d)
    if (!per_row || d != axis) over.push_back(SymInt(static_cast<int64_t>(d)));
  bool elementwise = per_row && over.empty();
  Tensor least = elementwise ? x : Tensor(amin(x, over)), largest = elementwise ? x : Tensor(amax(x, over));
  auto averaged = [&](const char* arg, const Tensor& seen) -> Tensor {
    Tensor before = b[arg],
           now = expand(reshape(seen, per_row ? Sizes{-1} : Sizes(before.rank(), SymInt(1))), before.sizes());
    Tensor moved = add(before, mul(sub(now, before), b.arg("averaging_const")));
    return where(observing, where(isinf(before), now, moved), before);
  };
  Tensor running_min = averaged("running_min", least), running_max = averaged("running_max", largest);
  Chosen chosen(running_min, running_max, low, high, b.flag("symmetric_quant"));
  Tensor scale = where(simulating, reshape(chosen.scale, b["scale"].sizes()), b["scale"]);
  Tensor zero =
      where(simulating, to(reshape(chosen.zero, b["zero_point"].sizes()), b["zero_point"].dtype()), b["zero_point"]);
  Tensor beside_scale = per_row ? along_axis(b, scale, x, axis) : Tensor(view(scale, Sizes{})),
         beside_zero = per_row ? along_axis(b, zero, x, axis) : Tensor(view(zero, Sizes{}));
  Simulated s(b, x, beside_scale, beside_zero);
  return {{CallArg(Tensor(where(simulating, s.value, x))), CallArg(Tensor(logical_or(s.mask, logical_not(simulating)))),
           CallArg(running_min), CallArg(running_max), CallArg(scale), CallArg(zero)}};
}

Results observed_in_place(Build& b, bool with_mask) {
  Results all = call_op(moving_average.op(), CallArgs(b.args.begin(), b.args.end()));
  const char* written[] = {"running_min", "running_max", "scale", "zero_point"};
  for (size_t i = 0; i < 4; ++i) write(b[written[i]], all[i + 2]);
  if (with_mask) return pair(all[0], all[1]);
  return one(all[0]);
}

}  // namespace

void register_fake_quantize(Registry& ops) {
  ops.add(cachemask,
          {
              .schema = "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, "
                        "int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
              .kind = OpKind::composite,
              .decompose =
                  [](Build& b) {
                    Simulated s = simulated_tensor(b);
                    return pair(s.value, s.mask);
                  },
              .vjp = masked(),
          });
  ops.add(
      cachemask_tensor,
      {
          .schema = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor "
                    "zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor "
                    "mask)",
          .kind = OpKind::composite,
          .decompose =
              [](Build& b) {
                Simulated s = simulated_tensor(b);
                Tensor on = ne(only_element(b, "fake_quant_enabled"), 0);
                return pair(where(on, s.value, b["self"]), logical_or(s.mask, logical_not(on)));
              },
          .vjp = masked(),
      });
  ops.add(cachemask_channel,
          {
              .schema = "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int "
                        "axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
              .kind = OpKind::composite,
              .decompose =
                  [](Build& b) {
                    Simulated s = simulated_channels(b);
                    return pair(s.value, s.mask);
                  },
              .vjp = masked(),
          });
  auto composite = [&](const char* schema, DecomposeRule meaning) {
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = meaning});
  };
  composite(
      "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> "
      "Tensor",
      [](Build& b) {
        return one(
            cachemask(b["self"], b.arg("scale"), b.arg("zero_point"), b.arg("quant_min"), b.arg("quant_max"))[0]);
      });
  composite(
      "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
      "int quant_max) -> Tensor",
      [](Build& b) {
        Tensor on = full(Sizes{1}, 1, kw("dtype", DType::i64));
        return one(
            cachemask_tensor(b["self"], b["scale"], b["zero_point"], on, b.arg("quant_min"), b.arg("quant_max"))[0]);
      });
  composite(
      "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int "
      "quant_max) -> Tensor",
      [](Build& b) {
        return one(cachemask_channel(b["self"], b["scale"], b["zero_point"], b.arg("axis"), b.arg("quant_min"),
                                     b.arg("quant_max"))[0]);
      });
  for (const char* schema : {"fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
                             "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor"})
    composite(schema, [](Build& b) -> Results {
      b.require(b["mask"].dtype() == DType::boolean && b["mask"].sizes() == b["grad"].sizes(),
                "mask: expected booleans of the sizes of ", b["grad"].meta(), ", got ", b["mask"].meta());
      return one(b["grad"] * b["mask"]);
    });

  // Scale and zero point as parameters.
  ops.add({
      .schema =
          "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, "
          "int quant_max, float grad_factor=1.) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Learned l(b, false);
            return one(Simulated(b, l.x, l.scale, l.zero).value);
          },
      .vjp = {{"self, scale, zero_point",
               [](Vjp& v) -> Grads {
                 Results r = learnable_tensor_backward(v.grad(), v["self"], v["scale"], v["zero_point"],
                                                       v.arg("quant_min"), v.arg("quant_max"), v.arg("grad_factor"));
                 return {r[0], r[1], r[2]};
               }}},
  });
  ops.add(learnable_tensor_backward,
          {
              .schema = "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, "
                        "Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, "
                        "Tensor)",
              .kind = OpKind::composite,
              .decompose = [](Build& b) { return learned_gradients(b, false); },
          });
  ops.add({
      .schema =
          "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
          "quant_min, int quant_max, float grad_factor=1.) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Learned l(b, true);
            return one(Simulated(b, l.x, l.scale, l.zero).value);
          },
      .vjp = {{"self, scale, zero_point",
               [](Vjp& v) -> Grads {
                 Results r = learnable_channel_backward(v.grad(), v["self"], v["scale"], v["zero_point"], v.arg("axis"),
                                                        v.arg("quant_min"), v.arg("quant_max"), v.arg("grad_factor"));
                 return {r[0], r[1], r[2]};
               }}},
  });
  ops.add(learnable_channel_backward,
          {
              .schema = "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, "
                        "Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, "
                        "Tensor, Tensor)",
              .kind = OpKind::composite,
              .decompose = [](Build& b) { return learned_gradients(b, true); },
          });

  // What prepare_qat_pt2e puts into programs: an observer and a simulation in one.
  ops.add(
      moving_average,
      {
          .schema =
              "_fused_moving_avg_obs_fq_helper_functional(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
              "Tensor running_min, Tensor running_max, Tensor scale, Tensor zero_point, float averaging_const, int "
              "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> "
              "(Tensor output, Tensor mask, Tensor running_min_out, Tensor running_max_out, Tensor scale_out, Tensor "
              "zero_point_out)",
          .kind = OpKind::composite,
          .decompose = observed,
          .vjp = masked(),
      });
  auto observing = [&](const char* schema, DecomposeRule meaning) {
    ops.add({.schema = schema, .kind = OpKind::composite, .traits = {.may_alias = true}, .decompose = meaning});
  };
  observing(
      "_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
      "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int "
      "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor "
      "output, Tensor mask)",
      [](Build& b) { return observed_in_place(b, true); });
  observing(
      "fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
      "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int "
      "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor",
      [](Build& b) { return observed_in_place(b, false); });
}

}  // namespace tenon
