// Gradients of an operator of the user, in words: "x, w = mylib::product_backward(grad, x, w)".
#pragma once
#include <string>
#include <vector>

#include "tenon/rules/op_def.h"

namespace tenon {

/// The text, read once. Operators are looked for when a gradient is asked for.
class CustomGradient {
 public:
  CustomGradient() = default;
  /// An Error says what is wrong with the text.
  CustomGradient(const Schema& schema, std::string_view text);
  explicit operator bool() const { return !clauses_.empty(); }
  std::vector<std::pair<std::string, size_t>> calls() const;  // operators it calls, and how many results it wants
  std::string of() const;  // the arguments it gives gradients of, as GradFormula names them
  Grads evaluate(Vjp& call) const;

 private:
  struct Operand {
    enum class Kind : uint8_t { argument, gradient, result, constant } kind = Kind::constant;
    std::string keyword, argument;
    size_t which = 0;
    CallArg constant;
  };
  struct Clause {
    std::vector<std::string> of;
    std::string op;
    std::vector<Operand> operands;
  };
  Operand operand(const Schema& schema, std::string_view text) const;
  std::vector<Clause> clauses_;
};

}  // namespace tenon
