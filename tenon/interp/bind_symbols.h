// What the sizes of a call's arguments say about the symbols of a program.
#pragma once
#include "tenon/loop/program.h"
#include "tenon/sym/evaluate.h"
#include "tenon/tensor/dispatch.h"

namespace tenon::interp {

/// Solves the sizes of tensors for the program's symbols. A tensor of another dtype, rank or size, or a size out of its
/// range, is an Error that names the input, the dimension, what was expected and what came. Tensors that are none tell
/// nothing.
sym::Bindings bind_symbols(std::span<const loop::Input> expected, const sym::Ranges& ranges,
                           std::span<const CallArg> inputs);
/// Likewise, for those who try: what does not fit, in words; nothing where everything does and `symbols` have it.
std::optional<std::string> why_not_bound(std::span<const loop::Input> expected, const sym::Ranges& ranges,
                                         std::span<const CallArg> inputs, sym::Bindings& symbols);

/// What an expression is worth: an integer, a real number or a boolean.
CallArg evaluated(SymInt e, const sym::Bindings& symbols);

}  // namespace tenon::interp
