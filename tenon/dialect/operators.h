// What PyTorch says of the place of its operators in its dialects. The table is data recorded from PyTorch
// (tests/record/record_operators.py); which operators a dialect keeps is read off it.
#pragma once
#include <string_view>
#include <vector>

namespace tenon::dialect {

/// Facts of an operator, by its name in a schema (aten::add.Tensor).
struct Facts {
  bool composite = false;    // PyTorch knows it by what it is made of alone
  bool preservable = false;  // a composite that neither writes nor aliases, so that a program may keep it
  bool replaced = false;     // the default decomposition table has an entry for it
  bool kept = false;         // a preservable composite that the default table leaves alone
  bool core = false;         // of the core ATen operator set
};
Facts facts_of(std::string_view op);

/// Names of the operators of the core set, sorted.
std::vector<std::string_view> core_operators();

}  // namespace tenon::dialect
