// Operators of the user: registered from C++, or from the table of a shared library that the user names.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/abi.h"

struct tenon_operator_table;

namespace tenon {

struct Op;

/// The fields of tenon_operator (runtime/include/tenon/operator_table.h), which says what they mean.
struct CustomOperator {
  std::string schema, results, gradient;
  tenon_host_function kernel = nullptr;
  std::vector<std::string> errors;
  bool effects = false;
};

/// Registers operators for the life of the process. An Error says which of them is wrong and why, with `from` in front;
/// none of them is registered then.
void register_custom_operators(std::vector<CustomOperator> operators, std::string_view from);
void register_custom_operators(const tenon_operator_table& table, std::string_view from);
/// Loads a shared library and registers the operators of its table. Loading executes what the library holds: only what
/// the user names is loaded.
void load_custom_operators(const std::string& path);

/// The operator that writes to its arguments, of the form that gives what it writes as further results; null where the
/// operator is no such form.
const Op* writing_form(const Op& functional);

/// The kernel of an operator of the user, by the operator's name, or the one that prints; null where there is none.
tenon_host_function find_custom_kernel(std::string_view name);
/// All of them: what compiled programs may ask for. The names live as long as the process.
std::vector<std::pair<const char*, tenon_host_function>> custom_kernels();

}  // namespace tenon
