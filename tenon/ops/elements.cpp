#include "tenon/ops/elements.h"

#include <algorithm>

#include "tenon/ops/conversion.h"
#include "tenon/rules/infer.h"

namespace tenon {

template <class T>
constexpr DType dtype_for = std::is_same_v<T, double> ? DType::f64 : DType::i64;

template <class T>
std::vector<T> elements(const Tensor& x) {
  Tensor wide = contiguous_copy(to(x, dtype_for<T>));
  auto* data = wide.data<T>();
  return std::vector<T>(data, data + wide.numel().as_int());
}
template std::vector<double> elements<double>(const Tensor&);
template std::vector<int64_t> elements<int64_t>(const Tensor&);

template <class T>
Tensor made(const TensorMeta& meta, const std::vector<T>& values) {
  Tensor wide = Tensor::empty(dtype_for<T>, meta.sizes);
  expect(wide.numel() == SymInt(static_cast<int64_t>(values.size())), values.size(), " elements for ", meta);
  std::copy(values.begin(), values.end(), wide.template mutable_data<T>());
  Tensor out = Tensor::empty(meta);
  copy_elements(to(wide, meta.dtype), out);
  return out;
}
template Tensor made<double>(const TensorMeta&, const std::vector<double>&);
template Tensor made<int64_t>(const TensorMeta&, const std::vector<int64_t>&);

std::vector<TensorMeta> own_metas(const ArgsView& call) {
  std::vector<TensorMeta> out;
  std::optional<Metas> metas = infer(call.op, call.args);
  expect(metas.has_value(), call.op.name(), " has no rule for its results");
  for (const auto& value : metas->values) for_each_tensor(value, [&](const TensorMeta& m) { out.push_back(m); });
  return out;
}

TensorMeta own_meta(const ArgsView& call) { return own_metas(call).at(0); }

}  // namespace tenon
