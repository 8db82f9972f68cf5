// Forms that write what another operator computes.
#pragma once
#include "tenon/graph/op.h"

namespace tenon {

/// Whether a result of the functional form of `op` goes to this argument. What that form writes itself (the noise of
/// rrelu_with_noise_) is written by then.
inline bool assigns(const Op& op, size_t arg) {
  if (!op.functional || !op.schema.args[arg].writes) return false;
  const std::vector<SchemaArg>& own = op.functional->schema.args;
  return arg >= own.size() || !own[arg].writes;
}

}  // namespace tenon
