// Linear layers whose weights are integers of 8 or 4 bits, and quantized tables: dequantized, then as in f32.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/blas.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/embedding.h"
#include "tenon/ops/quantization.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {

static Handle unpack_int4, unpack_bits;

namespace {

using loop::Expr;

// Where PyTorch keeps the weight of row n and column k on processors with AVX-512: rows in blocks of 64, of which four
// quarters lie beside each other; what is left over lies in pairs.
struct PackedPlace {
  Expr byte;  // counted over the whole tensor
  Expr high;  // whether it is the byte's upper half
  PackedPlace(Lower& l, const Index& at, SymInt rows, SymInt columns) {
    constexpr int64_t block = 64, quarter = 16;
    Expr n = at[0], k = at[1], in_block = call(loop::Fn::remainder, n, block), start = n - in_block;
    Expr base = call(loop::Fn::floor_div, start * l.extent(columns), int64_t{2}), left = l.extent(rows) - start;
    Expr which = call(loop::Fn::floor_div, in_block, quarter);
    Expr full = k * int64_t{32} + call(loop::Fn::remainder, which, int64_t{2}) * quarter +
                call(loop::Fn::remainder, in_block, quarter);
    Expr rest = call(loop::Fn::floor_div, k * left + in_block, int64_t{2});
    Expr whole = left >= block;
    byte = base + loop::select(whole, full, rest);
    high = loop::select(whole, which >= int64_t{2}, call(loop::Fn::remainder, in_block, int64_t{2}) == int64_t{1});
  }
};

Sizes packed_sizes(const ArgsView& m, const TensorMeta& packed) {
  m.require(packed.rank() == 2 && packed.dtype == DType::u8, "expected packed weights, a matrix of u8, got ", packed);
  return {packed.sizes[0], packed.sizes[1] * 2};
}

Tensor wide(const Tensor& x) { return to(x, x.dtype() == DType::f64 ? DType::f64 : DType::f32); }

void require_rows(const ArgsView& b, const Tensor& x, SymInt columns) {
  b.require(
      x.rank() == 2 && is_floating(x.dtype()) && (!x.size(1).is_int() || !columns.is_int() || x.size(1) == columns),
      "expected a floating point matrix with rows of ", columns, ", got ", x.meta());
}

// weight[row, column] beside one scale for a row, or for each of its groups.
Results looked_up(Build& b, int64_t bits) {
  Tensor weight = b["weight"], scales = b["weight_scales"];
  b.require(weight.rank() == 2 && (weight.dtype() == DType::u8 || weight.dtype() == DType::i8) &&
                (scales.rank() == 1 || scales.rank() == 2) && is_floating(scales.dtype()) &&
                (!scales.size(0).is_int() || !weight.size(0).is_int() || scales.size(0) == weight.size(0)),
            "expected bytes in a matrix and scales for its rows, got ", weight.meta(), " and ", scales.meta());
  if (bits < 8) weight = unpack_bits(weight, bits);
  SymInt groups = scales.rank() == 2 ? scales.size(1) : SymInt(1), columns = weight.size(1);
  b.require(!groups.is_int() || (groups.as_int() > 0 && (!columns.is_int() || columns.as_int() % groups.as_int() == 0)),
            "expected rows of ", groups, " groups, got ", weight.meta());
  Sizes beside = {weight.size(0), groups, 1};
  Tensor table = reshape(weight, Sizes{weight.size(0), groups, -1});
  if (b.given("weight_zero_points")) table = table - reshape(b["weight_zero_points"], beside);
  table = reshape(to(table * reshape(scales, beside), scales.dtype()), weight.sizes());
  std::optional<DType> dtype = b.op.schema.find("dtype") >= 0 ? b.dtype("dtype") : std::nullopt;
  Tensor rows = embedding(table, b["indices"]);
  return one(dtype ? to(rows, *dtype) : rows);
}

}  // namespace

void register_packed_weights(Registry& ops) {
  ops.add(unpack_int4, {
                           .schema = "tenon::unpack_int4(Tensor packed) -> Tensor",
                           .meta = [](MetaCall& m) -> Metas {
                             const TensorMeta& packed = m.meta("packed");
                             return like(packed, packed_sizes(m, packed), DType::i8);
                           },
                           .lower =
                               [](Lower& l) {
                                 Ref packed = l["packed"];
                                 SymInt width = packed.size(1);
                                 l.tensor([&](const Index& i) {
                                   PackedPlace place(l, i, packed.size(0), width * 2);
                                   Expr at = place.byte, row = call(loop::Fn::floor_div, at, l.extent(width));
                                   Expr byte = packed.at({row, at - row * l.extent(width)});
                                   Expr half = loop::select(place.high, call(loop::Fn::shift_right, byte, int64_t{4}),
                                                            call(loop::Fn::bit_and, byte, int64_t{15}));
                                   return half - int64_t{8};
                                 });
                               },
                       });
  ops.add({
      .schema = "_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& w = m.meta("self");
        m.require(w.rank() == 2 && w.dtype == DType::i32, "expected a matrix of i32, got ", w);
        m.require(
            w.sizes[0].is_int() && w.sizes[1].is_int() && w.sizes[0].as_int() % 16 == 0 && w.sizes[1].as_int() % 2 == 0,
            "expected a multiple of 16 rows and an even number of columns, got ", w);
        return like(w, {w.sizes[0], w.sizes[1].as_int() / 2}, DType::u8);
      },
      .lower =
          [](Lower& l) {
            Ref w = l["self"], out = l.out();
            SymInt rows = w.size(0), width = out.size(1);
            l.fill(out, l.constant(0, loop::Compute::i64));
            l.stage(Sizes(w.sizes()), [&](const Index& i) {
              PackedPlace place(l, i, rows, w.size(1));
              Expr row = call(loop::Fn::floor_div, place.byte, l.extent(width));
              Expr value = call(loop::Fn::bit_and, w.at(i), int64_t{15});
              l.store(out, {row, place.byte - row * l.extent(width)},
                      loop::select(place.high, value * int64_t{16}, value), loop::Mode::add);
            });
          },
  });
  ops.add({
      .schema =
          "_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["self"], weight = unpack_int4(b["mat2"]), parameters = b["qScaleAndZeros"];
        int64_t group = b.constant("qGroupSize");
        require_rows(b, x, weight.size(1));
        b.require(group == 32 || group == 64 || group == 128 || group == 256,
                  "qGroupSize: expected 32, 64, 128 or 256, got ", group);
        SymInt rows = weight.size(0), groups = sym::floor_div(weight.size(1), SymInt(group));
        b.require(parameters.sizes() == Sizes{groups, rows, 2}, "qScaleAndZeros: expected sizes ",
                  Sizes{groups, rows, 2}, ", got ", parameters.meta());
        Tensor beside = transpose(wide(parameters), 0, 1);  // rows, groups, scale and zero
        Tensor table = wide(to(reshape(weight, Sizes{rows, groups, group}), DType::f32));
        table = table * Tensor(slice(beside, 2, 0, 1)) + Tensor(slice(beside, 2, 1, 2));
        return one(to(mm(wide(x), transpose(reshape(table, weight.sizes()), 0, 1)), x.dtype()));
      },
  });
  ops.add({
      .schema = "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        Tensor x = b["self"], weight = b["mat2"], scales = b["scales"];
        b.require(weight.rank() == 2 && weight.dtype() == DType::i8, "mat2: expected a matrix of i8, got ",
                  weight.meta());
        require_rows(b, x, weight.size(1));
        b.require(scales.sizes() == Sizes{weight.size(0)}, "scales: expected one for each row of ", weight.meta(),
                  ", got ", scales.meta());
        Tensor product = mm(wide(x), transpose(to(weight, wide(x).dtype()), 0, 1));
        return one(to(product * wide(scales), x.dtype()));
      },
  });

  // Plain tensors are their own dequantized form.
  ops.add({
      .schema = "dequantize.self(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) { return one(to(b["self"], DType::f32)); },
  });

  // Tables as ExecuTorch's exports have them: bytes, or two or four numbers in one.
  ops.add(unpack_bits,
          {
              .schema = "tenon::unpack_bits(Tensor packed, int bits) -> Tensor",
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& packed = m.meta("packed");
                int64_t bits = m.constant("bits");
                m.require(packed.rank() == 2 && packed.dtype == DType::u8 && (bits == 2 || bits == 4),
                          "expected a matrix of u8 with 2 or 4 bits a number, got ", packed, " and ", bits);
                return like(packed, {packed.sizes[0], packed.sizes[1] * (8 / bits)}, DType::i8);
              },
              .lower =
                  [](Lower& l) {
                    Ref packed = l["packed"];
                    int64_t bits = l.ArgsView::constant("bits"), each = 8 / bits, mask = (1 << bits) - 1;
                    l.tensor([&](const Index& i) {
                      Expr byte = packed.at({i[0], call(loop::Fn::floor_div, i[1], each)});
                      Expr place = call(loop::Fn::remainder, i[1], each);
                      if (bits == 4) place = int64_t{1} - place;  // of two the first is the upper half
                      Expr value = call(loop::Fn::bit_and, call(loop::Fn::shift_right, byte, place * bits), mask);
                      return value - (mask + 1) / 2;
                    });
                  },
          });
  auto table = [&](std::initializer_list<const char*> schemas, DecomposeRule meaning) {
    for (const char* schema : schemas) ops.add({.schema = schema, .kind = OpKind::composite, .decompose = meaning});
  };
  table({"quantized_decomposed::embedding_byte(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
         "weight_quant_min, int weight_quant_max, Tensor indices) -> Tensor",
         "quantized_decomposed::embedding_byte.dtype(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
         "int weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None) -> Tensor"},
        [](Build& b) { return looked_up(b, 8); });
  table({"quantized_decomposed::embedding_4bit(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
         "weight_quant_min, int weight_quant_max, Tensor indices) -> Tensor",
         "quantized_decomposed::embedding_4bit.dtype(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
         "int weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None) -> Tensor"},
        [](Build& b) { return looked_up(b, 4); });
  table({"quantized_decomposed::embedding_2bit(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, int "
         "weight_quant_min, int weight_quant_max, Tensor indices) -> Tensor",
         "quantized_decomposed::embedding_2bit.dtype(Tensor weight, Tensor weight_scales, Tensor? weight_zero_points, "
         "int weight_quant_min, int weight_quant_max, Tensor indices, *, ScalarType? dtype=None) -> Tensor"},
        [](Build& b) { return looked_up(b, 2); });
}

}  // namespace tenon
