// A program as torch.export has it: a graph as written, what its inputs and outputs mean, its state, the ranges of its
// symbols and how callers arrange arguments and results.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/base/tree.h"
#include "tenon/graph/graph.h"

namespace tenon {

enum class InputKind : uint8_t { user_input, parameter, buffer, constant_tensor, custom_object, token };
enum class OutputKind : uint8_t {
  user_output,
  loss_output,
  buffer_mutation,
  parameter_mutation,
  user_input_mutation,
  gradient_to_parameter,
  gradient_to_user_input,
  token
};
std::string_view name(InputKind kind);  // USER_INPUT, as PyTorch prints it
std::string_view name(OutputKind kind);

struct InputSpec {
  InputKind kind = InputKind::user_input;
  Arg arg;                 // the graph's input, or the constant of a specialized user input
  std::string name;        // name of that input (also for constants)
  std::string target;      // parameter, buffer, constant or object name; empty for user inputs
  bool persistent = true;  // buffers
};
struct OutputSpec {
  OutputKind kind = OutputKind::user_output;
  Arg arg;             // the graph's output, or a constant
  std::string target;  // what is written or differentiated
};
struct Signature {
  std::vector<InputSpec> inputs;    // inputs[i] speaks of graph.inputs[i]
  std::vector<OutputSpec> outputs;  // outputs[i] speaks of graph.outputs[i]
};

struct ModuleCallSignature {
  Args inputs, outputs;
  Tree in, out;
  std::optional<std::vector<std::string>> forward_arg_names;
};
struct ModuleCallEntry {
  std::string fqn;  // entry 0 is the program itself, ""
  std::optional<ModuleCallSignature> signature;
};

/// A tensor of the state or of the constants, under its full name.
struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool is_parameter = false;
  bool absent = false;  // the file has no bytes for it (a model exported without its weights); zeros stand in its place
};

/// A payload that PyTorch pickled: a custom object or a tensor of a class of its own. It is carried as bytes, which
/// nothing here reads: a program with one can be shown and converted.
struct OpaquePayload {
  std::string name;
  std::string file;        // its name in the archive it came from: custom_obj_0
  bool is_weight = false;  // of the weights, not of the constants
  bool is_parameter = false;
  std::optional<TensorMeta> meta;  // of a tensor
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // of the bytes: the mapped file
};

/// Sample inputs stored in a file: leaves in flattened order (args, then kwargs), tensors share storage as they did.
struct SampleInputs {
  Tree tree;
  std::vector<CallArg> leaves;
  std::span<const std::byte> file = {};         // that they were read from; none where they are others by now
  std::shared_ptr<const void> owner = nullptr;  // of its bytes
};

struct ExportedProgram {
  Graph graph;  // as written: regions, symbolic nodes and composites are nodes
  Signature signature;
  std::vector<NamedTensor> state;             // parameters and persistent buffers, in file order
  std::vector<NamedTensor> constants;         // constant tensors and non-persistent buffers
  std::vector<OpaquePayload> opaque;          // the weights and constants that are neither
  std::vector<ModuleCallEntry> module_calls;  // entry 0 holds the trees of arguments and results
  std::vector<std::pair<std::string, sym::Range>>
      ranges;                       // in file order; keys: symbols and derived expressions, infix
  std::vector<std::string> guards;  // guards_code, parsed when they are needed
  std::string dialect = "TRAINING";
  std::string torch_version;
  int64_t schema_major = 8, schema_minor = 20;
  std::vector<std::pair<std::string, std::string>> metadata;          // GraphModule.metadata
  std::map<std::string, std::vector<std::string>> namedtuple_fields;  // treespec_namedtuple_fields
  std::vector<std::pair<std::string, int64_t>> opset_version;
  std::vector<std::pair<std::string, std::string>> extra_files;  // what the user stored beside the program
  std::map<std::string, int64_t> hints;                          // symbols: their values for the example inputs

  /// Reads the sample inputs when asked for; fails with a sentence where they are unreadable, empty where there are
  /// none.
  std::function<std::optional<SampleInputs>()> samples;

  /// Reads the mapped weights through once and compares them with their CRCs; every verb that uses weights calls it
  /// first. Opening a file does not, because it would take all the time that mapping saves. Does nothing for programs
  /// made here.
  std::function<void()> check_payloads = [] {};

  ExportedProgram();
  ExportedProgram(ExportedProgram&&) noexcept;
  ExportedProgram& operator=(ExportedProgram&&) noexcept;
  ~ExportedProgram();
  /// A program of its own over the same tensors.
  ExportedProgram copy() const;
  const Tree& in_tree() const { return module_calls.at(0).signature->in; }
  const Tree& out_tree() const { return module_calls.at(0).signature->out; }
  const NamedTensor* find_state(std::string_view name) const;  // in state, then in constants
  Tensor tensor_of(const InputSpec& spec) const;               // parameter, buffer or constant
};

/// The state of a program by name, for who looks up many; good as long as the program is not changed.
class StateIndex {
 public:
  explicit StateIndex(const ExportedProgram& program);
  const NamedTensor* find(std::string_view name) const;  // as find_state
  Tensor tensor_of(const InputSpec& spec) const;

 private:
  std::unordered_map<std::string_view, const NamedTensor*> by_name_;
};

/// Checks what F41-F43 ask: signature against graph and state, metas against payloads, symbols against ranges, trees
/// against inputs, arguments against schemas. Throws Error naming the subject.
void verify(const ExportedProgram& program);

}  // namespace tenon
