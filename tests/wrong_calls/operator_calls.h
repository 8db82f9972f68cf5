// Every operator of the public interface, to be called with arguments chosen by their types alone. The build makes the
// table from the schemas (tools/operators).
#pragma once
#include <tenon/tenon.h>

#include <span>

namespace tenon_test {

/// What a call is made of: for each parameter the value of its type. Tensors differ from parameter to parameter.
struct Arguments {
  std::vector<tenon::Tensor> tensors;  // the parameter number i takes the one number i, round and round
  std::vector<tenon::Tensor> list;
  std::vector<std::int64_t> integers = {1, 2};
  std::vector<double> reals = {1, 2};
  std::int64_t integer = 1;
  double real = 0.5;
  bool truth = true;
  tenon::DType dtype = tenon::f32;
  std::string text = "mean";
  const tenon::Tensor& tensor(std::size_t parameter) const { return tensors[parameter % tensors.size()]; }
};

struct OperatorCall {
  const char* signature;
  bool needs_tensor;  // one that is not optional
  void (*call)(const Arguments& a);
};
std::span<const OperatorCall> operator_calls();

}  // namespace tenon_test
