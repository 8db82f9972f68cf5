// Operators on sizes and numbers: what a program computes from shapes. Named as files name them.
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

using sym::Expr;
using Sym = sym::Kind;

// A rule over one, two or three expressions, as the registry keeps it.
template <class F>
SymbolicRule rule(F) {
  if constexpr (std::is_invocable_v<F, Expr>) return [](std::span<const Expr> x) { return F{}(x[0]); };
  else if constexpr (std::is_invocable_v<F, Expr, Expr>) return [](std::span<const Expr> x) { return F{}(x[0], x[1]); };
  else return [](std::span<const Expr> x) { return F{}(x[0], x[1], x[2]); };
}

Expr truth(Expr x) { return x.is_boolean_typed() ? x : sym::ne(x, Expr(0)); }

Metas number(SymInt value) { return {BasicArg<TensorMeta>(value)}; }

// Whether sizes and strides are those of a dense tensor: a dimension of one element may have any stride.
Expr contiguity(const MetaCall& m) {
  const TensorMeta& x = m.meta("self");
  auto* format = m.arg("memory_format").get<MemoryFormat>();
  MemoryFormat wanted = format ? *format : MemoryFormat::contiguous;
  if (is_contiguous(x, wanted)) return Expr::boolean(true);
  size_t rank = wanted == MemoryFormat::channels_last ? 4 : wanted == MemoryFormat::channels_last_3d ? 5 : x.rank();
  if (x.rank() != rank) return Expr::boolean(false);
  Expr all = Expr::boolean(true), empty = sym::eq(count(x.sizes), Expr(0));
  Sizes dense = strides_in(wanted, x.sizes);
  for (size_t d = 0; d < x.rank(); ++d)
    all = sym::logical_and(all, sym::logical_or(sym::eq(x.sizes[d], Expr(1)), sym::eq(x.strides[d], dense[d])));
  return sym::logical_or(empty, all);
}

}  // namespace

void register_symbolic(Registry& ops) {
  auto add = [&](const char* schema, Notation notation, auto formula) {
    ops.add({.schema = schema, .kind = OpKind::symbolic, .notation = notation, .symbolic = rule(formula)});
  };
  add("_operator.add(a, b)", {.kinds = {Sym::add}, .sign = " + "}, [](Expr a, Expr b) { return a + b; });
  add("_operator.sub(a, b)", {.sign = " - "}, [](Expr a, Expr b) { return a - b; });
  add("_operator.mul(a, b)", {.kinds = {Sym::mul}, .sign = " * "}, [](Expr a, Expr b) { return a * b; });
  add("_operator.floordiv(a, b)", {.kinds = {Sym::floor_div}, .sign = " // "},
      [](Expr a, Expr b) { return sym::floor_div(a, b); });
  add("_operator.mod(a, b)", {.kinds = {Sym::mod}, .sign = " % "}, [](Expr a, Expr b) { return sym::mod(a, b); });
  add("_operator.truediv(a, b)", {.kinds = {Sym::true_div, Sym::float_true_div}, .sign = " / "}, [](Expr a, Expr b) {
    return a.is_integer_typed() && b.is_integer_typed() ? sym::true_div(a, b) : sym::float_true_div(a, b);
  });
  add("_operator.pow(a, b)", {.kinds = {Sym::pow, Sym::float_pow}, .sign = " ** "}, [](Expr a, Expr b) {
    return a.is_integer_typed() && b.is_integer_typed() ? sym::pow(a, b) : sym::float_pow(a, b);
  });
  add("_operator.neg(a)", {.sign = "-"}, [](Expr a) { return -a; });
  add("_operator.pos(a)", {.sign = "+"}, [](Expr a) { return a; });
  add("_operator.eq(a, b)", {.kinds = {Sym::eq}, .sign = " == "}, [](Expr a, Expr b) { return sym::eq(a, b); });
  add("_operator.ne(a, b)", {.kinds = {Sym::ne}, .sign = " != "}, [](Expr a, Expr b) { return sym::ne(a, b); });
  add("_operator.lt(a, b)", {.kinds = {Sym::lt}, .sign = " < "}, [](Expr a, Expr b) { return sym::lt(a, b); });
  add("_operator.le(a, b)", {.kinds = {Sym::le}, .sign = " <= "}, [](Expr a, Expr b) { return sym::le(a, b); });
  add("_operator.gt(a, b)", {.kinds = {Sym::gt}, .sign = " > "}, [](Expr a, Expr b) { return sym::gt(a, b); });
  add("_operator.ge(a, b)", {.kinds = {Sym::ge}, .sign = " >= "}, [](Expr a, Expr b) { return sym::ge(a, b); });
  add("_operator.and_(a, b)", {.kinds = {Sym::logical_and, Sym::bit_and}, .sign = " & "},
      [](Expr a, Expr b) { return a.is_boolean_typed() ? sym::logical_and(a, b) : sym::bit_and(a, b); });
  add("_operator.or_(a, b)", {.kinds = {Sym::logical_or, Sym::bit_or}, .sign = " | "},
      [](Expr a, Expr b) { return a.is_boolean_typed() ? sym::logical_or(a, b) : sym::bit_or(a, b); });
  add("_operator.lshift(a, b)", {.kinds = {Sym::lshift}, .sign = " << "},
      [](Expr a, Expr b) { return sym::lshift(a, b); });
  add("_operator.rshift(a, b)", {.kinds = {Sym::rshift}, .sign = " >> "},
      [](Expr a, Expr b) { return sym::rshift(a, b); });
  add("math.trunc(x)", {.kinds = {Sym::trunc}}, [](Expr x) { return sym::trunc(x); });
  add("math.ceil(x)", {.kinds = {Sym::ceil}}, [](Expr x) { return sym::ceil(x); });
  add("math.floor(x)", {.kinds = {Sym::floor}}, [](Expr x) { return sym::floor(x); });
  add("builtins.round(number)", {.kinds = {Sym::round}}, [](Expr x) { return sym::round(x); });
  add("torch.sym_int(a)", {}, [](Expr a) { return a.is_integer_typed() ? a : sym::trunc(a); });
  add("torch.sym_float(a)", {.kinds = {Sym::to_float}},
      [](Expr a) { return a.is_integer_typed() ? sym::to_float(a) : a; });
  add("torch.sym_max(a, b)", {.kinds = {Sym::max}}, [](Expr a, Expr b) { return sym::max(a, b); });
  add("torch.sym_min(a, b)", {.kinds = {Sym::min}}, [](Expr a, Expr b) { return sym::min(a, b); });
  add("torch.sym_not(a)", {.kinds = {Sym::logical_not}}, [](Expr a) { return sym::logical_not(truth(a)); });
  add("torch.sym_ite(b, t, f)", {.kinds = {Sym::piecewise}}, [](Expr condition, Expr yes, Expr no) {
    Expr parts[] = {yes, truth(condition), no, Expr::boolean(true)};
    return sym::piecewise(parts);
  });
  add("torch._sym_sqrt(a)", {.kinds = {Sym::float_pow}, .last = 0.5, .call = "OpaqueUnaryFn_sqrt"},
      [](Expr a) { return sym::float_pow(a, Expr::real(0.5)); });

  // Sizes of tensors as numbers. Their meta is the expression itself, which the reader takes from the file.
  auto measure = [&](const char* schema, Measure what, MetaRule meta) {
    ops.add({.schema = schema, .traits = {.measures = what}, .meta = meta});
  };
  measure("sym_size.int(Tensor self, int dim) -> SymInt", Measure::size,
          [](MetaCall& m) { return number(m.meta("self").sizes[m.dim("dim", m.meta("self").rank())]); });
  measure("sym_stride.int(Tensor self, int dim) -> SymInt", Measure::stride,
          [](MetaCall& m) { return number(m.meta("self").strides[m.dim("dim", m.meta("self").rank())]); });
  measure("sym_numel(Tensor self) -> SymInt", Measure::count,
          [](MetaCall& m) { return number(count(m.meta("self").sizes)); });
  measure("sym_storage_offset(Tensor self) -> SymInt", Measure::offset,
          [](MetaCall& m) { return number(m.meta("self").offset); });
  // Told by the strides, as the others of a dimension are.
  measure("sym_is_contiguous(Tensor self, MemoryFormat memory_format=0) -> SymBool", Measure::stride,
          [](MetaCall& m) { return number(contiguity(m)); });
}

}  // namespace tenon
