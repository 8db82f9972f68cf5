// Registering operators while the process runs: those of the user. Kept apart from registry.h, so that nobody does it
// by accident.
#pragma once
#include "tenon/rules/registry.h"

namespace tenon {

/// The registry, to add to. Adding is safe beside readers; an operator stays for the life of the process.
Registry& open_registry();

}  // namespace tenon
