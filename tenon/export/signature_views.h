// Questions to a signature that follow from its inputs and outputs, by the names PyTorch has for them.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenon/export/exported_program.h"

namespace tenon {

using NamePairs = std::vector<std::pair<std::string, std::string>>;  // in the order of the signature

/// Gradients of a joint program and the output they are of.
struct BackwardSignature {
  NamePairs gradients_to_parameters;   // output -> parameter
  NamePairs gradients_to_user_inputs;  // output -> input
  std::string loss_output;
};

struct SignatureViews {
  std::vector<std::string> parameters, buffers, non_persistent_buffers;  // dotted names
  std::vector<std::string> lifted_tensor_constants, lifted_custom_objs;  // likewise
  std::vector<Arg> user_inputs;                       // values of the graph, or the constants they were specialized to
  std::vector<Arg> user_outputs;                      // the loss among them
  NamePairs inputs_to_parameters, inputs_to_buffers;  // input -> dotted name
  NamePairs inputs_to_lifted_tensor_constants, inputs_to_lifted_custom_objs;
  NamePairs buffers_to_mutate, parameters_to_mutate;  // output -> dotted name
  NamePairs user_inputs_to_mutate;                    // output -> input
  std::vector<std::string> input_tokens, output_tokens;
  std::optional<std::string> assertion_dep_token;       // PyTorch keeps the name; no program has had one since 2.4
  std::optional<BackwardSignature> backward_signature;  // where there are gradients; an Error where losses are not one
};
SignatureViews views_of(const ExportedProgram& program);

/// Names an input or output anew throughout the signature, the trees of module calls and the graph: what PyTorch's
/// replace_all_uses does. An Error where the new name is taken or there is no such value.
void rename_value(ExportedProgram& program, const std::string& from, const std::string& to);

/// Sets the sample inputs; an Error where they are not arranged as the program's arguments, or where a leaf does not
/// fit its input: number of leaves, tensor or number, dtype, rank, constant sizes.
void set_samples(ExportedProgram& program, SampleInputs samples);

/// Whether two trees arrange arguments alike: kinds of nodes, keys in order, number of children. A leaf equals a leaf
/// alone.
bool equivalent(const Tree& a, const Tree& b);

}  // namespace tenon
