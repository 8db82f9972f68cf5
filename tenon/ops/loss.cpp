#include "tenon/ops/loss.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

using loop::Compute;
using loop::Expr;

int64_t reduction_of(const ArgsView& call) {
  int64_t reduction = call.constant("reduction");
  call.require(reduction >= 0 && reduction <= 2, "reduction: expected 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  return reduction;
}

Tensor reduce_loss(const Tensor& each, const ArgsView& call) {
  int64_t reduction = reduction_of(call);
  if (reduction == 0) return each;
  return reduction == 1 ? mean_all(each) : sum_all(each);
}

Tensor spread_gradient(const Tensor& each, const ArgsView& call) {
  return call.constant("reduction") == 1 ? Tensor(div(each, each.numel())) : each;
}

Expr LossOperands::operator[](const char* arg) const {
  return l.is_tensor(arg) ? cast(l[arg].broadcast_at(i), type) : Expr();
}

static std::vector<const TensorMeta*> operand_metas(const ArgsView& call, const char* operands) {
  std::vector<const TensorMeta*> metas;
  for (size_t i = 0; i < call.args.size(); ++i)
    if (is_among(call.op.schema.args[i].name, operands) && call.is_tensor(i)) metas.push_back(&call.meta(i));
  return metas;
}

static Sizes loss_sizes(const ArgsView& call, const char* operands) {
  Sizes sizes;
  for (const TensorMeta* meta : operand_metas(call, operands)) sizes = broadcast(sizes, meta->sizes, call);
  return sizes;
}

static TensorMeta elementwise_meta(const ArgsView& m, const char* operands) {
  std::vector<const TensorMeta*> metas = operand_metas(m, operands);
  Sizes sizes = loss_sizes(m, operands);
  DType dtype = common_dtype(m, operands);
  m.require(is_floating(dtype), "expected floating point tensors, got ", *metas[0]);
  TensorMeta out = like(*metas[0], sizes, dtype);
  out.strides = pointwise_strides(sizes, metas);
  return out;
}

Metas loss_meta(const ArgsView& m, const char* operands) {
  TensorMeta each = elementwise_meta(m, operands);
  return reduction_of(m) == 0 ? each : like(each, {});
}

void lower_loss(Lower& l, const char* operands, LossFormula loss) {
  Compute type = loop::compute_of(common_dtype(l, operands));
  auto at = [&](const Index& i) { return loss(l, LossOperands{l, i, type}); };
  int64_t reduction = l.constant("reduction");
  if (reduction == 0) return l.tensor(at);
  Sizes sizes = loss_sizes(l, operands);
  l.tensor([&](const Index&) {
    Expr total = l.sum(sizes, at);
    return reduction == 1 ? total / cast(l.extent(count(sizes)), type) : total;
  });
}

Metas loss_gradient_meta(const ArgsView& m, const char* operands) {
  TensorMeta out = elementwise_meta(m, operands);
  const TensorMeta& grad = m.meta("grad_output");
  bool fits = grad.rank() <= out.rank();
  for (size_t d = 0; fits && d < grad.rank(); ++d) {
    SymInt own = grad.sizes[d], wanted = out.sizes[out.rank() - grad.rank() + d];
    fits = own == SymInt(1) || !statically_true(sym::ne(own, wanted));
  }
  m.require(fits, "grad_output: expected sizes that broadcast to ", out.sizes, ", got ", grad);
  out.strides = contiguous_strides(out.sizes);
  return out;
}

void lower_loss_gradient(Lower& l, LossFormula slope) {
  Compute type = loop::compute_of(l.out().dtype());
  SymInt n = count(l.out().sizes());
  bool mean = l.constant("reduction") == 1;
  l.tensor([&](const Index& i) {
    Expr g = cast(l["grad_output"].broadcast_at(i), type);
    if (mean) g = g / cast(l.extent(n), type);
    return slope(l, LossOperands{l, i, type}) * g;
  });
}

Results loss_gradient(const Build& b, const Tensor& slope) { return one(spread_gradient(slope * b["grad_output"], b)); }

}  // namespace tenon
