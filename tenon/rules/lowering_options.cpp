#include "tenon/rules/lowering_options.h"

namespace tenon {

const LoweringOptions& lowering_options() {
  static constexpr LoweringOptions defaults;
  const LoweringOptions* chosen = context().lowering;
  return chosen ? *chosen : defaults;
}

}  // namespace tenon
