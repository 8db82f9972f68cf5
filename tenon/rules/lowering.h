// Writing an op as stages: Lower is what a LowerRule gets. Inside a stage, loads pull, stores push, reductions
// accumulate.
#pragma once
#include <functional>

#include "tenon/loop/program.h"
#include "tenon/rules/call.h"

namespace tenon {

/// Loop indices, or any integer expressions that stand for them.
struct Index : std::vector<loop::Expr> {
  using std::vector<loop::Expr>::vector;
  loop::Expr& operator[](size_t i) {
    return i < size() ? data()[i] : (fail_index(i, size()), data()[0]);
  }  // checked, as sizes are
  const loop::Expr& operator[](size_t i) const { return i < size() ? data()[i] : (fail_index(i, size()), data()[0]); }
  Index drop_last(size_t n = 1) const {
    if (n > size()) fail_index(n, size());
    return Index(begin(), end() - static_cast<ptrdiff_t>(n));
  }
  Index drop_first(size_t n = 1) const {
    if (n > size()) fail_index(n, size());
    return Index(begin() + static_cast<ptrdiff_t>(n), end());
  }
  Index without(size_t dim) const;
  Index with(size_t dim, loop::Expr at) const;  // replaced
  Index inserted(size_t dim, loop::Expr at) const;
  loop::Expr last() const { return (*this)[size() - 1]; }
};

class Lower;

/// A buffer as a rule sees it.
struct Ref {
  Lower* lower = nullptr;
  loop::BufferId id = 0;
  const Sizes& sizes() const;
  SymInt size(size_t dim) const { return sizes()[dim]; }
  DType dtype() const;
  loop::Expr at(const Index& index) const;            // loaded to its compute type
  loop::Expr broadcast_at(const Index& index) const;  // fewer dims and dims of size 1 are repeated
  /// Memory is not touched where the guard is false.
  loop::Expr at_if(loop::Expr guard, const Index& index, loop::Expr otherwise) const;
  loop::Operand operand() const;  // for anchors
  loop::Operand operand(Sizes sizes, Sizes strides, SymInt offset = 0) const;
};

class Lower : public ArgsView {
 public:
  /// Buffers for the tensor arguments and the results are made here; argument lists give several.
  Lower(const Op& op, std::span<const CallArg> args, std::span<const BasicArg<TensorMeta>> results,
        loop::Program& program);
  /// Over buffers that exist already: graph lowering hands them in, in the order of inputs, then results.
  Lower(const Op& op, std::span<const CallArg> args, std::span<const BasicArg<TensorMeta>> results,
        loop::Program& program, std::span<const loop::BufferId> buffers);

  Ref operator[](Slot arg) const;      // of a tensor argument
  Ref item(Slot arg, size_t i) const;  // of a list argument
  Ref out(size_t result = 0) const;
  size_t outs() const { return outs_.size(); }
  bool wants(size_t result) const { return outs_[result].size() == 1; }  // false: the result is none

  using ArgsView::constant;
  loop::Expr constant(double value, loop::Compute type) { return loop::constant(program.arena, value, type); }
  loop::Expr extent(SymInt value) { return loop::size_expr(program.arena, value); }
  loop::Expr scalar(Slot arg, loop::Compute type);  // a number argument

  /// One stage over `domain`; the body loads, reduces and stores.
  void stage(const Sizes& domain, const std::function<void(const Index&)>& body);
  void store(Ref to, const Index& at, loop::Expr value, loop::Mode mode = loop::Mode::set);
  void store_if(loop::Expr where, Ref to, const Index& at, loop::Expr value, loop::Mode mode = loop::Mode::set);
  /// Within a stage: reduces over the extents (all reductions of a stage share them).
  loop::Expr reduce(loop::Combine combine, const Sizes& extents, const std::function<loop::Expr(const Index&)>& term);
  loop::Expr sum(const Sizes& extents, const std::function<loop::Expr(const Index&)>& term) {
    return reduce(loop::Combine::sum, extents, term);
  }

  /// A stage that computes the result (or a result) at its own index.
  void tensor(const std::function<loop::Expr(const Index&)>& value) { tensor(out(0), value); }
  void tensor(Ref to, const std::function<loop::Expr(const Index&)>& value);
  /// A temporary, computed by a stage at once, or left to be stored to.
  Ref temporary(DType dtype, const Sizes& sizes, const std::function<loop::Expr(const Index&)>& value);
  Ref temporary(DType dtype, const Sizes& sizes);
  void fill(Ref to, loop::Expr value);
  void copy(Ref from, Ref to);  // of equal sizes, converted
  /// The same values in a dtype that anchors compute with (f16, bf16 -> f32; small ints -> i64); itself where it has
  /// one.
  Ref computable(Ref from);
  void anchor(loop::Step step);

  loop::Program& program;

 private:
  void claim(std::span<const CallArg> args, std::span<const BasicArg<TensorMeta>> results,
             std::span<const loop::BufferId> given);
  std::vector<std::vector<loop::BufferId>> ins_, outs_;  // per argument, per result
  loop::Stage* current_ = nullptr;
};

/// The dtype anchors use for a tensor of this dtype: f32, f64 or i64.
DType computable(DType dtype);

}  // namespace tenon
