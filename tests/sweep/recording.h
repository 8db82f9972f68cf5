// Calls of operators recorded from PyTorch, read from tests/data/sweep; tests/record/case.py describes the form.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/graph/op.h"
#include "tenon/io/json.h"

namespace tenon::sweep {

/// A tensor as PyTorch gave it, and what its elements should be.
struct Expected {
  TensorMeta meta;  // dtype, sizes and strides of PyTorch's tensor
  Tensor exact;     // contiguous, of a float64 run where there was one; none where the elements are not determined
  std::optional<double> error;  // of PyTorch's own elements against it
  std::string alias;            // the argument whose storage it shares; empty: none
};

/// One result: a tensor or none, a list of them, or a number.
struct ExpectedResult {
  bool is_tensor = false, is_list = false;
  std::vector<std::optional<Expected>> tensors;  // one where is_tensor
  std::optional<CallArg> number;                 // nothing where it is not determined
};

struct ExpectedGradients {
  std::vector<Tensor> cotangents;  // of the flattened tensor results; none where nothing arrives
  std::map<std::string, std::optional<Expected>>
      wrt;  // by argument, self or tensors[1]; empty where PyTorch gives none
};

/// One recorded call.
class Case {
 public:
  Case(Json json, std::span<const std::byte> bytes) : json_(json), bytes_(bytes) {}

  /// The arguments in schema order, in memory of their own: an op may write to them.
  CallArgs arguments(const Op& op) const;
  uint64_t given(const Op& op) const;  // bit i: argument i was given
  std::vector<ExpectedResult> results() const;
  std::map<std::string, Expected> written() const;  // arguments after the call
  std::optional<ExpectedGradients> gradients() const;
  bool has_gradients() const { return json_.find("grad").has_value(); }
  bool random() const { return json_.at("random").as_bool(); }

 private:
  using Shared = std::map<int64_t, std::shared_ptr<Storage>>;
  TensorMeta meta(Json json) const;
  Tensor tensor(Json json, Shared& shared) const;
  CallArg value(Json json, Shared& shared) const;
  Expected expected(Json tensor, std::optional<Json> reference, std::optional<Json> error,
                    std::optional<Json> alias) const;

  Json json_;
  std::span<const std::byte> bytes_;
};

/// The cases of one overload.
struct Recording {
  std::string name;  // aten::add.Tensor
  JsonDocument json;
  std::span<const std::byte> bytes;

  size_t size() const { return json.root().size(); }
  Case operator[](size_t i) const { return Case(json.root()[i], bytes); }
};

/// Every recording in the folder, by operator. The archives stay open as long as the library.
class Library {
 public:
  Library(const std::string& folder, const std::string& schemas);
  ~Library();
  std::vector<std::string> names() const;
  bool has(const std::string& name) const;
  Recording open(const std::string& name) const;
  std::vector<std::string> schema_names() const;
  const std::string* schema(const std::string& name) const;  // PyTorch's text; null where it was not recorded

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

/// "self=f32[2, 3], dim=1": what a message needs of a call.
std::string describe_call(const Op& op, std::span<const CallArg> args);

}  // namespace tenon::sweep
