// Inputs that share storage: where the program writes to one, the others see it. For aot/ only.
#pragma once
#include "tenon/aot/functionalizer.h"
#include "tenon/export/exported_program.h"

namespace tenon {

/// Inputs over one storage, with their places in it.
struct Sharing {
  std::vector<size_t> inputs;      // of the signature
  std::vector<TensorMeta> places;  // constant sizes, strides and offset
  int64_t elements = 0;            // of the storage
  std::vector<size_t> otherwise;   // inputs that see some of the same bytes as another dtype
};

/// Among the state of a program and the tensors of a call (flattened; may be empty). Sharings of two inputs or more.
std::vector<Sharing> sharings_of(const ExportedProgram& program, const std::vector<CallArg>& user_inputs);

/// Which inputs share memory and how, in words: the same for two calls exactly where they share alike.
std::string to_text(const Sharing& sharing, const ExportedProgram& program);

/// Makes the tensors of a sharing look at one memory. Its first contents are put together from theirs. `values` are the
/// tensors by value of the graph. Where several inputs see one element, the gradient of each is that element's, whoever
/// it was used through: what a change of the memory does.
void share(const Sharing& sharing, const GraphBody& from, Functionalizer& functionalizer, std::vector<CallArg>& values);

}  // namespace tenon
