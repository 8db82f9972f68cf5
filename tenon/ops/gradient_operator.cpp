#include "tenon/ops/gradient_operator.h"

#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

void require_sizes(const ArgsView& call, const char* arg, const Sizes& sizes) {
  const TensorMeta& operand = call.meta(arg);
  bool fits = operand.rank() == sizes.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d) fits = !statically_true(sym::ne(operand.sizes[d], sizes[d]));
  call.require(fits, arg, ": expected sizes ", sizes, ", got ", operand);
}

Metas masked_metas(const ArgsView& call, std::initializer_list<TensorMeta> metas) {
  const CallArg& mask = call.arg("output_mask");
  auto* flags = mask.get<std::vector<bool>>();
  call.require(flags && flags->size() == metas.size(), "output_mask: expected ", metas.size(), " booleans, got ",
               describe(mask));
  Metas out;
  for (const TensorMeta& meta : metas) {
    if ((*flags)[out.values.size()]) out.values.emplace_back(meta);
    else out.values.emplace_back();
  }
  return out;
}

}  // namespace tenon
