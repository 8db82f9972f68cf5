// A call of a host function as it is made: which function, on which tensors, with which numbers. The interpreter and
// artifacts both follow it.
//
// Arguments go by the schema, in its order. Tensors are inputs, those of lists one by one, absent ones included. The
// rest are parameters of 64 bits: an integer, a truth or a dtype is one, a real number is the bits of a double, and so
// is every Scalar; what may be absent begins with 1 or 0 for whether it is there, a list with its length, a string with
// its length in bytes, which follow eight to a parameter. Devices, layouts and memory formats are left out. Results are
// the tensors of the schema's results, those of lists one by one; a number that is returned is the element of one.
#pragma once
#include <optional>

#include "runtime/abi.h"
#include "tenon/graph/op.h"
#include "tenon/loop/param.h"
#include "tenon/loop/program.h"

namespace tenon::plan {

template <class T>
struct HostArguments {
  std::vector<T> inputs;  // none: absent
  std::vector<loop::Param> params;
};
/// Over buffers of a program, or over tensors.
template <class T>
HostArguments<T> host_arguments(const Schema& schema, std::span<const BasicArg<T>> args);
extern template HostArguments<loop::BufferRef> host_arguments(const Schema&, std::span<const loop::StepArg>);
extern template HostArguments<Tensor> host_arguments(const Schema&, std::span<const CallArg>);

/// What the function may refuse, by its codes from 1 on, in words for this call: {} still stands for an integer it
/// gives, {real} for a real number.
std::vector<std::string> host_errors(const Op& op, std::span<const loop::StepArg> args);
std::vector<std::string> host_errors(const Op& op, std::span<const CallArg> args);
/// A sentence with its numbers put in, as counts[1], counts[2], ... hold them.
std::string filled_in(const std::string& sentence, std::span<const int64_t> numbers);

struct HostCall {
  std::string_view function;             // of kernels/
  tenon_host_function given = nullptr;   // or this one, of whoever registered the operator
  std::vector<loop::BufferRef> inputs;   // none: absent
  std::vector<loop::BufferRef> results;  // their sizes may be told by the call alone: it allocates those
  std::vector<loop::Param> params;
  std::vector<std::string> errors;
  std::optional<SymInt> extent;  // none: one call. Else iterations, in chunks of `grain` that may run at the same time
  SymInt grain = 1;
};
HostCall host_call(const loop::Program& program, const loop::Call& call);

constexpr int64_t elements_per_chunk = 1024;  // of a function that runs element by element

}  // namespace tenon::plan
