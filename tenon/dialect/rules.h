// The parts of the table of composites. For dialect/ only.
#pragma once
#include "tenon/dialect/tracer.h"

namespace tenon::dialect {

/// Composites that neither alias nor write: only the core dialect replaces them.
Rule functional_composite_rule(std::string_view op);
/// Names that stand for another operator with the same arguments: multiply for mul.
Rule alias_rule(std::string_view op);

}  // namespace tenon::dialect
