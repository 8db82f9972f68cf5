// The parts of the tables of composites and decompositions. For dialect/ only.
#pragma once
#include "tenon/dialect/tracer.h"

namespace tenon::dialect {

/// Composites that neither alias nor write: only the core dialect replaces them.
Rule functional_composite_rule(std::string_view op);
/// Names that stand for another operator with the same arguments: multiply for mul.
Rule alias_rule(std::string_view op);
/// Operators that PyTorch replaces in every dialect, although it has kernels for them.
Rule dispatched_rule(std::string_view op);
/// The entry of one of the families below; null where none has it.
Rule family_rule(std::string_view op);

Rule indexing_rule(std::string_view op);
Rule resampling_rule(std::string_view op);
Rule product_rule(std::string_view op);
Rule loss_rule(std::string_view op);
Rule creation_rule(std::string_view op);
Rule calculus_rule(std::string_view op);
Rule layout_rule(std::string_view op);

}  // namespace tenon::dialect
