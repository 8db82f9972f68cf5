#include "tenon/passes/stands_for.h"

#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

std::string described(const ValueInfo& info) {
  return info.type == ValueType::tensor ? text(info.meta) : text("the number ", info.expr);
}

bool may_stand_for(const ValueInfo& said, const ValueInfo& is) {
  if (said.type != is.type) return false;
  if (said.type != ValueType::tensor) return may_equal(said.expr, is.expr);
  bool good = said.meta.dtype == is.meta.dtype && said.meta.rank() == is.meta.rank();
  for (size_t i = 0; good && i < is.meta.rank(); ++i) good = may_equal(said.meta.sizes[i], is.meta.sizes[i]);
  return good;
}

}  // namespace

void require_stands_for(const Node& node, std::string_view what, const ValueInfo& said, const ValueInfo& is) {
  if (may_stand_for(said, is)) return;
  fail(node.op->target, ": ", what, " ", quoted(said.name), " is described as ", described(said), ", but is ",
       described(is));
}

ValueInfo sample_of(const Node& node, const ValueInfo& batch, SymInt dim) {
  require(batch.type == ValueType::tensor && dim.is_int() && dim.as_int() >= 0 &&
              static_cast<size_t>(dim.as_int()) < batch.meta.rank(),
          node.op->target, ": expected a dimension of ", described(batch), ", got ", dim);
  ValueInfo out = batch;
  Sizes sizes = batch.meta.sizes;
  sizes.erase(static_cast<size_t>(dim.as_int()));
  out.meta = make_meta(batch.meta.dtype, sizes, batch.meta.device);
  return out;
}

ValueInfo batch_of(const ValueInfo& sample, SymInt count) {
  ValueInfo out = sample;
  Sizes sizes = {count};
  for (SymInt s : sample.meta.sizes) sizes.push_back(s);
  out.meta = make_meta(sample.meta.dtype, sizes, sample.meta.device);
  return out;
}

}  // namespace tenon
