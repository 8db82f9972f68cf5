// Training and evaluation mode of a program that was exported in one of them.
#pragma once
#include "tenon/export/exported_program.h"

namespace tenon {

enum class Mode : uint8_t { eval, train };

/// The program as model.train() or model.eval() would have been exported. A file bakes the mode into flags of its
/// operators; they are found by the names of arguments in the schemas (train, training, use_input_stats; an attention's
/// dropout_p, which evaluation sets to 0). Normalization without running statistics uses those of the batch in both
/// modes. Evaluation drops the updates that belong to training alone: those of buffers that sit beside running
/// statistics and that nobody in the program reads (num_batches_tracked); training puts them in.
///
/// What a file does not say cannot come back: dropout that decomposing in evaluation mode removed. An operator that has
/// no flag and works in the other mode only is an Error, and so is a program that computes gradients.
ExportedProgram in_mode(const ExportedProgram& program, Mode mode);

}  // namespace tenon
