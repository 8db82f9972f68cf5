// Expressions as text, in the two spellings PyTorch's files use: what sympy's str and srepr would write.
#pragma once
#include <string>

#include "tenon/sym/expr.h"

namespace tenon::sym {

std::string to_infix(const Expr& e);  // 2*s77 + 1
std::string to_srepr(const Expr& e);  // Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(1))
void append_text(std::string& out, const Expr& e);  // infix

}  // namespace tenon::sym
