#include "tenon/ops/normalization.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

DType statistics_dtype(const ArgsView& call, std::initializer_list<const char*> parameters) {
  DType own = call.meta("input").dtype;
  for (const char* p : parameters)
    if (call.given(p) && call.meta(p).dtype != own) {
      call.require(is_half(own) && call.meta(p).dtype == DType::f32, "expected parameters of dtype ", own,
                   " or f32 beside a half precision input, got ", call.meta(p));
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

std::array<Tensor, 3> normalization_gradient(const NormalizationGradient& of) {
  DType dtype = computable(of.input.dtype());
  Tensor g = to(of.grad, dtype), x = to(of.input, dtype), centered, rstd;
  auto average = [&](const Tensor& t) { return Tensor(mean(t, of.over, true)); };
  if (of.fixed_rstd) {
    centered = x - to(of.fixed_mean, dtype);
    rstd = to(of.fixed_rstd, dtype);
  } else {
    Tensor own = average(x);
    centered = x - (own + detach(to(of.mean, dtype) - own));
    Tensor variance = average(centered * centered), saved = to(of.rstd, dtype);
    Tensor eps = detach(reciprocal(saved * saved) - variance);
    rstd = rsqrt(variance + eps);
  }
  Tensor normal = centered * rstd, weighted = of.weight ? g * to(of.weight, dtype) : g;
  Tensor by_input = weighted * rstd;
  if (!of.fixed_rstd) by_input = (weighted - average(weighted) - normal * average(weighted * normal)) * rstd;
  auto total = [&](const Tensor& t) { return of.parameter_over.empty() ? t : Tensor(sum(t, of.parameter_over, true)); };
  return {by_input, total(g * normal), total(g)};
}

Results masked_results(const Build& b, const std::array<Tensor, 3>& gradients) {
  b.supports(!meets_complex(b.args), "complex tensors are not supported yet");
  Metas metas = *infer(b.op, b.args);
  Results out;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const TensorMeta* meta = metas.values[i].get<TensorMeta>();
    if (!meta) out.values.emplace_back();
    else out.values.emplace_back(Tensor(to(reshape(gradients[i], meta->sizes), meta->dtype)));
  }
  return out;
}

}  // namespace tenon
