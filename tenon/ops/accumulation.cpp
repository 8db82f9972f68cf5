#include "tenon/ops/accumulation.h"

namespace tenon {

WideResult::WideResult(Lower& l, Ref out) : l(l), out(out) {
  DType compute = computable(out.dtype());
  target = compute == out.dtype() || out.dtype() == DType::boolean ? out : l.temporary(compute, Sizes(out.sizes()));
}
void WideResult::finish() {
  if (target.id != out.id) l.copy(target, out);
}

void accumulate(Lower& l, const Sizes& domain, const std::function<void(Ref, const Index&)>& body) {
  Ref out = l.out();
  DType compute = computable(out.dtype());
  Ref target = compute == out.dtype() ? out : l.temporary(compute, Sizes(out.sizes()));
  l.fill(target, l.constant(0, loop::compute_of(compute)));
  l.stage(domain, [&](const Index& i) { body(target, i); });
  if (target.id != out.id) l.copy(target, out);
}

}  // namespace tenon
