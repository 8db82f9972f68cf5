// Wrong calls, made from right ones by changing one argument: whatever comes, an operator answers with an Error or a
// result.
#pragma once
#include "tests/sweep/checks.h"

namespace tenon::sweep {

/// Runs every variation of a recorded call on real tensors and without data. Nothing but an Error may come out, and
/// where it runs, its results must be what its meta says. Gives the first variation for which that is not so. `begin`
/// is told of each.
Outcome check_perturbed(const Op& op, const Case& recorded, void (*begin)(const std::string& what));

}  // namespace tenon::sweep
