#include "tenon/ops/normalization.h"

#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

DType statistics_dtype(const ArgsView& call, std::initializer_list<const char*> parameters) {
  DType own = call.meta("input").dtype;
  for (const char* p : parameters)
    if (call.given(p) && call.meta(p).dtype != own) {
      call.require((own == DType::f16 || own == DType::bf16) && call.meta(p).dtype == DType::f32,
                   "expected parameters of dtype ", own, " or f32 beside a half precision input, got ", call.meta(p));
      return DType::f32;
    }
  return own;
}

Sizes normalized_strides(const TensorMeta& input) {
  for (MemoryFormat format : {MemoryFormat::channels_last, MemoryFormat::channels_last_3d}) {
    size_t rank = format == MemoryFormat::channels_last ? 4 : 5;
    if (input.rank() == rank && !is_contiguous(input) && is_contiguous(input, format)) return input.strides;
  }
  return contiguous_strides(input.sizes);
}

void require_parameter(const ArgsView& call, const char* parameter, const Sizes& sizes) {
  if (!call.given(parameter)) return;
  const TensorMeta& p = call.meta(parameter);
  call.require(p.rank() == sizes.size() && !statically_true(sym::ne(count(p.sizes), count(sizes))), parameter,
               ": expected sizes ", sizes, ", got ", p);
}

}  // namespace tenon
