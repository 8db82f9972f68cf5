// One block per operator: everything the stages ask of it. Every field but the schema has a default; a missing rule
// follows from the others: pointwise -> meta, broadcasting, promotion; view -> meta, aliasing, writing, gradient;
// composite -> all.
#pragma once
#include "runtime/abi.h"
#include "tenon/loop/index_map.h"
#include "tenon/rules/call.h"
#include "tenon/rules/lowering.h"

namespace tenon {

/// What an op's results are, without computing them. Sizes may be symbolic throughout.
struct MetaCall : ArgsView {
  using ArgsView::ArgsView;
};
/// A meta, several, a list of them, none.
struct Metas {
  std::vector<BasicArg<TensorMeta>> values;
  Metas() = default;
  Metas(TensorMeta meta) { values.emplace_back(std::move(meta)); }
  Metas(std::initializer_list<BasicArg<TensorMeta>> metas) : values(metas) {}
};
TensorMeta like(const TensorMeta& meta, Sizes sizes);  // contiguous, same dtype and device
TensorMeta like(const TensorMeta& meta, Sizes sizes, DType dtype);

/// An op's meaning in other ops.
struct Build : ArgsView {
  using ArgsView::ArgsView;
};
inline Results one(Tensor result) { return {{CallArg(std::move(result))}}; }
inline Results many(std::vector<Tensor> results) { return {{CallArg(std::move(results))}}; }  // a list
/// The gradient of a call: grad(i) is the cotangent of result i (none where nothing arrives), out(i) the result itself.
struct Vjp : ArgsView {
  std::span<const Tensor> grads, outs;
  std::span<const bool> needed;
  Vjp(const Op& op, std::span<const CallArg> args, std::span<const Tensor> grads, std::span<const Tensor> outs,
      std::span<const bool> needed)
      : ArgsView(op, args), grads(grads), outs(outs), needed(needed) {}
  Tensor grad(size_t result = 0) const { return grads[result]; }
  Tensor out(size_t result = 0) const { return outs[result]; }
  bool needs(Slot arg) const {
    return needed[index(arg)];
  }  // only for what costs: the driver drops what nobody asked for
};
/// The gradient of one argument: a tensor or none; a list mirrors a list. Broadcasting and dtype conversion are undone
/// by the driver.
struct Grad {
  Tensor one;
  std::vector<Tensor> list;
  Grad() = default;
  Grad(Tensor t) : one(std::move(t)) {}
  Grad(Results r) : one(r) {}
  Grad(std::vector<Tensor> ts) : list(std::move(ts)) {}
};
using Grads = std::vector<Grad>;

/// Gradients by the names of the arguments they belong to, as in PyTorch's own table of derivatives:
///   {{"self", [](Vjp& v) { return v.grad() * v["other"]; }}, {"other", [](Vjp& v) { return v.grad() * v["self"]; }}}
/// One formula may give several, in the order they are named: {"input, weight", [](Vjp& v) -> Grads { ... }}.
/// A formula is evaluated only where one of its gradients is needed.
struct GradFormula {
  const char* of = "";
  Grads (*formula)(Vjp&) = nullptr;
  template <class F>
  GradFormula(const char* of, F f) : of(of) {
    if constexpr (std::is_same_v<std::invoke_result_t<F, Vjp&>, Grads>) formula = f;
    else {
      static_assert(std::is_empty_v<F>, "a plain function must return Grads");
      formula = [](Vjp& v) { return Grads{Grad(F{}(v))}; };
    }
  }
};
struct GradFormulas : std::vector<GradFormula> {
  GradFormulas() = default;
  GradFormulas(std::initializer_list<GradFormula> formulas) : std::vector<GradFormula>(formulas) {}
  explicit operator bool() const { return !empty(); }
};
/// For an op through which nothing flows although its results could: a constant made like an argument.
inline GradFormulas no_gradient() {
  return {{"", [](Vjp&) -> Grads { return {}; }}};
}
/// One entry per argument of the call; none where no formula gives it or nobody needs it.
Grads gradients(Vjp& call);

/// The operands of a pointwise op at one index: x["self"] for a tensor or a number, in the common compute type.
struct Scalars : ArgsView {
  std::span<const loop::Expr> values;
  Scalars(const ArgsView& call, std::span<const loop::Expr> values) : ArgsView(call), values(values) {}
  loop::Expr operator[](Slot arg) const { return values[index(arg)]; }
};
/// A pointwise formula: over the operands (tensors and numbers) in the order of the schema, or over Scalars where other
/// arguments matter.
class ScalarRule {
 public:
  constexpr ScalarRule() = default;
  template <class F>
  requires(!std::is_same_v<F, ScalarRule>) ScalarRule(F f) {
    using E = loop::Expr;
    if constexpr (std::is_invocable_r_v<E, F, const Scalars&>) whole_ = f;
    else if constexpr (std::is_invocable_r_v<E, F, E>) one_ = f, operands_ = 1;
    else if constexpr (std::is_invocable_r_v<E, F, E, E>) two_ = f, operands_ = 2;
    else if constexpr (std::is_invocable_r_v<E, F, E, E, E>) three_ = f, operands_ = 3;
    else four_ = f, operands_ = 4;
  }
  explicit operator bool() const { return whole_ != nullptr; }
  size_t operands() const { return operands_; }  // 0: over Scalars
  loop::Expr operator()(const Scalars& x) const;

 private:
  size_t operands_ = 0;
  union {
    loop::Expr (*whole_)(const Scalars&) = nullptr;
    loop::Expr (*one_)(loop::Expr);
    loop::Expr (*two_)(loop::Expr, loop::Expr);
    loop::Expr (*three_)(loop::Expr, loop::Expr, loop::Expr);
    loop::Expr (*four_)(loop::Expr, loop::Expr, loop::Expr, loop::Expr);
  };
};

using MetaRule = Metas (*)(MetaCall&);
using LowerRule = void (*)(Lower&);
using ViewRule = std::vector<IndexMap> (*)(MetaCall&);  // one map per result; a list result has one per item
using DecomposeRule = Results (*)(Build&);
using SymbolicRule = sym::Expr (*)(std::span<const sym::Expr>);
using HostPredicate = bool (*)(const ArgsView&);
/// A function over C tensors (runtime/abi.h) that does what no stage can. Its arguments follow from the schema, see
/// tenon/plan/host.h; its results are what the meta rule says, and it allocates those whose sizes only it knows.
struct HostFunction {
  const char* name = nullptr;              // of kernels/: "linalg_svd"
  std::vector<const char*> errors = {};    // what it refuses, by code: {} is a number it gives, {dim} the argument dim
  bool per_element = false;                // runs over the elements of the first result, any of them at a time
  tenon_host_function function = nullptr;  // where it is not of kernels/
  explicit operator bool() const { return name != nullptr; }
};
/// What an assertion demands: a condition over numbers, or that the one element of a tensor is not 0.
struct Assertion {
  sym::Expr condition = 0;
  Tensor tensor = {};
  std::string message;
};
using AssertRule = std::vector<Assertion> (*)(const ArgsView&);

/// How operands of a pointwise op meet.
enum class Promote : uint8_t {
  common,        // the common dtype, also the result's
  int_to_float,  // likewise, integers become the default float dtype
  to_boolean,    // compared in the common dtype, the result is boolean
  first,         // everything in the first argument's dtype
  own,           // each operand in its own type; the rule or `meta` says the rest
};

struct OpDef {
  const char* schema = nullptr;
  OpKind kind = OpKind::general;
  Traits traits = {};
  Notation notation = {};  // symbolic: the expressions it computes, Python's sign for it
  MetaRule meta = nullptr;
  ScalarRule scalar = {};             // pointwise
  LowerRule lower = nullptr;          // reduction, general
  ViewRule view = nullptr;            // view
  DecomposeRule decompose = nullptr;  // composite
  DecomposeRule for_grad = nullptr;   // the same results from ops that also give what the gradient needs
  DecomposeRule to_torch = nullptr;   // its spelling in a functional graph for PyTorch
  GradFormulas vjp = {};
  SymbolicRule symbolic = nullptr;  // symbolic
  HostFunction host = {};           // computed by a plain function on memory
  HostPredicate host_if = nullptr;  // where the op has stages too: the calls that only the host function can do
  AssertRule asserts = nullptr;     // assertions: what they demand
  Promote promote = Promote::common;
  const char* promotes = nullptr;  // the arguments that take part in promotion, "self, other"; none: all
  DecomposeRule complex =
      nullptr;  // of complex numbers: the same in operators on real ones; none: views and composites
};

}  // namespace tenon
