// What values an expression can take, from what its symbols can take.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/base/copy_on_write.h"
#include "tenon/sym/expr.h"

namespace tenon::sym {

/// The integers from lo to hi, both included. The two ends of int64 stand for "open".
struct Range {
  static constexpr int64_t minus_infinity = std::numeric_limits<int64_t>::min();
  static constexpr int64_t infinity = std::numeric_limits<int64_t>::max();
  int64_t lo = minus_infinity, hi = infinity;

  static Range point(int64_t value) { return {value, value}; }
  bool is_empty() const { return lo > hi; }
  bool has_lo() const { return lo != minus_infinity; }
  bool has_hi() const { return hi != infinity; }
  bool contains(int64_t value) const { return lo <= value && value <= hi; }
  bool operator==(const Range&) const = default;
};

Range intersect(Range a, Range b);
Range unite(Range a, Range b);
void append_text(std::string& out, Range r);  // [2, oo)

/// The ranges of symbols. A symbol is found by its name, whatever its traits: one program has one symbol of a name.
class Ranges {
 public:
  struct Entry {
    Expr symbol;
    Range range;
    bool operator==(const Entry&) const = default;
  };
  void set(const Expr& symbol, Range range);
  void narrow(const Expr& symbol, Range range);  // intersects with what is known
  const Range* find(const Expr& symbol) const;   // good until the next change
  /// The range known, else [0, oo) for a positive or nonnegative symbol, else open.
  Range of(const Expr& symbol) const;
  const std::vector<Entry>& entries() const { return table_->entries; }  // in order of setting
  bool operator==(const Ranges& other) const { return entries() == other.entries(); }

 private:
  struct Table {
    std::vector<Entry> entries;
    std::unordered_map<std::string_view, size_t> by_name;  // names of the symbols that stand beside them
  };
  CopyOnWrite<Table> table_;
};

/// An interval the value of e lies in; open where nothing better is known. For e of a float: its floor and ceiling lie
/// in it.
Range range_of(const Expr& e, const Ranges& ranges = {});

/// Whether a condition certainly holds or certainly fails; nothing where that depends on the symbols.
std::optional<bool> decide(const Expr& condition, const Ranges& ranges = {});

}  // namespace tenon::sym
