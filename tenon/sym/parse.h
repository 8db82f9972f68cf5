// Reading expressions. Nothing is executed: text is read by a grammar, depth and size are bounded, and an unknown
// function is carried along by its name.
#pragma once
#include <span>
#include <string_view>

#include "tenon/sym/expr.h"

namespace tenon::sym {

constexpr int max_parse_depth = 200;
constexpr int max_parse_nodes = 10'000;

/// Either spelling of a sympy expression: srepr (Add(Integer(1), Symbol('s0', integer=True))) or infix (s0 + 1).
/// A bare name is one of `known` where that has it; else its traits are guessed from PyTorch's naming (s0, u0, zf0).
Expr parse(std::string_view text, std::span<const Expr> known = {});

/// A Python condition over a program's inputs, as guards_code has them. A chain like L['x'].size()[0] becomes a symbol
/// whose name is that text.
Expr parse_guard(std::string_view text);

/// Nodes of an expression when it is written out as a tree: what a walk over it, or its text, costs.
uint64_t weight(const Expr& e);

}  // namespace tenon::sym
