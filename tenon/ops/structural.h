// Regions and control flow.
#pragma once
#include "tenon/rules/call.h"

namespace tenon {

extern Handle grad_region;   // runs a graph with gradients on or off
extern Handle assert_async;  // fails with a message where its one element is 0

}  // namespace tenon
