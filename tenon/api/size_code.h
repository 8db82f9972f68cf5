// Conditions on sizes as Python reads them: what guards_code of a file holds.
#pragma once
#include <functional>
#include <string>

#include "tenon/sym/expr.h"

namespace tenon::v0::detail {

/// (L['x'].size()[0] % 2) == 0, where name_of gives the text of a symbol.
std::string size_code(tenon::sym::Expr e, const std::function<std::string(tenon::sym::Expr symbol)>& name_of);

}  // namespace tenon::v0::detail
