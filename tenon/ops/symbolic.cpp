// Operators on sizes and numbers: what a program computes from shapes. Named as files name them.
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

using sym::Expr;
using Sym = sym::Kind;
using Items = std::span<const Expr>;

Expr truth(Expr x) { return x.is_boolean_typed() ? x : sym::ne(x, Expr(0)); }

}  // namespace

void register_symbolic(Registry& ops) {
  auto add = [&](const char* schema, Notation notation, SymbolicRule rule) {
    ops.add({.schema = schema, .kind = OpKind::symbolic, .notation = notation, .symbolic = rule});
  };
  add("_operator.add(a, b)", {.kinds = {Sym::add}, .sign = " + "}, [](Items x) { return x[0] + x[1]; });
  add("_operator.sub(a, b)", {.sign = " - "}, [](Items x) { return x[0] - x[1]; });
  add("_operator.mul(a, b)", {.kinds = {Sym::mul}, .sign = " * "}, [](Items x) { return x[0] * x[1]; });
  add("_operator.floordiv(a, b)", {.kinds = {Sym::floor_div}, .sign = " // "}, [](Items x) { return sym::floor_div(x[0], x[1]); });
  add("_operator.mod(a, b)", {.kinds = {Sym::mod}, .sign = " % "}, [](Items x) { return sym::mod(x[0], x[1]); });
  add("_operator.truediv(a, b)", {.kinds = {Sym::true_div, Sym::float_true_div}, .sign = " / "}, [](Items x) { return x[0].is_integer_typed() && x[1].is_integer_typed() ? sym::true_div(x[0], x[1]) : sym::float_true_div(x[0], x[1]); });
  add("_operator.pow(a, b)", {.kinds = {Sym::pow, Sym::float_pow}, .sign = " ** "}, [](Items x) { return x[0].is_integer_typed() && x[1].is_integer_typed() ? sym::pow(x[0], x[1]) : sym::float_pow(x[0], x[1]); });
  add("_operator.neg(a)", {.sign = "-"}, [](Items x) { return -x[0]; });
  add("_operator.pos(a)", {.sign = "+"}, [](Items x) { return x[0]; });
  add("_operator.eq(a, b)", {.kinds = {Sym::eq}, .sign = " == "}, [](Items x) { return sym::eq(x[0], x[1]); });
  add("_operator.ne(a, b)", {.kinds = {Sym::ne}, .sign = " != "}, [](Items x) { return sym::ne(x[0], x[1]); });
  add("_operator.lt(a, b)", {.kinds = {Sym::lt}, .sign = " < "}, [](Items x) { return sym::lt(x[0], x[1]); });
  add("_operator.le(a, b)", {.kinds = {Sym::le}, .sign = " <= "}, [](Items x) { return sym::le(x[0], x[1]); });
  add("_operator.gt(a, b)", {.kinds = {Sym::gt}, .sign = " > "}, [](Items x) { return sym::gt(x[0], x[1]); });
  add("_operator.ge(a, b)", {.kinds = {Sym::ge}, .sign = " >= "}, [](Items x) { return sym::ge(x[0], x[1]); });
  add("_operator.and_(a, b)", {.kinds = {Sym::logical_and, Sym::bit_and}, .sign = " & "}, [](Items x) { return x[0].is_boolean_typed() ? sym::logical_and(x[0], x[1]) : sym::bit_and(x[0], x[1]); });
  add("_operator.or_(a, b)", {.kinds = {Sym::logical_or, Sym::bit_or}, .sign = " | "}, [](Items x) { return x[0].is_boolean_typed() ? sym::logical_or(x[0], x[1]) : sym::bit_or(x[0], x[1]); });
  add("_operator.lshift(a, b)", {.kinds = {Sym::lshift}, .sign = " << "}, [](Items x) { return sym::lshift(x[0], x[1]); });
  add("_operator.rshift(a, b)", {.kinds = {Sym::rshift}, .sign = " >> "}, [](Items x) { return sym::rshift(x[0], x[1]); });
  add("math.trunc(x)", {.kinds = {Sym::trunc}}, [](Items x) { return sym::trunc(x[0]); });
  add("math.ceil(x)", {.kinds = {Sym::ceil}}, [](Items x) { return sym::ceil(x[0]); });
  add("math.floor(x)", {.kinds = {Sym::floor}}, [](Items x) { return sym::floor(x[0]); });
  add("builtins.round(number)", {.kinds = {Sym::round}}, [](Items x) { return sym::round(x[0]); });
  add("torch.sym_int(a)", {}, [](Items x) { return x[0].is_integer_typed() ? x[0] : sym::trunc(x[0]); });
  add("torch.sym_float(a)", {.kinds = {Sym::to_float}}, [](Items x) { return x[0].is_integer_typed() ? sym::to_float(x[0]) : x[0]; });
  add("torch.sym_max(a, b)", {.kinds = {Sym::max}}, [](Items x) { return sym::max(x[0], x[1]); });
  add("torch.sym_min(a, b)", {.kinds = {Sym::min}}, [](Items x) { return sym::min(x[0], x[1]); });
  add("torch.sym_not(a)", {.kinds = {Sym::logical_not}}, [](Items x) { return sym::logical_not(truth(x[0])); });
  add("torch.sym_ite(b, t, f)", {.kinds = {Sym::piecewise}}, [](Items x) {
    Expr parts[] = {x[1], truth(x[0]), x[2], Expr::boolean(true)};
    return sym::piecewise(parts);
  });
  add("torch._sym_sqrt(a)", {.kinds = {Sym::float_pow}, .last = 0.5, .call = "OpaqueUnaryFn_sqrt"}, [](Items x) { return sym::float_pow(x[0], Expr::real(0.5)); });

  // Sizes of tensors as numbers. Their meta is the expression itself, which the reader takes from the file.
  ops.add({.schema = "sym_size.int(Tensor self, int dim) -> SymInt",
           .traits = {.measures = Measure::size},
           .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(m.meta("self").sizes[m.dim("dim", m.meta("self").rank())])}; }});
  ops.add({.schema = "sym_stride.int(Tensor self, int dim) -> SymInt",
           .traits = {.measures = Measure::stride},
           .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(m.meta("self").strides[m.dim("dim", m.meta("self").rank())])}; }});
  ops.add({.schema = "sym_numel(Tensor self) -> SymInt", .traits = {.measures = Measure::count}, .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(count(m.meta("self").sizes))}; }});
  ops.add({.schema = "sym_storage_offset(Tensor self) -> SymInt", .traits = {.measures = Measure::offset}, .meta = [](MetaCall& m) -> Metas { return {BasicArg<TensorMeta>(m.meta("self").offset)}; }});
}

}  // namespace tenon
