// How a call of an operator finds who executes it: the dispatcher of this thread's context. interp runs it now, trace
// appends a node, aot's functionalizer replaces writes, autograd notes the call. No rule knows under which of them it
// runs.
#pragma once
#include <span>
#include <vector>

#include "tenon/tensor/arg.h"
#include "tenon/tensor/context.h"
#include "tenon/tensor/tensor.h"

namespace tenon {

struct Op;  // graph/op.h

using CallArg = BasicArg<Tensor>;
extern template struct BasicArg<Tensor>;
extern template struct BasicArg<TensorMeta>;
using CallArgs = std::vector<CallArg>;     // in schema order, one per schema argument, defaults filled in
using CallResults = std::vector<CallArg>;  // one per schema return: a tensor, a list, a number or none

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  /// Executes a call. None where the schema wants something is an Error here, once for every rule and every dispatcher.
  CallResults call(const Op& op, CallArgs args);

 protected:
  virtual CallResults run(const Op& op, CallArgs args) = 0;
};

/// Executes a call with this thread's dispatcher.
CallResults dispatch(const Op& op, CallArgs args);
/// Fails where an argument is None, or has None among its tensors, and the schema does not allow for it.
/// (graph/required.cpp, which knows schemas.)
void require_given(const Op& op, std::span<const CallArg> args);
Dispatcher* top_dispatcher();
/// Of every thread that has set none; interp sets it.
void set_default_dispatcher(Dispatcher* dispatcher);

/// Makes a dispatcher the one of this thread for the life of the scope. Null gives the default.
class DispatchScope : ContextScope<Dispatcher*> {
 public:
  explicit DispatchScope(Dispatcher* dispatcher) : ContextScope(&Context::dispatcher, dispatcher) {}
};

/// Whether calls are recorded for gradients.
inline bool grad_enabled() { return context().grad_enabled; }
class GradMode : ContextScope<bool> {
 public:
  explicit GradMode(bool enabled) : ContextScope(&Context::grad_enabled, enabled) {}
};

}  // namespace tenon
