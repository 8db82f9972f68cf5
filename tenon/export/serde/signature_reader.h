// The signature and the module call graph of a program's JSON.
#pragma once
#include "tenon/export/exported_program.h"
#include "tenon/export/serde/graph_reader.h"

namespace tenon::serde {

Signature read_signature(Json signature, const GraphBody& graph, const Names& names);
std::vector<ModuleCallEntry> read_module_calls(Json entries, const Names& names);

}  // namespace tenon::serde
