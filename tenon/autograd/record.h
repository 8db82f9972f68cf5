// Eager calls that remember what their gradients need.
#pragma once
#include "tenon/autograd/history.h"
#include "tenon/graph/op.h"

namespace tenon::autograd {

/// Executes a call on real tensors. Where gradients are enabled and an argument wants one, the results know where they
/// came from, by the operator's own rule, or by those of what it is made of; a tensor that is written gets the history
/// of what was written, also when it is a view. Everything else goes straight to the dispatcher on top.
CallResults call(const Op& op, CallArgs args);

/// While it lives, calls on this thread go straight to the dispatcher on top, whatever their arguments want: a program
/// is being made of them.
class Unrecorded : ContextScope<bool> {
 public:
  Unrecorded() : ContextScope(&Context::unrecorded, true) {}
};

/// The dispatcher that does this for calls that rules make.
Dispatcher& recorder();

}  // namespace tenon::autograd
