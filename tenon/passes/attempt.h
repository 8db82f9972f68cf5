// A call that may not go together, asked about and not made. For passes/ only.
#pragma once
#include "tenon/trace/trace.h"

namespace tenon {

/// What the rule of an operator says: the metas of the results, or why there are none.
struct Attempt {
  std::optional<Metas> metas;
  std::string reason;        // where there are none
  bool unsupported = false;  // nobody can say
};

/// Rules refuse by an Error; here, and only here, that is an answer. The tensors that the operator needs must be given.
Attempt attempt(const Op& op, std::span<const CallArg> args);

}  // namespace tenon
