// The operators of quantized_decomposed: quantized tensors as plain integers, their scales beside them.
#include "tenon/ops/quantization.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

std::optional<QuantizedRange> quantized_range(DType dtype) {
  switch (dtype) {
    case DType::u8: return QuantizedRange{0, 255};
    case DType::i8: return QuantizedRange{-128, 127};
    case DType::u16: return QuantizedRange{0, 65535};
    case DType::i16: return QuantizedRange{-32768, 32767};
    case DType::i32: return QuantizedRange{-2147483648.0, 2147483647.0};
    default: return std::nullopt;
  }
}

QuantizedRange range_argument(const ArgsView& call, DType dtype) {
  std::optional<QuantizedRange> held = quantized_range(dtype);
  call.supports(held.has_value(), "quantized values of ", dtype, " are not supported; use 8, 16 or 32 bits");
  QuantizedRange range = *held;
  if (call.given("quant_min")) range.low = call.number("quant_min");
  if (call.given("quant_max")) range.high = call.number("quant_max");
  call.require(range.low >= held->low && range.high <= held->high, "expected quant_min and quant_max within ", dtype,
               ", got ", range.low, " and ", range.high);
  return range;
}

Tensor along_axis(const ArgsView& call, const Tensor& per_channel, const Tensor& x, size_t axis) {
  call.require(per_channel.rank() == 1, "expected one number for each channel, got ", per_channel.meta());
  Sizes sizes(x.rank(), SymInt(1));
  sizes[axis] = per_channel.size(0);
  return view(per_channel, sizes);
}

Tensor only_element(const ArgsView& call, Slot arg) {
  Tensor t = call[arg];
  call.require(!t.numel().is_int() || t.numel() == SymInt(1), "expected a tensor of one element, got ", t.meta());
  return t.rank() == 0 ? t : Tensor(view(t, Sizes{}));
}

namespace {

Tensor widened(const ArgsView& b, Slot arg) {
  Tensor x = b[arg];
  b.require(x.dtype() == DType::f32 || is_half(x.dtype()), "expected a tensor of f32, f16 or bf16, got ", x.meta());
  return to(x, DType::f32);
}
Tensor within(const Tensor& x, QuantizedRange range) { return clamp(x, range.low, range.high); }

// A number or a tensor of one: PyTorch takes the element out, as f64, and computes with it in f32.
Tensor scale_of(const ArgsView& b, const char* arg) {
  return b.is_tensor(arg) ? to(only_element(b, arg), DType::f64)
                          : Tensor(scalar_tensor(b.arg(arg), kw("dtype", DType::f64)));
}
CallArg zero_point_of(const ArgsView& b) {
  return b.is_tensor("zero_point") ? CallArg(to(only_element(b, "zero_point"), DType::f32)) : b.arg("zero_point");
}

Results quantized_tensor(Build& b) {
  Tensor x = widened(b, "input"), inverse = to(reciprocal(scale_of(b, "scale")), DType::f32);
  DType dtype = *b.dtype("dtype");
  Tensor shifted = add(round(mul(x, inverse)), zero_point_of(b));
  if (!b.is_tensor("quant_min")) return one(to(within(shifted, range_argument(b, dtype)), dtype));
  b.supports(quantized_range(dtype).has_value(), "quantized values of ", dtype, " are not supported");
  Tensor low = to(only_element(b, "quant_min"), DType::f32), high = to(only_element(b, "quant_max"), DType::f32);
  return one(to(minimum(maximum(shifted, low), high), dtype));
}

void require_quantized(const ArgsView& b) {
  b.require(b["input"].dtype() == *b.dtype("dtype"), "expected a tensor of ", *b.dtype("dtype"), ", got ",
            b["input"].meta());
  b.supports(quantized_range(*b.dtype("dtype")).has_value(), "quantized values of ", *b.dtype("dtype"),
             " are not supported; use 8, 16 or 32 bits");
}

Results dequantized_tensor(Build& b) {
  require_quantized(b);
  DType dtype = b.dtype("out_dtype").value_or(DType::f32);
  b.require(is_floating(dtype), "out_dtype: expected a floating point dtype, got ", dtype);
  Tensor x = to_copy(b["input"], kw("dtype", dtype));
  return one(
      to(mul(sub(x, zero_point_of(b)), to(scale_of(b, "scale"), dtype == DType::f64 ? dtype : DType::f32)), dtype));
}

size_t axis_of(const ArgsView& b) { return b.dim("axis", b["input"].rank()); }

Results quantized_channels(Build& b) {
  Tensor x = widened(b, "input"), scales = along_axis(b, b["scales"], x, axis_of(b)),
         zeros = along_axis(b, b["zero_points"], x, axis_of(b));
  DType dtype = *b.dtype("dtype");
  return one(to(within(round(x * reciprocal(scales)) + zeros, range_argument(b, dtype)), dtype));
}

Results dequantized_channels(Build& b) {
  require_quantized(b);
  range_argument(b, *b.dtype("dtype"));
  Tensor x = b["input"], scales = along_axis(b, b["scales"], x, axis_of(b));
  if (b.given("zero_points")) x = x - along_axis(b, b["zero_points"], x, axis_of(b));
  return one(to(x * scales, b.dtype("out_dtype").value_or(DType::f32)));
}

void require_per_token(const ArgsView& b) {
  const Tensor x = b["input"];
  b.require(x.rank() >= 1, "expected at least one dimension, got ", x.meta());
  Sizes tokens = x.sizes();
  tokens.back() = 1;
  SymInt count = 1;
  for (const SymInt& s : tokens) count = count * s;
  for (const char* arg : {"scales", "zero_points"})
    b.require(!b[arg].numel().is_int() || !count.is_int() || b[arg].numel() == count, arg,
              ": expected one number for each of ", count, " tokens, got ", b[arg].meta());
}

Results quantized_tokens(Build& b) {
  require_per_token(b);
  DType dtype = *b.dtype("dtype");
  Tensor x = b["input"] * reciprocal(b["scales"]);
  return one(to(within(round(x + b["zero_points"]), range_argument(b, dtype)), dtype));
}

Results dequantized_tokens(Build& b) {
  Tensor x = (b["input"] - b["zero_points"]) * b["scales"];
  return one(to(x, *b.dtype("output_dtype")));
}

// Rows of one group each. A group larger than a row is the row.
Tensor grouped(const ArgsView& b) {
  Tensor x = b["input"];
  b.require(x.rank() == 2, "expected a matrix, got ", x.meta());
  SymInt group = b.integer("group_size"), columns = x.size(-1);
  b.require(group.is_int() && group.as_int() > 1, "group_size: expected more than 1, got ", group);
  if (columns.is_int() && group.as_int() > columns.as_int() && b["scales"].size(-1) == SymInt(1)) group = columns;
  b.require(!columns.is_int() || (columns.as_int() > 0 && columns.as_int() % group.as_int() == 0),
            "expected rows of a multiple of ", group, " elements, got ", x.meta());
  return reshape(x, Sizes{-1, group});
}
Tensor per_group(const Tensor& t) { return reshape(t, Sizes{-1, 1}); }

Results quantized_groups(Build& b) {
  DType dtype = *b.dtype("dtype");
  Tensor x = grouped(b) * reciprocal(per_group(b["scales"])) + per_group(b["zero_points"]);
  return one(reshape(to(within(round(x), range_argument(b, dtype)), dtype), b["input"].sizes()));
}

Results dequantized_groups(Build& b) {
  Tensor x = grouped(b);
  if (b.given("zero_points")) x = x - per_group(b["zero_points"]);
  else x = sub(x, scalar_tensor(0, kw("dtype", DType::i32)));
  return one(to(reshape(x * per_group(b["scales"]), b["input"].sizes()), *b.dtype("output_dtype")));
}

struct Extremes {
  Tensor least, largest;  // at most 0, at least 0
  Extremes(const Tensor& x, const Sizes& dims, bool keepdim) {
    Tensor low = amin(x, dims, keepdim), high = amax(x, dims, keepdim);
    least = minimum(low, zeros_like(low));
    largest = maximum(high, zeros_like(high));
  }
};

Tensor chosen_from(const ArgsView& b) {
  Tensor x = b["input"];
  b.require(x.dtype() == DType::f32 || is_half(x.dtype()), "expected a tensor of f32, f16 or bf16, got ", x.meta());
  b.require(b.number("quant_min") <= 0 && b.number("quant_max") >= 0 && b.number("quant_min") < b.number("quant_max"),
            "expected quant_min and quant_max on both sides of 0, got ", b.number("quant_min"), " and ",
            b.number("quant_max"));
  return x;
}
Results scale_and_zero(const Tensor& scale, const Tensor& zero) {
  return {{CallArg(to(scale, DType::f64)), CallArg(to(zero, DType::i64))}};
}

Results chosen_scale(Build& b) {
  Extremes found(chosen_from(b), {}, false);
  double low = b.number("quant_min"), high = b.number("quant_max");
  Tensor eps = full(Sizes{1}, b.arg("eps"), kw("dtype", DType::f32));
  Tensor scale = maximum((found.largest - found.least) / (high - low), eps);
  Tensor zero = rsub(to(round(found.least / scale), DType::i32), b.arg("quant_min"));
  return scale_and_zero(scale, clamp(zero, b.arg("quant_min"), b.arg("quant_max")));
}

Results chosen_symmetric_scale(Build& b) {
  Extremes found(chosen_from(b), {}, false);
  double half = (b.number("quant_max") - b.number("quant_min")) / 2;
  Tensor eps = full(Sizes{1}, b.arg("eps"), kw("dtype", DType::f32));
  Tensor scale = maximum(maximum(neg(found.least), found.largest) / half, eps);
  return scale_and_zero(scale, full(Sizes{1}, *b.dtype("dtype") == DType::u8 ? 128 : 0, kw("dtype", DType::i64)));
}

// Of the dtypes that PyTorch's exporter notes down: its own kernel gives f32 for both.
Results chosen_token_scale(Build& b) {
  b.supports(*b.dtype("dtype") == DType::i8, "expected the dtype i8, got ", *b.dtype("dtype"));
  Tensor largest = amax(abs(b["input"]), Sizes{-1}, true);
  if (largest.dtype() == DType::f16) largest = to(largest, DType::f32);
  Tensor scale = clamp_min(largest, 1e-5) / 127;
  return scale_and_zero(scale, zeros_like(scale));
}

Results chosen_asymmetric_token_scale(Build& b) {
  Extremes found(b["input"], {-1}, true);
  constexpr double low = -128, high = 127;
  Tensor scale = clamp_min((found.largest - found.least) / (high - low), 0x1p-23);
  Tensor least = found.least / scale, largest = found.largest / scale;
  Tensor zero = where((low + least) + (high + largest) > 0.0, low - least, high - largest);
  return scale_and_zero(scale, round(clamp(zero, low, high)));
}

// Zero points beside x, or a dtype's least: what fake quantization clamps before it goes back.
struct FakeQuantized {
  Tensor value, mask;
  FakeQuantized(Build& b) {
    Tensor x = b["input"];
    b.require(x.dtype() == DType::f32, "expected a tensor of f32, got ", x.meta());
    Tensor scale = along_axis(b, to(b["scales"], DType::f32), x, axis_of(b)),
           zero = along_axis(b, to(b["zero_points"], DType::i32), x, axis_of(b));
    Tensor shifted = round(x * reciprocal(scale)) + zero;
    double low = b.number("quant_min"), high = b.number("quant_max");
    value = (clamp(shifted, low, high) - zero) * scale;
    mask = logical_and(shifted >= low, shifted <= high);
  }
};

}  // namespace

void register_quantization(Registry& ops) {
  auto add = [&](const char* schema, DecomposeRule meaning) {
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = meaning});
  };
  // PyTorch takes numbers out of tensors here: nothing flows through.
  auto add_without_gradient = [&](const char* schema, DecomposeRule meaning) {
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = meaning, .vjp = no_gradient()});
  };
  add_without_gradient(
      "quantized_decomposed::quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
      "quant_max, ScalarType dtype) -> Tensor",
      quantized_tensor);
  add_without_gradient(
      "quantized_decomposed::quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, "
      "int quant_max, ScalarType dtype) -> Tensor",
      quantized_tensor);
  add_without_gradient(
      "quantized_decomposed::quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor "
      "quant_min, Tensor quant_max, ScalarType dtype) -> Tensor",
      quantized_tensor);
  add_without_gradient(
      "quantized_decomposed::dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int "
      "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      dequantized_tensor);
  add_without_gradient(
      "quantized_decomposed::dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int "
      "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      dequantized_tensor);
  add_without_gradient(
      "quantized_decomposed::dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor "
      "quant_min, Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      dequantized_tensor);
  add("quantized_decomposed::quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int "
      "quant_min, int quant_max, ScalarType dtype) -> Tensor",
      quantized_channels);
  add("quantized_decomposed::dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int "
      "quant_min, int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
      dequantized_channels);
  add("quantized_decomposed::quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
      "quant_max, ScalarType dtype) -> Tensor",
      quantized_tokens);
  add("quantized_decomposed::dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
      "quant_max, ScalarType dtype, ScalarType output_dtype) -> Tensor",
      dequantized_tokens);
  add("quantized_decomposed::quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int "
      "quant_min, int quant_max, ScalarType dtype, int group_size) -> Tensor",
      quantized_groups);
  add("quantized_decomposed::dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int "
      "quant_min, int quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor",
      dequantized_groups);
  add("quantized_decomposed::choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
      "dtype) -> (Tensor, Tensor)",
      chosen_scale);
  add("quantized_decomposed::choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
      "ScalarType dtype) -> (Tensor, Tensor)",
      chosen_symmetric_scale);
  add("quantized_decomposed::choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
      chosen_token_scale);
  add("quantized_decomposed::choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)",
      chosen_asymmetric_token_scale);
  add("quantized_decomposed::_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, "
      "Tensor)",
      chosen_asymmetric_token_scale);
  add_without_gradient("quantized_decomposed::convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor",
                       [](Build& b) -> Results { return to_copy(b["input"], kw("dtype", b.arg("dtype"))); });
  ops.add({
      .schema = "quantized_decomposed::fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int "
                "axis, int quant_min, int quant_max) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(FakeQuantized(b).value); },
      .vjp = {{"input",
               [](Vjp& v) {
                 Build b(v.op, v.args);
                 return v.grad() * FakeQuantized(b).mask;
               }}},
  });
}

}  // namespace tenon
