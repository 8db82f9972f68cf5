// What is asked of every operator, one function each. A check returns nothing where the case passes, otherwise what is
// wrong.
#pragma once
#include "tests/sweep/recording.h"

namespace tenon::sweep {

using Outcome = std::optional<std::string>;

/// Our schema reads as PyTorch's.
Outcome check_schema(const Op& op, const std::string& pytorch);
/// Run in the interpreter: values, dtype, sizes, strides, sharing of storage, and the arguments after the call.
Outcome check_results(const Op& op, const Case& recorded);
/// Whether every draw of a random op gives the recorded values; true for the others.
bool determined(const Op& op, const Case& recorded);
/// The results' metas without data are those of the recorded results.
Outcome check_meta(const Op& op, const Case& recorded);
/// The op's meaning in other ops gives the recorded results too. `applies` says which ops have one besides their own
/// kernel.
Outcome check_decomposition(const Op& op, const Case& recorded);
bool has_decomposition(const Op& op);
/// The cotangents pulled back through the call are the recorded gradients; none and zeros are the same.
Outcome check_gradients(const Op& op, const Case& recorded);
bool has_gradient_rule(const Op& op);
/// The call as a program, lowered and executed, gives what the eager call gives, bit for bit.
Outcome check_lowered(const Op& op, const Case& recorded);
/// Compiled: interpreter of kernels and machine code give the same bits, and the values of the lowered program.
Outcome check_compiled(const Op& op, const Case& recorded);
/// A program of this one call reads back from its file as it was written.
Outcome check_round_trip(const Op& op, const Case& recorded, bool through_file);

}  // namespace tenon::sweep
