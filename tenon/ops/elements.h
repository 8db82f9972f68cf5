// Operands and results of rules that are plain functions on real tensors (OpDef::kernel).
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// The elements in row-major order, widened. T is double or int64_t.
template <class T>
std::vector<T> elements(const Tensor& x);
extern template std::vector<double> elements<double>(const Tensor&);
extern template std::vector<int64_t> elements<int64_t>(const Tensor&);

/// A tensor of these elements in row-major order, rounded to the meta's dtype.
template <class T>
Tensor made(const TensorMeta& meta, const std::vector<T>& values);
extern template Tensor made<double>(const TensorMeta&, const std::vector<double>&);
extern template Tensor made<int64_t>(const TensorMeta&, const std::vector<int64_t>&);

/// What the op's meta rule says of this call; it refuses wrong ones. Results that are none are left out.
std::vector<TensorMeta> own_metas(const ArgsView& call);
TensorMeta own_meta(const ArgsView& call);

}  // namespace tenon
