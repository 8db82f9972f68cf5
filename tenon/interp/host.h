// Calls host functions on real tensors.
#pragma once
#include <functional>

#include "tenon/rules/op_def.h"

namespace tenon::interp {

/// What a host function is called with. Results that are none are allocated by the function.
struct HostOperands {
  std::string_view name;  // of the operator, for messages
  tenon_host_function function = nullptr;
  std::span<const Tensor> inputs;
  std::span<Tensor> results;
  std::span<const DType> dtypes;  // of the results
  std::span<const int64_t> params;
  std::span<const std::string> errors;
  int64_t extent = -1, grain = 1;  // -1: one call
  /// A result of these sizes; an Error where they do not fit. Where there is one already, the data ask for other sizes
  /// than it has.
  std::function<Tensor(size_t result, const Sizes& sizes)> allocate;
};
/// An Error with the function's sentence where it refuses.
void call_host(HostOperands& operands);

/// The function of an operator: its own, or that of the kernel library.
tenon_host_function host_function_of(const Op& op);

/// One call of an operator that has a host function.
CallResults run_host(const Op& op, std::span<const CallArg> args);

}  // namespace tenon::interp
