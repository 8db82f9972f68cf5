// Regions and control flow.
#pragma once
#include "tenon/rules/call.h"

namespace tenon {

extern Handle grad_region;  // runs a graph with gradients on or off

}  // namespace tenon
