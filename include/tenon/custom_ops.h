// Operators of your own, for programs that call them. <tenon/operator_table.h> says what an operator is made of,
// docs/custom_ops.md shows one.
#pragma once
#include <tenon/error.h>

#include <string>

struct tenon_operator_table;

namespace tenon::TENON_INLINE v0 {

/// Registers operators of this program, for the life of the process: those of a table as <tenon/operator_table.h>
/// describes it, whose texts must live as long. An Error says which of them is wrong; none is registered then. Programs
/// that call them are loaded afterwards.
TENON_PUBLIC void register_operators(const tenon_operator_table& table);
/// The same with the table that a shared library exports. Loading executes code: only name what you would run.
TENON_PUBLIC void load_operators(const std::string& path);

}  // namespace tenon::TENON_INLINEv0
