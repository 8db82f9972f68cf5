#include "tenon/package/expr.h"

#include <bit>

#include "tenon/base/error.h"

namespace tenon::package {

namespace {
constexpr int64_t narrow = int64_t(1) << 55;  // constants below fit into one word

struct Signature {
  tenon_type takes, leaves;
};

Signature signature(tenon_opcode opcode) {
  switch (opcode) {
    case TENON_OP_TO_REAL: return {TENON_INTEGER, TENON_REAL};
    case TENON_OP_REAL_ADD:
    case TENON_OP_REAL_SUB:
    case TENON_OP_REAL_MUL:
    case TENON_OP_REAL_DIV:
    case TENON_OP_REAL_NEG:
    case TENON_OP_REAL_MIN:
    case TENON_OP_REAL_MAX:
    case TENON_OP_REAL_SQRT: return {TENON_REAL, TENON_REAL};
    case TENON_OP_REAL_EQ:
    case TENON_OP_REAL_LT:
    case TENON_OP_REAL_LE:
    case TENON_OP_TRUNC:
    case TENON_OP_FLOOR:
    case TENON_OP_CEIL:
    case TENON_OP_ROUND: return {TENON_REAL, TENON_INTEGER};
    default: return {TENON_INTEGER, TENON_INTEGER};
  }
}

Expr arithmetic(tenon_opcode integer, tenon_opcode real, const Expr& a, const Expr& b) {
  return Expr::apply(a.type() == TENON_REAL ? real : integer, {a, b});
}
}  // namespace

Expr::Expr(int64_t value) {
  if (value >= -narrow && value < narrow) words_ = {TENON_WORD(TENON_OP_CONST, value)};
  else words_ = {TENON_WORD(TENON_OP_CONST_WIDE, 0), value};
}

Expr Expr::real(double value) {
  return {{TENON_WORD(TENON_OP_CONST_REAL, 0), std::bit_cast<int64_t>(value)}, TENON_REAL};
}

Expr Expr::symbol(uint32_t symbol, tenon_type type) { return {{TENON_WORD(TENON_OP_SYMBOL, symbol)}, type}; }

Expr Expr::apply(tenon_opcode opcode, const std::vector<Expr>& operands) {
  std::vector<int64_t> words;
  for (const Expr& operand : operands) words.insert(words.end(), operand.words_.begin(), operand.words_.end());
  words.push_back(TENON_WORD(opcode, 0));
  if (opcode == TENON_OP_SELECT) {
    expect(operands.size() == 3 && operands[0].type_ == TENON_INTEGER && operands[1].type_ == operands[2].type_,
           "a select of other types");
    return {std::move(words), operands[1].type_};
  }
  auto [takes, leaves] = signature(opcode);
  for (const Expr& operand : operands)
    expect(operand.type_ == takes, "operation ", int(opcode), " on an operand of another type");
  return {std::move(words), leaves};
}

Expr operator+(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_ADD, TENON_OP_REAL_ADD, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_SUB, TENON_OP_REAL_SUB, a, b); }
Expr operator*(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_MUL, TENON_OP_REAL_MUL, a, b); }
Expr floor_div(const Expr& a, const Expr& b) { return Expr::apply(TENON_OP_FLOOR_DIV, {a, b}); }
Expr ceil_div(const Expr& a, const Expr& b) { return Expr::apply(TENON_OP_CEIL_DIV, {a, b}); }
Expr mod(const Expr& a, const Expr& b) { return Expr::apply(TENON_OP_MOD, {a, b}); }
Expr min(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_MIN, TENON_OP_REAL_MIN, a, b); }
Expr max(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_MAX, TENON_OP_REAL_MAX, a, b); }
Expr equal(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_EQ, TENON_OP_REAL_EQ, a, b); }
Expr less(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_LT, TENON_OP_REAL_LT, a, b); }
Expr less_equal(const Expr& a, const Expr& b) { return arithmetic(TENON_OP_LE, TENON_OP_REAL_LE, a, b); }
Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  return Expr::apply(TENON_OP_SELECT, {condition, a, b});
}
Expr to_real(const Expr& a) { return Expr::apply(TENON_OP_TO_REAL, {a}); }

}  // namespace tenon::package
