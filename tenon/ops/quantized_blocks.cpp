// The operators of torchao: one scale for each block of a tensor, blocks being whole tensors, rows, groups of a row.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/quantization.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

namespace {

// A tensor with its blocks as dimensions of their own.
struct Blocks {
  Sizes sizes, reduced, dims;  // of the tensor seen so; with 1 where a block lies; which those are
  Blocks(const ArgsView& b, const Tensor& x) {
    Sizes block = b.ints("block_size");
    b.require(block.size() == x.rank(), "block_size: expected a number for each dimension of ", x.meta(), ", got ",
              block);
    for (size_t d = 0; d < block.size(); ++d) {
      SymInt size = x.size(static_cast<int64_t>(d));
      bool whole = block[d] == size, split = !whole && !(block[d] == SymInt(1));
      if (split) {
        b.require(!statically_true(sym::ne(sym::mod(size, block[d]), SymInt(0))), "expected dimension ", d, " of ",
                  x.meta(), " to be a multiple of its block of ", block[d]);
        add(sym::floor_div(size, block[d]), false);
        add(block[d], true);
      } else {
        add(size, !(block[d] == SymInt(1)));
      }
    }
  }
  Tensor of(const Tensor& x) const { return reshape(x, sizes); }
  Tensor beside(const ArgsView& b, const char* arg) const {
    Tensor t = b[arg];
    SymInt wanted = 1;
    for (const SymInt& s : reduced) wanted = wanted * s;
    b.require(!statically_true(sym::ne(t.numel(), wanted)), arg, ": expected ", wanted,
              " numbers, one for each block, got ", t.meta());
    return reshape(t, reduced);
  }

 private:
  void add(const SymInt& size, bool is_reduced) {
    if (is_reduced) dims.push_back(SymInt(static_cast<int64_t>(sizes.size())));
    sizes.push_back(size);
    reduced.push_back(is_reduced ? SymInt(1) : size);
  }
};

void require_float(const ArgsView& b, const Tensor& x) {
  b.require(x && (x.dtype() == DType::f32 || is_half(x.dtype())), "expected a tensor of f32, f16 or bf16, got ",
            describe(b.arg("input")));
}

Results quantized(Build& b) {
  Tensor x = b["input"];
  require_float(b, x);
  DType dtype = *b.dtype("output_dtype");
  QuantizedRange range = range_argument(b, dtype);
  b.require(b.given("zero_point"), "zero_point: expected a tensor, got None");
  Blocks blocks(b, x);
  Tensor shifted = round(blocks.of(x) * reciprocal(blocks.beside(b, "scale"))) + blocks.beside(b, "zero_point");
  return one(to(reshape(clamp(shifted, range.low, range.high), x.sizes()), dtype));
}

Results dequantized(Build& b) {
  Tensor x = b["input"];
  DType given = *b.dtype("input_dtype"), dtype = *b.dtype("output_dtype");
  b.require(x.dtype() == given, "expected a tensor of ", given, ", got ", x.meta());
  b.require(dtype == DType::f32 || is_half(dtype), "output_dtype: expected f32, f16 or bf16, got ", dtype);
  range_argument(b, given);
  Blocks blocks(b, x);
  Tensor wide = to_copy(blocks.of(x), kw("dtype", dtype));
  if (b.given("zero_point")) wide = wide - to(blocks.beside(b, "zero_point"), dtype);
  return one(to(reshape(wide * blocks.beside(b, "scale"), x.sizes()), dtype));
}

double smallest_normal(DType dtype) { return dtype == DType::f16 ? 0x1p-14 : 0x1p-126; }

Results chosen(Build& b) {
  Tensor x = b["input"];
  require_float(b, x);
  DType target = *b.dtype("target_dtype");
  QuantizedRange range = range_argument(b, target);
  Blocks blocks(b, x);
  bool keepdim = b.flag("keepdim");
  Tensor wide = blocks.of(x);
  Tensor low = blocks.dims.empty() ? wide : Tensor(amin(wide, blocks.dims, keepdim)),
         high = blocks.dims.empty() ? wide : Tensor(amax(wide, blocks.dims, keepdim));
  low = minimum(low, zeros_like(low));
  high = maximum(high, zeros_like(high));
  double eps = b.given("eps") ? b.number("eps") : smallest_normal(x.dtype());
  const std::string& mapping = b.string("mapping_type");
  Tensor scale, zero;
  std::optional<DType> zero_dtype = b.dtype("zero_point_dtype");
  if (mapping == "ASYMMETRIC") {
    scale = clamp_min((high - low) / (range.high - range.low), eps);
    zero = clamp(rsub(round(low / scale), range.low), range.low, range.high);
    if (!zero_dtype) zero_dtype = DType::i32;
  } else {
    b.require(mapping == "SYMMETRIC" || mapping == "SYMMETRIC_NO_CLIPPING_ERR",
              "mapping_type: expected SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR or ASYMMETRIC, got ", quoted(mapping));
    if (mapping == "SYMMETRIC") {
      scale = maximum(neg(low), high) / ((range.high - range.low) / 2);
    } else {
      Tensor of_low = low / range.low, of_high = high / range.high;
      scale = where(of_low > of_high, of_low, of_high);
    }
    double middle = static_cast<double>(static_cast<int64_t>((range.high + range.low + 1) / 2));
    zero = full_like(scale, middle);
    scale = clamp_min(scale, eps);
  }
  if (keepdim) {
    Sizes block = b.ints("block_size"), sizes;
    for (size_t d = 0; d < block.size(); ++d)
      sizes.push_back(sym::floor_div(x.size(static_cast<int64_t>(d)), block[d]));
    scale = reshape(scale, sizes);
    zero = reshape(zero, sizes);
  }
  return {{CallArg(to(scale, b.dtype("scale_dtype").value_or(x.dtype()))),
           CallArg(zero_dtype ? to(zero, *zero_dtype) : zero)}};
}

// Bytes times bytes, summed in 32 bits.
Tensor product(const ArgsView& b, const char* left, const char* right) {
  Tensor x = b[left], y = b[right];
  b.require((x.dtype() == DType::i8 || x.dtype() == DType::u8) && (y.dtype() == DType::i8 || y.dtype() == DType::u8) &&
                x.rank() == 2 && y.rank() == 2,
            "expected matrices of i8 or u8, got ", x.meta(), " and ", y.meta());
  return mm(to(x, DType::i32), to(y, DType::i32));
}

}  // namespace

void register_quantized_blocks(Registry& ops) {
  auto add = [&](const char* schema, DecomposeRule meaning) {
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = meaning});
  };
  add("torchao::quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
      "output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor",
      quantized);
  add("torchao::dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
      "input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor",
      dequantized);
  add("torchao::choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, "
      "Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? "
      "zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)",
      chosen);
  ops.add({
      .schema = "_int_mm(Tensor self, Tensor mat2) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(product(b, "self", "mat2")); },
  });
}

}  // namespace tenon
