// What a meta rule may know of symbols: the ranges of the program being traced.
#pragma once
#include "tenon/sym/shape_env.h"
#include "tenon/tensor/context.h"

namespace tenon {

/// Makes a program's ranges the ones that rules on this thread decide by.
class ShapesScope : ContextScope<const sym::ShapeEnv*>, ContextScope<sym::ShapeEnv*> {
 public:
  explicit ShapesScope(const sym::ShapeEnv* shapes)
      : ContextScope<const sym::ShapeEnv*>(&Context::shapes, shapes),
        ContextScope<sym::ShapeEnv*>(&Context::growing_shapes, nullptr) {}
  /// Rules may add symbols to these.
  explicit ShapesScope(sym::ShapeEnv* shapes)
      : ContextScope<const sym::ShapeEnv*>(&Context::shapes, shapes),
        ContextScope<sym::ShapeEnv*>(&Context::growing_shapes, shapes) {}
};

/// What rules on this thread may add symbols to; null where there is none.
sym::ShapeEnv* growing_shapes();

/// Example sizes of a program that is being made: they decide what nothing else does, and whoever gives them keeps what
/// they decided as conditions of the program.
class Examples {
 public:
  virtual ~Examples() = default;
  virtual std::optional<bool> decide(sym::Expr condition) = 0;
  virtual std::optional<int64_t> value(sym::Expr size) const = 0;  // none where only a run can tell
};
/// Makes them the ones that rules on this thread ask; null: nobody is asked.
class ExamplesScope : ContextScope<Examples*> {
 public:
  explicit ExamplesScope(Examples* examples) : ContextScope<Examples*>(&Context::examples, examples) {}
};
inline Examples* current_examples() { return context().examples; }

/// Whether a condition on sizes certainly holds, or certainly fails, by the examples too.
std::optional<bool> known(sym::Expr condition);
/// Likewise without asking the examples: for what is only nicer to know.
std::optional<bool> proven(sym::Expr condition);
/// By the ranges of its symbols too, as 1 - Max(0, 1 - s) is.
inline bool surely_one(SymInt size) {
  return size == SymInt(1) || (!size.is_int() && proven(sym::eq(size, 1)) == true);
}
/// Whether two sizes can be taken as equal: nobody knows better.
inline bool may_equal(SymInt a, SymInt b) {
  return a == b || (a.is_int() && b.is_int() ? false : known(sym::eq(a, b)).value_or(true));
}
inline bool statically_true(sym::Expr condition) { return known(condition).value_or(false); }
/// The smaller of two sizes, simplified by what is known.
SymInt smaller(SymInt a, SymInt b);
SymInt larger(SymInt a, SymInt b);
/// A size that only a run can tell, as a new symbol of the program being traced.
SymInt data_dependent_size();
/// Likewise a floating point number.
sym::Expr data_dependent_real();

}  // namespace tenon
