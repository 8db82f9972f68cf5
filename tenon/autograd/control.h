// Gradients through control flow. For autograd/ only.
#pragma once
#include <functional>

#include "tenon/trace/trace.h"

namespace tenon {

/// Whether a node runs graphs that it holds.
bool is_control(const Node& node);

/// Replays a control node through which gradients flow so that what its gradient needs is there: a scan also gives what
/// it carried into each step, a loop gives what it carried round by round, of which the last is the result.
void prepare_control(const Node& node, Replay& replay);

struct OperandGradient {
  Value operand;
  Tensor gradient;
};
/// The gradients of the operands that `wanted` asks for, from those of the results (none where nothing arrives), as
/// control nodes whose graphs compute forward and backward of the node's graphs: nothing but what is carried is kept.
std::vector<OperandGradient> through_control(const Node& node, const std::vector<Tensor>& grads, Tracer& tracer,
                                             const std::function<bool(Value)>& wanted);

}  // namespace tenon
