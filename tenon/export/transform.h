// Programs with another graph.
#pragma once
#include <functional>

#include "tenon/export/exported_program.h"

namespace tenon {

/// The program with what the passes make of its graph, one after another. They may change neither the number nor the
/// meaning of inputs and outputs, which is an Error: the signature goes by position. Signatures of module calls whose
/// values are gone are dropped.
ExportedProgram transform(const ExportedProgram& program, const std::vector<std::function<Graph(Graph)>>& passes);

/// The program with another graph and signature, and with other state where that is given; everything else is copied.
/// It is verified.
ExportedProgram updated(const ExportedProgram& program, Graph graph, Signature signature,
                        const std::vector<NamedTensor>* state = nullptr);

}  // namespace tenon
