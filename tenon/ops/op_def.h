// One block per operator: everything the stages ask of it. Every field but the schema has a default; a missing rule follows
// from the others: pointwise -> meta, broadcasting, promotion; view -> meta, aliasing, writing, gradient; composite -> all.
#pragma once
#include "tenon/loop/index_map.h"
#include "tenon/ops/call.h"
#include "tenon/ops/lowering.h"

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
TensorMeta like(const TensorMeta& meta, Sizes sizes);                // contiguous, same dtype and device
TensorMeta like(const TensorMeta& meta, Sizes sizes, DType dtype);

/// An op's meaning in other ops.
struct Build : ArgsView {
  using ArgsView::ArgsView;
};
inline Results one(Tensor result) { return {{CallArg(std::move(result))}}; }
inline Results many(std::vector<Tensor> results) { return {{CallArg(std::move(results))}}; }   // a list
/// The gradient of a call: grad(i) is the cotangent of result i (none where nothing arrives), out(i) the result itself.
struct Vjp : ArgsView {
  std::span<const Tensor> grads, outs;
  std::span<const bool> needed;
  Vjp(const Op& op, std::span<const CallArg> args, std::span<const Tensor> grads, std::span<const Tensor> outs, std::span<const bool> needed)
      : ArgsView(op, args), grads(grads), outs(outs), needed(needed) {}
  Tensor grad(size_t i) const { return grads[i]; }
  Tensor out(size_t i) const { return outs[i]; }
  bool needs(size_t i) const { return needed[i]; }   // by argument
};
/// One entry per argument that holds tensors: a gradient or none; lists mirror lists. Trailing entries may be left out.
/// Broadcasting and dtype conversion are undone by the driver.
struct Grad {
  Tensor one;
  std::vector<Tensor> list;
  Grad() = default;
  Grad(Tensor t) : one(std::move(t)) {}
  Grad(Results r) : one(r) {}
  Grad(std::vector<Tensor> ts) : list(std::move(ts)) {}
};
using Grads = std::vector<Grad>;

/// The operands of a pointwise op at one index: x[i] for a tensor or number argument i, in the common compute type.
struct Scalars {
  const ArgsView& call;
  std::span<const loop::Expr> values;
  loop::Expr operator[](size_t i) const { return values[i]; }
};

using MetaRule = Metas (*)(MetaCall&);
using ScalarRule = loop::Expr (*)(const Scalars&);
using LowerRule = void (*)(Lower&);
using ViewRule = std::vector<IndexMap> (*)(MetaCall&);   // one map per result; a list result has one per item
using DecomposeRule = Results (*)(Build&);
using VjpRule = Grads (*)(Vjp&);
using SymbolicRule = sym::Expr (*)(std::span<const sym::Expr>);
using KernelRule = CallResults (*)(ArgsView&);

/// How operands of a pointwise op meet.
enum class Promote : uint8_t {
  common,         // the common dtype, also the result's
  int_to_float,   // likewise, integers become the default float dtype
  to_boolean,     // compared in the common dtype, the result is boolean
  first,          // everything in the first argument's dtype
  own,            // each operand in its own type; the rule or `meta` says the rest
};

struct OpDef {
  const char* schema = nullptr;
  Kind kind = Kind::general;
  Traits traits = {};
  Notation notation = {};             // symbolic: the expressions it computes, Python's sign for it
  MetaRule meta = nullptr;
  ScalarRule scalar = nullptr;        // pointwise
  LowerRule lower = nullptr;          // reduction, general
  ViewRule view = nullptr;            // view
  DecomposeRule decompose = nullptr;  // composite
  DecomposeRule for_grad = nullptr;   // the same results from ops that also give what the gradient needs
  DecomposeRule to_torch = nullptr;   // its spelling in a functional graph for PyTorch
  VjpRule vjp = nullptr;
  SymbolicRule symbolic = nullptr;    // symbolic
  KernelRule kernel = nullptr;        // opaque: computed by a plain function on real tensors; no results: the stages do it
  Promote promote = Promote::common;
  uint32_t promotes = ~0u;            // which arguments take part in promotion, by bit
};

}  // namespace tenon
