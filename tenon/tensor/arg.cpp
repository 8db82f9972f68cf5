#include "tenon/tensor/arg.h"

#include "tenon/tensor/arg_members.h"
#include "tenon/tensor/tensor.h"

namespace tenon {

template struct BasicArg<Tensor>;
template struct BasicArg<TensorMeta>;
template BasicArg<Tensor> without_tensors(const BasicArg<Tensor>&);
template BasicArg<TensorMeta> without_tensors(const BasicArg<Tensor>&);
template BasicArg<TensorMeta> without_tensors(const BasicArg<TensorMeta>&);
template BasicArg<Tensor> without_tensors(const BasicArg<TensorMeta>&);

}  // namespace tenon
