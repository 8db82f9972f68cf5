// The tensors of a program that writes and aliases, each as a way of looking at a memory. For aot/ only.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "tenon/rules/op_def.h"
#include "tenon/trace/trace.h"

namespace tenon {

inline constexpr size_t no_input = ~size_t{0};

/// What several tensors look at. A write makes a new version of its base.
struct Memory {
  Tensor base;  // the current contents, a value of the new graph
  uint64_t version = 0;
  size_t input = no_input;  // the graph input that it belongs to
  bool may_carry_gradient = true;
};

/// Parts from the base of a memory, one after the other: the last of them, which knows the one before it. A view of a
/// view adds its own parts, however many lie before them.
using Path = uint32_t;
inline constexpr Path whole = 0;  // the base itself

/// A tensor of the program: a way of looking at a memory.
struct AliasedTensor {
  Tensor handle;                   // kept alive: it is the key
  std::shared_ptr<Memory> memory;  // shared by all tensors that look at it
  Path path = whole;
  Tensor current;  // its value in the new graph, good for `version`
  uint64_t version = 0;
};

/// Replays a program that writes and aliases as one that does not. Tensors that rules and nodes see are handles with
/// the metas of the original program, so that questions about strides are answered as PyTorch answers them.
class Functionalizer : public Dispatcher {
 public:
  explicit Functionalizer(GraphBody& graph) : tracer(graph) {}
  Tracer tracer;

  CallResults run(const Op& op, CallArgs args) override;

  /// Calls the nodes of a normalized graph. `values` are its values by id, handles and numbers; those of the inputs are
  /// there, those of the nodes are filled in.
  void replay(const GraphBody& from, std::vector<CallArg>& values);

  /// A tensor with a memory of its own.
  Tensor fresh(const Tensor& value, size_t input = no_input, bool may_carry_gradient = true);
  /// A tensor that looks at a memory.
  Tensor look(std::shared_ptr<Memory> memory, Path path, const TensorMeta& meta, Tensor current);
  /// A path that goes on from another.
  Path along(Path path, const std::vector<remap::Part>& parts);
  /// The value a handle stands for now; read again through its parts where its memory was written since.
  Tensor read(const Tensor& handle);
  AliasedTensor& find(const Tensor& handle);

 private:
  using KnownMetas = std::vector<BasicArg<TensorMeta>>;  // of the results of a node that is replayed

  // `known` is null where the operator's rule is to be asked.
  CallResults execute(const Op& op, CallArgs args, const KnownMetas* known);
  CallArgs values_of(const CallArgs& args);
  CallResults emit(const Op& op, const CallArgs& args, const KnownMetas* known);
  CallResults view_call(const Op& op, const CallArgs& args, const KnownMetas* known);
  CallResults write_call(const Op& op, CallArgs args);
  void write(const Tensor& target, Tensor value);
  CallResults control(const Op& op, CallArgs args, KnownMetas metas);
  /// Notes which symbols of a file stand for what the arguments of a node tell: x[:n] is written as f32[u1].
  void settle_symbols(const Op& op, const CallArgs& args, KnownMetas& metas);
  void settle_symbols(const KnownMetas& metas, const CallResults& results);
  void settle(const TensorMeta& recorded, const TensorMeta& is);
  bool has_open_symbols(const KnownMetas& metas) const;
  void now_told(const KnownMetas& metas);

  std::vector<remap::Part> parts_of(Path path) const;

  struct Piece {
    Path before;
    remap::Part part;
  };
  std::vector<Piece> pieces_;  // a path is the place of one, counted from 1
  std::unordered_map<const Tensor::Impl*, AliasedTensor> tensors_;
  std::unordered_set<SymInt> told_;        // symbols of inputs and of the nodes so far
  std::vector<sym::Replacement> settled_;  // symbols of the file that stand for expressions
};

}  // namespace tenon
