#include "tenon/ops/custom_ops.h"

#include <tenon/custom_ops.h>

#include "tenon/api/access.h"

namespace tenon::v0 {

using detail::guarded;

void register_operators(const tenon_operator_table& table) {
  guarded(ErrorKind::call, [&] { tenon::register_custom_operators(table, "register_operators"); });
}

void load_operators(const std::string& path) {
  guarded(ErrorKind::file, [&] { tenon::load_custom_operators(path); });
}

}  // namespace tenon::v0
