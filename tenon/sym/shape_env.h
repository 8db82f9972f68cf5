// What is known about the symbols of one program, and the conditions it was taken under.
#pragma once
#include <string>
#include <vector>

#include "tenon/sym/evaluate.h"
#include "tenon/sym/range.h"

namespace tenon::sym {

/// A condition that inputs must meet, and where it comes from.
struct Guard {
  Expr condition;
  std::string where;   // the input and its dimension, e.g. "x, dimension 0"; empty where it concerns several
  std::string reason;  // why it was asked for
  bool operator==(const Guard&) const = default;
};

/// The range of an expression, as the range_constraints of a file give it: mostly of a symbol, sometimes of 2*s77.
struct RangeConstraint {
  Expr expr;
  Range range;
  bool operator==(const RangeConstraint&) const = default;
};

struct ShapeEnv {
  Ranges ranges;
  std::vector<RangeConstraint> constraints;  // as given, in order; those of symbols are in `ranges` too
  std::vector<Guard> guards;
  int next_unbacked = 0;  // the number of the next fresh u symbol

  /// Adds a constraint and narrows the ranges of symbols by it where the expression is linear in one symbol.
  void constrain(Expr expr, Range range);
  /// A symbol no other of this program has: u0, u1, ...
  Expr fresh_unbacked(Range range = {0, Range::infinity});
  /// Makes fresh_unbacked() avoid the symbols of e.
  void reserve_names(Expr e);

  Range range_of(Expr e) const;
  /// By ranges, by the constraints and by the guards already taken.
  std::optional<bool> decide(Expr condition) const;
  /// Records that the condition must hold. An Error where it certainly does not; nothing where it certainly does.
  void guard(Expr condition, std::string where, std::string reason);

  bool operator==(const ShapeEnv&) const = default;
};

}  // namespace tenon::sym
