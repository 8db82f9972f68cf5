#include "tenon/passes/attempt.h"

#include "tenon/rules/infer.h"

namespace tenon {

Attempt attempt(const Op& op, std::span<const CallArg> args) {
  Attempt out;
  try {
    require_given(op, args);
    out.metas = infer_any(op, args);
  } catch (const Unsupported& e) {
    out.unsupported = true;
    out.reason = e.what();
  } catch (const Error& e) { out.reason = e.what(); }
  return out;
}

}  // namespace tenon
