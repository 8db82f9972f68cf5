#include "tenon/rules/op_def.h"

namespace tenon {

Grads gradients(Vjp& call) {
  Grads all(call.args.size());
  for (const GradFormula& f : call.op.def->vjp) {
    if (!*f.of) continue;  // no_gradient
    SmallVector<size_t, 6> of;
    bool wanted = false;
    for (const std::string& name : split(f.of, ',')) {
      int at = call.op.schema.find(trim(name));
      expect(at >= 0, call.op.name(), " has no argument ", name, " that a gradient could belong to");
      of.push_back(static_cast<size_t>(at));
      wanted = wanted || call.needed[of.back()];
    }
    if (!wanted) continue;
    Grads given = f.formula(call);
    expect(given.size() <= of.size(), call.op.name(), ": ", given.size(), " gradients for ", f.of);
    for (size_t i = 0; i < given.size(); ++i)
      if (call.needed[of[i]]) all[of[i]] = std::move(given[i]);
  }
  return all;
}

}  // namespace tenon
