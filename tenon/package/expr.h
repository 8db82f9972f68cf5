// Expressions of an artifact's tables: sizes, offsets, parameters and conditions, in the postfix words that the runtime
// evaluates (runtime/abi.h). Operators build them; integers and reals do not mix without to_real or trunc.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/abi.h"

namespace tenon::package {

class Expr {
 public:
  Expr(int64_t value);  // implicit: sizes are mostly numbers
  static Expr real(double value);
  static Expr symbol(uint32_t symbol, tenon_type type = TENON_INTEGER);

  const std::vector<int64_t>& words() const { return words_; }
  tenon_type type() const { return type_; }
  bool operator==(const Expr&) const = default;

  /// One operation of abi.h on expressions; wrong types are our mistake.
  static Expr apply(tenon_opcode opcode, const std::vector<Expr>& operands);

 private:
  Expr(std::vector<int64_t> words, tenon_type type) : words_(std::move(words)), type_(type) {}
  std::vector<int64_t> words_;
  tenon_type type_ = TENON_INTEGER;
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr floor_div(const Expr& a, const Expr& b);
Expr ceil_div(const Expr& a, const Expr& b);
Expr mod(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr equal(const Expr& a, const Expr& b);
Expr less(const Expr& a, const Expr& b);
Expr less_equal(const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr to_real(const Expr& a);

}  // namespace tenon::package
