// Operators on sizes and numbers: what a program computes from shapes. Named as files name them.
#include "tenon/ops/families.h"
#include "tenon/ops/registry.h"

namespace tenon {
namespace {

using sym::Expr;
using Items = std::span<const Expr>;

Expr truth(Expr x) { return x.is_boolean_typed() ? x : sym::ne(x, Expr(0)); }

}  // namespace

void register_symbolic(Registry& ops) {
  auto add = [&](const char* schema, SymbolicRule rule) { ops.add({.schema = schema, .kind = Kind::symbolic, .symbolic = rule}); };
  add("_operator.add(a, b)", [](Items x) { return x[0] + x[1]; });
  add("_operator.sub(a, b)", [](Items x) { return x[0] - x[1]; });
  add("_operator.mul(a, b)", [](Items x) { return x[0] * x[1]; });
  add("_operator.floordiv(a, b)", [](Items x) { return sym::floor_div(x[0], x[1]); });
  add("_operator.mod(a, b)", [](Items x) { return sym::mod(x[0], x[1]); });
  add("_operator.truediv(a, b)", [](Items x) { return x[0].is_integer_typed() && x[1].is_integer_typed() ? sym::true_div(x[0], x[1]) : sym::float_true_div(x[0], x[1]); });
  add("_operator.pow(a, b)", [](Items x) { return x[0].is_integer_typed() && x[1].is_integer_typed() ? sym::pow(x[0], x[1]) : sym::float_pow(x[0], x[1]); });
  add("_operator.neg(a)", [](Items x) { return -x[0]; });
  add("_operator.pos(a)", [](Items x) { return x[0]; });
  add("_operator.eq(a, b)", [](Items x) { return sym::eq(x[0], x[1]); });
  add("_operator.ne(a, b)", [](Items x) { return sym::ne(x[0], x[1]); });
  add("_operator.lt(a, b)", [](Items x) { return sym::lt(x[0], x[1]); });
  add("_operator.le(a, b)", [](Items x) { return sym::le(x[0], x[1]); });
  add("_operator.gt(a, b)", [](Items x) { return sym::gt(x[0], x[1]); });
  add("_operator.ge(a, b)", [](Items x) { return sym::ge(x[0], x[1]); });
  add("_operator.and_(a, b)", [](Items x) { return x[0].is_boolean_typed() ? sym::logical_and(x[0], x[1]) : sym::bit_and(x[0], x[1]); });
  add("_operator.or_(a, b)", [](Items x) { return x[0].is_boolean_typed() ? sym::logical_or(x[0], x[1]) : sym::bit_or(x[0], x[1]); });
  add("_operator.lshift(a, b)", [](Items x) { return sym::lshift(x[0], x[1]); });
  add("_operator.rshift(a, b)", [](Items x) { return sym::rshift(x[0], x[1]); });
  add("math.trunc(x)", [](Items x) { return sym::trunc(x[0]); });
  add("math.ceil(x)", [](Items x) { return sym::ceil(x[0]); });
  add("math.floor(x)", [](Items x) { return sym::floor(x[0]); });
  add("builtins.round(number)", [](Items x) { return sym::round(x[0]); });
  add("torch.sym_int(a)", [](Items x) { return x[0].is_integer_typed() ? x[0] : sym::trunc(x[0]); });
  add("torch.sym_float(a)", [](Items x) { return x[0].is_integer_typed() ? sym::to_float(x[0]) : x[0]; });
  add("torch.sym_max(a, b)", [](Items x) { return sym::max(x[0], x[1]); });
  add("torch.sym_min(a, b)", [](Items x) { return sym::min(x[0], x[1]); });
  add("torch.sym_not(a)", [](Items x) { return sym::logical_not(truth(x[0])); });
  add("torch.sym_ite(b, t, f)", [](Items x) {
    Expr parts[] = {x[1], truth(x[0]), x[2], Expr::boolean(true)};
    return sym::piecewise(parts);
  });
  add("torch._sym_sqrt(a)", [](Items x) { return sym::float_pow(x[0], Expr::real(0.5)); });

  // Sizes of tensors as numbers. Their meta is the expression itself, which the reader takes from the file.
  ops.add({.schema = "sym_size.int(Tensor self, int dim) -> SymInt",
           .traits = {.of_sizes = true},
           .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(m.meta(0).sizes[m.dim(1, m.meta(0).rank())])}; }});
  ops.add({.schema = "sym_stride.int(Tensor self, int dim) -> SymInt",
           .traits = {.of_sizes = true},
           .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(m.meta(0).strides[m.dim(1, m.meta(0).rank())])}; }});
  ops.add({.schema = "sym_numel(Tensor self) -> SymInt", .traits = {.of_sizes = true}, .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(count(m.meta(0).sizes))}; }});
  ops.add({.schema = "sym_storage_offset(Tensor self) -> SymInt", .traits = {.of_sizes = true}, .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(m.meta(0).offset)}; }});
}

}  // namespace tenon
