// One trace of a C++ function: calls become nodes of a graph, tensors with elements its inputs.
#pragma once
#include <tenon/export.h>

#include <unordered_map>
#include <unordered_set>

#include "tenon/api/example_sizes.h"
#include "tenon/api/recorder.h"
#include "tenon/trace/trace.h"

namespace tenon::v0::detail {

class Exporter : public tenon::Dispatcher, public Recorder {
 public:
  Exporter(const ExportOptions& options, ExampleSizes& sizes);
  Tensor add_input(const std::string& name, tenon::TensorMeta meta);
  tenon::sym::ShapeEnv& shapes() { return graph_->shapes; }
  void add_results(const std::vector<Tensor>& results);
  /// An Error where an operator cannot have the sizes of a probe.
  void check(const std::vector<ExampleSizes::Probe>& probes) const;
  tenon::ExportedProgram finish(const std::vector<std::string>& input_names);

  void enter(const void* module, const char* type) override;
  void takes(TensorList inputs) override;
  void gives(TensorList results) override;
  void leave() override;
  void made(const tenon::Tensor& tensor) override;

 protected:
  tenon::CallResults run(const tenon::Op& op, tenon::CallArgs args) override;

 private:
  struct Frame {
    std::string key, path, type;  // L__self__sub@1, sub, Sub
  };
  // The arguments and results of one call of a module. None is an absent one.
  struct PreservedCall {
    std::string path, number;  // sub, @1
    std::optional<std::vector<tenon::Value>> inputs, results;
  };

  void add_state(tenon::InputKind kind, const std::string& name, const Tensor& tensor);
  tenon::Tensor as_traced(const tenon::Tensor& t);
  void lift(tenon::InputKind kind, const std::string& target, const tenon::Tensor& t);
  void set_origin();
  PreservedCall* preserved();  // of the innermost module, where it is to be kept
  std::vector<tenon::Value> values(TensorList tensors);
  void add_preserved_calls(tenon::ExportedProgram& program, std::span<const tenon::Arg> values) const;

  const ExportOptions& options_;
  ExampleSizes& sizes_;
  tenon::Graph graph_;
  tenon::Tracer tracer_;
  std::vector<tenon::InputSpec> state_, constants_, inputs_;
  std::vector<tenon::NamedTensor> tensors_, constant_tensors_;
  std::unordered_map<const void*, tenon::Value> lifted_;
  std::unordered_map<const void*, std::string> constant_names_;
  std::unordered_set<const void*> made_;
  std::vector<tenon::Tensor> kept_;  // while their addresses say who they are
  std::vector<Frame> frames_;
  std::unordered_map<std::string, int> calls_;  // of modules, by path
  std::vector<PreservedCall> preserved_;
  std::size_t nameless_ = 0;
};

}  // namespace tenon::v0::detail
