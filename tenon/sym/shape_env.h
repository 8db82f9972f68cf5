// What is known about the symbols of one program, and the conditions it was taken under.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
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

/// Guards in the order they were taken, each condition once.
class Guards {
 public:
  void add(Guard guard);
  bool has(const Expr& condition) const { return table_->conditions.contains(condition); }
  size_t size() const { return table_->list.size(); }
  bool empty() const { return table_->list.empty(); }
  auto begin() const { return table_->list.begin(); }
  auto end() const { return table_->list.end(); }
  bool operator==(const Guards& other) const { return table_->list == other.table_->list; }

 private:
  struct Table {
    std::vector<Guard> list;
    std::unordered_set<Expr> conditions;
  };
  CopyOnWrite<Table> table_;
};

/// Copied freely: copies share their tables until one of them is changed.
struct ShapeEnv {
  Ranges ranges;
  Guards guards;
  int next_unbacked = 0;  // the number of the next fresh u symbol

  /// Adds the range of an expression, as the range_constraints of a file give it (mostly of a symbol, sometimes of
  /// 2*s77), and narrows the ranges of symbols by it where the expression is linear in one symbol.
  void constrain(const Expr& expr, Range range);
  /// A symbol no other of this program has: u0, u1, ...
  Expr fresh_unbacked(Range range = {0, Range::infinity});
  /// Makes fresh_unbacked() avoid the symbols of e.
  void reserve_names(const Expr& e);

  Range range_of(const Expr& e) const;
  /// By ranges, by the constraints and by the guards already taken.
  std::optional<bool> decide(const Expr& condition) const;
  /// Records that the condition must hold. An Error where it certainly does not; nothing where it certainly does.
  void guard(const Expr& condition, std::string where, std::string reason);

  bool operator==(const ShapeEnv&) const = default;

 private:
  /// What was given for an expression, those of symbols too; a second constraint on one narrows the first.
  struct Constraints {
    std::unordered_map<Expr, Range> ranges;
    bool operator==(const Constraints&) const = default;
  };
  struct SharedConstraints : CopyOnWrite<Constraints> {
    bool operator==(const SharedConstraints& other) const { return **this == *other; }
  };
  SharedConstraints constraints_;
};

}  // namespace tenon::sym
