// A program after a stage as JSON, for scripts and viewers: one form for every stage.
#pragma once
#include "tools/tenon/verbs.h"

namespace tenon::tool {

/// {"file", "stage", "torch_version", "schema_version", "dialect", "ranges", "missing_operators", "graphs": [{"name",
/// "inputs", "nodes", "outputs"}]}; the stage loops has "loops", its text, instead of graphs.
std::string stage_json(Walk& walk, const ShowRequest& request);

}  // namespace tenon::tool
