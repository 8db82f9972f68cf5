// Tracing a program anew as PyTorch's dispatcher would: composites first, then writes and views, then decompositions,
// then nodes. For dialect/ only.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/dialect/names.h"
#include "tenon/dialect/run_decompositions.h"
#include "tenon/trace/trace.h"

namespace tenon::dialect {

using Rule = Results (*)(Build&);
/// What PyTorch makes of a composite, call by call; null where it is not known here.
Rule composite_rule(std::string_view op);
/// The entry of PyTorch's default decomposition table; null where it is not known here. A rule may give nothing back:
/// then the call stays.
Rule core_rule(std::string_view op);

/// What stays and what is replaced.
class Policy {
 public:
  explicit Policy(const DecomposeOptions& options);
  bool keeps(const Op& op) const;  // named by the user
  /// What a call is replaced by before writes and views are looked at, or behind that; none: it stays.
  std::function<Results(Build&)> composite(const Op& op) const;
  std::function<Results(Build&)> decomposition(const Op& op) const;

 private:
  const DecomposeOptions& options_;
  std::unordered_set<std::string> keep_;
};

/// Appends nodes, each named as torch.fx names it, behind decompositions.
class NodeTracer : public Dispatcher {
 public:
  NodeTracer(GraphBody& graph, const Policy& policy) : tracer(graph), policy_(policy) {}
  CallResults run(const Op& op, CallArgs args) override;
  CallResults node(const Op& op, CallArgs args);  // as it is

  /// A number of the old graph as a node, so that arguments can name it.
  void number(const Op& op, const std::vector<SymInt>& operands, SymInt result);
  /// Sizes of inputs that arguments name, as nodes; they belong before all others.
  void insert_sizes();
  Arg spelled(const Arg& arg);  // expressions as the values that compute them, where there are such

  Tracer tracer;
  NodeNames names;
  /// What the file says of the results of the call that is traced.
  struct Recorded {
    const Op* op;
    std::vector<BasicArg<TensorMeta>> metas;
    std::vector<bool> read;  // by other nodes
    bool hold;               // for the next node, where it is one of `op`
  };
  std::optional<Recorded> recorded;

 private:
  std::optional<Value> value_of(SymInt e);
  bool stands_for(const Op& op, const Results& made) const;
  bool gives_recorded_number(const Op& op) const;

  const Policy& policy_;
  int depth_ = 0;
  std::unordered_map<SymInt, Value> numbers_;
  std::unordered_set<SymInt> measured_;          // symbols that the old graph asks tensors for
  std::vector<std::pair<SymInt, Value>> sizes_;  // of symbols that were named, the values that will be their nodes
};

/// A step from a tensor to a view of it.
struct ViewStep {
  const Op* op = nullptr;
  CallArgs args;    // the first is what is viewed
  size_t item = 0;  // of a list of views
  bool of_list = false;
};

/// Replaces writes by values and keeps what shares memory up to date, in the order in which PyTorch does it: a tensor
/// whose memory was written since it was made is viewed anew when it is next used.
class FunctionalTracer : public Dispatcher {
 public:
  FunctionalTracer(NodeTracer& nodes, const Policy& policy) : nodes_(nodes), policy_(policy) {}
  CallResults run(const Op& op, CallArgs args) override;

  Tensor fresh(const Tensor& value);                                // with a memory of its own
  Tensor value_of(const Tensor& handle);                            // of the graph, up to date
  Tensor peek(const Tensor& handle) { return find(handle).value; }  // as it was last read
  bool was_written(const Tensor& handle);                           // whether its memory was
  const TensorMeta& as_it_came(const Tensor& handle);

 private:
  struct Memory {
    Tensor base;
    uint64_t generation = 0;
    const Op* shared_by = nullptr;  // an operator the user keeps although its result may share this memory
    bool written = false;
  };
  struct Aliased {
    Tensor handle;  // kept alive: it is the key
    std::shared_ptr<Memory> memory;
    std::vector<ViewStep> views;
    Tensor value;
    uint64_t generation = 0;
    TensorMeta came;
  };

  Aliased& find(const Tensor& handle);
  Tensor add(std::shared_ptr<Memory> memory, std::vector<ViewStep> views, const Tensor& value, uint64_t generation);
  CallArgs values_of(const CallArgs& args);
  Tensor viewed(const ViewStep& step, const Tensor& base);
  Tensor written_back(const ViewStep& step, const Tensor& base, const Tensor& value);
  void write(const Tensor& handle, Tensor value);
  CallResults view_call(const Op& op, const CallArgs& args);
  CallResults write_call(const Op& op, const CallArgs& args);
  Tensor seen_by(const Op& view, const CallArgs& args);
  CallResults write_through_twin(const Op& op, const Op& twin, const CallArgs& args);
  CallResults kept_call(const Op& op, const CallArgs& args);

  NodeTracer& nodes_;
  const Policy& policy_;
  std::unordered_map<const Tensor::Impl*, Aliased> tensors_;
};

/// Calls by name, as rules of PyTorch's do: aten("view", x, sizes).
template <class... A>
Results aten(std::string_view name, A&&... args);
const Op& aten_op(std::string_view name);
Results call_bound(const Op& op, std::span<Given> given);
template <class... A>
Results aten(std::string_view name, A&&... args) {
  Given given[] = {Given(std::forward<A>(args))...};
  return call_bound(aten_op(name), std::span<Given>(given, sizeof...(A)));
}

}  // namespace tenon::dialect
